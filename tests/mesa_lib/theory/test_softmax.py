"""The centred step's exact loss, by enumeration and Monte Carlo; softmax heads at finite scores, by sampling."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch

from mesa_lib import (
    FittedLinearModel,
    LinearTasks,
    TaskBatch,
    best_softmax_heads,
    centred_gradient_descent_weights,
    centred_loss,
    expected_task_losses,
    gradient_descent_weights,
    optimal_centred_eta,
    optimal_centred_loss,
    optimal_eta,
    optimal_loss,
    population_loss,
    softmax_heads,
    zero_loss,
)

DOUBLE = torch.float64


@pytest.mark.parametrize("centring", [1.0, 0.4])
def test_the_loss_of_the_centred_step_is_the_mean_over_all_signs(centring):
    """With inputs +-r every context can be written down: 2^(N d) of them, no moment needed."""
    tasks = LinearTasks(x_dim=2, y_dim=1, num_context=3, input_range=0.7, inputs="rademacher")
    signs = torch.tensor(list(product([-0.7, 0.7], repeat=6)), dtype=DOUBLE).view(-1, 3, 2)
    total = 0.0
    for axis in range(2):  # the mean over W ~ N(0, I) of a square is the sum over two unit teachers
        teacher = torch.eye(2, dtype=DOUBLE)[axis].expand(len(signs), 1, 2)
        y = signs @ teacher.mT
        batch = TaskBatch(signs, y, signs[:, :1], y[:, :1], teacher)
        learner = FittedLinearModel(partial(centred_gradient_descent_weights, eta=1.1, centring=centring))
        total += expected_task_losses(learner, batch, tasks).mean().item()
    assert centred_loss(tasks, 1.1, centring) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("inputs", ["uniform", "normal", "laplace"])
@pytest.mark.parametrize("centring", [1.0, 10 / 11])
def test_at_the_books_size_it_is_the_mean_over_sampled_tasks(inputs, centring, seeded):
    """The difference to the plain step's loss, whose exact value has its own tests, within 4 standard errors."""
    tasks = LinearTasks(inputs=inputs, noise_std=0.4, teacher_scale=1.3)
    eta = optimal_centred_eta(tasks, centring)
    batch = tasks.sample(40_000, seeded)
    ours, plain = (
        expected_task_losses(FittedLinearModel(fit), batch, tasks).double()
        for fit in (
            partial(centred_gradient_descent_weights, eta=eta, centring=centring),
            partial(gradient_descent_weights, eta=eta),
        )
    )
    expected = centred_loss(tasks, eta, centring) - float(population_loss(tasks, eta))
    difference = ours - plain
    assert abs(float(difference.mean()) - expected) < 4 * float(difference.std()) / 200
    assert float(difference.std()) / 200 < 0.02 * zero_loss(tasks)


def test_without_centring_it_is_the_loss_of_a_gradient_step():
    tasks = LinearTasks(4, 2, 7, 1, 0.8, "laplace", 1.2, 0.3)
    assert centred_loss(tasks, 0.6, 0.0) == pytest.approx(float(population_loss(tasks, 0.6)), rel=1e-12)
    assert optimal_centred_eta(tasks, 0.0) == pytest.approx(optimal_eta(tasks), rel=1e-12)
    assert optimal_centred_loss(tasks, 0.0) == pytest.approx(optimal_loss(tasks), rel=1e-12)


def test_for_normal_inputs_centring_costs_exactly_one_example():
    tasks = LinearTasks(5, 1, 8, inputs="normal", noise_std=0.4)
    assert optimal_centred_loss(tasks) == pytest.approx(optimal_loss(replace(tasks, num_context=7)), rel=1e-12)
    plain = replace(tasks, noise_std=0.0)
    assert optimal_centred_loss(plain) / zero_loss(plain) == pytest.approx(6 / 13, rel=1e-12)


def test_the_best_step_is_best():
    tasks = LinearTasks(5, 1, 8, noise_std=0.4)
    best = optimal_centred_eta(tasks, 0.7)
    assert centred_loss(tasks, best, 0.7) == pytest.approx(optimal_centred_loss(tasks, 0.7), rel=1e-12)
    for other in (0.99, 1.01):
        assert centred_loss(tasks, other * best, 0.7) > optimal_centred_loss(tasks, 0.7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input_covariance": [[1.0, 0.0], [0.0, 2.0]]}, "tasks.input_covariance: expected None"),
        ({"teacher_mean": [[1.0, 0.0]]}, "tasks.teacher_mean: expected None"),
        ({"constant_input": True}, "tasks.constant_input: expected False"),
    ],
)
def test_tasks_without_a_formula_are_refused(settings, message, refused):
    tasks = LinearTasks(x_dim=2, **settings)
    batch = LinearTasks(x_dim=2).sample(3, torch.Generator().manual_seed(0))
    calls = (partial(centred_loss, tasks, 1.0), partial(softmax_heads, tasks, batch, [1.0]))
    for call in (*calls, partial(optimal_centred_eta, tasks), partial(optimal_centred_loss, tasks)):
        refused(call, ValueError, message)


# Heads at finite scores


@pytest.mark.parametrize(("betas", "sink"), [([1.5], 0.0), ([0.8, -0.5], 0.0), ([1.0, -1.0], 2.0)])
def test_averaging_over_teachers_and_noise_is_what_sampling_them_gives(betas, sink, seeded):
    """Many teachers and noises on each of the same inputs, the softmax written out; within 4 standard errors."""
    tasks = LinearTasks(3, 2, 4, 2, 1.0, "normal", 1.3, 1.5)
    batch = tasks.sample(40, seeded, dtype=DOUBLE)
    heads = softmax_heads(tasks, batch, betas, sink)
    shape = (500, 40)
    teachers = 1.3 * torch.randn(*shape, 2, 3, generator=seeded, dtype=DOUBLE)
    y = batch.context_x @ teachers.mT + 1.5 * torch.randn(*shape, 4, 2, generator=seeded, dtype=DOUBLE)
    scores = batch.query_x @ batch.context_x.mT
    powers = torch.stack([torch.exp(beta * scores) for beta in betas])
    shares = powers / (sink + powers.sum(-1, keepdim=True))
    weights = (torch.tensor(heads.outputs, dtype=DOUBLE)[:, None, None, None] * shares).sum(0)
    step = optimal_eta(tasks) / 4 * scores
    target = batch.query_x @ teachers.mT
    ours, control = (0.5 * (w @ y - target).square().sum(-1).mean((-1, -2)) for w in (weights, step))
    ratio = ours.mean() / control.mean()
    error = float((ours - ratio * control).std() / control.mean() / 500**0.5)
    assert abs(heads.loss / optimal_loss(tasks) - float(ratio)) < 4 * error
    assert error < 0.02


def test_the_outputs_of_the_heads_are_the_best(seeded):
    """A pair at small scores, whose difference has to be blown up, has the centred step's loss."""
    tasks = LinearTasks(num_queries=4)
    pair = softmax_heads(tasks, tasks.sample(5000, seeded, dtype=DOUBLE), [0.01, -0.01])
    assert abs(pair.loss - optimal_centred_loss(tasks)) < 4 * pair.standard_error
    assert pair.standard_error < 0.002 * pair.loss
    assert pair.outputs[0] == pytest.approx(optimal_centred_eta(tasks) / 0.02, rel=0.05)
    assert pair.outputs[1] == pytest.approx(-pair.outputs[0], rel=0.05)


@pytest.mark.parametrize(("num_heads", "sink"), [(1, 0.0), (2, 0.0), (2, 1.0)])
def test_the_best_scores_are_best(num_heads, sink, seeded):
    tasks = LinearTasks(num_queries=2)
    batch = tasks.sample(4000, seeded)
    best = best_softmax_heads(tasks, batch, num_heads, sink)
    assert best.loss == pytest.approx(softmax_heads(tasks, batch, best.betas, sink).loss, rel=1e-9)
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert softmax_heads(tasks, batch, [factor * beta for beta in best.betas], sink).loss > best.loss
    relative = {(1, 0.0): 0.699, (2, 0.0): 0.517, (2, 1.0): 0.513}[num_heads, sink]  # of 400,000 contexts
    assert best.loss / zero_loss(tasks) == pytest.approx(relative, abs=0.003)


def test_heads_that_do_not_fit_are_refused(draw_batch, refused):
    tasks, batch = LinearTasks(3, 2, 5), draw_batch()
    refused(lambda: softmax_heads(tasks, batch, []), ValueError, "betas: expected at least one number")
    refused(lambda: softmax_heads(tasks, batch, [1.0], -1.0), ValueError, "sink: expected a number >= 0, got -1.0")
    message = "batch: expected 6 examples of 3 inputs, as in tasks, got 5 of 3"
    refused(lambda: softmax_heads(replace(tasks, num_context=6), batch, [1.0]), ValueError, message)
    refused(lambda: best_softmax_heads(tasks, batch, 3), ValueError, "num_heads: expected 1 or 2, got 3")
