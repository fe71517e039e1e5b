"""The hand-made weights of Proposition 1, block by block; what they do is in tests/propositions."""

import pytest
import torch

from mesa_lib import chebyshev_gd_plus_plus, gd_construction, gd_plus_plus_construction


def test_the_blocks_are_those_of_proposition_1(draw):
    w_0 = draw(2, 3)
    weights = gd_construction(0.7, 3, 2, 4, w_0)
    select_x = torch.diag(torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0])).double()
    w_v = torch.zeros(5, 5, dtype=torch.float64)
    w_v[3:, :3], w_v[3:, 3:] = w_0, -torch.eye(2)
    assert torch.equal(weights.w_k, select_x[None])
    assert torch.equal(weights.w_q, select_x[None])
    assert torch.equal(weights.w_v, w_v[None])
    assert torch.equal(weights.w_p, 0.7 / 4 * torch.eye(5, dtype=torch.float64)[None])


def test_the_dtype_is_that_of_w_0_or_the_one_asked_for(draw):
    assert gd_construction(0.7, 3, 2, 4).w_k.dtype == torch.float32
    assert gd_construction(0.7, 3, 2, 4, dtype=torch.float64).w_k.dtype == torch.float64
    assert gd_construction(0.7, 3, 2, 4, draw(2, 3)).w_k.dtype == torch.float64
    assert not gd_construction(0.7, 3, 2, 4).w_v[0, 3:, :3].any()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"eta": float("nan")}, ValueError, "eta: expected a finite number, got nan"),
        ({"eta": None}, TypeError, "eta: expected a finite number, got None of type NoneType"),
        ({"x_dim": 0}, ValueError, "x_dim: expected a positive integer, got 0"),
        ({"y_dim": 1.0}, TypeError, "y_dim: expected a positive integer, got 1.0 of type float"),
        ({"num_context": -2}, ValueError, "num_context: expected a positive integer, got -2"),
        ({"w_0": torch.ones(3, 2)}, ValueError, "w_0: expected a shape that ends in (2, 3), got (3, 2)"),
        ({"w_0": torch.ones(4, 2, 3)}, ValueError, "w_0: expected one matrix of shape (2, 3), got (4, 2, 3)"),
        ({"w_0": torch.ones(3)}, ValueError, "w_0: expected at least 2 axes, got shape (3,)"),
        ({"w_0": torch.ones(2, 3).int()}, TypeError, "w_0: expected a floating-point tensor, got dtype torch.int32"),
        ({"w_0": torch.full((2, 3), float("inf"))}, ValueError, "w_0: expected finite numbers"),
    ],
)
def test_a_bad_argument_is_refused(changes, error, message, refused):
    arguments = {"eta": 0.5, "x_dim": 3, "y_dim": 2, "num_context": 4} | changes
    refused(lambda: gd_construction(**arguments), error, message)


def test_the_blocks_are_those_of_gd_plus_plus(draw):
    w_0 = draw(2, 3)
    weights = gd_plus_plus_construction(0.7, 0.05, 3, 2, 4, w_0)
    select_x = torch.diag(torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0])).double()
    w_v = torch.diag(torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0])).double()
    w_v[3:, :3] = w_0
    assert torch.equal(weights.w_k, select_x[None]) and torch.equal(weights.w_q, select_x[None])
    assert torch.equal(weights.w_v, w_v[None])
    assert torch.equal(weights.w_p, torch.diag(torch.tensor([-0.05] * 3 + [0.7 / 4] * 2, dtype=torch.float64))[None])


def test_eta_and_gamma_may_be_an_ensembles_tensors_and_get_their_gradients(draw):
    eta = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    gamma = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    weights = gd_plus_plus_construction(eta, gamma, 3, 1, 4)
    assert weights.w_p.shape == (2, 1, 4, 4) and weights.w_p.dtype == torch.float64
    for member, size in enumerate((0.5, 1.5)):
        alone = gd_plus_plus_construction(size, 0.1, 3, 1, 4, dtype=torch.float64)
        assert torch.equal(weights.members(member).w_pv, alone.w_pv)
    weights.w_p.sum().backward()
    assert torch.equal(eta.grad, torch.full((2,), 0.25, dtype=torch.float64))
    assert gamma.grad == -6


def test_chebyshev_layers_grow_ninefold():
    layers = chebyshev_gd_plus_plus(0.2, 3, 2, 1, 5, dtype=torch.float64)
    for index, weights in enumerate(layers):
        expected = torch.diag(torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)) * 0.2 * 9**index
        torch.testing.assert_close(weights.w_p[0], expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gamma": float("inf")}, ValueError, "gamma: expected a finite number, got inf"),
        ({"eta": "1"}, TypeError, "eta: expected a finite number, got '1' of type str"),
        ({"eta": torch.tensor(float("nan"))}, ValueError, "eta: expected finite numbers, got NaN"),
        ({"eta": torch.tensor(1)}, TypeError, "eta: expected a floating-point tensor, got dtype torch.int64"),
        ({"eta": torch.ones(2), "gamma": torch.ones(3)}, ValueError, "gamma: expected leading axes that broadcast"),
        ({"eta": torch.ones(2), "gamma": torch.ones(2).double()}, TypeError, "gamma: expected dtype torch.float32"),
        ({"x_dim": 0}, ValueError, "x_dim: expected a positive integer, got 0"),
    ],
)
def test_a_bad_argument_of_gd_plus_plus_is_refused(changes, error, message, refused):
    arguments = {"eta": 0.5, "gamma": 0.1, "x_dim": 3, "y_dim": 2, "num_context": 4} | changes
    refused(lambda: gd_plus_plus_construction(**arguments), error, message)


def test_chebyshev_layers_need_a_positive_number(refused):
    refused(lambda: chebyshev_gd_plus_plus(0.0, 2, 3, 1, 4), ValueError, "g: expected a number > 0, got 0.0")
