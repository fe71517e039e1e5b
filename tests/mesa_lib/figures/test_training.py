"""The pictures of a training draw the numbers that they are given, with labels, and refuse others."""

import numpy as np
import pytest
import torch

import mesa_lib as mesa
from mesa_lib import figures

STEPS = [0, 10, 20]
LOSSES = torch.tensor([[1.0, 1.0], [0.7, 0.96], [0.5, 0.95]])


def comparison(value: float) -> mesa.Comparison:
    row = torch.tensor([value, 2 * value, 100.0])
    return mesa.Comparison(row, 2 * row, row / 200)


def test_loss_curves_draws_every_seed_and_every_level():
    (axes,) = figures.loss_curves(STEPS, LOSSES, {"optimum": 0.495}).axes
    curves = [line for line in axes.lines if len(line.get_xdata()) == len(STEPS)]
    assert np.allclose(np.array([line.get_ydata() for line in curves]).T, LOSSES)
    assert [float(np.mean(line.get_ydata())) for line in axes.lines if line not in curves] == [0.495]
    assert [text.get_text() for text in axes.texts] == ["optimum"]
    assert axes.get_xlabel() == "training step" and "L_0" in axes.get_ylabel()


def test_loss_curves_refuses_losses_of_other_steps():
    with pytest.raises(ValueError, match=r"relative_losses: expected 3 rows .* got shape \(2, 2\)"):
        figures.loss_curves(STEPS, LOSSES[:2], {})


def test_agreement_curves_draws_the_median_of_the_members_that_landed():
    left, right = figures.agreement_curves(STEPS, [comparison(v) for v in (3.0, 2.0, 1.0)], landed=[0, 1]).axes
    assert np.allclose(left.lines[0].get_ydata(), [3.0, 2.0, 1.0])  # torch's median of two is the lower one
    assert np.allclose(left.lines[1].get_ydata(), [6.0, 4.0, 2.0])
    assert np.allclose(right.lines[0].get_ydata(), [0.015, 0.01, 0.005])


def test_agreement_curves_refuses_an_empty_choice():
    with pytest.raises(ValueError, match="expected 3 comparisons and at least one member, got 3 and 0"):
        figures.agreement_curves(STEPS, [comparison(1.0)] * 3, landed=[])


def test_products_shows_both_layers_in_one_scale():
    construction = mesa.canonicalize(mesa.gd_construction(1.5, 3, 1, 10))
    layer = mesa.canonicalize(mesa.random_weights(3, 1, [0]).members(0))
    panels = figures.products(layer, construction, x_dim=3).axes[:4]
    shown = [axes.images[0] for axes in panels]
    matrices = (layer.w_kq, construction.w_kq, layer.w_pv, construction.w_pv)
    for image, matrix in zip(shown, matrices, strict=True):
        assert np.allclose(image.get_array(), matrix[0])
    assert shown[0].get_clim() == shown[1].get_clim() == (-1.0, 1.0)
    assert shown[2].get_clim() == shown[3].get_clim() == pytest.approx((-0.15, 0.15))


def test_products_refuses_an_ensemble():
    construction = mesa.gd_construction(1.5, 3, 1, 10)
    with pytest.raises(ValueError, match="trained: expected a layer without ensemble axes"):
        figures.products(mesa.random_weights(3, 1, [0]), construction, x_dim=3)


def test_interpolation_curves_draws_both_averages_and_refuses_other_fractions(refused):
    (axes,) = figures.interpolation_curves(STEPS, LOSSES, 2 * LOSSES, optimum=0.495).axes
    curves = np.array([line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 3]).T
    assert np.allclose(curves, torch.cat([LOSSES, 2 * LOSSES], dim=1))

    def draw():
        return figures.interpolation_curves(STEPS, LOSSES, LOSSES[:1], optimum=0.495)

    refused(draw, ValueError, "factor_by_factor: expected 3 rows")
