"""Stacks of layers: second moments stand in for tokens, random starts, and refusals."""

from dataclasses import fields

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    FreeTransformer,
    Transformer,
    apply_layers,
    context_moment,
    gd_construction,
    generator,
    linear_self_attention,
    moment_implicit_weights,
    random_weights,
)

DOUBLE = torch.float64
TIGHT = {"rtol": 1e-12, "atol": 1e-13}


@pytest.fixture
def two_layers():
    return [random_weights(3, 2, [seed], num_heads=2, scale=0.4, dtype=DOUBLE) for seed in (0, 1)]


def test_layers_are_applied_in_their_order(two_layers, draw_batch):
    batch = draw_batch().expand(1)
    network = FreeTransformer(two_layers)
    first, second = two_layers
    expected = linear_self_attention(second, linear_self_attention(first, network.tokens(batch)))
    got = apply_layers(network.layers(), network.tokens(batch))
    torch.testing.assert_close(got.context, expected.context, **TIGHT)
    torch.testing.assert_close(got.query, expected.query, **TIGHT)
    swapped = apply_layers(two_layers[::-1], network.tokens(batch))
    assert (swapped.query - expected.query).abs().max() > 1e-3


def test_a_network_copies_its_weights_and_gives_them_back(two_layers):
    network = FreeTransformer(two_layers)
    for given, kept in zip(two_layers, network.layers(), strict=True):
        for f in fields(AttentionWeights):
            assert torch.equal(getattr(given, f.name), getattr(kept, f.name))
            assert getattr(kept, f.name).requires_grad
            getattr(given, f.name).zero_()
            assert getattr(kept, f.name).any()
    assert network.num_layers == 2
    assert len(list(network.parameters())) == 8


def test_every_weight_that_a_query_sees_gets_a_gradient(two_layers, draw_batch):
    network = FreeTransformer(two_layers)
    network(draw_batch()).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.any(), name


def test_moments_of_each_layer_are_those_of_the_moved_tokens(two_layers, draw_batch, draw):
    """science.md 3c: S <- (I + M) S (I + M)^T, from an arbitrary query map."""
    batch, query_map = draw_batch(), draw(5, 3)
    layers = [AttentionWeights(*(getattr(w, f.name)[0] for f in fields(w))) for w in two_layers]
    context = torch.cat([batch.context_x, batch.context_y], -1)
    got = moment_implicit_weights(layers, context_moment(context), query_map)
    for task in range(4):
        e, q = context[task], query_map
        for weights in layers:
            written = sum(weights.w_pv[h] @ (e.T @ e) @ weights.w_kq[h] for h in range(2))
            e, q = e + e @ written.T, q + written @ q
        torch.testing.assert_close(got[task], -q[3:], **TIGHT)


def test_a_random_start_is_normal_with_the_stated_scale():
    weights = random_weights(10, 1, range(40), num_heads=2, scale=0.0135, dtype=DOUBLE)
    for f in fields(weights):
        numbers = getattr(weights, f.name).flatten() / 0.0135
        for power, moment in [(1, 0.0), (2, 1.0), (4, 3.0)]:
            sample = numbers**power
            assert abs(sample.mean() - moment) < 4 * sample.std() / len(sample) ** 0.5
    assert weights.w_k.shape == (40, 2, 11, 11)


def test_the_four_factors_and_the_heads_of_a_start_are_independent_draws():
    weights = random_weights(3, 1, [0], num_heads=2)
    factors = torch.stack([getattr(weights, f.name) for f in fields(weights)])
    assert len(factors.unique()) == factors.numel()


def test_a_start_of_a_seed_comes_from_its_init_stream_whatever_the_company():
    together = random_weights(3, 1, [4, 0, 2], num_heads=2, scale=0.3)
    expected = 0.3 * torch.randn(4, 2, 4, 4, generator=generator(0, "init"))
    for index, f in enumerate(fields(together)):
        torch.testing.assert_close(getattr(together, f.name)[1], expected[index], rtol=0, atol=0)


def test_an_abstract_transformer_has_no_layers(draw_batch):
    with pytest.raises(NotImplementedError):
        Transformer()(draw_batch())


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"x_dim": 0}, ValueError, "x_dim: expected a positive integer, got 0"),
        ({"y_dim": 0.5}, TypeError, "y_dim: expected a positive integer, got 0.5 of type float"),
        ({"num_heads": 0}, ValueError, "num_heads: expected a positive integer, got 0"),
        ({"scale": 0.0}, ValueError, "scale: expected a number > 0, got 0.0"),
        ({"scale": float("nan")}, ValueError, "scale: expected a finite number, got nan"),
        ({"seeds": []}, ValueError, "seeds: expected at least one seed, got an empty sequence"),
        ({"seeds": [3, 3]}, ValueError, "seeds: expected distinct seeds, got [3, 3]"),
        ({"seeds": 3}, TypeError, "seeds: expected a sequence of integers, got 3 of type int"),
        ({"dtype": torch.int64}, TypeError, "dtype: expected a floating-point dtype, got torch.int64"),
    ],
)
def test_a_bad_random_start_is_refused(kwargs, error, message, refused):
    refused(lambda: random_weights(**({"x_dim": 3, "y_dim": 1, "seeds": [0]} | kwargs)), error, message)


def test_layers_that_do_not_stack_are_refused(refused):
    good = random_weights(3, 1, [0, 1])
    for other, error, message in [
        (random_weights(4, 1, [0, 1]), ValueError, "layers[1]: expected the token size and ensemble axes of layers[0]"),
        (random_weights(3, 1, [0]), ValueError, "4 and (2,), got 4 and (1,)"),
        (good.to(dtype=DOUBLE), TypeError, "layers[1]: expected dtype torch.float32, that of layers[0]"),
        ("weights", TypeError, "layers[1]: expected AttentionWeights, got str"),
    ]:
        refused(lambda other=other: FreeTransformer([good, other]), error, message)
    refused(lambda: FreeTransformer([]), ValueError, "layers: expected at least one AttentionWeights, got none")


def test_a_batch_that_does_not_fit_the_network_is_refused(draw_batch, refused):
    batch = draw_batch()
    wide = FreeTransformer([random_weights(4, 2, [0], dtype=DOUBLE)])
    refused(lambda: wide(batch), ValueError, "layers[0]: expected a token size of 5, got 6")
    single = FreeTransformer([random_weights(3, 2, [0])])
    message = "layers[0]: expected dtype torch.float64, that of the tokens, got torch.float32"
    refused(lambda: single(batch), TypeError, message)
    three = FreeTransformer([random_weights(3, 2, range(3), dtype=DOUBLE)])
    message = "layers[0]: expected leading axes that broadcast with (2,), those of the tokens, got (3,)"
    refused(lambda: three(batch.expand(2)), ValueError, message)


@pytest.mark.parametrize(
    ("w_0", "error", "message"),
    [
        (torch.ones(3, dtype=DOUBLE), ValueError, "w_0: expected at least 2 axes, got shape (3,)"),
        (torch.ones(4, 2, 3, dtype=DOUBLE), ValueError, "w_0: expected one matrix (y, x), got shape (4, 2, 3)"),
        (torch.full((2, 3), float("nan"), dtype=DOUBLE), ValueError, "w_0: expected finite numbers"),
        (torch.ones(3, 2, dtype=DOUBLE), ValueError, "w_0: expected a shape that ends in (2, 3), got (3, 2)"),
        (torch.ones(2, 3), TypeError, "w_0: expected dtype torch.float64, that of the batch, got torch.float32"),
    ],
)
def test_a_w_0_that_does_not_fit_is_refused(w_0, error, message, draw_batch, refused):
    batch, weights = draw_batch(), gd_construction(0.1, 3, 2, 5, dtype=DOUBLE)
    refused(lambda: FreeTransformer([weights], w_0)(batch), error, message)
    refused(lambda: FreeTransformer([weights], w_0).tokens(batch), error, message)


def test_no_layer_has_no_implicit_weights(draw, refused):
    message = "layers: expected at least one AttentionWeights, got none"
    refused(lambda: moment_implicit_weights([], draw(2, 4, 4), draw(4, 3)), ValueError, message)
