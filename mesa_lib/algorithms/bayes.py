"""The Bayes predictor of linear regression, with known noise and with noise of an unknown level.

A task draws W with independent entries N(0, tau^2) and shows y_i = W x_i + sigma N(0, 1). Nothing here descends or
iterates: the answers are integrals over W, which for normal distributions are solutions of linear equations.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.algorithms.least_squares import least_squares_weights, ridge_regression_weights
from mesa_lib.learners import predict_linear
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_numbers, non_negative_number, positive_number


def posterior_mean_weights(
    batch: TaskBatch, noise_std: float, teacher_scale: float = 1.0
) -> Float[Tensor, "*ensemble task y x"]:
    """E[W | context] for W ~ N(0, tau^2) and noise of a known level sigma: the Bayes predictor of squared loss.

    It is ridge regression with penalty sigma^2 / tau^2, and without noise the minimum-norm least-squares fit.

    Args:
        batch: its context is used, its queries are not.
        noise_std: sigma, >= 0.
        teacher_scale: tau.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `noise_std` is negative, `teacher_scale` is not positive, or one is not finite.

    Example:
        >>> weights = mesa.posterior_mean_weights(batch, noise_std=0.5)
        >>> torch.allclose(mesa.predict_linear(weights, batch), mesa.posterior_mean(batch, noise_std=0.5))
        True
    """
    sigma, tau = non_negative_number("noise_std", noise_std), positive_number("teacher_scale", teacher_scale)
    if sigma == 0:
        return least_squares_weights(batch)
    return ridge_regression_weights(batch, (sigma / tau) ** 2)


def posterior_mean(
    batch: TaskBatch, noise_std: float, teacher_scale: float = 1.0
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of the Bayes predictor with a known level of noise; see `posterior_mean_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `posterior_mean_weights`.

    Example:
        >>> exact = mesa.posterior_mean(batch, noise_std=0.5)
        >>> torch.allclose(exact, mesa.ridge_regression(batch, penalty=0.25))  # the ridge of sigma^2
        True
    """
    return predict_linear(posterior_mean_weights(batch, noise_std, teacher_scale), batch)


def noise_posterior(
    batch: TaskBatch,
    noise_stds: Sequence[float],
    prior: Sequence[float] | None = None,
    teacher_scale: float = 1.0,
) -> Float[Tensor, "*ensemble task level"]:
    """How probable each level of noise is, given a context: p(sigma_k | X, Y).

    Given sigma_k, every target's column of Y is N(0, tau^2 X X^T + sigma_k^2 I), with X X^T here the (context, context)
    matrix of inner products; the posterior is the prior times these densities, normalised.

    Args:
        batch: its context is used, its queries are not.
        noise_stds: the levels sigma_k, all > 0.
        prior: their probabilities before the context is seen, up to a factor; equal by default.
        teacher_scale: tau.

    Returns:
        Shape (*ensemble, task, level); sums to one along the last axis.

    Raises:
        TypeError, ValueError: a level, a prior probability or `teacher_scale` that is not positive and finite, or not
            one prior probability for each level.

    Example:
        >>> shares = mesa.noise_posterior(batch, noise_stds=[0.1, 1.0])
        >>> torch.allclose(shares.sum(-1), torch.ones(4, dtype=torch.float64))
        True
    """
    levels = _positive_numbers("noise_stds", noise_stds)
    weights = (1.0,) * len(levels) if prior is None else _positive_numbers("prior", prior)
    if len(weights) != len(levels):
        raise ValueError(f"prior: expected {len(levels)} numbers, one for each level of noise, got {len(weights)}")
    tau = positive_number("teacher_scale", teacher_scale)
    gram = tau**2 * batch.context_x @ batch.context_x.mT
    identity = torch.eye(batch.num_context, dtype=gram.dtype, device=gram.device)
    logs = []
    for sigma, weight in zip(levels, weights, strict=True):
        factor = torch.linalg.cholesky(gram + sigma**2 * identity)
        whitened = torch.linalg.solve_triangular(factor, batch.context_y, upper=False)
        log_root = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)  # half the log of the determinant
        density = -0.5 * whitened.square().sum((-1, -2)) - batch.y_dim * log_root
        logs.append(density + torch.tensor(weight, dtype=gram.dtype).log())
    return torch.stack(logs, dim=-1).softmax(-1)


def noise_mixture_weights(
    batch: TaskBatch,
    noise_stds: Sequence[float],
    prior: Sequence[float] | None = None,
    teacher_scale: float = 1.0,
) -> Float[Tensor, "*ensemble task y x"]:
    """E[W | context] when the noise has one of several levels: ridge regressions, weighted by the levels' posterior.

        W = sum_k p(sigma_k | X, Y) W_ridge(sigma_k^2 / tau^2)

    The Bayes predictor of the tasks with mixed noise in Bai et al. (2023). Unlike a ridge regression, or any fixed
    number of gradient steps, it is no linear function of the targets: they tell it how much to shrink.

    Args:
        batch: its context is used, its queries are not.
        noise_stds: the levels sigma_k, all > 0.
        prior: their probabilities, up to a factor; equal by default.
        teacher_scale: tau.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: see `noise_posterior`.

    Example:
        >>> weights = mesa.noise_mixture_weights(batch, noise_stds=[0.1, 1.0])
        >>> torch.allclose(mesa.predict_linear(weights, batch), mesa.noise_mixture(batch, noise_stds=[0.1, 1.0]))
        True
    """
    posterior = noise_posterior(batch, noise_stds, prior, teacher_scale)
    fits = [posterior_mean_weights(batch, sigma, teacher_scale) for sigma in noise_stds]
    return (posterior[..., None, None] * torch.stack(fits, dim=-3)).sum(-3)


def noise_mixture(
    batch: TaskBatch,
    noise_stds: Sequence[float],
    prior: Sequence[float] | None = None,
    teacher_scale: float = 1.0,
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of the Bayes predictor with several levels of noise; see `noise_mixture_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `noise_posterior`.

    Example:
        >>> one = mesa.noise_mixture(batch, noise_stds=[0.5])
        >>> torch.allclose(one, mesa.posterior_mean(batch, noise_std=0.5))
        True
    """
    return predict_linear(noise_mixture_weights(batch, noise_stds, prior, teacher_scale), batch)


def _positive_numbers(name: str, values: object) -> tuple[float, ...]:
    numbers = finite_numbers(name, values)
    return tuple(positive_number(f"{name}[{index}]", number) for index, number in enumerate(numbers))
