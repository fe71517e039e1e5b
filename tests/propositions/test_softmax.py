"""Appendix A.9 of the paper: what softmax heads compute, what they approach, and what none of them can be."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    AttentionWeights,
    LinearTasks,
    Tokens,
    TokenTransformer,
    centred_gradient_descent,
    concatenated_tokens,
    exponential_kernel,
    four_head_softmax_construction,
    gradient_descent,
    kernel_smoother,
    query_in_context,
    random_weights,
    read_prediction,
    smoother_construction,
    softmax_attention,
    softmax_self_attention,
    two_head_softmax_construction,
)

DOUBLE = torch.float64
BETAS = [0.2, 0.1, 0.05, 0.025]


def sampled(num_tasks=50, **settings):
    return LinearTasks(**settings).sample(num_tasks, torch.Generator().manual_seed(3), dtype=DOUBLE)


def answer(weights, batch, sink=0.0):
    return read_prediction(softmax_self_attention(weights, concatenated_tokens(batch), sink=sink), batch.y_dim)


def rms(values):
    return float(values.square().mean().sqrt())


def order(errors, sizes):
    """The exponent of errors ~ sizes^order, from the smallest two."""
    return math.log(errors[-1] / errors[-2]) / math.log(sizes[-1] / sizes[-2])


@given(
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 8)),
    beta=st.floats(-3, 3),
    seed=st.integers(0, 10_000),
)
def test_one_softmax_head_is_a_kernel_smoother(sizes, beta, seed):
    """Sun et al. (2024), theorem 2: W_KQ = beta I on x and values y give Nadaraya and Watson's estimator."""
    x_dim, y_dim, num_context = sizes
    tasks = LinearTasks(x_dim, y_dim, num_context, 3, noise_std=0.3)
    batch = tasks.sample(3, torch.Generator().manual_seed(seed), dtype=DOUBLE)
    head = smoother_construction([beta], [1.0], x_dim, y_dim, dtype=DOUBLE)
    expected = kernel_smoother(batch, exponential_kernel(beta))
    assert (answer(head, batch) - expected).abs().max() < 1e-12


@pytest.mark.parametrize(("one_sided", "expected"), [(False, 2), (True, 1)])
@pytest.mark.parametrize("num_context", [3, 10])
def test_two_heads_converge_to_the_step_on_centred_keys(one_sided, expected, num_context):
    """Also: without a sink the same weights serve every length of context."""
    batch = sampled(num_context=num_context, y_dim=2, num_queries=2)
    limit = centred_gradient_descent(batch, 1.3)
    heads = [two_head_softmax_construction(b, 1.3, 10, 2, 99, one_sided=one_sided, dtype=DOUBLE) for b in BETAS]
    errors = [rms(answer(head, batch) - limit) for head in heads]
    assert order(errors, BETAS) == pytest.approx(expected, abs=0.05)
    assert errors[-1] < 0.03 * rms(limit)
    undivided = [beta * error for beta, error in zip(BETAS, errors, strict=True)]
    assert order(undivided, BETAS) == pytest.approx(expected + 1, abs=0.05)
    assert rms(answer(heads[-1], batch) - gradient_descent(batch, 1.3)) > 0.1 * rms(limit)


@pytest.mark.parametrize("sink", [1.0, 10.0])
def test_a_sink_leaves_a_part_of_the_centring(sink):
    batch = sampled(num_context=6)
    heads = [two_head_softmax_construction(beta, 1.3, 10, 1, 6, sink=sink, dtype=DOUBLE) for beta in BETAS]
    limit = centred_gradient_descent(batch, 1.3, centring=6 / (6 + sink))
    errors = [rms(answer(head, batch, sink) - limit) for head in heads]
    assert order(errors, BETAS) == pytest.approx(2, abs=0.05)
    assert errors[-1] < 1e-2 * rms(limit)


@pytest.mark.parametrize("sinks", [(0.0, 10.0), (5.0, 1.0)])
def test_four_heads_with_two_sinks_converge_to_the_gradient_step(sinks):
    batch, steps = sampled(num_context=6, y_dim=2), (sinks[0], sinks[0], sinks[1], sinks[1])
    expected = gradient_descent(batch, 1.3)
    heads = [four_head_softmax_construction(beta, 1.3, 10, 2, 6, sinks, dtype=DOUBLE) for beta in BETAS]
    errors = [rms(answer(head, batch, steps) - expected) for head in heads]
    assert order(errors, BETAS) == pytest.approx(2, abs=0.05)
    assert errors[-1] < 1e-2 * rms(expected)


def test_two_heads_do_not_see_a_constant_on_all_targets():
    """At every beta; one head passes it on."""
    batch = sampled()
    raised = replace(batch, context_y=batch.context_y + 2.5)
    pair = two_head_softmax_construction(1.7, 1.3, 10, 1, 10, dtype=DOUBLE)
    assert (answer(pair, raised) - answer(pair, batch)).abs().max() < 1e-12
    one = AttentionWeights(pair.w_k[:1], pair.w_q[:1], pair.w_v[:1], pair.w_p[:1])
    change = answer(one, raised) - answer(one, batch)
    assert (change - 2.5 * 1.3 / (2 * 1.7)).abs().max() < 1e-12


@pytest.mark.parametrize("num_heads", [1, 2, 16])
def test_moving_all_keys_changes_every_softmax_layer_by_a_constant(num_heads, draw):
    """science.md 3e: x_i -> x_i + c changes the read-out by sum_h P_h V_h c, whatever the targets and the query."""
    weights = random_weights(10, 1, [num_heads], num_heads, scale=0.4, dtype=DOUBLE).members(0)
    batch, shift = sampled(num_queries=3), draw(10)
    moved = replace(batch, context_x=batch.context_x + shift)
    change = answer(weights, moved) - answer(weights, batch)
    constant = -(weights.w_pv.sum(0)[-1, :10] @ shift)
    assert abs(constant) > 1e-2
    assert (change - constant).abs().max() < 1e-10
    step_change = gradient_descent(moved, 1.3) - gradient_descent(batch, 1.3)
    expected = 1.3 * batch.context_y.mean(1, keepdim=True) * (batch.query_x @ shift)[..., None]
    assert (step_change - expected).abs().max() < 1e-12
    assert step_change.std() > 0.1


def test_targets_that_move_along_do_not_help():
    """The same for noise-free tasks: x_i -> x_i + c with y_i -> y_i + W c is a constant for one teacher, too."""
    weights = random_weights(10, 1, [0], 3, scale=0.4, dtype=DOUBLE).members(0)
    batch, shift = sampled(num_queries=3), torch.linspace(-1, 2, 10, dtype=DOUBLE)
    raised = batch.teacher @ shift
    moved = replace(batch, context_x=batch.context_x + shift, context_y=batch.context_y + raised[:, None])
    change = answer(weights, moved) - answer(weights, batch)
    read = weights.w_pv.sum(0)[-1]
    assert (change + (read[:10] @ shift + read[10] * raised)[:, None]).abs().max() < 1e-10


def test_a_sink_or_the_query_among_the_keys_breaks_the_theorems_assumption():
    weights = random_weights(10, 1, [0], 2, scale=0.4, dtype=DOUBLE).members(0)
    batch = sampled(num_queries=1)
    moved = replace(batch, context_x=batch.context_x + 0.7)

    def inside(given):
        return read_prediction(softmax_self_attention(weights, query_in_context(concatenated_tokens(given))), 1)

    for change in (answer(weights, moved, 1.0) - answer(weights, batch, 1.0), inside(moved) - inside(batch)):
        assert change.std() > 1e-3


@pytest.mark.parametrize("sink", [0.0, 1.0])
def test_softmax_layers_grow_at_most_linearly_with_their_context(sink):
    weights = random_weights(10, 1, [1], 4, scale=0.4, dtype=DOUBLE).members(0)
    tokens = concatenated_tokens(sampled(num_queries=3))
    largest = (tokens.context @ weights.w_pv[:, None].mT)[..., -1].abs().amax(-1).sum(0)
    for size in (1.0, 10.0, 1000.0):
        grown = Tokens(size * tokens.context, tokens.query)
        moved = read_prediction(softmax_self_attention(weights, grown, sink=sink), 1)
        assert (moved.abs()[..., 0] <= size * largest[:, None] + 1e-9).all()
    batch = sampled(num_queries=3)
    grown = replace(batch, context_x=10 * batch.context_x, context_y=10 * batch.context_y)
    ratio = gradient_descent(grown, 1.3) / gradient_descent(batch, 1.3)
    assert (ratio - 100).abs().max() < 1e-8


def test_the_construction_is_a_learner_like_any_other(draw_batch):
    batch = draw_batch()
    weights = two_head_softmax_construction(0.3, 1.0, 3, 2, 5, dtype=DOUBLE)
    network = TokenTransformer([weights], [softmax_attention])
    torch.testing.assert_close(network(batch), answer(weights, batch), rtol=1e-12, atol=1e-13)
