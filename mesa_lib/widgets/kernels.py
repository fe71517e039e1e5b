"""A widget for deep features: attention over m(x) is kernel regression if linear, and a smoother with a softmax."""

from collections.abc import Callable
from typing import Any

import torch
import traitlets
from jaxtyping import Float
from torch import Tensor

from mesa_lib.algorithms import (
    exponential_kernel,
    feature_kernel,
    kernel_gradient_descent,
    kernel_regression,
    kernel_smoother,
)
from mesa_lib.features import feature_batch
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_number, finite_tensor, positive_integer, positive_number
from mesa_lib.widgets.base import Widget, line_task, numbers, shown_task

GRID = 101
MAX_STEPS = 40
MAX_FEATURES = 8


class KernelByHand(Widget, front_end="kernel_by_hand"):
    """Attention over features m(x), on points that can be dragged: linear attention regresses, a softmax smooths.

    The first is gradient descent in the space of functions that the features span, with the kernel m(x) . m(x')
    (Proposition 2 of the paper), a step a layer, from f = 0; its limit is kernel least squares. The second is one
    layer, the mean of the targets with weights exp(beta m(x_i) . m(x)). The traits `x`, `y` (the context), `num_steps`,
    `eta` and `beta` hold what is shown now.

    Args:
        batch: one task with one input, one target and one query, inputs within [-input_range, input_range].
        features: m, from inputs (..., 1) to (..., feature); None for (sin x, cos x), what an MLP that is trained on
            sine waves comes to span. At most 8 features; the widget knows them on a grid, with lines between.
        num_steps: layers of linear attention, up to 40.
        eta: their step size, on 1/(2N) sum_i |w m(x_i) - y_i|^2.
        beta: the softmax's scores are beta m(x_i) . m(x).
        input_range: inputs go from minus this to this.

    Raises:
        TypeError, ValueError: more tasks or dimensions than one, numbers out of range, or too many features.
    """

    x = traitlets.List(traitlets.Float()).tag(sync=True)
    y = traitlets.List(traitlets.Float()).tag(sync=True)
    features = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    input_range = traitlets.Float().tag(sync=True)
    num_steps = traitlets.Int().tag(sync=True)
    eta = traitlets.Float().tag(sync=True)
    beta = traitlets.Float().tag(sync=True)

    def __init__(
        self,
        batch: TaskBatch,
        features: Callable[[Tensor], Tensor] | None = None,
        *,
        num_steps: int = 1,
        eta: float = 1.0,
        beta: float = 5.0,
        input_range: float = 5.0,
        **kwargs: Any,
    ) -> None:
        line_task(batch)
        reach = positive_number("input_range", input_range)
        if float(batch.context_x.abs().max()) > reach:
            raise ValueError(f"batch: expected inputs from {-reach} to {reach}, see input_range, got larger ones")
        if positive_integer("num_steps", num_steps) > MAX_STEPS:
            raise ValueError(f"num_steps: expected at most {MAX_STEPS}, got {num_steps}")
        grid = torch.linspace(-reach, reach, GRID, dtype=torch.float64)[:, None]
        table = (features or _waves)(grid).mT
        finite_tensor("features", table, min_dims=2)
        if len(table) > MAX_FEATURES:
            raise ValueError(f"features: expected at most {MAX_FEATURES} of them, got {len(table)}")
        super().__init__(
            x=numbers(batch.context_x),
            y=numbers(batch.context_y),
            features=[numbers(row) for row in table],
            input_range=reach,
            num_steps=num_steps,
            eta=finite_number("eta", eta),
            beta=positive_number("beta", beta),
            **{"finding": _FINDING} | kwargs,
        )

    def predictions(self, queries: Float[Tensor, "query"]) -> dict[str, Float[Tensor, "query"]]:
        """What is drawn, at float64 queries of shape (query): "layers", "limit" and "softmax", each of that shape."""
        batch = shown_task(self.x, self.y, queries)
        kernel = feature_kernel(self._features)
        on_features = feature_batch(self._features, batch)
        layers = (
            kernel_gradient_descent(batch, kernel, self.eta, self.num_steps) if self.num_steps else 0 * batch.query_x
        )
        found = {
            "layers": layers,
            "limit": kernel_regression(batch, kernel, relative_cutoff=1e-9),
            "softmax": kernel_smoother(on_features, exponential_kernel(self.beta)),
        }
        return {name: values[0, :, 0] for name, values in found.items()}

    def _features(self, inputs: Tensor) -> Tensor:
        """The features of any inputs (..., 1), by straight lines on the grid, as the front end has it."""
        table = torch.tensor(self.features, dtype=inputs.dtype)
        place = ((inputs[..., 0] + self.input_range) / (2 * self.input_range) * (GRID - 1)).clamp(0, GRID - 1)
        cell = place.floor().clamp(max=GRID - 2).long()
        share = place - cell
        return (table[:, cell] * (1 - share) + table[:, cell + 1] * share).movedim(0, -1)

    def describe(self) -> str:
        """The three predictions at x = 0."""
        at_zero = {name: values.item() for name, values in self.predictions(torch.zeros(1)).items()}
        count = f"{self.num_steps} layer{'' if self.num_steps == 1 else 's'}"
        return (
            f"At x = 0, {count} of linear attention over features predict {at_zero['layers']:.3f}, in "
            f"the limit of many {at_zero['limit']:.3f}; softmax attention of sharpness {self.beta:.1f} predicts "
            f"{at_zero['softmax']:.3f}."
        )


def _waves(inputs: Tensor) -> Tensor:
    return torch.cat([inputs.sin(), inputs.cos()], dim=-1)


_FINDING = (
    "Layer by layer, linear attention over (sin x, cos x) becomes the wave through the points. Softmax attention over "
    "the same features averages the targets of similar points: it never leaves their range, and copies them if sharp."
)
