"""How alike two in-context learners are, by the measures of the paper and of others, and how good one is."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mesa_lib.features import Features, features_once
from mesa_lib.learners import Learner
from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    broadcastable,
    finite_tensor,
    floating_tensor,
    non_negative_number,
    positive_integer,
    positive_number,
    typed,
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Means over tasks and queries, one number per ensemble member; every field has shape (*ensemble).

    Attributes:
        prediction_difference: mean Euclidean norm of the difference of predictions, in units of y.
        sensitivity_difference: mean Frobenius norm of the difference of sensitivities d prediction / d x_q, in units
            of y / x; the paper calls it "model difference".
        sensitivity_cosine: mean cosine between the two sensitivities, as vectors of y * x numbers; without unit.

    Example:
        >>> step = mesa.gradient_descent_learner(eta=1.0)
        >>> round(float(mesa.compare(mesa.FreeTransformer([layer]), step, batch).sensitivity_cosine), 6)
        1.0
    """

    prediction_difference: Float[Tensor, "*ensemble"]
    sensitivity_difference: Float[Tensor, "*ensemble"]
    sensitivity_cosine: Float[Tensor, "*ensemble"]


@typed
def sensitivity(learner: Learner, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y x"]:
    """Derivative of the prediction in x_q, by automatic differentiation; each query is differentiated by itself.

    Args:
        learner: differentiable in query_x; its ensemble axes must be those of `batch`.
        batch: where to differentiate.

    Returns:
        Shape (*ensemble, task, query, y, x). For a linear learner it is V, the implicit weights, at every query.

    Raises:
        ValueError: the predictions do not have the shape of query_y, or do not depend on query_x through autograd.

    Example:
        >>> found = mesa.sensitivity(mesa.gradient_descent_learner(eta=1.0), batch)
        >>> torch.allclose(found[:, 0], mesa.gradient_descent_weights(batch, eta=1.0))
        True
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


@typed
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

    Example:
        >>> step = mesa.gradient_descent_learner(eta=1.0)
        >>> found = mesa.compare(mesa.FreeTransformer([layer]), step, batch)
        >>> bool(found.prediction_difference < 1e-12 and found.sensitivity_difference < 1e-12)
        True
    """
    ours, theirs = _predictions(learner, reference, batch)
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


@typed
def squared_prediction_difference(learner: Learner, reference: Learner, batch: TaskBatch) -> Float[Tensor, "*ensemble"]:
    """SPD of Akyürek et al. (2023): E |prediction - prediction of the reference|^2, over tasks and queries.

    Squared and without the factor 1/2; `Comparison.prediction_difference` is the mean of the norm itself.

    Args:
        learner: any learner, an ensemble or not.
        reference: any other; the ensemble axes of the two broadcast.
        batch: the tasks.

    Returns:
        Shape (*ensemble).

    Raises:
        ValueError: a learner's predictions do not fit the batch's queries or those of the other.

    Example:
        >>> same = mesa.gradient_descent_learner(eta=1.0)
        >>> float(mesa.squared_prediction_difference(same, same, batch))
        0.0
    """
    ours, theirs = _predictions(learner, reference, batch)
    return (ours - theirs).square().sum(-1).mean((-1, -2))


@typed
def fit_implicit_weights(learner: Learner, batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
    """The linear map that fits a learner's answers to the queries best: its implicit weights, found from outside.

        argmin_V sum_q |V x_q - prediction(x_q)|^2 for each task

    For a `LinearLearner` these are its `implicit_weights`. For any other they are a summary, which leaves out what is
    not linear in the query.

    Args:
        learner: any learner.
        batch: with at least as many queries as input dimensions.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        ValueError: fewer queries than input dimensions, or predictions that do not fit the queries.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(num_queries=20).sample(4, stream, dtype=torch.float64)
        >>> found = mesa.fit_implicit_weights(mesa.gradient_descent_learner(eta=1.0), exam)
        >>> torch.allclose(found, mesa.gradient_descent_weights(exam, eta=1.0))
        True
    """
    if batch.num_queries < batch.x_dim:
        raise ValueError(f"batch: expected at least x_dim = {batch.x_dim} queries, got {batch.num_queries}")
    with torch.no_grad():
        prediction = _checked("learner", learner(batch), batch)
    fitted: Tensor = torch.linalg.pinv(batch.query_x) @ prediction
    return fitted.mT


@typed
def implicit_weight_difference(learner: Learner, reference: Learner, batch: TaskBatch) -> Float[Tensor, "*ensemble"]:
    """ILWD of Akyürek et al. (2023): E |V - V of the reference|^2 over tasks, with V from `fit_implicit_weights`.

    Args:
        learner: any learner, an ensemble or not.
        reference: any other; the ensemble axes of the two broadcast.
        batch: the tasks, with at least as many queries as input dimensions.

    Returns:
        Shape (*ensemble).

    Raises:
        ValueError: see `fit_implicit_weights`, or ensemble axes that do not broadcast.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(num_queries=20).sample(4, stream, dtype=torch.float64)
        >>> same = mesa.gradient_descent_learner(eta=1.0)
        >>> bool(mesa.implicit_weight_difference(same, same, exam) < 1e-12)
        True
    """
    ours, theirs = fit_implicit_weights(learner, batch), fit_implicit_weights(reference, batch)
    broadcastable("learner", ours.shape[:-3], "reference", theirs.shape[:-3])
    return (ours - theirs).square().sum((-1, -2)).mean(-1)


@typed
def error_similarity(learner: Learner, reference: Learner, batch: TaskBatch) -> Float[Tensor, "*ensemble"]:
    """How alike two learners err: the mean over tasks of the cosine between their errors on the task's queries.

    The similarity of errors of Fu et al. (2024), who take the errors along one growing prompt; here they are those on
    many queries after one prompt. Mind what it says of learners that know little: where both answer almost nothing
    their errors are both minus the target, and the similarity is near one.

    Args:
        learner: any learner, an ensemble or not.
        reference: any other; the ensemble axes of the two broadcast.
        batch: the tasks, best with many queries each.

    Returns:
        Shape (*ensemble), between -1 and 1. A learner without any error counts as similarity zero.

    Raises:
        ValueError: a learner's predictions do not fit the batch's queries or those of the other.

    Example:
        >>> same = mesa.gradient_descent_learner(eta=1.0)
        >>> round(float(mesa.error_similarity(same, same, batch)), 6)
        1.0
    """
    ours, theirs = _predictions(learner, reference, batch)
    our_errors, their_errors = ours - batch.query_y, theirs - batch.query_y
    return torch.cosine_similarity(our_errors.flatten(-2), their_errors.flatten(-2), dim=-1).mean(-1)


@dataclass(frozen=True, eq=False)
class BestMatch:
    """The member of a family that a learner is most like; every field has shape (*ensemble).

    Attributes:
        count: the member's number: of steps, say.
        similarity: its `error_similarity` with the learner.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(num_queries=20).sample(4, stream, dtype=torch.float64)
        >>> family = {k: mesa.gradient_descent_learner(eta=1.0, num_steps=k) for k in (1, 2, 3)}
        >>> float(mesa.best_match(family[2], family, exam).count)
        2.0
    """

    count: Int[Tensor, "*ensemble"]
    similarity: Float[Tensor, "*ensemble"]


@typed
def best_match(learner: Learner, family: Mapping[int, Learner], batch: TaskBatch) -> BestMatch:
    """Which number of steps of an algorithm errs most like a learner: the matching of Fu et al. (2024).

    Args:
        learner: any learner, an ensemble or not.
        family: number of steps -> the algorithm with so many.
        batch: the tasks, best with many queries each.

    Returns:
        A BestMatch; of equally similar members the first.

    Raises:
        ValueError: an empty family; see also `error_similarity`.

    Example:
        >>> stream = mesa.generator(0, "validation tasks")
        >>> exam = mesa.LinearTasks(num_queries=20).sample(4, stream, dtype=torch.float64)
        >>> family = {k: mesa.gradient_descent_learner(eta=1.0, num_steps=k) for k in (1, 2, 3)}
        >>> match = mesa.best_match(mesa.gradient_descent_learner(eta=1.0, num_steps=3), family, exam)
        >>> float(match.count), round(float(match.similarity), 6)
        (3.0, 1.0)
    """
    if not family:
        raise ValueError("family: expected at least one learner, got none")
    similarities = torch.stack([error_similarity(learner, member, batch) for member in family.values()])
    best = similarities.max(0)
    return BestMatch(torch.tensor(list(family), device=best.indices.device)[best.indices], best.values)


def _predictions(learner: Learner, reference: Learner, batch: TaskBatch) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        ours, theirs = _checked("learner", learner(batch), batch), _checked("reference", reference(batch), batch)
    broadcastable("learner", ours.shape[:-3], "reference", theirs.shape[:-3])
    return ours, theirs


def _checked(name: str, prediction: Tensor, batch: TaskBatch) -> Tensor:
    if prediction.shape[-3:] != batch.query_y.shape[-3:]:
        raise ValueError(
            f"{name}: expected predictions that end in {tuple(batch.query_y.shape[-3:])}, the shape of query_y, "
            f"got {tuple(prediction.shape)}"
        )
    return prediction


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

    Example:
        >>> summary = mesa.summarize_losses(torch.tensor([0.0, 1.0, 2.0]), cap=5.0)
        >>> float(summary.median), float(summary.mean)
        (1.0, 1.0)
    """

    median: Float[Tensor, "*ensemble"]
    capped_mean: Float[Tensor, "*ensemble"]
    mean: Float[Tensor, "*ensemble"]
    divergent_share: Float[Tensor, "*ensemble"]


@typed
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

    Example:
        >>> losses = torch.tensor([0.0, 1.0, 2.0, 100.0])
        >>> float(mesa.summarize_losses(losses, cap=5.0, divergence_expected=True).capped_mean)
        2.0
    """
    ceiling = positive_number("cap", cap)
    if ceiling > torch.finfo(floating_tensor("losses", losses, min_dims=1).dtype).max / 10:
        raise ValueError(f"cap: expected a tenth of what {losses.dtype} holds at most, got {ceiling:g}")
    if losses.shape[-1] == 0:
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


@typed
def prediction_cosine(learner: Learner, reference: Learner, batch: TaskBatch) -> Float[Tensor, "*ensemble"]:
    """Cosine between two learners' answers to all queries of a task, as vectors, and its mean over tasks.

    With queries on a grid it compares functions. For one-dimensional inputs the cosine of `compare` cannot: there a
    sensitivity is one number, and the cosine of two numbers is whether their signs agree.

    Args:
        learner: any learner, an ensemble or not.
        reference: any other; the ensemble axes of the two broadcast.
        batch: the tasks, best with many queries each.

    Returns:
        Shape (*ensemble), between -1 and 1.

    Raises:
        ValueError: a learner's predictions do not fit the batch's queries or those of the other.

    Example:
        >>> same = mesa.gradient_descent_learner(eta=1.0)
        >>> round(float(mesa.prediction_cosine(same, mesa.gradient_descent_learner(eta=2.0), batch)), 6)
        1.0
    """
    ours, theirs = _predictions(learner, reference, batch)
    return torch.cosine_similarity(ours.flatten(-2), theirs.flatten(-2), dim=-1).mean(-1)


@typed
def learned_kernel(
    weights: AttentionWeights, features: Features, num_context: int
) -> Callable[[Float[Tensor, "... context x"], Float[Tensor, "... query x"]], Float[Tensor, "... context query"]]:
    """The kernel of a trained block of MLP and attention, read off the products of its attention layer.

    On tokens (m(x), r) with one target, what a layer makes of the targets' values, linearly in them, is

        sum_i r_i k(x_i, x_q) / N,    k(x, x') = -N m(x)^T (sum_h [W_PV,h]_yy [W_KQ,h]_mm) m(x').

    So `kernel_gradient_descent` with this kernel and eta = 1 is the layer, if it has nothing else. The products do not
    depend on the layer's gauge, and k does not on the features' basis.

    Args:
        weights: one layer on tokens of size feature + 1.
        features: x -> m(x).
        num_context: N.

    Returns:
        A kernel: inputs (*axes, context, x) and (*axes, query, x) -> (*axes, context, query). It need not be symmetric.

    Raises:
        TypeError, ValueError: `num_context` is not a positive integer; when called, features of another width than the
            layer's.

    Example:
        >>> kernel = mesa.learned_kernel(layer, lambda x: x, num_context=10)
        >>> torch.allclose(kernel(batch.context_x, batch.query_x), mesa.linear_kernel(batch.context_x, batch.query_x))
        True
    """
    scale = -positive_integer("num_context", num_context)
    width = weights.token_dim - 1
    by_head = weights.w_pv[..., -1, -1, None, None] * weights.w_kq[..., :width, :width]
    metric = scale * by_head.sum(-3)
    # An ensemble's axes stand before the one for the tasks.
    metric = metric.unsqueeze(-3) if metric.dim() > 2 else metric

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        left, right = features_once(features, a), features_once(features, b)
        if left.shape[-1] != width:
            raise ValueError(f"features: expected a width of {width}, that of the layer's tokens, got {left.shape[-1]}")
        found: Tensor = left @ metric @ right.mT
        return found

    return kernel


def _check_kernel(name: str, matrix: Tensor) -> None:
    finite_tensor(name, matrix, min_dims=2)
    if matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"{name}: expected square matrices, got shape {tuple(matrix.shape)}")
    if not bool((matrix != 0).any((-1, -2)).all()):
        raise ValueError(f"{name}: expected matrices other than zero, got zero")


@typed
def kernel_alignment(a: Float[Tensor, "... query query"], b: Float[Tensor, "... query query"]) -> Float[Tensor, "..."]:
    """Cosine between two kernels' matrices on the same inputs, <A, B> / (|A| |B|), not centred.

    Args:
        a: k(x_i, x_j) of one kernel, shape (*axes, query, query).
        b: that of another.

    Returns:
        Shape (*axes), between -1 and 1.

    Raises:
        TypeError, ValueError: a matrix is not square, not finite or zero, or the two do not fit.

    Example:
        >>> matrix = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
        >>> round(float(mesa.kernel_alignment(matrix, 3 * matrix)), 6)
        1.0
    """
    _check_kernel("a", a)
    _check_kernel("b", b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"b: expected matrices of size {a.shape[-1]}, as in a, got {b.shape[-1]}")
    broadcastable("b", b.shape[:-2], "a", a.shape[:-2])
    cosine: Tensor = (a * b).sum((-1, -2)) / (a.norm(dim=(-2, -1)) * b.norm(dim=(-2, -1)))
    return cosine


@typed
def kernel_symmetry(matrix: Float[Tensor, "... query query"]) -> Float[Tensor, "..."]:
    """Share of a kernel's matrix that is symmetric, |K + K^T| / |2 K|: 1 if all of it, 0 if none.

    Args:
        matrix: k(x_i, x_j), shape (*axes, query, query).

    Returns:
        Shape (*axes).

    Raises:
        TypeError, ValueError: a matrix is not square, not finite or zero.

    Example:
        >>> round(float(mesa.kernel_symmetry(torch.eye(3))), 6)
        1.0
    """
    _check_kernel("matrix", matrix)
    share: Tensor = (matrix + matrix.mT).norm(dim=(-2, -1)) / (2 * matrix.norm(dim=(-2, -1)))
    return share


@typed
def kernel_negativity(matrix: Float[Tensor, "... query query"]) -> Float[Tensor, "..."]:
    """Share of negative eigenvalues in the sum of sizes of all, of a kernel's symmetric part: 0 if it is positive.

    Args:
        matrix: k(x_i, x_j), shape (*axes, query, query).

    Returns:
        Shape (*axes).

    Raises:
        TypeError, ValueError: a matrix is not square, not finite or zero.

    Example:
        >>> abs(float(mesa.kernel_negativity(torch.eye(3)))) < 1e-6
        True
    """
    _check_kernel("matrix", matrix)
    eigenvalues: Tensor = torch.linalg.eigvalsh((matrix + matrix.mT) / 2)
    return (-eigenvalues.clamp(max=0)).sum(-1) / eigenvalues.abs().sum(-1)


@typed
def kernel_rank(matrix: Float[Tensor, "... query query"], relative_cutoff: float = 0.03) -> Int[Tensor, "..."]:
    """How many singular values of a kernel's matrix exceed a fraction of the largest: its rank, up to small ones.

    Args:
        matrix: k(x_i, x_j), shape (*axes, query, query).
        relative_cutoff: the fraction, >= 0.

    Returns:
        Shape (*axes), integers.

    Raises:
        TypeError, ValueError: a matrix is not square, not finite or zero, or `relative_cutoff` is negative.

    Example:
        >>> int(mesa.kernel_rank(torch.diag(torch.tensor([1.0, 0.5, 0.001]))))
        2
    """
    _check_kernel("matrix", matrix)
    cutoff = non_negative_number("relative_cutoff", relative_cutoff)
    values: Tensor = torch.linalg.svdvals(matrix)
    return (values > cutoff * values[..., :1]).sum(-1)
