"""science.md 3c: a linear network acts on second moments; computing with them or with tokens is the same."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import FreeTransformer, LinearTasks, apply_layers, random_weights, read_prediction


@given(
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 12), st.integers(1, 3)),
    heads=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    has_start=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_predictions_from_moments_are_those_from_tokens(sizes, heads, has_start, seed):
    x_dim, y_dim, num_context, num_queries = sizes
    layers = [
        random_weights(x_dim, y_dim, [2 * seed, 2 * seed + 1], count, scale=0.3, dtype=torch.float64) for count in heads
    ]
    stream = torch.Generator().manual_seed(seed)
    w_0 = torch.randn(y_dim, x_dim, generator=stream, dtype=torch.float64) if has_start else None
    network = FreeTransformer(layers, w_0)
    batch = LinearTasks(x_dim, y_dim, num_context, num_queries, noise_std=0.2).sample(3, stream, dtype=torch.float64)
    from_tokens = read_prediction(apply_layers(network.layers(), network.tokens(batch)), y_dim)
    assert from_tokens.shape == (2, 3, num_queries, y_dim)
    scale = max(1.0, float(from_tokens.detach().abs().max()))
    torch.testing.assert_close(network(batch), from_tokens, rtol=1e-10, atol=1e-11 * scale)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_gradients_from_moments_are_those_from_tokens(num_layers, draw_batch):
    network = FreeTransformer(
        [random_weights(3, 2, [seed], 2, scale=0.3, dtype=torch.float64) for seed in range(num_layers)]
    )
    batch = draw_batch()
    parameters = list(network.parameters())
    by_moments = torch.autograd.grad(network(batch).square().sum(), parameters)
    from_tokens = read_prediction(apply_layers(network.layers(), network.tokens(batch)), 2)
    by_tokens = torch.autograd.grad(from_tokens.square().sum(), parameters)
    for one, other in zip(by_moments, by_tokens, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
