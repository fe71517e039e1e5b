"""Exact expected losses of one step of gradient descent and of one layer of linear self-attention.

Everything is half-MSE, E 1/2 |prediction - W x_q|^2 with a clean query target, the loss that the paper's code reports.

Notation: d = x_dim, N = num_context, tau = teacher_scale, sigma = noise_std. Inputs are x = R z with independent
symmetric coordinates z of variance 1 and kurtosis kappa; S = sum_i z_i z_i^T. All formulas rest on

    E[S Q S] = N (N + 1) Q + N tr(Q) I + N (kappa - 3) diag(Q)        for symmetric Q,

and they work in the coordinates z: a linear map W x is (W R) z, and the query's error is summed there.

Without `input_covariance` and `teacher_mean` they reduce to m2 = E x^2, s = sigma^2 / (m2 tau^2), and L0 the loss of
predicting zero. Derived in the book's chapters on what training finds and on other tasks; special cases agree with Ahn
et al. (2023) and Zhang, Frei and Bartlett (2023) for normal inputs.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.tasks import LinearTasks
from mesa_lib.validation import (
    finite_number,
    finite_tensor,
    positive_integer,
    trailing_shape,
    typed,
)


@typed
def zero_loss(tasks: LinearTasks) -> float:
    """L0 = 1/2 E |W x_q|^2, the half-MSE of predicting zero (the same for every context).

    It is 1/2 d y_dim m2 tau^2 for independent coordinates and a teacher of mean zero, and in general
    1/2 (y_dim tau^2 tr C + tr(W' C W'^T)) with C = E x x^T and W' the teacher's mean.

    Example:
        >>> round(mesa.zero_loss(mesa.LinearTasks()), 4)  # d/6: half the variance of W x
        1.6667
    """
    return 0.5 * float(_teacher_moment(tasks, tasks.teacher_center).trace())


@typed
def effective_examples(tasks: LinearTasks) -> float:
    """N + d - 2 + kappa + s: the examples that a step would need without noise to shrink as it does, N / (1 - L*/L0).

    It is N E[A^2] / m2^2 for A = (1/N) X^T X, the noise of the targets included: each coordinate of a gradient step
    sees its signal N times, and the other coordinates, the fourth moment and the noise on top. With a covariance or a
    teacher's mean the same ratio is N tr(M) tr(H C^2) / tr(M C)^2, with M and H as in `optimal_preconditioner`.

    Raises:
        ValueError: `tasks` have a constant input.

    Example:
        >>> round(mesa.effective_examples(mesa.LinearTasks()), 4)
        19.8
    """
    moment, signal, spread = _scalar_step(tasks)
    return tasks.num_context * moment * spread / signal**2


@typed
def optimal_eta(tasks: LinearTasks) -> float:
    """The step size of least expected loss, eta* = (1/m2) N / (N + d - 2 + kappa + s), in units of 1/x^2.

    In units where P = (eta/N) I, for a step from W_0 = 0. For d = N = 10 and x ~ U(-1, 1) it is 50/33. With a
    covariance or a teacher's mean it is tr(M C) / tr(H C^2), the best multiple of I in place of the matrix of
    `optimal_preconditioner`.

    Raises:
        ValueError: `tasks` have a constant input.

    Example:
        >>> round(mesa.optimal_eta(mesa.LinearTasks()), 4)
        1.5152
    """
    _, signal, spread = _scalar_step(tasks)
    return signal / spread


@typed
def optimal_loss(tasks: LinearTasks) -> float:
    """Least half-MSE of one gradient step from W_0 = 0, L* = L0 (d - 2 + kappa + s) / (N + d - 2 + kappa + s).

    For independent coordinates, a teacher of mean zero and d >= 2 it is the least of one layer of single-head linear
    self-attention, too: its other terms only add to the loss. For d = N = 10 and x ~ U(-1, 1) it is 5/3 * 49/99 =
    0.824916. With a covariance or a teacher's mean it is still the least of one plain step, and a layer can do better:
    see `optimal_preconditioner`.

    Raises:
        ValueError: `tasks` have a constant input.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> round(mesa.optimal_loss(tasks) / mesa.zero_loss(tasks), 4)  # what one step leaves of the error
        0.4949
    """
    return zero_loss(tasks) * (1 - tasks.num_context / effective_examples(tasks))


@typed
def optimal_preconditioner(tasks: LinearTasks) -> Float[Tensor, "x x"]:
    """Gamma*, the matrix of least expected loss in the preconditioned step V = (1/N) sum_i y_i x_i^T Gamma.

    For independent targets and a teacher of mean zero, with C = E x x^T and A = (1/N) sum_i x_i x_i^T,

        Gamma* = E[A^2 + (sigma/tau)^2 A / N]^-1 C,    L* = 1/2 y_dim tau^2 (tr C - tr(C^2 Gamma*)).

    It is eta* I for independent coordinates, and [((N+1)/N) C + ((tr C + (sigma/tau)^2)/N) I]^-1 for normal inputs
    (theorem 1 of Ahn et al. 2023; Zhang, Frei and Bartlett 2024). In general Gamma* = R^-1 H^-1 M R^-1 with

        M = y_dim tau^2 R^2 + R W'^T W' R,    H = (1/N) [(N+1) M + tr(M) I + (kappa-3) diag(M) + y_dim sigma^2 I]

    for a teacher of mean W'. The step starts at W_0 = 0; for one that starts at W_0 subtract it from `teacher_mean`.

    Returns:
        A float64 tensor of shape (x, x), not symmetric in general; `population_loss(tasks, Gamma*)` is its loss.

    Raises:
        ValueError: `tasks` have a constant input.

    Example:
        >>> tasks = mesa.LinearTasks(x_dim=3)
        >>> eta = mesa.optimal_eta(tasks)
        >>> torch.allclose(mesa.optimal_preconditioner(tasks), eta * torch.eye(3).double())  # alike in all directions
        True
    """
    _mean_zero_inputs(tasks)
    moment = _teacher_moment(tasks, tasks.teacher_center)
    inverse_root = torch.linalg.inv(tasks.input_root)
    gamma: Tensor = inverse_root @ torch.linalg.solve(_step_moment(tasks, moment), moment) @ inverse_root
    return gamma


@typed
def plateau_loss(tasks: LinearTasks) -> float:
    """Least half-MSE of the construction's rank-one twin, L0 (1 - (1/(d y_dim)) N / (N + d - 2 + kappa + s)).

    The twin reads y through the keys and x through the values. Its map from sum_i y_i x_i to V has rank one, so it
    gains on one of d y_dim directions what the gradient step gains on all of them. With a covariance it gains what the
    best preconditioned step gains on its best direction.

    Raises:
        ValueError: `tasks` have a constant input, or a teacher's mean, for which the twin is no rank-one step.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> mesa.optimal_loss(tasks) < mesa.plateau_loss(tasks) < mesa.zero_loss(tasks)
        True
    """
    _mean_zero_inputs(tasks)
    if tasks.teacher_mean is not None:
        raise ValueError("tasks.teacher_mean: expected None, since the twin needs a teacher of mean zero, got a matrix")
    moment = _teacher_moment(tasks, tasks.teacher_center)
    whitened = torch.linalg.solve_triangular(torch.linalg.cholesky(_step_moment(tasks, moment)), moment, upper=False)
    # Both moments hold the factor y_dim that counts the targets; the twin serves one direction of one target.
    return zero_loss(tasks) - 0.5 * float(torch.linalg.matrix_norm(whitened, 2)) ** 2 / tasks.y_dim


@typed
def population_loss(
    tasks: LinearTasks,
    step: float | Float[Tensor, "x x"] | AttentionWeights,
    w_0: Float[Tensor, "y x"] | None = None,
) -> Tensor:
    """Exact expected half-MSE of one gradient step, or of one layer of linear self-attention, whatever its weights.

    For a step size eta the prediction is that of W_0 + (eta/N) sum_i (y_i - W_0 x_i) x_i^T; without covariance and
    means its loss is L0 [1 - 2 eta m2 + (eta m2)^2 (N + d - 2 + kappa + s) / N]. A matrix Gamma, multiplied from the
    right, takes the place of eta: the preconditioned step.

    For weights the query token is (x_q, -W_0 x_q), or (x_q, 0) without `w_0`, and V = W_0 - sum_h (B_h G C_h), y rows
    and x columns, with B = W_PV, C = W_KQ [I; -W_0] and G = sum_i e_i e_i^T. V has a part that is odd in the teacher
    (about its mean) and one that is even; they do not correlate, and each part's second moment is a polynomial in R,
    kappa, tau and sigma. The weights' P is used as it stands, so that weights made for one N can be judged at another.

    Args:
        tasks: the distribution; its num_queries does not matter.
        step: a step size eta, a preconditioner Gamma of shape (x, x), or AttentionWeights of token size x_dim + y_dim
            (one more with a constant input).
        w_0: where the step starts, and what the query's slot holds; the same for every member of an ensemble.

    Returns:
        A float64 tensor of shape () for a step, (*ensemble) for weights.

    Raises:
        TypeError, ValueError: `step` is neither a finite number nor a matrix nor AttentionWeights that fit the tasks,
            `w_0` does not fit, or `tasks` have a constant input and `step` is no layer.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> loss = mesa.population_loss(tasks, mesa.optimal_eta(tasks))
        >>> abs(float(loss) - mesa.optimal_loss(tasks)) < 1e-9
        True
    """
    start = _start(tasks, w_0)
    if isinstance(step, AttentionWeights):
        return _attention_loss(tasks, step, start)
    _mean_zero_inputs(tasks)
    moment = _teacher_moment(tasks, tasks.teacher_center - start)
    root = tasks.input_root
    if isinstance(step, Tensor):
        finite_tensor("step", step, min_dims=2)
        gamma = root @ trailing_shape("step", step, (tasks.x_dim, tasks.x_dim)).to(root) @ root
    else:
        gamma = finite_number("step", step) * root @ root
    spread = (_step_moment(tasks, moment) @ gamma * gamma).sum()
    return 0.5 * (moment.trace() - 2 * (moment * gamma).sum() + spread)


@typed
def twin_share(weights: AttentionWeights, y_dim: int = 1) -> Float[Tensor, "*ensemble"]:
    """How much of a layer's signal runs through the twin path: |tr twin| / (|tr direct| + |tr twin|), from 0 to 1.

    The signal is the covariance of V with the teacher W. It has two parts, for the two ways in which the layer can
    multiply y_i by x_i: the direct path reads x through the keys and y through the values (W_PV's y-y block and
    W_KQ's x-x block), as the construction does; the twin reads y through the keys and x through the values (W_PV's y-x
    block and W_KQ's y-x block).

    Args:
        weights: one layer.
        y_dim: how many numbers of a token are its target slot, the last ones.

    Returns:
        A float64 tensor of shape (*ensemble); 0 for the construction of Proposition 1, 1 for its twin.

    Raises:
        TypeError, ValueError: `y_dim` is not a positive integer smaller than the token, or the layer has no signal.

    Example:
        >>> float(mesa.twin_share(layer)) < 1e-12  # the construction has none of its twin
        True
    """
    d = weights.token_dim - positive_integer("y_dim", y_dim)
    if d < 1:
        raise ValueError(f"y_dim: expected less than the token's {weights.token_dim} numbers, got {y_dim}")
    direct, twin = _coupling(*_query_blocks(weights, d))
    traces = [torch.einsum("...yaya->...", path).abs() for path in (direct, twin)]
    if bool((traces[0] + traces[1] == 0).any()):
        raise ValueError(
            "weights: expected a layer whose prediction depends on the targets, got one without any signal"
        )
    return traces[1] / (traces[0] + traces[1])


def _mean_zero_inputs(tasks: LinearTasks) -> None:
    if tasks.constant_input:
        raise ValueError(
            "tasks.constant_input: expected False, since a step's closed form is for mean-zero inputs, got True"
        )


def _start(tasks: LinearTasks, w_0: Tensor | None) -> Float[Tensor, "y x"]:
    if w_0 is None:
        return torch.zeros(tasks.y_dim, tasks.x_dim, dtype=torch.float64)
    finite_tensor("w_0", w_0, min_dims=2)
    if w_0.dim() != 2:
        raise ValueError(f"w_0: expected one matrix ({tasks.y_dim}, {tasks.x_dim}), got shape {tuple(w_0.shape)}")
    return trailing_shape("w_0", w_0, (tasks.y_dim, tasks.x_dim)).to(dtype=torch.float64, device="cpu")


def _gram_moment(tasks: LinearTasks, matrix: Float[Tensor, "x x"]) -> Float[Tensor, "x x"]:
    """E[S Q S] / N for symmetric Q: (N + 1) Q + tr(Q) I + (kappa - 3) diag(Q)."""
    mixed = matrix.trace() * torch.eye(tasks.x_dim, dtype=torch.float64)
    return (tasks.num_context + 1) * matrix + mixed + (tasks.kurtosis - 3) * matrix.diagonal().diag()


def _teacher_moment(tasks: LinearTasks, mean: Float[Tensor, "y x"]) -> Float[Tensor, "x x"]:
    """M = E[(W R)^T (W R)] for a teacher of this mean, y_dim tau^2 R^2 + R mean^T mean R."""
    centred = tasks.y_dim * tasks.teacher_scale**2 * torch.eye(tasks.x_dim, dtype=torch.float64)
    return tasks.input_root @ (centred + mean.mT @ mean) @ tasks.input_root


def _step_moment(tasks: LinearTasks, moment: Float[Tensor, "x x"]) -> Float[Tensor, "x x"]:
    """H = E[U^T U] / N^2 for U = sum_i y_i z_i^T, the second moment of a step of size one."""
    noise = tasks.y_dim * tasks.noise_std**2 * torch.eye(tasks.x_dim, dtype=torch.float64)
    return (_gram_moment(tasks, moment) + noise) / tasks.num_context


def _scalar_step(tasks: LinearTasks) -> tuple[float, float, float]:
    """The three traces in the loss of a step from W_0 = 0, 1/2 [tr M - 2 eta tr(M C) + eta^2 tr(H C^2)]."""
    _mean_zero_inputs(tasks)
    moment = _teacher_moment(tasks, tasks.teacher_center)
    covariance = tasks.input_root @ tasks.input_root
    spread = (_step_moment(tasks, moment) * (covariance @ covariance)).sum()
    return float(moment.trace()), float((moment * covariance).sum()), float(spread)


def _query_blocks(weights: AttentionWeights, x_dim: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """In float64, W_PV's y rows and W_KQ's x columns, all that a query token (x_q, 0) sees, each split into x and y."""
    exact = weights.to(dtype=torch.float64, device="cpu")
    to_y, scores = exact.w_pv[..., x_dim:, :], exact.w_kq[..., :x_dim]
    return to_y[..., :x_dim], to_y[..., x_dim:], scores[..., :x_dim, :], scores[..., x_dim:, :]


def _coupling(b_x: Tensor, b_y: Tensor, c_x: Tensor, c_y: Tensor) -> tuple[Tensor, Tensor]:
    """The linear maps from U = sum_i y_i x_i^T to -V, (y, x, y, x), along the direct path and along the twin."""
    return torch.einsum("...hyr,...hia->...yari", b_y, c_x), torch.einsum("...hyi,...hra->...yari", b_x, c_y)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """What a query sees of a layer, on the tokens (z, 1, y - W' x) of a teacher of mean W': value rows, score columns.

    The last score column is that of the constant input, and with it `b_1` and `c_1`; they are zero without one.

    Shapes:
        b_z, b_1, b_y: (*ensemble, head, y, ...) what z, 1 and the residual target add to the y-slot
        c_z, c_1, c_y: (*ensemble, head, ..., x + 1) how they score against the query (z_q, 1)
    """

    b_z: Tensor
    b_1: Tensor
    b_y: Tensor
    c_z: Tensor
    c_1: Tensor
    c_y: Tensor


def _residual_blocks(tasks: LinearTasks, weights: AttentionWeights, start: Tensor) -> _Blocks:
    """Change the tokens' basis to (z, 1, y - W' x): then the inputs are independent and the teacher has mean zero."""
    d, n_out, ones = tasks.x_dim, tasks.y_dim, int(tasks.constant_input)
    root, mean = tasks.input_root, tasks.teacher_center
    exact = weights.to(dtype=torch.float64, device="cpu")
    basis, query = (torch.eye(d + 1 + n_out, dtype=torch.float64) for _ in range(2))
    basis[:d, :d], basis[d + 1 :, :d] = root, mean @ root
    query[:d, :d], query[d + 1 :, :d] = root, -start @ root
    kept = [index for index in range(d + 1 + n_out) if ones or index != d]
    to_y, scores = exact.w_pv[..., d + ones :, :] @ basis[kept], basis[kept].mT @ exact.w_kq @ query[kept, : d + 1]
    return _Blocks(
        to_y[..., :d], to_y[..., d : d + 1], to_y[..., d + 1 :],
        scores[..., :d, :], scores[..., d : d + 1, :], scores[..., d + 1 :, :],
    )  # fmt: skip


def _attention_loss(tasks: LinearTasks, weights: AttentionWeights, start: Tensor) -> Float[Tensor, "*ensemble"]:
    size = tasks.x_dim + int(tasks.constant_input) + tasks.y_dim
    if weights.token_dim != size:
        parts = "x_dim + 1 + y_dim" if tasks.constant_input else "x_dim + y_dim"
        raise ValueError(f"step: expected weights of token size {parts} = {size}, got {weights.token_dim}")
    blocks = _residual_blocks(tasks, weights, start)
    target = torch.nn.functional.pad((tasks.teacher_center - start) @ tasks.input_root, (0, 1))
    return 0.5 * (_odd_error(tasks, blocks) + _even_error(tasks, blocks, target) + _mean_square(tasks, blocks))


def _odd_error(tasks: LinearTasks, blocks: _Blocks) -> Tensor:
    """E |L[U] + W|^2 for the part of V that is linear in U = sum_i y_i z_i^T, which is odd in (W, noise).

    L[U]_ya = sum_ri L_yari U_ri. The rows of U are uncorrelated, with E U_ri W_rj = N Theta_ij for the covariance
    Theta = tau^2 R^2 of a row of W, and E U_ri U_rj = spread_ij.
    """
    n = tasks.num_context
    theta = tasks.teacher_scale**2 * tasks.input_root @ tasks.input_root
    direct, twin = _coupling(blocks.b_z, blocks.b_y, blocks.c_z, blocks.c_y)
    coupling = direct + twin
    spread = n * (_gram_moment(tasks, theta) + tasks.noise_std**2 * torch.eye(tasks.x_dim, dtype=torch.float64))
    signal = torch.einsum("...yayi,ia->...", coupling[..., : tasks.x_dim, :, :], n * theta)
    power = torch.einsum("...yari,ij,...yarj->...", coupling, spread, coupling)
    return tasks.y_dim * theta.trace() + 2 * signal + power


def _even_error(tasks: LinearTasks, blocks: _Blocks, target: Float[Tensor, "y x"]) -> Tensor:
    """E |F[S] + H[T] + K + W'|^2 for the part of V made of S = sum_i z_i z_i^T, T = sum_i y_i y_i^T and a constant K.

    This part is even in (W, noise); `target` is what it should be minus of: the teacher's mean, seen from W_0.
    """
    n, sigma2, excess = tasks.num_context, tasks.noise_std**2, tasks.kurtosis - 3
    theta = tasks.teacher_scale**2 * tasks.input_root @ tasks.input_root
    on_s = torch.einsum("...hyi,...hja->...yaij", blocks.b_z, blocks.c_z)
    on_t = torch.einsum("...hyr,...hsa->...yars", blocks.b_y, blocks.c_y)
    fixed = n * torch.einsum("...hyo,...hoa->...ya", blocks.b_1, blocks.c_1) + target
    f_trace, h_trace = torch.einsum("...yaii->...ya", on_s), torch.einsum("...yarr->...ya", on_t)
    f_diagonal = torch.diagonal(on_s, dim1=-2, dim2=-1)
    # Given z, the rows of T's factor are normal over the context with covariance K = Z Theta Z^T + sigma^2 I.
    k_trace = n * theta.trace() + n * sigma2
    k_trace_variance = n * (2 * theta.square().sum() + excess * theta.diagonal().square().sum())
    k_square_trace = n * (theta * _gram_moment(tasks, theta)).sum() + 2 * sigma2 * n * theta.trace() + n * sigma2**2
    mean = n * f_trace + k_trace * h_trace + fixed
    variance_s = n * ((on_s * (on_s + on_s.mT)).sum((-1, -2)) + excess * f_diagonal.square().sum(-1))
    variance_t = k_trace_variance * h_trace.square() + k_square_trace * (on_t * (on_t + on_t.mT)).sum((-1, -2))
    f_theta = 2 * (on_s * theta).sum((-1, -2)) + excess * (f_diagonal * theta.diagonal()).sum(-1)
    return (mean.square() + variance_s + variance_t + 2 * n * f_theta * h_trace).sum((-1, -2))


def _mean_square(tasks: LinearTasks, blocks: _Blocks) -> Tensor:
    """E |F[s]|^2 + E |H[t]|^2 for the parts of V made of s = sum_i z_i and t = sum_i y_i, which biases let in.

    They correlate with nothing else and with no target: for inputs of mean zero they only add to the loss.
    """
    per_target = tasks.teacher_scale**2 * tasks.input_root.square().sum() + tasks.noise_std**2
    on_z = torch.einsum("...hyi,...hoa->...yai", blocks.b_z, blocks.c_1)
    on_z = on_z + torch.einsum("...hyo,...hia->...yai", blocks.b_1, blocks.c_z)
    on_y = torch.einsum("...hyr,...hoa->...yar", blocks.b_y, blocks.c_1)
    on_y = on_y + torch.einsum("...hyo,...hra->...yar", blocks.b_1, blocks.c_y)
    total = on_z.square().sum((-1, -2, -3)) + per_target * on_y.square().sum((-1, -2, -3))
    return tasks.num_context * total
