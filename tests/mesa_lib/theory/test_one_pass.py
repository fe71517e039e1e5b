"""Exact losses of one pass over the context and of least squares, against Monte Carlo within four standard errors."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from mesa_lib import (
    FittedLinearModel,
    LinearTasks,
    averaging_weights,
    delta_rule_weights,
    expected_task_losses,
    generator,
    least_squares_loss,
    least_squares_weights,
    one_pass_eta,
    one_pass_loss,
    optimal_eta,
    optimal_loss,
    population_loss,
    zero_loss,
)

NORMAL = LinearTasks(inputs="normal")


def measured(tasks, fit, num_tasks=8000):
    """Mean loss over fresh tasks, with its standard error."""
    batch = tasks.sample(num_tasks, generator(7, "validation tasks"), torch.float64)
    losses = expected_task_losses(FittedLinearModel(fit), batch, tasks)
    return float(losses.mean()), float(losses.std()) / num_tasks**0.5


@pytest.mark.parametrize("tasks", [NORMAL, LinearTasks(y_dim=2), replace(NORMAL, noise_std=0.5, inputs="laplace")])
@pytest.mark.parametrize(("mini_batch", "factor"), [(1, 1.0), (1, 0.6), (3, 1.0), (5, 1.0)])
def test_one_pass_loses_what_the_formula_says(tasks, mini_batch, factor):
    eta = factor * one_pass_eta(tasks, mini_batch)
    mean, error = measured(tasks, partial(delta_rule_weights, eta=eta, mini_batch=mini_batch))
    assert abs(mean - one_pass_loss(tasks, eta, mini_batch)) < 4 * error


def test_without_noise_the_best_pass_shrinks_by_one_factor_a_mini_batch():
    """(1 - b / (b + d - 2 + kappa))^(N/b): kappa is 3 for normal inputs and 9/5 for uniform ones."""
    for tasks, kappa in ((NORMAL, 3), (LinearTasks(), 1.8)):
        for b in (1, 2, 5, 10):
            relative = one_pass_loss(tasks, one_pass_eta(tasks, b), b) / zero_loss(tasks)
            assert relative == pytest.approx((1 - b / (b + 10 - 2 + kappa)) ** (10 / b), rel=1e-12)


def test_the_best_step_size_is_best():
    for b in (1, 5):
        eta = one_pass_eta(NORMAL, b)
        around = [one_pass_loss(NORMAL, factor * eta, b) for factor in (0.97, 1.0, 1.03)]
        assert around[1] < min(around[0], around[2])


def test_one_mini_batch_is_one_gradient_step_noise_included():
    noisy = replace(NORMAL, noise_std=0.7)
    assert one_pass_eta(NORMAL, 10) == pytest.approx(optimal_eta(NORMAL), rel=1e-12)
    assert one_pass_loss(NORMAL, optimal_eta(NORMAL), 10) == pytest.approx(optimal_loss(NORMAL), rel=1e-12)
    assert one_pass_loss(noisy, 0.3, 10) == pytest.approx(float(population_loss(noisy, 0.3)), rel=1e-12)


def test_a_mini_batch_larger_than_the_context_takes_the_step_that_its_examples_earn():
    mean, error = measured(NORMAL, partial(delta_rule_weights, eta=0.5, mini_batch=40))
    assert abs(mean - one_pass_loss(NORMAL, 0.5, 40)) < 4 * error
    assert one_pass_loss(NORMAL, 0.5, 40) == pytest.approx(float(population_loss(NORMAL, 0.5 * 10 / 40)), rel=1e-12)


@pytest.mark.parametrize("num_context", [5, 20, 40])
def test_averaging_in_gargs_setting_loses_d_plus_one_over_n(num_context):
    tasks = LinearTasks(x_dim=20, num_context=num_context, inputs="normal")
    expected = 21 / num_context * zero_loss(tasks)
    assert population_loss(tasks, 1.0) == pytest.approx(expected, rel=1e-12)
    mean, error = measured(tasks, averaging_weights, 5000)
    assert abs(mean - expected) < 4 * error


@pytest.mark.parametrize("num_context", [1, 6, 10, 14])
@pytest.mark.parametrize("inputs", ["normal", "uniform"])
def test_least_squares_loses_the_directions_that_it_has_not_seen(num_context, inputs):
    tasks = LinearTasks(inputs=inputs, num_context=num_context)
    mean, error = measured(tasks, least_squares_weights, 4000)
    assert least_squares_loss(tasks) == pytest.approx(max(0, 1 - num_context / 10) * zero_loss(tasks), rel=1e-12)
    assert abs(mean - least_squares_loss(tasks)) < 4 * error + 1e-9


def test_bad_arguments_are_refused_by_name(refused):
    refused(lambda: one_pass_loss(NORMAL, float("inf")), ValueError, "eta: expected a finite number")
    refused(lambda: one_pass_loss(NORMAL, 0.1, 0), ValueError, "mini_batch: expected a positive integer")
    shaped = replace(NORMAL, input_covariance=torch.eye(10).tolist())
    refused(lambda: one_pass_eta(shaped), ValueError, "tasks: expected input_covariance=None")
    refused(lambda: least_squares_loss(replace(NORMAL, noise_std=1.0)), ValueError, "tasks: expected no noise")
    refused(lambda: least_squares_loss(LinearTasks(inputs="rademacher")), ValueError, "continuous distribution")
