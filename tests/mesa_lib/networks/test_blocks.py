"""Blocks of MLP and attention: their shortcuts against explicit tokens, their ensembles, their refusals."""

from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mesa_lib import (
    MLP,
    AttentionWeights,
    FreeTransformer,
    LinearTasks,
    ResidualMLPBlock,
    SineTasks,
    TaskBatch,
    TokenMLP,
    Tokens,
    apply_layers,
    feature_batch,
    gd_construction,
    keep_reads,
    linear_self_attention,
    random_layers,
    random_mlp,
    random_residual_block,
    random_weights,
    read_prediction,
    residual_construction,
)

DOUBLE = torch.float64
SEEDS = [3, 8]
shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2**31))


def block(x_dim=2, y_dim=1, layers=1, heads=1, seeds=SEEDS, width=4):
    mlp = random_mlp(x_dim, width, seeds, hidden=(5,), dtype=DOUBLE)
    stack = random_layers(layers, width, y_dim, seeds, heads, scale=0.3, dtype=DOUBLE)
    start = torch.linspace(-1, 1, len(seeds) * y_dim * width, dtype=DOUBLE).view(len(seeds), y_dim, width)
    return TokenMLP(mlp, stack, start)


def tasks_of(x_dim, y_dim, seed):
    stream = torch.Generator().manual_seed(seed)
    return LinearTasks(x_dim, y_dim, 5, 3, noise_std=0.3).sample(4, stream, dtype=DOUBLE)


def close(got, expected):
    scale = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(got.detach(), expected.detach(), rtol=1e-10, atol=1e-12 * scale)


@given(shape=shapes)
def test_the_prediction_is_that_of_explicit_tokens_through_explicit_layers(shape):
    x_dim, y_dim, layers, heads, seed = shape
    network, batch = block(x_dim, y_dim, layers, heads), tasks_of(x_dim, y_dim, seed)
    close(network(batch), read_prediction(apply_layers(network.layers(), network.tokens(batch)), y_dim))


def test_tokens_are_features_and_residuals_and_a_query_has_target_zero(draw_batch):
    batch, network = draw_batch(x_dim=2, y_dim=2), block(y_dim=2)
    tokens = network.tokens(batch)
    for inputs, targets, got in (
        (batch.context_x, batch.context_y, tokens.context),
        (batch.query_x, torch.zeros_like(batch.query_y), tokens.query),
    ):
        seen = network.features(inputs)
        start = torch.einsum("eyf,etnf->etny", network.start, seen)
        close(got, torch.cat([seen, targets - start], dim=-1))


@given(shape=shapes)
def test_an_ensemble_is_member_by_member(shape):
    x_dim, y_dim, layers, heads, seed = shape
    network, batch = block(x_dim, y_dim, layers, heads), tasks_of(x_dim, y_dim, seed)
    for member in range(2):
        close(network(batch)[member], network.member(member)(batch))
    stacked = TaskBatch.stack([batch, tasks_of(x_dim, y_dim, seed + 1)])
    close(network(stacked)[0], network.member(0)(batch))


def test_feature_weights_answer_queries_through_their_features(draw_batch):
    batch, network = draw_batch(x_dim=2), block(y_dim=2, layers=2)
    answers = torch.einsum("etyf,etqf->etqy", network.feature_weights(batch), network.features(batch.query_x))
    close(network(batch), answers)


def test_with_a_start_of_zero_the_block_is_a_transformer_on_the_features(draw_batch):
    batch = draw_batch(x_dim=2, y_dim=1)
    mlp = random_mlp(2, 4, [3], hidden=(5,), dtype=DOUBLE).member(0)
    stack = [weights.members(0) for weights in random_layers(2, 4, 1, [3], scale=0.3, dtype=DOUBLE)]
    close(TokenMLP(mlp, stack)(batch), FreeTransformer(stack)(feature_batch(mlp, batch)))


def test_a_pool_changes_no_prediction_and_no_gradient():
    batch = SineTasks(queries="pool", num_queries=7, num_context=5).sample(4, torch.Generator(), dtype=DOUBLE)
    network = block(x_dim=1)
    plain = TaskBatch(batch.context_x, batch.context_y, batch.query_x.contiguous(), batch.query_y)
    close(network(batch), network(plain))
    ours, theirs = (
        torch.autograd.grad((network(given) - batch.query_y).square().sum(), list(network.parameters()))
        for given in (batch, plain)
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("y_dim", [1, 2])
def test_the_residual_block_is_embedding_mlp_and_attention_one_after_the_other(normalise, y_dim, draw_batch):
    batch = draw_batch(x_dim=2, y_dim=y_dim)
    made = random_residual_block(7, SEEDS, 2, y_dim, hidden=6, normalise=normalise, dtype=DOUBLE)
    slot = torch.zeros_like(batch.query_y)
    pairs = [torch.cat(pair, dim=-1) for pair in ((batch.context_x, batch.context_y), (batch.query_x, slot))]
    embedded = [torch.einsum("ezp,tnp->etnz", made.embedding, pair) for pair in pairs]
    moved = [token + made.mlp(token) for token in embedded]
    read = [nn.LayerNorm(7, elementwise_affine=False, dtype=DOUBLE)(token) for token in moved] if normalise else moved
    update = linear_self_attention(made.layers()[0], Tokens(*read)).query - read[1]
    close(made(batch), -(moved[1] + update)[..., -y_dim:])


def test_residual_blocks_start_from_streams_of_their_own():
    together, alone = (random_residual_block(7, seeds, dtype=DOUBLE) for seeds in ([5, 2], [2]))
    for ours, theirs in zip(together.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours[1], theirs[0], rtol=0, atol=0)
    big = random_residual_block(400, [0], x_dim=4, y_dim=4)
    assert abs(float(big.embedding.detach().std()) * 8**0.5 - 1) < 5 / (2 * 3200) ** 0.5


@pytest.mark.parametrize("parts", [("y", "x", "x"), ("y", "xy", "x"), ("x", "y", "xy"), ("xy", "xy", "xy")])
def test_what_values_keys_and_queries_may_not_read_has_no_effect(parts, draw):
    """The cut layer acts on whole tokens as the whole layer does on tokens of which each reader sees its part."""
    layer, tokens = random_weights(3, 2, [0], 2, scale=0.5, dtype=DOUBLE).members(0), draw(2, 6, 5)
    shown = {"x": [1.0, 1, 1, 0, 0], "y": [0.0, 0, 0, 1, 1], "xy": [1.0] * 5}
    value, key, query = (tokens * torch.tensor(shown[part], dtype=DOUBLE) for part in parts)
    update = torch.einsum("hza,tia,tib,hbc,tjc->tjz", layer.w_pv, value, key, layer.w_kq, query)
    update[..., :3] = 0
    got = linear_self_attention(keep_reads(layer, *parts, y_dim=2), Tokens(tokens, tokens)).query - tokens
    close(got, update)


def ensemble(width, y_dim=1, seeds=SEEDS):
    return random_weights(width, y_dim, seeds, dtype=DOUBLE)


def features(seeds=SEEDS):
    return random_mlp(2, 4, seeds, dtype=DOUBLE)


def residual(**kwargs):
    parts = {"embedding": torch.zeros(5, 3), "mlp": random_mlp(5, 5, [0]).member(0)}
    return ResidualMLPBlock(**parts | {"layer": random_weights(4, 1, [0]).members(0)} | kwargs)


REFUSALS = [
    (lambda: TokenMLP(features(), [ensemble(3)]), ValueError, "layers[0]: expected a token size of 4 features + 1"),
    (lambda: TokenMLP(features(), []), ValueError, "layers: expected at least one AttentionWeights"),
    (lambda: TokenMLP(features(), [ensemble(4, seeds=[0])]), ValueError, "layers[0]: expected the ensemble axes"),
    (
        lambda: TokenMLP(features(), [ensemble(4).to(torch.float32)]),
        TypeError,
        "layers[0]: expected dtype torch.float64",
    ),
    (lambda: TokenMLP(features(), [ensemble(4)], torch.zeros(2, 1, 5, dtype=DOUBLE)), ValueError, "start: expected a"),
    (lambda: block()(tasks_of(2, 2, 0)), ValueError, "batch: expected 1 targets, got 2"),
    (lambda: block()(tasks_of(3, 1, 0)), ValueError, "x: expected 2 inputs on the last axis"),
    (lambda: block().member(0).member(0), ValueError, "weights: expected an ensemble axis"),
    (lambda: residual(mlp=random_mlp(4, 5, [0]).member(0)), ValueError, "mlp: inputs: expected 5, the numbers of an"),
    (lambda: residual(mlp=random_mlp(5, 4, [0]).member(0)), ValueError, "mlp: outputs: expected 5"),
    (lambda: residual(layer=random_weights(5, 1, [0]).members(0)), ValueError, "layer: size: expected 5"),
    (lambda: residual(mlp=random_mlp(5, 5, [0])), ValueError, "mlp: expected the ensemble axes ()"),
    (lambda: residual(normalise=1), TypeError, "normalise: expected True or False"),
    (lambda: residual()(LinearTasks(3).sample(2, torch.Generator())), ValueError, "batch: expected inputs and targets"),
    (lambda: random_residual_block(1, [0]), ValueError, "token_dim: expected more than 1, the number of targets"),
    (lambda: residual_construction(features(), 0.1, 5), ValueError, "features: expected one MLP without ensemble axes"),
    (lambda: residual_construction(features().member(0), 0.1, 0), ValueError, "num_context: expected a positive"),
    (lambda: keep_reads(ensemble(4), "z"), ValueError, "values: expected one of 'x', 'y', 'xy'"),
    (lambda: keep_reads(ensemble(4), keys="z"), ValueError, "keys: expected one of"),
    (lambda: keep_reads(ensemble(4), queries="z"), ValueError, "queries: expected one of"),
    (lambda: keep_reads(ensemble(4), y_dim=5), ValueError, "y_dim: expected less than the token's 5 numbers"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_bad_arguments_are_refused_by_name(call, error, message, refused):
    refused(call, error, message)


def test_the_cut_layer_of_a_construction_is_the_construction():
    layer = gd_construction(0.7, 3, 2, 5, dtype=DOUBLE)
    cut = keep_reads(layer, y_dim=2)
    for product in ("w_kq", "w_pv"):
        torch.testing.assert_close(getattr(cut, product), getattr(layer, product), rtol=0, atol=0)
    assert all(getattr(cut, field.name).shape == (1, 5, 5) for field in fields(AttentionWeights))


def test_an_mlp_of_one_layer_fits_into_a_residual_block_too(draw_batch, draw):
    batch = draw_batch(x_dim=2, y_dim=1)
    mlp = MLP([draw(4, 2)], [draw(4)])
    start = draw(1, 4)
    layer = gd_construction(0.4, 4, 1, 5, dtype=DOUBLE)
    close(residual_construction(mlp, 0.4, 5, start)(batch), TokenMLP(mlp, [layer], start)(batch))
