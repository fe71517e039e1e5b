"""Losses on the query: half-MSE, one number per ensemble member."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from mesa_lib import (
    FreeTransformer,
    LinearTasks,
    TaskBatch,
    expected_query_loss,
    gradient_descent_learner,
    least_squares,
    random_weights,
    sampled_query_loss,
)

TIGHT = {"rtol": 1e-12, "atol": 1e-14}
TASKS = LinearTasks(x_dim=3, y_dim=2, num_context=5, num_queries=2, input_range=0.8, noise_std=0.3)


@pytest.fixture
def ensemble():
    return FreeTransformer([random_weights(3, 2, [0, 1], scale=0.5, dtype=torch.float64)])


def test_the_sampled_loss_is_half_the_squared_error_summed_over_targets(ensemble, draw_batch):
    batch = draw_batch()
    predictions, losses = ensemble(batch), sampled_query_loss(ensemble, batch)
    for member in range(2):
        errors = [
            0.5 * ((predictions[member, task, query] - batch.query_y[task, query]) ** 2).sum()
            for task in range(4)
            for query in range(2)
        ]
        torch.testing.assert_close(losses[member], torch.stack(errors).mean(), **TIGHT)


def sign_queries(batch: TaskBatch, tasks: LinearTasks) -> TaskBatch:
    """The batch with the 2^d queries x_q in {-sqrt m2, +sqrt m2}^d: their second moment is m2 I, exactly."""
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=batch.x_dim)), dtype=torch.float64)
    query_x = (tasks.second_moment**0.5 * signs).expand(batch.num_tasks, -1, -1)
    return replace(batch, query_x=query_x, query_y=query_x @ batch.teacher.mT)


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
def test_the_expected_loss_is_the_sampled_loss_over_queries_of_the_same_second_moment(inputs, ensemble, seeded):
    """The loss is quadratic in x_q, so the average over a design with E x_q x_q^T = m2 I is the expectation, and so
    is the average of its gradient."""
    tasks = replace(TASKS, inputs=inputs)
    batch = tasks.sample(4, seeded, dtype=torch.float64)
    exact, averaged = (
        expected_query_loss(ensemble, batch, tasks),
        sampled_query_loss(ensemble, sign_queries(batch, tasks)),
    )
    torch.testing.assert_close(exact, averaged, **TIGHT)
    parameters = list(ensemble.parameters())
    for one, other in zip(*(torch.autograd.grad(loss.sum(), parameters) for loss in (exact, averaged)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-14)


def test_a_loss_falls_on_the_ensemble_axis_of_learner_or_batch(ensemble, draw_batch):
    batch = draw_batch()
    plain = gradient_descent_learner(0.5)
    assert sampled_query_loss(plain, batch).shape == ()
    assert expected_query_loss(plain, batch.expand(3), TASKS).shape == (3,)
    assert torch.equal(
        expected_query_loss(ensemble, batch.expand(2), TASKS), expected_query_loss(ensemble, batch, TASKS)
    )


def test_the_sampled_loss_ignores_teachers_and_the_expected_one_ignores_queries(ensemble, draw_batch):
    batch = draw_batch()
    blind = replace(batch, teacher=None)
    assert torch.equal(sampled_query_loss(ensemble, blind), sampled_query_loss(ensemble, batch))
    other = replace(batch, query_x=batch.query_x + 1, query_y=batch.query_y - 1)
    assert torch.equal(expected_query_loss(ensemble, other, TASKS), expected_query_loss(ensemble, batch, TASKS))


def test_what_a_loss_cannot_judge_is_refused(draw_batch, refused):
    batch, plain = draw_batch(), gradient_descent_learner(0.5)
    message = "learner: expected one with implicit_weights (linear in the query), got function"
    refused(lambda: expected_query_loss(least_squares, batch, TASKS), TypeError, message)
    message = "batch: expected a batch with teachers, as LinearTasks.sample draws it, got teacher=None"
    refused(lambda: expected_query_loss(plain, replace(batch, teacher=None), TASKS), ValueError, message)
    message = "tasks: expected x_dim = 3, that of the batch, got 10"
    refused(lambda: expected_query_loss(plain, batch, LinearTasks()), ValueError, message)
    message = "learner: expected predictions that end in (4, 2, 2), the shape of query_y, got (4, 2)"
    refused(lambda: sampled_query_loss(lambda given: plain(given)[..., 0], batch), ValueError, message)
