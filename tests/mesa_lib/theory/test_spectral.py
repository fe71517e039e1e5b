"""The spectral form against networks, matrices, polynomials and limits; the identities are in propositions/."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from mesa_lib import (
    FittedLinearModel,
    FreeTransformer,
    LinearTasks,
    Looped,
    Schedule,
    chebyshev_schedule,
    divergence_share,
    expected_task_losses,
    gd_construction,
    gd_plus_plus_weights,
    generator,
    gradient_descent_schedule,
    newton_schulz_schedule,
    optimal_cubic_schedule,
    optimal_eta,
    residual,
    sample_spectra,
    spectral_dynamics,
    spectral_losses,
    tied_power_law,
    tied_schedule,
)

PAPER = LinearTasks(input_range=0.5)
DOUBLE = torch.float64


def test_sampled_spectra_are_singular_values_squared():
    spectra = sample_spectra(replace(PAPER, num_context=4), 50, generator(0, "validation tasks"))
    x = replace(PAPER, num_context=4).sample(50, generator(0, "validation tasks"), dtype=DOUBLE).context_x
    expected = torch.linalg.svdvals(x).square().flip(-1)
    torch.testing.assert_close(spectra[:, 6:], expected, rtol=1e-10, atol=1e-13)
    assert (spectra >= 0).all() and (spectra[:, :6] < 1e-12).all()


@pytest.mark.parametrize("noise_std", [0.0, 1.5])
@pytest.mark.parametrize("num_context", [3, 9])
def test_spectral_losses_are_the_mean_losses_of_gd_plus_plus_over_teachers_and_noise(noise_std, num_context):
    """Monte Carlo: the same four contexts under 5,000 teachers and noises; four standard errors."""
    tasks = LinearTasks(5, 2, num_context, input_range=0.8, teacher_scale=1.3, noise_std=noise_std)
    schedule = Schedule((2.0, 4.0), (0.1,))
    few = tasks.sample(4, generator(0, "validation tasks"), dtype=DOUBLE)
    stream = torch.Generator().manual_seed(3)
    count = 5_000
    teacher = 1.3 * torch.randn(count, 4, 2, 5, generator=stream, dtype=DOUBLE)
    x = few.context_x.expand(count, -1, -1, -1)
    y = x @ teacher.mT + noise_std * torch.randn(count, 4, num_context, 2, generator=stream, dtype=DOUBLE)
    many = replace(few.expand(count), context_y=y, teacher=teacher, query_y=few.query_y.expand(count, -1, -1, -1))
    learner = FittedLinearModel(partial(gd_plus_plus_weights, etas=schedule.etas, gammas=schedule.gammas))
    losses = expected_task_losses(learner, many, tasks)
    spectra = torch.linalg.eigvalsh(few.context_x.mT @ few.context_x)
    error = (losses.mean(0) - spectral_losses(spectra, schedule, tasks)).abs()
    assert (error < 4 * losses.std(0) / count**0.5).all()


def test_the_dynamics_are_the_two_lines_of_the_text():
    values = torch.tensor([0.0, 0.5, 2.0], dtype=DOUBLE)
    first, second, third = spectral_dynamics(values, Schedule((4.0, 6.0), (0.3,)), 2)
    assert torch.equal(first.residual, torch.ones(3, dtype=DOUBLE)) and torch.equal(first.eigenvalues, values)
    torch.testing.assert_close(second.residual, 1 - 2 * values)
    moved = values * (1 - 0.3 * values) ** 2
    torch.testing.assert_close(second.eigenvalues, moved)
    torch.testing.assert_close(third.residual, (1 - 2 * values) * (1 - 3 * moved))
    assert torch.equal(third.eigenvalues, second.eigenvalues)


def test_an_optimal_cubic_gives_both_ends_one_image_and_no_other_gamma_a_better_ratio():
    low, high = 1 / 30, 1.0
    (gamma,) = optimal_cubic_schedule(low, high, 2, 1).gammas
    grid = torch.linspace(low, high, 4001, dtype=DOUBLE)

    def ratio(strength):
        moved = grid * (1 - strength * grid) ** 2
        return float(moved.max() / moved.min())

    ends = torch.tensor([low, high], dtype=DOUBLE)
    image = ends * (1 - gamma * ends) ** 2
    assert float(image[0]) == pytest.approx(float(image[1]), rel=1e-12)
    strengths = torch.linspace(0.5 * gamma, 1.3 * gamma, 401).tolist()
    assert ratio(gamma) <= min(ratio(strength) for strength in strengths) + 1e-3


def test_the_optimal_cubic_shrinks_a_large_condition_number_by_27_quarters_and_newton_schulz_by_nine_quarters():
    for schedule, expected in (
        (optimal_cubic_schedule(1e-6, 1.0, 2, 1), 6.743),
        (newton_schulz_schedule(1.0, 2, 1), 2.25),
    ):
        grid = torch.logspace(-6, 0, 20_001, dtype=DOUBLE)
        moved = spectral_dynamics(grid, schedule, 1)[1].eigenvalues
        assert 1e6 / float(moved.max() / moved.min()) == pytest.approx(expected, rel=1e-3)


def test_tied_layers_end_in_a_power_law():
    """The local exponent of rho is -eta lambda_L L / N -> -eta / (2 gamma N); with eta = 1, gamma = 1/3 it is -3/2."""
    values = torch.tensor([0.9, 0.1, 0.01], dtype=DOUBLE)
    near, far = (residual(values, tied_schedule(1.0, 1 / 3, length), 1) for length in (5_000, 10_000))
    exponent = torch.log2(far / near)
    torch.testing.assert_close(exponent[:2], torch.full((2,), -1.5, dtype=DOUBLE), rtol=0, atol=5e-3)
    law = tied_power_law(values, 1.0, 1 / 3, 10_000, 1) / tied_power_law(values, 1.0, 1 / 3, 5_000, 1)
    torch.testing.assert_close(law, far / near, rtol=5e-3, atol=0)
    assert ((far / tied_power_law(values, 1.0, 1 / 3, 10_000, 1) > 0.2) & (far < 1)).all()


def test_newton_schulz_tolerates_five_times_the_eigenvalue_and_no_more():
    values = torch.tensor([1.0, 2.9, 3.1, 4.9, 5.1], dtype=DOUBLE)
    last = spectral_dynamics(values, newton_schulz_schedule(1.0, 200, 1), 1)[-1].residual
    assert (last[:4].abs() < 1e-12).all()
    assert not last[4].abs() < 1e6


def test_gradient_descent_is_the_schedule_without_gammas():
    values = torch.linspace(0, 3, 7, dtype=DOUBLE)
    torch.testing.assert_close(residual(values, gradient_descent_schedule(0.8, 5), 2), (1 - 0.4 * values) ** 5)


@pytest.mark.parametrize("damping", [1.0, 0.75])
def test_the_divergence_share_counts_the_tasks_on_which_a_looped_layer_diverges(damping):
    """3.4 % without damping, 0.011 % at 0.75; and the loss grows from 300 to 600 loops on these tasks and no other."""
    spectra = sample_spectra(PAPER, 200_000, generator(0, "validation tasks"))
    eta = optimal_eta(PAPER)
    share = divergence_share(spectra, eta, 10, damping)
    expected = {1.0: 0.034, 0.75: 0.00011}[damping]
    assert abs(share - expected) < 4 * (expected / 200_000) ** 0.5 + 0.05 * expected
    batch = PAPER.sample(300, generator(0, "validation tasks"), dtype=DOUBLE)
    layer = FreeTransformer([gd_construction(eta, 10, 1, 10, dtype=DOUBLE)])
    with torch.no_grad():
        growth = [expected_task_losses(Looped(layer, loops, damping), batch, PAPER) for loops in (300, 600)]
    own = torch.linalg.eigvalsh(batch.context_x.mT @ batch.context_x)
    diverging = damping * eta * own[:, -1] / 10 > 2
    assert torch.equal(growth[1] > growth[0] + 1e-12, diverging)
    assert float(diverging.double().mean()) == divergence_share(own, eta, 10, damping)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Schedule((), ()), ValueError, "etas: expected at least one number"),
        (lambda: Schedule((1.0, 2.0), ()), ValueError, "gammas: expected 1 numbers, one between any two layers"),
        (lambda: Schedule((float("nan"),), ()), ValueError, "etas[0]: expected a finite number, got nan"),
        (lambda: chebyshev_schedule(-1.0, 2, 10), ValueError, "g: expected a number > 0, got -1.0"),
        (lambda: optimal_cubic_schedule(2.0, 1.0, 2, 1), ValueError, "lowest: expected at most highest = 1.0, got 2.0"),
        (lambda: newton_schulz_schedule(0.0, 2, 1), ValueError, "highest: expected a number > 0, got 0.0"),
        (lambda: tied_schedule(1.0, 1.0, 0), ValueError, "num_layers: expected a positive integer, got 0"),
        (lambda: gradient_descent_schedule(1.0, 0), ValueError, "num_steps: expected a positive integer, got 0"),
        (lambda: tied_power_law(torch.ones(2), 1.0, 0.0, 2, 1), ValueError, "gamma: expected a number > 0, got 0.0"),
        (lambda: divergence_share(torch.ones(2), 1.0, 1), ValueError, "eigenvalues: expected at least 2 axes"),
        (lambda: divergence_share(torch.ones(2, 2), 1.0, 1, 0.0), ValueError, "damping: expected a number > 0"),
        (
            lambda: spectral_losses(torch.ones(2, 3), Schedule((1.0,), ()), PAPER),
            ValueError,
            "eigenvalues: expected a shape that ends in (10,), got (2, 3)",
        ),
        (
            lambda: residual(torch.full((2,), torch.inf), Schedule((1.0,), ()), 1),
            ValueError,
            "eigenvalues: expected finite",
        ),
    ],
)
def test_a_bad_argument_is_refused(call, error, message, refused):
    refused(call, error, message)
