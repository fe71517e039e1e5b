"""Fast weights example by example, against autograd, products of matrices written out, and loops over tokens."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    averaging,
    averaging_weights,
    delta_rule,
    delta_rule_weights,
    gradient_descent_weights,
    sum_rule,
    sum_rule_weights,
    ttt_linear,
    write_memory,
)

EXACT = {"rtol": 0, "atol": 1e-12}
DOUBLE = torch.float64


def sgd_by_autograd(batch, eta, mini_batch, w_0):
    """Steps on the half-MSE of mini-batch after mini-batch, with gradients from autograd, task by task."""
    ends = []
    for xs, ys in zip(batch.context_x, batch.context_y, strict=True):
        weights = w_0.clone()
        for begin in range(0, len(xs), mini_batch):
            weights.requires_grad_()
            errors = xs[begin : begin + mini_batch] @ weights.mT - ys[begin : begin + mini_batch]
            (gradient,) = torch.autograd.grad(errors.square().sum() / (2 * mini_batch), weights)
            weights = weights.detach() - eta * gradient
        ends.append(weights)
    return torch.stack(ends)


@pytest.mark.parametrize("mini_batch", [1, 2, 3, 5, 9])
def test_a_pass_is_stochastic_gradient_descent(mini_batch, draw_batch, draw):
    batch, w_0 = draw_batch(), draw(2, 3)
    got = delta_rule_weights(batch, 0.4, mini_batch, w_0)
    torch.testing.assert_close(got, sgd_by_autograd(batch, 0.4, mini_batch, w_0), **EXACT)
    torch.testing.assert_close(
        delta_rule(batch, 0.4, mini_batch, w_0), torch.einsum("tyx,tqx->tqy", got, batch.query_x), **EXACT
    )


def test_the_delta_rule_is_a_sum_of_outer_products_pushed_through_what_came_after(draw_batch):
    """W = beta sum_t y_t x_t^T prod_{s > t} (I - beta x_s x_s^T)."""
    batch, beta = draw_batch(1), 0.3
    xs, ys = batch.context_x[0], batch.context_y[0]
    expected = torch.zeros(2, 3, dtype=DOUBLE)
    for t in range(5):
        product = torch.eye(3, dtype=DOUBLE)
        for s in range(t + 1, 5):
            product = product @ (torch.eye(3, dtype=DOUBLE) - beta * torch.outer(xs[s], xs[s]))
        expected += beta * torch.outer(ys[t], xs[t]) @ product
    torch.testing.assert_close(delta_rule_weights(batch, beta)[0], expected, **EXACT)


def test_a_value_written_again_under_an_orthonormal_key_replaces_the_old_one_and_the_sum_rule_adds(draw_batch):
    batch = draw_batch(1, x_dim=3, num_context=3)
    keys = torch.eye(3, dtype=DOUBLE)[[0, 1, 0]][None]
    again = replace(batch, context_x=keys)
    old, _, new = batch.context_y[0]
    torch.testing.assert_close(delta_rule_weights(again, 1.0)[0, :, 0], new, **EXACT)
    torch.testing.assert_close(sum_rule_weights(again)[0, :, 0], old + new, **EXACT)


def test_the_sum_rule_is_what_linear_attention_writes_and_averaging_its_mean(draw_batch):
    batch = draw_batch()
    written = write_memory(batch.context_x, batch.context_y)
    torch.testing.assert_close(sum_rule_weights(batch, 0.7), 0.7 * written, **EXACT)
    torch.testing.assert_close(sum_rule(batch), batch.query_x @ written.mT, **EXACT)
    torch.testing.assert_close(averaging_weights(batch), gradient_descent_weights(batch, 1.0), **EXACT)
    torch.testing.assert_close(averaging(batch), batch.query_x @ written.mT / 5, **EXACT)


def sequence(draw, tokens=7):
    return draw(2, tokens, 3), draw(2, tokens, 4), draw(2, tokens, 3)


def ttt_by_autograd(keys, values, queries, eta, mini_batch, w_0):
    """W_t = W_{t-1} - eta grad |W' k_t - v_t|^2 at the end W' of the last mini-batch, token by token."""
    outputs = []
    for ks, vs, qs in zip(keys, values, queries, strict=True):
        state, anchor = w_0.clone(), w_0.clone()
        for t, (k, v, q) in enumerate(zip(ks, vs, qs, strict=True)):
            if t % mini_batch == 0:
                anchor = state.clone()
            at = anchor.clone().requires_grad_()
            (gradient,) = torch.autograd.grad((at @ k - v).square().sum(), at)
            state = state - eta * gradient
            outputs.append(state @ q)
    return torch.stack(outputs).view(*values.shape)


@pytest.mark.parametrize("mini_batch", [1, 3, 7, 20])
@pytest.mark.parametrize("eta", [0.5, 0.1])
def test_a_layer_of_test_time_training_trains_on_each_token_and_answers(mini_batch, eta, draw):
    keys, values, queries = sequence(draw)
    w_0 = draw(4, 3)
    expected = ttt_by_autograd(keys, values, queries, eta, mini_batch, w_0)
    torch.testing.assert_close(
        ttt_linear(keys, values, queries, eta, mini_batch, w_0), expected, rtol=1e-11, atol=1e-11
    )


def test_theorem_1_batch_descent_from_zero_at_half_is_causal_linear_attention(draw):
    keys, values, queries = sequence(draw)
    scores = torch.einsum("bti,bsi->bts", queries, keys)
    expected = torch.stack([(scores[:, t, : t + 1, None] * values[:, : t + 1]).sum(1) for t in range(7)], dim=1)
    torch.testing.assert_close(ttt_linear(keys, values, queries), expected, **EXACT)


def test_online_test_time_training_is_the_delta_rule_with_twice_the_step(draw_batch):
    batch = draw_batch()
    last = batch.context_x[:, -1:]
    outputs = ttt_linear(batch.context_x, batch.context_y, last.expand(-1, 5, -1), eta=0.15, mini_batch=1)
    expected = torch.einsum("tyx,tx->ty", delta_rule_weights(batch, 0.3), last[:, 0])
    torch.testing.assert_close(outputs[:, -1], expected, **EXACT)


def test_bad_arguments_are_refused_by_name(refused, draw_batch, draw):
    batch = draw_batch()
    keys, values, queries = sequence(draw)
    refused(lambda: delta_rule_weights(batch, float("nan")), ValueError, "eta: expected a finite number")
    refused(lambda: delta_rule_weights(batch, 0.1, 0), ValueError, "mini_batch: expected a positive integer")
    refused(lambda: delta_rule_weights(batch, 0.1, w_0=draw(3, 3)), ValueError, "w_0: expected a shape that ends in")
    refused(lambda: sum_rule_weights(batch, "1"), TypeError, "beta: expected a finite number")
    refused(
        lambda: ttt_linear(keys, values[:, :4], queries), ValueError, "values: expected 7 tokens, as in keys, got 4"
    )
    refused(
        lambda: ttt_linear(keys, values, queries[..., :2]), ValueError, "queries: expected a shape that ends in (3,)"
    )
    refused(lambda: ttt_linear(keys, values.float(), queries), TypeError, "values: expected dtype torch.float64")
    refused(lambda: ttt_linear(keys, values, queries, mini_batch=0), ValueError, "mini_batch: expected a positive")
    refused(lambda: ttt_linear(keys, values, queries, w_0=draw(3, 4)), ValueError, "w_0: expected a shape that ends in")
