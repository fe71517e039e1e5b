"""The best gradient descent and the best GD++ of L layers: a few numbers, fitted on sampled spectra.

No task and no network is needed: the teacher, the noise and the query are integrated out exactly (`spectral_losses`),
and what remains is an average over the eigenvalues of sampled contexts. It has several local minima, so the fit starts
from several places and reports all the minima that it met.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from mesa_lib.tasks import LinearTasks, TaskBatch
from mesa_lib.theory.one_layer import optimal_eta, zero_loss
from mesa_lib.theory.spectral import (
    Schedule,
    chebyshev_schedule,
    check_isotropic,
    gradient_descent_schedule,
    propagate,
    residual_losses,
    sample_spectra,
    spectral_losses,
)
from mesa_lib.theory.step_size import best_single_eta
from mesa_lib.validation import (
    finite_tensor,
    one_of,
    positive_integer,
    trailing_shape,
    typed,
)

Objective = Literal["mean", "bounded"]
"""What a fit minimises over spectra: the mean loss t, or the mean of t L0 / (t + L0), which no task can dominate."""


@dataclass(frozen=True)
class LocalMinimum:
    """One minimum that a fit met.

    Attributes:
        schedule: where it is.
        objective: the fit's objective there, half-MSE, on all spectra of the fit.
        num_starts: how many of the starts ended in it.

    Example:
        >>> mesa.LocalMinimum(mesa.gradient_descent_schedule(1.0, 1), objective=0.5, num_starts=3).num_starts
        3
    """

    schedule: Schedule
    objective: float
    num_starts: int


@dataclass(frozen=True)
class SpectralFit:
    """The best schedule that a fit found, and what else it met.

    Attributes:
        schedule: the step sizes and gammas of the best minimum.
        loss: mean half-MSE over the fit's spectra; for deep GD++ a few spectra can carry all of it, and it may be
            infinite: see `capped_loss`.
        median_loss: median over the spectra.
        capped_loss: mean of min(loss, L0), with L0 the loss of predicting zero.
        objective: what was minimised, "mean" or "bounded"; see `Objective`.
        minima: all minima met, the best one first.
        num_starts: starts tried; those that ended in no minimum are in none of `minima`.
        converged: whether the best start ended where the gradient vanishes.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> fit = mesa.fit_gd(mesa.LinearTasks(), 1, generator=stream, num_spectra=200, num_starts=1)
        >>> fit.converged, fit.num_starts
        (True, 1)
    """

    schedule: Schedule
    loss: float
    median_loss: float
    capped_loss: float
    objective: Objective
    minima: tuple[LocalMinimum, ...]
    num_starts: int
    converged: bool

    @property
    def etas(self) -> tuple[float, ...]:
        """Step sizes, one a layer, in units where P = (eta/N) I."""
        return self.schedule.etas

    @property
    def gammas(self) -> tuple[float, ...]:
        """The gammas between the layers, on S; zeros for gradient descent."""
        return self.schedule.gammas


@typed
def fit_gd(
    tasks: LinearTasks,
    num_steps: int,
    tied: bool = True,
    *,
    generator: torch.Generator,
    num_spectra: int = 20_000,
    num_starts: int = 8,
    max_iterations: int = 500,
) -> SpectralFit:
    """The step sizes with the least expected half-MSE after `num_steps` of gradient descent from W_0 = 0.

    Tied, it is one step size and the result is that of `tune_eta`. Untied it is one a step; the steps commute, so they
    are returned in ascending order.

    Args:
        tasks: the distribution of tasks.
        num_steps: K.
        tied: one step size for all steps, or one each.
        generator: source of the spectra and of the random starts.
        num_spectra: contexts to average over.
        num_starts: for untied steps, how many starting points.
        max_iterations: of L-BFGS, for each start.

    Returns:
        A SpectralFit; its objective is the mean loss.

    Raises:
        TypeError, ValueError: a count is not a positive integer, or the tasks have a covariance, a mean or a constant.

    Warns:
        RuntimeWarning: the best start has not converged.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> fit = mesa.fit_gd(tasks, 1, generator=mesa.generator(0, "validation tasks"), num_spectra=500, num_starts=1)
        >>> abs(fit.loss / mesa.optimal_loss(tasks) - 1) < 0.05
        True
    """
    check_isotropic(tasks)
    steps = positive_integer("num_steps", num_steps)
    spectra = sample_spectra(tasks, positive_integer("num_spectra", num_spectra), generator)
    if tied or steps == 1:
        eta = best_single_eta(tasks, steps, spectra / tasks.num_context)
        return _report(tasks, spectra, "mean", [(gradient_descent_schedule(eta, steps), 1, True)], 1)

    def free_steps(logs: Tensor) -> tuple[Tensor, Tensor]:
        return logs.exp(), torch.zeros(steps - 1, dtype=torch.float64)

    growths = torch.linspace(1, 2, positive_integer("num_starts", num_starts), dtype=torch.float64)
    starts = [
        np.log(optimal_eta(tasks) * 0.7 * float(growth) ** np.arange(steps)) + _jitter(generator, steps, 0.2)
        for growth in growths
    ]
    return _multistart(tasks, spectra, "mean", free_steps, starts, max_iterations, "fit_gd", canonical=np.sort)


@typed
def fit_gd_plus_plus(
    tasks: LinearTasks,
    num_layers: int,
    tied: bool = False,
    *,
    generator: torch.Generator,
    num_spectra: int = 20_000,
    num_starts: int = 24,
    objective: Objective | None = None,
    max_iterations: int = 500,
) -> SpectralFit:
    """The etas and gammas with the least expected half-MSE after L layers of GD++.

    Tied there are two numbers, untied 2L - 1: the last layer's gamma cannot matter. The loss has several local minima
    (two untied layers: at least three), and deep nets have heavy tails: once a context's largest eigenvalue exceeds
    what the schedule allows, its loss grows doubly exponentially with L, and one context in a million can own the mean.
    Hence the objective "bounded", the mean of t L0 / (t + L0), the default for untied nets of three layers and more.

    The starts are geometric schedules of growth 0.5 to 9, randomly disturbed. They are searched on the first 2,000
    spectra, and the best four minima are polished on all; so is Chebyshev's schedule with its best g
    (`best_chebyshev`), which an untied fit can therefore not fall behind in its objective.

    Args:
        tasks: the distribution of tasks.
        num_layers: L.
        tied: one eta and one gamma for all layers, or one each.
        generator: source of the spectra and of the random starts.
        num_spectra: contexts to average over.
        num_starts: how many starting points; tied fits, with one minimum to find, take a quarter of them.
        objective: "mean" or "bounded"; see above for the default.
        max_iterations: of L-BFGS, for each start.

    Returns:
        A SpectralFit. Look at its `minima`: a fit from one start may end in any of them.

    Raises:
        TypeError, ValueError: a count is not a positive integer, an unknown objective, or tasks with a covariance, a
            mean or a constant.

    Warns:
        RuntimeWarning: the best start has not converged.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> fit = mesa.fit_gd_plus_plus(tasks, 1, tied=True, generator=stream, num_spectra=200, num_starts=1)
        >>> len(fit.schedule.etas)
        1
    """
    check_isotropic(tasks)
    layers = positive_integer("num_layers", num_layers)
    goal: Objective = objective or ("mean" if tied or layers <= 2 else "bounded")
    one_of("objective", goal, ("mean", "bounded"))
    count = positive_integer("num_starts", num_starts)
    spectra = sample_spectra(tasks, positive_integer("num_spectra", num_spectra), generator)
    if layers == 1:
        return _report(tasks, spectra, goal, [(gradient_descent_schedule(optimal_eta(tasks), 1), 1, True)], 1)
    largest = float(spectra[:, -1].mean())

    def tied_numbers(logs: Tensor) -> tuple[Tensor, Tensor]:
        eta, gamma = logs.exp().unbind()
        return eta.expand(layers), gamma.expand(layers - 1)

    def free_numbers(logs: Tensor) -> tuple[Tensor, Tensor]:
        return logs[:layers].exp(), logs[layers:].exp()

    if tied:
        starts = [
            np.log([growth * tasks.num_context / largest, 0.4 / largest]) + _jitter(generator, 2, 0.5)
            for growth in np.geomspace(1, 1 + layers, (count + 3) // 4)
        ]
        return _multistart(tasks, spectra, goal, tied_numbers, starts, max_iterations, "fit_gd_plus_plus")
    best = best_chebyshev(tasks, layers, spectra)
    starts = []
    for growth in np.geomspace(0.5, 9, count):
        strengths = growth ** np.arange(layers) / largest
        start = np.log([*(tasks.num_context * strengths), *(0.7 * strengths[:-1])])
        starts.append(start + _jitter(generator, len(start), 0.3))
    first = np.log([*best.etas, *best.gammas])
    return _multistart(tasks, spectra, goal, free_numbers, starts, max_iterations, "fit_gd_plus_plus", first=first)


@typed
def best_chebyshev(tasks: LinearTasks, num_layers: int, eigenvalues: Float[Tensor, "task x"]) -> Schedule:
    """Chebyshev GD++ with the g of least bounded loss (mean of t L0 / (t + L0)) on given spectra: a search on a line.

    Args:
        tasks: gives N, the scales and the noise.
        num_layers: L.
        eigenvalues: of S, shape (task, x).

    Raises:
        TypeError, ValueError: `num_layers` is not a positive integer, or the spectra do not fit the tasks.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> spectra = mesa.sample_spectra(tasks, 500, mesa.generator(0, "validation tasks"))
        >>> len(mesa.best_chebyshev(tasks, 2, spectra).etas)
        2
    """
    finite_tensor("eigenvalues", eigenvalues, min_dims=2)
    trailing_shape("eigenvalues", eigenvalues, (tasks.x_dim,))
    cap = zero_loss(tasks)

    def loss(log_g: float) -> float:
        schedule = chebyshev_schedule(float(np.exp(log_g)), num_layers, tasks.num_context)
        return float(_bounded(spectral_losses(eigenvalues, schedule, tasks), cap).mean())

    middle = float((4 / (3 * eigenvalues[:, -1].mean())).log())
    grid = np.linspace(middle - 2.5, middle + 1, 36)
    nearest = float(grid[int(np.argmin([loss(float(point)) for point in grid]))])
    found = minimize_scalar(loss, bounds=(nearest - 0.1, nearest + 0.1), method="bounded", options={"xatol": 1e-6})
    return chebyshev_schedule(float(np.exp(found.x)), num_layers, tasks.num_context)


Point = npt.NDArray[np.float64]
"""Logarithms of a schedule's free numbers."""

Numbers = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Logarithms -> the etas and gammas that they stand for."""

_DIVERGED = 700.0
"""ln of the objective where it is no number."""

_SEARCH = 2000
"""Spectra on which starts are searched, before the best ends are polished on all."""

_POLISHED = 4
"""How many of the minima that the search met are polished; the others are judged where the search left them."""

_ROUGH, _FINE = 1e-9, 1e-12
"""Relative precision of the search and of the polish."""


def _jitter(generator: torch.Generator, size: int, scale: float) -> Point:
    drawn: Point = (scale * torch.randn(size, generator=generator, dtype=torch.float64)).numpy()
    return drawn


def _bounded(losses: Tensor, cap: float) -> Tensor:
    """Losses t as t cap / (t + cap), and `cap` where t is infinite or no number."""
    return cap * (1 - cap / (cap + torch.nan_to_num(losses, nan=float("inf"), posinf=float("inf"))))


def _report(
    tasks: LinearTasks,
    spectra: Tensor,
    goal: Objective,
    endings: Sequence[tuple[Schedule, int, bool]],
    num_starts: int,
) -> SpectralFit:
    """Judge the distinct ends (schedule, how many starts, converged) on all spectra; the best one first."""
    cap = zero_loss(tasks)
    minima: list[LocalMinimum] = []
    best_losses, best_converged = None, False
    for schedule, reached, converged in endings:
        losses = spectral_losses(spectra, schedule, tasks)
        objective = float((losses if goal == "mean" else _bounded(losses, cap)).mean())
        if best_losses is None or objective < minima[0].objective:
            best_losses, best_converged = losses, converged
        minima = sorted([*minima, LocalMinimum(schedule, objective, reached)], key=lambda one: one.objective)
    if best_losses is None:
        raise ValueError("endings: expected at least one, got none")
    loss = torch.nan_to_num(best_losses, nan=float("inf"), posinf=float("inf"))
    return SpectralFit(
        schedule=minima[0].schedule,
        loss=float(loss.mean()),
        median_loss=float(loss.median()),
        capped_loss=float(loss.clamp(max=cap).mean()),
        objective=goal,
        minima=tuple(minima),
        num_starts=num_starts,
        converged=best_converged,
    )


def _objective(
    tasks: LinearTasks, spectra: Tensor, goal: Objective, numbers: Numbers
) -> Callable[[Point], tuple[float, Point]]:
    """The logarithm of the objective and its gradient in the logs.

    Where a context has diverged beyond float64, its bounded loss is the cap and its gradient counts as zero.
    """
    cap = zero_loss(tasks)

    def evaluate(point: Point) -> tuple[float, Point]:
        logs = torch.tensor(point, requires_grad=True)
        etas, gammas = numbers(logs)
        *_, (rho, _) = propagate(spectra, etas.unbind(), gammas.unbind(), tasks.num_context)
        losses = residual_losses(rho, spectra, tasks)
        value = (losses if goal == "mean" else _bounded(losses, cap)).mean().log()
        (slope,) = torch.autograd.grad(value, logs)
        if not bool(torch.isfinite(value.detach())):
            return _DIVERGED, np.zeros_like(point)
        return float(value.detach()), np.nan_to_num(slope.numpy(), nan=0.0, posinf=0.0, neginf=0.0)

    return evaluate


def _descend(
    evaluate: Callable[[Point], tuple[float, Point]], start: Point, max_iterations: int, precision: float
) -> tuple[Point, float, bool]:
    """Where L-BFGS ends, the logarithm of the objective there, and whether the slope is flat for that precision.

    `precision` is the relative change of the objective at which L-BFGS stops.
    """
    options = {"maxiter": max_iterations, "ftol": precision, "gtol": 1e-7, "maxls": 40}
    found = minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
    value, slope = evaluate(found.x)
    return found.x, value, bool(value < _DIVERGED and np.abs(slope).max() < 100 * precision**0.5)


def _distinct(points: Iterable[tuple[Point, int, bool]]) -> list[tuple[Point, int, bool]]:
    """Points that differ by less than 2 % in every number are one, and their starts add up."""
    distinct: list[tuple[Point, int, bool]] = []
    for point, reached, converged in points:
        for index, (known, before, sure) in enumerate(distinct):
            if np.abs(known - point).max() < 0.02:
                distinct[index] = (known, before + reached, sure or converged)
                break
        else:
            distinct.append((point, reached, converged))
    return distinct


def _multistart(
    tasks: LinearTasks,
    spectra: Tensor,
    goal: Objective,
    numbers: Numbers,
    starts: Sequence[Point],
    max_iterations: int,
    name: str,
    *,
    first: Point | None = None,
    canonical: Callable[[Point], Point] = np.asarray,
) -> SpectralFit:
    """Search from every start on some spectra, polish the best minima on all (and descend from `first`), and report."""
    iterations = positive_integer("max_iterations", max_iterations)
    search, full = (_objective(tasks, some, goal, numbers) for some in (spectra[:_SEARCH], spectra))
    ends = sorted((_descend(search, start, iterations, _ROUGH) for start in starts), key=lambda end: end[1])
    usable = [end for end in ends if end[2]] or ends[:1]
    found = _distinct((canonical(point), 1, True) for point, _, _ in usable)
    if first is not None:
        found = [(first, 1, True), *found]
    polished = []
    for point, reached, searched in found[:_POLISHED]:
        end, _, converged = _descend(full, point, iterations, _FINE)
        polished.append((canonical(end), reached, searched and converged))
    endings = []
    for point, reached, converged in _distinct([*polished, *found[_POLISHED:]]):
        etas, gammas = numbers(torch.tensor(point))
        endings.append((Schedule(tuple(etas.tolist()), tuple(gammas.tolist())), reached, converged))
    fit = _report(tasks, spectra, goal, endings, len(starts) + (first is not None))
    if not fit.converged:
        warnings.warn(
            f"{name}: the best of {len(starts)} starts has not converged after {iterations} iterations; raise "
            "max_iterations or num_starts",
            RuntimeWarning,
            stacklevel=3,
        )
    return fit


Family = Literal["gd++", "gd++, tied", "gd", "gd, tied"]
"""Which schedules `nearest_schedule` may choose from; "gd" has every gamma zero."""


@dataclass(frozen=True)
class NearestSchedule:
    """The schedule of a family whose implicit weights come closest to a given network's.

    Attributes:
        schedule: the best one found.
        distance: mean over tasks of t L0 / (t + L0), with t = 1/2 E |(V - V') x_q|^2 on a task, half-MSE.
        converged: whether the descent ended where the gradient vanishes.

    Example:
        >>> weights = mesa.gradient_descent_weights(batch, eta=0.7)
        >>> found = mesa.nearest_schedule(weights, batch, tasks, mesa.gradient_descent_schedule(1.0, 1), family="gd")
        >>> found.converged
        True
    """

    schedule: Schedule
    distance: float
    converged: bool


@typed
def nearest_schedule(
    weights: Float[Tensor, "task y x"],
    batch: TaskBatch,
    tasks: LinearTasks,
    start: Schedule,
    family: Family = "gd++",
    max_iterations: int = 500,
) -> NearestSchedule:
    """Fit GD++ to what a network computes: the schedule whose implicit weights V' are nearest to the network's V.

    On a context with S = sum_i x_i x_i^T = U diag(lambda) U^T and cross-moment C = sum_i y_i x_i^T, a schedule has

        V' U = C U diag((1 - rho(lambda)) / lambda),

    so no network is run during the fit: V U and C U are computed once. It says how well the *family* describes the
    network; that the network is the family's optimum is another matter (`fit_gd_plus_plus`).

    Args:
        weights: V of the network on the batch's contexts.
        batch: its contexts are used, its queries and teachers are not.
        tasks: the distribution that the batch comes from; without a covariance, so that E x_q x_q^T = m2 I.
        start: where the descent begins, as read off the weights (`read_gd_plus_plus`). A tied family starts from its
            geometric means, and "gd" drops the gammas. A start far off can end in another local minimum.
        family: "gd++" with 2L - 1 free numbers, "gd" with L, or with ", tied" one of each kind.
        max_iterations: of L-BFGS.

    Returns:
        A NearestSchedule; steps of "gd" commute and are returned in ascending order.

    Raises:
        TypeError, ValueError: an unknown family, a start with a number that is not positive where the family needs it,
            weights that do not fit the batch, or tasks with a covariance or a constant input.

    Warns:
        RuntimeWarning: the descent has not converged.

    Example:
        >>> weights = mesa.gradient_descent_weights(batch, eta=0.7)
        >>> start = mesa.gradient_descent_schedule(1.0, num_steps=1)
        >>> found = mesa.nearest_schedule(weights, batch, tasks, start, family="gd")
        >>> round(found.schedule.etas[0], 3)
        0.7
    """
    one_of("family", family, ("gd++", "gd++, tied", "gd", "gd, tied"))
    finite_tensor("weights", weights, min_dims=3)
    trailing_shape("weights", weights, (batch.num_tasks, batch.y_dim, batch.x_dim))
    if tasks.input_covariance is not None or tasks.constant_input:
        raise ValueError("tasks: expected independent inputs, got a covariance or a constant input")
    used = {"etas": start.etas} if family.startswith("gd,") or family == "gd" else vars(start)
    for name, values in used.items():
        if not all(value > 0 for value in values):
            raise ValueError(f"start.{name}: expected positive numbers, got {values}")
    layers, tied, free = start.num_layers, family.endswith("tied"), family.startswith("gd++")
    spectra, basis = torch.linalg.eigh((batch.context_x.mT @ batch.context_x).double())
    seen = spectra > 1e-9 * spectra[..., -1:]  # along the others C U is rounding, and V' is zero
    wanted = weights.double() @ basis
    # rho is multiplied by C U / lambda, on noise-free tasks the teacher in the eigenvectors' basis
    exact = (batch.context_y.mT @ batch.context_x).double() @ basis / torch.where(seen, spectra, 1).unsqueeze(-2)
    exact = torch.where(seen.unsqueeze(-2), exact, 0)
    cap, scale = zero_loss(tasks), 0.5 * tasks.second_moment

    def numbers(logs: Tensor) -> tuple[Tensor, Tensor]:
        etas, gammas = (logs[:1], logs[1:]) if tied else (logs[:layers], logs[layers:])
        kept = gammas.exp().expand(layers - 1) if free else logs.new_zeros(layers - 1)
        return etas.exp().expand(layers), kept

    def distance(logs: Tensor) -> Tensor:
        etas, gammas = numbers(logs)
        *_, (rho, _) = propagate(spectra, etas.unbind(), gammas.unbind(), tasks.num_context)
        return _bounded(scale * (exact * (1 - rho).unsqueeze(-2) - wanted).square().sum((-1, -2)), cap).mean()

    def evaluate(point: Point) -> tuple[float, Point]:
        logs = torch.tensor(point, requires_grad=True)
        value = (distance(logs) + floor).log()
        (slope,) = torch.autograd.grad(value, logs)
        return float(value.detach()), np.nan_to_num(slope.numpy(), nan=0.0, posinf=0.0, neginf=0.0)

    groups = [np.log(start.etas), *([np.log(start.gammas)] if free and layers > 1 else [])]
    first = np.concatenate([[group.mean()] if tied else group for group in groups])
    # A network of the family has distance zero; the floor keeps its logarithm finite, and smooth on the way there.
    floor = 1e-3 * float(distance(torch.tensor(first))) + 1e-12 * cap
    iterations = positive_integer("max_iterations", max_iterations)
    end, _, converged = _descend(evaluate, first, iterations, _ROUGH)
    if not converged:
        warnings.warn(
            f"nearest_schedule: not converged after {iterations} iterations; raise max_iterations or start nearer",
            RuntimeWarning,
            stacklevel=2,
        )
    etas, gammas = numbers(torch.tensor(end if free else np.sort(end)))
    schedule = Schedule(tuple(etas.tolist()), tuple(gammas.tolist()))
    return NearestSchedule(schedule, float(distance(torch.tensor(end))), converged)
