"""The hand-made weights of Proposition 1, block by block; what they do is in tests/propositions."""

import pytest
import torch

from mesa_lib import gd_construction


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
