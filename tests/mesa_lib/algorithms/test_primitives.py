"""The four primitives on small states, and the programs made of them, against autograd and the normal equations."""

import pytest
import torch

from mesa_lib import (
    delta_rule_weights,
    primitive_ridge,
    primitive_ridge_steps,
    primitive_ridge_steps_weights,
    primitive_ridge_weights,
    ridge_regression_weights,
    ridge_step_program,
    sherman_morrison_program,
)
from mesa_lib.algorithms import affine, divide, move, multiply

EXACT = {"rtol": 0, "atol": 1e-12}


def state_of(*rows):
    return torch.tensor([rows], dtype=torch.float64)


def test_move_copies_a_slot_from_one_token_to_a_later_one():
    state = state_of([1, 2, 3], [4, 5, 6])
    assert move(state, 0, 1, slice(0, 2), slice(1, 3)).tolist() == [[[1, 2, 3], [4, 1, 2]]]
    assert state.tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_multiply_multiplies_matrices_row_by_row_in_every_token(draw):
    state = draw(2, 3, 2 * 3 + 3 * 4 + 2 * 4)
    got = multiply(state, slice(0, 6), slice(6, 18), slice(18, 26), (2, 3, 4))
    for task in range(2):
        for token in range(3):
            left, right = state[task, token, :6].view(2, 3), state[task, token, 6:18].view(3, 4)
            torch.testing.assert_close(got[task, token, 18:].view(2, 4), left @ right, **EXACT)
    assert torch.equal(got[..., :18], state[..., :18])


def test_divide_divides_by_the_size_of_an_entry_and_spares_tokens_where_it_is_zero():
    state = state_of([6, 8, -2, 0], [1, 3, 0, 0])
    assert divide(state, slice(0, 2), 2, slice(0, 2)).tolist() == [[[3, 4, -2, 0], [1, 3, 0, 0]]]


def test_affine_combines_two_slots():
    state = state_of([1, 2, 10, 20, 0, 0])
    got = affine(state, slice(0, 2), slice(2, 4), slice(4, 6), (3, -1), bias=0.5)
    assert got.tolist() == [[[1, 2, 10, 20, -6.5, -13.5]]]


@pytest.mark.parametrize(("step_size", "penalty"), [(0.1, 0.0), (0.2, 0.7)])
def test_five_primitives_are_a_gradient_step_on_ridge_regression(step_size, penalty, draw_batch):
    """Equation 11: the gradient of |W x - y|^2 + lambda |W|^2 of one example after the other, by autograd."""
    batch = draw_batch()
    expected = []
    for xs, ys in zip(batch.context_x, batch.context_y, strict=True):
        weights = torch.zeros(2, 3, dtype=torch.float64)
        for x, y in zip(xs, ys, strict=True):
            weights.requires_grad_()
            objective = (weights @ x - y).square().sum() + penalty * weights.square().sum()
            (gradient,) = torch.autograd.grad(objective, weights)
            weights = weights.detach() - step_size * gradient
        expected.append(weights)
    got = primitive_ridge_steps_weights(batch, step_size, penalty)
    torch.testing.assert_close(got, torch.stack(expected), **EXACT)
    torch.testing.assert_close(
        primitive_ridge_steps(batch, step_size, penalty), batch.query_x @ torch.stack(expected).mT, **EXACT
    )


def test_without_penalty_it_is_the_delta_rule(draw_batch):
    batch = draw_batch()
    torch.testing.assert_close(primitive_ridge_steps_weights(batch, 0.15, 0.0), delta_rule_weights(batch, 0.3), **EXACT)


@pytest.mark.parametrize("num_context", [1, 3, 8])
def test_ten_primitives_an_example_solve_ridge_regression(num_context, draw_batch):
    batch = draw_batch(num_context=num_context)
    expected = ridge_regression_weights(batch, 0.6)
    torch.testing.assert_close(primitive_ridge_weights(batch, 0.6), expected, rtol=0, atol=1e-11)
    torch.testing.assert_close(primitive_ridge(batch, 0.6), batch.query_x @ expected.mT, rtol=0, atol=1e-11)


def test_the_programs_are_made_of_the_four_primitives_only():
    def names(program):
        return [primitive.func.__name__ for primitive in program]

    assert names(ridge_step_program(3, 2, 0.1, 0.5)) == ["move", "multiply", "affine", "multiply", "affine"]
    exact = names(sherman_morrison_program(3, 2))
    assert len(exact) == 10
    assert set(exact) == {"move", "multiply", "divide", "affine"}


def test_bad_arguments_are_refused_by_name(refused, draw_batch):
    state, batch = state_of([1.0, 2, 3, 4]), draw_batch()
    two, three = slice(0, 2), slice(0, 3)
    refused(lambda: move(state, 1, 0, two, two), ValueError, "target: expected a token not before source = 1, got 0")
    refused(lambda: move(state, 0, 0, two, three), ValueError, "write: expected a slot of 2 entries, as in read, got 3")
    refused(lambda: multiply(state, two, two, two, (1, 2, 2)), ValueError, "right: expected a slot of 4 entries")
    refused(lambda: divide(state, two, 3, three), ValueError, "write: expected a slot of 2 entries")
    refused(lambda: affine(state, two, three, two, (1, 1)), ValueError, "second: expected a slot of 2 entries")
    refused(lambda: affine(state, two, two, two, (1, float("inf"))), ValueError, "factors: expected a finite number")
    refused(lambda: ridge_step_program(0, 1, 0.1, 0.1), ValueError, "x_dim: expected a positive integer")
    refused(lambda: ridge_step_program(2, 1, 0.1, 0.1, 0), ValueError, "example: expected a positive integer")
    refused(lambda: primitive_ridge_weights(batch, 0.0), ValueError, "penalty: expected a number > 0")
    refused(lambda: primitive_ridge_steps_weights(batch, 0.1, "1"), TypeError, "penalty: expected a finite number")
