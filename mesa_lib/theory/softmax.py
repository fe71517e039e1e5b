"""What softmax heads can reach: the centred step in closed form, and finite scores by Monte Carlo.

Pairs of softmax heads come close to a gradient step whose inputs have lost c times their mean, with c = 1 and, with a
sink of weight s, c = N / (N + s). Its loss is exact here. At finite scores no formula is known, and the loss is a mean
over drawn contexts and queries, taken as a ratio to the gradient step's on the same draw, whose loss is exact.
Everything is half-MSE, as in `mesa_lib.theory.one_layer`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from torch import Tensor

from mesa_lib.tasks import LinearTasks, TaskBatch
from mesa_lib.theory.one_layer import optimal_eta, optimal_loss, zero_loss
from mesa_lib.validation import (
    finite_number,
    finite_numbers,
    non_negative_number,
    typed,
)


@typed
def centred_loss(tasks: LinearTasks, eta: float, centring: float = 1.0) -> float:
    """Exact half-MSE of the step W = (eta/N) sum_i y_i (x_i - c x_bar)^T, for independent coordinates.

    With H = I - (c/N) 1 1^T the step is (eta/N) Y H X for the context's rows Y and X, and

        L / L0 = 1 - 2 (eta m2 / N) t + (eta m2 / N)^2 (t^2 + (d + 1 + s) f + (kappa - 3) h),

    with s = sigma^2 / (m2 tau^2) and three numbers of H:

        t = tr H = N - c,    f = tr H^2 = N - 2c + c^2,    h = sum_i H_ii^2 = (N - c)^2 / N.

    It follows from E[Z^T H Z Z^T H Z] = (t^2 + (d + 1) f + (kappa - 3) h) I for a matrix Z of independent symmetric
    entries of variance 1 and kurtosis kappa: the pairs of equal entries give the first two terms, the fourth cumulant
    the last. With c = 0 it is `population_loss`. Derived in the book's chapter on softmax attention.

    Args:
        tasks: the distribution; its num_queries does not matter.
        eta: step size.
        centring: c, see `centred_gradient_descent`.

    Raises:
        TypeError, ValueError: `eta` or `centring` is not finite, or `tasks` have a covariance, a teacher's mean or a
            constant input.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> best = mesa.centred_loss(tasks, mesa.optimal_centred_eta(tasks))
        >>> abs(best - mesa.optimal_centred_loss(tasks)) < 1e-9
        True
    """
    signal, power = _centred_moments(tasks, centring)
    size = finite_number("eta", eta) * tasks.second_moment / tasks.num_context
    return zero_loss(tasks) * (1 - 2 * size * signal + size**2 * power)


@typed
def optimal_centred_eta(tasks: LinearTasks, centring: float = 1.0) -> float:
    """The step size of least `centred_loss`, (N / m2) t / (t^2 + (d + 1 + s) f + (kappa - 3) h), in units of 1/x^2.

    Raises:
        TypeError, ValueError: see `centred_loss`.

    Example:
        >>> mesa.optimal_centred_eta(mesa.LinearTasks()) > 0
        True
    """
    signal, power = _centred_moments(tasks, centring)
    return tasks.num_context / tasks.second_moment * signal / power


@typed
def optimal_centred_loss(tasks: LinearTasks, centring: float = 1.0) -> float:
    """The least `centred_loss`, L0 (1 - t^2 / (t^2 + (d + 1 + s) f + (kappa - 3) h)).

    For c = 1 and normal inputs it is L0 (d + 1 + s) / (N + d + s), the loss of a plain gradient step with one example
    fewer. Other inputs lose a little more or less than that.

    Raises:
        TypeError, ValueError: see `centred_loss`.

    Example:
        >>> tasks = mesa.LinearTasks()
        >>> mesa.optimal_centred_loss(tasks) > mesa.optimal_loss(tasks)  # an example's worth is lost
        True
    """
    signal, power = _centred_moments(tasks, centring)
    return zero_loss(tasks) * (1 - signal**2 / power)


def _centred_moments(tasks: LinearTasks, centring: float) -> tuple[float, float]:
    """The signal t of a step of unit size and its power t^2 + (d + 1 + s) f + (kappa - 3) h."""
    share, n = finite_number("centring", centring), tasks.num_context
    _isotropic(tasks)
    noise = tasks.noise_std**2 / (tasks.second_moment * tasks.teacher_scale**2)
    signal, spread, fourth = n - share, n - 2 * share + share**2, (n - share) ** 2 / n
    return signal, signal**2 + (tasks.x_dim + 1 + noise) * spread + (tasks.kurtosis - 3) * fourth


def _isotropic(tasks: LinearTasks) -> None:
    for name in ("input_covariance", "teacher_mean"):
        if getattr(tasks, name) is not None:
            raise ValueError(f"tasks.{name}: expected None, since the formulas are for isotropic tasks, got a matrix")
    if tasks.constant_input:
        raise ValueError("tasks.constant_input: expected False, since the formulas are for isotropic tasks, got True")


@dataclass(frozen=True)
class SoftmaxHeads:
    """Softmax heads whose scores are beta x . x_q and whose values are the targets, and how good they are together.

    Attributes:
        betas: the size of each head's scores, in units of 1/x^2.
        outputs: what each head's mean of the targets is multiplied by; best for these betas.
        loss: their half-MSE.
        standard_error: of the loss, from the finite sample.

    Example:
        >>> heads = mesa.softmax_heads(tasks, batch, betas=[1.0, -1.0])
        >>> heads.betas
        (1.0, -1.0)
    """

    betas: tuple[float, ...]
    outputs: tuple[float, ...]
    loss: float
    standard_error: float


@typed
def softmax_heads(tasks: LinearTasks, batch: TaskBatch, betas: Sequence[float], sink: float = 0.0) -> SoftmaxHeads:
    """The least loss of softmax heads with W_KQ = beta_h I (on x) and any outputs, sum_h a_h sum_i softmax_i y_i.

    Given the inputs, the mean over teacher and noise is taken exactly: head h's mean of the inputs, m_h, stands for its
    prediction W m_h, and the loss is 1/2 tau^2 E|sum_h a_h m_h - x_q|^2 for each target, plus what the noise adds. The
    outputs a minimise its sample mean. The mean over the inputs is the sample's, times the exact loss of the best
    gradient step over that step's loss on the same sample. So chance in the draw of easy or hard contexts cancels to
    a large part.

    Args:
        tasks: the distribution that the batch was drawn from; gives tau, sigma and the exact loss.
        batch: only its inputs are looked at; contexts are independent draws, queries of one context are not.
        betas: beta_h, one a head.
        sink: weight of a sink that all heads share, see `softmax_attention`.

    Returns:
        SoftmaxHeads.

    Raises:
        TypeError, ValueError: `betas` are not finite numbers, `sink` is negative, `tasks` have a covariance, a
            teacher's mean or a constant input, or other sizes than `batch`.

    Example:
        >>> heads = mesa.softmax_heads(tasks, batch, betas=[1.0])
        >>> len(heads.outputs)
        1
    """
    sharpness, extra = finite_numbers("betas", betas), non_negative_number("sink", sink)
    _isotropic(tasks)
    if (batch.x_dim, batch.num_context) != (tasks.x_dim, tasks.num_context):
        raise ValueError(
            f"batch: expected {tasks.num_context} examples of {tasks.x_dim} inputs, as in tasks, "
            f"got {batch.num_context} of {batch.x_dim}"
        )
    scores = batch.query_x @ batch.context_x.mT
    heads = torch.stack([_response(tasks, batch, _shares(beta * scores, extra)) for beta in sharpness])
    target = torch.nn.functional.pad(tasks.teacher_scale * batch.query_x, (0, heads.shape[-1] - tasks.x_dim))
    outputs = _best_outputs(heads, target)
    step = _response(tasks, batch, optimal_eta(tasks) / tasks.num_context * scores)
    errors = _squared_error(torch.einsum("h,h...->...", outputs.to(heads), heads), target)
    control = _squared_error(step, target)
    ratio = errors.mean() / control.mean()
    spread = (errors - ratio * control).std() / (control.mean() * math.sqrt(len(errors)))
    exact = optimal_loss(tasks)
    return SoftmaxHeads(sharpness, tuple(outputs.tolist()), float(exact * ratio), float(exact * spread))


@typed
def best_softmax_heads(
    tasks: LinearTasks, batch: TaskBatch, num_heads: Literal[1, 2], sink: float = 0.0
) -> SoftmaxHeads:
    """One softmax head, or a pair beta and -beta, with the beta of least loss on a batch; see `softmax_heads`.

    Two heads with free betas come out as such a pair: turning x_q around turns the best answer around, and a pair does
    that by itself. A thousand contexts place beta well enough, since the loss is flat around it.

    Args:
        tasks: the distribution that the batch was drawn from.
        batch: only its inputs are looked at.
        num_heads: 1 or 2.
        sink: weight of a sink that all heads share.

    Returns:
        SoftmaxHeads.

    Raises:
        TypeError, ValueError: `num_heads` is neither 1 nor 2; otherwise see `softmax_heads`.

    Example:
        >>> exam = tasks.sample(200, mesa.generator(0, "validation tasks"), dtype=torch.float64)
        >>> len(mesa.best_softmax_heads(tasks, exam, num_heads=1).betas)
        1
    """
    if num_heads not in (1, 2):
        raise ValueError(f"num_heads: expected 1 or 2, got {num_heads!r}")

    def heads(log_size: float) -> SoftmaxHeads:
        beta = math.exp(log_size) / (tasks.second_moment * math.sqrt(tasks.x_dim))  # in standard deviations of x . x_q
        return softmax_heads(tasks, batch, (beta, -beta)[:num_heads], sink)

    found = minimize_scalar(
        lambda size: heads(size).loss, bounds=(-4.0, 2.0), method="bounded", options={"xatol": 0.01}
    )
    return heads(float(found.x))


def _shares(scores: Tensor, sink: float) -> Float[Tensor, "... query context"]:
    """The softmax of scores over the context, with a sink of some weight."""
    if sink == 0:
        return scores.softmax(-1)
    extra = torch.full_like(scores[..., :1], math.log(sink))
    return torch.cat([scores, extra], dim=-1).softmax(-1)[..., :-1]


def _response(tasks: LinearTasks, batch: TaskBatch, weights: Tensor) -> Float[Tensor, "task query features"]:
    """What is left of sum_i w_i y_i, teacher and noise averaged out: tau sum_i w_i x_i, then sigma w."""
    mean = tasks.teacher_scale * weights @ batch.context_x
    return mean if tasks.noise_std == 0 else torch.cat([mean, tasks.noise_std * weights], dim=-1)


def _best_outputs(heads: Float[Tensor, "head task query features"], target: Tensor) -> Float[Tensor, "head"]:
    """The multiples of the heads whose sum is nearest to the target, by the normal equations, in float64."""
    gram = torch.einsum("h...f,k...f->hk", heads.double(), heads.double())
    right = torch.einsum("h...f,...f->h", heads.double(), target.double())
    solution: Tensor = torch.linalg.lstsq(gram, right[:, None]).solution[:, 0]
    return solution


def _squared_error(prediction: Tensor, target: Tensor) -> Float[Tensor, "task"]:
    """The squared error of each context, a mean over its queries, in float64."""
    return (prediction - target).square().sum(-1).double().mean(-1)
