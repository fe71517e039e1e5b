"""GD++ and its neighbours, written without any network: what else can be done with products by a context's S.

Everything works on the context loss L(W) = 1/(2N) sum_i |W x_i - y_i|^2 (half-MSE), whose Hessian in every row of W is
A = S / N with S = sum_i x_i x_i^T, the paper's X X^T. All methods start from W = 0. Except for conjugate gradient, the
weights are Y X p(S) with a polynomial p that does not depend on the targets.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.algorithms.gradient_descent import gradient, initial_weights
from mesa_lib.learners import predict_linear
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    finite_number,
    non_negative_number,
    one_of,
    positive_integer,
    positive_number,
    schedule_numbers,
    typed,
)

NewtonStart = Literal["identity", "second moment"]
"""Where Newton's iteration for the inverse of A starts: a multiple of I, or of A (Fu et al.)."""


@typed
def second_moment(batch: TaskBatch) -> Float[Tensor, "*ensemble task x x"]:
    """S = sum_i x_i x_i^T of each context, the paper's X X^T; not divided by N. Shape (*ensemble, task, x, x)."""
    moment: Tensor = batch.context_x.mT @ batch.context_x
    return moment


@typed
def curvature_correction(batch: TaskBatch, gamma: float) -> Float[Tensor, "*ensemble task x x"]:
    """H = I - gamma S with S = sum_i x_i x_i^T, the matrix that GD++ applies to every x (the paper's appendix A.10).

    Args:
        batch: its context is used.
        gamma: on S, not on S / N.

    Returns:
        Shape (*ensemble, task, x, x).

    Raises:
        TypeError, ValueError: `gamma` is not a finite number.

    Example:
        >>> torch.allclose(mesa.curvature_correction(batch, gamma=0.0), torch.eye(10, dtype=torch.float64))
        True
    """
    return _identity(batch) - finite_number("gamma", gamma) * second_moment(batch)


def _identity(batch: TaskBatch) -> Tensor:
    return torch.eye(batch.x_dim, dtype=batch.context_x.dtype, device=batch.context_x.device)


@typed
def gd_plus_plus_weights(
    batch: TaskBatch, etas: Sequence[float], gammas: Sequence[float]
) -> Float[Tensor, "*ensemble task y x"]:
    """Weights after L layers of GD++ (the paper's appendix A.10): gradient steps preconditioned by the data itself.

    Layer l steps on the inputs x_i^(l) = P_l x_i and then replaces them by (I - gamma_l S_l) x_i^(l), where
    S_l = P_l S P_l is their own second moment. In terms of the weights on the inputs as they were given,

        W <- W - eta_l dL/dW P_l^2,    P_{l+1} = (I - gamma_l S_l) P_l,    P_0 = I.

    Args:
        batch: its context is used, its queries are not.
        etas: eta_l, one a layer, on the half-MSE L: a step multiplies sum_i (W x_i - y_i) x_i^T by eta_l / N.
        gammas: gamma_l on S_l, one between any two layers; one more, for the last layer, has no effect.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `etas` or `gammas` holds a number that is not finite, or their lengths do not fit.

    Example:
        >>> weights = mesa.gd_plus_plus_weights(batch, etas=[0.8], gammas=[0.1])
        >>> torch.allclose(mesa.predict_linear(weights, batch), mesa.gd_plus_plus(batch, etas=[0.8], gammas=[0.1]))
        True
    """
    steps, corrections = schedule_numbers(etas, gammas)
    moment, identity = second_moment(batch), _identity(batch)
    weights, moved = initial_weights(batch), identity.expand_as(moment)
    for step, gamma in zip(steps, (*corrections, 0.0), strict=True):
        weights = weights - step * gradient(weights, batch) @ moved @ moved
        moved = (identity - gamma * moved @ moment @ moved) @ moved
    return weights


@typed
def gd_plus_plus(
    batch: TaskBatch, etas: Sequence[float], gammas: Sequence[float]
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions W x_q of GD++; see `gd_plus_plus_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `gd_plus_plus_weights`.

    Example:
        >>> plain = mesa.gd_plus_plus(batch, etas=[1.0, 1.0], gammas=[0.0, 0.0])
        >>> torch.allclose(plain, mesa.gradient_descent(batch, eta=1.0, num_steps=2))
        True
    """
    return predict_linear(gd_plus_plus_weights(batch, etas, gammas), batch)


@typed
def newton_weights(
    batch: TaskBatch, num_steps: int, start: NewtonStart = "second moment"
) -> Float[Tensor, "*ensemble task y x"]:
    """W = (1/N) Y X M_k with Newton's iteration for the inverse of A = S / N, M <- 2 M - M A M.

    From M_0 = a I the residual is I - M_k A = (I - a A)^(2^k), from M_0 = a A it is (I - a A^2)^(2^k): every step
    squares it. The starts are a = 1 / lambda_max(A) and a = 1 / lambda_max(A)^2, which converge on every context; where
    a context does not fill its space, "second moment" (that of Fu et al., 2310.17086) stays in its span.

    Args:
        batch: its context is used, its queries are not.
        num_steps: k, at least one.
        start: "identity" for a I, "second moment" for a A.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `num_steps` is not a positive integer, or `start` is unknown.

    Example:
        >>> tuple(mesa.newton_weights(batch, num_steps=2).shape)
        (4, 1, 10)
    """
    steps = positive_integer("num_steps", num_steps)
    one_of("start", start, ("identity", "second moment"))
    moment = second_moment(batch) / batch.num_context
    scale = torch.linalg.eigvalsh(moment)[..., -1, None, None]
    inverse = _identity(batch) / scale if start == "identity" else moment / scale.square()
    for _ in range(steps):
        inverse = 2 * inverse - inverse @ moment @ inverse
    weights: Tensor = batch.context_y.mT @ batch.context_x / batch.num_context @ inverse
    return weights


@typed
def newton(
    batch: TaskBatch, num_steps: int, start: NewtonStart = "second moment"
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of least squares by Newton's iteration for the inverse of A; see `newton_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `newton_weights`.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(num_context=40).sample(4, stream, dtype=torch.float64)
        >>> torch.allclose(mesa.newton(exam, num_steps=12), mesa.least_squares(exam))
        True
    """
    return predict_linear(newton_weights(batch, num_steps, start), batch)


@typed
def momentum_weights(
    batch: TaskBatch, eta: float, momentum: float, num_steps: int
) -> Float[Tensor, "*ensemble task y x"]:
    """Gradient descent with Polyak's heavy ball, W_{k+1} = W_k - eta dL/dW + momentum (W_k - W_{k-1}).

    Args:
        batch: its context is used, its queries are not.
        eta: step size on the half-MSE L.
        momentum: from 0, plain gradient descent, to below 1.
        num_steps: how many steps, at least one.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `eta` is not finite, `momentum` is not in [0, 1), `num_steps` is not a positive integer.

    Example:
        >>> tuple(mesa.momentum_weights(batch, eta=1.0, momentum=0.5, num_steps=3).shape)
        (4, 1, 10)
    """
    step, inertia = finite_number("eta", eta), non_negative_number("momentum", momentum)
    if inertia >= 1:
        raise ValueError(f"momentum: expected a number from 0 to below 1, got {inertia}")
    weights = initial_weights(batch)
    change = torch.zeros_like(weights)
    for _ in range(positive_integer("num_steps", num_steps)):
        change = inertia * change - step * gradient(weights, batch)
        weights = weights + change
    return weights


@typed
def momentum(batch: TaskBatch, eta: float, momentum: float, num_steps: int) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of gradient descent with momentum; see `momentum_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `momentum_weights`.

    Example:
        >>> plain = mesa.momentum(batch, eta=1.0, momentum=0.0, num_steps=2)
        >>> torch.allclose(plain, mesa.gradient_descent(batch, eta=1.0, num_steps=2))
        True
    """
    return predict_linear(momentum_weights(batch, eta, momentum, num_steps), batch)


@typed
def chebyshev_weights(
    batch: TaskBatch, num_steps: int, lowest: float, highest: float
) -> Float[Tensor, "*ensemble task y x"]:
    """The Chebyshev iteration: of all methods of k products by A, the best in the worst case over an interval.

    After k steps an eigenvalue lambda of A keeps the share T_k(z(lambda)) / T_k(z(0)) of its error, with T_k the
    Chebyshev polynomial and z the linear map that takes [lowest, highest] to [-1, 1].

    Args:
        batch: its context is used, its queries are not.
        num_steps: k, at least one.
        lowest: where the interval of eigenvalues of A = S / N begins, above 0.
        highest: where it ends; eigenvalues above it diverge.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `num_steps` is not a positive integer, or not 0 < lowest < highest.

    Example:
        >>> weights = mesa.chebyshev_weights(batch, num_steps=3, lowest=0.1, highest=2.0)
        >>> torch.allclose(mesa.predict_linear(weights, batch), mesa.chebyshev(batch, 3, lowest=0.1, highest=2.0))
        True
    """
    low, high = positive_number("lowest", lowest), positive_number("highest", highest)
    if low >= high:
        raise ValueError(f"lowest: expected less than highest = {high}, got {low}")
    middle, radius = (high + low) / 2, (high - low) / 2
    ratio = 2 * middle / radius
    weights = initial_weights(batch)
    change = -gradient(weights, batch) / middle
    quotient = radius / middle  # T_{k-1} / T_k at z(0), which starts at 1 / z(0)
    for _ in range(positive_integer("num_steps", num_steps) - 1):
        weights = weights + change
        quotient, before = 1 / (ratio - quotient), quotient
        change = quotient * before * change - 2 * quotient / radius * gradient(weights, batch)
    return weights + change


@typed
def chebyshev(
    batch: TaskBatch, num_steps: int, lowest: float, highest: float
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of the Chebyshev iteration; see `chebyshev_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `chebyshev_weights`.

    Example:
        >>> tuple(mesa.chebyshev(batch, num_steps=3, lowest=0.1, highest=2.0).shape)
        (4, 1, 1)
    """
    return predict_linear(chebyshev_weights(batch, num_steps, lowest, highest), batch)


@typed
def conjugate_gradient_weights(batch: TaskBatch, num_steps: int) -> Float[Tensor, "*ensemble task y x"]:
    """Conjugate gradients on W A = (1/N) Y X, each target's row by itself: the least L that k products by A can reach.

    It chooses its polynomial for each context and target, so it is no linear function of the targets (but scales with
    them), and linear attention with fixed weights cannot do the same. A row that has converged stays where it is.

    Args:
        batch: its context is used, its queries are not.
        num_steps: k, at least one; x_dim steps reach least squares up to rounding.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `num_steps` is not a positive integer.

    Example:
        >>> tuple(mesa.conjugate_gradient_weights(batch, num_steps=2).shape)
        (4, 1, 10)
    """
    moment = second_moment(batch) / batch.num_context
    weights = initial_weights(batch)
    residual = -gradient(weights, batch)
    first = size = residual.square().sum(-1, keepdim=True)
    direction = residual
    rounding = (100 * torch.finfo(size.dtype).eps) ** 2 * first  # what is left then has no direction worth following
    for _ in range(positive_integer("num_steps", num_steps)):
        pushed = direction @ moment
        curvature = (direction * pushed).sum(-1, keepdim=True)
        alive = (size > rounding) & (curvature > 0)
        step = torch.where(alive, size / torch.where(alive, curvature, 1), 0)
        weights = weights + step * direction
        residual = residual - step * pushed
        size, before = residual.square().sum(-1, keepdim=True), size
        direction = residual + torch.where(alive, size / torch.where(alive, before, 1), 0) * direction
    return weights


@typed
def conjugate_gradient(batch: TaskBatch, num_steps: int) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of conjugate gradients; see `conjugate_gradient_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `num_steps` is not a positive integer.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(x_dim=3, num_context=20).sample(4, stream, dtype=torch.float64)
        >>> torch.allclose(mesa.conjugate_gradient(exam, num_steps=3), exam.query_y)  # exact after x_dim steps
        True
    """
    return predict_linear(conjugate_gradient_weights(batch, num_steps), batch)
