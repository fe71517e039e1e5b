"""Positional codes, against numpy and against the definition of an orthonormal set."""

import numpy as np
import pytest
import torch

from mesa_lib import dual_codes, fourier_codes, neighbour_map, one_hot_codes, reachable_scores, sinusoidal_codes

DOUBLE = torch.float64


def test_one_hot_codes_are_the_rows_of_the_identity():
    assert torch.equal(one_hot_codes(5), torch.eye(5))


def test_sinusoidal_codes_are_pairs_of_waves_of_falling_rate():
    codes = sinusoidal_codes(21, 10, dtype=DOUBLE).numpy()
    places = np.arange(21)
    for wave in range(5):
        angles = places / 1e4 ** (2 * wave / 10)
        np.testing.assert_allclose(codes[:, 2 * wave], np.sin(angles), atol=1e-14)
        np.testing.assert_allclose(codes[:, 2 * wave + 1], np.cos(angles), atol=1e-14)
    assert sinusoidal_codes(3, 2, dtype=torch.float32).dtype == torch.float32
    assert np.linalg.matrix_rank(codes, tol=1e-2) == 6  # of width 10


@pytest.mark.parametrize("places", [2, 3, 8, 21])
def test_fourier_codes_of_full_width_are_orthonormal_waves(places):
    codes = fourier_codes(places, dtype=DOUBLE)
    torch.testing.assert_close(codes @ codes.mT, torch.eye(places, dtype=DOUBLE), rtol=0, atol=1e-13)
    spectrum = np.abs(np.fft.rfft(codes.numpy(), axis=0)) ** 2
    assert (np.sort(spectrum, axis=0)[:-1] < 1e-20 * places).all()  # each column holds one frequency
    assert list(spectrum.argmax(0)) == [(column + 1) // 2 for column in range(places)]


def test_narrower_fourier_codes_are_the_slowest_waves():
    assert torch.equal(fourier_codes(21, 11), fourier_codes(21)[:, :11])


@pytest.mark.parametrize("direction", ["next", "previous"])
@pytest.mark.parametrize("codes", [one_hot_codes(7, DOUBLE), sinusoidal_codes(7, 6, 20.0, DOUBLE), fourier_codes(7)])
def test_the_neighbour_map_takes_every_code_to_its_neighbours(codes, direction):
    moved = codes @ neighbour_map(codes, direction).mT
    got, wanted = (moved[:-1], codes[1:]) if direction == "next" else (moved[1:], codes[:-1])
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6 if codes.dtype == torch.float32 else 1e-10)


def test_the_neighbour_map_of_waves_is_their_rotation_by_one_place():
    codes = sinusoidal_codes(21, 4, 5.0, DOUBLE)
    rates = np.array([1.0, 5.0**-0.5])
    blocks = [[[np.cos(r), np.sin(r)], [-np.sin(r), np.cos(r)]] for r in rates]
    rotation = torch.block_diag(*[torch.tensor(block, dtype=DOUBLE) for block in blocks])
    torch.testing.assert_close(neighbour_map(codes, "next"), rotation, rtol=0, atol=1e-10)
    torch.testing.assert_close(neighbour_map(codes, "previous"), rotation.mT, rtol=0, atol=1e-10)


def test_reachable_scores_are_the_least_squares_fit_over_all_bilinear_forms(draw):
    codes, wanted = draw(6, 3), draw(6, 6)
    design = torch.einsum("ia,jb->ijab", codes, codes).reshape(36, 9)
    fitted = np.linalg.lstsq(design.numpy(), wanted.flatten().numpy(), rcond=None)[0]
    expected = (design @ torch.from_numpy(fitted)).view(6, 6)
    torch.testing.assert_close(reachable_scores(codes, wanted), expected, rtol=0, atol=1e-12)


def test_any_scores_are_in_reach_of_independent_codes_and_few_of_weak_directions(draw):
    wanted = draw(6, 6)
    torch.testing.assert_close(reachable_scores(fourier_codes(6, dtype=DOUBLE), wanted), wanted, rtol=0, atol=1e-12)
    weak = torch.diag(torch.tensor([1.0, 1.0, 1.0, 1e-4, 1e-4, 1e-4], dtype=DOUBLE))
    used = torch.diag(torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], dtype=DOUBLE))
    torch.testing.assert_close(reachable_scores(weak, wanted), used @ wanted @ used, rtol=0, atol=1e-12)
    torch.testing.assert_close(reachable_scores(weak, wanted, tolerance=1e-5), wanted, rtol=0, atol=1e-12)


def test_dual_codes_are_dual(draw):
    codes = draw(4, 6)
    torch.testing.assert_close(dual_codes(codes) @ codes.mT, torch.eye(4, dtype=DOUBLE), rtol=0, atol=1e-12)
    torch.testing.assert_close(dual_codes(fourier_codes(5, dtype=DOUBLE)), fourier_codes(5, dtype=DOUBLE))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: one_hot_codes(0), ValueError, "num_positions: expected a positive integer, got 0"),
        (lambda: one_hot_codes(3, torch.int64), TypeError, "dtype: expected a floating-point dtype"),
        (lambda: sinusoidal_codes(21, 9), ValueError, "width: expected an even number, one sine and one cosine a wave"),
        (lambda: sinusoidal_codes(21, 10, base=0.0), ValueError, "base: expected a number > 0, got 0.0"),
        (lambda: fourier_codes(5, 6), ValueError, "width: expected at most the 5 places, got 6"),
        (lambda: neighbour_map(torch.eye(3), "up"), ValueError, "direction: expected one of 'next', 'previous'"),
        (lambda: neighbour_map(torch.ones(1, 3), "next"), ValueError, "positions: expected at least two rows, one"),
        (lambda: reachable_scores(torch.eye(3), torch.eye(2)), ValueError, "wanted: expected one score for each pair"),
        (lambda: reachable_scores(torch.eye(3), torch.eye(3), 0.0), ValueError, "tolerance: expected a number > 0"),
        (lambda: dual_codes(torch.ones(3, 4)), ValueError, "positions: expected 3 linearly independent rows, got rows"),
    ],
)
def test_codes_that_do_not_work_are_refused(call, error, message, refused):
    refused(call, error, message)
