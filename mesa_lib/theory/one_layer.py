"""Exact expected losses of one step of gradient descent and of one layer of linear self-attention.

Everything is half-MSE, E 1/2 |prediction - W x_q|^2 with a clean query target, the loss that the paper's code reports.

Notation: d = x_dim, N = num_context, m2 = E x^2 and m4 = E x^4 of one coordinate, kappa = m4 / m2^2 (9/5 for uniform
inputs, 3 for normal ones), tau = teacher_scale, sigma = noise_std, s = sigma^2 / (m2 tau^2), and L0 the loss of
predicting zero. Derived in the book's chapter on what training finds; special cases agree with Ahn et al. (2023) and
Zhang, Frei and Bartlett (2023) for normal inputs.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.tasks import LinearTasks
from mesa_lib.validation import finite_number, positive_integer


def zero_loss(tasks: LinearTasks) -> float:
    """L0 = 1/2 d y_dim m2 tau^2, the half-MSE of predicting zero (the same for every context).

    With d = x_dim, m2 = E x^2 of one coordinate and tau = teacher_scale; noise does not enter, query targets are clean.
    """
    return 0.5 * tasks.x_dim * tasks.y_dim * tasks.second_moment * tasks.teacher_scale**2


def effective_examples(tasks: LinearTasks) -> float:
    """N + d - 2 + kappa + s: the noise in a context's second moment, counted in examples.

    It is N E[A^2] / m2^2 for A = (1/N) X^T X, the noise of the targets included: each coordinate of a gradient step
    sees its signal N times, and the other coordinates, the fourth moment and the noise on top.
    """
    m2 = tasks.second_moment
    kurtosis = tasks.fourth_moment / m2**2
    noise = tasks.noise_std**2 / (m2 * tasks.teacher_scale**2)
    return tasks.num_context + tasks.x_dim - 2 + kurtosis + noise


def optimal_eta(tasks: LinearTasks) -> float:
    """The step size of least expected loss, eta* = (1/m2) N / (N + d - 2 + kappa + s), in units of 1/x^2.

    In units where P = (eta/N) I. For d = N = 10 and x ~ U(-1, 1) it is 50/33.
    """
    return tasks.num_context / (tasks.second_moment * effective_examples(tasks))


def optimal_loss(tasks: LinearTasks) -> float:
    """Least half-MSE of one gradient step, L* = L0 (d - 2 + kappa + s) / (N + d - 2 + kappa + s).

    For d >= 2 it is the least of one layer of single-head linear self-attention, too: its other terms only add to the
    loss. For d = N = 10 and x ~ U(-1, 1) it is 5/3 * 49/99 = 0.824916.
    """
    share = tasks.num_context / effective_examples(tasks)
    return zero_loss(tasks) * (1 - share)


def plateau_loss(tasks: LinearTasks) -> float:
    """Least half-MSE of the construction's rank-one twin, L0 (1 - (1/(d y_dim)) N / (N + d - 2 + kappa + s)).

    The twin reads y through the keys and x through the values. Its map from sum_i y_i x_i to V has rank one, so it
    gains on one of d y_dim directions what the gradient step gains on all of them.
    """
    share = tasks.num_context / effective_examples(tasks)
    return zero_loss(tasks) * (1 - share / (tasks.x_dim * tasks.y_dim))


def population_loss(tasks: LinearTasks, step: float | AttentionWeights) -> Tensor:
    """Exact expected half-MSE of one gradient step, or of one layer of linear self-attention, whatever its weights.

    For a step size eta: L0 [1 - 2 eta m2 + (eta m2)^2 (N + d - 2 + kappa + s) / N].

    For weights the query token is (x_q, 0) and V = -sum_h (B_h G C_h), y rows and x columns, with B = W_PV, C = W_KQ
    and G = sum_i e_i e_i^T. V has a part that is odd in the teacher and one that is even; they do not correlate, and
    each part's second moment is a polynomial in m2, m4, tau and sigma. The weights' P is used as it stands, so
    that weights made for one N can be judged at another.

    Args:
        tasks: the distribution; its num_queries does not matter.
        step: a step size eta, or AttentionWeights of token size x_dim + y_dim.

    Returns:
        A float64 tensor of shape () for a step size, (*ensemble) for weights.

    Raises:
        TypeError, ValueError: `step` is neither a finite number nor AttentionWeights that fit the tasks.
    """
    if isinstance(step, AttentionWeights):
        return _attention_loss(tasks, step)
    eta = finite_number("step", step)
    shrink = eta * tasks.second_moment
    relative = 1 - 2 * shrink + shrink**2 * effective_examples(tasks) / tasks.num_context
    return torch.tensor(zero_loss(tasks) * relative, dtype=torch.float64)


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


def _query_blocks(weights: AttentionWeights, x_dim: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """In float64, W_PV's y rows and W_KQ's x columns, all that a query token (x_q, 0) sees, each split into x and y."""
    exact = weights.to(dtype=torch.float64, device="cpu")
    to_y, scores = exact.w_pv[..., x_dim:, :], exact.w_kq[..., :x_dim]
    return to_y[..., :x_dim], to_y[..., x_dim:], scores[..., :x_dim, :], scores[..., x_dim:, :]


def _coupling(b_x: Tensor, b_y: Tensor, c_x: Tensor, c_y: Tensor) -> tuple[Tensor, Tensor]:
    """The linear maps from U = sum_i y_i x_i^T to -V, (y, x, y, x), along the direct path and along the twin."""
    return torch.einsum("...hyr,...hia->...yari", b_y, c_x), torch.einsum("...hyi,...hra->...yari", b_x, c_y)


def _attention_loss(tasks: LinearTasks, weights: AttentionWeights) -> Float[Tensor, "*ensemble"]:
    d, n_out = tasks.x_dim, tasks.y_dim
    if weights.token_dim != d + n_out:
        raise ValueError(f"step: expected weights of token size x_dim + y_dim = {d + n_out}, got {weights.token_dim}")
    blocks = _query_blocks(weights, d)
    error = _odd_error(tasks, *blocks) + _even_square(tasks, *blocks)
    return 0.5 * tasks.second_moment * error


def _odd_error(tasks: LinearTasks, b_x: Tensor, b_y: Tensor, c_x: Tensor, c_y: Tensor) -> Tensor:
    """E |L[U] + W|^2 for the part of V that is linear in U = sum_i y_i x_i^T, which is odd in (W, noise).

    L[U]_ya = sum_ri L_yari U_ri; E U = W N m2, and U's entries are uncorrelated, of variance E U_ri^2 = spread.
    """
    d, n, m2 = tasks.x_dim, tasks.num_context, tasks.second_moment
    direct, twin = _coupling(b_x, b_y, c_x, c_y)
    coupling = direct + twin
    spread = tasks.teacher_scale**2 * n * (tasks.fourth_moment + (n + d - 2) * m2**2) + tasks.noise_std**2 * n * m2
    trace = torch.einsum("...yaya->...", coupling)
    signal = tasks.teacher_scale**2 * n * m2
    power = coupling.square().sum((-1, -2, -3, -4))
    return tasks.teacher_scale**2 * d * tasks.y_dim + 2 * signal * trace + spread * power


def _even_square(tasks: LinearTasks, b_x: Tensor, b_y: Tensor, c_x: Tensor, c_y: Tensor) -> Tensor:
    """E |F[S] + H[T]|^2 for the part of V made of S = sum_i x_i x_i^T and T = sum_i y_i y_i^T, even in (W, noise)."""
    d, n, m2 = tasks.x_dim, tasks.num_context, tasks.second_moment
    tau2, sigma2 = tasks.teacher_scale**2, tasks.noise_std**2
    excess = tasks.fourth_moment - 3 * m2**2
    on_s = torch.einsum("...hyi,...hja->...yaij", b_x, c_x)
    on_t = torch.einsum("...hyr,...hsa->...yars", b_y, c_y)
    f_trace, h_trace = torch.einsum("...yaii->...ya", on_s), torch.einsum("...yarr->...ya", on_t)
    f_diagonal = torch.diagonal(on_s, dim1=-2, dim2=-1)
    square_s = (
        (n * m2) ** 2 * f_trace.square()
        + n * m2**2 * (on_s * (on_s + on_s.mT)).sum((-1, -2))
        + n * excess * f_diagonal.square().sum(-1)
    )
    # T's rows are Gaussian given X, with covariance K = tau^2 X X^T + sigma^2 I over the context.
    trace_square = (n * m2 * d) ** 2 + 2 * n * m2**2 * d + n * d * excess  # E (tr S)^2
    square_trace = n * d * (tasks.fourth_moment + (n + d - 2) * m2**2)  # E tr S^2
    mean_trace = n * m2 * d
    k_trace_square = tau2**2 * trace_square + 2 * tau2 * n * sigma2 * mean_trace + (n * sigma2) ** 2
    k_square_trace = tau2**2 * square_trace + 2 * tau2 * sigma2 * mean_trace + n * sigma2**2
    square_t = k_trace_square * h_trace.square() + k_square_trace * (on_t * (on_t + on_t.mT)).sum((-1, -2))
    mean_s_trace = (n * m2) ** 2 * d + 2 * n * m2**2 + n * excess  # E[S tr S] is this times I
    cross = (tau2 * mean_s_trace + sigma2 * n * n * m2) * f_trace * h_trace
    return (square_s + square_t + 2 * cross).sum((-1, -2))
