"""How many layers or steps a method needs: worst cases over all contexts with eigenvalues in [1/kappa, 1].

The error is the largest |rho| on the interval, the share of the error W - V that is left; kappa is the condition
number. A scale of the eigenvalues changes nothing: all methods may use step sizes that fit it.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from mesa_lib.theory.spectral import (
    Schedule,
    chebyshev_schedule,
    newton_schulz_schedule,
    optimal_cubic_schedule,
    propagate,
    residual,
)
from mesa_lib.validation import (
    finite_number,
    floating_tensor,
    one_of,
    positive_integer,
    positive_number,
    typed,
)

METHODS = (
    "gradient descent",
    "Chebyshev",
    "Newton, start I",
    "Newton, start A",
    "GD++, constant gamma",
    "GD++, Newton-Schulz",
    "GD++, optimal cubic",
    "GD++, Chebyshev",
    "lower bound",
)
"""What `layers_needed` knows. "Chebyshev" is the Chebyshev iteration, and the worst case of conjugate gradients."""


def polynomial_degree(num_layers: int) -> int:
    """(3^L - 1)/2 = 1, 4, 13, 40, 121, ...: the degree in the context's second moment that L linear layers reach.

    A layer multiplies the degree by three (attention is cubic in its tokens), and the read-out adds the layers up.

    Raises:
        TypeError, ValueError: `num_layers` is not a positive integer.

    Example:
        >>> [mesa.polynomial_degree(layers) for layers in (1, 2, 5)]
        [1, 4, 121]
    """
    return int((3 ** positive_integer("num_layers", num_layers) - 1) // 2)


def chebyshev_error(degree: int, condition_number: float) -> float:
    """1 / T_m((kappa + 1)/(kappa - 1)), the least worst |rho| of any polynomial of degree m with rho(0) = 1.

    Args:
        degree: m.
        condition_number: kappa; the eigenvalues fill [1/kappa, 1].

    Raises:
        TypeError, ValueError: `degree` is not a positive integer, or `condition_number` is not above 1.

    Example:
        >>> round(mesa.chebyshev_error(degree=1, condition_number=3.0), 6)  # (kappa - 1) / (kappa + 1)
        0.5
    """
    kappa = _condition_number(condition_number)
    exponent = positive_integer("degree", degree) * _stretch(kappa)
    return 1 / math.cosh(exponent) if exponent < 700 else 0.0


def _stretch(kappa: float) -> float:
    """arccosh((kappa + 1)/(kappa - 1)), about 2 / sqrt(kappa), without cancellation for large kappa."""
    excess = 2 / (kappa - 1)
    return math.log1p(excess + math.sqrt(excess * (2 + excess)))


def _condition_number(condition_number: float) -> float:
    kappa = finite_number("condition_number", condition_number)
    if kappa <= 1:
        raise ValueError(f"condition_number: expected a number above 1, got {kappa}")
    return kappa


def _error_bound(error: float) -> float:
    bound = positive_number("error", error)
    if bound >= 1:
        raise ValueError(f"error: expected a number between 0 and 1, got {bound}")
    return bound


@typed
def worst_residual(schedule: Schedule, condition_number: float, num_points: int = 4000) -> float:
    """The largest |rho| of a schedule, with N = 1, over eigenvalues in [1/kappa, 1]: on a logarithmic grid.

    Args:
        schedule: made with num_context=1 and highest=1.
        condition_number: kappa.
        num_points: points of the grid, both ends among them.

    Raises:
        TypeError, ValueError: `condition_number` is not above 1, or `num_points` is not a positive integer.

    Example:
        >>> one_step = mesa.gradient_descent_schedule(0.5, num_steps=1)
        >>> 0 < mesa.worst_residual(one_step, condition_number=10.0, num_points=100) < 1
        True
    """
    kappa = _condition_number(condition_number)
    grid = torch.from_numpy(np.geomspace(1 / kappa, 1, positive_integer("num_points", num_points)))
    return float(residual(grid, schedule, 1).abs().max())


def _last_step(schedule: Schedule, spectrum: npt.NDArray[np.float64]) -> Schedule:
    """The same schedule with the best last step, 2 / (least + largest eigenvalue by then)."""
    moved = spectrum
    for gamma in schedule.gammas:
        moved = moved * (1 - gamma * moved) ** 2
    return Schedule((*schedule.etas[:-1], float(2 / (moved.min() + moved.max()))), schedule.gammas)


def gd_plus_plus_worst_case(method: str, condition_number: float, num_layers: int) -> Schedule:
    """The schedule of one of the GD++ methods of `METHODS` for eigenvalues in [1/kappa, 1], with num_context=1.

    Newton-Schulz and the optimal cubic step by one over the largest eigenvalue, and 2 / (least + largest) in the last
    layer; "GD++, constant gamma" does the same with gamma = 1/3 throughout; Chebyshev's has no choice left.

    Args:
        method: "GD++, constant gamma", "GD++, Newton-Schulz", "GD++, optimal cubic" or "GD++, Chebyshev".
        condition_number: kappa.
        num_layers: L.

    Raises:
        TypeError, ValueError: an unknown method, a `condition_number` that is not above 1, a bad `num_layers`.

    Example:
        >>> len(mesa.gd_plus_plus_worst_case("GD++, Chebyshev", condition_number=10.0, num_layers=2).etas)
        2
    """
    kappa, layers = _condition_number(condition_number), positive_integer("num_layers", num_layers)
    one_of("method", method, [name for name in METHODS if name.startswith("GD++")])
    if method == "GD++, Chebyshev":
        return chebyshev_schedule(4 / 3, layers, 1)
    if method == "GD++, optimal cubic":
        return optimal_cubic_schedule(1 / kappa, 1.0, layers, 1)
    grid = np.geomspace(1 / kappa, 1, 4000)
    if method == "GD++, Newton-Schulz":
        return _last_step(newton_schulz_schedule(1.0, layers, 1), grid)
    etas, moved = [], grid
    for _ in range(layers):
        etas.append(float(1 / moved.max()))
        moved = moved * (1 - moved / 3) ** 2
    return _last_step(Schedule(tuple(etas), (1 / 3,) * (layers - 1)), grid)


def minimax_schedule(condition_number: float, num_layers: int) -> Schedule:
    """The GD++ schedule of L layers, N = 1, with the least worst |rho| on [1/kappa, 1] that a search finds.

    L-BFGS on logarithms of the 2L - 1 numbers, from geometric schedules and the optimal cubic; the largest |rho| is
    approached through the means of |rho|^p for p = 8, 32, 128, 512. No proof says that nothing is better, but the lower
    bound of `chebyshev_error` at degree (3^L - 1)/2 does, up to the gap between them.

    Args:
        condition_number: kappa.
        num_layers: L; the search is made for few, up to three or four.

    Raises:
        TypeError, ValueError: `condition_number` is not above 1, or `num_layers` is not a positive integer.

    Example:
        >>> len(mesa.minimax_schedule(condition_number=10.0, num_layers=1).etas)
        1
    """
    kappa, layers = _condition_number(condition_number), positive_integer("num_layers", num_layers)
    grid = torch.from_numpy(np.concatenate([np.geomspace(1 / kappa, 1, 250), np.linspace(1 / kappa, 1, 250)]))

    def objective(power: int) -> Callable[[npt.NDArray[np.float64]], tuple[float, npt.NDArray[np.float64]]]:
        def evaluate(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
            numbers = torch.tensor(point, requires_grad=True)
            *_, (rho, _) = propagate(grid, numbers[:layers].exp().unbind(), numbers[layers:].exp().unbind(), 1)
            value = (rho.abs().clamp(min=1e-300).log() * power).logsumexp(0) / power
            (slope,) = torch.autograd.grad(value, numbers)
            return float(value.detach()), np.nan_to_num(slope.numpy())

        return evaluate

    best = optimal_cubic_schedule(1 / kappa, 1.0, layers, 1)
    starts = [np.log([*best.etas, *best.gammas])]
    for growth in (2.0, 3.0, 4.5, 6.0):
        strengths = growth ** np.arange(layers)
        starts.append(np.log([*(1.2 * strengths), *(0.6 * strengths[:-1])]))
    for point in starts:
        for power in (8, 32, 128, 512):
            point = minimize(objective(power), point, jac=True, method="L-BFGS-B").x
        etas, gammas = np.exp(point[:layers]).tolist(), np.exp(point[layers:]).tolist()
        found = Schedule(tuple(etas), tuple(gammas))
        if worst_residual(found, kappa) < worst_residual(best, kappa):
            best = found
    return best


def layers_needed(method: str, condition_number: float, error: float = 1e-6, most: int = 10**8) -> int:
    """The fewest layers (of GD++) or steps (of the others) after which no |rho| on [1/kappa, 1] exceeds `error`.

    - "gradient descent": the best single step, |rho| = ((kappa - 1)/(kappa + 1))^k.
    - "Chebyshev": k products by A, see `chebyshev_error`; no method of k products does better.
    - "Newton, start I" and "Newton, start A": the best multiple of I and of A to start from; r^(2^k) with
      r = (kappa - 1)/(kappa + 1), and the same with kappa^2.
    - "GD++, ...": see `gd_plus_plus_worst_case`. For Chebyshev's, |rho| <= sqrt(kappa) / 3^L bounds the grid's answer.
    - "lower bound": what no L layers of linear attention can beat, the Chebyshev polynomial of degree (3^L - 1)/2.

    Args:
        method: one of `METHODS`.
        condition_number: kappa.
        error: the largest |rho| allowed.
        most: give up beyond so many.

    Raises:
        TypeError, ValueError: an unknown method, numbers out of range, or more than `most` would be needed.

    Example:
        >>> [mesa.layers_needed(method, condition_number=100.0) for method in mesa.METHODS]
        [691, 73, 10, 17, 64, 10, 6, 15, 5]
    """
    one_of("method", method, METHODS)
    kappa, bound, limit = _condition_number(condition_number), _error_bound(error), positive_integer("most", most)
    log_ratio = math.log1p(-2 / (kappa + 1))
    direct: dict[str, Callable[[], int]] = {
        "gradient descent": lambda: math.ceil(math.log(bound) / log_ratio),
        "Chebyshev": lambda: math.ceil(math.acosh(1 / bound) / _stretch(kappa)),
        "Newton, start I": lambda: _squarings(log_ratio, bound),
        "Newton, start A": lambda: _squarings(math.log1p(-2 / (kappa**2 + 1)), bound),
    }
    if method in direct:
        needed = direct[method]()
    elif method == "lower bound":
        needed = _first(lambda count: chebyshev_error(polynomial_degree(count), kappa) <= bound, min(limit, 700))
    elif method == "GD++, constant gamma":
        needed = _constant_gamma(kappa, bound, limit)
    else:
        needed = _first(
            lambda count: worst_residual(gd_plus_plus_worst_case(method, kappa, count), kappa) <= bound, min(limit, 200)
        )
    if needed > limit:
        raise ValueError(
            f"most: expected at least {needed:.10g} for {method!r} at condition number {kappa:g}, got {limit}"
        )
    return needed


def _squarings(log_ratio: float, bound: float) -> int:
    """The least k with ratio^(2^k) <= bound."""
    return max(0, math.ceil(math.log2(math.log(bound) / log_ratio)))


def _first(reached: Callable[[int], bool], limit: int) -> int:
    for count in range(1, limit + 1):
        if reached(count):
            return count
    raise ValueError(f"most: expected a number of layers that reaches the error, got {limit}")


def _constant_gamma(kappa: float, bound: float, limit: int) -> int:
    """One sweep instead of one schedule for each L: only the last step depends on L."""
    moved, rho = np.geomspace(1 / kappa, 1, 4000), np.ones(4000)
    for layer in range(1, min(limit, 10**5) + 1):
        if np.abs(rho * (1 - 2 / (moved.min() + moved.max()) * moved)).max() <= bound:
            return layer
        rho, moved = rho * (1 - moved / moved.max()), moved * (1 - moved / 3) ** 2
    raise ValueError(f"most: expected a number of layers that reaches the error, got {limit}")


@typed
def newton_steps_matched(residuals: Float[Tensor, "layer"], condition_number: float) -> Float[Tensor, "layer"]:
    """How many Newton steps, from the best multiple of I, leave the same worst error: log2(ln r_l / ln r) for layer l.

    Newton's error after k steps is r^(2^k) with r = (kappa - 1)/(kappa + 1), so k may be read as a real number.

    Args:
        residuals: the worst |rho| after each layer, between 0 and 1.
        condition_number: kappa.

    Returns:
        Shape (layer).

    Raises:
        TypeError, ValueError: `condition_number` is not above 1, or a residual is not between 0 and 1.

    Example:
        >>> tuple(mesa.newton_steps_matched(torch.tensor([0.5, 0.1], dtype=torch.float64), condition_number=10.0).shape)
        (2,)
    """
    kappa = _condition_number(condition_number)
    floating_tensor("residuals", residuals)
    if not bool(((residuals > 0) & (residuals < 1)).all()):
        raise ValueError(f"residuals: expected numbers between 0 and 1, got {residuals.tolist()}")
    return torch.log2(residuals.log() / math.log1p(-2 / (kappa + 1)))
