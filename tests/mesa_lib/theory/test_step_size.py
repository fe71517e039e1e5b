"""Tuned step sizes, against closed forms, a grid, and the table of science.md."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mesa_lib import LinearTasks, generator, gradient_descent, optimal_eta, tune_eta

PAPER = LinearTasks(input_range=0.5)


@pytest.mark.parametrize("tasks", [LinearTasks(), LinearTasks(inputs="normal", noise_std=0.5)])
def test_one_step_tuned_on_a_large_batch_is_the_optimal_step(tasks, seeded):
    """eta is a ratio of means, E y g / E g^2: its standard error comes from the linearised ratio."""
    batch = tasks.sample(100_000, seeded, dtype=torch.float64)
    tuned = tune_eta(batch)
    step = gradient_descent(batch, 1.0)
    residual = (step * (batch.query_y - tuned * step)).flatten()
    standard_error = float(residual.std() / step.square().mean()) / len(residual) ** 0.5
    assert tuned == pytest.approx(optimal_eta(tasks), abs=4 * standard_error)
    assert 4 * standard_error < 0.03 * tuned


@pytest.mark.parametrize("num_steps", [1, 2, 4])
def test_no_step_of_a_fine_grid_beats_the_tuned_one_on_a_batch(num_steps, draw_batch):
    batch = draw_batch(200, num_context=8)

    def loss(eta):
        return float((gradient_descent(batch, eta, num_steps) - batch.query_y).square().sum(-1).mean())

    tuned = tune_eta(batch, num_steps)
    grid = np.linspace(0, 4 * tuned, 4001)
    best = grid[np.argmin([loss(float(eta)) for eta in grid[::10]]) * 10]
    near = [float(eta) for eta in grid if abs(eta - best) <= 10 * grid[1]]
    assert abs(near[int(np.argmin([loss(eta) for eta in near]))] - tuned) <= grid[1]
    assert all(loss(tuned) <= loss(eta) + 1e-12 for eta in near)


@pytest.mark.parametrize(("num_steps", "eta_sum"), [(1, 0.606), (2, 0.598), (3, 0.587)])
def test_steps_on_the_papers_tasks_are_those_of_the_table(num_steps, eta_sum):
    """science.md 2 (looped GD): eta/N for x ~ U(-1/2, 1/2), d = N = 10; 20,000 spectra leave an error below .001."""
    eta = tune_eta(PAPER, num_steps, generator=generator(0, "validation tasks"))
    assert eta / 10 == pytest.approx(eta_sum, abs=1.5e-3)


@pytest.mark.parametrize("noise_std", [0.0, 0.7])
def test_the_tuned_step_of_a_distribution_is_the_minimum_of_the_expected_loss(noise_std):
    """On its own spectra: E |W x_q - V x_q|^2 after K steps, with V and its noise written out as matrices."""
    tasks = LinearTasks(3, 1, 6, noise_std=noise_std, teacher_scale=1.4)
    tuned = tune_eta(tasks, 3, generator=generator(1, "validation tasks"), num_spectra=300)
    x = tasks.sample(300, generator(1, "validation tasks"), dtype=torch.float64).context_x

    def loss(eta):
        shrink = torch.eye(3, dtype=torch.float64) - eta * x.mT @ x / 6
        kept = torch.linalg.matrix_power(shrink, 3)
        sensitivity_to_noise = torch.zeros(300, 3, 6, dtype=torch.float64)
        for _ in range(3):
            sensitivity_to_noise = shrink @ sensitivity_to_noise + eta * x.mT / 6
        bias = 1.4**2 * kept.square().sum((-1, -2))
        return float((bias + noise_std**2 * sensitivity_to_noise.square().sum((-1, -2))).mean())

    grid = np.linspace(0.9 * tuned, 1.1 * tuned, 401)
    best = grid[np.argmin([loss(float(eta)) for eta in grid])]
    assert tuned == pytest.approx(best, abs=grid[1] - grid[0])


def test_noise_and_more_steps_ask_for_smaller_steps():
    stream = {"num_spectra": 2000}
    clean, noisy = PAPER, replace(PAPER, noise_std=0.5)
    assert tune_eta(noisy) < tune_eta(clean)
    sizes = [tune_eta(clean, k, generator=generator(0, "init"), **stream) for k in (1, 2, 4, 8)]
    assert sizes == sorted(sizes, reverse=True)
    assert tune_eta(noisy, 2, generator=generator(0, "init"), **stream) < sizes[1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tune_eta(PAPER, 2), ValueError, "generator: expected a torch.Generator to sample spectra for"),
        (lambda: tune_eta(PAPER, 0), ValueError, "num_steps: expected a positive integer, got 0"),
        (lambda: tune_eta(PAPER, num_spectra=0), ValueError, "num_spectra: expected a positive integer, got 0"),
        (lambda: tune_eta("tasks"), TypeError, "tasks: expected LinearTasks or TaskBatch, got str"),
    ],
)
def test_a_bad_argument_is_refused(call, error, message, refused):
    refused(call, error, message)


def test_a_batch_on_which_all_steps_are_equal_is_refused(draw_batch, refused):
    batch = draw_batch(num_context=1)
    silent = replace(batch, context_y=torch.zeros_like(batch.context_y))
    message = "batch: expected some non-zero prediction of a gradient step, got only zeros"
    refused(lambda: tune_eta(silent), ValueError, message)


@pytest.mark.parametrize(
    "field", [{"input_covariance": np.eye(10).tolist()}, {"teacher_mean": [[1.0] * 10]}, {"constant_input": True}]
)
def test_several_steps_on_tasks_with_a_direction_are_tuned_on_a_batch_or_refused(field, refused):
    tasks = LinearTasks(**field)
    message = "tasks: expected independent inputs and a teacher of mean zero for num_steps > 1, or a TaskBatch"
    refused(lambda: tune_eta(tasks, 2, generator=generator(0, "init")), ValueError, message)
    assert tune_eta(tasks.sample(50, generator(0, "init")), 2) > 0
