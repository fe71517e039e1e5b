"""Losses on the query, per ensemble member. Half-MSE everywhere: 1/2 |error|^2, summed over targets."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.learners import Learner, LinearLearner
from mesa_lib.tasks import LinearTasks, TaskBatch, Tasks
from mesa_lib.validation import (
    positive_number,
    typed,
)

Loss = Callable[[Learner, TaskBatch, Tasks], Float[Tensor, "*ensemble"]]
"""(learner, batch, the distribution that it was drawn from) -> one number per ensemble member."""


@typed
def sampled_query_loss(learner: Learner, batch: TaskBatch, tasks: Tasks | None = None) -> Float[Tensor, "*ensemble"]:
    """Half-MSE on the batch's queries, mean over tasks and queries of 1/2 |prediction - y_q|^2: the paper's loss.

    (Its equation 5 has no factor 1/2; its released code has one, and so have all its figures.)

    Args:
        learner: predicts (*ensemble, task, query, y).
        batch: its query_y are the targets; its ensemble axes may be absent.
        tasks: not needed; here so that all losses are called alike.

    Returns:
        Shape (*ensemble).

    Raises:
        ValueError: the predictions' last three axes are not those of query_y.

    Example:
        >>> network = mesa.FreeTransformer([layer])
        >>> half_mse = ((network(batch) - batch.query_y) ** 2).sum(-1).mean() / 2
        >>> torch.allclose(mesa.sampled_query_loss(network, batch), half_mse)
        True
    """
    prediction = learner(batch)
    if prediction.shape[-3:] != batch.query_y.shape[-3:]:
        raise ValueError(
            f"learner: expected predictions that end in {tuple(batch.query_y.shape[-3:])}, the shape of query_y, "
            f"got {tuple(prediction.shape)}"
        )
    return 0.5 * (prediction - batch.query_y).square().sum(-1).mean((-1, -2))


@typed
def expected_task_losses(learner: Learner, batch: TaskBatch, tasks: Tasks) -> Float[Tensor, "*ensemble task"]:
    """Expected half-MSE over all queries of every task by itself: 1/2 tr((V - W) E[x_q x_q^T] (V - W)^T), exactly.

    V are the learner's implicit weights and W the task's teacher. No query is sampled. For deep networks look at these
    through `summarize_losses`: a few tasks can carry all of their mean.

    Args:
        learner: a `LinearLearner`, one whose prediction is V x_q.
        batch: must carry its teachers; its queries are not looked at.
        tasks: gives E[x_q x_q^T]; must be `LinearTasks`.

    Returns:
        Shape (*ensemble, task).

    Raises:
        TypeError: `learner` has no `implicit_weights`, or `tasks` are not linear.
        ValueError: `batch` has no teacher, other input dimensions than `tasks`, or teachers of another shape than the
            learner's implicit weights.

    Example:
        >>> losses = mesa.expected_task_losses(mesa.FreeTransformer([layer]), batch, tasks)
        >>> torch.allclose(losses.mean(-1), mesa.expected_query_loss(mesa.FreeTransformer([layer]), batch, tasks))
        True
    """
    if not isinstance(learner, LinearLearner):
        raise TypeError(
            f"learner: expected one with implicit_weights (linear in the query), got {type(learner).__name__}; "
            "use sampled_query_loss"
        )
    if not isinstance(tasks, LinearTasks):
        raise TypeError(f"tasks: expected LinearTasks, got {type(tasks).__name__}; use sampled_query_loss")
    if batch.teacher is None:
        raise ValueError("batch: expected a batch with teachers, as LinearTasks.sample draws it, got teacher=None")
    moment = tasks.query_moment
    if batch.x_dim != len(moment):
        raise ValueError(f"tasks: expected x_dim = {batch.x_dim}, that of the batch, got {len(moment)}")
    weights = learner.implicit_weights(batch)
    if weights.shape[-3:] != batch.teacher.shape[-3:]:  # or else a broadcast would hide it
        raise ValueError(
            f"learner: expected implicit weights that end in {tuple(batch.teacher.shape[-3:])}, the shape of the "
            f"teachers, got {tuple(weights.shape)}"
        )
    error = weights - batch.teacher
    moment = moment.to(error)
    return 0.5 * ((error @ moment) * error).sum((-1, -2))


@typed
def expected_query_loss(learner: Learner, batch: TaskBatch, tasks: Tasks) -> Float[Tensor, "*ensemble"]:
    """Expected half-MSE over all queries, exactly: the mean over tasks of `expected_task_losses`.

    Its gradient has no noise from queries: it is the mean of what `sampled_query_loss` gives on the same contexts.

    Args:
        learner: a `LinearLearner`, one whose prediction is V x_q.
        batch: must carry its teachers; its queries are not looked at.
        tasks: gives E[x_q x_q^T].

    Returns:
        Shape (*ensemble).

    Raises:
        TypeError, ValueError: see `expected_task_losses`.

    Example:
        >>> network = mesa.FreeTransformer([layer])
        >>> loss = mesa.expected_query_loss(network, batch, tasks)
        >>> loss.ndim, bool(loss > 0)
        (0, True)
    """
    return expected_task_losses(learner, batch, tasks).mean(-1)


def clamped_query_loss(cap: float) -> Loss:
    """`expected_query_loss` in which no task counts more than `cap`: the mean of min(loss of a task, cap).

    A deep network of linear attention is a polynomial of high degree in its context, and on a rare context it errs by
    many powers of ten. In the plain mean one such task is the whole gradient, and one step on it can throw a network
    away that is good everywhere else. Here a task above the cap has no gradient. So that training can begin, the cap
    must exceed what an untrained network loses: the loss of predicting zero (`zero_loss`) or more.

    Args:
        cap: half-MSE.

    Returns:
        A Loss. A task whose loss is not a number counts as the cap.

    Raises:
        TypeError, ValueError: `cap` is not a positive finite number. The Loss itself refuses what
            `expected_task_losses` refuses.

    Example:
        >>> loss = mesa.clamped_query_loss(cap=1.0)
        >>> bool(loss(mesa.FreeTransformer([layer]), batch, tasks) <= 1.0)
        True
    """
    ceiling = positive_number("cap", cap)

    def loss(learner: Learner, batch: TaskBatch, tasks: Tasks) -> Float[Tensor, "*ensemble"]:
        losses = expected_task_losses(learner, batch, tasks)
        return torch.nan_to_num(losses, nan=ceiling).clamp(max=ceiling).mean(-1)

    return loss


def geman_mcclure_query_loss(scale: float) -> Loss:
    """The mean over tasks of l / (1 + l / scale), with l as in `expected_task_losses`: the loss of Geman and McClure.

    It is l for a task that loses little, and at most `scale` for one that loses much: a task counts in the gradient
    with the weight 1 / (1 + l / scale)^2. `clamped_query_loss` keeps the few tasks that lose all from ruling a step;
    this one keeps the few that lose most from ruling it. In the mean over tasks these are the same few of every batch
    that a deep network can do little about, and their noise sets how small the steps must be. Unlike with a cap no task
    is without a gradient, so that training can begin whatever the scale.

    Geman and McClure, "Statistical methods for tomographic image reconstruction" (1987), as commonly cited: of an error
    e it is e^2 / (e^2 + s^2), up to a factor; here e^2 / 2 = l and s^2 = 2 scale.

    Args:
        scale: half-MSE; the loss of a task whose weight in the gradient is a quarter.

    Returns:
        A Loss, in half-MSE. A task whose loss is not a finite number counts as `scale`.

    Raises:
        TypeError, ValueError: `scale` is not a positive finite number. The Loss itself refuses what
            `expected_task_losses` refuses.

    Example:
        >>> network = mesa.FreeTransformer([layer])
        >>> losses = mesa.expected_task_losses(network, batch, tasks)
        >>> saturated = mesa.geman_mcclure_query_loss(scale=0.1)(network, batch, tasks)
        >>> torch.allclose(saturated, (losses / (1 + losses / 0.1)).mean(-1))
        True
    """
    limit = positive_number("scale", scale)

    def loss(learner: Learner, batch: TaskBatch, tasks: Tasks) -> Float[Tensor, "*ensemble"]:
        losses = expected_task_losses(learner, batch, tasks)
        return torch.nan_to_num(losses / (1 + losses / limit), nan=limit).mean(-1)  # infinity over infinity: the limit

    return loss
