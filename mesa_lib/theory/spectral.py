"""Gradient descent and GD++ on eigenvalues: a network of L layers becomes L multiplications of numbers.

Let lambda be an eigenvalue of a context's S = sum_i x_i x_i^T. Along its eigenvector a layer of GD++ does

    rho <- rho (1 - (eta/N) lambda),    lambda <- lambda (1 - gamma lambda)^2,

where rho is the share of the error W - V that is left there (rho = 1 at the start). Everything that a stack of GD++
layers predicts follows from these two lines, so expected losses need spectra and neither networks nor tasks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.tasks import LinearTasks
from mesa_lib.validation import (
    finite_number,
    finite_tensor,
    positive_integer,
    positive_number,
    schedule_numbers,
    trailing_shape,
    typed,
)


@dataclass(frozen=True)
class Schedule:
    """What the layers of a GD++ network do: step sizes eta_l, and gamma_l between any two layers.

    Attributes:
        etas: one a layer, in units where P = (eta/N) I.
        gammas: on S = sum_i x_i x_i^T, one between any two layers: the last layer's cannot matter. All zero for
            gradient descent.

    Raises:
        TypeError, ValueError: a number is not finite, or the lengths do not fit.

    Example:
        >>> mesa.Schedule(etas=(1.0, 0.5), gammas=(0.0, 0.1)).etas
        (1.0, 0.5)
    """

    etas: tuple[float, ...]
    gammas: tuple[float, ...]

    def __post_init__(self) -> None:
        steps, corrections = schedule_numbers(self.etas, self.gammas)
        object.__setattr__(self, "etas", steps)
        object.__setattr__(self, "gammas", corrections)

    @property
    def num_layers(self) -> int:
        """L."""
        return len(self.etas)


@typed
def sample_spectra(tasks: LinearTasks, num_spectra: int, generator: torch.Generator) -> Float[Tensor, "task x"]:
    """Eigenvalues of S = sum_i x_i x_i^T (the paper's X X^T) for fresh contexts, in ascending order, in float64.

    Args:
        tasks: the distribution of contexts.
        num_spectra: how many.
        generator: the only source of randomness.

    Returns:
        Shape (task, x); d - N of them are zero where N < d.

    Raises:
        TypeError, ValueError: `num_spectra` is not a positive integer, or see `LinearTasks.sample`.

    Example:
        >>> spectra = mesa.sample_spectra(mesa.LinearTasks(), 100, mesa.generator(0, "validation tasks"))
        >>> tuple(spectra.shape), bool((spectra > -1e-9).all())
        ((100, 10), True)
    """
    count = positive_integer("num_spectra", num_spectra)
    context_x = tasks.sample(count, generator, dtype=torch.float64).context_x
    spectra: Tensor = torch.linalg.eigvalsh(context_x.mT @ context_x).clamp(min=0)
    return spectra


@dataclass(frozen=True, eq=False)
class SpectralState:
    """Where a GD++ network is after some layers, eigenvalue by eigenvalue; both fields have the shape of the spectrum.

    Attributes:
        residual: rho, the share of the error W - V that is left: V = W (I - rho(S)) on noise-free targets.
        eigenvalues: those of the second moment of the inputs as the layers have moved them.

    Example:
        >>> state = mesa.spectral_dynamics(torch.ones(1), mesa.gradient_descent_schedule(0.5, 1), num_context=1)[-1]
        >>> float(state.residual), float(state.eigenvalues)
        (0.5, 1.0)
    """

    residual: Float[Tensor, "*axes"]
    eigenvalues: Float[Tensor, "*axes"]


@typed
def spectral_dynamics(eigenvalues: Float[Tensor, "*axes"], schedule: Schedule, num_context: int) -> list[SpectralState]:
    """The two numbers rho and lambda before the first and after every layer of GD++; in the last one lambda stays.

    Args:
        eigenvalues: of S = sum_i x_i x_i^T, any shape.
        schedule: the layers.
        num_context: N, for eta / N; 1 if the schedule's etas are steps on S itself.

    Returns:
        L + 1 states.

    Raises:
        TypeError, ValueError: `eigenvalues` is no finite floating-point tensor, `num_context` is no positive integer.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> states = mesa.spectral_dynamics(one, mesa.gradient_descent_schedule(0.5, num_steps=2), num_context=1)
        >>> [float(state.residual) for state in states]
        [1.0, 0.5, 0.25]
    """
    spectrum = finite_tensor("eigenvalues", eigenvalues)
    examples = positive_integer("num_context", num_context)
    moves = propagate(spectrum, schedule.etas, schedule.gammas, examples)
    return [SpectralState(torch.ones_like(spectrum), spectrum), *(SpectralState(*move) for move in moves)]


@typed
def residual(eigenvalues: Float[Tensor, "*axes"], schedule: Schedule, num_context: int) -> Float[Tensor, "*axes"]:
    """rho_L(lambda), the share of its error that an eigenvalue keeps, a polynomial of degree (3^L - 1)/2; rho(0) = 1.

    Args:
        eigenvalues: of S = sum_i x_i x_i^T, any shape.
        schedule: the layers.
        num_context: N, for eta / N; 1 if the schedule's etas are steps on S itself.

    Returns:
        The shape of `eigenvalues`.

    Raises:
        TypeError, ValueError: `eigenvalues` is no finite floating-point tensor, `num_context` is no positive integer.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> float(mesa.residual(one, mesa.gradient_descent_schedule(0.5, num_steps=2), num_context=1))
        0.25
    """
    return spectral_dynamics(eigenvalues, schedule, num_context)[-1].residual


@typed
def spectral_losses(
    eigenvalues: Float[Tensor, "task x"], schedule: Schedule, tasks: LinearTasks
) -> Float[Tensor, "task"]:
    """Expected half-MSE of a GD++ network on each context, the teacher, the noise and the query integrated out.

    1/2 y_dim m2 sum (tau^2 rho^2 + sigma^2 lambda f^2) over the context's eigenvalues, with f = (1 - rho) / lambda.

    Args:
        eigenvalues: of S, shape (task, x), see `sample_spectra`.
        schedule: the layers; all gammas zero is gradient descent.
        tasks: gives N, m2 = E x^2, the teacher's tau, the noise's sigma and y_dim.

    Returns:
        Shape (task); infinite or not a number where a context diverges beyond float64. Look at it through
        `summarize_losses`.

    Raises:
        TypeError, ValueError: `eigenvalues` is not finite or has not x_dim numbers a context, or the tasks have a
            covariance, a mean or a constant input: then the loss depends on more than the spectrum.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> spectra = mesa.sample_spectra(tasks, 100, mesa.generator(0, "validation tasks"))
        >>> tuple(mesa.spectral_losses(spectra, mesa.gradient_descent_schedule(1.0, 2), tasks).shape)
        (100,)
    """
    check_isotropic(tasks)
    trailing_shape("eigenvalues", eigenvalues, (tasks.x_dim,))
    return residual_losses(residual(eigenvalues, schedule, tasks.num_context), eigenvalues, tasks)


@typed
def check_isotropic(tasks: LinearTasks) -> None:
    """Raise a ValueError unless a context's spectrum is all that the expected loss of a method depends on."""
    for name in ("input_covariance", "teacher_mean"):
        if getattr(tasks, name) is not None:
            raise ValueError(f"tasks: expected {name}=None, so that the loss depends on spectra only")
    if tasks.constant_input:
        raise ValueError("tasks: expected constant_input=False, so that the loss depends on spectra only")


def propagate(
    eigenvalues: Tensor, etas: Iterable[float | Tensor], gammas: Sequence[float | Tensor], num_context: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """(rho, lambda) after each layer, unchecked; numbers that are tensors get their gradients."""
    rho, moved = torch.ones_like(eigenvalues), eigenvalues
    for layer, eta in enumerate(etas):
        rho = rho * (1 - eta / num_context * moved)
        if layer < len(gammas):
            moved = moved * (1 - gammas[layer] * moved).square()
        yield rho, moved


def residual_losses(rho: Tensor, eigenvalues: Tensor, tasks: LinearTasks) -> Tensor:
    """The loss of `spectral_losses` for any method that leaves the share `rho` of each eigenvalue's error."""
    error = tasks.teacher_scale**2 * rho.square()
    if tasks.noise_std > 0:
        inverse = torch.where(eigenvalues > 0, 1 / eigenvalues.clamp(min=torch.finfo(eigenvalues.dtype).tiny), 0)
        error = error + tasks.noise_std**2 * (1 - rho).square() * inverse
    return 0.5 * tasks.y_dim * tasks.second_moment * error.sum(-1)


def gradient_descent_schedule(eta: float, num_steps: int) -> Schedule:
    """Plain gradient descent as a schedule: one eta for all steps, every gamma zero.

    Raises:
        TypeError, ValueError: `eta` is not finite or `num_steps` is not a positive integer.

    Example:
        >>> mesa.gradient_descent_schedule(0.5, num_steps=2)
        Schedule(etas=(0.5, 0.5), gammas=(0.0,))
    """
    steps = positive_integer("num_steps", num_steps)
    return Schedule((finite_number("eta", eta),) * steps, (0.0,) * (steps - 1))


def tied_schedule(eta: float, gamma: float, num_layers: int) -> Schedule:
    """The same eta and gamma in all L layers: what a looped layer can be.

    Raises:
        TypeError, ValueError: `eta` or `gamma` is not finite, or `num_layers` is not a positive integer.

    Example:
        >>> mesa.tied_schedule(0.5, 0.1, num_layers=2)
        Schedule(etas=(0.5, 0.5), gammas=(0.1,))
    """
    layers = positive_integer("num_layers", num_layers)
    return Schedule((finite_number("eta", eta),) * layers, (finite_number("gamma", gamma),) * (layers - 1))


def chebyshev_schedule(g: float, num_layers: int, num_context: int) -> Schedule:
    """eta_l / N = gamma_l = g 9^l: GD++ that is a Chebyshev polynomial, see `chebyshev_gd_plus_plus`.

    Raises:
        TypeError, ValueError: `g` is not positive, or a count is not a positive integer.

    Example:
        >>> len(mesa.chebyshev_schedule(g=2.0, num_layers=3, num_context=10).etas)
        3
    """
    first, examples = positive_number("g", g), positive_integer("num_context", num_context)
    strengths = [first * 9.0**layer for layer in range(positive_integer("num_layers", num_layers))]
    return Schedule(tuple(examples * strength for strength in strengths), tuple(strengths[:-1]))


def newton_schulz_schedule(highest: float, num_layers: int, num_context: int) -> Schedule:
    """eta_l / N = 3 gamma_l = (9/4)^l / lambda_max: GD++ that is the Newton-Schulz iteration.

    Up to a factor 1.5 a layer the inputs' singular values s follow s <- 1.5 s - 0.5 s^3, Newton and Schulz's iteration
    for the orthogonal factor of a matrix. Each eta is one over an upper bound of what lambda has become by then.

    Args:
        highest: lambda_max of S. Eigenvalues of up to five times as much still converge (beyond three times, with the
            sign of x turned over); larger ones diverge.
        num_layers: L.
        num_context: N.

    Raises:
        TypeError, ValueError: `highest` is not positive, or a count is not a positive integer.

    Example:
        >>> len(mesa.newton_schulz_schedule(highest=5.0, num_layers=3, num_context=10).etas)
        3
    """
    top, examples = positive_number("highest", highest), positive_integer("num_context", num_context)
    steps = [(9 / 4) ** layer / top for layer in range(positive_integer("num_layers", num_layers))]
    return Schedule(tuple(examples * step for step in steps), tuple(step / 3 for step in steps[:-1]))


def optimal_cubic_schedule(lowest: float, highest: float, num_layers: int, num_context: int) -> Schedule:
    """The gammas that shrink the condition number most in every layer, for eigenvalues of S in [lowest, highest].

    On singular values in [l, u] a layer is the cubic s (1 - gamma s^2); gamma = 1 / (u^2 + u l + l^2) gives both ends
    the same image and the least u / l after the layer. Steps: one over the largest eigenvalue so far, and in the last
    layer 2 / (least + largest), the best last word.

    Raises:
        TypeError, ValueError: not 0 < lowest <= highest, or a count is not a positive integer.

    Example:
        >>> len(mesa.optimal_cubic_schedule(lowest=0.5, highest=5.0, num_layers=3, num_context=10).etas)
        3
    """
    low, high = _interval(lowest, highest)
    examples, layers = positive_integer("num_context", num_context), positive_integer("num_layers", num_layers)
    etas, gammas = [], []
    for _ in range(layers - 1):
        gamma = 1 / (high + (high * low) ** 0.5 + low)
        etas.append(examples / high)
        gammas.append(gamma)
        low, high = _moved_interval(low, high, gamma)
    return Schedule((*etas, 2 * examples / (low + high)), tuple(gammas))


def _interval(lowest: float, highest: float) -> tuple[float, float]:
    low, high = positive_number("lowest", lowest), positive_number("highest", highest)
    if low > high:
        raise ValueError(f"lowest: expected at most highest = {high}, got {low}")
    return low, high


def _moved_interval(low: float, high: float, gamma: float) -> tuple[float, float]:
    """Where [low, high] goes under lambda (1 - gamma lambda)^2, which has its inner maximum at 1 / (3 gamma)."""
    ends = [value * (1 - gamma * value) ** 2 for value in (low, high)]
    inside = low <= 1 / (3 * gamma) <= high
    return min(ends), max([*ends, 4 / (27 * gamma)] if inside else ends)


@typed
def tied_power_law(
    eigenvalues: Float[Tensor, "*axes"], eta: float, gamma: float, num_layers: int, num_context: int
) -> Float[Tensor, "*axes"]:
    """How slowly tied GD++ ends: rho_L(lambda) is about (1 + 2 gamma lambda L)^(-eta / (2 gamma N)).

    Since 1 / lambda_{l+1} = 1 / lambda_l + 2 gamma + O(lambda_l), every eigenvalue decays like 1 / (2 gamma l) and the
    product of 1 - (eta/N) lambda_l like a power of l. The exponent is right; a constant of order one in front is left
    out.

    Args:
        eigenvalues: of S.
        eta: the one step size.
        gamma: the one gamma, positive.
        num_layers: L.
        num_context: N.

    Returns:
        The shape of `eigenvalues`.

    Raises:
        TypeError, ValueError: `eta` or `gamma` is not positive, a count is not a positive integer, or `eigenvalues` is
            no finite floating-point tensor.

    Example:
        >>> eigenvalues = torch.tensor([1.0, 4.0], dtype=torch.float64)
        >>> tied = mesa.residual(eigenvalues, mesa.tied_schedule(0.5, 0.05, num_layers=2), num_context=10)
        >>> tuple(mesa.tied_power_law(eigenvalues, 0.5, 0.05, num_layers=2, num_context=10).shape) == tuple(tied.shape)
        True
    """
    step = positive_number("eta", eta) / positive_integer("num_context", num_context)
    strength, layers = positive_number("gamma", gamma), positive_integer("num_layers", num_layers)
    spectrum = finite_tensor("eigenvalues", eigenvalues)
    return (1 + 2 * strength * layers * spectrum) ** (-step / (2 * strength))


@typed
def divergence_share(eigenvalues: Float[Tensor, "task x"], eta: float, num_context: int, damping: float = 1.0) -> float:
    """Share of contexts on which a damped gradient step, repeated for ever, diverges: damping eta lambda_max / N > 2.

    Args:
        eigenvalues: of S = sum_i x_i x_i^T, shape (task, x).
        eta: step size of the layer that is repeated.
        num_context: N of the layer, for eta / N.
        damping: factor of each update.

    Raises:
        TypeError, ValueError: a number is not finite or not positive, or `eigenvalues` is no tensor (task, x).

    Example:
        >>> spectra = mesa.sample_spectra(mesa.LinearTasks(), 100, mesa.generator(0, "validation tasks"))
        >>> [mesa.divergence_share(spectra, eta, num_context=10) for eta in (0.1, 100.0)]
        [0.0, 1.0]
    """
    largest = finite_tensor("eigenvalues", eigenvalues, min_dims=2).amax(-1)
    step = finite_number("eta", eta) / positive_integer("num_context", num_context)
    return float((positive_number("damping", damping) * step * largest > 2).double().mean())
