"""Attention under a mask, and its shares, against a loop over readers and tokens."""

import math
from functools import partial

import pytest
import torch

from mesa_lib import AttentionWeights, attention_shares, causal_mask, linear_attention, softmax_attention

TOKENS, TOKEN, HEADS, TASKS = 4, 3, 2, 2
SINK = 0.7


@pytest.fixture
def weights(draw):
    return AttentionWeights(draw(HEADS, 2, TOKEN), draw(HEADS, 2, TOKEN), draw(HEADS, 5, TOKEN), draw(HEADS, TOKEN, 5))


def slow_update(weights, context, shares):
    """sum_h sum_i a_hji P_h W_V,h e_i, written out; `shares` has shape (task, head, reader, token)."""
    update = torch.zeros(TASKS, shares.shape[-2], TOKEN, dtype=torch.float64)
    for task in range(TASKS):
        for head in range(HEADS):
            values = context[task] @ (weights.w_p[head] @ weights.w_v[head]).mT
            update[task] += shares[task, head] @ values
    return update


def slow_shares(weights, context, readers, mask, sink):
    """exp(k . q) over the sum of what may be read and the sink, one by one; `sink` is None for bare scores."""
    shares = torch.zeros(TASKS, HEADS, readers.shape[1], context.shape[1], dtype=torch.float64)
    for task in range(TASKS):
        for head in range(HEADS):
            for j, reader in enumerate(readers[task]):
                scores = [float((weights.w_k[head] @ key) @ (weights.w_q[head] @ reader)) for key in context[task]]
                seen = [i for i in range(len(scores)) if mask[j, i]]
                total = 1.0 if sink is None else sink + sum(math.exp(scores[i]) for i in seen)
                for i in seen:
                    shares[task, head, j, i] = scores[i] if sink is None else math.exp(scores[i]) / total
    return shares


masks = pytest.mark.parametrize("mask", [causal_mask(TOKENS), torch.tensor([[1, 0, 1, 1]] * TOKENS, dtype=torch.bool)])


@masks
def test_masked_linear_attention_is_the_sum_over_what_may_be_read(mask, weights, draw):
    context, readers = draw(TASKS, TOKENS, TOKEN), draw(TASKS, TOKENS, TOKEN)
    expected = slow_update(weights, context, slow_shares(weights, context, readers, mask, None))
    got = linear_attention(weights, context, readers, mask=mask)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    everything = torch.ones(TOKENS, TOKENS, dtype=torch.bool)
    got = linear_attention(weights, context, readers, mask=everything)
    torch.testing.assert_close(got, linear_attention(weights, context, readers), rtol=1e-12, atol=1e-12)


@masks
@pytest.mark.parametrize("sink", [0.0, SINK])
def test_masked_softmax_attention_shares_one_among_what_may_be_read(mask, sink, weights, draw):
    context, readers = draw(TASKS, TOKENS, TOKEN), draw(TASKS, TOKENS, TOKEN)
    expected = slow_shares(weights, context, readers, mask, sink)
    got = attention_shares(weights, context, readers, sink=sink, mask=mask)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    assert bool((got.sum(-1) <= 1 + 1e-12).all()) and bool((got[..., ~mask] == 0).all())
    update = softmax_attention(weights, context, readers, sink=sink, mask=mask)
    torch.testing.assert_close(update, slow_update(weights, context, expected), rtol=1e-12, atol=1e-12)


def test_shares_of_an_ensemble_are_those_of_its_members(weights, draw):
    context, readers = draw(TASKS, TOKENS, TOKEN), draw(TASKS, 2, TOKEN)
    both = AttentionWeights(*(torch.stack([w, 2 * w]) for w in (weights.w_k, weights.w_q, weights.w_v, weights.w_p)))
    shares = attention_shares(both, context, readers, sink=SINK)
    assert shares.shape == (2, TASKS, HEADS, 2, TOKENS)
    torch.testing.assert_close(shares[0], attention_shares(weights, context, readers, sink=SINK))
    torch.testing.assert_close(shares[1], attention_shares(both.members(1), context, readers, sink=SINK))


def test_a_causal_mask_shows_the_past_and_the_present():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize("attention", [linear_attention, partial(softmax_attention, sink=1.0)])
@pytest.mark.parametrize("mask", [torch.ones(3, 3, dtype=torch.bool), torch.ones(TOKENS, TOKENS)])
def test_a_mask_that_does_not_fit_is_refused(attention, mask, weights, draw, refused):
    context = draw(TASKS, TOKENS, TOKEN)
    message = f"mask: expected truth values of shape {(TOKENS, TOKENS)}, got"
    refused(lambda: attention(weights, context, context, mask=mask), ValueError, message)


def test_a_mask_for_no_token_is_refused(refused):
    refused(lambda: causal_mask(0), ValueError, "num_tokens: expected a positive integer, got 0")
