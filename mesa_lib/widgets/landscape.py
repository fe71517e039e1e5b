"""A widget for the loss of one step: its exact parabola, and where trained layers lie on it."""

from dataclasses import replace
from typing import Any

import traitlets

from mesa_lib.tasks import LinearTasks
from mesa_lib.theory import optimal_eta, optimal_loss, population_loss, zero_loss
from mesa_lib.validation import finite_number, positive_integer
from mesa_lib.widgets.base import Widget

LAWS = ("uniform", "normal", "laplace", "rademacher")


class LossLandscape(Widget, front_end="loss_landscape"):
    """L(eta) / L0 of one gradient step, exactly, for dimensions, law, noise and test length of the reader's choice.

    A layer made for N examples holds P = (eta/N) I; on M examples at test time it takes a step of size eta M / N, whose
    loss is a curve of its own. Circles are trained layers, where `tools.record` has trained some in that setting. The
    traits `x_dim`, `num_context`, `inputs`, `noise_std`, `eta` and `test_length` (0 for N) hold what is shown now.

    Args:
        tasks: independent inputs of scale 1 and a teacher of mean zero and scale 1; where to open.
        eta: the step size whose loss is read off at first.
        test_length: M; None for N.

    Raises:
        TypeError, ValueError: `eta` is not finite, `test_length` is no positive integer, or the tasks have a
            covariance, a teacher's mean or scale, another input range or a constant input: there is no control for it.
    """

    x_dim = traitlets.Int().tag(sync=True)
    num_context = traitlets.Int().tag(sync=True)
    inputs = traitlets.Enum(LAWS).tag(sync=True)
    noise_std = traitlets.Float().tag(sync=True)
    eta = traitlets.Float().tag(sync=True)
    test_length = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        tasks: LinearTasks | None = None,
        eta: float = 1.0,
        *,
        test_length: int | None = None,
        **kwargs: Any,
    ) -> None:
        chosen = tasks or LinearTasks()
        plain = LinearTasks(chosen.x_dim, 1, chosen.num_context, inputs=chosen.inputs, noise_std=chosen.noise_std)
        if replace(chosen, num_queries=1) != plain:
            raise ValueError(
                "tasks: expected LinearTasks with x_dim, num_context, inputs and noise_std of your choice and defaults "
                f"otherwise, got {chosen}"
            )
        super().__init__(
            x_dim=chosen.x_dim,
            num_context=chosen.num_context,
            inputs=chosen.inputs,
            noise_std=float(chosen.noise_std),
            eta=finite_number("eta", eta),
            test_length=0 if test_length is None else positive_integer("test_length", test_length),
            **{"finding": _FINDING} | kwargs,
        )

    @property
    def tasks(self) -> LinearTasks:
        """The tasks as they are now, at the layer's own context length."""
        inputs: Any = self.inputs  # one of LAWS
        return LinearTasks(self.x_dim, 1, self.num_context, inputs=inputs, noise_std=self.noise_std)

    def relative_loss(self) -> float:
        """The loss of the chosen step at the chosen test length, relative to that of predicting zero."""
        length = self.test_length or self.num_context
        shown = replace(self.tasks, num_context=length)
        return float(population_loss(shown, self.eta * length / self.num_context)) / zero_loss(shown)

    def describe(self) -> str:
        """The best step and its loss, and the loss of the chosen one."""
        least = optimal_loss(self.tasks) / zero_loss(self.tasks)
        return (
            f"For d = {self.x_dim}, N = {self.num_context} and {self.inputs} inputs the best step size is "
            f"{optimal_eta(self.tasks):.3f}, with {least:.3f} of the loss of predicting zero; at {self.eta:.2f} it is "
            f"{self.relative_loss():.3f}."
        )


_FINDING = (
    "The loss of one step is a parabola in its size, and trained layers lie at its lowest point. More examples at test "
    "time than the layer was made for make its step too long: the curve narrows, and its old optimum climbs."
)
