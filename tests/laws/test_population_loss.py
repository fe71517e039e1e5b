"""population_loss is an expectation: exactly, by quadrature, and at the book's sizes by Monte Carlo."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.linalg
import torch

from mesa_lib import (
    AttentionWeights,
    FittedLinearModel,
    FreeTransformer,
    LinearTasks,
    TaskBatch,
    expected_query_loss,
    gd_construction,
    gradient_descent_learner,
    optimal_eta,
    optimal_loss,
    optimal_preconditioner,
    plateau_loss,
    population_loss,
    random_weights,
    zero_loss,
)

DOUBLE = torch.float64


def short(tasks):
    extras = "".join(
        name[0]
        for name in ("input_covariance", "teacher_mean", "constant_input")
        if getattr(tasks, name) not in (None, False)
    )
    return f"{tasks.inputs}-{tasks.x_dim}-{tasks.y_dim}-{tasks.num_context}-{tasks.noise_std}{extras and '-' + extras}"


def start_for(tasks):
    """Some W_0 for these tasks."""
    return torch.linspace(-0.8, 1.3, tasks.y_dim * tasks.x_dim, dtype=DOUBLE).view(tasks.y_dim, tasks.x_dim)


def three_nodes(inputs, scale):
    """Gauss quadrature for one number: exact for polynomials up to degree 5."""
    if inputs == "uniform":
        nodes, weights = np.polynomial.legendre.leggauss(3)
        return scale * nodes, weights / 2
    if inputs == "laplace":  # E x^2 = 1 and E x^4 = 6: nodes 0 and +-sqrt(6), the latter with probability 1/12
        return scale * np.array([-(6**0.5), 0, 6**0.5]), np.array([1 / 12, 5 / 6, 1 / 12])
    if inputs == "rademacher":
        return scale * np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    return scale * nodes, weights / np.sqrt(2 * np.pi)


def every_task(tasks):
    """All combinations of nodes for context inputs, teacher and noise, with their probabilities.

    The implicit weights have degree 2 in each single number, the squared error degree 4; three nodes are exact.
    """
    n, d, k = tasks.num_context, tasks.x_dim, tasks.y_dim
    inputs, teacher = three_nodes(tasks.inputs, tasks.input_range), three_nodes("normal", tasks.teacher_scale)
    axes = [inputs] * (n * d) + [teacher] * (k * d)
    if tasks.noise_std > 0:
        axes += [three_nodes("normal", tasks.noise_std)] * (n * k)
    values = np.stack(np.meshgrid(*(a[0] for a in axes), indexing="ij"), -1).reshape(-1, len(axes))
    probability = np.stack(np.meshgrid(*(a[1] for a in axes), indexing="ij"), -1).reshape(-1, len(axes)).prod(-1)
    x, w, noise = np.split(values, [n * d, n * d + k * d], axis=1)
    x, w = torch.tensor(x).view(-1, n, d), torch.tensor(w).view(-1, k, d)
    if tasks.input_covariance is not None:
        spread = three_nodes(tasks.inputs, tasks.input_range)  # its variance is not 1 for uniform numbers
        sigma = torch.tensor(tasks.input_covariance, dtype=DOUBLE) / float((spread[0] ** 2) @ spread[1])
        root = torch.tensor(scipy.linalg.sqrtm(sigma.numpy()).real) * tasks.input_range
        x = x @ root
    if tasks.teacher_mean is not None:
        w = w + torch.tensor(tasks.teacher_mean, dtype=DOUBLE)
    y = x @ w.mT + (torch.tensor(noise).view(-1, n, k) if tasks.noise_std > 0 else 0)
    if tasks.constant_input:
        x, w = torch.nn.functional.pad(x, (0, 1), value=1.0), torch.nn.functional.pad(w, (0, 1))
    return TaskBatch(x, y, x[:, :1], (x @ w.mT)[:, :1], w), torch.tensor(probability)


def query_second_moment(tasks):
    """E x_q x_q^T, from the nodes of the first context input."""
    batch, probability = every_task(tasks)
    return torch.einsum("t,ti,tj->ij", probability, batch.context_x[:, 0], batch.context_x[:, 0])


def quadrature_loss(tasks, learner):
    """E 1/2 tr((V - W) E[x_q x_q^T] (V - W)^T) over all nodes."""
    batch, probability = every_task(tasks)
    error = learner.implicit_weights(batch) - batch.teacher
    squared = ((error @ query_second_moment(tasks)) * error).sum((-1, -2))
    return 0.5 * (squared * probability).sum(-1)


WIDE = torch.diag(torch.tensor([2.0, 1.0, 0.5, 0.2])) + 0.1
SMALL = [
    LinearTasks(2, 1, 2, 1, 0.9, "uniform", 1.2, 0.6),
    LinearTasks(2, 1, 2, 1, 0.8, "normal", 1.2, 0.6),
    LinearTasks(1, 2, 2, 1, 0.9, "uniform", 1.1, 0.7),
    LinearTasks(1, 2, 2, 1, 0.7, "normal", 0.9, 0.7),
    LinearTasks(2, 2, 2, 1, 0.9, "uniform", 1.2),
    LinearTasks(2, 2, 2, 1, 0.8, "normal", 0.9),
    LinearTasks(2, 2, 1, 1, 0.8, "normal", 0.9, 0.5),
    LinearTasks(3, 1, 2, 1, 1.1, "uniform", 0.8),
    LinearTasks(2, 1, 2, 1, 0.9, "laplace", 1.2, 0.6),
    LinearTasks(2, 1, 3, 1, 0.9, "rademacher", 1.2, 0.6),
    *(
        LinearTasks(2, 1, 2, 1, 0.9, inputs, 1.2, 0.6, [[1.5, -0.6], [-0.6, 0.5]], [[0.7, -1.1]])
        for inputs in ("uniform", "normal", "laplace", "rademacher")
    ),
    LinearTasks(1, 2, 2, 1, 0.9, "laplace", 1.2, 0.6, [[0.4]], [[0.7], [-1.1]]),
    LinearTasks(2, 2, 2, 1, 0.9, "uniform", 1.2, 0.0, [[1.5, -0.6], [-0.6, 0.5]], [[0.7, -1.1], [0.2, 0.4]]),
]


@pytest.mark.parametrize("has_start", [False, True])
@pytest.mark.parametrize("constant_input", [False, True])
@pytest.mark.parametrize("num_heads", [1, 3])
@pytest.mark.parametrize("tasks", SMALL, ids=short)
def test_the_loss_of_any_weights_is_the_expectation_over_all_tasks(tasks, num_heads, constant_input, has_start):
    """Also with a constant input, which is biases, and from a W_0, which the query's slot holds."""
    tasks = replace(tasks, constant_input=constant_input)
    size = tasks.x_dim + int(constant_input)
    weights = random_weights(size, tasks.y_dim, [0, 1], num_heads, scale=0.8, dtype=DOUBLE)
    w_0 = start_for(tasks) if has_start else None
    padded = None if w_0 is None else torch.nn.functional.pad(w_0, (0, int(constant_input)))
    expected = quadrature_loss(tasks, FreeTransformer([weights], padded)).detach()
    torch.testing.assert_close(population_loss(tasks, weights, w_0), expected, rtol=1e-11, atol=0)


@pytest.mark.parametrize("has_start", [False, True])
@pytest.mark.parametrize("tasks", SMALL, ids=short)
@pytest.mark.parametrize("eta", [-0.3, 0.9, 2.5])
def test_the_loss_of_a_step_is_the_expectation_over_all_tasks(tasks, eta, has_start):
    w_0 = start_for(tasks) if has_start else None
    expected = quadrature_loss(tasks, gradient_descent_learner(eta, w_0=w_0))
    torch.testing.assert_close(population_loss(tasks, eta, w_0), expected, rtol=1e-11, atol=0)


def preconditioned_step(batch, gamma):
    """V = (1/N) sum_i y_i x_i^T Gamma, written down once more."""
    return batch.context_y.mT @ batch.context_x @ gamma / batch.num_context


@pytest.mark.parametrize("tasks", SMALL, ids=short)
def test_the_loss_of_a_preconditioned_step_is_the_expectation_over_all_tasks(tasks):
    gamma = torch.linspace(-0.5, 1.4, tasks.x_dim**2, dtype=DOUBLE).view(tasks.x_dim, tasks.x_dim)
    expected = quadrature_loss(tasks, FittedLinearModel(partial(preconditioned_step, gamma=gamma)))
    torch.testing.assert_close(population_loss(tasks, gamma), expected, rtol=1e-11, atol=0)


def mean_and_standard_error(tasks, learner, stream, num_blocks=40, block=2500):
    """Expected half-MSE by Monte Carlo over contexts and teachers, members apart."""
    blocks = torch.stack(
        [
            expected_query_loss(learner, tasks.sample(block, stream, dtype=DOUBLE), tasks).detach()
            for _ in range(num_blocks)
        ]
    )
    return blocks.mean(0), blocks.std(0) / num_blocks**0.5


@pytest.mark.parametrize(
    "tasks",
    [
        LinearTasks(10, 1, 10),
        LinearTasks(5, 2, 8, 1, 0.9, "normal", 0.8, 0.5),
        LinearTasks(4, 2, 6, 1, 1.2, "uniform", 1.1, 0.4),
        LinearTasks(4, 1, 7, 1, 0.9, "normal"),
        LinearTasks(4, 2, 6, 1, 0.8, "laplace", 0.9, 0.4, WIDE, torch.linspace(-1, 1, 8).view(2, 4)),
        LinearTasks(4, 1, 6, 1, 0.8, "rademacher", 0.9, 0.4, WIDE, torch.linspace(-1, 1, 4).view(1, 4), True),
    ],
    ids=short,
)
def test_the_loss_of_multi_head_weights_is_the_mean_over_sampled_tasks(tasks, seeded):
    """100,000 tasks; within 4 standard errors, which are below 1.5 % of the loss."""
    size = tasks.x_dim + int(tasks.constant_input)
    weights = random_weights(size, tasks.y_dim, [0, 1], num_heads=2, scale=0.25, dtype=DOUBLE)
    mean, error = mean_and_standard_error(tasks, FreeTransformer([weights]), seeded)
    exact = population_loss(tasks, weights)
    assert bool(((mean - exact).abs() < 4 * error).all())
    assert bool((error < 0.015 * exact).all())


@pytest.mark.parametrize("tasks", [LinearTasks(noise_std=0.5), LinearTasks(inputs="normal", noise_std=0.5)], ids=short)
def test_the_least_loss_of_a_step_is_the_mean_over_sampled_tasks(tasks, seeded):
    mean, error = mean_and_standard_error(tasks, gradient_descent_learner(optimal_eta(tasks)), seeded)
    assert abs(float(mean) - optimal_loss(tasks)) < 4 * float(error)
    assert float(error) < 0.003 * optimal_loss(tasks)


@pytest.mark.parametrize("inputs", ["uniform", "normal", "laplace", "rademacher"])
@pytest.mark.parametrize("length", [1, 5, 10, 20, 40, 1000])
def test_weights_frozen_at_n_and_tested_at_m_follow_the_closed_form(inputs, length):
    """science.md 3a: L/L0 = 1 - 2c + c^2 (kappa + M + d - 2)/M with c = eta* m2 M/N; .50 at M = 2N, 2.04 at 4N."""
    tasks = LinearTasks(inputs=inputs, input_range=0.7)
    frozen = gd_construction(optimal_eta(tasks), 10, 1, 10, dtype=DOUBLE)
    tested = replace(tasks, num_context=length)
    c = optimal_eta(tasks) * tasks.second_moment * length / 10
    kappa = {"uniform": 9 / 5, "normal": 3.0, "laplace": 6.0, "rademacher": 1.0}[inputs]
    relative = 1 - 2 * c + c**2 * (kappa + length + 8) / length
    assert float(population_loss(tested, frozen)) / zero_loss(tested) == pytest.approx(relative, rel=1e-12)
    if inputs == "uniform":
        assert relative == pytest.approx({20: 0.50, 40: 2.04}.get(length, relative), abs=0.01)


def test_frozen_weights_at_another_length_are_the_mean_over_sampled_tasks(seeded):
    tasks = LinearTasks(4, 1, 5)
    frozen = gd_construction(optimal_eta(tasks), 4, 1, 5, dtype=DOUBLE)
    tested = replace(tasks, num_context=15)
    mean, error = mean_and_standard_error(tested, FreeTransformer([frozen]), seeded)
    assert abs(float(mean) - float(population_loss(tested, frozen))) < 4 * float(error)


def minimised(tasks, blocks, seed):
    """The least population_loss over weights of one head whose blocks of W_PV and W_KQ, where listed, are free."""
    size = tasks.x_dim + tasks.y_dim
    stream = torch.Generator().manual_seed(seed)
    masks = torch.zeros(2, size, size, dtype=DOUBLE)
    for product_index, rows, columns in blocks:
        masks[product_index, rows, columns] = 1
    free = (0.3 * torch.randn(2, size, size, generator=stream, dtype=DOUBLE)).requires_grad_()
    identity = torch.eye(size, dtype=DOUBLE)[None]
    optimizer = torch.optim.LBFGS(
        [free], max_iter=120, tolerance_grad=1e-9, tolerance_change=1e-13, line_search_fn="strong_wolfe"
    )

    def loss():
        w_pv, w_kq = free * masks
        return population_loss(tasks, AttentionWeights(identity, w_kq[None], identity, w_pv[None]))

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    return loss().item()


FAMILIES = [
    LinearTasks(5, 1, 4),
    LinearTasks(4, 1, 6, inputs="normal", noise_std=0.5),
    LinearTasks(3, 2, 5, teacher_scale=1.5, noise_std=0.2),
    LinearTasks(3, 1, 5, 1, 0.9, "laplace", 1.1, 0.3, [[1.5, -0.6, 0.1], [-0.6, 0.5, 0.0], [0.1, 0.0, 0.8]]),
    LinearTasks(3, 2, 4, 1, 0.9, "uniform", 1.1, 0.3, [[1.5, -0.6, 0.1], [-0.6, 0.5, 0.0], [0.1, 0.0, 0.8]]),
]


@pytest.mark.parametrize("tasks", FAMILIES, ids=short)
def test_the_plateau_is_the_least_loss_of_the_twin_family(tasks):
    """Only W_PV's y-x block and W_KQ's y-x block are free: y enters by the keys, x by the values."""
    d = tasks.x_dim
    twin = [(0, slice(d, None), slice(0, d)), (1, slice(d, None), slice(0, d))]
    least = min(minimised(tasks, twin, seed) for seed in range(3))
    assert least == pytest.approx(plateau_loss(tasks), rel=1e-9)


@pytest.mark.parametrize("tasks", FAMILIES, ids=short)
def test_the_best_preconditioned_step_is_the_least_loss_of_all_single_heads(tasks):
    d = tasks.x_dim
    everything = [(0, slice(d, None), slice(None)), (1, slice(None), slice(0, d))]
    least = [minimised(tasks, everything, seed) for seed in range(3)]
    optimum = float(population_loss(tasks, optimal_preconditioner(tasks)))
    assert min(least) == pytest.approx(optimum, rel=1e-7)
    assert min(least) > optimum * (1 - 1e-12)
    assert tasks.input_covariance is not None or optimum == pytest.approx(optimal_loss(tasks), rel=1e-12)


def test_quadrature_nodes_have_the_moments_of_their_distribution():
    for inputs, moments in [
        ("uniform", (1, 0, 1 / 3, 0, 1 / 5)),
        ("normal", (1, 0, 1, 0, 3)),
        ("laplace", (1, 0, 1, 0, 6)),
        ("rademacher", (1, 0, 1, 0, 1)),
    ]:
        nodes, weights = three_nodes(inputs, 1.0)
        for power, moment in enumerate(moments):
            assert (weights * nodes**power).sum() == pytest.approx(moment, abs=1e-14)
