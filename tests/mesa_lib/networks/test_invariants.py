"""Numbers of a head that no basis changes: against dense matrices, for the construction, by chance, in every gauge."""

import math

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    HeadInvariants,
    change_token_basis,
    gauge_transform,
    gd_construction,
    head_invariants,
)

DOUBLE = torch.float64
EYE = torch.eye(12, dtype=DOUBLE)
NAMES = tuple(HeadInvariants.__annotations__)


@pytest.fixture
def layer(draw):
    """An ensemble of two layers with three heads, keys of size 4, values of size 3, tokens of size 12."""
    return AttentionWeights(draw(2, 3, 4, 12), draw(2, 3, 4, 12), draw(2, 3, 3, 12), draw(2, 3, 12, 3))


def assert_same(one, other, **tolerance):
    for name in NAMES:
        torch.testing.assert_close(getattr(one, name), getattr(other, name), **tolerance, msg=name)


def test_the_numbers_are_those_of_the_dense_products(layer):
    found = head_invariants(layer)
    scores, written = layer.w_kq, layer.w_pv
    size = scores.flatten(-2).norm(dim=-1)
    symmetric = (scores + scores.mT) / 2
    eigenvalues = torch.linalg.eigvalsh(symmetric)
    singular = torch.linalg.svdvals(scores)[..., :4]  # the other eight are zero
    expected = HeadInvariants(
        symmetry=symmetric.flatten(-2).norm(dim=-1) / size,
        positivity=eigenvalues.clamp(min=0).sum(-1) / eigenvalues.abs().sum(-1),
        flatness=singular.sum(-1) ** 2 / (4 * singular.square().sum(-1)),
        alignment=(scores @ written).flatten(-2).norm(dim=-1) / (size * written.flatten(-2).norm(dim=-1)),
        identity=math.sqrt(12 / 4) * torch.cosine_similarity(scores.flatten(-2), EYE.flatten(), dim=-1),
    )
    assert found.symmetry.shape == (2, 3)
    assert_same(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("x_dim", "y_dim"), [(10, 1), (4, 3)])
def test_the_construction_is_at_the_end_of_every_scale(draw, x_dim, y_dim):
    w_0 = draw(y_dim, x_dim)
    found = head_invariants(gd_construction(3.0, x_dim, y_dim, 20, w_0=w_0, dtype=DOUBLE))
    for value in (found.symmetry, found.positivity, found.flatness, found.identity):
        assert abs(float(value) - 1) < 1e-12
    assert float(found.alignment) < 1e-12


def test_no_gauge_and_no_rotation_changes_them(layer, draw):
    rotation = torch.linalg.qr(draw(12, 12)).Q
    moved = change_token_basis(gauge_transform(layer, draw(3, 3), draw(4, 4), 2.5), rotation)
    assert (moved.w_k - layer.w_k).abs().max() > 0.1
    assert_same(head_invariants(moved), head_invariants(layer), rtol=1e-8, atol=1e-9)


def test_only_flatness_survives_if_what_the_keys_read_is_rotated_alone(layer, draw):
    rotation = torch.linalg.qr(draw(12, 12)).Q
    moved = AttentionWeights(layer.w_k @ rotation, layer.w_q, layer.w_v, layer.w_p)
    before, after = head_invariants(layer), head_invariants(moved)
    torch.testing.assert_close(before.flatness, after.flatness, rtol=1e-9, atol=0)
    for name in ("symmetry", "positivity", "identity"):
        assert (getattr(before, name) - getattr(after, name)).abs().max() > 0.01, name


def test_heads_of_normal_numbers_are_where_chance_puts_them(draw):
    found = head_invariants(AttentionWeights(draw(20, 8, 300), draw(20, 8, 300), draw(20, 8, 300), draw(20, 300, 8)))
    # tr C^2 is zero on average, and small beside |C|^2: half of the square is symmetric.
    assert (found.symmetry - math.sqrt(0.5)).abs().max() < 0.02
    assert (found.positivity.mean() - 0.5).abs() < 0.01
    assert found.identity.abs().max() < 0.3 and found.alignment.max() < 0.15


def test_a_negative_identity_has_no_positive_part(layer):
    head = AttentionWeights(layer.w_k, -layer.w_k, layer.w_v, layer.w_p)
    found = head_invariants(head)
    assert found.positivity.max() < 1e-12 and (found.symmetry - 1).abs().max() < 1e-12 and found.identity.max() < 0


def test_a_head_that_reads_what_it_writes_is_aligned(draw):
    direction = draw(1, 1, 6)
    found = head_invariants(AttentionWeights(direction, direction, direction, direction.mT))
    assert abs(float(found.alignment) - 1) < 1e-12


def test_heads_that_do_nothing_are_refused(layer, refused):
    silent = AttentionWeights(layer.w_k, layer.w_q, layer.w_v, torch.zeros_like(layer.w_p))
    refused(lambda: head_invariants(silent), ValueError, "weights: expected a W_KQ and a W_PV other than zero")
    quarter_turn = torch.tensor([[[0.0, 1.0], [-1.0, 0.0]]])
    eye = torch.eye(2)[None]
    turning = AttentionWeights(eye, quarter_turn, eye, eye)
    refused(lambda: head_invariants(turning), ValueError, "weights: expected a W_KQ that is not antisymmetric")
    refused(lambda: head_invariants(layer.w_k), TypeError, "weights: expected AttentionWeights")
