"""Bayes predictors, against conditioning of joint normal distributions and Bayes' rule by Monte Carlo."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from mesa_lib import (
    LinearTasks,
    generator,
    least_squares_weights,
    noise_mixture,
    noise_mixture_weights,
    noise_posterior,
    posterior_mean,
    posterior_mean_weights,
    ridge_regression_weights,
)

TIGHT = {"rtol": 1e-10, "atol": 1e-11}


def test_with_known_noise_it_is_the_conditional_mean_of_a_joint_normal(draw_batch):
    """E[W | Y] = Cov(W, Y) Cov(Y)^-1 Y, over the context's N targets: no d x d matrix is inverted."""
    batch, sigma, tau = draw_batch(), 0.6, 1.4
    gram = tau**2 * batch.context_x @ batch.context_x.mT + sigma**2 * torch.eye(5, dtype=torch.float64)
    expected = tau**2 * batch.context_y.mT @ torch.linalg.inv(gram) @ batch.context_x
    torch.testing.assert_close(posterior_mean_weights(batch, sigma, tau), expected, **TIGHT)
    torch.testing.assert_close(posterior_mean(batch, sigma, tau), batch.query_x @ expected.mT, **TIGHT)


@pytest.mark.parametrize("num_context", [2, 6])
def test_without_noise_it_is_least_squares_the_limit_of_little_noise(num_context, draw_batch):
    batch = draw_batch(num_context=num_context, noise_std=0.0)
    torch.testing.assert_close(posterior_mean_weights(batch, 0.0), least_squares_weights(batch), **TIGHT)
    torch.testing.assert_close(posterior_mean_weights(batch, 1e-4), least_squares_weights(batch), rtol=0, atol=1e-4)


@pytest.mark.parametrize("prior", [None, (1.0, 2.0, 0.5)])
def test_the_posterior_of_the_noise_is_bayes_rule_on_scipys_densities(prior, draw_batch):
    batch, sigmas, tau = draw_batch(), (0.1, 0.5, 1.5), 0.8
    logs = np.zeros((4, 3))
    for task in range(4):
        gram = (tau**2 * batch.context_x[task] @ batch.context_x[task].mT).numpy()
        for level, sigma in enumerate(sigmas):
            density = multivariate_normal(np.zeros(5), gram + sigma**2 * np.eye(5))
            logs[task, level] = sum(density.logpdf(batch.context_y[task, :, target].numpy()) for target in range(2))
    odds = np.exp(logs - logs.max(1, keepdims=True)) * np.array(prior or (1, 1, 1))
    expected = odds / odds.sum(1, keepdims=True)
    np.testing.assert_allclose(noise_posterior(batch, sigmas, prior, tau).numpy(), expected, rtol=1e-9)


def test_the_mixture_is_ridge_regressions_weighted_by_that_posterior(draw_batch):
    batch, sigmas = draw_batch(), (0.2, 1.0)
    first = noise_posterior(batch, sigmas)[..., 0, None, None]
    low, high = ridge_regression_weights(batch, 0.04), ridge_regression_weights(batch, 1.0)
    expected = first * low + (1 - first) * high
    torch.testing.assert_close(noise_mixture_weights(batch, sigmas), expected, **TIGHT)
    torch.testing.assert_close(noise_mixture(batch, sigmas), batch.query_x @ expected.mT, **TIGHT)


def test_one_level_is_no_mixture(draw_batch):
    batch = draw_batch()
    torch.testing.assert_close(noise_mixture_weights(batch, [0.3]), posterior_mean_weights(batch, 0.3), **TIGHT)


def test_no_ridge_regression_loses_less_on_mixed_noise():
    """On tasks half of which have noise 0.1 and half noise 2; paired over 4,000 tasks, by four standard errors."""
    tasks = LinearTasks(x_dim=4, num_context=8, inputs="normal")
    batches = [
        replace(tasks, noise_std=sigma).sample(2000, generator(seed, "validation tasks"), torch.float64)
        for seed, sigma in enumerate((0.1, 2.0))
    ]

    def losses(fit):
        return torch.cat([(fit(batch) - batch.teacher).square().sum((-1, -2)) for batch in batches])

    best = losses(lambda batch: noise_mixture_weights(batch, (0.1, 2.0)))
    for penalty in (0.01, 0.1, 0.3, 1.0, 2.0, 4.0):
        excess = losses(lambda batch, penalty=penalty: ridge_regression_weights(batch, penalty)) - best
        assert excess.mean() > 4 * excess.std() / 4000**0.5


def test_bad_arguments_are_refused_by_name(refused, draw_batch):
    batch = draw_batch()
    refused(lambda: posterior_mean_weights(batch, -0.1), ValueError, "noise_std: expected a number >= 0")
    refused(lambda: posterior_mean_weights(batch, 0.1, 0.0), ValueError, "teacher_scale: expected a number > 0")
    refused(lambda: noise_posterior(batch, [0.1, 0.0]), ValueError, "noise_stds[1]: expected a number > 0")
    refused(lambda: noise_posterior(batch, []), ValueError, "noise_stds: expected at least one number")
    refused(lambda: noise_posterior(batch, [0.1, 1.0], [1.0]), ValueError, "prior: expected 2 numbers")
