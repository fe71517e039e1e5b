"""The decoder against torch's own attention, and the identities that any decoder keeps."""

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention, softmax

from mesa_lib import (
    AttentionWeights,
    Decoder,
    DecoderBlock,
    HeadReading,
    causal_mask,
    rotate_pairs,
    softmax_attention,
    split_attention,
)

TIGHT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture
def decoder(draw):
    """Two blocks with three heads of 4 (values of 5), tokens of 6, MLPs of 7, and 11 symbols."""

    def block():
        attention = AttentionWeights(draw(3, 4, 6), draw(3, 4, 6), draw(3, 5, 6), draw(3, 6, 5))
        return DecoderBlock(attention, 1 + draw(6) / 4, draw(7, 6), draw(7, 6), draw(6, 7), 1 + draw(6) / 4)

    return Decoder(draw(11, 6), (block(), block()), 1 + draw(6) / 4, rotation_base=1e4, epsilon=1e-5)


@pytest.fixture
def prompts(seeded):
    return torch.randint(0, 11, (3, 8), generator=seeded)


def test_rotation_is_multiplication_by_a_phase(draw):
    vectors = draw(2, 5, 6)
    pairs = torch.view_as_complex(vectors.reshape(2, 5, 3, 2))
    angles = torch.arange(7, 12)[:, None] * torch.tensor([1.0, 100 ** (-1 / 3), 100 ** (-2 / 3)])
    expected = torch.view_as_real(pairs * torch.polar(torch.ones(()).double(), angles.double()))
    torch.testing.assert_close(rotate_pairs(vectors, 100.0, start=7), expected.flatten(-2), rtol=1e-6, atol=1e-6)


def test_scores_know_distances_only(draw):
    keys, queries = draw(5, 6), draw(5, 6)
    here, there = (rotate_pairs(queries, 1e4, s) @ rotate_pairs(keys, 1e4, s).mT for s in (0, 40))
    torch.testing.assert_close(here, there, **TIGHT)
    assert (here - queries @ keys.mT).abs().max() > 0.1


def test_what_cannot_be_rotated_is_refused(draw, refused):
    refused(lambda: rotate_pairs(draw(2, 3), 1e4), ValueError, "vectors: expected an even number of entries, got 3")
    refused(lambda: rotate_pairs(draw(2, 4), 0.0), ValueError, "base: expected a number > 0")
    refused(lambda: rotate_pairs(draw(2, 4), 1e4, start=0.5), TypeError, "start: expected an integer >= 0, got 0.5")


def test_heads_read_as_torch_says(decoder, prompts):
    for reading in decoder.readings(prompts):
        shares = reading.shares()
        torch.testing.assert_close(shares.sum(-1), torch.ones_like(shares[..., 0]), **TIGHT)
        by_torch = scaled_dot_product_attention(
            reading.queries, reading.keys, reading.values, is_causal=True, scale=1.0
        )
        torch.testing.assert_close(shares @ reading.values, by_torch, **TIGHT)


def test_a_block_at_one_position_is_its_formula_by_hand(decoder, prompts):
    """At the first position nothing is rotated and the only share is one, so every step can be written out."""
    stream = decoder.embedding[prompts[:, :1]]
    for block in decoder.blocks:
        given = stream / (stream.square().mean(-1, keepdim=True) + 1e-5).sqrt() * block.attention_gain
        stream = stream + given @ block.attention.w_pv.sum(0).mT
        given = stream / (stream.square().mean(-1, keepdim=True) + 1e-5).sqrt() * block.mlp_gain
        gate = given @ block.w_gate.mT
        stream = stream + (gate * torch.sigmoid(gate) * (given @ block.w_up.mT)) @ block.w_down.mT
    last = stream[:, 0] / (stream[:, 0].square().mean(-1, keepdim=True) + 1e-5).sqrt() * decoder.final_gain
    torch.testing.assert_close(decoder.logits(prompts[:, :1]), last @ decoder.embedding.mT, **TIGHT)


def test_without_rotation_attention_is_the_book_s_own(decoder, prompts):
    """At a base so large only the first pair turns; heads that do not read that pair attend as `softmax_attention`."""
    block = decoder.blocks[0]
    masked = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.float64)[:, None]
    weights = AttentionWeights(
        block.attention.w_k * masked, block.attention.w_q * masked, block.attention.w_v, block.attention.w_p
    )
    bare = DecoderBlock(weights, block.attention_gain, block.w_gate, block.w_up, block.w_down, block.mlp_gain)
    flat = Decoder(decoder.embedding, (bare,), decoder.final_gain, rotation_base=1e40, epsilon=1e-5)
    stream = flat.embedding[prompts]
    given = stream / (stream.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    folded = bare.folded()
    scaled = AttentionWeights(folded.w_k, folded.w_q / math.sqrt(4), folded.w_v, folded.w_p)
    expected = softmax_attention(scaled, given, given, mask=causal_mask(8))
    (reading,) = flat.readings(prompts)
    by_head = reading.shares() @ reading.values  # (task, head, context, v)
    update = (by_head.unsqueeze(-2) @ weights.w_p.mT[:, None]).squeeze(-2).sum(1)
    torch.testing.assert_close(update, expected, rtol=1e-10, atol=1e-10)


def test_the_first_layer_knows_distances_only(decoder, prompts):
    scores = [one[0].queries @ one[0].keys.mT for one in map(decoder.readings, (prompts, prompts[:, 1:]))]
    torch.testing.assert_close(scores[0][..., 1:, 1:], scores[1], **TIGHT)


def test_no_symbol_changes_what_was_said_before_it(decoder, prompts):
    longer = torch.cat([prompts, (prompts[:, :2] + 1) % 11], dim=-1)
    for short, long in zip(decoder.readings(prompts), decoder.readings(longer), strict=True):
        torch.testing.assert_close(short.queries, long.queries[..., :8, :], **TIGHT)
        torch.testing.assert_close(short.shares(), long.shares()[..., :8, :8], **TIGHT)


def test_prompts_of_a_batch_do_not_see_each_other(decoder, prompts):
    torch.testing.assert_close(decoder.logits(prompts)[1:2], decoder.logits(prompts[1:2]), **TIGHT)


def test_order_matters_to_a_decoder(decoder, prompts):
    swapped = prompts[:, [1, 0, *range(2, 8)]]
    assert (decoder.logits(prompts) - decoder.logits(swapped)).abs().max() > 1e-3


def test_predictions_are_probabilities(decoder, prompts):
    predicted = decoder.predict(prompts)
    torch.testing.assert_close(predicted, softmax(decoder.logits(prompts), -1), **TIGHT)
    assert predicted.dtype == torch.float64 and predicted.shape == (3, 11)


def test_attention_is_a_convex_combination_of_two_softmaxes(draw):
    """Each part by shares of its own, from exponentials written out."""
    reading = HeadReading(draw(2, 3, 7, 4), draw(2, 3, 7, 4), draw(2, 3, 7, 5))
    chosen = torch.tensor([True, False, True, True, False, False, False])
    split = split_attention(reading, chosen)
    raw = (reading.queries[..., -1:, :] @ reading.keys.mT).squeeze(-2).exp()
    torch.testing.assert_close(split.mass, raw[..., chosen].sum(-1) / raw.sum(-1), **TIGHT)
    for part, members in ((split.chosen, chosen), (split.rest, ~chosen)):
        weighted = (raw[..., members, None] * reading.values[..., members, :]).sum(-2)
        torch.testing.assert_close(part, weighted / raw[..., members].sum(-1, keepdim=True), **TIGHT)
    mass = split.mass[..., None]
    torch.testing.assert_close(split.whole, mass * split.chosen + (1 - mass) * split.rest, **TIGHT)
    torch.testing.assert_close(split.whole, (reading.shares() @ reading.values)[..., -1, :], **TIGHT)


def test_a_split_needs_two_sides(draw, refused):
    reading = HeadReading(draw(1, 1, 3, 2), draw(1, 1, 3, 2), draw(1, 1, 3, 2))
    everything = torch.ones(3, dtype=torch.bool)
    for chosen in (everything, ~everything):
        refused(lambda c=chosen: split_attention(reading, c), ValueError, "chosen: expected some of the tokens")
    refused(lambda: split_attention(reading, everything[:2]), ValueError, "chosen: expected 3 truth values")
    refused(lambda: split_attention(reading.keys, everything), TypeError, "reading: expected HeadReading")


def test_queries_keys_and_values_of_different_shapes_are_refused(draw, refused):
    one = draw(1, 1, 3, 2)
    refused(lambda: HeadReading(one[0], one, one), ValueError, "HeadReading.queries: expected at least 4 axes")
    for name, parts in {"keys": (one, one[:, :, 1:], one), "values": (one, one, one[:, :, 1:])}.items():
        refused(lambda p=parts: HeadReading(*p), ValueError, f"HeadReading.{name}: expected a shape that ends in (1, 1")


@pytest.mark.parametrize("kind", [torch.int8, torch.int16, torch.int32])
def test_symbols_may_be_integers_of_any_size(decoder, prompts, kind):
    embedding = torch.cat([decoder.embedding] * 30)  # more symbols than the short types can count
    large = Decoder(embedding, decoder.blocks, decoder.final_gain, decoder.rotation_base, decoder.epsilon)
    assert torch.equal(large.logits(prompts.to(kind)), large.logits(prompts))


def test_prompts_that_are_none_are_refused(decoder, prompts, refused):
    refused(lambda: decoder.logits(prompts[0]), ValueError, "symbols: expected shape (task, context), got (8,)")
    refused(lambda: decoder.logits(prompts + 5), ValueError, "symbols: expected numbers from 0 to 10")
    refused(
        lambda: decoder.readings(prompts.double()), TypeError, "symbols: expected integers, got dtype torch.float64"
    )
    refused(lambda: decoder.logits(prompts.tolist()), TypeError, "symbols: expected a tensor, got list")
    refused(lambda: decoder.predict(prompts[:, :0]), ValueError, "symbols: expected shape (task, context), got (3, 0)")


def test_blocks_whose_parts_do_not_fit_are_refused(decoder, draw, refused):
    b = decoder.blocks[0]

    def narrow():
        return DecoderBlock(b.attention, b.attention_gain, b.w_gate, b.w_up, draw(6, 8), b.mlp_gain)

    refused(narrow, ValueError, "DecoderBlock.w_down: expected a shape that ends in (6, 7), got (6, 8)")
