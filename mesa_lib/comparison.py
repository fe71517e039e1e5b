"""How alike two in-context learners are, by the three measures of the paper's Figure 2, and how good one is."""

import warnings
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.learners import Learner
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import broadcastable, floating_tensor, positive_number


@dataclass(frozen=True, eq=False)
class Comparison:
    """Means over tasks and queries, one number per ensemble member; every field has shape (*ensemble).

    Attributes:
        prediction_difference: mean Euclidean norm of the difference of predictions, in units of y.
        sensitivity_difference: mean Frobenius norm of the difference of sensitivities d prediction / d x_q, in units
            of y / x; the paper calls it "model difference".
        sensitivity_cosine: mean cosine between the two sensitivities, as vectors of y * x numbers; without unit.
    """

    prediction_difference: Float[Tensor, "*ensemble"]
    sensitivity_difference: Float[Tensor, "*ensemble"]
    sensitivity_cosine: Float[Tensor, "*ensemble"]


def sensitivity(learner: Learner, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y x"]:
    """Derivative of the prediction in x_q, by automatic differentiation; each query is differentiated by itself.

    Args:
        learner: differentiable in query_x; its ensemble axes must be those of `batch`.
        batch: where to differentiate.

    Returns:
        Shape (*ensemble, task, query, y, x). For a linear learner it is V, the implicit weights, at every query.

    Raises:
        ValueError: the predictions do not have the shape of query_y, or do not depend on query_x through autograd.
    """
    query_x = batch.query_x.detach().clone().requires_grad_()
    prediction = learner(replace(batch, query_x=query_x))
    if prediction.shape != batch.query_y.shape:
        raise ValueError(
            f"learner: expected predictions of shape {tuple(batch.query_y.shape)}, that of query_y, "
            f"got {tuple(prediction.shape)}"
        )
    if not prediction.requires_grad:
        raise ValueError("learner: expected predictions that autograd can differentiate in query_x, got constants")
    rows = [torch.autograd.grad(prediction[..., k].sum(), query_x, retain_graph=True)[0] for k in range(batch.y_dim)]
    return torch.stack(rows, dim=-2)


def compare(learner: Learner, reference: Learner, batch: TaskBatch) -> Comparison:
    """Compare two learners on the same tasks.

    Args:
        learner: any learner, an ensemble or not.
        reference: any other; the ensemble axes of the two broadcast.
        batch: the tasks. Without ensemble axes every member sees the same ones.

    Returns:
        A Comparison, one number per ensemble member.

    Raises:
        ValueError: a learner's predictions do not fit the batch's queries or those of the other.
    """
    with torch.no_grad():
        ours, theirs = learner(batch), reference(batch)
    for name, prediction in (("learner", ours), ("reference", theirs)):
        if prediction.shape[-3:] != batch.query_y.shape[-3:]:
            raise ValueError(
                f"{name}: expected predictions that end in {tuple(batch.query_y.shape[-3:])}, the shape of query_y, "
                f"got {tuple(prediction.shape)}"
            )
    broadcastable("learner", ours.shape[:-3], "reference", theirs.shape[:-3])
    ensemble = (ours - theirs).shape[:-3]
    missing = len(ensemble) - (batch.query_x.dim() - 3)
    everyone = batch.expand(*ensemble[:missing])
    our_slopes = sensitivity(_broadcast(learner, everyone), everyone)
    their_slopes = sensitivity(_broadcast(reference, everyone), everyone)
    over_tasks_and_queries = (-1, -2)
    return Comparison(
        (ours - theirs).norm(dim=-1).mean(over_tasks_and_queries),
        (our_slopes - their_slopes).flatten(-2).norm(dim=-1).mean(over_tasks_and_queries),
        torch.cosine_similarity(our_slopes.flatten(-2), their_slopes.flatten(-2), dim=-1).mean(over_tasks_and_queries),
    )


def _broadcast(learner: Learner, batch: TaskBatch) -> Learner:
    return lambda given: learner(given).expand(batch.query_y.shape)


@dataclass(frozen=True, eq=False)
class LossSummary:
    """Losses of many tasks, in numbers that a few diverging tasks cannot spoil; every field has shape (*ensemble).

    Attributes:
        median: over tasks.
        capped_mean: mean of min(loss, cap); a loss that is not a number counts as the cap.
        mean: the plain mean, infinite where some loss is not finite; see `summarize_losses` for the warning.
        divergent_share: share of tasks whose loss is not finite or more than ten times the cap.
    """

    median: Float[Tensor, "*ensemble"]
    capped_mean: Float[Tensor, "*ensemble"]
    mean: Float[Tensor, "*ensemble"]
    divergent_share: Float[Tensor, "*ensemble"]


def summarize_losses(
    losses: Float[Tensor, "*ensemble task"], cap: float, *, divergence_expected: bool = False
) -> LossSummary:
    """Median, capped mean, mean and divergent share of the losses of many tasks.

    A deep network of linear attention is a polynomial of high degree in its context: on the rare context whose largest
    eigenvalue exceeds what the weights allow it errs by any power of ten, and the mean over tasks says nothing else.

    Args:
        losses: one loss a task, half-MSE, shape (*ensemble, task), as from `expected_task_losses`.
        cap: the most that one task may count in the capped mean; the loss of predicting zero (`zero_loss`) is natural.
        divergence_expected: whether the caller knows and shows that tasks diverge, so that no warning is needed.

    Returns:
        A LossSummary.

    Raises:
        TypeError, ValueError: `losses` is no floating-point tensor with at least one task, or `cap` is not positive.

    Warns:
        RuntimeWarning: some tasks diverge; the message has their share.
    """
    ceiling = positive_number("cap", cap)
    if floating_tensor("losses", losses, min_dims=1).shape[-1] == 0:
        raise ValueError(f"losses: expected at least one task, got shape {tuple(losses.shape)}")
    finite = torch.nan_to_num(losses.detach(), nan=float("inf"), posinf=float("inf"))
    divergent = (finite > 10 * ceiling).to(losses.dtype).mean(-1)
    if bool((divergent > 0).any()) and not divergence_expected:
        warnings.warn(
            f"{float(divergent.max()):.2%} of the tasks diverge (loss not finite, or above ten times {ceiling:.3g}): "
            "look at the median and the capped mean",
            RuntimeWarning,
            stacklevel=2,
        )
    return LossSummary(finite.median(-1).values, finite.clamp(max=ceiling).mean(-1), finite.mean(-1), divergent)
