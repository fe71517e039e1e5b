"""Proposition 3: a layer of attention builds the tokens that Proposition 1 assumes.

The oracles: the tokens (x_j, y_j), put together by hand; gradient descent; the weights that the paper prints in its
appendix A.5, typed in here as they stand there.
"""

import math
from functools import partial

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    TokenTransformer,
    attention_shares,
    causal_mask,
    concatenated_tokens,
    copying_construction,
    fourier_codes,
    gd_construction,
    gradient_descent,
    insert_slots,
    interleaved_tokens,
    linear_attention,
    missed_weight,
    needed_sharpness,
    neighbour_map,
    one_hot_codes,
    pointing_construction,
    softmax_attention,
)

DOUBLE = torch.float64
D, N_OUT, N = 3, 2, 5
PLACES = 2 * N + 1
PAIRS = {"next": (slice(0, None, 2), slice(1, None, 2)), "previous": (slice(1, None, 2), slice(0, None, 2))}
directions = pytest.mark.parametrize("direction", ["next", "previous"])


def skewed_codes() -> torch.Tensor:
    """Linearly independent codes, neither orthogonal nor of one length, in more dimensions than places."""
    return torch.eye(PLACES, PLACES + 2, dtype=DOUBLE) + 0.3 * torch.ones(PLACES, PLACES + 2, dtype=DOUBLE).tril()


CODES = {
    "one-hot": one_hot_codes(PLACES, DOUBLE),
    "Fourier": fourier_codes(PLACES, dtype=DOUBLE),
    "skewed": skewed_codes(),
}
codes_by_name = pytest.mark.parametrize("codes", list(CODES.values()), ids=list(CODES))


def two_layers(codes: torch.Tensor, direction: str, sharpness: float | None) -> TokenTransformer:
    copy = copying_construction(codes, D, N_OUT, sharpness, direction)
    step = insert_slots(gd_construction(0.6, D, N_OUT, N, dtype=DOUBLE), at=D, size=codes.shape[-1])
    first = linear_attention if sharpness is None else partial(softmax_attention, sink=1.0)
    return TokenTransformer([copy, step], [first, linear_attention], partial(interleaved_tokens, positions=codes))


@codes_by_name
@directions
def test_linear_attention_builds_the_tokens_x_y_exactly_and_touches_no_query(codes, direction, draw_batch):
    batch = draw_batch()
    tokens = interleaved_tokens(batch, codes)
    copy = copying_construction(codes, D, N_OUT, direction=direction)
    moved = tokens.context + linear_attention(copy, tokens.context, tokens.context)
    built = torch.cat([moved[..., :D], moved[..., -N_OUT:]], dim=-1)
    readers, _ = PAIRS[direction]
    torch.testing.assert_close(built[:, readers], concatenated_tokens(batch).context, rtol=1e-12, atol=1e-12)
    others, _ = PAIRS["previous" if direction == "next" else "next"]
    torch.testing.assert_close(moved[:, others], tokens.context[:, others], rtol=1e-12, atol=1e-12)
    assert linear_attention(copy, tokens.context, tokens.query).abs().max() < 1e-12


@codes_by_name
@directions
def test_copy_and_step_are_one_gradient_step(codes, direction, draw_batch):
    batch = draw_batch()
    expected = gradient_descent(batch, 0.6)
    torch.testing.assert_close(two_layers(codes, direction, None)(batch), expected, rtol=1e-12, atol=1e-12)
    sharp = two_layers(codes, direction, 40.0)(batch)
    torch.testing.assert_close(sharp, expected, rtol=1e-12, atol=1e-12)
    assert (two_layers(codes, direction, 1.0)(batch) - expected).abs().max() > 0.1


@codes_by_name
def test_two_linear_layers_can_take_the_step_without_a_copy(codes, draw_batch):
    batch = draw_batch()
    layers = pointing_construction(codes, 0.6, D, N_OUT)
    network = TokenTransformer(layers, [linear_attention] * 2, partial(interleaved_tokens, positions=codes))
    torch.testing.assert_close(network(batch), gradient_descent(batch, 0.6), rtol=1e-12, atol=1e-12)
    tokens = network.tokens(batch)
    update = linear_attention(layers[0], tokens.context, tokens.context)
    assert not update[..., :D].any() and not update[..., -N_OUT:].any()  # no number of a task moves to another token


@codes_by_name
@directions
@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0, 12.0])
def test_a_softmax_misses_its_target_by_the_law(codes, direction, sharpness, draw_batch):
    tokens = interleaved_tokens(draw_batch(), codes)
    copy = copying_construction(codes, D, N_OUT, sharpness, direction)
    shares = attention_shares(copy, tokens.context, tokens.context, sink=1.0)
    readers, targets = PAIRS[direction]
    on_target = shares[:, 0, readers, targets].diagonal(dim1=-2, dim2=-1)
    law = 2 * N * math.exp(-sharpness) / (1 + 2 * N * math.exp(-sharpness))
    torch.testing.assert_close(1 - on_target, torch.full_like(on_target, law), rtol=0, atol=1e-12)
    assert missed_weight(sharpness, 2 * N) == pytest.approx(law, abs=1e-15)
    idle = attention_shares(copy, tokens.context, tokens.query, sink=1.0).sum(-1)
    torch.testing.assert_close(idle, torch.full_like(idle, law), rtol=0, atol=1e-12)


def test_a_causal_mask_leaves_the_direction_that_looks_back_and_no_other(draw_batch):
    codes = CODES["one-hot"]
    tokens = interleaved_tokens(draw_batch(), codes)
    seen = causal_mask(2 * N)
    for direction, same in (("previous", True), ("next", False)):
        linear = copying_construction(codes, D, N_OUT, direction=direction)
        soft = copying_construction(codes, D, N_OUT, 30.0, direction)
        for attention, copy in ((linear_attention, linear), (partial(softmax_attention, sink=1.0), soft)):
            free = attention(copy, tokens.context, tokens.context)
            masked = attention(copy, tokens.context, tokens.context, mask=seen)
            change = float((masked - free).abs().max())
            assert change < 1e-10 if same else change > 0.1


def appendix_a5(size: int, sharpness: float) -> AttentionWeights:
    """W_V = [[0, 0], [I, -I_off]], W_K = [[0, 0], [0, I]], W_Q = [[0, 0], [0, I_off^T]] and P = I; k W_Q for W_Q.

    The text calls I_off lower diagonal; W_Q p_j = p_{j+1}, which it wants, needs the upper one.
    """
    zero, unit = torch.zeros(size, size, dtype=DOUBLE), torch.eye(size, dtype=DOUBLE)
    off = torch.diag(torch.ones(size - 1, dtype=DOUBLE), 1)  # off^T p_j = p_{j+1}
    w_v = torch.cat([torch.cat([zero, zero], 1), torch.cat([unit, -off], 1)])
    w_k = torch.block_diag(zero, unit)
    w_q = torch.block_diag(zero, sharpness * off.mT)
    return AttentionWeights(w_k[None], w_q[None], w_v[None], torch.eye(2 * size, dtype=DOUBLE)[None])


def printed_tokens(batch) -> torch.Tensor:
    """The tokens of A.5 as wished for there: x and (0, y) in 2N + 1 numbers, and one-hot codes; the query is a key."""
    data = torch.zeros(batch.num_tasks, PLACES, PLACES, dtype=DOUBLE)
    data[:, :-1:2, :D], data[:, 1::2, -N_OUT:], data[:, -1, :D] = batch.context_x, batch.context_y, batch.query_x[:, 0]
    return torch.cat([data, torch.eye(PLACES, dtype=DOUBLE).expand(batch.num_tasks, -1, -1)], dim=-1)


def test_the_printed_weights_copy_exactly_with_linear_attention_and_hardly_with_a_softmax(draw_batch):
    batch = draw_batch(num_queries=1)
    tokens = printed_tokens(batch)
    wanted = torch.cat([tokens[:, :-1, :PLACES], tokens[:, 1:, :PLACES]], dim=-1)  # the copy in the place of the code
    linear = tokens + linear_attention(appendix_a5(PLACES, 1.0), tokens, tokens)
    torch.testing.assert_close(linear[:, :-1], wanted, rtol=1e-12, atol=1e-12)
    printed = tokens + softmax_attention(appendix_a5(PLACES, 1.0), tokens, tokens)
    assert (printed[:, :-1] - wanted).abs().amax((1, 2)).min() > 0.5
    repaired = tokens + softmax_attention(appendix_a5(PLACES, 40.0), tokens, tokens)
    torch.testing.assert_close(repaired[:, :-1], wanted, rtol=1e-12, atol=1e-12)
    shares = attention_shares(appendix_a5(PLACES, 1.0), tokens, tokens)[0, 0]
    on_next = shares[:-1, 1:].diagonal()
    torch.testing.assert_close(on_next, torch.full_like(on_next, math.e / (math.e + 2 * N)), rtol=0, atol=1e-12)
    # The last token has no next one: a softmax of zeros is the plain mean.
    torch.testing.assert_close(shares[-1], torch.full_like(shares[-1], 1 / PLACES), rtol=0, atol=1e-12)


def test_the_printed_off_diagonal_is_the_neighbour_map_of_one_hot_codes():
    code_part = appendix_a5(PLACES, 1.0).w_kq[0, PLACES:, PLACES:]
    torch.testing.assert_close(code_part, neighbour_map(one_hot_codes(PLACES, DOUBLE), "next"), rtol=0, atol=1e-12)


@pytest.mark.parametrize("missed", [0.5, 0.01, 1e-6])
def test_the_needed_sharpness_is_the_inverse_of_the_law(missed):
    assert missed_weight(needed_sharpness(missed, 20), 20) == pytest.approx(missed, rel=1e-12)


def test_at_ten_examples_one_hot_scores_give_the_target_an_eighth():
    assert 1 - missed_weight(1.0, 20) == pytest.approx(0.1197, abs=5e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: copying_construction(torch.eye(11), 2, 3), ValueError, "y_dim: expected at most x_dim = 2, got 3"),
        (lambda: copying_construction(torch.eye(10), 2, 1), ValueError, "positions: expected 2N + 1 codes, an odd"),
        (lambda: copying_construction(torch.ones(11, 11), 2, 1), ValueError, "linearly independent rows, got rows of"),
        (lambda: copying_construction(torch.eye(11), 2, 1, 0.0), ValueError, "sharpness: expected a number > 0, got"),
        (lambda: copying_construction(torch.eye(11), 2, 1, direction="up"), ValueError, "direction: expected one of"),
        (lambda: copying_construction(torch.eye(11), 0, 1), ValueError, "x_dim: expected a positive integer, got 0"),
        (lambda: pointing_construction(torch.eye(11), 1.0, 2, 3), ValueError, "y_dim: expected at most x_dim = 2, got"),
        (
            lambda: pointing_construction(torch.eye(11), math.nan, 2, 1),
            ValueError,
            "eta: expected a finite number, got",
        ),
        (lambda: missed_weight(-1.0, 20), ValueError, "sharpness: expected a number >= 0, got -1"),
        (lambda: missed_weight(1.0, 0), ValueError, "num_others: expected a positive integer, got 0"),
        (lambda: needed_sharpness(1.0, 20), ValueError, "missed: expected a share below 1, got 1.0"),
        (lambda: needed_sharpness(0.0, 20), ValueError, "missed: expected a number > 0, got 0.0"),
    ],
)
def test_what_is_no_copy_is_refused(call, error, message, refused):
    refused(call, error, message)
