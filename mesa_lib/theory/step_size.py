"""The best step size of gradient descent: in closed form for one step, by a line search for several."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from torch import Tensor

from mesa_lib.algorithms.gradient_descent import best_one_step_eta
from mesa_lib.tasks import LinearTasks, TaskBatch
from mesa_lib.theory.one_layer import optimal_eta
from mesa_lib.validation import (
    positive_integer,
    typed,
)


@typed
def tune_eta(
    tasks: LinearTasks | TaskBatch,
    num_steps: int = 1,
    *,
    generator: torch.Generator | None = None,
    num_spectra: int = 20_000,
) -> float:
    """The one step size, shared by all steps, with the least half-MSE after `num_steps` steps from W_0 = 0.

    On a batch, the loss is that of the batch's own queries: what the paper's released code does, on its evaluation
    tasks. On a distribution it is the expected loss: `optimal_eta` for one step; for several steps the teacher, the
    noise and the query are integrated out exactly, and the average over contexts is taken over sampled spectra.

    Args:
        tasks: a distribution or a batch.
        num_steps: K.
        generator: source of the spectra; needed for a distribution with several steps, not used otherwise.
        num_spectra: how many contexts to average over then.

    Returns:
        eta, in units where a step is W <- W - (eta/N) sum_i (W x_i - y_i) x_i^T.

    Raises:
        TypeError, ValueError: `tasks` is neither a distribution nor a batch, a count is not a positive integer, the
            generator is missing where it is needed, or the distribution's inputs or teachers single out a direction
            (`input_covariance`, `teacher_mean`, `constant_input`), for which spectra do not suffice: tune on a batch.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> abs(mesa.tune_eta(tasks) - mesa.optimal_eta(tasks)) < 1e-6
        True
    """
    steps, count = positive_integer("num_steps", num_steps), positive_integer("num_spectra", num_spectra)
    if isinstance(tasks, TaskBatch):
        start = best_one_step_eta(tasks)
        return start if steps == 1 else _line_search(_batch_objective(tasks, steps), start)
    if not isinstance(tasks, LinearTasks):
        raise TypeError(f"tasks: expected LinearTasks or a TaskBatch, got {type(tasks).__name__}")
    if steps == 1:
        return optimal_eta(tasks)
    if tasks.input_covariance is not None or tasks.teacher_mean is not None or tasks.constant_input:
        raise ValueError(
            "tasks: expected independent inputs and a teacher of mean zero for num_steps > 1, or a TaskBatch, got "
            "input_covariance, teacher_mean or constant_input"
        )
    if generator is None:
        raise ValueError("generator: expected a torch.Generator to sample spectra for num_steps > 1, got None")
    context_x = tasks.sample(count, generator, dtype=torch.float64).context_x
    return best_single_eta(tasks, steps, torch.linalg.eigvalsh(context_x.mT @ context_x / tasks.num_context))


@typed
def best_single_eta(tasks: LinearTasks, num_steps: int, eigenvalues: Float[Tensor, "task x"]) -> float:
    """The one step size of least expected half-MSE over contexts whose A = S / N has these eigenvalues.

    For one step it is `optimal_eta`, the exact average over all contexts, whatever the eigenvalues.
    """
    if num_steps == 1:
        return optimal_eta(tasks)
    return _line_search(_expected_objective(tasks, num_steps, eigenvalues), optimal_eta(tasks))


def _line_search(objective: Callable[[float], float], start: float) -> float:
    return float(minimize_scalar(objective, bracket=(0.0, start)).x)


def _filter(eigenvalues: Tensor, eta: float, num_steps: int) -> Tensor:
    """(1 - (1 - eta lambda)^K) / lambda, written as a sum so that lambda = 0 needs no care."""
    shrunk, total, power = 1 - eta * eigenvalues, torch.zeros_like(eigenvalues), torch.ones_like(eigenvalues)
    for _ in range(num_steps):
        total, power = total + power, power * shrunk
    return eta * total


def _batch_objective(batch: TaskBatch, num_steps: int) -> Callable[[float], float]:
    """Half-MSE on the batch's queries as a function of eta, in the eigenbasis of each A = (1/N) sum_i x_i x_i^T."""
    context_x, context_y = batch.context_x.double(), batch.context_y.double()
    eigenvalues, basis = torch.linalg.eigh(context_x.mT @ context_x / batch.num_context)
    first_step = context_y.mT @ context_x @ basis / batch.num_context  # (*ensemble, task, y, x)
    queries, targets = batch.query_x.double() @ basis, batch.query_y.double()

    def objective(eta: float) -> float:
        weights = first_step * _filter(eigenvalues, eta, num_steps).unsqueeze(-2)
        return float((queries @ weights.mT - targets).square().sum(-1).mean())

    return objective


def _expected_objective(tasks: LinearTasks, num_steps: int, eigenvalues: Tensor) -> Callable[[float], float]:
    """Expected error per target up to a factor: tau^2 sum (1 - eta lambda)^2K + (sigma^2/N) sum lambda filter^2."""

    def objective(eta: float) -> float:
        bias = tasks.teacher_scale**2 * (1 - eta * eigenvalues).pow(2 * num_steps)
        noise = tasks.noise_std**2 / tasks.num_context * eigenvalues
        return float((bias + noise * _filter(eigenvalues, eta, num_steps).square()).sum(-1).mean())

    return objective
