"""Linear self-attention (the paper's equation 2), its products, and the space in which layers are compared."""

from dataclasses import fields

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    Tokens,
    average_factors,
    canonicalize,
    context_moment,
    fast_weights,
    gd_construction,
    interpolate,
    linear_self_attention,
    moment_fast_weights,
    random_weights,
)

TIGHT = {"rtol": 1e-12, "atol": 1e-13}


@pytest.fixture
def rectangular(draw):
    """A layer whose factors are not square: two heads, keys of size 4, values of size 2, tokens of size 5."""
    return AttentionWeights(draw(2, 4, 5), draw(2, 4, 5), draw(2, 2, 5), draw(2, 5, 2))


@pytest.fixture
def tokens(draw):
    return Tokens(draw(3, 6, 5), draw(3, 2, 5))


def attend_with_loops(weights, tokens, reader):
    """e + sum_h P_h sum_i v_i (k_i . q), a head and a token at a time."""
    update = torch.zeros_like(reader)
    for h in range(weights.num_heads):
        for e in tokens:
            key, value = weights.w_k[h] @ e, weights.w_v[h] @ e
            update = update + weights.w_p[h] @ value * torch.dot(key, weights.w_q[h] @ reader)
    return reader + update


@pytest.mark.parametrize(("key_dim", "value_dim"), [(4, 2), (5, 5)])
def test_a_layer_is_equation_2_for_every_token_and_query(key_dim, value_dim, draw, tokens):
    weights = AttentionWeights(draw(2, key_dim, 5), draw(2, key_dim, 5), draw(2, value_dim, 5), draw(2, 5, value_dim))
    moved = linear_self_attention(weights, tokens)
    for task in range(3):
        context = tokens.context[task]
        for got, reader in [(moved.context[task, 4], context[4]), (moved.query[task, 1], tokens.query[task, 1])]:
            torch.testing.assert_close(got, attend_with_loops(weights, context, reader), **TIGHT)


def test_fast_weights_are_sums_of_outer_products_of_values_and_keys(rectangular, tokens):
    expected = torch.zeros(3, 5, 5, dtype=torch.float64)
    for task in range(3):
        for h in range(2):
            keys, values = (tokens.context[task] @ w[h].mT for w in (rectangular.w_k, rectangular.w_v))
            written = sum(torch.outer(v, k) for v, k in zip(values, keys, strict=True))
            expected[task] += rectangular.w_p[h] @ written @ rectangular.w_q[h]
    torch.testing.assert_close(fast_weights(rectangular, tokens), expected, **TIGHT)


def test_the_context_moment_is_the_sum_of_outer_products(tokens):
    expected = sum(torch.einsum("ta,tb->tab", e, e) for e in tokens.context.unbind(1))
    torch.testing.assert_close(context_moment(tokens.context), expected, **TIGHT)


def test_products_are_keys_transposed_times_queries_and_output_times_values(rectangular):
    for h in range(2):
        assert torch.equal(rectangular.w_kq[h], rectangular.w_k[h].T @ rectangular.w_q[h])
        assert torch.equal(rectangular.w_pv[h], rectangular.w_p[h] @ rectangular.w_v[h])
    assert (rectangular.token_dim, rectangular.num_heads) == (5, 2)


def test_weights_change_dtype_and_leave_autograd_as_a_whole():
    weights = random_weights(3, 2, [0])
    assert {getattr(weights.to(dtype=torch.float64), f.name).dtype for f in fields(weights)} == {torch.float64}
    tracked = AttentionWeights(*(getattr(weights, f.name).clone().requires_grad_() for f in fields(weights)))
    assert tracked.w_pv.requires_grad
    assert not tracked.detach().w_pv.requires_grad
    assert not tracked.detach().w_kq.requires_grad


def test_canonical_weights_are_the_same_layer_with_mean_diagonal_one(rectangular, tokens):
    canonical = canonicalize(rectangular, y_dim=2)
    before, after = linear_self_attention(rectangular, tokens), linear_self_attention(canonical, tokens)
    torch.testing.assert_close(after.context, before.context, **TIGHT)
    torch.testing.assert_close(after.query, before.query, **TIGHT)
    diagonal = canonical.w_kq.diagonal(dim1=-2, dim2=-1)[:, :3]
    torch.testing.assert_close(diagonal.mean(-1), torch.ones(2, dtype=torch.float64), **TIGHT)
    assert torch.equal(canonical.w_q, canonical.w_kq)
    assert torch.equal(canonical.w_p, canonical.w_pv)


def test_the_canonical_form_does_not_depend_on_the_target_block_of_the_scores(rectangular):
    w_q = rectangular.w_q.clone()
    w_q[..., 3:] *= 7  # the columns of W_KQ that belong to y
    other = AttentionWeights(rectangular.w_k, w_q, rectangular.w_v, rectangular.w_p)
    torch.testing.assert_close(canonicalize(other, 2).w_pv, canonicalize(rectangular, 2).w_pv, **TIGHT)


def test_the_norm_form_is_the_same_layer_with_scores_of_the_constructions_size(rectangular, tokens):
    canonical = canonicalize(rectangular, 2, form="norm")
    before, after = linear_self_attention(rectangular, tokens), linear_self_attention(canonical, tokens)
    torch.testing.assert_close(after.context, before.context, **TIGHT)
    torch.testing.assert_close(after.query, before.query, **TIGHT)
    sizes = canonical.w_kq[..., :3].norm(dim=(-2, -1))
    torch.testing.assert_close(sizes, torch.full((2,), 3**0.5, dtype=torch.float64), **TIGHT)
    assert bool((canonical.w_pv[:, 3:, 3:].diagonal(dim1=-2, dim2=-1).sum(-1) < 0).all())


def test_the_norm_form_leaves_the_construction_and_decides_where_y_is_not_written():
    step = gd_construction(0.7, 3, 1, 5, dtype=torch.float64)
    canonical = canonicalize(step, form="norm")
    torch.testing.assert_close(canonical.w_kq, step.w_kq, **TIGHT)
    torch.testing.assert_close(canonical.w_pv, step.w_pv, **TIGHT)
    identity, scores, written = (
        torch.eye(4).double()[None],
        torch.zeros(1, 4, 4).double(),
        torch.zeros(1, 4, 4).double(),
    )
    scores[0, 3, :3], written[0, 3, :3] = torch.tensor([0.1, -0.5, 0.2]).double(), torch.tensor([1.0, 0, 0]).double()
    for sign in (1, -1):  # no trace in either product: the largest entry decides
        twin = canonicalize(AttentionWeights(identity, sign * scores, identity, sign * written), form="norm")
        assert float(twin.w_kq[0, 3, 1]) > 0 and float(twin.w_pv[0, 3, 0]) < 0


def test_a_norm_form_that_does_not_exist_is_refused(rectangular, refused):
    silent = AttentionWeights(*(torch.zeros(1, 3, 3) for _ in range(4)))
    message = "weights: expected a w_kq with x columns other than zero in every head, got zero"
    refused(lambda: canonicalize(silent, form="norm"), ValueError, message)
    message = "form: expected one of 'trace', 'norm', got 'size'"
    refused(lambda: canonicalize(rectangular, 2, form="size"), ValueError, message)


def test_interpolation_ends_at_both_layers_and_is_linear_in_the_canonical_products(rectangular, draw, tokens):
    other = AttentionWeights(draw(2, 5, 5), draw(2, 5, 5), draw(2, 5, 5), draw(2, 5, 5))  # other inner sizes will do
    a, b = canonicalize(rectangular, 2), canonicalize(other, 2)
    for fraction in (0.0, 0.3, 1.0, 1.5):
        between = interpolate(rectangular, other, fraction, y_dim=2)
        torch.testing.assert_close(between.w_kq, (1 - fraction) * a.w_kq + fraction * b.w_kq, **TIGHT)
        torch.testing.assert_close(between.w_pv, (1 - fraction) * a.w_pv + fraction * b.w_pv, **TIGHT)
    ends = [(0.0, rectangular), (1.0, other)]
    for fraction, end in ends:
        got = linear_self_attention(interpolate(rectangular, other, fraction, y_dim=2), tokens).query
        torch.testing.assert_close(got, linear_self_attention(end, tokens).query, **TIGHT)


def test_interpolation_broadcasts_an_ensemble_against_one_layer():
    ensemble, one = random_weights(3, 1, [0, 1, 2]), random_weights(3, 1, [9])
    plain = AttentionWeights(*(getattr(one, f.name)[0] for f in fields(one)))
    between = interpolate(ensemble, plain, 0.25)
    assert between.w_kq.shape == (3, 1, 4, 4)
    solo = AttentionWeights(*(getattr(ensemble, f.name)[2] for f in fields(one)))
    torch.testing.assert_close(between.w_pv[2], interpolate(solo, plain, 0.25).w_pv)


def test_averaging_factors_averages_each_of_the_four(draw):
    a, b = (AttentionWeights(*(draw(1, 3, 3) for _ in range(4))) for _ in range(2))
    mixed = average_factors(a, b, 0.25)
    for f in fields(mixed):
        expected = 0.75 * getattr(a, f.name) + 0.25 * getattr(b, f.name)
        torch.testing.assert_close(getattr(mixed, f.name), expected, **TIGHT)


FACTOR = torch.ones(1, 4, 4)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"w_q": torch.ones(1, 3, 4)}, ValueError, "w_q: expected a matrix of shape (4, 4), got (3, 4)"),
        ({"w_k": torch.ones(1, 4, 5)}, ValueError, "w_q: expected a matrix of shape (4, 5), got (4, 4)"),
        ({"w_v": torch.ones(1, 4, 3)}, ValueError, "w_v: expected a matrix of shape (4, 4), got (4, 3)"),
        ({"w_p": torch.ones(1, 4, 2)}, ValueError, "w_p: expected a matrix of shape (4, 4), got (4, 2)"),
        ({"w_v": torch.ones(2, 4, 4)}, ValueError, "w_v: expected leading axes (1,), those of w_k, got (2,)"),
        ({"w_k": torch.ones(4, 4)}, ValueError, "w_k: expected at least 3 axes, got shape (4, 4)"),
        ({"w_p": FACTOR.double()}, TypeError, "w_p: expected dtype torch.float32, that of w_k, got torch.float64"),
        ({"w_q": FACTOR.int()}, TypeError, "w_q: expected a floating-point tensor, got dtype torch.int32"),
        ({"w_q": None}, TypeError, "w_q: expected a tensor, got NoneType"),
    ],
)
def test_factors_that_do_not_fit_together_are_refused(changes, error, message, refused):
    factors = dict.fromkeys(("w_k", "w_q", "w_v", "w_p"), FACTOR)
    refused(lambda: AttentionWeights(**(factors | changes)), error, f"AttentionWeights.{message}")


@pytest.mark.parametrize("function", [fast_weights, linear_self_attention])
def test_a_layer_that_does_not_fit_the_tokens_is_refused(function, rectangular, draw, refused):
    short = Tokens(draw(3, 6, 4), draw(3, 2, 4))
    refused(lambda: function(rectangular, short), ValueError, "weights: expected a token size of 4, got 5")
    single = Tokens(draw(3, 6, 5).float(), draw(3, 2, 5).float())
    message = "weights: expected dtype torch.float32, that of the tokens, got torch.float64"
    refused(lambda: function(rectangular, single), TypeError, message)
    ensembles = Tokens(draw(2, 3, 6, 5), draw(2, 3, 2, 5))
    three = random_weights(3, 2, range(3), dtype=torch.float64)
    message = "weights: expected leading axes that broadcast with (2,), those of the tokens, got (3,)"
    refused(lambda: function(three, ensembles), ValueError, message)


def test_a_moment_that_does_not_fit_is_refused(rectangular, draw, refused):
    message = "weights: expected a token size of 4, got 5"
    refused(lambda: moment_fast_weights(rectangular, draw(3, 4, 4)), ValueError, message)


@pytest.mark.parametrize(
    ("y_dim", "error", "message"),
    [
        (5, ValueError, "y_dim: expected less than the token's 5 numbers, got 5"),
        (0, ValueError, "y_dim: expected a positive integer, got 0"),
        ("1", TypeError, "y_dim: expected a positive integer, got '1' of type str"),
    ],
)
def test_a_bad_target_size_is_refused(y_dim, error, message, rectangular, refused):
    refused(lambda: canonicalize(rectangular, y_dim), error, message)
    refused(lambda: interpolate(rectangular, rectangular, 0.5, y_dim), error, message)


def test_a_layer_without_canonical_form_is_refused(draw, refused):
    traceless = torch.diag(torch.tensor([1.0, -1.0, 5.0])).double()[None]
    identity = torch.eye(3).double()[None]
    layer = AttentionWeights(identity, traceless, identity, identity)
    message = "weights: expected a w_kq whose x-block has a non-zero trace in every head, got trace zero"
    refused(lambda: canonicalize(layer), ValueError, message)


def test_layers_that_do_not_mix_are_refused(rectangular, draw, refused):
    one_head = AttentionWeights(draw(1, 4, 5), draw(1, 4, 5), draw(1, 2, 5), draw(1, 5, 2))
    message = "b: expected 2 heads and a token size of 5, those of a, got 1 and 5"
    refused(lambda: interpolate(rectangular, one_head, 0.5, 2), ValueError, message)
    message = "b.w_k: expected a shape that ends in (2, 4, 5), as in a, got (1, 4, 5)"
    refused(lambda: average_factors(rectangular, one_head, 0.5), ValueError, message)
    for mix in (interpolate, average_factors):
        message = "fraction: expected a finite number, got nan"
        refused(lambda mix=mix: mix(rectangular, rectangular, float("nan")), ValueError, message)
        single = rectangular.to(dtype=torch.float32)
        message = "b: expected dtype torch.float64, that of a, got torch.float32"
        refused(lambda mix=mix, b=single: mix(rectangular, b, 0.5), TypeError, message)
        two, three = random_weights(3, 1, range(2)), random_weights(3, 1, range(3))
        message = "b: expected leading axes that broadcast with (2,), those of a, got (3,)"
        refused(lambda mix=mix, a=two, b=three: mix(a, b, 0.5), ValueError, message)
