"""GD++ and its neighbours against autograd, inverses, eigenvalues and SciPy."""

import numpy as np
import pytest
import torch
from numpy.polynomial import Chebyshev
from scipy.sparse.linalg import cg

from mesa_lib import (
    chebyshev,
    chebyshev_weights,
    conjugate_gradient,
    conjugate_gradient_weights,
    context_loss,
    curvature_correction,
    gd_plus_plus,
    gd_plus_plus_weights,
    gradient_descent_weights,
    least_squares_weights,
    momentum,
    momentum_weights,
    newton,
    newton_weights,
)

ETAS, GAMMAS = (0.3, 0.7, 1.1), (0.04, 0.06)


def moment(batch):
    return batch.context_x.mT @ batch.context_x / batch.num_context


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-12)


def test_the_curvature_correction_is_one_minus_gamma_x_x_transposed(draw_batch):
    batch = draw_batch()
    expected = torch.eye(3) - 0.2 * torch.einsum("tia,tib->tab", batch.context_x, batch.context_x)
    close(curvature_correction(batch, 0.2), expected)


def test_gd_plus_plus_steps_on_transformed_data_and_then_transforms_them(draw_batch):
    """Appendix A.10, on the data themselves: autograd's step on (H x, y), then the next H from the moved data."""
    batch = draw_batch()
    x, y, carried = batch.context_x, batch.context_y, torch.eye(3, dtype=torch.float64).expand(4, 3, 3)
    total = torch.zeros(4, 2, 3, dtype=torch.float64)
    for eta, gamma in zip(ETAS, (*GAMMAS, 0.0), strict=True):
        weights = torch.zeros(4, 2, 3, dtype=torch.float64, requires_grad=True)
        loss = 0.5 * (x @ weights.mT - y).square().sum((-1, -2)) / batch.num_context
        (slope,) = torch.autograd.grad(loss.sum(), weights)
        y = y + eta * x @ slope.mT
        total = total - eta * slope @ carried
        transform = torch.eye(3) - gamma * x.mT @ x
        x, carried = x @ transform, transform @ carried
    close(gd_plus_plus_weights(batch, ETAS, GAMMAS), total)
    close(gd_plus_plus(batch, ETAS, GAMMAS), batch.query_x @ total.mT)


def test_without_gamma_gd_plus_plus_is_gradient_descent_and_a_last_gamma_changes_nothing(draw_batch):
    batch = draw_batch()
    close(gd_plus_plus_weights(batch, (0.4,) * 3, (0.0, 0.0)), gradient_descent_weights(batch, 0.4, 3))
    once = gd_plus_plus_weights(batch, ETAS, GAMMAS)
    assert torch.equal(gd_plus_plus_weights(batch, ETAS, (*GAMMAS, 7.0)), once)
    close(gd_plus_plus_weights(batch, (0.3,), ()), gradient_descent_weights(batch, 0.3))


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("start", ["identity", "second moment"])
def test_newton_squares_its_residual_in_every_step(steps, start, draw_batch):
    batch = draw_batch(num_context=12)
    a = moment(batch)
    top = torch.linalg.eigvalsh(a)[:, -1, None, None]
    kept = torch.linalg.matrix_power(
        torch.eye(3) - (a / top if start == "identity" else (a / top) @ (a / top)), 2**steps
    )
    expected = least_squares_weights(batch) @ (torch.eye(3) - kept)
    close(newton_weights(batch, steps, start), expected)
    close(newton(batch, steps, start), batch.query_x @ expected.mT)


def test_newton_ends_in_least_squares_with_fewer_examples_than_inputs_too(draw_batch):
    batch = draw_batch(x_dim=6, num_context=4)
    close(newton_weights(batch, 30), least_squares_weights(batch))


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_chebyshev_iteration_leaves_the_shifted_chebyshev_polynomial(steps, draw_batch):
    batch = draw_batch(num_context=12)
    low, high = 0.1, 1.3
    values, basis = torch.linalg.eigh(moment(batch))
    polynomial = Chebyshev.basis(steps, domain=[low, high])
    kept = torch.from_numpy(polynomial(values.numpy()) / polynomial(0.0))
    target = least_squares_weights(batch)
    expected = target - (target @ basis * kept.unsqueeze(-2)) @ basis.mT
    close(chebyshev_weights(batch, steps, low, high), expected)
    close(chebyshev(batch, steps, low, high), batch.query_x @ expected.mT)


def test_momentum_is_gradient_descent_with_the_last_change_added(draw_batch):
    batch = draw_batch()
    close(momentum_weights(batch, 0.5, 0.0, 4), gradient_descent_weights(batch, 0.5, 4))
    a, b = moment(batch), batch.context_y.mT @ batch.context_x / batch.num_context
    before, now = torch.zeros_like(b), 0.5 * b
    for _ in range(3):
        before, now = now, now - 0.5 * (now @ a - b) + 0.3 * (now - before)
    close(momentum_weights(batch, 0.5, 0.3, 4), now)
    close(momentum(batch, 0.5, 0.3, 4), batch.query_x @ now.mT)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_conjugate_gradients_are_scipys(steps, draw_batch):
    batch = draw_batch(x_dim=5, num_context=9)
    a, b = moment(batch).numpy(), (batch.context_y.mT @ batch.context_x / batch.num_context).numpy()
    expected = np.stack([[cg(a[t], row, rtol=0, atol=0, maxiter=steps)[0] for row in b[t]] for t in range(4)])
    close(conjugate_gradient_weights(batch, steps), torch.from_numpy(expected))
    close(conjugate_gradient(batch, steps), batch.query_x @ torch.from_numpy(expected).mT)


def test_conjugate_gradients_end_in_least_squares_and_stay_there(draw_batch):
    batch = draw_batch(x_dim=5, num_context=3)
    target = least_squares_weights(batch)
    torch.testing.assert_close(conjugate_gradient_weights(batch, 5), target, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(conjugate_gradient_weights(batch, 50), target, rtol=1e-8, atol=1e-8)


def test_no_method_of_k_products_has_a_lower_context_loss_than_conjugate_gradients(draw_batch):
    batch = draw_batch(x_dim=5, num_context=9)
    best = context_loss(conjugate_gradient_weights(batch, 3), batch)
    others = [
        gradient_descent_weights(batch, 0.8, 3),
        chebyshev_weights(batch, 3, 0.05, 1.0),
        momentum_weights(batch, 0.8, 0.3, 3),
    ]
    assert all((best <= context_loss(weights, batch) + 1e-12).all() for weights in others)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda b: gd_plus_plus(b, (), ()), ValueError, "etas: expected at least one number, got an empty sequence"),
        (lambda b: gd_plus_plus(b, (0.1, 0.2, 0.3), (0.1,)), ValueError, "gammas: expected 2 numbers, one between"),
        (lambda b: gd_plus_plus(b, 0.1, ()), TypeError, "etas: expected a sequence of numbers, got 0.1 of type float"),
        (
            lambda b: gd_plus_plus(b, (0.1, float("nan")), (0.1,)),
            ValueError,
            "etas[1]: expected a finite number, got nan",
        ),
        (lambda b: newton(b, 0), ValueError, "num_steps: expected a positive integer, got 0"),
        (lambda b: newton(b, 1, "zero"), ValueError, "start: expected one of 'identity', 'second moment', got 'zero'"),
        (lambda b: momentum(b, 0.1, 1.0, 2), ValueError, "momentum: expected a number from 0 to below 1, got 1.0"),
        (lambda b: chebyshev(b, 2, 1.0, 0.5), ValueError, "lowest: expected less than highest = 0.5, got 1.0"),
        (lambda b: chebyshev(b, 2, 0.0, 0.5), ValueError, "lowest: expected a number > 0, got 0.0"),
        (lambda b: conjugate_gradient(b, 1.5), TypeError, "num_steps: expected a positive integer, got 1.5"),
        (lambda b: curvature_correction(b, None), TypeError, "gamma: expected a finite number, got None"),
    ],
)
def test_a_bad_argument_is_refused(call, error, message, draw_batch, refused):
    batch = draw_batch()
    refused(lambda: call(batch), error, message)
