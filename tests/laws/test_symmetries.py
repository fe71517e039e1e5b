"""science.md 3b: which weights are the same layer."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    AttentionWeights,
    LinearTasks,
    Tokens,
    canonicalize,
    gauge_transform,
    interpolate,
    linear_self_attention,
    population_loss,
    signal_paths,
    twin_share,
)


def matrices(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def well_conditioned(seed, size):
    """A random invertible matrix with singular values between 1/2 and 2."""
    u, _, vh = torch.linalg.svd(matrices(seed, size, size))
    return u @ torch.diag(torch.linspace(0.5, 2, size, dtype=torch.float64)) @ vh


def gauge_transformed(weights, seed, scale):
    """(P, W_V, W_Q, W_K) -> (c P g^-1, g W_V, h W_Q, h^-T W_K / c)."""
    g, h = well_conditioned(seed, weights.w_v.shape[-2]), well_conditioned(seed + 1, weights.w_k.shape[-2])
    return AttentionWeights(
        w_k=torch.linalg.inv(h).T @ weights.w_k / scale,
        w_q=h @ weights.w_q,
        w_v=g @ weights.w_v,
        w_p=scale * weights.w_p @ torch.linalg.inv(g),
    )


def random_layer(seed):
    shapes = [(2, 4, 5), (2, 4, 5), (2, 3, 5), (2, 5, 3)]
    return AttentionWeights(*(matrices(seed + index, *shape) for index, shape in enumerate(shapes)))


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([-2.0, -0.3, 0.5, 3.0]))
def test_a_layer_is_invariant_under_its_gauge_group(seed, scale):
    layer = random_layer(seed)
    same = gauge_transformed(layer, seed + 10, scale)
    tokens = Tokens(matrices(seed + 20, 3, 6, 5), matrices(seed + 21, 3, 2, 5))
    before, after = linear_self_attention(layer, tokens), linear_self_attention(same, tokens)
    size = float(before.context.abs().max())
    torch.testing.assert_close(after.context, before.context, rtol=1e-10, atol=1e-12 * size)
    torch.testing.assert_close(after.query, before.query, rtol=1e-10, atol=1e-12 * size)
    assert (same.w_k - layer.w_k).abs().max() > 1e-2  # other factors
    assert (same.w_v - layer.w_v).abs().max() > 1e-2


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([-2.0, 0.5]))
def test_what_compares_and_judges_layers_does_not_see_the_gauge(seed, scale):
    layer, other = random_layer(seed), random_layer(seed + 50)
    same = gauge_transformed(layer, seed + 10, scale)
    tasks = LinearTasks(3, 2, 4)
    pairs = [
        (canonicalize(layer, 2).w_kq, canonicalize(same, 2).w_kq),
        (canonicalize(layer, 2).w_pv, canonicalize(same, 2).w_pv),
        (interpolate(layer, other, 0.3, 2).w_pv, interpolate(same, other, 0.3, 2).w_pv),
        (population_loss(tasks, layer), population_loss(tasks, same)),
    ]
    for expected, got in pairs:
        size = float(expected.abs().max())
        torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-10 * size)


def rank_one(b, c):
    identity = torch.eye(5, dtype=torch.float64)[None]
    return AttentionWeights(identity, c[None], identity, b[None])


def test_a_rank_one_layer_may_exchange_its_reader_of_keys_and_of_values():
    """B = a b^T, C = p q^T is the same layer as B = a p^T, C = b q^T: the twin of finding 7."""
    a, b, p, q = matrices(0, 4, 5)
    one, twin = rank_one(torch.outer(a, b), torch.outer(p, q)), rank_one(torch.outer(a, p), torch.outer(b, q))
    tokens = Tokens(matrices(1, 3, 6, 5), matrices(2, 3, 2, 5))
    expected, got = linear_self_attention(one, tokens), linear_self_attention(twin, tokens)
    torch.testing.assert_close(got.query, expected.query, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(
        population_loss(LinearTasks(4, 1), twin), population_loss(LinearTasks(4, 1), one), rtol=1e-11, atol=0
    )


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
def test_what_a_query_cannot_see_does_not_change_the_loss(inputs):
    """Finding 13: with the query token (x_q, 0), P's rows other than y and W_Q's columns of y are invisible."""
    layer = random_layer(0)
    w_p, w_q = layer.w_p.clone(), layer.w_q.clone()
    w_p[:, :3] += 1
    w_q[..., 3:] += 1
    tasks = LinearTasks(3, 2, 4, inputs=inputs)
    changed = AttentionWeights(layer.w_k, w_q, layer.w_v, w_p)
    torch.testing.assert_close(population_loss(tasks, changed), population_loss(tasks, layer), rtol=1e-13, atol=0)


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([-2.0, -0.3, 0.5, 3.0]))
def test_the_librarys_gauge_is_the_groups(seed, scale):
    layer = random_layer(seed)
    g, h = well_conditioned(seed + 10, 3), well_conditioned(seed + 11, 4)
    same, expected = gauge_transform(layer, g, h, scale), gauge_transformed(layer, seed + 10, scale)
    for name in ("w_k", "w_q", "w_v", "w_p"):
        torch.testing.assert_close(getattr(same, name), getattr(expected, name), rtol=1e-11, atol=1e-12)
    back = gauge_transform(same, torch.linalg.inv(g), torch.linalg.inv(h), 1 / scale)
    torch.testing.assert_close(back.w_k, layer.w_k, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(back.w_p, layer.w_p, rtol=1e-10, atol=1e-12)


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([-2.0, 0.5]))
def test_paths_and_the_norm_form_do_not_see_the_gauge(seed, scale):
    layer = random_layer(seed)
    same = gauge_transform(layer, well_conditioned(seed + 10, 3), well_conditioned(seed + 11, 4), scale)
    pairs = [
        (canonicalize(layer, 2, "norm").w_kq, canonicalize(same, 2, "norm").w_kq),
        (canonicalize(layer, 2, "norm").w_pv, canonicalize(same, 2, "norm").w_pv),
        (signal_paths(layer, 2).direct, signal_paths(same, 2).direct),
        (signal_paths(layer, 2).twin, signal_paths(same, 2).twin),
        (twin_share(layer, 2), twin_share(same, 2)),
    ]
    for expected, got in pairs:
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-10 * float(expected.abs().max()))
