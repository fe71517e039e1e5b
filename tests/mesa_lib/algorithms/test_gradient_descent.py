"""Explicit gradient descent, against autograd on the half-MSE of the context."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    context_loss,
    gradient_descent,
    gradient_descent_learner,
    gradient_descent_weights,
    least_squares_weights,
    loss_gradient,
    step_moved_targets,
)

TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def half_mse(weights, batch):
    """1/(2N) sum_i |W x_i - y_i|^2 for each task, an example at a time: the definition, with loops."""
    losses = []
    for task in range(batch.num_tasks):
        total = torch.zeros((), dtype=torch.float64)
        for x, y in zip(batch.context_x[task], batch.context_y[task], strict=True):
            total = total + ((weights[task] @ x - y) ** 2).sum()
        losses.append(total / (2 * len(batch.context_x[task])))
    return torch.stack(losses)


def descend(batch, eta, num_steps, start):
    """Gradient descent whose every gradient comes from autograd."""
    weights = start.clone().requires_grad_()
    for _ in range(num_steps):
        (gradient,) = torch.autograd.grad(half_mse(weights, batch).sum(), weights)
        weights = (weights - eta * gradient).detach().requires_grad_()
    return weights.detach()


def test_the_context_loss_is_half_the_mean_squared_error(draw_batch, draw):
    batch, weights = draw_batch(), draw(4, 2, 3)
    torch.testing.assert_close(context_loss(weights, batch), half_mse(weights, batch), **TIGHT)


@pytest.mark.parametrize("sizes", [{"y_dim": 1, "num_context": 1}, {"y_dim": 3, "num_context": 20}, {"x_dim": 1}])
def test_the_gradient_is_autograds(sizes, draw_batch, draw):
    batch = draw_batch(**sizes)
    weights = draw(4, batch.y_dim, batch.x_dim).requires_grad_()
    (expected,) = torch.autograd.grad(half_mse(weights, batch).sum(), weights)
    torch.testing.assert_close(loss_gradient(weights.detach(), batch), expected, **TIGHT)


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_descent_takes_autograds_steps_from_any_start(num_steps, draw_batch, draw):
    batch, start = draw_batch(), draw(4, 2, 3)
    expected = descend(batch, 0.7, num_steps, start)
    torch.testing.assert_close(gradient_descent_weights(batch, 0.7, num_steps, start), expected, **TIGHT)
    predictions = gradient_descent(batch, 0.7, num_steps, start)
    torch.testing.assert_close(predictions, torch.einsum("tyx,tqx->tqy", expected, batch.query_x), **TIGHT)
    assert torch.equal(gradient_descent_learner(0.7, num_steps, start)(batch), predictions)


def test_descent_starts_from_zero_unless_told_otherwise(draw_batch):
    batch = draw_batch()
    expected = descend(batch, 0.3, 2, torch.zeros(4, 2, 3, dtype=torch.float64))
    torch.testing.assert_close(gradient_descent_weights(batch, 0.3, 2), expected, **TIGHT)


def test_one_start_for_all_tasks_is_the_same_start_for_each(draw_batch, draw):
    batch, start = draw_batch(), draw(2, 3)
    each = start.expand(4, 2, 3)
    assert torch.equal(gradient_descent(batch, 0.3, 2, start), gradient_descent(batch, 0.3, 2, each))
    torch.testing.assert_close(context_loss(start, batch), half_mse(each, batch), **TIGHT)
    assert torch.equal(loss_gradient(start, batch), loss_gradient(each, batch))


def test_a_step_on_the_weights_is_a_step_on_the_targets(draw_batch, draw):
    """The paper's equation 4: L(W + Delta W) = 1/(2N) sum_i |W x_i - (y_i - Delta W x_i)|^2."""
    batch, weights, change = draw_batch(), draw(4, 2, 3), draw(4, 2, 3)
    moved = replace(batch, context_y=step_moved_targets(batch, change))
    for task in range(4):
        expected = batch.context_y[task, 1] - change[task] @ batch.context_x[task, 1]
        torch.testing.assert_close(moved.context_y[task, 1], expected, **TIGHT)
    torch.testing.assert_close(half_mse(weights, moved), half_mse(weights + change, batch), **TIGHT)


def test_descent_from_zero_ends_at_the_least_squares_solution_of_least_norm(draw_batch):
    for num_context in (2, 9):  # fewer examples than dimensions, and more
        batch = draw_batch(num_context=num_context, inputs="normal")
        largest = torch.linalg.eigvalsh(batch.context_x.mT @ batch.context_x / num_context).max()
        ended = gradient_descent_weights(batch, 1 / float(largest), 4_000)
        torch.testing.assert_close(ended, least_squares_weights(batch), rtol=1e-5, atol=1e-7)


def test_a_descent_that_diverges_ends_in_infinities_not_in_a_complaint(draw_batch):
    batch = draw_batch().to(dtype=torch.float32)
    predictions = gradient_descent(batch, 1e9, 20)
    assert not torch.isfinite(predictions).any()


@pytest.mark.parametrize("function", [loss_gradient, context_loss, lambda w, batch: step_moved_targets(batch, w)])
def test_weights_that_do_not_fit_the_batch_are_refused(function, draw_batch, draw, refused):
    batch = draw_batch()
    refused(lambda: function(draw(4, 3, 2), batch), ValueError, "expected a shape that ends in (2, 3), got (4, 3, 2)")
    refused(lambda: function(draw(5, 2, 3), batch), ValueError, "expected leading axes that broadcast with (4,)")
    refused(lambda: function(draw(3), batch), ValueError, "expected at least 2 axes, got shape (3,)")
    refused(lambda: function(draw(2, 3).float(), batch), TypeError, "expected dtype torch.float64, that of the batch")
    refused(lambda: function(draw(2, 3) / 0, batch), ValueError, "expected finite numbers, got NaN or infinity")
    refused(lambda: function([[1.0, 2.0, 3.0]], batch), TypeError, "expected a tensor, got list")
    refused(lambda: function(draw(4, 3, 2), batch), ValueError, "weight")


@pytest.mark.parametrize("function", [gradient_descent, gradient_descent_weights])
@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"eta": float("nan")}, ValueError, "eta: expected a finite number, got nan"),
        ({"eta": float("inf")}, ValueError, "eta: expected a finite number, got inf"),
        ({"eta": "1"}, TypeError, "eta: expected a finite number, got '1' of type str"),
        ({"num_steps": 0}, ValueError, "num_steps: expected a positive integer, got 0"),
        ({"num_steps": 1.5}, TypeError, "num_steps: expected a positive integer, got 1.5 of type float"),
        ({"w_0": torch.ones(3, 2).double()}, ValueError, "w_0: expected a shape that ends in (2, 3), got (3, 2)"),
        ({"w_0": torch.ones(1, 2, 3).double()}, ValueError, "w_0: expected one matrix for all tasks or leading axes"),
        ({"w_0": torch.ones(2, 3)}, TypeError, "w_0: expected dtype torch.float64, that of the batch"),
        ({"w_0": torch.full((2, 3), float("nan")).double()}, ValueError, "w_0: expected finite numbers"),
    ],
)
def test_a_bad_argument_of_descent_is_refused(function, kwargs, error, message, draw_batch, refused):
    batch = draw_batch()
    refused(lambda: function(batch, **({"eta": 0.5} | kwargs)), error, message)


def test_a_learner_refuses_bad_steps_before_it_sees_a_batch(refused):
    refused(lambda: gradient_descent_learner(float("nan")), ValueError, "eta: expected a finite number, got nan")
    refused(lambda: gradient_descent_learner(0.1, -1), ValueError, "num_steps: expected a positive integer, got -1")
