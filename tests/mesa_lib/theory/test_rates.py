"""Layers needed against a condition number: closed forms, plain iteration and the table of science.md 3d."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.polynomial import Chebyshev
from scipy.optimize import linprog

from mesa_lib import (
    METHODS,
    chebyshev_error,
    gd_plus_plus_worst_case,
    layers_needed,
    minimax_schedule,
    newton_steps_matched,
    polynomial_degree,
    residual,
    worst_residual,
)

CONDITION_NUMBERS = (3, 10, 100, 1e3, 1e4, 1e6)
TABLE = {
    "gradient descent": (20, 69, 691, 6908, 69078, 6907756),
    "Chebyshev": (12, 23, 73, 230, 726, 7255),
    "Newton, start I": (5, 7, 10, 13, 17, 23),
    "Newton, start A": (6, 10, 17, 23, 30, 43),
    "GD++, Newton-Schulz": (5, 7, 10, 13, 15, 21),
    "GD++, optimal cubic": (4, 5, 6, 8, 9, 11),
    "GD++, constant gamma": (10, 20, 64, 203, 643),
    "lower bound": (3, 4, 5, 6, 7, 9),
}


@pytest.mark.parametrize("method", TABLE)
def test_the_table_of_layers_is_that_of_science_3d(method):
    rows = TABLE[method]
    assert tuple(layers_needed(method, kappa) for kappa in CONDITION_NUMBERS[: len(rows)]) == rows


def test_the_degrees_are_one_four_thirteen_forty():
    assert [polynomial_degree(layers) for layers in (1, 2, 3, 4, 5)] == [1, 4, 13, 40, 121]


@pytest.mark.parametrize(("degree", "kappa"), [(1, 10.0), (4, 10.0), (4, 100.0), (13, 1e3)])
def test_no_polynomial_of_the_degree_beats_the_chebyshev_error(degree, kappa):
    """A linear programme over all polynomials with rho(0) = 1, on a fine grid, in a basis of its own."""
    grid = np.unique(
        np.concatenate(
            [
                np.geomspace(1 / kappa, 1, 400),
                np.cos(np.linspace(0, np.pi, 400)) / 2 * (1 - 1 / kappa) + (1 + 1 / kappa) / 2,
            ]
        )
    )
    basis = np.stack([Chebyshev.basis(k, domain=[0, 1])(grid) for k in range(degree + 1)], -1)
    at_zero = np.array([[float(Chebyshev.basis(k, domain=[0, 1])(0.0)) for k in range(degree + 1)] + [0.0]])
    rows = np.vstack([np.hstack([sign * basis, -np.ones((len(grid), 1))]) for sign in (1, -1)])
    cost = np.zeros(degree + 2)
    cost[-1] = 1
    best = linprog(cost, rows, np.zeros(len(rows)), at_zero, [1.0], bounds=[(None, None)] * (degree + 2))
    assert best.fun == pytest.approx(chebyshev_error(degree, kappa), rel=2e-3)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "lower bound"])
@pytest.mark.parametrize("kappa", [3.0, 40.0])
def test_no_method_of_linear_layers_beats_the_lower_bound_of_its_degree(method, kappa):
    """A GD++ layer counts as it is; for the others the degree in S is counted: k, k and 2^k or 2^(k+1)."""
    needed = layers_needed(method, kappa, 1e-4)
    if method.startswith("GD++"):
        assert needed >= layers_needed("lower bound", kappa, 1e-4)
        return
    degree = {"Newton, start I": 2**needed, "Newton, start A": 2 ** (needed + 1)}.get(method, needed)
    assert chebyshev_error(degree, kappa) <= 1e-4 * (1 + 1e-9)


@pytest.mark.parametrize("kappa", [10.0, 1e4])
def test_counts_are_the_first_that_reach_the_error(kappa):
    ratio = (kappa - 1) / (kappa + 1)
    steps = layers_needed("gradient descent", kappa, 1e-3)
    assert ratio**steps <= 1e-3 < ratio ** (steps - 1)
    newton = layers_needed("Newton, start I", kappa, 1e-3)
    assert ratio ** (2**newton) <= 1e-3 < ratio ** (2 ** (newton - 1))
    for method in ("GD++, Newton-Schulz", "GD++, optimal cubic", "GD++, Chebyshev"):
        layers = layers_needed(method, kappa, 1e-3)
        errors = [
            worst_residual(gd_plus_plus_worst_case(method, kappa, count), kappa) for count in (layers - 1, layers)
        ]
        assert errors[1] <= 1e-3 < errors[0]


def test_the_chebyshev_schedule_needs_the_logarithm_to_the_base_three():
    """Finding 3: ceil(log3(sqrt(kappa) / error)) is enough; and finding 3d's crossing with the optimal cubic."""
    for kappa, ours, cubic in ((1e8, 11, 12), (1e12, 15, 17)):
        assert layers_needed("GD++, Chebyshev", kappa, 0.1) == ours <= math.ceil(math.log(math.sqrt(kappa) / 0.1, 3))
        assert layers_needed("GD++, optimal cubic", kappa, 0.1) == cubic


@pytest.mark.parametrize(("layers", "kappa", "science"), [(2, 10.0, 0.1456), (2, 100.0, 0.7569), (3, 100.0, 0.1719)])
def test_the_best_schedule_comes_close_to_the_lower_bound_and_not_below(layers, kappa, science):
    """science.md 3d, found there by Nelder-Mead."""
    error = worst_residual(minimax_schedule(kappa, layers), kappa)
    assert chebyshev_error(polynomial_degree(layers), kappa) <= error <= science * 1.02
    assert error < worst_residual(gd_plus_plus_worst_case("GD++, optimal cubic", kappa, layers), kappa)


def test_slopes_against_the_logarithm_of_the_condition_number():
    expected = {
        "lower bound": 1 / (2 * math.log(3)),
        "GD++, optimal cubic": 1 / (2 * math.log(1.5 * math.sqrt(3))),
        "GD++, Newton-Schulz": 1 / (2 * math.log(1.5)),
        "Newton, start I": 1 / math.log(2),
        "Newton, start A": 2 / math.log(2),
    }
    for method, slope in expected.items():
        counts = [layers_needed(method, kappa) for kappa in (1e4, 1e16)]
        assert (counts[1] - counts[0]) / math.log(1e12) == pytest.approx(slope, abs=2 / math.log(1e12))


def test_the_error_of_gd_plus_plus_is_squared_in_the_end():
    """kappa = 100, Newton-Schulz: the errors of science.md 3d, and the order of convergence read off them."""
    errors = [worst_residual(gd_plus_plus_worst_case("GD++, Newton-Schulz", 100, count), 100) for count in range(1, 12)]
    assert errors[6:] == pytest.approx([0.060, 3.6e-3, 1.2e-5, 1.1e-10, 6e-21], rel=0.08)
    orders = [math.log(after) / math.log(before) for before, after in pairwise(errors[7:])]
    assert orders == pytest.approx([2.0] * 3, abs=0.05)


def test_newtons_own_errors_are_worth_as_many_steps():
    kappa = 30.0
    ratio = (kappa - 1) / (kappa + 1)
    errors = torch.tensor([ratio ** (2**k) for k in (1, 2, 5)], dtype=torch.float64)
    torch.testing.assert_close(newton_steps_matched(errors, kappa), torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64))


def test_the_worst_residual_is_the_largest_on_a_fine_linear_grid():
    schedule = gd_plus_plus_worst_case("GD++, optimal cubic", 20.0, 2)
    grid = torch.linspace(1 / 20, 1, 100_001, dtype=torch.float64)
    assert worst_residual(schedule, 20.0) == pytest.approx(float(residual(grid, schedule, 1).abs().max()), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: layers_needed("sgd", 10), ValueError, "method: expected one of 'gradient descent'"),
        (lambda: layers_needed("Chebyshev", 1.0), ValueError, "condition_number: expected a number above 1, got 1.0"),
        (
            lambda: layers_needed("Chebyshev", 10.0, 1.0),
            ValueError,
            "error: expected a number between 0 and 1, got 1.0",
        ),
        (lambda: layers_needed("gradient descent", 1e6, most=10), ValueError, "most: expected at least 6907756"),
        (
            lambda: layers_needed("GD++, Newton-Schulz", 1e6, most=3),
            ValueError,
            "most: expected a number of layers that",
        ),
        (lambda: layers_needed("GD++, constant gamma", 1e6, most=3), ValueError, "most: expected a number of layers"),
        (lambda: polynomial_degree(0), ValueError, "num_layers: expected a positive integer, got 0"),
        (lambda: gd_plus_plus_worst_case("Chebyshev", 10.0, 2), ValueError, "method: expected one of 'GD++"),
        (lambda: newton_steps_matched(torch.tensor([1.0]), 10.0), ValueError, "residuals: expected numbers between 0"),
    ],
)
def test_a_bad_argument_is_refused(call, error, message, refused):
    refused(call, error, message)
