"""How alike two in-context learners are: the three measures of the paper's Figure 2."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.learners import Learner
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import broadcastable


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
