"""The copying signal on layers that copy by hand, networks that score by position, and knock-outs."""

from functools import partial

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    LinearTasks,
    PositionScored,
    TaskBatch,
    TokenTransformer,
    TrainingSettings,
    attention_shares,
    copying_construction,
    copying_signal,
    fourier_codes,
    gd_construction,
    gradient_descent,
    insert_slots,
    interleaved_tokens,
    linear_attention,
    one_hot_codes,
    random_layers,
    sampled_query_loss,
    softmax_attention,
    train,
)
from mesa_lib.networks.copying import scale_first_update

DOUBLE = torch.float64
D, N_OUT, N = 3, 2, 4
PLACES = 2 * N + 1
CODES = fourier_codes(PLACES, dtype=DOUBLE)
TOKEN = D + PLACES + N_OUT
TOKENS = partial(interleaved_tokens, positions=CODES)


def test_interleaved_tokens_alternate_in_a_shared_slot_with_an_empty_one_at_the_end(draw_batch):
    batch = draw_batch(num_context=N)
    tokens = TOKENS(batch)
    empty = torch.zeros(N_OUT, dtype=DOUBLE)
    assert torch.equal(tokens.context[1, 4], torch.cat([batch.context_x[1, 2], CODES[4], empty]))
    target = torch.cat([torch.zeros(D - N_OUT, dtype=DOUBLE), batch.context_y[1, 2]])
    assert torch.equal(tokens.context[1, 5], torch.cat([target, CODES[5], empty]))
    assert torch.equal(tokens.query[1, 1], torch.cat([batch.query_x[1, 1], CODES[-1], empty]))
    assert tokens.context.shape == (4, 2 * N, TOKEN)


@pytest.mark.parametrize(
    ("codes", "sizes", "message"),
    [
        (torch.eye(8).double(), {}, "positions: expected 9 codes, 2N + 1, got shape (8, 8)"),
        (torch.ones(9).double(), {}, "positions: expected at least 2 axes, got shape (9,)"),
        (torch.eye(9).double(), {"y_dim": 4}, "batch: expected at most 3 targets, as many as inputs, got 4"),
    ],
)
def test_codes_and_tasks_that_do_not_interleave_are_refused(codes, sizes, message, draw_batch, refused):
    batch = draw_batch(num_context=N, **sizes)
    refused(lambda: interleaved_tokens(batch, codes), ValueError, message)


def network_of(layer: AttentionWeights, attention=linear_attention) -> TokenTransformer:
    return TokenTransformer([layer], [attention], TOKENS)


def nothing() -> AttentionWeights:
    zero = torch.zeros(1, TOKEN, TOKEN, dtype=DOUBLE)
    return AttentionWeights(zero, zero, zero, zero)


@pytest.mark.parametrize(
    ("layer", "own", "following", "previous"),
    [
        (nothing(), 0.0, 0.0, 0.0),
        # x_j gets y_j in its empty slot: an identity of N_OUT numbers.
        (copying_construction(CODES, D, N_OUT), 0.0, N_OUT**0.5, 0.0),
        # y_j gets x_j, and moves itself: out of D numbers of a slot, into N_OUT others. Inputs stay: half of `own`.
        (copying_construction(CODES, D, N_OUT, direction="previous"), (D + N_OUT) ** 0.5 / 2, 0.0, D**0.5),
    ],
    ids=["none", "next", "previous"],
)
def test_the_signal_of_pure_copies(layer, own, following, previous, draw_batch):
    signal = copying_signal(network_of(layer), draw_batch(num_context=N))
    for got, expected in ((signal.own, own), (signal.next, following), (signal.previous, previous), (signal.other, 0)):
        assert float(got) == pytest.approx(expected, abs=1e-12)


def test_a_uniform_mean_reads_everybody_alike(draw_batch):
    everything = torch.eye(TOKEN, dtype=DOUBLE)[None]
    layer = AttentionWeights(0 * everything, 0 * everything, everything, everything)
    signal = copying_signal(network_of(layer, softmax_attention), draw_batch(num_context=N))
    for got in (signal.own, signal.next, signal.previous, signal.other):
        assert float(got) == pytest.approx(D**0.5 / (2 * N), abs=1e-12)


def test_the_signal_is_the_norm_of_finite_differences(draw_batch):
    """Scores depend on the numbers here, so the derivative has more terms than a share of attention."""
    layer = random_layers(1, TOKEN - N_OUT, N_OUT, [0], scale=0.3, dtype=DOUBLE)[0].members(0)
    network, batch = network_of(layer, softmax_attention), draw_batch(1, num_context=N)
    context, step = TOKENS(batch).context, 1e-6
    norms = torch.zeros(2 * N, 2 * N, dtype=DOUBLE)
    for place in range(2 * N):
        for number in range(D):
            moved = context.clone()
            moved[0, place, number] += step
            change = softmax_attention(layer, moved, moved) - softmax_attention(layer, context, context)
            norms[:, place] += (change[0] / step).square().sum(-1)
    norms = norms.sqrt()
    signal = copying_signal(network, batch)
    apart = [norms[j, k] for j in range(2 * N) for k in range(2 * N) if abs(j - k) > 1]
    expected = {
        "own": norms.diagonal().mean(),
        "next": torch.stack([norms[j, j + 1] for j in range(0, 2 * N, 2)]).mean(),
        "previous": torch.stack([norms[j + 1, j] for j in range(0, 2 * N, 2)]).mean(),
        "other": torch.stack(apart).mean(),
    }
    for name, value in expected.items():
        torch.testing.assert_close(getattr(signal, name), value, rtol=1e-4, atol=1e-6)


def test_members_of_an_ensemble_have_their_own_signals(draw_batch):
    batch = draw_batch(num_context=N)
    layers = random_layers(2, TOKEN - N_OUT, N_OUT, [0, 1], scale=0.3, dtype=DOUBLE)
    both = copying_signal(TokenTransformer(layers, [softmax_attention, linear_attention], TOKENS), batch)
    for member in range(2):
        alone = copying_signal(network_of(layers[0].members(member), softmax_attention), batch)
        for name in ("own", "next", "previous", "other"):
            torch.testing.assert_close(getattr(both, name)[member], getattr(alone, name), rtol=1e-10, atol=1e-12)


def test_the_signal_needs_two_tokens_for_each_example(draw_batch, refused):
    network = TokenTransformer([gd_construction(0.6, D, N_OUT, N, dtype=DOUBLE)], [linear_attention])
    message = "network: expected two tokens for each of 4 examples, got 4"
    refused(lambda: copying_signal(network, draw_batch(num_context=N)), ValueError, message)


def test_scores_by_position_are_the_same_in_every_task(draw_batch):
    batch = draw_batch(num_context=N)
    layers = random_layers(2, TOKEN - N_OUT, N_OUT, [0], scale=0.5, dtype=DOUBLE)
    kinds = [softmax_attention, linear_attention]
    free = TokenTransformer(layers, kinds, TOKENS)
    masked = PositionScored(layers, kinds, TOKENS, slice(D, D + PLACES))
    tokens = TOKENS(batch)
    for network, same in ((free, False), (masked, True)):
        shares = attention_shares(network.layers()[0], tokens.context, tokens.query)
        assert bool((shares.var(dim=(1, 3)) < 1e-20).all()) is same
    assert torch.equal(masked.layers()[1].w_k, free.layers()[1].w_k)
    assert torch.equal(masked.layers()[0].w_k[..., D : D + PLACES], free.layers()[0].w_k[..., D : D + PLACES])


def test_training_leaves_masked_weights_alone():
    tasks = LinearTasks(D, N_OUT, N, 2)
    codes = partial(interleaved_tokens, positions=CODES.float())
    layers = random_layers(2, TOKEN - N_OUT, N_OUT, [0, 3])
    start = PositionScored(layers, [softmax_attention, linear_attention], codes, slice(D, D + PLACES))
    run = train(start, tasks, [0, 3], TrainingSettings(num_steps=3, warmup_steps=1, loss=sampled_query_loss))
    moved = run.learner.w_k_0 - start.w_k_0
    assert moved[..., D : D + PLACES].abs().min() > 0
    assert not moved[..., :D].any() and not moved[..., D + PLACES :].any()


def test_no_entries_to_score_by_are_refused(refused):
    layers = random_layers(1, TOKEN - N_OUT, N_OUT, [0])
    message = f"scored: expected some of the {TOKEN} entries of a token, got slice(3, 3, None)"
    refused(lambda: PositionScored(layers, [linear_attention], TOKENS, slice(3, 3)), ValueError, message)


def copy_then_step() -> TokenTransformer:
    layers = [
        copying_construction(CODES, D, N_OUT),
        insert_slots(gd_construction(0.6, D, N_OUT, N, dtype=DOUBLE), D, PLACES),
    ]
    return TokenTransformer(layers, [linear_attention, linear_attention], TOKENS)


def test_without_the_copy_nothing_is_predicted_and_without_the_query_update_all_is(draw_batch):
    batch, network = draw_batch(num_context=N), copy_then_step()
    expected = gradient_descent(batch, 0.6)
    torch.testing.assert_close(scale_first_update(network)(batch), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(scale_first_update(network, query=0.0)(batch), expected, rtol=1e-12, atol=1e-12)
    assert scale_first_update(network, context=0.0)(batch).abs().max() < 1e-12
    torch.testing.assert_close(scale_first_update(network, context=0.5)(batch), expected / 2, rtol=1e-12, atol=1e-12)


def test_an_update_can_be_scaled_entry_by_entry(draw_batch):
    batch = draw_batch(num_context=N)
    layers = random_layers(2, TOKEN - N_OUT, N_OUT, [0, 1], scale=0.4, dtype=DOUBLE)
    network = TokenTransformer(layers, [softmax_attention, linear_attention], TOKENS)
    factor = torch.linspace(0, 1, TOKEN, dtype=DOUBLE)
    tokens = TOKENS(batch)
    context = tokens.context + softmax_attention(layers[0], tokens.context, tokens.context)
    query = tokens.query + factor * softmax_attention(layers[0], tokens.context, tokens.query)
    expected = -(query + linear_attention(layers[1], context, query))[..., -N_OUT:]
    torch.testing.assert_close(scale_first_update(network, query=factor)(batch), expected, rtol=1e-12, atol=1e-12)


def test_what_cannot_be_scaled_is_refused(refused):
    network = copy_then_step()
    refused(lambda: scale_first_update(network, torch.ones(3)), ValueError, f"context: expected one number or {TOKEN}")
    refused(lambda: scale_first_update(network_of(nothing())), ValueError, "network: expected at least two layers")


def test_new_slots_are_neither_read_nor_written(draw_batch):
    layer = random_layers(1, D, N_OUT, [0], num_heads=2, dtype=DOUBLE)[0].members(0)
    wide = insert_slots(layer, D, PLACES)
    batch = draw_batch(num_context=N)
    tokens = TaskBatch(batch.context_x, batch.context_y, batch.query_x, batch.query_y)
    narrow = torch.cat([tokens.context_x, tokens.context_y], -1)
    between = torch.ones(*narrow.shape[:-1], PLACES, dtype=DOUBLE)
    inserted = torch.cat([narrow[..., :D], between, narrow[..., D:]], -1)
    update = linear_attention(wide, inserted, inserted)
    expected = linear_attention(layer, narrow, narrow)
    assert not update[..., D : D + PLACES].any()
    torch.testing.assert_close(update[..., :D], expected[..., :D], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(update[..., D + PLACES :], expected[..., D:], rtol=1e-12, atol=1e-14)


def test_slots_at_no_place_are_refused(refused):
    layer = gd_construction(0.6, D, N_OUT, N)
    refused(lambda: insert_slots(layer, 6, 1), ValueError, "at: expected a place from 0 to 5, got 6")
    refused(lambda: insert_slots(layer, 0, 0), ValueError, "size: expected a positive integer, got 0")


def test_one_hot_codes_interleave_too(draw_batch):
    batch = draw_batch(num_context=N)
    tokens = interleaved_tokens(batch, one_hot_codes(PLACES, DOUBLE))
    assert torch.equal(tokens.context[0, :, D : D + PLACES], torch.eye(PLACES, dtype=DOUBLE)[:-1])
