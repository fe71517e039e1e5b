"""Softmax attention against its formula, its sink against tokens of nothing, and a network that mixes kinds."""

from functools import partial

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    FreeTransformer,
    LinearLearner,
    LinearTasks,
    Tokens,
    TokenTransformer,
    TrainingSettings,
    concatenated_tokens,
    four_head_softmax_construction,
    linear_attention,
    linear_self_attention,
    random_weights,
    read_prediction,
    sampled_query_loss,
    smoother_construction,
    softmax_attention,
    softmax_self_attention,
    train,
    two_head_softmax_construction,
)

DOUBLE = torch.float64
TIGHT = {"rtol": 1e-12, "atol": 1e-13}


@pytest.fixture
def layer(draw):
    """Two heads, keys of size 4, values of size 2, tokens of size 5."""
    return AttentionWeights(draw(2, 4, 5), draw(2, 4, 5), draw(2, 2, 5), draw(2, 5, 2))


@pytest.fixture
def tokens(draw):
    return Tokens(draw(3, 6, 5), draw(3, 2, 5))


def attend_with_loops(weights, tokens, reader, sinks):
    """e + sum_h P_h sum_i v_i exp(k_i . q) / (s_h + sum_j exp(k_j . q)), a head and a token at a time."""
    update = torch.zeros_like(reader)
    for h, sink in enumerate(sinks):
        powers = [torch.exp(torch.dot(weights.w_k[h] @ e, weights.w_q[h] @ reader)) for e in tokens]
        for power, e in zip(powers, tokens, strict=True):
            update = update + weights.w_p[h] @ weights.w_v[h] @ e * power / (sink + sum(powers))
    return reader + update


@pytest.mark.parametrize("sink", [0, 1.5, (0.0, 3.0)])
def test_a_softmax_layer_is_its_formula_for_every_token_and_query(sink, layer, tokens):
    moved = softmax_self_attention(layer, tokens, sink=sink)
    sinks = sink if isinstance(sink, tuple) else (sink, sink)
    for task in range(3):
        context = tokens.context[task]
        for before, after in ((context, moved.context[task]), (tokens.query[task], moved.query[task])):
            for reader, got in zip(before, after, strict=True):
                torch.testing.assert_close(got, attend_with_loops(layer, context, reader, sinks), **TIGHT)


def test_a_sink_is_as_many_tokens_of_nothing(layer, tokens):
    padded = Tokens(torch.cat([tokens.context, torch.zeros(3, 4, 5, dtype=DOUBLE)], dim=1), tokens.query)
    expected, got = softmax_self_attention(layer, padded), softmax_self_attention(layer, tokens, sink=4)
    torch.testing.assert_close(got.query, expected.query, **TIGHT)
    torch.testing.assert_close(got.context, expected.context[:, :6], **TIGHT)


def test_large_scores_neither_overflow_nor_divide_by_zero(layer, tokens):
    sharp = AttentionWeights(layer.w_k, 1e4 * layer.w_q, layer.w_v, layer.w_p)
    scores = torch.einsum("hab,tib,hac,tqc->thqi", layer.w_k, tokens.context, layer.w_q, tokens.query)
    values = torch.einsum("hab,hbc,tic->thia", layer.w_p, layer.w_v, tokens.context)
    best = scores.argmax(-1)[..., None].expand(-1, -1, -1, 5)
    expected = values.gather(2, best).sum(1)
    torch.testing.assert_close(softmax_attention(sharp, tokens.context, tokens.query), expected, **TIGHT)
    kept = softmax_attention(
        sharp, tokens.context, tokens.query, sink=1
    )  # where all scores are negative, the sink wins
    wins = (scores.amax(-1) > 0).to(DOUBLE)[..., None]
    torch.testing.assert_close(kept, (wins * values.gather(2, best)).sum(1), **TIGHT)


@pytest.mark.parametrize("attention", [linear_attention, softmax_attention, partial(softmax_attention, sink=2.0)])
def test_ensembles_of_weights_and_of_tokens_broadcast(attention, tokens):
    weights = random_weights(4, 1, [0, 1], num_heads=3, scale=0.5, dtype=DOUBLE)
    both = attention(weights, tokens.context, tokens.query)
    assert both.shape == (2, 3, 2, 5)
    several = Tokens(torch.stack([tokens.context, 2 * tokens.context]), torch.stack([tokens.query, -tokens.query]))
    paired = attention(weights, several.context, several.query)
    for k in range(2):
        alone = attention(weights.members(k), tokens.context, tokens.query)
        torch.testing.assert_close(both[k], alone, **TIGHT)
        expected = attention(weights.members(k), several.context[k], several.query[k])
        torch.testing.assert_close(paired[k], expected, **TIGHT)


def test_linear_attention_is_what_a_linear_layer_adds(layer, tokens):
    moved = linear_self_attention(layer, tokens)
    for before, after in ((tokens.context, moved.context), (tokens.query, moved.query)):
        torch.testing.assert_close(before + linear_attention(layer, tokens.context, before), after, **TIGHT)


@pytest.mark.parametrize(
    ("sink", "error", "message"),
    [
        (-1.0, ValueError, "sink: expected a number >= 0, got -1.0"),
        (float("nan"), ValueError, "sink: expected a finite number, got nan"),
        ((1.0, 2.0, 3.0), ValueError, "sink: expected one number, or 2, one a head, got 3"),
        ("1", TypeError, "sink: expected a finite number, got '1'"),
    ],
)
def test_a_bad_sink_is_refused(sink, error, message, layer, tokens, refused):
    refused(lambda: softmax_attention(layer, tokens.context, tokens.query, sink=sink), error, message)
    refused(lambda: softmax_self_attention(layer, tokens, sink=sink), error, message)


def test_tokens_that_do_not_fit_a_softmax_layer_are_refused(layer, tokens, draw, refused):
    single = Tokens(tokens.context.float(), tokens.query.float())
    message = "weights: expected dtype torch.float32, that of the tokens, got torch.float64"
    refused(lambda: softmax_self_attention(layer, single), TypeError, message)
    wide = Tokens(draw(3, 6, 7), draw(3, 2, 7))
    refused(lambda: softmax_self_attention(layer, wide), ValueError, "weights: expected a token size of 7, got 5")
    both = random_weights(4, 1, [0, 1], dtype=DOUBLE)
    three = draw(3, 1, 6, 5)
    message = "weights: expected leading axes that broadcast with (3,), those of the tokens, got (2,)"
    refused(lambda: softmax_attention(both, three, three), ValueError, message)


# A network of several kinds


@pytest.fixture
def stack():
    return [random_weights(3, 2, [seed], num_heads=2, scale=0.4, dtype=DOUBLE).members(0) for seed in (0, 1, 2)]


def test_a_token_transformer_applies_its_layers_in_their_order(stack, draw_batch):
    batch = draw_batch()
    network = TokenTransformer(stack, [softmax_attention, linear_attention, partial(softmax_attention, sink=1.0)])
    tokens = softmax_self_attention(stack[0], concatenated_tokens(batch))
    tokens = softmax_self_attention(stack[2], linear_self_attention(stack[1], tokens), sink=1.0)
    torch.testing.assert_close(network(batch), read_prediction(tokens, 2), **TIGHT)


def test_with_linear_layers_it_is_the_linear_transformer(stack, draw_batch):
    batch = draw_batch()
    network = TokenTransformer(stack, [linear_attention] * 3)
    torch.testing.assert_close(network(batch), FreeTransformer(stack)(batch), **TIGHT)
    assert not isinstance(network, LinearLearner)


def test_a_token_transformer_makes_and_reads_tokens_as_it_is_told(stack, draw_batch):
    batch = draw_batch()

    def turned(given):
        tokens = concatenated_tokens(given)
        return Tokens(tokens.context.flip(-1), tokens.query.flip(-1))

    def read(tokens, y_dim):
        return tokens.query[..., :y_dim]

    network = TokenTransformer(stack[:1], [softmax_attention], tokens=turned, read=read)
    expected = read(softmax_self_attention(stack[0], turned(batch)), 2)
    torch.testing.assert_close(network(batch), expected, **TIGHT)


def test_every_weight_that_a_query_sees_gets_a_gradient(stack, draw_batch):
    network = TokenTransformer(stack, [softmax_attention] * 3)
    network(draw_batch()).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.any(), name
    assert [len(list(network.parameters())), network.num_layers] == [12, 3]


def test_member_k_of_an_ensemble_of_softmax_networks_is_the_solo_run_of_seed_k():
    tasks = LinearTasks(x_dim=3, num_context=4, num_queries=3)
    settings = TrainingSettings(12, 8, warmup_steps=3, record_every=4, loss=sampled_query_loss)

    def trained(seeds):
        layers = [random_weights(3, 1, seeds, heads, scale=0.4, dtype=DOUBLE) for heads in (2, 1)]
        network = TokenTransformer(layers, [partial(softmax_attention, sink=0.5), linear_attention])
        return train(network, tasks, seeds, settings, dtype=DOUBLE)

    together = trained([5, 2])
    for k, seed in enumerate((5, 2)):
        alone = trained([seed])
        torch.testing.assert_close(together.losses[:, k], alone.losses[:, 0], rtol=1e-9, atol=0)
        for name, value in together.snapshots[-1].items():
            torch.testing.assert_close(value[k], alone.snapshots[-1][name][0], rtol=1e-8, atol=1e-10)


def test_networks_that_do_not_fit_together_are_refused(stack, refused):
    message = "attentions: expected 3, one a layer, got 2"
    refused(lambda: TokenTransformer(stack, [softmax_attention] * 2), ValueError, message)
    message = "attentions[1]: expected a function, got str"
    refused(lambda: TokenTransformer(stack[:2], [softmax_attention, "softmax"]), TypeError, message)
    refused(lambda: TokenTransformer([], []), ValueError, "layers: expected at least one AttentionWeights, got none")


# Constructions by hand: what they compute is in tests/propositions/test_softmax.py


def test_two_heads_score_alike_with_opposite_signs_and_write_the_target():
    weights = two_head_softmax_construction(0.5, 1.2, x_dim=2, y_dim=1, num_context=4, sink=2.0, dtype=DOUBLE)
    assert torch.equal(weights.w_kq[0], torch.diag(torch.tensor([0.5, 0.5, 0.0], dtype=DOUBLE)))
    assert torch.equal(weights.w_kq[1], -weights.w_kq[0])
    written = torch.zeros(3, 3, dtype=DOUBLE)
    written[2, 2] = -(4 + 2) / 4 * 1.2 / (2 * 0.5)
    torch.testing.assert_close(weights.w_pv, torch.stack([written, -written]), **TIGHT)
    one_sided = two_head_softmax_construction(0.5, 1.2, 2, 1, 4, sink=2.0, one_sided=True, dtype=DOUBLE)
    assert not one_sided.w_kq[1].any()
    torch.testing.assert_close(one_sided.w_pv, 2 * weights.w_pv, **TIGHT)


def test_a_smoothers_heads_read_x_as_keys_and_y_as_values():
    weights = smoother_construction([0.5, -2.0], [3.0, 0.25], x_dim=2, y_dim=1, dtype=DOUBLE)
    assert (weights.num_heads, weights.token_dim) == (2, 3)
    for head, (beta, output) in enumerate([(0.5, 3.0), (-2.0, 0.25)]):
        assert torch.equal(weights.w_kq[head], beta * torch.diag(torch.tensor([1.0, 1.0, 0.0], dtype=DOUBLE)))
        assert torch.equal(weights.w_pv[head], -output * torch.diag(torch.tensor([0.0, 0.0, 1.0], dtype=DOUBLE)))


def test_smoothers_that_do_not_fit_are_refused(refused):
    message = "outputs: expected 2 numbers, one for each beta, got 1"
    refused(lambda: smoother_construction([1.0, 2.0], [1.0], 3, 1), ValueError, message)
    refused(lambda: smoother_construction([], [], 3, 1), ValueError, "betas: expected at least one number")
    message = "outputs[0]: expected a finite number, got nan"
    refused(lambda: smoother_construction([1.0], [float("nan")], 3, 1), ValueError, message)
    refused(lambda: smoother_construction([1.0], [1.0], 3, 0), ValueError, "y_dim: expected a positive integer, got 0")


@pytest.mark.parametrize(
    ("build", "kwargs", "error", "message"),
    [
        (two_head_softmax_construction, {"beta": 0.0}, ValueError, "beta: expected a number > 0, got 0.0"),
        (two_head_softmax_construction, {"eta": float("inf")}, ValueError, "eta: expected a finite number, got inf"),
        (two_head_softmax_construction, {"sink": -1.0}, ValueError, "sink: expected a number >= 0, got -1.0"),
        (two_head_softmax_construction, {"num_context": 0}, ValueError, "num_context: expected a positive integer"),
        (two_head_softmax_construction, {"dtype": torch.int64}, TypeError, "dtype: expected a floating-point dtype"),
        (four_head_softmax_construction, {"beta": -1.0}, ValueError, "beta: expected a number > 0, got -1.0"),
        (four_head_softmax_construction, {"sinks": (3, 3)}, ValueError, "sinks: expected two different numbers"),
        (four_head_softmax_construction, {"sinks": (0, -1)}, ValueError, "sinks[1]: expected a number >= 0, got -1"),
        (four_head_softmax_construction, {"x_dim": 0}, ValueError, "x_dim: expected a positive integer, got 0"),
    ],
)
def test_a_bad_construction_is_refused(build, kwargs, error, message, refused):
    good = {"beta": 0.1, "eta": 1.0, "x_dim": 3, "y_dim": 1, "num_context": 4}
    refused(lambda: build(**(good | kwargs)), error, message)
