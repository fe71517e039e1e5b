"""Kernel methods on a context: descent in the function that a kernel spans, and where it ends.

A kernel k(x, x') turns examples into a function: every example adds a copy of k(x_i, .), with a weight of its own. All
predictions here have the form

    f(x_q) = f_0(x_q) + sum_i alpha_i k(x_i, x_q),

and the methods differ in alpha alone.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.features import Features, features_once
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    finite_number,
    finite_tensor,
    floating_tensor,
    non_negative_number,
    positive_integer,
    positive_number,
    same_kind,
    typed,
)

Kernel = Callable[[Float[Tensor, "... context x"], Float[Tensor, "... query x"]], Float[Tensor, "... context query"]]
"""(a, b) -> the matrix of k(a_i, b_j), for inputs a of shape (*axes, context, x) and b of shape (*axes, query, x)."""

StartFunction = Callable[[Float[Tensor, "... x"]], Float[Tensor, "... y"]]
"""f_0, the function that a method starts from: x -> y, on the last axis."""


@typed
def linear_kernel(
    a: Float[Tensor, "... context x"], b: Float[Tensor, "... query x"]
) -> Float[Tensor, "... context query"]:
    """k(x, x') = x . x', the kernel of linear models: `kernel_gradient_descent` with it is `gradient_descent`.

    Args:
        a: inputs, shape (*axes, context, x).
        b: inputs, shape (*axes, query, x).

    Returns:
        Shape (*axes, context, query).

    Raises:
        TypeError, ValueError: `b` has another dtype or another number of inputs than `a`.

    Example:
        >>> mesa.linear_kernel(torch.eye(2), torch.tensor([[3.0, 4.0]])).tolist()
        [[3.0], [4.0]]
    """
    _check_pair(a, b)
    return a @ b.mT


def exponential_kernel(beta: float) -> Kernel:
    """The kernel k(x, x') = exp(beta x . x'): with it, `kernel_smoother` is softmax attention.

    Between inputs of one length it is a Gaussian kernel of squared width 1/beta, since then |x - x'|^2 depends on
    x . x' alone. In general an input of large norm has a large kernel with everything on its side.

    Args:
        beta: in units of 1/x^2; negative values prefer inputs that point away.

    Returns:
        A Kernel.

    Raises:
        TypeError, ValueError: `beta` is not finite; when called, inputs that do not fit.

    Example:
        >>> kernel = mesa.exponential_kernel(beta=2.0)
        >>> one = torch.ones(1, 3)
        >>> torch.allclose(kernel(one, one), torch.tensor([[6.0]]).exp())
        True
    """
    sharpness = finite_number("beta", beta)

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        _check_pair(a, b)
        return torch.exp(sharpness * a @ b.mT)

    return kernel


@typed
def feature_kernel(features: Features, metric: Float[Tensor, "... feature feature"] | None = None) -> Kernel:
    """The kernel k(x, x') = m(x)^T G m(x') of features m, with G = I unless a `metric` is given.

    Args:
        features: x -> m(x).
        metric: G, shape (feature, feature); it need not be symmetric.

    Returns:
        A Kernel.

    Raises:
        TypeError, ValueError: `metric` is not one finite square matrix; when called, inputs of a wrong size.

    Example:
        >>> kernel = mesa.feature_kernel(lambda x: x)
        >>> torch.equal(kernel(batch.context_x, batch.query_x), mesa.linear_kernel(batch.context_x, batch.query_x))
        True
    """
    if metric is not None:
        finite_tensor("metric", metric, min_dims=2)
        if metric.dim() != 2 or metric.shape[0] != metric.shape[1]:
            raise ValueError(f"metric: expected one square matrix, got shape {tuple(metric.shape)}")

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        _check_pair(a, b)
        left, right = features_once(features, a), features_once(features, b)
        if metric is not None:
            if left.shape[-1] != len(metric):
                raise ValueError(f"features: expected a width of {len(metric)}, that of metric, got {left.shape[-1]}")
            left = left @ metric
        return left @ right.mT

    return kernel


def _check_pair(a: Tensor, b: Tensor) -> None:
    floating_tensor("a", a, min_dims=2)
    floating_tensor("b", b, min_dims=2)
    same_kind("b", b, "a", a)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"b: expected {a.shape[-1]} inputs on the last axis, as in a, got {b.shape[-1]}")


@typed
def kernel_gradient_descent(
    batch: TaskBatch, kernel: Kernel, eta: float, num_steps: int = 1, start: StartFunction | None = None
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions after gradient descent on the context loss, in the space of functions that the kernel spans.

    Every step adds eta / N times the residuals to the weights of the examples,

        alpha_i <- alpha_i + (eta / N) (y_i - f(x_i)),    f = f_0 + sum_i alpha_i k(x_i, .).

    With k = m . m this is gradient descent on 1/(2N) sum_i |W m(x_i) - y_i|^2 (half-MSE) with step size eta, although W
    is never formed: Proposition 2 of the paper. It converges to `kernel_regression` without penalty if eta times the
    largest eigenvalue of k's matrix over N is below 2.

    Args:
        batch: its queries are answered.
        kernel: k; it need not be symmetric.
        eta: step size, on the half-MSE.
        num_steps: how many steps, at least one.
        start: f_0, which a prediction is corrected from; zero by default.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `eta` is not finite, `num_steps` is not a positive integer, or `kernel` or `start` gives
            another shape than its inputs ask for.

    Example:
        >>> plain = mesa.kernel_gradient_descent(batch, mesa.linear_kernel, eta=1.0)
        >>> torch.allclose(plain, mesa.gradient_descent(batch, eta=1.0))
        True
    """
    step = finite_number("eta", eta) / batch.num_context
    count = positive_integer("num_steps", num_steps)
    within, across = _matrices(kernel, batch)
    at_context, at_queries = _started(start, batch)
    target = batch.context_y - at_context
    alpha = step * target
    for _ in range(count - 1):
        alpha = alpha + step * (target - within.mT @ alpha)
    return at_queries + across.mT @ alpha


@typed
def kernel_regression(
    batch: TaskBatch,
    kernel: Kernel,
    penalty: float = 0.0,
    relative_cutoff: float | None = None,
    start: StartFunction | None = None,
) -> Float[Tensor, "*ensemble task query y"]:
    """Kernel ridge regression, alpha = (K + penalty I)^-1 (y - f_0), and its limit without penalty.

    With `penalty` zero the fit passes through the examples where the kernel's matrix K = (k(x_i, x_j)) allows it. Where
    K is singular, as with fewer features than examples, there is no inverse: give a `relative_cutoff`, and the pseudo-
    inverse takes its place, kernel least squares of minimum norm. That is the limit of `kernel_gradient_descent`.

    Args:
        batch: its queries are answered.
        kernel: k.
        penalty: >= 0, on the scale of K; beside a *sum* over the context, not a mean, as in `ridge_regression`.
        relative_cutoff: without penalty: singular values of K below this fraction of the largest count as zero.
        start: f_0, which a prediction is corrected from; zero by default.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `penalty` is negative or not finite, `relative_cutoff` is not positive or stands beside a
            penalty, K is singular with neither of them, or `kernel` or `start` gives another shape than its inputs ask
            for.

    Example:
        >>> fitted = mesa.kernel_regression(batch, mesa.linear_kernel, penalty=0.1)
        >>> torch.allclose(fitted, mesa.ridge_regression(batch, penalty=0.1))
        True
    """
    ridge = non_negative_number("penalty", penalty)
    cutoff = None if relative_cutoff is None else positive_number("relative_cutoff", relative_cutoff)
    if ridge > 0 and cutoff is not None:
        raise ValueError(f"relative_cutoff: expected None beside a penalty of {ridge}, got {cutoff}")
    within, across = _matrices(kernel, batch)
    at_context, at_queries = _started(start, batch)
    target = batch.context_y - at_context
    if cutoff is not None:
        alpha = torch.linalg.pinv(within.mT, rtol=cutoff) @ target
    else:
        identity = torch.eye(batch.num_context, dtype=within.dtype, device=within.device)
        matrix = within.mT + ridge * identity
        if ridge == 0:
            _refuse_singular(matrix)
        alpha = torch.linalg.solve(matrix, target.expand(*matrix.shape[:-2], *target.shape[-2:]))
    prediction: Tensor = at_queries + across.mT @ alpha
    return prediction


@typed
def kernel_smoother(batch: TaskBatch, kernel: Kernel) -> Float[Tensor, "*ensemble task query y"]:
    """The kernel-weighted mean of the context's targets, the estimator of Nadaraya (1964) and Watson (1964).

        f(x_q) = sum_i k(x_i, x_q) y_i / sum_j k(x_j, x_q)

    Nothing is fitted. The prediction is an average of targets that the context holds, and with a positive kernel it
    lies between the least and the greatest of them.

    Args:
        batch: its queries are answered.
        kernel: k, whose sum over a context must not be zero.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        ValueError: `kernel` gives another shape than its inputs ask for, or its sum over some context is zero or not
            finite.

    Example:
        >>> smoothed = mesa.kernel_smoother(batch, mesa.exponential_kernel(0.0))
        >>> torch.allclose(smoothed, batch.context_y.mean(-2, keepdim=True))  # flat weights: the mean
        True
    """
    weights = _matrix(kernel, batch, batch.query_x, "the queries")
    total = weights.sum(-2, keepdim=True)
    if not bool((torch.isfinite(total) & (total != 0)).all()):
        raise ValueError("kernel: expected a finite sum over every context, other than zero, got one that is not")
    prediction: Tensor = (weights / total).mT @ batch.context_y
    return prediction


def _refuse_singular(matrix: Tensor) -> None:
    rank = int(torch.linalg.matrix_rank(matrix).min())
    if rank < matrix.shape[-1]:
        raise ValueError(
            f"kernel: expected an invertible matrix on every context, got one of rank {rank} for {matrix.shape[-1]} "
            "examples; give a penalty, or a relative_cutoff for the pseudo-inverse"
        )


def _matrices(kernel: Kernel, batch: TaskBatch) -> tuple[Tensor, Tensor]:
    """K among the context's inputs, and from these to the queries."""
    return _matrix(kernel, batch, batch.context_x, "the context"), _matrix(kernel, batch, batch.query_x, "the queries")


def _matrix(kernel: Kernel, batch: TaskBatch, inputs: Tensor, name: str) -> Tensor:
    """k(x_i, x) of the context's inputs and some others."""
    matrix: object = kernel(batch.context_x, inputs)
    expected = (batch.num_context, inputs.shape[-2])
    if not isinstance(matrix, Tensor) or tuple(matrix.shape[-2:]) != expected:
        got = tuple(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
        raise ValueError(f"kernel: expected a matrix of shape {expected} for {name}, got {got}")
    return same_kind("kernel", matrix, "the batch", batch.context_x)


def _started(start: StartFunction | None, batch: TaskBatch) -> tuple[Tensor, Tensor]:
    """f_0 at the context's inputs and at the queries."""
    if start is None:
        return torch.zeros_like(batch.context_y), torch.zeros_like(batch.query_y)
    return _values(start, batch.context_x, batch.context_y), _values(start, batch.query_x, batch.query_y)


def _values(start: StartFunction, inputs: Tensor, targets: Tensor) -> Tensor:
    values: object = start(inputs)
    if not isinstance(values, Tensor) or values.shape[-2:] != targets.shape[-2:]:
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(f"start: expected values of shape {tuple(targets.shape)}, got {got}")
    return same_kind("start", values, "the batch", targets)
