"""The gradient step on centred inputs, against autograd with an intercept and loops; and the kernel smoother."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    LinearTasks,
    centred_gradient_descent,
    centred_gradient_descent_weights,
    exponential_kernel,
    gradient_descent_weights,
    kernel_smoother,
)

TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def test_it_is_a_step_of_a_linear_model_whose_intercept_is_already_best(draw_batch):
    batch = draw_batch()
    w = torch.zeros(4, 2, 3, dtype=torch.float64, requires_grad=True)
    intercept = batch.context_y.mean(1, keepdim=True)
    loss = (batch.context_x @ w.mT + intercept - batch.context_y).square().sum() / (2 * batch.num_context)
    (slope,) = torch.autograd.grad(loss, w)
    torch.testing.assert_close(centred_gradient_descent_weights(batch, 0.7), -0.7 * slope, **TIGHT)


@pytest.mark.parametrize("centring", [0.0, 0.4, 1.0, 1.5])
def test_it_takes_the_stated_share_of_the_mean_from_every_input(centring, draw_batch):
    batch = draw_batch()
    expected = torch.zeros(4, 2, 3, dtype=torch.float64)
    for task in range(4):
        mean = sum(batch.context_x[task]) / 5
        for x, y in zip(batch.context_x[task], batch.context_y[task], strict=True):
            expected[task] += 0.7 / 5 * torch.outer(y, x - centring * mean)
    got = centred_gradient_descent_weights(batch, 0.7, centring)
    torch.testing.assert_close(got, expected, **TIGHT)
    answers = torch.einsum("tyx,tqx->tqy", expected, batch.query_x)
    torch.testing.assert_close(centred_gradient_descent(batch, 0.7, centring), answers, **TIGHT)
    if centring == 0:
        torch.testing.assert_close(got, gradient_descent_weights(batch, 0.7), **TIGHT)


def test_numbers_that_are_not_finite_are_refused(draw_batch, refused):
    batch = draw_batch()
    refused(lambda: centred_gradient_descent(batch, float("nan")), ValueError, "eta: expected a finite number, got nan")
    message = "centring: expected a finite number, got inf"
    refused(lambda: centred_gradient_descent_weights(batch, 1.0, float("inf")), ValueError, message)


# The kernel smoother


def smoothed_with_loops(batch, kernel):
    """sum_i k(x_i, x_q) y_i / sum_j k(x_j, x_q), one query at a time."""
    predictions = torch.zeros_like(batch.query_y)
    for task in range(batch.num_tasks):
        for query in range(batch.num_queries):
            weights = [kernel(x, batch.query_x[task, query]) for x in batch.context_x[task]]
            products = [w * y for w, y in zip(weights, batch.context_y[task], strict=True)]
            predictions[task, query] = sum(products) / sum(weights)
    return predictions


@pytest.mark.parametrize("beta", [0.0, 0.8, -2.0])
def test_the_smoother_weighs_targets_by_the_kernel(beta, draw_batch):
    batch = draw_batch()
    expected = smoothed_with_loops(batch, lambda a, b: torch.exp(beta * torch.dot(a, b)))
    torch.testing.assert_close(kernel_smoother(batch, exponential_kernel(beta)), expected, **TIGHT)


def test_the_smoother_takes_any_kernel(draw_batch):
    batch = draw_batch()
    expected = smoothed_with_loops(batch, lambda a, b: torch.exp(-(a - b).square().sum()))
    got = kernel_smoother(batch, lambda a, b: torch.exp(-torch.cdist(a, b).square()))
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-11)


@given(seed=st.integers(0, 10_000), beta=st.floats(-30, 30))
def test_a_smoother_never_leaves_the_range_of_its_targets(seed, beta):
    stream = torch.Generator().manual_seed(seed)
    batch = LinearTasks(3, 1, 4, 3, noise_std=0.5).sample(3, stream, dtype=torch.float64)
    prediction = kernel_smoother(batch, exponential_kernel(beta))
    assert (prediction <= batch.context_y.amax(1, keepdim=True) + 1e-12).all()
    assert (prediction >= batch.context_y.amin(1, keepdim=True) - 1e-12).all()


def test_kernels_that_cannot_be_divided_by_are_refused(draw_batch, refused):
    batch = draw_batch()
    message = "kernel: expected a finite sum over every context, other than zero, got one that is not"
    for kernel in (exponential_kernel(1e5), lambda a, b: 0 * a @ b.mT):
        refused(lambda kernel=kernel: kernel_smoother(batch, kernel), ValueError, message)
    wrong = "kernel: expected a matrix of shape (5, 2) for the queries, got (4, 2, 5)"
    refused(lambda: kernel_smoother(batch, lambda a, b: b @ a.mT), ValueError, wrong)
    refused(lambda: exponential_kernel(float("nan")), ValueError, "beta: expected a finite number, got nan")
