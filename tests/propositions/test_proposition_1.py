"""Proposition 1: one layer of linear self-attention is one step of gradient descent, for every token and the query.

The oracle is torch.autograd on the half-MSE of the context, written out below. Everything is float64, to 1e-12.
"""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    FreeTransformer,
    LinearTasks,
    TaskBatch,
    Tokens,
    apply_layers,
    concatenated_tokens,
    gd_construction,
    linear_self_attention,
    query_in_context,
    read_prediction,
)

DOUBLE = torch.float64
X_DIM = 4


def close(got, expected):
    """Equal to 1e-12 of the largest number."""
    size = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12 * size)


def autograd_step(weights, batch, eta):
    """Delta W = -eta dL/dW for L = 1/(2N) sum_i |W x_i - y_i|^2, a task at a time, by automatic differentiation."""
    weights = weights.detach().clone().requires_grad_()
    predictions = torch.einsum("tyx,tnx->tny", weights, batch.context_x)
    losses = (predictions - batch.context_y).square().sum((-1, -2)) / (2 * batch.num_context)
    return -eta * torch.autograd.grad(losses.sum(), weights)[0]


def descended(w_0, batch, eta, num_steps):
    weights = w_0.expand(batch.num_tasks, -1, -1)
    for _ in range(num_steps):
        weights = weights + autograd_step(weights, batch, eta)
    return weights


def apply_to(weights, x):
    return torch.einsum("tyx,tnx->tny", weights, x)


def setting(y_dim, num_context, seed, num_queries=1):
    """Noisy tasks, a random W_0 and its construction."""
    stream = torch.Generator().manual_seed(seed)
    tasks = LinearTasks(X_DIM, y_dim, num_context, num_queries, noise_std=0.4)
    batch = tasks.sample(3, stream, dtype=DOUBLE)
    w_0 = torch.randn(y_dim, X_DIM, generator=stream, dtype=DOUBLE)
    return batch, w_0


sizes = pytest.mark.parametrize(("y_dim", "num_context"), [(1, 1), (1, 10), (1, 50), (3, 1), (3, 10), (3, 50)])
seeds, etas = st.integers(0, 2**31), st.floats(-3, 3)


@sizes
@given(seed=seeds, eta=etas)
def test_every_context_token_and_every_query_moves_by_a_gradient_step(y_dim, num_context, seed, eta):
    """e_j = (x_j, y_j) -> (x_j, y_j - Delta W x_j), and (x_q, -W_0 x_q) -> (x_q, -(W_0 + Delta W) x_q)."""
    batch, w_0 = setting(y_dim, num_context, seed, num_queries=2)
    moved = linear_self_attention(gd_construction(eta, X_DIM, y_dim, num_context, w_0), concatenated_tokens(batch, w_0))
    change = autograd_step(w_0.expand(3, -1, -1), batch, eta)
    close(moved.context[..., :X_DIM], batch.context_x)
    close(moved.context[..., X_DIM:], batch.context_y - apply_to(change, batch.context_x))
    close(moved.query[..., :X_DIM], batch.query_x)
    close(read_prediction(moved, y_dim), apply_to(w_0 + change, batch.query_x))


@sizes
def test_the_step_on_the_targets_has_the_loss_of_the_step_on_the_weights(y_dim, num_context):
    """Equation 4 on the layer's own tokens: they are the context on which W_0 loses what W_0 + Delta W loses."""
    batch, w_0 = setting(y_dim, num_context, 0)
    tokens = concatenated_tokens(batch, w_0)
    moved = linear_self_attention(gd_construction(0.8, X_DIM, y_dim, num_context, w_0), tokens)
    stepped = w_0 + autograd_step(w_0.expand(3, -1, -1), batch, 0.8)
    residual = apply_to(w_0.expand(3, -1, -1), batch.context_x) - moved.context[..., X_DIM:]
    close(residual, apply_to(stepped, batch.context_x) - batch.context_y)


@sizes
@given(seed=seeds, eta=etas, num_layers=st.integers(1, 4))
def test_a_stack_of_layers_is_as_many_gradient_steps(y_dim, num_context, seed, eta, num_layers):
    """The same weights in every layer step on from W_0, W_1, ...: W_0 x - (y - Delta W x) is the residual of W_1."""
    batch, w_0 = setting(y_dim, num_context, seed)
    eta = eta / 3  # four steps shall not amplify rounding
    network = FreeTransformer([gd_construction(eta, X_DIM, y_dim, num_context, w_0)] * num_layers, w_0)
    expected = descended(w_0, batch, eta, num_layers)
    close(network.implicit_weights(batch), expected)
    close(
        read_prediction(apply_layers(network.layers(), network.tokens(batch)), y_dim), apply_to(expected, batch.query_x)
    )


@sizes
@given(seed=seeds, eta=etas)
def test_with_the_query_token_x_0_the_read_out_misses_exactly_w_0_x(y_dim, num_context, seed, eta):
    batch, w_0 = setting(y_dim, num_context, seed)
    layer = gd_construction(eta, X_DIM, y_dim, num_context, w_0)
    started, unstarted = (
        read_prediction(linear_self_attention(layer, concatenated_tokens(batch, start)), y_dim) for start in (w_0, None)
    )
    close(started - unstarted, apply_to(w_0.expand(3, -1, -1), batch.query_x))
    close(unstarted, apply_to(autograd_step(w_0.expand(3, -1, -1), batch, eta), batch.query_x))


@sizes
def test_from_zero_weights_both_query_tokens_are_the_same(y_dim, num_context):
    batch, w_0 = setting(y_dim, num_context, 0)
    assert torch.equal(concatenated_tokens(batch, 0 * w_0).query, concatenated_tokens(batch).query)


def with_slot(batch, slot):
    """Tokens whose query token is (x_q, slot)."""
    return Tokens(torch.cat([batch.context_x, batch.context_y], -1), torch.cat([batch.query_x, slot], -1))


@sizes
@given(seed=seeds, eta=etas)
def test_from_zero_weights_the_query_among_the_keys_changes_nothing_in_one_layer(y_dim, num_context, seed, eta):
    batch, _ = setting(y_dim, num_context, seed)
    layer, tokens = gd_construction(eta, X_DIM, y_dim, num_context, dtype=DOUBLE), concatenated_tokens(batch)
    alone, among = linear_self_attention(layer, tokens), linear_self_attention(layer, query_in_context(tokens))
    close(among.query, alone.query)
    close(among.context[:, :num_context], alone.context)


@sizes
@pytest.mark.parametrize(("slot_sign", "missing"), [(1, 0), (0, 1), (-1, 2)])
@given(seed=seeds, eta=etas)
def test_the_query_among_the_keys_adds_its_own_value_in_one_layer(slot_sign, missing, y_dim, num_context, seed, eta):
    """Its value is W_0 x_q - slot: 0 for the slot +W_0 x_q, W_0 x_q for 0, 2 W_0 x_q for the construction's -W_0 x_q.

    The key is x_q, so the y-slot of a reader x gains (eta/N) (W_0 x_q - slot) (x_q . x); the query reads x = x_q, and
    its prediction, minus the slot, loses that much.
    """
    batch, w_0 = setting(y_dim, num_context, seed)
    w_0x = apply_to(w_0.expand(3, -1, -1), batch.query_x)
    layer, tokens = gd_construction(eta, X_DIM, y_dim, num_context, w_0), with_slot(batch, slot_sign * w_0x)
    alone, among = linear_self_attention(layer, tokens), linear_self_attention(layer, query_in_context(tokens))
    value = eta / num_context * missing * w_0x
    squared_length = batch.query_x.square().sum(-1, keepdim=True)
    gain = read_prediction(among, y_dim) - read_prediction(alone, y_dim)
    close(gain, -value * squared_length)
    onto_context = batch.context_x @ batch.query_x.mT  # (task, context, 1): x_j . x_q
    close(among.context[:, :num_context, X_DIM:] - alone.context[..., X_DIM:], onto_context * value)


def with_fake_datum(batch, target):
    """The batch with one more example in its context: the query's input, with a target."""
    return TaskBatch(
        torch.cat([batch.context_x, batch.query_x], 1),
        torch.cat([batch.context_y, target], 1),
        batch.query_x,
        batch.query_y,
    )


@sizes
@given(seed=seeds, eta=etas, num_layers=st.integers(2, 4))
def test_from_two_layers_on_the_query_among_the_keys_is_a_fake_datum_of_target_zero(
    y_dim, num_context, seed, eta, num_layers
):
    """With W_0 = 0: gradient descent on the N examples and (x_q, 0).

    P = eta/N knows the N examples only, and the mean over N + 1 divides by one more: the step size on the half-MSE of
    the larger context is eta (N + 1)/N.
    """
    batch, w_0 = setting(y_dim, num_context, seed)
    eta, w_0 = eta / 3, 0 * w_0
    layers = [gd_construction(eta, X_DIM, y_dim, num_context, dtype=DOUBLE)] * num_layers
    got = read_prediction(apply_layers(layers, query_in_context(concatenated_tokens(batch))), y_dim)
    larger = with_fake_datum(batch, torch.zeros_like(batch.query_y))
    weights = descended(w_0, larger, eta * (num_context + 1) / num_context, num_layers)
    close(got, apply_to(weights, batch.query_x))


@sizes
@given(seed=seeds, eta=etas, num_layers=st.integers(1, 4))
def test_in_general_the_fake_datum_has_the_query_slot_as_its_target(y_dim, num_context, seed, eta, num_layers):
    """From any W_0 with slot -W_0 x_q, at any depth: gradient descent on the examples and (x_q, -W_0 x_q)."""
    batch, w_0 = setting(y_dim, num_context, seed)
    eta = eta / 3
    tokens = concatenated_tokens(batch, w_0)
    layers = [gd_construction(eta, X_DIM, y_dim, num_context, w_0)] * num_layers
    got = read_prediction(apply_layers(layers, query_in_context(tokens)), y_dim)
    larger = with_fake_datum(batch, tokens.query[..., X_DIM:])
    weights = descended(w_0, larger, eta * (num_context + 1) / num_context, num_layers)
    close(got, apply_to(weights, batch.query_x))


def test_the_fake_datum_matters_from_the_second_layer_on():
    batch, _ = setting(1, 10, 0)
    layer, tokens = gd_construction(1.5, X_DIM, 1, 10, dtype=DOUBLE), concatenated_tokens(batch)
    for num_layers, differs in [(1, False), (2, True), (3, True)]:
        alone, among = (apply_layers([layer] * num_layers, given) for given in (tokens, query_in_context(tokens)))
        assert bool((alone.query - among.query).abs().max() > 1e-3) == differs


@pytest.mark.parametrize("length", [1, 5, 20])
def test_weights_made_for_n_examples_step_m_over_n_times_too_far_on_m(length):
    """The weights know N: on M examples the same P is the step size eta M/N."""
    batch, w_0 = setting(3, length, 0)
    network = FreeTransformer([gd_construction(0.7, X_DIM, 3, 10, w_0)], w_0)
    close(network.implicit_weights(batch), w_0 + autograd_step(w_0.expand(3, -1, -1), batch, 0.7 * length / 10))


def test_the_step_holds_for_labels_that_no_teacher_made():
    """Corrupt labels: the layer descends the context's loss, whatever the query's target would be."""
    batch, w_0 = setting(3, 10, 0)
    corrupt = replace(batch, context_y=batch.context_y.flip(0), teacher=None)
    network = FreeTransformer([gd_construction(0.7, X_DIM, 3, 10, w_0)], w_0)
    close(network.implicit_weights(corrupt), w_0 + autograd_step(w_0.expand(3, -1, -1), corrupt, 0.7))
