"""The best gradient-like step on wave tasks, exactly: what a block of MLP and attention can hope for.

A wave a w(x + phi) with finitely many harmonics is linear in the features (sin jx, cos jx), with coefficients c that
depend on a and phi. So wave tasks are linear tasks after all, in features that the MLP has to find, whose teachers c
have a certain mean and covariance. A step from f_0 with a preconditioner Gamma predicts

    f(x_q) = f_0(x_q) + (1/N) sum_i r_i phi(x_i)^T Gamma phi(x_q),    r_i = y_i - f_0(x_i),

and its expected loss is a parabola in Gamma, whose coefficients are moments of phi(x) and of c. All are computed by
quadrature; no task is drawn.
"""

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from scipy.special import roots_legendre
from torch import Tensor

from mesa_lib.features import Features
from mesa_lib.tasks import SineTasks
from mesa_lib.validation import finite_tensor, positive_integer, typed

_NODES = 200
"""Of the Gauss-Legendre rule; exact to rounding for products of waves of up to some thirty periods in all."""


@typed
def wave_features(tasks: SineTasks) -> Features:
    """phi(x) = (sin jx, cos jx) for every harmonic j of the tasks' wave, in this order.

    Args:
        tasks: with a wave of finitely many harmonics.

    Returns:
        Features: x of shape (..., 1) -> (..., feature).

    Raises:
        ValueError: the wave has infinitely many harmonics.

    Example:
        >>> features = mesa.wave_features(mesa.SineTasks())
        >>> x = torch.linspace(-1, 1, 3, dtype=torch.float64)[:, None]
        >>> tuple(features(x).shape)
        (3, 2)
    """
    multiples = [multiple for multiple, _ in tasks.harmonics]

    def features(x: Tensor) -> Tensor:
        return torch.cat([turn(multiple * x) for multiple in multiples for turn in (torch.sin, torch.cos)], dim=-1)

    return features


@dataclass(frozen=True, eq=False)
class WaveStep:
    """The best step on wave tasks, in the features of `wave_features`; all in float64.

    Attributes:
        start: coefficients of f_0, the mean of c, shape (feature).
        gamma: Gamma, with 1/N beside the sum over the context; shape (feature, feature).
        loss: the expected query loss, half-MSE.

    Example:
        >>> tuple(mesa.best_wave_step(mesa.SineTasks()).gamma.shape)
        (2, 2)
    """

    start: Float[Tensor, "feature"]
    gamma: Float[Tensor, "feature feature"]
    loss: float


@dataclass(frozen=True)
class _Moments:
    """What the loss depends on: mean and covariance of c, E phi phi^T, and E A C A + sigma^2 E A / N for A = mean."""

    mean: Tensor
    covariance: Tensor
    second: Tensor
    fourth: Tensor


@typed
def wave_coefficients(tasks: SineTasks) -> tuple[Float[Tensor, "feature"], Float[Tensor, "feature feature"]]:
    """Mean and covariance, over tasks, of the coefficients c in y = c . phi(x).

    For a harmonic j of weight w the two coefficients are a w cos(j phi), of sin jx, and a w sin(j phi), of cos jx.

    Args:
        tasks: with a wave of finitely many harmonics.

    Returns:
        The mean, shape (feature), and the covariance, shape (feature, feature), in float64.

    Raises:
        ValueError: the wave has infinitely many harmonics.

    Example:
        >>> mean, second_moment = mesa.wave_coefficients(mesa.SineTasks())
        >>> mean.shape[0] == second_moment.shape[0]
        True
    """
    heights, height_shares = _nodes(*tasks.amplitude)
    shifts, shift_shares = _nodes(*tasks.phase)
    if tasks.tied:
        shares = shift_shares
    else:
        heights, shifts = heights[:, None].expand(-1, _NODES), shifts.expand(_NODES, -1)
        shares = height_shares[:, None] * shift_shares
    parts = [
        heights * weight * turn(multiple * shifts) for multiple, weight in tasks.harmonics for turn in (_COS, _SIN)
    ]
    coefficients = torch.stack(parts, dim=-1).flatten(0, -2)
    shares = shares.flatten()
    mean = shares @ coefficients
    centred = coefficients - mean
    return mean, (shares[:, None] * centred).mT @ centred


_COS, _SIN = torch.cos, torch.sin


def _nodes(low: float, high: float) -> tuple[Tensor, Tensor]:
    """Points of [low, high] and their shares, which sum to one."""
    places, weights = _rule()
    return low + (high - low) * (places + 1) / 2, weights / 2


@cache
def _rule() -> tuple[Tensor, Tensor]:
    places, weights = roots_legendre(_NODES)
    return torch.from_numpy(places), torch.from_numpy(weights)


def _moments(tasks: SineTasks) -> _Moments:
    mean, covariance = wave_coefficients(tasks)
    places, shares = _nodes(-tasks.input_range, tasks.input_range)
    phi = wave_features(tasks)(places[:, None])
    weighted = shares[:, None] * phi
    second = weighted.mT @ phi
    spread = ((phi @ covariance) * phi).sum(-1, keepdim=True)  # phi^T C phi
    n = tasks.num_context
    fourth = (spread * weighted).mT @ phi / n + (n - 1) / n * second @ covariance @ second
    return _Moments(mean, covariance, second, fourth + tasks.noise_std**2 / n * second)


@typed
def best_wave_step(tasks: SineTasks, rank: int | None = None) -> WaveStep:
    """The step of least expected query loss, among all starts f_0 and preconditioners Gamma in the wave's features.

    f_0 is the mean function, and Gamma = (E[A C A] + sigma^2 E A / N)^-1 E[A] C, with A = (1/N) sum_i phi(x_i)
    phi(x_i)^T and C the covariance of c. The loss of another Gamma is higher by

        1/2 | (E phi phi^T)^(1/2) (Gamma - Gamma*)^T E[A C A]^(1/2) |^2,

    so that the best one of a given rank is a truncated singular value decomposition away.

    Args:
        tasks: with a wave of finitely many harmonics.
        rank: largest rank of Gamma; 1 is what the rank-one twin of the gradient step can do. No limit if absent.

    Returns:
        A WaveStep.

    Raises:
        TypeError, ValueError: the wave has infinitely many harmonics, or `rank` is not a positive integer.

    Example:
        >>> step = mesa.best_wave_step(mesa.SineTasks())
        >>> abs(mesa.wave_step_loss(mesa.SineTasks(), step.gamma) - step.loss) < 1e-9
        True
    """
    moments = _moments(tasks)
    gamma = torch.linalg.solve(moments.fourth, moments.second @ moments.covariance)
    if rank is not None:
        limit = positive_integer("rank", rank)
        before, after = _root(moments.fourth), _root(moments.second)
        left, values, right = torch.linalg.svd(before @ gamma @ after)
        values = torch.where(torch.arange(len(values)) < limit, values, 0.0)
        gamma = torch.linalg.solve(before, left @ (values[:, None] * right) @ torch.linalg.inv(after))
    return WaveStep(moments.mean, gamma, _loss(moments, gamma))


@typed
def wave_step_loss(tasks: SineTasks, gamma: Float[Tensor, "feature feature"]) -> float:
    """Expected query loss (half-MSE) of the step with a given Gamma from the mean function, exactly.

    Args:
        tasks: with a wave of finitely many harmonics; their num_context and noise_std are those of the test.
        gamma: shape (feature, feature), with 1/N beside the sum over the context.

    Returns:
        The loss.

    Raises:
        TypeError, ValueError: the wave has infinitely many harmonics, or `gamma` does not fit it.

    Example:
        >>> tasks = mesa.SineTasks()
        >>> step = mesa.best_wave_step(tasks)
        >>> mesa.wave_step_loss(tasks, step.gamma) < mesa.wave_step_loss(tasks, 0 * step.gamma)
        True
    """
    moments = _moments(tasks)
    finite_tensor("gamma", gamma, min_dims=2)
    if gamma.shape != moments.second.shape:
        raise ValueError(f"gamma: expected shape {tuple(moments.second.shape)}, got {tuple(gamma.shape)}")
    return _loss(moments, gamma.double())


def _loss(moments: _Moments, gamma: Tensor) -> float:
    crossed = gamma.mT @ moments.second @ moments.covariance
    error = moments.covariance - crossed - crossed.mT + gamma.mT @ moments.fourth @ gamma
    return 0.5 * float((moments.second * error).sum())


def _root(matrix: Tensor) -> Tensor:
    eigenvalues, basis = torch.linalg.eigh(matrix)
    root: Tensor = (basis * eigenvalues.sqrt()) @ basis.mT
    return root
