"""The best twin and the exact loss around it (science.md 3b, finding 7)."""

import pytest
import torch
from scipy.optimize import approx_fprime

from mesa_lib import (
    AttentionWeights,
    LinearTasks,
    best_twin,
    canonicalize,
    gd_construction,
    optimal_eta,
    plateau_loss,
    population_gradient,
    population_hessian,
    population_loss,
    random_weights,
    rank_one_twin,
    twin_slice,
)

DOUBLE = torch.float64
UNIFORM, NORMAL = LinearTasks(), LinearTasks(inputs="normal")
TINY = LinearTasks(2, 1, 1, inputs="normal")


def axis(d):
    return torch.eye(d, dtype=DOUBLE)[:1]


def from_products(w_pv, w_kq):
    identity = torch.eye(w_pv.shape[-1], dtype=DOUBLE).expand_as(w_pv)
    return AttentionWeights(identity, w_kq, identity, w_pv)


def moved(weights, flat, x_dim):
    """The layer whose visible products are shifted by `flat`: y rows of W_PV first, then x columns of W_KQ."""
    w_pv, w_kq = weights.w_pv.clone(), weights.w_kq.clone()
    cut = w_pv[:, x_dim:].numel()
    w_pv[:, x_dim:] += flat[:cut].view_as(w_pv[:, x_dim:])
    w_kq[..., :x_dim] += flat[cut:].view_as(w_kq[..., :x_dim])
    return from_products(w_pv, w_kq)


@pytest.mark.parametrize(
    "tasks", [UNIFORM, NORMAL, LinearTasks(4, 3, 7, noise_std=0.4, teacher_scale=1.3, input_range=0.6)]
)
def test_the_best_twin_has_the_plateaus_loss_in_every_direction(tasks, draw):
    for direction in draw(5, tasks.y_dim, tasks.x_dim):
        loss = population_loss(tasks, best_twin(tasks, direction))
        assert float(loss) == pytest.approx(plateau_loss(tasks), rel=1e-12)
        gradient = population_gradient(tasks, best_twin(tasks, direction))
        assert float(gradient.abs().max()) < 1e-12


def test_the_best_twin_is_the_exchange_of_the_step_along_its_direction(draw):
    u = draw(1, 10)
    u = u / u.norm()
    w_kq = torch.zeros(1, 11, 11, dtype=DOUBLE)
    w_kq[0, :10, :10] = u.T @ u
    kept = from_products(gd_construction(optimal_eta(UNIFORM), 10, 1, 10, dtype=DOUBLE).w_pv, w_kq)
    exchanged, twin = canonicalize(rank_one_twin(kept), form="norm"), canonicalize(best_twin(UNIFORM, u), form="norm")
    sign = torch.sign((exchanged.w_kq * twin.w_kq).sum())
    torch.testing.assert_close(exchanged.w_kq, sign * twin.w_kq, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(exchanged.w_pv, sign * twin.w_pv, rtol=1e-12, atol=1e-13)
    assert float(population_gradient(UNIFORM, kept).norm()) > 0.1  # the same function, and yet it can go down


@pytest.mark.parametrize("tasks", [LinearTasks(2, 2, 3, noise_std=0.3), LinearTasks(3, 1, 4, inputs="normal")])
def test_derivatives_are_those_of_differences(tasks):
    weights = random_weights(tasks.x_dim, tasks.y_dim, [0], num_heads=2, scale=0.6, dtype=DOUBLE).members(0)
    gradient, hessian = population_gradient(tasks, weights), population_hessian(tasks, weights)
    zero = torch.zeros_like(gradient)

    def loss(flat):
        return float(population_loss(tasks, moved(weights, torch.as_tensor(flat), tasks.x_dim)))

    def slope(flat):
        return population_gradient(tasks, moved(weights, torch.as_tensor(flat), tasks.x_dim)).numpy()

    size = float(gradient.abs().max())
    assert abs(torch.as_tensor(approx_fprime(zero.numpy(), loss, 1e-6)) - gradient).max() < 1e-4 * size
    size = float(hessian.abs().max())
    assert abs(torch.as_tensor(approx_fprime(zero.numpy(), slope, 1e-6)) - hessian).max() < 1e-4 * size
    assert torch.equal(hessian, hessian.mT)


def margin(tasks, u):
    """tr(K^-1 (I - u u^T + e^2 b^2 u u^T)) - e^2 Q: positive exactly where the twin has a way down."""
    d, n = tasks.x_dim, tasks.num_context
    kappa = tasks.fourth_moment / tasks.second_moment**2
    e = n / (n + d - 2 + kappa)
    q = d**2 + d * (kappa - 1) / n + 2 * d / n * (kappa + n + d - 2)
    b = d + (kappa - 1) / n
    identity, along = torch.eye(d, dtype=DOUBLE), torch.outer(u, u)
    k = (identity + (n + 1) * along + (kappa - 3) * torch.diag(u.square())) / n
    return float(torch.trace(torch.linalg.solve(k, identity - along + e**2 * b**2 * along))) - e**2 * q


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("num_context", [1, 2, 3, 8])
def test_the_twin_has_d_flat_directions_and_at_most_one_way_down_as_the_condition_says(inputs, d, num_context, draw):
    tasks = LinearTasks(d, 1, num_context, inputs=inputs)
    for direction in (axis(d), torch.ones(1, d, dtype=DOUBLE), draw(1, d)):
        u = (direction / direction.norm())[0]
        values = torch.linalg.eigvalsh(population_hessian(tasks, best_twin(tasks, direction)))
        assert int((values.abs() < 1e-9).sum()) == d
        assert int((values < -1e-9).sum()) == int(margin(tasks, u) > 0)


@pytest.mark.parametrize(
    ("tasks", "negative"),
    [
        (UNIFORM, 1),
        (NORMAL, 1),
        (LinearTasks(3, 1, 1), 1),
        (TINY, 0),
        (LinearTasks(2, 1, 1), 0),
        (LinearTasks(2, 1, 2), 0),
        (LinearTasks(2, 1, 2, inputs="normal"), 1),
    ],
)
def test_along_an_axis_the_condition_is_the_books(tasks, negative):
    """science.md, finding 7: e^2 (Q - b^2/a)/N < d - 1."""
    d, n = tasks.x_dim, tasks.num_context
    kappa = tasks.fourth_moment / tasks.second_moment**2
    e, a, b = n / (n + d - 2 + kappa), 1 + (kappa - 1) / n, d + (kappa - 1) / n
    q = d**2 + d * (kappa - 1) / n + 2 * d / n * (kappa + n + d - 2)
    assert (e**2 * (q - b**2 / a) / n < d - 1) == bool(negative)
    values = torch.linalg.eigvalsh(population_hessian(tasks, best_twin(tasks, axis(d))))
    counts = [int((values < -1e-9).sum()), int((values.abs() <= 1e-9).sum())]
    assert counts == [negative, d]


def test_for_uniform_inputs_the_smallest_twin_is_a_minimum_along_axes_and_a_saddle_on_diagonals():
    tasks, diagonal = LinearTasks(2, 1, 1), torch.ones(1, 2, dtype=DOUBLE)
    least = [
        float(torch.linalg.eigvalsh(population_hessian(tasks, best_twin(tasks, u)))[0]) for u in (axis(2), diagonal)
    ]
    assert least[0] > -1e-12 and least[1] < -1e-3


def test_no_small_step_leads_down_from_a_true_minimum_and_one_does_from_a_saddle(draw):
    twin = best_twin(TINY, axis(2))
    steps = 0.02 * draw(2000, 9)
    shifted = [moved(twin, step, 2) for step in steps]
    losses = population_loss(
        TINY, from_products(torch.stack([w.w_pv for w in shifted]), torch.stack([w.w_kq for w in shifted]))
    )
    assert float(losses.min()) >= plateau_loss(TINY) * (1 - 1e-12)
    saddle = best_twin(UNIFORM, axis(10))
    down = torch.linalg.eigh(population_hessian(UNIFORM, saddle)).eigenvectors[:, 0]
    for sign in (-1, 1):
        assert float(population_loss(UNIFORM, moved(saddle, sign * 0.1 * down, 10))) < plateau_loss(UNIFORM) - 1e-4


def test_a_second_head_has_a_steeper_way_down():
    """Beside the twin an empty head feels s tr_perp(M) alone: -m2^2 N sqrt(d - 1), for half-MSE."""
    twin = best_twin(UNIFORM, axis(10))
    empty = torch.zeros(1, 11, 11, dtype=DOUBLE)
    pair = from_products(torch.cat([twin.w_pv, empty]), torch.cat([twin.w_kq, empty]))
    alone, helped = (torch.linalg.eigvalsh(population_hessian(UNIFORM, w))[0] for w in (twin, pair))
    assert float(helped) == pytest.approx(-10 * UNIFORM.second_moment**2 * 3, rel=1e-10)
    assert float(alone) == pytest.approx(-0.2198, abs=1e-4)


def test_the_slice_is_the_loss_of_the_twin_and_a_direct_path(draw):
    u = draw(1, 4)
    tasks = LinearTasks(4, 1, 6)
    s, t = draw(2, 3, 5)
    got = twin_slice(tasks, u, s, t)
    twin = best_twin(tasks, u)
    for i, j in [(0, 0), (2, 4)]:
        w_pv, w_kq = twin.w_pv.clone(), twin.w_kq.clone()
        w_pv[0, 4, 4] -= s[i, j]
        w_kq[0, :4, :4] += t[i, j] * (torch.eye(4, dtype=DOUBLE) - u.T @ u / u.square().sum())
        assert float(got[i, j]) == pytest.approx(float(population_loss(tasks, from_products(w_pv, w_kq))), rel=1e-12)
    assert float(twin_slice(tasks, u, torch.tensor(0.0), torch.tensor(0.0))) == pytest.approx(plateau_loss(tasks))


def test_directions_and_layers_that_do_not_fit_are_refused(refused):
    refused(
        lambda: best_twin(UNIFORM, torch.zeros(1, 10)), ValueError, "direction: expected a direction other than zero"
    )
    message = "direction: expected a shape that ends in (1, 10), got (1, 9)"
    refused(lambda: best_twin(UNIFORM, torch.ones(1, 9)), ValueError, message)
    message = "direction: expected one matrix (y, x), got shape (2, 1, 10)"
    refused(lambda: best_twin(UNIFORM, torch.ones(2, 1, 10)), ValueError, message)
    for derivative in (population_gradient, population_hessian):
        message = "weights: expected a layer without ensemble axes, got w_k of shape (1, 1, 11, 11)"
        refused(lambda f=derivative: f(UNIFORM, random_weights(10, 1, [0])), ValueError, message)
        message = "weights: expected a token size of x_dim + y_dim = 11, got 4"
        refused(lambda f=derivative: f(UNIFORM, gd_construction(1.0, 3, 1, 5)), ValueError, message)
    two, point = LinearTasks(3, 2), torch.tensor(0.0)
    message = "tasks: expected one target, got y_dim = 2"
    refused(lambda: twin_slice(two, torch.ones(2, 3), point, point), ValueError, message)
    message = "on_keys: expected the shape of on_values, (), got (1,)"
    refused(lambda: twin_slice(UNIFORM, torch.ones(1, 10), point, point[None]), ValueError, message)
