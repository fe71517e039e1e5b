"""Reading layers as GD++: the numbers come back, the rests are what was put in, and bad input is refused."""

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    FreeTransformer,
    chebyshev_gd_plus_plus,
    gauge_transform,
    gd_plus_plus_construction,
    random_layers,
    random_weights,
    read_gd_plus_plus,
)

TIGHT = {"rtol": 1e-12, "atol": 1e-14}
F64 = {"dtype": torch.float64}


@pytest.mark.parametrize("y_dim", [1, 2])
def test_a_construction_reads_as_what_it_was_made_of_whatever_its_gauge(y_dim, draw):
    etas, gammas = [1.3, 4.0, 0.7], [0.2, 0.9, 0.1]
    size = 3 + y_dim
    layers = [gd_plus_plus_construction(e, g, 3, y_dim, 7, **F64) for e, g in zip(etas, gammas, strict=True)]
    hidden = [gauge_transform(layer, draw(1, size, size), draw(1, size, size), 1.7) for layer in layers]
    for given in (layers, hidden):
        read = read_gd_plus_plus(given, num_context=7, y_dim=y_dim)
        torch.testing.assert_close(read.etas, torch.tensor(etas, **F64), rtol=1e-9, atol=0)
        torch.testing.assert_close(read.gammas, torch.tensor(gammas, **F64), rtol=1e-9, atol=0)
        for rest in (read.score_rest, read.value_rest, read.target_scores):
            torch.testing.assert_close(rest, torch.zeros(3, **F64), rtol=0, atol=1e-9)


def test_the_layers_of_a_reading_are_the_network_that_was_read(draw_batch):
    layers = chebyshev_gd_plus_plus(0.3, 3, 3, 2, 5, **F64)
    again = read_gd_plus_plus(layers, num_context=5, y_dim=2).layers(3, 2, 5)
    batch = draw_batch()
    torch.testing.assert_close(FreeTransformer(again)(batch), FreeTransformer(layers)(batch), **TIGHT)


def test_the_rests_are_the_share_of_a_block_that_is_no_multiple_of_the_identity():
    """Blocks a I + b M with M traceless and orthogonal to I: the share is |b M| / sqrt(a^2 d + |b M|^2)."""
    w_pv, w_kq = (torch.zeros(1, 3, 3, **F64) for _ in range(2))
    w_pv[0] = torch.tensor([[-0.2, 0.3, 0.0], [0.0, -0.2, 0.0], [0.0, 0.0, -0.5]])
    w_kq[0] = torch.tensor([[2.0, 0.0, -0.6], [1.0, 2.0, 0.0], [0.0, 0.4, 0.0]])
    identity = torch.eye(3, **F64)[None]
    read = read_gd_plus_plus([AttentionWeights(identity, w_kq, identity, w_pv)], num_context=10)
    assert read.etas.tolist() == pytest.approx([10 * 0.5 * 2])
    assert read.gammas.tolist() == pytest.approx([0.2 * 2])
    assert read.value_rest.tolist() == pytest.approx([0.3 / (2 * 0.2**2 + 0.3**2) ** 0.5])
    assert read.score_rest.tolist() == pytest.approx([1 / (2 * 2**2 + 1) ** 0.5])
    assert read.target_scores.tolist() == pytest.approx([0.3])


def test_an_ensemble_is_read_member_by_member():
    layers = random_layers(2, 4, 1, [3, 8], scale=0.5, **F64)
    together = read_gd_plus_plus(layers, num_context=6)
    assert together.etas.shape == (2, 2)
    for member in range(2):
        alone = read_gd_plus_plus([layer.members(member) for layer in layers], num_context=6)
        for name in ("etas", "gammas", "score_rest", "value_rest", "target_scores"):
            torch.testing.assert_close(getattr(together, name)[member], getattr(alone, name), **TIGHT)


def test_what_cannot_be_read_is_refused(refused):
    refused(lambda: read_gd_plus_plus([], 5), ValueError, "layers: expected at least one AttentionWeights, got none")
    heads = random_weights(3, 1, [0], num_heads=2)
    refused(lambda: read_gd_plus_plus([heads], 5), ValueError, "layers[0]: expected one head, got 2")
    one = random_weights(3, 1, [0])
    refused(lambda: read_gd_plus_plus([one], 0), ValueError, "num_context: expected a positive integer, got 0")


def test_random_layers_differ_from_one_another_and_follow_their_seeds():
    """(Layers drawn by separate calls of `random_weights` would be equal, since each call starts the stream anew.)"""
    layers = random_layers(3, 2, 1, [4, 9], num_heads=2, scale=0.1)
    assert [tuple(layer.w_k.shape) for layer in layers] == [(2, 2, 3, 3)] * 3
    entries = torch.stack([torch.stack([layer.w_k, layer.w_q, layer.w_v, layer.w_p]) for layer in layers])
    assert len(entries.flatten().unique()) == entries.numel()
    alone = random_layers(3, 2, 1, [9], num_heads=2, scale=0.1)
    for layer, other in zip(layers, alone, strict=True):
        assert torch.equal(layer.w_p[1], other.w_p[0])
    many = torch.cat([layer.w_v.flatten() for layer in random_layers(5, 10, 1, range(4), scale=0.1)])
    assert float(many.std()) == pytest.approx(0.1, rel=5 / (2 * many.numel()) ** 0.5)
    (only,) = random_layers(1, 2, 1, [4], num_heads=2, scale=0.1)
    first = random_weights(2, 1, [4], num_heads=2, scale=0.1)
    assert torch.equal(only.w_q, first.w_q)


def test_random_layers_refuse_a_count_that_is_none(refused):
    refused(lambda: random_layers(0, 2, 1, [0]), ValueError, "num_layers: expected a positive integer, got 0")
