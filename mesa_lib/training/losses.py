"""Losses on the query, per ensemble member. Half-MSE everywhere: 1/2 |error|^2, summed over targets."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from mesa_lib.learners import Learner, LinearLearner
from mesa_lib.tasks import LinearTasks, TaskBatch

Loss = Callable[[Learner, TaskBatch, LinearTasks], Float[Tensor, "*ensemble"]]
"""(learner, batch, the distribution that it was drawn from) -> one number per ensemble member."""


def sampled_query_loss(
    learner: Learner, batch: TaskBatch, tasks: LinearTasks | None = None
) -> Float[Tensor, "*ensemble"]:
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
    """
    prediction = learner(batch)
    if prediction.shape[-3:] != batch.query_y.shape[-3:]:
        raise ValueError(
            f"learner: expected predictions that end in {tuple(batch.query_y.shape[-3:])}, the shape of query_y, "
            f"got {tuple(prediction.shape)}"
        )
    return 0.5 * (prediction - batch.query_y).square().sum(-1).mean((-1, -2))


def expected_query_loss(learner: Learner, batch: TaskBatch, tasks: LinearTasks) -> Float[Tensor, "*ensemble"]:
    """Expected half-MSE over all queries, exactly: mean over tasks of 1/2 tr((V - W) E[x_q x_q^T] (V - W)^T).

    V are the learner's implicit weights and W the task's teacher. No query is sampled, so the gradient has no noise
    from queries: it is the mean of what `sampled_query_loss` gives on the same contexts.

    Args:
        learner: a `LinearLearner`, one whose prediction is V x_q.
        batch: must carry its teachers; its queries are not looked at.
        tasks: gives E[x_q x_q^T].

    Returns:
        Shape (*ensemble).

    Raises:
        TypeError: `learner` has no `implicit_weights`.
        ValueError: `batch` has no teacher, or other input dimensions than `tasks`.
    """
    if not isinstance(learner, LinearLearner):
        raise TypeError(
            f"learner: expected one with implicit_weights (linear in the query), got {type(learner).__name__}; "
            "use sampled_query_loss"
        )
    if batch.teacher is None:
        raise ValueError("batch: expected a batch with teachers, as LinearTasks.sample draws it, got teacher=None")
    if batch.x_dim != tasks.x_dim:
        raise ValueError(f"tasks: expected x_dim = {batch.x_dim}, that of the batch, got {tasks.x_dim}")
    error = learner.implicit_weights(batch) - batch.teacher
    moment = tasks.query_moment.to(error)
    return 0.5 * ((error @ moment) * error).sum((-1, -2)).mean(-1)
