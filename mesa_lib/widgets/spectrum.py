"""A widget for GD++ as an optimiser: eigenvalues through layers, beside gradient descent, momentum and Newton."""

from typing import Any

import torch
import traitlets

from mesa_lib.algorithms import chebyshev_weights, momentum_weights, newton_weights
from mesa_lib.tasks import TaskBatch
from mesa_lib.theory import (
    chebyshev_schedule,
    gradient_descent_schedule,
    newton_schulz_schedule,
    optimal_cubic_schedule,
    residual,
    tied_schedule,
)
from mesa_lib.validation import finite_number, one_of, positive_integer
from mesa_lib.widgets.base import Widget

NAMES = {
    "gd": "gradient descent",
    "momentum": "momentum",
    "chebyshev": "the Chebyshev iteration",
    "newton": "Newton's iteration",
    "tied": "tied GD++",
    "schulz": "Newton-Schulz GD++",
    "cubic": "optimal cubic GD++",
    "gdpp_chebyshev": "Chebyshev GD++",
}
NUM_EIGENVALUES = 9
MAX_LAYERS = 12


class SpectrumFlow(Widget, front_end="spectrum_flow"):
    """What methods leave of each eigenvalue's error, layer by layer, on eigenvalues from 1/kappa to 1.

    Left: the chosen method, one line an eigenvalue: the share |rho| of its error that is left, or the eigenvalue of the
    data as the layers have moved them, which GD++ alone does. Right: the worst share of all methods. Each method has
    its best numbers for the interval: the best single step for gradient descent, Polyak's for the heavy ball, Newton's
    iteration from I / lambda_max, schedules of L layers for GD++; tied GD++ has the reader's. The traits
    are named like the arguments and hold what is shown now.

    Args:
        condition_number: kappa.
        method: "gd", "momentum", "chebyshev", "newton", "tied", "schulz", "cubic" or "gdpp_chebyshev".
        num_layers: L, layers or steps, up to 12.
        eta: step size of tied GD++, on a largest eigenvalue of 1 (N = 1).
        gamma: gamma of tied GD++, likewise.
        shown: "error" or "eigenvalue", what the left panel shows.

    Raises:
        TypeError, ValueError: `condition_number` is not above 1, a number is not finite, a name is unknown, or
            `num_layers` is not from 1 to 12.
    """

    condition_number = traitlets.Float().tag(sync=True)
    method = traitlets.Enum(tuple(NAMES)).tag(sync=True)
    num_layers = traitlets.Int().tag(sync=True)
    eta = traitlets.Float().tag(sync=True)
    gamma = traitlets.Float().tag(sync=True)
    shown = traitlets.Enum(("error", "eigenvalue")).tag(sync=True)

    def __init__(
        self,
        condition_number: float = 30.0,
        method: str = "cubic",
        *,
        num_layers: int = 4,
        eta: float = 6.0,
        gamma: float = 0.44,
        shown: str = "error",
        **kwargs: Any,
    ) -> None:
        kappa = finite_number("condition_number", condition_number)
        if kappa <= 1:
            raise ValueError(f"condition_number: expected a number above 1, got {kappa}")
        if positive_integer("num_layers", num_layers) > MAX_LAYERS:
            raise ValueError(f"num_layers: expected at most {MAX_LAYERS}, got {num_layers}")
        super().__init__(
            condition_number=kappa,
            method=one_of("method", method, tuple(NAMES)),
            num_layers=num_layers,
            eta=finite_number("eta", eta),
            gamma=finite_number("gamma", gamma),
            shown=one_of("shown", shown, ("error", "eigenvalue")),
            **{"finding": _FINDING} | kwargs,
        )

    def shares(self, method: str) -> torch.Tensor:
        """The share of the error that each eigenvalue keeps after the chosen number of layers; shape (eigenvalue)."""
        kappa, layers = self.condition_number, self.num_layers
        eigenvalues = kappa ** torch.linspace(-1, 0, NUM_EIGENVALUES, dtype=torch.float64)
        low = 1 / kappa
        schedules = {
            "gd": lambda: gradient_descent_schedule(2 / (1 + low), layers),
            "tied": lambda: tied_schedule(self.eta, self.gamma, layers),
            "schulz": lambda: newton_schulz_schedule(1.0, layers, 1),
            "cubic": lambda: optimal_cubic_schedule(low, 1.0, layers, 1),
            "gdpp_chebyshev": lambda: chebyshev_schedule(4 / 3, layers, 1),
        }
        if method in schedules:
            return residual(eigenvalues, schedules[method](), 1)
        # The other methods work on a context; this one has the spectrum, and a teacher of ones.
        context_x = (NUM_EIGENVALUES * eigenvalues).sqrt().diag()[None]
        batch = TaskBatch(context_x, context_x.sum(-1, keepdim=True), context_x[:, :1], context_x[:, :1, :1])
        if method == "chebyshev":
            weights = chebyshev_weights(batch, layers, low, 1.0)
        elif method == "newton":
            weights = newton_weights(batch, layers, "identity")
        else:
            root = kappa**-0.5
            weights = momentum_weights(batch, 4 / (1 + root) ** 2, ((1 - root) / (1 + root)) ** 2, layers)
        return 1 - weights[0, 0]

    def describe(self) -> str:
        """The worst share that the chosen method and gradient descent leave."""
        left = {method: self.shares(method).abs().max().item() for method in (self.method, "gd")}
        return (
            f"At condition number {self.condition_number:.0f} and {self.num_layers} layers {NAMES[self.method]} leaves "
            f"at most {left[self.method]:.1e} of an eigenvalue's error, gradient descent {left['gd']:.1e}."
        )


_FINDING = (
    "Gradient descent falls along a straight line. Untied GD++ bends down like Newton's iteration: second order. Tied "
    "GD++ starts well, but it shrinks the data as well as the error: it flattens, and is overtaken (look at κ = 2)."
)
