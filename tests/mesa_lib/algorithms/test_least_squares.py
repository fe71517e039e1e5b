"""Least squares and ridge regression, against LAPACK's driver, the normal equations and the posterior mean."""

import numpy as np
import pytest
import torch

from mesa_lib import least_squares, least_squares_weights, ridge_regression, ridge_regression_weights

TIGHT = {"rtol": 1e-10, "atol": 1e-11}


@pytest.mark.parametrize("num_context", [1, 2, 3, 8])
def test_least_squares_is_lapacks_minimum_norm_solution(num_context, draw_batch):
    batch = draw_batch(num_context=num_context)
    oracle = torch.linalg.lstsq(batch.context_x, batch.context_y, driver="gelsd").solution.mT
    torch.testing.assert_close(least_squares_weights(batch), oracle, **TIGHT)
    torch.testing.assert_close(least_squares(batch), batch.query_x @ oracle.mT, **TIGHT)


def test_directions_that_no_example_shows_stay_zero(draw_batch):
    batch = draw_batch(num_context=2)  # two examples in three dimensions
    unseen = torch.linalg.svd(batch.context_x).Vh[:, 2]
    torch.testing.assert_close(
        torch.einsum("tyx,tx->ty", least_squares_weights(batch), unseen), torch.zeros(4, 2).double(), rtol=0, atol=1e-12
    )


def test_singular_values_below_the_cutoff_count_as_zero(draw_batch):
    batch = draw_batch(1, num_context=6)
    u, singular, vh = np.linalg.svd(batch.context_x[0].numpy(), full_matrices=False)
    kept = 1 / singular * np.array([1, 1, 0])
    expected = (vh.T * kept @ u.T @ batch.context_y[0].numpy()).T
    cutoff = float((singular[1] + singular[2]) / 2 / singular[0])
    got = least_squares_weights(batch, relative_cutoff=cutoff)[0].numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_ridge_minimises_its_penalised_sum_of_squares(draw_batch):
    """sum_i |W x_i - y_i|^2 + penalty |W|^2 has gradient zero there, by autograd: a sum, not a mean."""
    batch = draw_batch()
    weights = ridge_regression_weights(batch, 0.8).requires_grad_()
    objective = (batch.context_x @ weights.mT - batch.context_y).square().sum() + 0.8 * weights.square().sum()
    (gradient,) = torch.autograd.grad(objective, weights)
    assert gradient.abs().max() < 1e-12
    torch.testing.assert_close(ridge_regression(batch, 0.8), batch.query_x @ weights.detach().mT, **TIGHT)


def test_ridge_with_the_noise_to_signal_penalty_is_the_bayes_predictor(draw_batch):
    """The conditional mean of a Gaussian: Cov(W, y) Cov(y, y)^-1 y, for tau = 1.5 and sigma = 0.6."""
    batch = draw_batch(1, y_dim=1, teacher_scale=1.5, noise_std=0.6)
    x, y = batch.context_x[0], batch.context_y[0, :, 0]
    covariance = 1.5**2 * x @ x.mT + 0.6**2 * torch.eye(5, dtype=torch.float64)
    posterior_mean = 1.5**2 * x.mT @ torch.linalg.solve(covariance, y)
    torch.testing.assert_close(ridge_regression_weights(batch, (0.6 / 1.5) ** 2)[0, 0], posterior_mean, **TIGHT)


def test_ridge_tends_to_least_squares_and_to_zero(draw_batch):
    batch = draw_batch(num_context=2)
    nearly = ridge_regression_weights(batch, 1e-9)
    torch.testing.assert_close(nearly, least_squares_weights(batch), rtol=1e-5, atol=1e-6)
    assert ridge_regression_weights(batch, 1e12).abs().max() < 1e-10


@pytest.mark.parametrize("function", [ridge_regression, ridge_regression_weights])
@pytest.mark.parametrize(
    ("penalty", "error", "message"),
    [
        (0.0, ValueError, "penalty: expected a number > 0, got 0.0"),
        (float("nan"), ValueError, "penalty: expected a finite number, got nan"),
        (None, TypeError, "penalty: expected a finite number, got None of type NoneType"),
    ],
)
def test_a_bad_penalty_is_refused(function, penalty, error, message, draw_batch, refused):
    batch = draw_batch()
    refused(lambda: function(batch, penalty), error, message)


@pytest.mark.parametrize("function", [least_squares, least_squares_weights])
def test_a_bad_cutoff_is_refused(function, draw_batch, refused):
    batch = draw_batch()
    message = "relative_cutoff: expected a number > 0, got -1.0"
    refused(lambda: function(batch, relative_cutoff=-1.0), ValueError, message)
    message = "relative_cutoff: expected a finite number, got inf"
    refused(lambda: function(batch, relative_cutoff=float("inf")), ValueError, message)
