"""The laws that every learner of the library keeps; new learners join the table.

design.md 6.7: every learner is invariant to the order of the context, unless it reads it one by one; a linear one is
equivariant to scaling of the targets; batched = looped.
"""

from dataclasses import dataclass, fields, replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    AttentionWeights,
    AveragingTransformer,
    FittedLinearModel,
    FreeTransformer,
    GDPlusPlusTransformer,
    Learner,
    LinearLearner,
    LinearTasks,
    Looped,
    MetaLearnedMLP,
    ResidualMLPBlock,
    TaskBatch,
    TokenMLP,
    TokenTransformer,
    averaging,
    centred_gradient_descent,
    centred_gradient_descent_weights,
    chebyshev_gd_plus_plus,
    chebyshev_weights,
    conjugate_gradient,
    conjugate_gradient_weights,
    copying_construction,
    delta_rule,
    delta_rule_weights,
    exponential_kernel,
    feature_kernel,
    fourier_codes,
    gd_construction,
    gd_plus_plus,
    gd_plus_plus_weights,
    gradient_descent_learner,
    insert_slots,
    interleaved_tokens,
    kernel_gradient_descent,
    kernel_regression,
    kernel_smoother,
    least_squares,
    least_squares_weights,
    linear_attention,
    momentum_weights,
    newton,
    newton_weights,
    noise_mixture_weights,
    posterior_mean,
    primitive_ridge_steps,
    primitive_ridge_weights,
    random_mlp,
    random_residual_block,
    random_weights,
    residual_construction,
    ridge_regression,
    ridge_regression_weights,
    sensitivity,
    softmax_attention,
    sum_rule_weights,
    two_head_softmax_construction,
)

DOUBLE = torch.float64
X_DIM, Y_DIM, NUM_CONTEXT = 3, 2, 5
W_0 = torch.linspace(-1, 1, Y_DIM * X_DIM, dtype=DOUBLE).view(Y_DIM, X_DIM)


@dataclass(frozen=True)
class Entry:
    """A row of the table: a learner; is it linear in the context's targets, and does it depend on their order?"""

    name: str
    learner: Learner
    linear_in_targets: bool = True
    order_matters: bool = False


def one_member(weights: AttentionWeights) -> AttentionWeights:
    """The weights of a one-seed ensemble, without the ensemble axis."""
    return AttentionWeights(*(getattr(weights, field.name)[0] for field in fields(weights)))


def construction(w_0: torch.Tensor | None = None) -> AttentionWeights:
    return gd_construction(0.6, X_DIM, Y_DIM, NUM_CONTEXT, w_0, dtype=DOUBLE)


def random_layer(seed: int, num_heads: int) -> AttentionWeights:
    return one_member(random_weights(X_DIM, Y_DIM, [seed], num_heads, scale=0.4, dtype=DOUBLE))


def copy_then_step(direction: str) -> TokenTransformer:
    """Proposition 3 and then Proposition 1, both linear, on interleaved tokens."""
    codes = fourier_codes(2 * NUM_CONTEXT + 1, dtype=DOUBLE)
    copy = copying_construction(codes, X_DIM, Y_DIM, direction=direction)
    step = insert_slots(construction(), at=X_DIM, size=codes.shape[-1])
    return TokenTransformer([copy, step], [linear_attention] * 2, partial(interleaved_tokens, positions=codes))


FEATURES = random_mlp(X_DIM, 4, [11], hidden=(6,), dtype=DOUBLE).member(0)
START = torch.linspace(-1, 1, Y_DIM * 4, dtype=DOUBLE).view(Y_DIM, 4)


def feature_layers(seed: int, num_heads: int) -> AttentionWeights:
    """A random layer on tokens of four features and the targets."""
    return one_member(random_weights(4, Y_DIM, [seed], num_heads, scale=0.4, dtype=DOUBLE))


def one_block() -> ResidualMLPBlock:
    """A random residual block with a layer norm, without ensemble axes."""
    made = random_residual_block(7, [14], X_DIM, Y_DIM, hidden=6, normalise=True, dtype=DOUBLE)
    return ResidualMLPBlock(made.embedding[0], made.mlp.member(0), one_member(made.layers()[0]), normalise=True)


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
    Entry("centred step", partial(centred_gradient_descent, eta=0.6)),
    Entry(
        "centred step as a model",
        FittedLinearModel(partial(centred_gradient_descent_weights, eta=0.6, centring=0.5)),
    ),
    Entry("kernel descent", partial(kernel_gradient_descent, kernel=feature_kernel(FEATURES), eta=0.4, num_steps=3)),
    Entry("kernel ridge regression", partial(kernel_regression, kernel=exponential_kernel(0.7), penalty=0.2)),
    Entry("meta-learned MLP", MetaLearnedMLP(FEATURES, torch.zeros_like(START), 0.4, 2)),
    Entry("meta-learned MLP from W_0", MetaLearnedMLP(FEATURES, START, 0.4), linear_in_targets=False),
    Entry(
        "MLP and attention, random",
        TokenMLP(FEATURES, [feature_layers(12, 2), feature_layers(13, 1)], START),
        linear_in_targets=False,
    ),
    Entry(
        "MLP and attention, constructed",
        TokenMLP(FEATURES, [gd_construction(0.4, 4, Y_DIM, NUM_CONTEXT, dtype=DOUBLE)] * 2, torch.zeros_like(START)),
    ),
    Entry("residual block, constructed", residual_construction(FEATURES, 0.4, NUM_CONTEXT, torch.zeros_like(START))),
    Entry("residual block with layer norm", one_block(), linear_in_targets=False),
    Entry("kernel smoother", partial(kernel_smoother, kernel=exponential_kernel(0.7))),
    Entry(
        "two softmax heads",
        TokenTransformer(
            [two_head_softmax_construction(0.7, 0.6, X_DIM, Y_DIM, NUM_CONTEXT, sink=2.0, dtype=DOUBLE)],
            [partial(softmax_attention, sink=2.0)],
        ),
    ),
    Entry(
        "random softmax and linear layers",
        TokenTransformer([random_layer(5, 2), random_layer(6, 1)], [softmax_attention, linear_attention]),
        linear_in_targets=False,
    ),
    Entry("copy from the next token, then a step", copy_then_step("next")),
    Entry("copy from the previous token, then a step", copy_then_step("previous")),
    Entry("random layers from W_0", FreeTransformer([random_layer(3, 2)] * 2, W_0), linear_in_targets=False),
    Entry("averaging", averaging),
    Entry("sum rule", FittedLinearModel(partial(sum_rule_weights, beta=0.3))),
    Entry("delta rule", partial(delta_rule, eta=0.3), order_matters=True),
    Entry("delta rule, two by two", FittedLinearModel(partial(delta_rule_weights, eta=0.4, mini_batch=2)), True, True),
    Entry("delta rule, one mini-batch", partial(delta_rule, eta=0.4, mini_batch=NUM_CONTEXT)),
    Entry("ridge steps by primitives", partial(primitive_ridge_steps, step_size=0.1, penalty=0.5), order_matters=True),
    Entry("ridge by primitives", FittedLinearModel(partial(primitive_ridge_weights, penalty=0.7))),
    Entry("posterior mean", partial(posterior_mean, noise_std=0.5)),
    Entry("mixed noise", FittedLinearModel(partial(noise_mixture_weights, noise_stds=(0.2, 1.0))), False),
    Entry("construction, averaging", AveragingTransformer([gd_construction(0.6, X_DIM, Y_DIM, 1, dtype=DOUBLE)] * 2)),
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
def test_the_order_of_the_context_matters_to_those_who_read_it_one_by_one_only(entry, recipe, data):
    batch = cook(recipe)
    order = list(data.draw(st.permutations(range(NUM_CONTEXT))))
    shuffled = replace(batch, context_x=batch.context_x[:, order], context_y=batch.context_y[:, order])
    if not entry.order_matters:
        close(entry.learner(shuffled), entry.learner(batch))
    else:
        backwards = replace(batch, context_x=batch.context_x.flip(1), context_y=batch.context_y.flip(1))
        assert (entry.learner(backwards) - entry.learner(batch)).abs().max() > 1e-6


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
        drawn = {f.name: value for f in fields(batch) if (value := getattr(batch, f.name)) is not None}
        alone = TaskBatch(**{name: value[task : task + 1] for name, value in drawn.items()})
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
