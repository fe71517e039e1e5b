"""GD++ three times: as a network on tokens, as an explicit algorithm, and on eigenvalues (the paper's A.10)."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.polynomial import Chebyshev

from mesa_lib import (
    FreeTransformer,
    GDPlusPlusTransformer,
    Looped,
    Schedule,
    apply_layers,
    chebyshev_gd_plus_plus,
    chebyshev_schedule,
    concatenated_tokens,
    curvature_correction,
    gd_plus_plus,
    gd_plus_plus_construction,
    gd_plus_plus_weights,
    gradient_descent_weights,
    least_squares_weights,
    linear_self_attention,
    newton_schulz_schedule,
    read_prediction,
    residual,
    spectral_dynamics,
)

ETAS, GAMMAS = (0.3, 0.7, 1.1), (0.04, 0.06)
DOUBLE = torch.float64


def stack(num_context, etas=ETAS, gammas=(*GAMMAS, 0.9), x_dim=3, y_dim=2):
    pairs = zip(etas, gammas, strict=True)
    return [gd_plus_plus_construction(*pair, x_dim, y_dim, num_context, dtype=DOUBLE) for pair in pairs]


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_a_layer_steps_on_y_and_corrects_x_at_the_same_time(draw_batch, draw):
    batch, w_0 = draw_batch(), draw(2, 3)
    layer = gd_plus_plus_construction(0.8, 0.05, 3, 2, batch.num_context, w_0)
    after = linear_self_attention(layer, concatenated_tokens(batch, w_0))
    correction, change = curvature_correction(batch, 0.05), gradient_descent_weights(batch, 0.8, 1, w_0) - w_0
    close(after.context[..., :3], batch.context_x @ correction)
    close(after.query[..., :3], batch.query_x @ correction)
    close(after.context[..., 3:], batch.context_y - batch.context_x @ change.mT)
    close(-after.query[..., 3:], batch.query_x @ (w_0 + change).mT)


def test_network_algorithm_and_spectrum_agree(draw_batch):
    """On noise-free targets V = W (I - rho(S)): eigenvectors from another routine than anything in the library."""
    batch = draw_batch(noise_std=0.0)
    tokens = read_prediction(apply_layers(stack(batch.num_context), concatenated_tokens(batch)), 2)
    moments = FreeTransformer(stack(batch.num_context))
    close(moments(batch), tokens)
    close(gd_plus_plus(batch, ETAS, GAMMAS), tokens)
    values, basis = np.linalg.eigh(np.einsum("tia,tib->tab", batch.context_x, batch.context_x))
    rho = residual(torch.from_numpy(values), Schedule(ETAS, GAMMAS), batch.num_context).numpy()
    implicit = batch.teacher.numpy() @ np.einsum("tab,tb,tcb->tac", basis, 1 - rho, basis)
    close(tokens, batch.query_x @ torch.from_numpy(implicit).mT)


def test_the_inputs_after_a_layer_have_the_eigenvalues_of_the_dynamics(draw_batch):
    batch = draw_batch()
    states = spectral_dynamics(
        torch.linalg.eigvalsh(batch.context_x.mT @ batch.context_x), Schedule(ETAS, GAMMAS), batch.num_context
    )
    tokens = concatenated_tokens(batch)
    for layer, state in zip(stack(batch.num_context)[:2], states[1:], strict=False):
        tokens = linear_self_attention(layer, tokens)
        x = tokens.context[..., :3]
        close(torch.linalg.eigvalsh(x.mT @ x), state.eigenvalues.sort(-1).values)


def test_with_the_schedule_of_newton_and_schulz_the_inputs_follow_their_iteration(draw):
    """(3/2)^L X_L / sigma_max is Y after L steps of Y <- 1.5 Y - 0.5 Y Y^T Y."""
    x = draw(15, 6)
    top = float(torch.linalg.matrix_norm(x, 2))
    schedule = newton_schulz_schedule(top**2, 9, 15)
    iterate, inputs = x / top, x
    for gamma in schedule.gammas:
        iterate = 1.5 * iterate - 0.5 * iterate @ iterate.mT @ iterate
        inputs = inputs - gamma * inputs @ inputs.mT @ inputs
    close(1.5**8 * inputs / top, iterate)
    assert (iterate.mT @ iterate - torch.eye(6)).abs().max() < 1e-2
    assert [eta / 15 / gamma for eta, gamma in zip(schedule.etas, schedule.gammas, strict=False)] == pytest.approx(
        [3.0] * 8
    )


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_with_one_number_gd_plus_plus_is_a_chebyshev_polynomial(num_layers):
    """rho = (-1)^((3^L - 1)/2) T_{3^L}(u) / (3^L u), u^2 = 3 g lambda / 4, against NumPy's Chebyshev series."""
    g, degree = 0.4, 3**num_layers
    eigenvalues = torch.linspace(1e-3, 4 / (3 * g), 2001, dtype=DOUBLE)
    u = (3 * g * eigenvalues / 4).sqrt().numpy()
    expected = (-1) ** ((degree - 1) // 2) * Chebyshev.basis(degree)(u) / (degree * u)
    got = residual(eigenvalues, chebyshev_schedule(g, num_layers, 7), 7)
    torch.testing.assert_close(got, torch.from_numpy(expected), rtol=0, atol=1e-12)
    assert (torch.from_numpy(u) * got).abs().max() <= 1 / degree + 1e-12


def test_the_chebyshev_network_is_the_chebyshev_schedule(draw_batch):
    batch, schedule = draw_batch(), chebyshev_schedule(0.02, 3, 5)
    network = FreeTransformer(chebyshev_gd_plus_plus(0.02, 3, 3, 2, 5, dtype=DOUBLE))
    close(network.implicit_weights(batch), gd_plus_plus_weights(batch, schedule.etas, schedule.gammas))


def test_the_residual_has_the_degree_of_the_lower_bound_and_no_less():
    """Finite differences of order (3^L - 1)/2 + 1 vanish on exact rational numbers, those of one order less do not."""
    for layers in (1, 2, 3):
        etas, gammas = [Fraction(1 + k, 3) for k in range(layers)], [Fraction(1, 2 + k) for k in range(layers - 1)]

        def rho(value, etas=etas, gammas=gammas):
            result, moved = Fraction(1), Fraction(value)
            for eta, gamma in zip(etas, [*gammas, 0], strict=True):
                result, moved = result * (1 - eta * moved), moved * (1 - gamma * moved) ** 2
            return result

        degree = (3**layers - 1) // 2
        differences = [rho(k) for k in range(degree + 2)]
        for _ in range(degree):
            differences = [after - before for before, after in pairwise(differences)]
        assert differences[0] != 0 and differences[0] == differences[1]
        grid = torch.tensor([0.5, 1.0, 2.0], dtype=DOUBLE)
        schedule = Schedule(tuple(map(float, etas)), tuple(map(float, gammas)))
        close(
            residual(grid, schedule, 1), torch.tensor([float(rho(Fraction(v))) for v in (0.5, 1.0, 2.0)], dtype=DOUBLE)
        )


def test_tied_layers_are_a_looped_layer(draw_batch):
    batch = draw_batch()
    one = torch.tensor([0.7], dtype=DOUBLE), torch.tensor([0.03], dtype=DOUBLE)
    tied = GDPlusPlusTransformer(*one, 3, 2, 5, num_layers=4)
    close(tied(batch), Looped(GDPlusPlusTransformer(*one, 3, 2, 5), 4)(batch))
    close(tied(batch), gd_plus_plus(batch, (0.7,) * 4, (0.03,) * 3))


def test_a_deep_schedule_of_newton_and_schulz_solves_least_squares(draw_batch):
    batch = draw_batch(num_context=12)
    top = float(torch.linalg.eigvalsh(batch.context_x.mT @ batch.context_x).max())
    schedule = newton_schulz_schedule(top, 16, 12)
    torch.testing.assert_close(
        gd_plus_plus_weights(batch, schedule.etas, schedule.gammas), least_squares_weights(batch), rtol=1e-9, atol=1e-9
    )
