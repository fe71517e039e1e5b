"""Fits on spectra: known optima, published numbers, local minima, heavy tails, and what a failed fit says."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from mesa_lib import (
    LinearTasks,
    Schedule,
    best_chebyshev,
    chebyshev_schedule,
    fit_gd,
    fit_gd_plus_plus,
    gd_plus_plus_weights,
    generator,
    nearest_schedule,
    optimal_eta,
    optimal_loss,
    sample_spectra,
    spectral_losses,
    summarize_losses,
    tune_eta,
    zero_loss,
)

PAPER = LinearTasks(input_range=0.5)


def stream(seed=0):
    return generator(seed, "validation tasks")


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_tied_gradient_descent_is_tune_eta(num_steps):
    fit = fit_gd(PAPER, num_steps, generator=stream(), num_spectra=2000)
    assert (
        fit.etas
        == (pytest.approx(tune_eta(PAPER, num_steps, generator=stream(), num_spectra=2000), rel=1e-9),) * num_steps
    )
    assert fit.gammas == (0.0,) * (num_steps - 1) and fit.converged


def test_one_layer_of_either_family_is_the_optimal_step():
    for fit in (fit_gd(PAPER, 1, False, generator=stream()), fit_gd_plus_plus(PAPER, 1, generator=stream())):
        assert fit.etas == (optimal_eta(PAPER),) and fit.gammas == ()
        assert fit.loss == pytest.approx(optimal_loss(PAPER), rel=0.01)


@pytest.mark.parametrize(("num_steps", "loss"), [(2, 0.1414), (3, 0.1104), (5, 0.0795)])
def test_free_steps_of_gradient_descent_are_those_of_the_table(num_steps, loss):
    """science.md 4 and depth_and_sine.md B2; any order of the steps is the same method, and one minimum is reported."""
    fit = fit_gd(PAPER, num_steps, tied=False, generator=stream())
    assert fit.loss == pytest.approx(loss, rel=0.02)
    assert list(fit.etas) == sorted(fit.etas) and len(fit.minima) == 1 and fit.minima[0].num_starts == 8
    assert fit.loss < fit_gd(PAPER, num_steps, generator=stream()).loss


def test_a_fit_is_where_another_optimiser_ends():
    """Nelder-Mead on the mean loss, without logarithms, gradients or a search among starts."""
    fit = fit_gd_plus_plus(PAPER, 2, generator=stream(), num_spectra=2000)
    spectra = sample_spectra(PAPER, 2000, stream())

    def loss(numbers):
        return float(spectral_losses(spectra, Schedule(tuple(numbers[:2]), (numbers[2],)), PAPER).mean())

    found = minimize(
        loss, [3.0, 30.0, 0.3], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-13, "maxiter": 4000}
    )
    assert [*fit.etas, *fit.gammas] == pytest.approx(list(found.x), rel=1e-3)
    assert fit.loss == pytest.approx(found.fun, rel=1e-7)


@pytest.mark.parametrize(("num_context", "published"), [(10, 0.179), (25, 0.099), (50, 0.056), (100, 0.029)])
def test_the_papers_gammas_are_predicted_at_the_scale_of_its_code_and_not_of_its_text(num_context, published):
    """A.10's trained recurrent net, to three digits; U(-1, 1) divides every gamma by four."""
    gammas = {
        half_width: fit_gd_plus_plus(
            replace(PAPER, num_context=num_context, input_range=half_width),
            2,
            tied=True,
            generator=stream(),
            num_starts=8,
        ).gammas[0]
        for half_width in (0.5, 1.0)
    }
    assert gammas[0.5] == pytest.approx(published, rel=0.03)
    assert gammas[1.0] < 0.3 * published


@pytest.mark.parametrize("num_layers", [2, 3, 5])
def test_tied_fits_are_those_of_the_table(num_layers):
    expected = {2: (0.1107, 1.351, 0.1762), 3: (0.0779, 2.0, 0.194), 5: (0.0521, 3.07, 0.2015)}[num_layers]
    fit = fit_gd_plus_plus(PAPER, num_layers, tied=True, generator=stream())
    assert [fit.loss, fit.etas[0] / 10, fit.gammas[0]] == pytest.approx(expected, rel=0.02)
    assert len(set(fit.etas)) == 1 and len(set(fit.gammas)) == 1


def test_two_untied_layers_have_three_minima_and_every_seed_finds_them():
    """100,000 contexts a seed. One sample of that size has a standard deviation of 0.0002 around 0.0922."""
    losses = []
    for seed in (0, 1, 2):
        fit = fit_gd_plus_plus(
            PAPER, 2, generator=generator(seed, "training tasks"), num_spectra=100_000, num_starts=16
        )
        losses.append(fit.loss)
        assert fit.converged
        assert [minimum.objective for minimum in fit.minima] == pytest.approx([0.0923, 0.0986, 0.1040], abs=0.0008)
        assert [*fit.etas, *(10 * gamma for gamma in fit.gammas)] == pytest.approx([4.11, 36.4, 3.98], rel=0.03)
        assert sum(minimum.num_starts for minimum in fit.minima) <= fit.num_starts
    assert np.mean(losses) == pytest.approx(0.0924, abs=0.0004)


@pytest.mark.parametrize("num_layers", [3, 4])
def test_deep_fits_are_not_worse_than_chebyshev_on_the_same_spectra(num_layers):
    fit = fit_gd_plus_plus(PAPER, num_layers, generator=stream(), num_starts=8, num_spectra=10_000)
    spectra = sample_spectra(PAPER, 10_000, stream())
    cap = zero_loss(PAPER)
    reference = spectral_losses(spectra, best_chebyshev(PAPER, num_layers, spectra), PAPER)
    bounded = float((reference * cap / (reference + cap)).mean())
    assert fit.objective == "bounded" and fit.minima[0].objective <= bounded
    summary = summarize_losses(reference, cap, divergence_expected=True)
    assert fit.capped_loss <= float(summary.capped_mean) * 1.002
    assert fit.capped_loss == pytest.approx({3: 0.0385, 4: 0.0155}[num_layers], rel=0.06)
    assert fit.median_loss < {3: 0.042, 4: 0.008}[num_layers]


def test_the_best_chebyshev_is_the_best_of_a_grid():
    spectra = sample_spectra(PAPER, 3000, stream())
    cap = zero_loss(PAPER)

    def bounded(g):
        losses = spectral_losses(spectra, chebyshev_schedule(g, 3, 10), PAPER)
        return float((losses * cap / (losses + cap)).mean())

    best = best_chebyshev(PAPER, 3, spectra).gammas[0]
    assert bounded(best) <= min(bounded(float(g)) for g in np.linspace(0.2, 0.6, 81)) + 1e-6


def test_noise_asks_for_smaller_steps_and_the_fit_hears_it():
    noisy = replace(PAPER, noise_std=0.3)
    clean_fit, noisy_fit = (
        fit_gd_plus_plus(tasks, 2, generator=stream(), num_spectra=2000) for tasks in (PAPER, noisy)
    )
    assert noisy_fit.etas[1] < clean_fit.etas[1] and noisy_fit.loss > clean_fit.loss


def test_a_fit_depends_on_nothing_but_its_generator():
    fits = [fit_gd_plus_plus(PAPER, 2, generator=stream(7), num_spectra=1000, num_starts=4) for _ in range(2)]
    assert fits[0] == fits[1]


@pytest.mark.parametrize("name", ["fit_gd", "fit_gd_plus_plus"])
def test_a_fit_that_does_not_converge_says_so(name):
    fit = {"fit_gd": fit_gd, "fit_gd_plus_plus": fit_gd_plus_plus}[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit(PAPER, 3, False, generator=stream(), num_spectra=500, num_starts=2, max_iterations=1)
    said = [str(warning.message) for warning in caught if warning.category is RuntimeWarning]
    assert len(said) == 1
    assert said[0].startswith(f"{name}: the best of") and "has not converged after 1 iterations" in said[0]
    assert not result.converged


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fit_gd(PAPER, 0, generator=stream()), ValueError, "num_steps: expected a positive integer, got 0"),
        (
            lambda: fit_gd_plus_plus(PAPER, 2.0, generator=stream()),
            TypeError,
            "num_layers: expected a positive integer",
        ),
        (
            lambda: fit_gd_plus_plus(PAPER, 2, generator=stream(), objective="median"),
            ValueError,
            "objective: expected one of 'mean', 'bounded', got 'median'",
        ),
        (
            lambda: fit_gd_plus_plus(PAPER, 2, generator=stream(), num_starts=0),
            ValueError,
            "num_starts: expected a pos",
        ),
        (lambda: fit_gd(PAPER, 2, generator=None), TypeError, "generator: expected a torch.Generator, got None"),
    ],
)
def test_a_bad_argument_is_refused(call, error, message, refused):
    refused(call, error, message)


def test_the_spectra_must_fit(refused):
    refused(
        lambda: best_chebyshev(PAPER, 2, torch.ones(3, 4)), ValueError, "eigenvalues: expected a shape that ends in"
    )


def weights_of(schedule, batch):
    return gd_plus_plus_weights(batch, schedule.etas, schedule.gammas)


@pytest.mark.parametrize("noise_std", [0.0, 0.4])
@pytest.mark.parametrize(
    ("family", "hidden"),
    [
        ("gd++", Schedule((4.0, 12.0, 40.0), (0.35, 1.2))),
        ("gd++, tied", Schedule((8.0, 8.0, 8.0), (0.2, 0.2))),
        ("gd", Schedule((3.0, 6.0, 11.0), (0.0, 0.0))),
        ("gd, tied", Schedule((5.0, 5.0, 5.0), (0.0, 0.0))),
    ],
)
def test_a_network_of_the_family_is_its_own_nearest_schedule(family, hidden, noise_std):
    """The network's weights come from the explicit algorithm; contexts with N < d and two targets are included."""
    for num_context, y_dim in ((10, 1), (4, 2)):
        tasks = LinearTasks(x_dim=5, y_dim=y_dim, num_context=num_context, input_range=0.5, noise_std=noise_std)
        batch = tasks.sample(200, stream(), dtype=torch.float64)
        start = Schedule(tuple(1.1 * eta for eta in hidden.etas), tuple(0.9 * gamma + 0.01 for gamma in hidden.gammas))
        near = nearest_schedule(weights_of(hidden, batch), batch, tasks, start, family)
        assert near.converged and near.distance < 1e-7
        assert near.schedule.etas == pytest.approx(hidden.etas, rel=1e-2)
        assert near.schedule.gammas == pytest.approx(hidden.gammas, rel=1e-2)


def test_the_distance_is_the_bounded_half_square_of_what_queries_see_of_the_difference():
    batch = PAPER.sample(300, stream(), dtype=torch.float64)
    weights = weights_of(Schedule((4.0, 35.0), (0.4,)), batch) + 0.3 * batch.teacher
    near = nearest_schedule(weights, batch, PAPER, Schedule((4.0, 35.0), (0.4,)))
    apart = 0.5 / 12 * (weights - weights_of(near.schedule, batch)).square().sum((-1, -2))
    cap = zero_loss(PAPER)
    assert near.distance == pytest.approx(float((apart * cap / (apart + cap)).mean()), rel=1e-9)
    assert near.distance > 1e-3
    for factor in (0.97, 1.03):  # and no neighbour is nearer
        for etas, gammas in (((factor, 1), 1), ((1, factor), 1), ((1, 1), factor)):
            moved = Schedule(
                tuple(e * f for e, f in zip(near.schedule.etas, etas, strict=True)), (near.schedule.gammas[0] * gammas,)
            )
            other = 0.5 / 12 * (weights - weights_of(moved, batch)).square().sum((-1, -2))
            assert float((other * cap / (other + cap)).mean()) > near.distance


def test_gradient_descent_is_not_near_to_gd_plus_plus():
    hidden = chebyshev_schedule(0.28, 3, 10)
    batch = PAPER.sample(300, stream(), dtype=torch.float64)
    start = Schedule((3.0, 20.0, 200.0), (0.3, 2.0))
    near = {
        family: nearest_schedule(weights_of(hidden, batch), batch, PAPER, start, family)
        for family in ("gd++", "gd++, tied", "gd", "gd, tied")
    }
    assert near["gd++"].distance < 1e-6 < 0.02 < near["gd++, tied"].distance
    assert 0.02 < near["gd"].distance < near["gd, tied"].distance
    assert list(near["gd"].schedule.etas) == sorted(near["gd"].schedule.etas)
    assert near["gd"].schedule.gammas == (0.0, 0.0)


def test_a_nearest_schedule_that_is_not_reached_says_so():
    batch = PAPER.sample(50, stream(), dtype=torch.float64)
    weights = weights_of(chebyshev_schedule(0.3, 3, 10), batch)
    with pytest.warns(RuntimeWarning, match="nearest_schedule: not converged after 1 iterations"):
        near = nearest_schedule(weights, batch, PAPER, Schedule((3.0, 6.0, 20.0), (0.3, 1.0)), max_iterations=1)
    assert not near.converged


def test_what_has_no_nearest_schedule_is_refused(refused):
    batch = PAPER.sample(4, stream(), dtype=torch.float64)
    start = Schedule((3.0, 6.0), (0.3,))
    weights = weights_of(start, batch)
    message = "family: expected one of 'gd++', 'gd++, tied', 'gd', 'gd, tied', got 'adam'"
    refused(lambda: nearest_schedule(weights, batch, PAPER, start, "adam"), ValueError, message)
    message = "start.gammas: expected positive numbers, got (-0.3,)"
    refused(lambda: nearest_schedule(weights, batch, PAPER, Schedule((3.0, 6.0), (-0.3,))), ValueError, message)
    refused(lambda: nearest_schedule(weights[:3], batch, PAPER, start), ValueError, "weights: expected a shape that")
    message = "tasks: expected independent inputs, got a covariance or a constant input"
    shaped = replace(PAPER, input_covariance=torch.eye(10))
    refused(lambda: nearest_schedule(weights, batch, shaped, start), ValueError, message)
