"""Least squares and ridge regression on a context: where gradient descent would go, and the Bayes answer to noise."""

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.learners import predict_linear
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import positive_number, typed


@typed
def least_squares_weights(
    batch: TaskBatch, relative_cutoff: float | None = None
) -> Float[Tensor, "*ensemble task y x"]:
    """Minimum-norm least-squares weights W = Y^T pinv(X^T), the limit of gradient descent from W_0 = 0.

    Args:
        batch: its context is used, its queries are not.
        relative_cutoff: singular values of X below this fraction of the largest count as zero. Default: machine
            epsilon times max(N, d), the convention of `torch.linalg.pinv`.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `relative_cutoff` is not a positive finite number.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(num_context=20).sample(4, stream, dtype=torch.float64)
        >>> torch.allclose(mesa.least_squares_weights(exam), exam.teacher)
        True
    """
    cutoff = None if relative_cutoff is None else positive_number("relative_cutoff", relative_cutoff)
    fitted: Tensor = torch.linalg.pinv(batch.context_x, rtol=cutoff) @ batch.context_y
    return fitted.mT


@typed
def least_squares(batch: TaskBatch, relative_cutoff: float | None = None) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of the minimum-norm least-squares fit to each context; see `least_squares_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `relative_cutoff` is not a positive finite number.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(num_context=20).sample(4, stream, dtype=torch.float64)
        >>> torch.allclose(mesa.least_squares(exam), exam.query_y)  # more examples than inputs, no noise
        True
    """
    return predict_linear(least_squares_weights(batch, relative_cutoff), batch)


@typed
def ridge_regression_weights(batch: TaskBatch, penalty: float) -> Float[Tensor, "*ensemble task y x"]:
    """Ridge weights W = Y X (X^T X + penalty I)^-1, the minimiser of sum_i |W x_i - y_i|^2 + penalty |W|^2.

    With targets W x + noise, W's entries N(0, tau^2) and noise N(0, sigma^2), penalty = sigma^2 / tau^2 makes this the
    Bayes predictor (posterior mean). Note the unit: the penalty stands beside a *sum* over the context, not a mean.

    Args:
        batch: its context is used, its queries are not.
        penalty: a positive number, on the scale of X^T X.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `penalty` is not a positive finite number.

    Example:
        >>> tight = mesa.ridge_regression_weights(batch, penalty=1e6)
        >>> bool(tight.abs().max() < 1e-3)
        True
    """
    strength = positive_number("penalty", penalty)
    identity = torch.eye(batch.x_dim, dtype=batch.context_x.dtype, device=batch.context_x.device)
    regularised = batch.context_x.mT @ batch.context_x + strength * identity
    fitted: Tensor = torch.linalg.solve(regularised, batch.context_x.mT @ batch.context_y)
    return fitted.mT


@typed
def prefix_ridge_regression_weights(batch: TaskBatch, penalty: float) -> Float[Tensor, "*ensemble task context y x"]:
    """Ridge weights of every prefix of the context: the j-th are `ridge_regression_weights` of the first j examples.

    One example after the other, by the formula of Sherman and Morrison for the inverse R of X^T X + penalty I,

        R <- R - (R x)(R x)^T / (1 + x^T R x),    W <- W + (y - W x) (R x)^T,  the second with the new R,

    known as recursive least squares: what attention behind a causal mask would have to compute to fit each prefix. No
    matrix is inverted.

    Args:
        batch: its context is used, in the order in which it stands; its queries are not.
        penalty: a positive number, on the scale of X^T X.

    Returns:
        Shape (*ensemble, task, context, y, x).

    Raises:
        TypeError, ValueError: `penalty` is not a positive finite number.

    Example:
        >>> every = mesa.prefix_ridge_regression_weights(batch, penalty=0.1)
        >>> torch.allclose(every[:, -1], mesa.ridge_regression_weights(batch, penalty=0.1))
        True
    """
    strength = positive_number("penalty", penalty)
    identity = torch.eye(batch.x_dim, dtype=batch.context_x.dtype, device=batch.context_x.device)
    leading = batch.context_x.shape[:-2]
    inverse = (identity / strength).expand(*leading, -1, -1)
    weights = batch.context_x.new_zeros(*leading, batch.y_dim, batch.x_dim)
    prefixes = []
    for x, y in zip(batch.context_x.unbind(-2), batch.context_y.unbind(-2), strict=True):
        moved = inverse @ x.unsqueeze(-1)  # R x, a column
        inverse = inverse - moved @ moved.mT / (1 + x.unsqueeze(-2) @ moved)
        residual = y.unsqueeze(-1) - weights @ x.unsqueeze(-1)
        weights = weights + residual @ (inverse @ x.unsqueeze(-1)).mT
        prefixes.append(weights)
    return torch.stack(prefixes, dim=-3)


@typed
def ridge_regression(batch: TaskBatch, penalty: float) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of ridge regression on each context; see `ridge_regression_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `penalty` is not a positive finite number.

    Example:
        >>> tuple(mesa.ridge_regression(batch, penalty=0.1).shape)
        (4, 1, 1)
    """
    return predict_linear(ridge_regression_weights(batch, penalty), batch)
