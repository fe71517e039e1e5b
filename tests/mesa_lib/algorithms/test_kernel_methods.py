"""Kernel descent and regression against methods that know nothing of kernels, and the baseline of learned features."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    LinearTasks,
    MetaLearnedMLP,
    TaskBatch,
    context_loss,
    exponential_kernel,
    feature_batch,
    feature_kernel,
    gradient_descent,
    kernel_gradient_descent,
    kernel_regression,
    least_squares,
    linear_kernel,
    prefix_ridge_regression_weights,
    random_mlp,
    ridge_regression,
    ridge_regression_weights,
)

DOUBLE = torch.float64
sizes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(0, 2**31))


def cook(recipe):
    x_dim, y_dim, num_context, seed = recipe
    tasks = LinearTasks(x_dim, y_dim, num_context, 3, noise_std=0.3)
    return tasks.sample(2, torch.Generator().manual_seed(seed), dtype=DOUBLE)


def features(x_dim, width=4):
    return random_mlp(x_dim, width, [1], hidden=(5,), dtype=DOUBLE).member(0)


def close(got, expected, atol=1e-11):
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=atol)


@given(recipe=sizes, steps=st.integers(1, 4))
def test_with_the_linear_kernel_descent_is_plain_gradient_descent(recipe, steps):
    batch = cook(recipe)
    close(kernel_gradient_descent(batch, linear_kernel, 0.4, steps), gradient_descent(batch, 0.4, steps))


@given(recipe=sizes, steps=st.integers(1, 4))
def test_with_a_feature_kernel_it_is_gradient_descent_on_the_features_from_any_start(recipe, steps):
    batch = cook(recipe)
    m = features(batch.x_dim)
    w_0 = torch.linspace(-1, 1, 4 * batch.y_dim, dtype=DOUBLE).view(batch.y_dim, 4)
    ours = kernel_gradient_descent(batch, feature_kernel(m), 0.4, steps, start=lambda x: m(x) @ w_0.mT)
    close(ours.detach(), gradient_descent(feature_batch(m, batch), 0.4, steps, w_0=w_0).detach())


@given(recipe=sizes)
def test_without_penalty_and_with_a_cutoff_regression_is_least_squares_on_the_features(recipe):
    batch = cook(recipe)
    seen = feature_batch(m := features(batch.x_dim), batch)
    ours = kernel_regression(batch, feature_kernel(m), relative_cutoff=1e-10)
    fitted = torch.linalg.lstsq(seen.context_x.detach(), batch.context_y, driver="gelsd").solution
    close(ours.detach(), seen.query_x.detach() @ fitted, atol=1e-6)


@given(recipe=sizes)
def test_with_a_penalty_and_the_linear_kernel_it_is_ridge_regression(recipe):
    batch = cook(recipe)
    close(kernel_regression(batch, linear_kernel, penalty=0.3), ridge_regression(batch, 0.3))


def test_an_invertible_kernel_passes_through_every_example(draw_batch):
    batch = draw_batch(x_dim=3, num_context=5)
    at_examples = replace(batch, query_x=batch.context_x, query_y=batch.context_y)
    close(kernel_regression(at_examples, exponential_kernel(1.0)), batch.context_y, atol=1e-9)


def test_descent_ends_where_regression_stands(draw_batch):
    batch = draw_batch(x_dim=3, num_context=5)
    kernel = exponential_kernel(1.0)
    largest = float(torch.linalg.eigvalsh(kernel(batch.context_x, batch.context_x)).max()) / 5
    ended = kernel_gradient_descent(batch, kernel, 1.9 / largest, 10_000)
    close(ended, kernel_regression(batch, kernel), atol=1e-7)


def test_a_kernel_that_is_not_symmetric_is_taken_from_example_to_reader(draw_batch, draw):
    """By hand, for one step: f(x_q) = eta/N sum_i y_i k(x_i, x_q), and the residuals of the next with k(x_i, x_j)."""
    batch, metric = draw_batch(x_dim=3, y_dim=1), draw(3, 3)
    kernel = feature_kernel(lambda x: x, metric)
    across = torch.einsum("tix,xz,tqz->tiq", batch.context_x, metric, batch.query_x)
    within = torch.einsum("tix,xz,tjz->tij", batch.context_x, metric, batch.context_x)
    first = 0.2 / 5 * torch.einsum("tiy,tiq->tqy", batch.context_y, across)
    close(kernel_gradient_descent(batch, kernel, 0.2), first)
    rest = batch.context_y - 0.2 / 5 * torch.einsum("tiy,tij->tjy", batch.context_y, within)
    close(kernel_gradient_descent(batch, kernel, 0.2, 2), first + 0.2 / 5 * torch.einsum("tiy,tiq->tqy", rest, across))


@given(recipe=sizes, steps=st.integers(1, 3))
def test_the_baseline_takes_autograds_steps_on_its_last_layer(recipe, steps):
    batch = cook(recipe)
    m = features(batch.x_dim)
    seen = feature_batch(m, batch)
    w_0 = torch.linspace(-1, 1, 4 * batch.y_dim, dtype=DOUBLE).view(batch.y_dim, 4)
    weights = w_0.expand(batch.num_tasks, -1, -1)
    for _ in range(steps):
        weights = weights.detach().requires_grad_()
        (slope,) = torch.autograd.grad(context_loss(weights, seen).sum(), weights, retain_graph=True)
        weights = weights - 0.3 * slope
    learner = MetaLearnedMLP(m, w_0, 0.3, steps)
    close(learner.feature_weights(batch).detach(), weights.detach())
    close(learner(batch).detach(), (seen.query_x @ weights.mT).detach())


def test_an_ensemble_of_baselines_is_member_by_member(draw_batch, draw):
    batch = draw_batch(x_dim=2, y_dim=2)
    m = random_mlp(2, 4, [0, 5], hidden=(5,), dtype=DOUBLE)
    learner = MetaLearnedMLP(m, draw(2, 2, 4), torch.tensor([0.2, 0.7], dtype=DOUBLE), 2)
    close(learner(batch)[1], learner.member(1)(batch))
    close(learner.start_function(batch.query_x)[0], learner.member(0).start_function(batch.query_x))
    stacked = TaskBatch.stack([batch, draw_batch(x_dim=2, y_dim=2)])
    close(learner(stacked)[0], learner.member(0)(batch))


def test_the_baseline_starts_at_zero_and_keeps_its_step_size_positive():
    learner = MetaLearnedMLP(random_mlp(2, 4, [0, 5]), eta=0.7)
    assert learner.start.shape == (2, 1, 4) and bool((learner.start == 0).all())
    torch.testing.assert_close(learner.eta, torch.tensor([0.7, 0.7]))
    with torch.no_grad():
        learner.log_eta -= 100
    assert bool((learner.eta > 0).all())


@given(recipe=sizes)
def test_prefix_fits_are_ridge_regressions_on_every_prefix(recipe):
    batch = cook(recipe)
    weights = prefix_ridge_regression_weights(batch, 0.3)
    for count in range(1, batch.num_context + 1):
        close(weights[:, count - 1], ridge_regression_weights(batch.first(count), 0.3), atol=1e-9)


def lines(num_context=4):
    return LinearTasks(2, 1, num_context, 3).sample(2, torch.Generator().manual_seed(0), dtype=DOUBLE)


def mlp(**kwargs):
    return random_mlp(2, 4, [0, 1], **{"dtype": DOUBLE} | kwargs)


REFUSALS = [
    (lambda: kernel_regression(lines(), linear_kernel), ValueError, "kernel: expected an invertible matrix on every"),
    (lambda: kernel_regression(lines(), linear_kernel, penalty=-1.0), ValueError, "penalty: expected a number >= 0"),
    (lambda: kernel_regression(lines(), linear_kernel, 0.1, 1e-6), ValueError, "relative_cutoff: expected None beside"),
    (lambda: kernel_regression(lines(), linear_kernel, relative_cutoff=0.0), ValueError, "relative_cutoff: expected"),
    (lambda: kernel_gradient_descent(lines(), linear_kernel, float("nan")), ValueError, "eta: expected a finite"),
    (lambda: kernel_gradient_descent(lines(), linear_kernel, 0.1, 0), ValueError, "num_steps: expected a positive"),
    (lambda: kernel_gradient_descent(lines(), lambda a, b: a @ a.mT, 0.1), ValueError, "kernel: expected a matrix of"),
    (lambda: kernel_gradient_descent(lines(), linear_kernel, 0.1, start=lambda x: x), ValueError, "start: expected"),
    (lambda: linear_kernel(torch.zeros(3, 2), torch.zeros(3, 1)), ValueError, "b: expected 2 inputs"),
    (lambda: linear_kernel(torch.zeros(3, 2), torch.zeros(3, 2).double()), TypeError, "b: expected dtype"),
    (lambda: feature_kernel(torch.sin, torch.eye(3)[:2]), ValueError, "metric: expected one square matrix"),
    (lambda: feature_kernel(torch.sin, torch.eye(3))(torch.zeros(4, 2), torch.zeros(4, 2)), ValueError,
     "features: expected a width of 3, that of metric, got 2"),
    (lambda: MetaLearnedMLP(mlp(), torch.zeros(2, 1, 3, dtype=DOUBLE)), ValueError, "start: expected a shape"),
    (lambda: MetaLearnedMLP(mlp(), torch.zeros(1, 4, dtype=DOUBLE)), ValueError, "start: expected the ensemble axes"),
    (lambda: MetaLearnedMLP(mlp(), torch.zeros(2, 1, 4)), TypeError, "start: expected dtype torch.float64"),
    (lambda: MetaLearnedMLP(mlp(), eta=0.0), ValueError, "eta: expected a number > 0"),
    (lambda: MetaLearnedMLP(mlp(), eta=torch.zeros(2, dtype=DOUBLE)), ValueError, "eta: expected positive numbers"),
    (lambda: MetaLearnedMLP(mlp(), eta=torch.ones(3, dtype=DOUBLE)), ValueError, "eta: expected the ensemble axes"),
    (lambda: MetaLearnedMLP(mlp(), num_steps=0), ValueError, "num_steps: expected a positive integer"),
    (lambda: prefix_ridge_regression_weights(lines(), 0.0), ValueError, "penalty: expected a number > 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_bad_arguments_are_refused_by_name(call, error, message, refused):
    refused(call, error, message)


def test_a_singular_kernel_is_no_matter_with_a_penalty_or_a_cutoff():
    batch = lines()
    small = kernel_regression(batch, linear_kernel, penalty=1e-10)
    torch.testing.assert_close(small, least_squares(batch), rtol=0, atol=1e-4)
    cut = kernel_regression(batch, linear_kernel, relative_cutoff=1e-10)
    torch.testing.assert_close(cut, least_squares(batch), rtol=0, atol=1e-8)
