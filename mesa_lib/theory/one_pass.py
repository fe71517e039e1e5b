"""Exact losses of algorithms that see every example once, and of least squares: what Garg et al.'s setting asks for."""

from dataclasses import replace

from mesa_lib.tasks import LinearTasks
from mesa_lib.theory.one_layer import optimal_eta, zero_loss
from mesa_lib.theory.spectral import check_isotropic
from mesa_lib.validation import finite_number, positive_integer


def one_pass_eta(tasks: LinearTasks, mini_batch: int = 1) -> float:
    """The step size with which one pass without noise loses least, (1/m2) b / (b + d - 2 + kappa).

    Every mini-batch of b examples shrinks the expected squared error by one factor, so what is best for one step is
    best for the whole pass. With b = 1 it is the best writing strength of the delta rule; with b = N it is
    `optimal_eta`.

    Args:
        tasks: with independent coordinates and a teacher of mean zero; their noise is left out.
        mini_batch: b.

    Raises:
        TypeError, ValueError: `mini_batch` is not a positive integer, or the tasks have a covariance, a teacher's mean
            or a constant input.

    Example:
        >>> 0 < mesa.one_pass_eta(mesa.LinearTasks())
        True
    """
    check_isotropic(tasks)
    return optimal_eta(replace(tasks, num_context=positive_integer("mini_batch", mini_batch), noise_std=0.0))


def one_pass_loss(tasks: LinearTasks, eta: float, mini_batch: int = 1) -> float:
    """Expected half-MSE on queries after one pass of `delta_rule` over the context, exactly.

    A mini-batch of b examples turns the expected squared error |W - W*|^2 = e into

        e [1 - 2 eta m2 + (eta^2 / b) (m4 + (b + d - 2) m2^2)] + eta^2 sigma^2 d y_dim m2 / b,

    and the loss is m2 e / 2. At `one_pass_eta` and without noise the bracket is 1 - b / (b + d - 2 + kappa), so that
    the loss falls by the factor (1 - b / (b + d - 2 + kappa))^(N/b): from the delta rule, b = 1, to one step of
    gradient descent, b = N. Smaller mini-batches lose less (Bernoulli's inequality), unless noise forbids it.

    Args:
        tasks: with independent coordinates and a teacher of mean zero.
        eta: step size on the half-MSE of a full mini-batch.
        mini_batch: b; a last, shorter one is treated as `delta_rule` does.

    Raises:
        TypeError, ValueError: `eta` is not finite, `mini_batch` is not a positive integer, or the tasks have a
            covariance, a teacher's mean or a constant input.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> eta = mesa.one_pass_eta(tasks)
        >>> mesa.one_pass_loss(tasks, eta) < mesa.zero_loss(tasks)
        True
    """
    check_isotropic(tasks)
    step, size = finite_number("eta", eta), positive_integer("mini_batch", mini_batch)
    m2, m4, d = tasks.second_moment, tasks.fourth_moment, tasks.x_dim
    error = 2 * zero_loss(tasks) / m2
    full, rest = divmod(tasks.num_context, size)
    for examples in [size] * full + [rest] * (rest > 0):
        size_of_step = step * examples / size
        shrink = 1 - 2 * size_of_step * m2 + size_of_step**2 / examples * (m4 + (examples + d - 2) * m2**2)
        noise = size_of_step**2 / examples * tasks.noise_std**2 * d * tasks.y_dim * m2
        error = shrink * error + noise
    return 0.5 * m2 * error


def least_squares_loss(tasks: LinearTasks) -> float:
    """Expected half-MSE of the minimum-norm least-squares fit without noise: L0 max(0, 1 - N/d).

    N examples in general position show the teacher on a space of N dimensions, and leave its share of the others.

    Args:
        tasks: noiseless, with independent coordinates of a continuous distribution and a teacher of mean zero.

    Raises:
        ValueError: the tasks are noisy, have inputs of signs (which may coincide), a covariance, a teacher's mean or a
            constant input.

    Example:
        >>> mesa.least_squares_loss(mesa.LinearTasks(num_context=20))  # more examples than inputs, no noise
        0.0
    """
    check_isotropic(tasks)
    if tasks.noise_std > 0:
        raise ValueError(f"tasks: expected no noise, got noise_std = {tasks.noise_std}")
    if tasks.inputs == "rademacher":
        raise ValueError("tasks: expected inputs of a continuous distribution, got 'rademacher'")
    return zero_loss(tasks) * max(0.0, 1 - tasks.num_context / tasks.x_dim)
