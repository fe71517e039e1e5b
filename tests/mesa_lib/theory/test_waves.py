"""The best step on waves, against sampled tasks, and against other steps."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    SineTasks,
    best_wave_step,
    feature_kernel,
    kernel_gradient_descent,
    wave_coefficients,
    wave_features,
    wave_step_loss,
)

DOUBLE = torch.float64
WAVES = [
    SineTasks(),
    SineTasks(tied=True),
    SineTasks(wave="two frequencies", num_context=14),
    SineTasks(noise_std=0.2, input_range=2.0, amplitude=(0.3, 0.3)),
]


def sampled_losses(tasks, step, num_tasks=4000):
    """Losses of the explicit kernel step on fresh tasks, one query each."""
    phi = wave_features(tasks)
    batch = tasks.sample(num_tasks, torch.Generator().manual_seed(3), dtype=DOUBLE)
    kernel = feature_kernel(phi, step.gamma)
    answers = kernel_gradient_descent(batch, kernel, 1.0, start=lambda x: phi(x) @ step.start[:, None])
    return 0.5 * (answers - batch.query_y).square()[:, 0, 0]


@pytest.mark.parametrize("tasks", WAVES, ids=repr)
def test_the_loss_is_that_of_sampled_tasks(tasks):
    step = best_wave_step(tasks)
    losses = sampled_losses(tasks, step)
    assert abs(float(losses.mean()) - step.loss) < 4 * float(losses.std()) / 4000**0.5


@pytest.mark.parametrize("tasks", WAVES, ids=repr)
def test_mean_and_covariance_of_the_coefficients_are_those_of_sampled_tasks(tasks):
    many = replace(tasks, noise_std=0.0, num_context=1, num_queries=8)
    batch = many.sample(20_000, torch.Generator().manual_seed(4), dtype=DOUBLE)
    found = torch.linalg.lstsq(wave_features(many)(batch.query_x), batch.query_y).solution[..., 0]
    mean, covariance = wave_coefficients(tasks)
    errors = found.std(0) / 20_000**0.5
    assert ((found.mean(0) - mean).abs() < 4 * errors).all()
    products = (found - mean)[:, :, None] * (found - mean)[:, None, :]
    assert ((products.mean(0) - covariance).abs() < 4 * products.std(0) / 20_000**0.5 + 1e-12).all()


@pytest.mark.parametrize("tasks", WAVES, ids=repr)
def test_no_other_gamma_and_none_of_its_rank_does_better(tasks, seeded):
    full, one = best_wave_step(tasks), best_wave_step(tasks, rank=1)
    assert wave_step_loss(tasks, full.gamma) == pytest.approx(full.loss, rel=1e-9)
    assert wave_step_loss(tasks, one.gamma) == pytest.approx(one.loss, rel=1e-9)
    assert full.loss < one.loss and torch.linalg.matrix_rank(one.gamma, rtol=1e-9) == 1
    u, s, v = torch.linalg.svd(one.gamma)
    for scale in (0.03, 0.3):
        noise = scale * torch.randn(3, *full.gamma.shape, generator=seeded, dtype=DOUBLE)
        assert wave_step_loss(tasks, full.gamma + noise[0]) > full.loss
        left, right = u[:, 0] * s[0] + noise[1, 0], v[0] + noise[2, 0]
        assert wave_step_loss(tasks, left[:, None] * right) > one.loss


def test_the_best_gamma_is_where_autograd_finds_no_slope():
    """The loss is a parabola: three of its values along a direction give its slope at the best Gamma."""
    tasks = WAVES[2]
    best = best_wave_step(tasks).gamma
    for direction in torch.eye(16, dtype=DOUBLE).view(16, 4, 4)[::3]:
        ahead, behind = (wave_step_loss(tasks, best + sign * direction) for sign in (1, -1))
        assert ahead == pytest.approx(behind, rel=1e-9)


def test_the_mean_function_of_independent_draws_is_a_cosine():
    step = best_wave_step(SineTasks())
    torch.testing.assert_close(step.start, torch.tensor([0, 0.3 * 2 / torch.pi], dtype=DOUBLE), rtol=0, atol=1e-12)


def test_rank_beyond_the_features_is_no_limit():
    assert best_wave_step(SineTasks(), rank=5).loss == pytest.approx(best_wave_step(SineTasks()).loss, rel=1e-12)


REFUSALS = [
    (lambda: wave_features(SineTasks(wave="square")), ValueError, "SineTasks.wave: expected a wave with finitely many"),
    (lambda: best_wave_step(SineTasks(wave="square")), ValueError, "SineTasks.wave: expected"),
    (lambda: best_wave_step(SineTasks(), rank=0), ValueError, "rank: expected a positive integer"),
    (lambda: wave_step_loss(SineTasks(), torch.eye(3)), ValueError, "gamma: expected shape (2, 2), got (3, 3)"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_bad_arguments_are_refused_by_name(call, error, message, refused):
    refused(call, error, message)
