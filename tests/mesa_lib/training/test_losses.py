"""Losses on the query: half-MSE, one number per ensemble member."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from mesa_lib import (
    FittedLinearModel,
    FreeTransformer,
    LinearTasks,
    SineTasks,
    TaskBatch,
    clamped_query_loss,
    expected_query_loss,
    expected_task_losses,
    geman_mcclure_query_loss,
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
    torch.testing.assert_close(
        expected_query_loss(ensemble, batch.expand(2), TASKS), expected_query_loss(ensemble, batch, TASKS), **TIGHT
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


def test_the_clamped_loss_counts_no_task_above_its_cap(ensemble, draw_batch):
    batch = draw_batch()
    losses = expected_task_losses(ensemble, batch, TASKS).detach()
    cap = float(losses.mean())
    by_hand = torch.stack(
        [torch.stack([min(loss, torch.tensor(cap, dtype=torch.float64)) for loss in row]).mean() for row in losses]
    )
    torch.testing.assert_close(clamped_query_loss(cap)(ensemble, batch, TASKS), by_hand, **TIGHT)
    high = float(losses.max()) + 1
    torch.testing.assert_close(
        clamped_query_loss(high)(ensemble, batch, TASKS), expected_query_loss(ensemble, batch, TASKS), **TIGHT
    )


def test_a_task_above_the_cap_has_no_gradient(ensemble, draw_batch):
    batch, parameters = draw_batch(), list(ensemble.parameters())
    losses = expected_task_losses(ensemble, batch, TASKS)[0].detach()
    cap = float(losses.mean())
    kept = (losses < cap).nonzero().flatten().tolist()
    assert 0 < len(kept) < len(losses)
    clamped = torch.autograd.grad(clamped_query_loss(cap)(ensemble, batch, TASKS)[0], parameters)
    few = expected_task_losses(ensemble, batch, TASKS)[0, kept].sum() / len(losses)
    for one, other in zip(clamped, torch.autograd.grad(few, parameters), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-14)


def test_a_loss_that_is_not_a_number_counts_as_the_cap(draw_batch):
    batch = draw_batch()
    lost = torch.zeros_like(batch.teacher)
    lost[0], lost[1] = float("nan"), float("inf")
    zero = expected_task_losses(FittedLinearModel(lambda given: torch.zeros_like(lost)), batch, TASKS)
    expected = (0.5 + 0.5 + zero[2:].clamp(max=0.5).sum()) / len(zero)
    torch.testing.assert_close(clamped_query_loss(0.5)(FittedLinearModel(lambda given: lost), batch, TASKS), expected)


def test_a_cap_that_caps_nothing_or_all_is_refused(refused):
    refused(lambda: clamped_query_loss(0.0), ValueError, "cap: expected a number > 0, got 0.0")
    refused(lambda: clamped_query_loss(float("inf")), ValueError, "cap: expected a finite number, got inf")


def test_the_losses_of_single_tasks_are_half_squared_distances_and_average_to_the_expected_loss(ensemble, draw_batch):
    batch = draw_batch()
    losses = expected_task_losses(ensemble, batch, TASKS).detach()
    distances = (ensemble.implicit_weights(batch) - batch.teacher).square().sum((-1, -2))
    torch.testing.assert_close(losses, 0.5 * TASKS.second_moment * distances, **TIGHT)
    torch.testing.assert_close(losses.mean(-1), expected_query_loss(ensemble, batch, TASKS), **TIGHT)


def test_expected_loss_refuses_implicit_weights_that_would_broadcast_against_the_teachers(draw_batch, refused):
    batch, tasks = draw_batch(4), LinearTasks(x_dim=3, y_dim=2)
    one_row = FittedLinearModel(lambda given: given.teacher[..., :1, :])
    refused(
        lambda: expected_query_loss(one_row, batch, tasks),
        ValueError,
        "learner: expected implicit weights that end in (4, 2, 3), the shape of the teachers, got (4, 1, 3)",
    )


def test_expected_losses_are_for_linear_tasks_and_say_so(refused):
    waves = SineTasks(num_context=5)
    batch = waves.sample(2, torch.Generator())
    message = "tasks: expected LinearTasks, got SineTasks; use sampled_query_loss"
    refused(lambda: expected_query_loss(gradient_descent_learner(0.1), batch, waves), TypeError, message)
    assert sampled_query_loss(gradient_descent_learner(0.1), batch, waves).shape == ()


def test_the_loss_of_geman_and_mcclure_is_e2_over_e2_plus_s2_of_the_root_error(ensemble, draw_batch):
    batch, scale = draw_batch(), 0.3
    squares = 2 * expected_task_losses(ensemble, batch, TASKS).detach()  # e^2, as half-MSE is e^2 / 2
    as_published = scale * squares / (squares + 2 * scale)
    torch.testing.assert_close(geman_mcclure_query_loss(scale)(ensemble, batch, TASKS), as_published.mean(-1), **TIGHT)


def test_a_task_weighs_less_in_the_gradient_the_more_it_loses(ensemble, draw_batch):
    batch, parameters, scale = draw_batch(), list(ensemble.parameters()), 0.3
    losses = expected_task_losses(ensemble, batch, TASKS)
    weights = (1 + losses.detach() / scale) ** -2
    expected = torch.autograd.grad((weights * losses).mean(-1).sum(), parameters)
    got = torch.autograd.grad(geman_mcclure_query_loss(scale)(ensemble, batch, TASKS).sum(), parameters)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-14)


def test_a_loss_that_is_not_finite_counts_as_the_scale(draw_batch):
    batch = draw_batch()
    lost = torch.zeros_like(batch.teacher)
    lost[0], lost[1] = float("nan"), float("inf")
    learner = FittedLinearModel(lambda given: lost)
    few = expected_task_losses(FittedLinearModel(lambda given: torch.zeros_like(lost)), batch, TASKS)[2:]
    expected = (0.5 + 0.5 + (few / (1 + few / 0.5)).sum()) / len(batch.teacher)
    torch.testing.assert_close(geman_mcclure_query_loss(0.5)(learner, batch, TASKS), expected)


def test_a_scale_that_is_no_positive_number_is_refused(refused):
    refused(lambda: geman_mcclure_query_loss(0.0), ValueError, "scale: expected a number > 0, got 0.0")
    refused(lambda: geman_mcclure_query_loss(float("inf")), ValueError, "scale: expected a finite number, got inf")
