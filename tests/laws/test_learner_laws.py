"""The laws that every learner of the library keeps; new learners join the table.

design.md 6.7: every learner is invariant to the order of the context; a linear one is equivariant to scaling of the
targets; batched = looped.
"""

from dataclasses import dataclass, fields, replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    AttentionWeights,
    FittedLinearModel,
    FreeTransformer,
    GDPlusPlusTransformer,
    Learner,
    LinearLearner,
    LinearTasks,
    Looped,
    TaskBatch,
    chebyshev_gd_plus_plus,
    chebyshev_weights,
    conjugate_gradient,
    conjugate_gradient_weights,
    gd_construction,
    gd_plus_plus,
    gd_plus_plus_weights,
    gradient_descent_learner,
    least_squares,
    least_squares_weights,
    momentum_weights,
    newton,
    newton_weights,
    random_weights,
    ridge_regression,
    ridge_regression_weights,
    sensitivity,
)

DOUBLE = torch.float64
X_DIM, Y_DIM, NUM_CONTEXT = 3, 2, 5
W_0 = torch.linspace(-1, 1, Y_DIM * X_DIM, dtype=DOUBLE).view(Y_DIM, X_DIM)


@dataclass(frozen=True)
class Entry:
    """A row of the table: a learner, and whether its predictions are linear in the context's targets."""

    name: str
    learner: Learner
    linear_in_targets: bool = True


def one_member(weights: AttentionWeights) -> AttentionWeights:
    """The weights of a one-seed ensemble, without the ensemble axis."""
    return AttentionWeights(*(getattr(weights, field.name)[0] for field in fields(weights)))


def construction(w_0: torch.Tensor | None = None) -> AttentionWeights:
    return gd_construction(0.6, X_DIM, Y_DIM, NUM_CONTEXT, w_0, dtype=DOUBLE)


def random_layer(seed: int, num_heads: int) -> AttentionWeights:
    return one_member(random_weights(X_DIM, Y_DIM, [seed], num_heads, scale=0.4, dtype=DOUBLE))


LEARNERS = [
    Entry("least squares", least_squares),
    Entry("least squares as a model", FittedLinearModel(least_squares_weights)),
    Entry("ridge regression", partial(ridge_regression, penalty=0.7)),
    Entry("ridge regression as a model", FittedLinearModel(partial(ridge_regression_weights, penalty=0.7))),
    Entry("gradient descent, 1 step", gradient_descent_learner(0.6)),
    Entry("gradient descent, 5 steps", gradient_descent_learner(0.6, 5)),
    Entry("gradient descent from W_0", gradient_descent_learner(0.6, 2, W_0), linear_in_targets=False),
    Entry("construction, 1 layer", FreeTransformer([construction()])),
    Entry("construction, 3 layers", FreeTransformer([construction()] * 3)),
    Entry("construction from W_0", FreeTransformer([construction(W_0)] * 2, W_0), linear_in_targets=False),
    Entry("GD++", partial(gd_plus_plus, etas=(0.3, 0.6), gammas=(0.05,))),
    Entry("GD++ as a model", FittedLinearModel(partial(gd_plus_plus_weights, etas=(0.3, 0.6), gammas=(0.05,)))),
    Entry("Newton", partial(newton, num_steps=3)),
    Entry("Newton from I, as a model", FittedLinearModel(partial(newton_weights, num_steps=3, start="identity"))),
    Entry("Chebyshev", FittedLinearModel(partial(chebyshev_weights, num_steps=3, lowest=0.1, highest=2.0))),
    Entry("momentum", FittedLinearModel(partial(momentum_weights, eta=0.4, momentum=0.5, num_steps=3))),
    Entry("conjugate gradients", partial(conjugate_gradient, num_steps=2)),
    Entry("conjugate gradients as a model", FittedLinearModel(partial(conjugate_gradient_weights, num_steps=2))),
    Entry(
        "GD++ network",
        GDPlusPlusTransformer(torch.tensor([0.3, 0.6]).double(), torch.tensor([0.05, 0.1]).double(), 3, 2, 5),
    ),
    Entry("Chebyshev GD++", FreeTransformer(chebyshev_gd_plus_plus(0.02, 3, 3, 2, 5, DOUBLE))),
    Entry("construction, looped and damped", Looped(FreeTransformer([construction()]), 3, 0.5)),
    Entry("random layer, looped", Looped(FreeTransformer([random_layer(4, 1)]), 2, 0.7), linear_in_targets=False),
    Entry("random layer, 1 head", FreeTransformer([random_layer(0, 1)]), linear_in_targets=False),
    Entry(
        "random layers, 3 and 2 heads",
        FreeTransformer([random_layer(1, 3), random_layer(2, 2)]),
        linear_in_targets=False,
    ),
    Entry("random layers from W_0", FreeTransformer([random_layer(3, 2)] * 2, W_0), linear_in_targets=False),
]

every_learner = pytest.mark.parametrize("entry", LEARNERS, ids=lambda entry: entry.name)
linear_learners = pytest.mark.parametrize(
    "entry", [entry for entry in LEARNERS if isinstance(entry.learner, LinearLearner)], ids=lambda entry: entry.name
)


# Number of queries, distribution of inputs, number of tasks, seed. A test draws the batch itself: checked annotations
# use Python's random numbers, which a strategy may not.
recipes = st.tuples(st.integers(1, 3), st.sampled_from(["uniform", "normal"]), st.integers(1, 4), st.integers(0, 2**31))


def cook(recipe: tuple[int, str, int, int]) -> TaskBatch:
    """Noisy tasks of the table's sizes."""
    num_queries, inputs, num_tasks, seed = recipe
    tasks = LinearTasks(X_DIM, Y_DIM, NUM_CONTEXT, num_queries, 1.0, inputs, noise_std=0.3)
    return tasks.sample(num_tasks, torch.Generator().manual_seed(seed), dtype=DOUBLE)


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal up to rounding, measured by the largest number of the tensor."""
    scale = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-10 * scale)


@every_learner
@given(recipe=recipes, data=st.data())
def test_the_order_of_the_context_does_not_matter(entry, recipe, data):
    batch = cook(recipe)
    order = list(data.draw(st.permutations(range(NUM_CONTEXT))))
    shuffled = replace(batch, context_x=batch.context_x[:, order], context_y=batch.context_y[:, order])
    close(entry.learner(shuffled), entry.learner(batch))


@every_learner
@given(recipe=recipes)
def test_a_learner_sees_neither_teacher_nor_query_targets(entry, recipe):
    batch = cook(recipe)
    blind = replace(batch, teacher=None, query_y=torch.full_like(batch.query_y, 1e6))
    assert torch.equal(entry.learner(blind), entry.learner(batch))


@every_learner
@given(recipe=recipes, scale=st.floats(-3, 3))
def test_linear_learners_scale_with_the_targets_and_only_they(entry, recipe, scale):
    batch = cook(recipe)
    scaled = replace(batch, context_y=scale * batch.context_y)
    if entry.linear_in_targets:
        close(entry.learner(scaled), scale * entry.learner(batch))
    else:
        tripled = replace(batch, context_y=3 * batch.context_y)
        assert (entry.learner(tripled) - 3 * entry.learner(batch)).abs().max() > 1e-6


@every_learner
@given(recipe=recipes)
def test_targets_of_one_task_do_not_reach_another(entry, recipe):
    """Batched = looped: a task's predictions are those that it gets alone."""
    batch = cook(recipe)
    together = entry.learner(batch)
    for task in range(batch.num_tasks):
        alone = TaskBatch(**{f.name: getattr(batch, f.name)[task : task + 1] for f in fields(batch)})
        close(entry.learner(alone)[0], together[task])


@every_learner
@given(recipe=recipes)
def test_queries_are_answered_one_by_one(entry, recipe):
    batch = cook(recipe)
    together = entry.learner(batch)
    for query in range(batch.num_queries):
        chosen = slice(query, query + 1)
        alone = replace(batch, query_x=batch.query_x[:, chosen], query_y=batch.query_y[:, chosen])
        close(entry.learner(alone), together[:, chosen])


@every_learner
@given(recipe=recipes)
def test_ensemble_axes_in_front_change_nothing(entry, recipe):
    batch, other = cook(recipe), cook((*recipe[:-1], recipe[-1] + 1))
    expected = entry.learner(batch)
    assert expected.shape == batch.query_y.shape
    close(entry.learner(batch.expand(2, 3)), expected.expand(2, 3, *expected.shape))
    close(entry.learner(TaskBatch.stack([batch, other])), torch.stack([expected, entry.learner(other)]))


@linear_learners
@given(recipe=recipes)
def test_implicit_weights_are_the_predictions_and_their_sensitivity(entry, recipe):
    batch = cook(recipe)
    weights = entry.learner.implicit_weights(batch)
    assert weights.shape == (batch.num_tasks, Y_DIM, X_DIM)
    close(torch.einsum("tyx,tqx->tqy", weights, batch.query_x), entry.learner(batch))
    slopes = sensitivity(entry.learner, batch)
    close(slopes, weights[:, None].expand_as(slopes))
