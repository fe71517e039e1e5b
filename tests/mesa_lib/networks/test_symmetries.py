"""The gauge group, the exchange of rank-one heads and what a function fixes, as the library has them."""

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    LinearTasks,
    Tokens,
    change_token_basis,
    concatenated_tokens,
    gauge_transform,
    gd_construction,
    identifiable_dimensions,
    linear_self_attention,
    random_weights,
    rank_one_twin,
    read_prediction,
    signal_paths,
    twin_share,
)

TIGHT = {"rtol": 1e-12, "atol": 1e-12}
DOUBLE = torch.float64


@pytest.fixture
def layer(draw):
    """Two heads, keys of size 4, values of size 3, tokens of size 5."""
    return AttentionWeights(draw(2, 4, 5), draw(2, 4, 5), draw(2, 3, 5), draw(2, 5, 3))


def one_head(w_pv, w_kq):
    identity = torch.eye(len(w_pv), dtype=w_pv.dtype)[None]
    return AttentionWeights(identity, w_kq[None], identity, w_pv[None])


def test_a_gauge_transformation_is_that_of_the_formula(layer, draw):
    g, h, c = draw(3, 3), draw(4, 4), -1.7
    same = gauge_transform(layer, g, h, c)
    torch.testing.assert_close(same.w_p, c * layer.w_p @ torch.linalg.inv(g), **TIGHT)
    torch.testing.assert_close(same.w_v, g @ layer.w_v, **TIGHT)
    torch.testing.assert_close(same.w_q, h @ layer.w_q, **TIGHT)
    torch.testing.assert_close(same.w_k, torch.linalg.inv(h).T @ layer.w_k / c, **TIGHT)
    torch.testing.assert_close(same.w_pv, c * layer.w_pv, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(same.w_kq, layer.w_kq / c, rtol=1e-10, atol=1e-11)


def test_each_head_and_each_member_may_have_a_gauge_of_its_own(layer, draw):
    g, h = draw(6, 2, 3, 3), draw(2, 4, 4)
    same = gauge_transform(layer, g, h)
    assert same.w_k.shape == (6, 2, 4, 5) and same.w_p.shape == (6, 2, 5, 3)
    alone = gauge_transform(layer, g[4], h)
    torch.testing.assert_close(same.members(4).w_p, alone.w_p, **TIGHT)
    torch.testing.assert_close(same.members(4).w_k, alone.w_k, **TIGHT)


def test_rotated_weights_do_to_rotated_tokens_what_the_layer_does(layer, draw):
    basis = draw(5, 5)
    context, query = draw(3, 6, 5), draw(3, 2, 5)
    moved = linear_self_attention(layer, Tokens(context, query))
    turned = Tokens(context @ basis.T, query @ basis.T)
    got = linear_self_attention(change_token_basis(layer, basis), turned)
    size = float(moved.query.abs().max())
    torch.testing.assert_close(got.query, moved.query @ basis.T, rtol=1e-9, atol=1e-11 * size)
    torch.testing.assert_close(got.context, moved.context @ basis.T, rtol=1e-9, atol=1e-11 * size)


def test_the_construction_loses_its_zeros_under_a_gauge_but_its_values_still_read_y_alone(draw):
    """91.7 % of W_K and W_Q and 99.2 % of W_V are zero as written (science.md 1.8)."""
    step = gd_construction(1.5, 10, 1, 10, dtype=DOUBLE)
    same = gauge_transform(step, draw(11, 11), draw(11, 11))
    zeros = [
        [round(100 * float((factor.abs() < 1e-12).double().mean()), 1) for factor in (w.w_k, w.w_q, w.w_v, w.w_p)]
        for w in (step, same, change_token_basis(same, torch.linalg.qr(draw(11, 11)).Q))
    ]
    assert zeros == [[91.7, 91.7, 99.2, 90.9], [9.1, 9.1, 90.9, 0.0], [0.0] * 4]
    assert bool((same.w_v[..., :10] == 0).all())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scale": 0.0}, ValueError, "scale: expected a number other than 0"),
        ({"scale": float("inf")}, ValueError, "scale: expected a finite number, got inf"),
        ({"on_values": torch.ones(3, 3).double()}, ValueError, "on_values: expected an invertible matrix"),
        ({"on_keys": torch.zeros(4, 4).double()}, ValueError, "on_keys: expected an invertible matrix"),
        ({"on_keys": torch.eye(3).double()}, ValueError, "on_keys: expected a shape that ends in (4, 4), got (3, 3)"),
        ({"on_values": torch.eye(3)}, TypeError, "on_values: expected dtype torch.float64"),
        ({"on_values": torch.eye(3).double().expand(3, 3, 3)}, ValueError, "on_values: expected leading axes"),
    ],
)
def test_what_is_no_gauge_is_refused(change, error, message, layer, refused):
    gauge = {"on_values": torch.eye(3).double(), "on_keys": torch.eye(4).double()} | change
    refused(lambda: gauge_transform(layer, **gauge), error, message)


def test_a_singular_token_basis_is_refused(layer, refused):
    singular = torch.ones(5, 5, dtype=DOUBLE)
    refused(lambda: change_token_basis(layer, singular), ValueError, "basis: expected an invertible matrix")


def test_the_twin_exchanges_what_keys_and_values_read_and_keeps_sizes(draw):
    a, b, p, q = draw(4, 5)
    twin = rank_one_twin(one_head(torch.outer(a, b), torch.outer(p, q)))
    expected_pv, expected_kq = torch.outer(a, p), torch.outer(b, q)
    ratio = float(twin.w_pv[0, 0, 0] / expected_pv[0, 0])
    torch.testing.assert_close(twin.w_pv[0], ratio * expected_pv, **TIGHT)
    torch.testing.assert_close(twin.w_kq[0], expected_kq / ratio, **TIGHT)
    assert float(twin.w_pv.norm()) == pytest.approx(float(a.norm() * b.norm()), rel=1e-12)
    assert float(twin.w_kq.norm()) == pytest.approx(float(p.norm() * q.norm()), rel=1e-12)


def test_the_twin_of_every_head_has_the_same_function_and_other_products(draw):
    heads = [one_head(torch.outer(*draw(2, 5)), torch.outer(*draw(2, 5))) for _ in range(3)]
    layer = AttentionWeights(*(torch.cat([getattr(h, f) for h in heads]) for f in ("w_k", "w_q", "w_v", "w_p")))
    twin = rank_one_twin(layer)
    tokens = Tokens(draw(3, 6, 5), draw(3, 2, 5))
    expected, got = linear_self_attention(layer, tokens), linear_self_attention(twin, tokens)
    torch.testing.assert_close(got.query, expected.query, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(got.context, expected.context, rtol=1e-11, atol=1e-11)
    cosine = torch.cosine_similarity(twin.w_pv.flatten(1), layer.w_pv.flatten(1)).abs()
    assert bool((cosine < 0.99).all())


def test_layers_without_a_twin_are_refused(layer, refused):
    message = "weights: expected a w_pv of rank one in every head, got singular values"
    refused(lambda: rank_one_twin(layer), ValueError, message)
    refused(lambda: rank_one_twin(gd_construction(1.0, 3, 1, 4)), ValueError, "expected a w_kq of rank one")
    silent = one_head(torch.zeros(3, 3), torch.ones(3, 3))
    refused(lambda: rank_one_twin(silent), ValueError, "expected a w_pv of rank one")
    refused(lambda: rank_one_twin(layer, rtol=0.0), ValueError, "rtol: expected a number > 0")


def attention_rank(weights, y_dim, query_only, stream):
    """Rank of d prediction / d weights over many noiseless contexts, by reverse differentiation of the layer."""
    d = weights.token_dim - y_dim
    batch = LinearTasks(d, y_dim, 2 * d, 2).sample(60, stream, dtype=DOUBLE)
    tokens = concatenated_tokens(batch)
    if not query_only:
        tokens = Tokens(tokens.context, torch.randn(tokens.query.shape, generator=stream, dtype=DOUBLE))

    def function(*factors):
        moved = linear_self_attention(AttentionWeights(*factors), tokens)
        return (read_prediction(moved, y_dim) if query_only else moved.query).flatten()

    factors = (weights.w_k, weights.w_q, weights.w_v, weights.w_p)
    jacobian = torch.autograd.functional.jacobian(function, factors)
    return int(torch.linalg.matrix_rank(torch.cat([j.flatten(1) for j in jacobian], 1), rtol=1e-8))


@pytest.mark.parametrize("d", [2, 3, 4])
def test_one_head_has_as_many_identifiable_dimensions_as_its_products_less_one(d, seeded):
    """17, 31, 49 for all tokens (D = 3, 4, 5), 8, 15, 24 for the query (science.md 3b)."""
    layer = random_weights(d, 1, [5], scale=1.0, dtype=DOUBLE).members(0)
    assert identifiable_dimensions(layer) == 2 * (d + 1) ** 2 - 1 == attention_rank(layer, 1, False, seeded)
    assert identifiable_dimensions(layer, "query") == (d + 1) ** 2 - 1 == attention_rank(layer, 1, True, seeded)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_at_the_construction_a_query_sees_as_much_and_all_tokens_one_less(d, seeded):
    step = gd_construction(0.7, d, 1, 4, dtype=DOUBLE)
    assert identifiable_dimensions(step, "query") == (d + 1) ** 2 - 1 == attention_rank(step, 1, True, seeded)
    assert identifiable_dimensions(step) == 2 * (d + 1) ** 2 - 2 == attention_rank(step, 1, False, seeded)


@pytest.mark.parametrize("d", [3, 4])
def test_two_heads_have_twice_as_many_less_their_mixtures(d, seeded):
    """2 (d + 1)^2 - 4 (GL(2) mixes the heads) - d (columns that cancel between the heads)."""
    layer = random_weights(d, 1, [5], num_heads=2, scale=1.0, dtype=DOUBLE).members(0)
    expected = 2 * (d + 1) ** 2 - 4 - d
    assert identifiable_dimensions(layer, "query") == expected == attention_rank(layer, 1, True, seeded)


def test_several_targets_and_a_silent_layer_are_counted(seeded):
    layer = random_weights(3, 2, [5], scale=1.0, dtype=DOUBLE).members(0)
    assert identifiable_dimensions(layer, "query", y_dim=2) == attention_rank(layer, 2, True, seeded)
    zero = torch.zeros(1, 4, 4)
    assert identifiable_dimensions(AttentionWeights(zero, zero, zero, zero)) == 0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"readout": "all"}, "readout: expected one of 'tokens', 'query', got 'all'"),
        ({"y_dim": 4}, "y_dim: expected less than the token's 4 numbers, got 4"),
        ({"rtol": -1.0}, "rtol: expected a number > 0"),
    ],
)
def test_a_count_that_makes_no_sense_is_refused(kwargs, message, refused):
    layer = random_weights(3, 1, [0]).members(0)
    refused(lambda: identifiable_dimensions(layer, **kwargs), ValueError, message)


def test_an_ensemble_has_no_single_count(refused):
    ensemble = random_weights(3, 1, [0, 1])
    message = "weights: expected a layer without ensemble axes, got w_k of shape (2, 1, 4, 4)"
    refused(lambda: identifiable_dimensions(ensemble), ValueError, message)


def test_signal_paths_are_the_covariance_of_the_prediction_with_the_teacher(draw, seeded):
    """E <V, W> / E |W|^2 = N m2 * (sum of paths), by Monte Carlo within four standard errors."""
    tasks = LinearTasks(3, 2, 4)
    layer = AttentionWeights(draw(2, 5, 5), draw(2, 5, 5), draw(2, 5, 5), draw(2, 5, 5))
    batch = tasks.sample(200_000, seeded, dtype=DOUBLE)
    w_pv, w_kq = layer.w_pv, layer.w_kq
    tokens = concatenated_tokens(batch).context
    moment = tokens.mT @ tokens
    v = -sum((w_pv[h] @ moment @ w_kq[h])[:, 3:, :3] for h in range(2))
    overlap = (v * batch.teacher).sum((-1, -2)) / (3 * 2)
    paths = signal_paths(layer, y_dim=2)
    expected = 4 * tasks.second_moment * float((paths.direct + paths.twin).sum())
    assert abs(float(overlap.mean()) - expected) < 4 * float(overlap.std()) / 200_000**0.5
    shares = paths.direct.sum().abs(), paths.twin.sum().abs()
    torch.testing.assert_close(twin_share(layer, 2), shares[1] / (shares[0] + shares[1]), **TIGHT)


def test_the_construction_is_all_direct_and_its_sum_is_the_step(draw):
    paths = signal_paths(gd_construction(0.7, 5, 2, 8, dtype=DOUBLE), y_dim=2)
    assert paths.direct.tolist() == pytest.approx([0.7 / 8]) and paths.twin.tolist() == [0.0]
    u = draw(5)
    b, c = torch.zeros(2, 6, 6, dtype=DOUBLE)
    b[5, :5], c[5, :5] = -0.4 * u, 0.5 * u
    twin = signal_paths(one_head(b, c))
    assert twin.twin.tolist() == pytest.approx([0.2 * float(u @ u) / 5]) and twin.direct.tolist() == [0.0]


def test_signal_paths_refuse_a_token_without_inputs(refused):
    layer = random_weights(3, 1, [0])
    refused(lambda: signal_paths(layer, 4), ValueError, "y_dim: expected less than the token's 4 numbers, got 4")
