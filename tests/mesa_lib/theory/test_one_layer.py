"""Closed forms of one step (science.md 3a, halved) as numbers; as expectations they are tested in tests/laws."""

from dataclasses import fields, replace
from fractions import Fraction

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    LinearTasks,
    effective_examples,
    gd_construction,
    optimal_eta,
    optimal_loss,
    optimal_preconditioner,
    plateau_loss,
    population_loss,
    random_weights,
    twin_share,
    zero_loss,
)

UNIFORM, NORMAL = LinearTasks(), LinearTasks(inputs="normal")
NOISY = {"noise_std": 0.5}


@pytest.mark.parametrize(
    ("tasks", "eta", "loss"),
    [
        (UNIFORM, Fraction(50, 33), Fraction(5, 3) * Fraction(49, 99)),
        (NORMAL, Fraction(10, 21), Fraction(110, 21) / 2),
        (replace(UNIFORM, input_range=0.5), Fraction(200, 33), Fraction(5, 12) * Fraction(49, 99)),
        # s = sigma^2 / m2 = 3/4 and 1/4
        (replace(UNIFORM, **NOISY), 30 / (Fraction(99, 5) + Fraction(3, 4)), Fraction(1711273, 2_000_000)),
        (replace(NORMAL, **NOISY), Fraction(40, 85), Fraction(5294118, 2_000_000)),
    ],
)
def test_the_best_step_and_its_loss_are_the_books_numbers(tasks, eta, loss):
    rounding = 1e-15 if tasks.noise_std == 0 else 1e-6  # the losses with noise are given to six digits
    assert optimal_eta(tasks) == pytest.approx(float(eta), rel=1e-14)
    assert optimal_loss(tasks) == pytest.approx(float(loss), rel=rounding)


def test_the_plateau_of_the_papers_setting_is_its_published_value():
    """0.39562: half-MSE, x ~ U(-1/2, 1/2), d = N = 10 (science.md, finding 7)."""
    assert plateau_loss(replace(UNIFORM, input_range=0.5)) == pytest.approx(0.39562, abs=5e-6)


def test_the_released_codes_setting_explains_the_papers_desired_loss():
    assert optimal_loss(replace(UNIFORM, input_range=0.5)) == pytest.approx(0.20623, abs=5e-6)


def test_effective_examples_count_dimensions_kurtosis_and_noise():
    assert effective_examples(UNIFORM) == pytest.approx(10 + 10 - 2 + 9 / 5, rel=1e-14)
    noisy = LinearTasks(4, 2, 7, inputs="normal", input_range=0.5, teacher_scale=2.0, noise_std=1.5)
    assert effective_examples(noisy) == pytest.approx(7 + 4 - 2 + 3 + 1.5**2 / (0.25 * 4), rel=1e-14)


def test_predicting_zero_loses_half_the_targets_variance(seeded):
    tasks = LinearTasks(4, 3, 2, teacher_scale=1.7, input_range=0.6)
    assert zero_loss(tasks) == pytest.approx(0.5 * 4 * 3 * 0.12 * 1.7**2, rel=1e-14)
    error = 0.5 * tasks.sample(40_000, seeded, dtype=torch.float64).query_y.square().sum((-1, -2))
    assert float(error.mean()) == pytest.approx(zero_loss(tasks), abs=4 * float(error.std()) / 200)
    assert float(population_loss(tasks, 0.0)) == zero_loss(tasks)


@pytest.mark.parametrize("dim", [2, 5, 12])
@pytest.mark.parametrize("num_context", [1, 4, 30])
def test_for_normal_inputs_the_relative_loss_depends_on_the_sizes_only(dim, num_context):
    """The Wishart case: L*/L0 = (d + 1)/(N + d + 1) whatever the scale of inputs and teacher and the targets."""
    for scale, teacher, y_dim in [(1.0, 1.0, 1), (0.1, 3.0, 2), (7.0, 0.2, 3)]:
        tasks = LinearTasks(dim, y_dim, num_context, 1, scale, "normal", teacher)
        relative = optimal_loss(tasks) / zero_loss(tasks)
        assert relative == pytest.approx((dim + 1) / (num_context + dim + 1), rel=1e-13)


def test_scaling_the_inputs_scales_the_step_and_leaves_the_relative_loss():
    wide = replace(UNIFORM, input_range=3.0)
    assert optimal_eta(wide) == pytest.approx(optimal_eta(UNIFORM) / 9, rel=1e-14)
    assert optimal_loss(wide) / zero_loss(wide) == pytest.approx(49 / 99, rel=1e-14)


def test_half_and_one_and_a_half_of_the_best_step_lose_equally():
    """The loss is a parabola in eta: 2.0707 in MSE at both (science.md 3a)."""
    for factor in (0.5, 1.5):
        assert float(population_loss(UNIFORM, factor * optimal_eta(UNIFORM))) == pytest.approx(2.0707 / 2, abs=5e-5)
        assert float(population_loss(NORMAL, factor * optimal_eta(NORMAL))) == pytest.approx(6.4286 / 2, abs=5e-5)


@pytest.mark.parametrize("tasks", [UNIFORM, replace(NORMAL, y_dim=3, noise_std=0.4)])
def test_the_loss_of_the_construction_is_that_of_its_step(tasks):
    for eta in (0.3, optimal_eta(tasks), 2.0):
        weights = gd_construction(eta, 10, tasks.y_dim, 10, dtype=torch.float64)
        assert float(population_loss(tasks, weights)) == pytest.approx(float(population_loss(tasks, eta)), rel=1e-13)
    assert float(population_loss(tasks, optimal_eta(tasks))) == pytest.approx(optimal_loss(tasks), rel=1e-13)


def test_each_member_of_an_ensemble_is_judged_alone_and_in_double_precision():
    weights = random_weights(10, 1, [3, 1], num_heads=2, scale=0.3)
    losses = population_loss(UNIFORM, weights)
    assert losses.dtype == torch.float64
    for k, seed in enumerate([3, 1]):
        alone = population_loss(UNIFORM, random_weights(10, 1, [seed], num_heads=2, scale=0.3))
        torch.testing.assert_close(losses[k], alone[0], rtol=1e-13, atol=0)


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (float("nan"), ValueError, "step: expected a finite number, got nan"),
        ("0.5", TypeError, "step: expected a finite number, got '0.5' of type str"),
        (random_weights(9, 1, [0]), ValueError, "step: expected weights of token size x_dim + y_dim = 11, got 10"),
    ],
)
def test_a_step_that_cannot_be_judged_is_refused(step, error, message, refused):
    refused(lambda: population_loss(UNIFORM, step), error, message)


def with_products(b, c):
    """One head with W_PV = b and W_KQ = c."""
    identity = torch.eye(len(b), dtype=torch.float64)[None]
    return AttentionWeights(identity, c[None], identity, b[None])


def test_the_construction_has_no_twin_share_and_its_twin_has_nothing_else(draw):
    assert twin_share(gd_construction(0.7, 10, 1, 10)) == 0.0
    u, b, c = draw(10), torch.zeros(11, 11, dtype=torch.float64), torch.zeros(11, 11, dtype=torch.float64)
    b[10, :10], c[10, :10] = -0.3 * u, 0.5 * u
    assert twin_share(with_products(b, c)) == 1.0


def test_the_twin_share_compares_the_two_paths_covariance_with_the_teacher(draw):
    """V = -(b_y U c_x + b_x U^T c_y) with U = sum_i y_i x_i^T; E U is proportional to W, so for random W the signal
    of a path is E <V, W>, an average here over the basis of all W."""
    weights = AttentionWeights(draw(2, 5, 5), draw(2, 5, 5), draw(2, 5, 5), draw(2, 5, 5))
    signal = torch.zeros(2, dtype=torch.float64)
    for w in torch.eye(6, dtype=torch.float64).view(6, 2, 3):
        for h in range(2):
            b, c = weights.w_pv[h, 3:], weights.w_kq[h, :, :3]
            signal[0] += ((b[:, 3:] @ w @ c[:3]) * w).sum()
            signal[1] += ((b[:, :3] @ w.T @ c[3:]) * w).sum()
    expected = signal[1].abs() / signal.abs().sum()
    torch.testing.assert_close(twin_share(weights, y_dim=2), expected, rtol=1e-12, atol=0)


def test_a_twin_share_that_does_not_exist_is_refused(refused):
    weights = random_weights(3, 1, [0])
    message = "y_dim: expected less than the token's 4 numbers, got 4"
    refused(lambda: twin_share(weights, 4), ValueError, message)
    refused(lambda: twin_share(weights, 0), ValueError, "y_dim: expected a positive integer, got 0")
    silent = AttentionWeights(*(torch.zeros_like(getattr(weights, f.name)) for f in fields(weights)))
    message = "weights: expected a layer whose prediction depends on the targets, got one without any signal"
    refused(lambda: twin_share(silent), ValueError, message)


# Tasks that are less plain.

SHAPE = torch.tensor([[1.5, -0.6, 0.1], [-0.6, 0.5, 0.0], [0.1, 0.0, 0.8]], dtype=torch.float64)
SHAPED = LinearTasks(3, 1, 7, 1, 0.9, "normal", 1.3, 0.4, SHAPE)
MEAN = torch.tensor([[0.7, -1.1, 0.4]], dtype=torch.float64)


@pytest.mark.parametrize(("inputs", "count"), [("rademacher", 19), ("uniform", 19.8), ("normal", 21), ("laplace", 24)])
def test_heavier_tails_cost_examples_and_shorten_the_step(inputs, count):
    tasks = LinearTasks(inputs=inputs, input_range=0.6)
    assert effective_examples(tasks) == pytest.approx(count, rel=1e-13)
    assert optimal_eta(tasks) * tasks.second_moment == pytest.approx(10 / count, rel=1e-13)
    assert optimal_loss(tasks) / zero_loss(tasks) == pytest.approx(1 - 10 / count, rel=1e-13)
    gamma = optimal_preconditioner(tasks)
    torch.testing.assert_close(gamma, optimal_eta(tasks) * torch.eye(10, dtype=torch.float64), rtol=1e-12, atol=1e-14)


def test_for_normal_inputs_the_best_matrix_is_that_of_ahn_and_of_zhang():
    """[((N+1)/N) C + ((tr C + sigma^2/tau^2)/N) I]^-1, and L* = 1/2 tau^2 (tr C - tr(C^2 Gamma*))."""
    c = 0.81 * SHAPE
    inverse = 8 / 7 * c + (c.trace() + 0.4**2 / 1.3**2) / 7 * torch.eye(3, dtype=torch.float64)
    gamma = optimal_preconditioner(SHAPED)
    torch.testing.assert_close(gamma, torch.linalg.inv(inverse), rtol=1e-12, atol=0)
    least = 0.5 * 1.3**2 * (c.trace() - (c @ c @ gamma).trace())
    torch.testing.assert_close(population_loss(SHAPED, gamma), least, rtol=1e-12, atol=0)


@pytest.mark.parametrize("inputs", ["uniform", "laplace", "rademacher"])
def test_the_best_matrix_is_the_inverse_of_a_sampled_second_moment(inputs, seeded):
    """Gamma* = E[A^2 + (sigma/tau)^2 A/N]^-1 C: 40 blocks of 5,000 contexts, within 4 standard errors below 2 %."""
    tasks = replace(SHAPED, inputs=inputs)
    blocks = []
    for _ in range(40):
        x = tasks.sample(5000, seeded, dtype=torch.float64).context_x
        a = x.mT @ x / 7
        blocks.append((a @ a + 0.4**2 / 1.3**2 / 7 * a).mean(0))
    exact = tasks.query_moment @ torch.linalg.inv(optimal_preconditioner(tasks))  # E[A^2 + ...]
    sampled = torch.stack(blocks)
    error = sampled.std(0) / 40**0.5
    assert ((sampled.mean(0) - exact.mT).abs() < 4 * error).all()
    assert float(error.norm() / exact.norm()) < 0.02


@pytest.mark.parametrize("y_dim", [1, 2])
@pytest.mark.parametrize("mean", [None, MEAN])
@pytest.mark.parametrize("inputs", ["uniform", "normal", "laplace", "rademacher"])
def test_the_best_matrix_and_the_best_step_are_where_autograds_gradient_vanishes(inputs, mean, y_dim):
    tasks = replace(SHAPED, inputs=inputs, y_dim=y_dim, teacher_mean=None if mean is None else mean.expand(y_dim, 3))
    gamma = optimal_preconditioner(tasks).requires_grad_()
    loss = population_loss(tasks, gamma)
    (gradient,) = torch.autograd.grad(loss, gamma)
    assert float(gradient.abs().max()) < 1e-13
    eta = optimal_eta(tasks)
    scalar = torch.tensor(eta, dtype=torch.float64, requires_grad=True)
    step = population_loss(tasks, scalar * torch.eye(3, dtype=torch.float64))
    (slope,) = torch.autograd.grad(step, scalar)
    assert abs(float(slope)) < 1e-13
    assert float(step.detach()) == pytest.approx(optimal_loss(tasks), rel=1e-12)
    assert float(loss.detach()) < 0.97 * optimal_loss(tasks)
    assert optimal_loss(tasks) < min(float(population_loss(tasks, part * eta)) for part in (0.9, 1.1))


def test_a_mean_of_the_teachers_counts_as_more_scale_for_a_plain_step_from_zero():
    """For independent coordinates tau^2 becomes tau^2 + |mean|^2 / d."""
    tasks = LinearTasks(3, 1, 7, inputs="laplace", teacher_scale=1.3, noise_std=0.4)
    larger = replace(tasks, teacher_scale=(1.3**2 + float(MEAN.square().sum()) / 3) ** 0.5)
    moved = replace(tasks, teacher_mean=MEAN)
    for value in (zero_loss, effective_examples, optimal_eta, optimal_loss):
        assert value(moved) == pytest.approx(value(larger), rel=1e-13)


@pytest.mark.parametrize("tasks", [SHAPED, replace(SHAPED, inputs="laplace", input_covariance=None)])
def test_from_the_mean_everything_is_as_if_there_were_none(tasks):
    moved = replace(tasks, teacher_mean=MEAN)
    for step in (0.7, optimal_preconditioner(tasks)):
        torch.testing.assert_close(population_loss(moved, step, MEAN), population_loss(tasks, step), rtol=1e-13, atol=0)
    construction = gd_construction(0.7, 3, 1, 7, MEAN)
    got = population_loss(moved, construction, MEAN)
    torch.testing.assert_close(got, population_loss(tasks, 0.7), rtol=1e-12, atol=0)
    assert population_loss(moved, construction) > 1.2 * got  # the slot (x, 0) misses W_0 x_q


def test_predicting_zero_loses_what_the_targets_hold_with_a_shape_and_a_mean(seeded):
    tasks = replace(SHAPED, y_dim=2, inputs="laplace", teacher_mean=[[0.7, -1.1, 0.4], [0.0, 2.0, 1.0]])
    error = 0.5 * tasks.sample(100_000, seeded, dtype=torch.float64).query_y.square().sum((-1, -2))
    assert float(error.mean()) == pytest.approx(zero_loss(tasks), abs=4 * float(error.std()) / 100_000**0.5)
    assert float(population_loss(tasks, 0.0)) == pytest.approx(zero_loss(tasks), rel=1e-14)


@pytest.mark.parametrize(("inputs", "kappa"), [("rademacher", 1), ("uniform", 1.8), ("normal", 3), ("laplace", 6)])
@pytest.mark.parametrize("noise_std", [0.0, 1.0])
def test_a_step_held_fixed_ends_on_a_floor_however_long_the_test(inputs, kappa, noise_std):
    """((d - 2 + kappa + s)/(N + d - 2 + kappa + s))^2; for normal inputs ((d + 1)/(N + d + 1))^2."""
    tasks = LinearTasks(inputs=inputs, noise_std=noise_std)
    blur = 8 + kappa + noise_std**2 / tasks.second_moment
    long = replace(tasks, num_context=10**9)
    relative = float(population_loss(long, optimal_eta(tasks))) / zero_loss(tasks)
    assert relative == pytest.approx((blur / (10 + blur)) ** 2, rel=1e-6)


def test_biases_of_a_layer_that_has_none_change_nothing():
    tasks = replace(SHAPED, inputs="laplace", teacher_mean=MEAN)
    weights = random_weights(3, 1, [0], 2, scale=0.5, dtype=torch.float64)
    places = [0, 1, 2, 4]  # (x, 1, y): the constant gets no weight
    lifted = {f.name: torch.zeros(1, 2, 5, 5, dtype=torch.float64) for f in fields(weights)}
    for name, value in lifted.items():
        value[..., torch.tensor(places)[:, None], torch.tensor(places)] = getattr(weights, name)
    with_constant = population_loss(replace(tasks, constant_input=True), AttentionWeights(**lifted), MEAN / 2)
    torch.testing.assert_close(with_constant, population_loss(tasks, weights, MEAN / 2), rtol=1e-12, atol=0)


CONSTANT = LinearTasks(constant_input=True)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *(
            (lambda value=value: value(CONSTANT), ValueError, "tasks.constant_input: expected False, since a step's")
            for value in (optimal_eta, optimal_loss, effective_examples, optimal_preconditioner, plateau_loss)
        ),
        (lambda: population_loss(CONSTANT, 0.5), ValueError, "tasks.constant_input: expected False"),
        (
            lambda: population_loss(CONSTANT, random_weights(10, 1, [0])),
            ValueError,
            "step: expected weights of token size x_dim + 1 + y_dim = 12, got 11",
        ),
        (
            lambda: plateau_loss(LinearTasks(3, teacher_mean=MEAN)),
            ValueError,
            "tasks.teacher_mean: expected None, since the twin needs a teacher of mean zero, got a matrix",
        ),
        (
            lambda: population_loss(UNIFORM, torch.eye(9)),
            ValueError,
            "step: expected a shape that ends in (10, 10), got (9, 9)",
        ),
        (
            lambda: population_loss(UNIFORM, 0.5, torch.zeros(2, 10)),
            ValueError,
            "w_0: expected a shape that ends in (1, 10), got (2, 10)",
        ),
        (
            lambda: population_loss(UNIFORM, 0.5, torch.zeros(4, 1, 10)),
            ValueError,
            "w_0: expected one matrix (1, 10), got shape (4, 1, 10)",
        ),
    ],
)
def test_what_a_closed_form_does_not_cover_is_refused(call, error, message, refused):
    refused(call, error, message)
