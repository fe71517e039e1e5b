"""A widget for in-context regression: a step on the weight beside a step on the targets."""

from typing import Any

import torch
import traitlets

from mesa_lib.algorithms import context_loss, loss_gradient
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_number
from mesa_lib.widgets.base import Widget, line_task, numbers, shown_task


class StepOnData(Widget, front_end="step_on_data"):
    """One gradient step in one dimension, told twice: the line moves, or the points do, by -Delta W x_i.

    The points can be dragged, and a step size and the line before the step can be chosen. Both panels draw the same
    residuals, (W + Delta W) x_i - y_i at the left and W x_i - (y_i - Delta W x_i) at the right (equation 4 of the
    paper). The traits `x`, `y` (the context), `w_0` and `eta` hold what is shown now.

    Args:
        batch: one task with one input and one target; its context is what can be dragged.
        w_0: the slope before the step.
        eta: step size on L = 1/(2N) sum_i (W x_i - y_i)^2.

    Raises:
        TypeError, ValueError: more tasks or dimensions than one, or numbers that are not finite.
    """

    x = traitlets.List(traitlets.Float()).tag(sync=True)
    y = traitlets.List(traitlets.Float()).tag(sync=True)
    w_0 = traitlets.Float().tag(sync=True)
    eta = traitlets.Float().tag(sync=True)

    def __init__(self, batch: TaskBatch, w_0: float = -0.6, eta: float = 2.5, **kwargs: Any) -> None:
        line_task(batch)
        super().__init__(
            x=numbers(batch.context_x),
            y=numbers(batch.context_y),
            w_0=finite_number("w_0", w_0),
            eta=finite_number("eta", eta),
            **{"finding": _FINDING} | kwargs,
        )

    def describe(self) -> str:
        """The step from the present slope, and the loss before and after it."""
        batch = shown_task(self.x, self.y, torch.zeros(1))
        before = torch.tensor([[self.w_0]], dtype=torch.float64)
        after = before - self.eta * loss_gradient(before, batch)
        losses = [context_loss(weights, batch).item() for weights in (before, after)]
        return (
            f"Beside {len(self.x)} points, a step of size {self.eta:.2f} turns a line of slope {self.w_0:.2f} to slope "
            f"{after.item():.2f}; its loss goes from {losses[0]:.4f} to {losses[1]:.4f}."
        )


_FINDING = (
    "Drag a point, or change the step: bars at the same x stay equally long in both panels. A step on the weight is a "
    "step on the targets."
)
