"""The pictures of symmetries and plateaus draw the numbers that they are given, with labels, and refuse others."""

import numpy as np
import pytest
import torch

import mesa_lib as mesa
from mesa_lib import figures

STEPS = [0, 10, 20]
LOSSES = torch.tensor([[1.0, 1.0], [0.7, 0.96], [0.5, 0.95]])
SHARES = {"one head": (0.2, 0.1, 0.3), "two heads": (0.0, 0.0, 0.05)}


def test_gauges_shows_four_factors_and_two_products_of_every_layer():
    layers = {"a": mesa.random_weights(3, 1, [0]).members(0), "b": mesa.gd_construction(1.5, 3, 1, 10)}
    panels = figures.gauges(layers, x_dim=3).axes
    assert len(panels) == 12
    for row, layer in enumerate(layers.values()):
        matrices = (layer.w_k, layer.w_q, layer.w_v, layer.w_p, layer.w_kq, layer.w_pv)
        for axes, matrix in zip(panels[6 * row : 6 * row + 6], matrices, strict=True):
            (image,) = axes.images
            assert np.allclose(image.get_array(), matrix[0])
            assert image.get_clim() == pytest.approx((-float(matrix.abs().max()), float(matrix.abs().max())))
    assert [panels[0].get_ylabel(), panels[6].get_ylabel()] == ["a", "b"]


def test_gauges_refuses_an_ensemble_and_nothing():
    with pytest.raises(ValueError, match=r"layers\['a'\]: expected no ensemble axes"):
        figures.gauges({"a": mesa.random_weights(3, 1, [0])}, x_dim=3)
    with pytest.raises(ValueError, match="layers: expected at least one layer, got none"):
        figures.gauges({}, x_dim=3)


def test_landscapes_draw_the_level_of_the_twin_and_the_twin():
    line = torch.linspace(-1, 1, 9)
    keys, values = torch.meshgrid(line, line, indexing="ij")
    left, right = figures.twin_landscapes(
        {"saddle": (values, keys, 1 - values * keys), "bowl": (values, keys, 1 + values**2 + keys**2)}
    ).axes
    assert [axes.get_title(loc="left") for axes in (left, right)] == ["saddle", "bowl"]
    assert left.get_ylabel() and left.get_xlabel() and right.get_xlabel()
    for axes in (left, right):
        (point,) = axes.lines
        assert (point.get_xdata()[0], point.get_ydata()[0]) == (0, 0)


def test_landscapes_refuse_grids_that_do_not_fit_and_nothing():
    grid = torch.ones(3, 3)
    with pytest.raises((ValueError, TypeError), match=r"panels|type-check"):
        figures.twin_landscapes({"a": (grid, grid, grid[:2])})
    with pytest.raises(ValueError, match="panels: expected at least one, got none"):
        figures.twin_landscapes({})


def test_waiting_seeds_draws_every_seed_after_step_0_every_level_and_every_share():
    runs = [(STEPS, LOSSES), ([20, 30], LOSSES[1:])]
    left, right = figures.waiting_seeds(runs, {"twin": 0.95, "step": 0.5}, SHARES).axes
    curves = [line.get_ydata() for line in left.lines[:4]]
    assert np.allclose(np.array(curves[:2]).T, LOSSES[1:]) and np.allclose(np.array(curves[2:]).T, LOSSES[1:])
    assert [list(line.get_xdata()) for line in (left.lines[0], left.lines[2])] == [[10, 20], [20, 30]]
    assert [float(np.mean(line.get_ydata())) for line in left.lines[4:]] == [0.95, 0.5]
    assert [text.get_text() for text in left.texts] == ["twin", "step"]
    assert [text.get_text() for text in right.get_yticklabels()] == list(SHARES)
    points = [float(container[0].get_xdata()[0]) for container in right.containers]
    assert points == [0.2, 0.0]
    bars = [container[2][0].get_segments()[0][:, 0] for container in right.containers]
    assert np.allclose(bars, [(0.1, 0.3), (0.0, 0.05)])
    assert left.get_xlabel() == "training step" and "share" in right.get_xlabel()


@pytest.mark.parametrize(
    ("runs", "shares", "message"),
    [
        ([], SHARES, "runs: expected at least one, got none"),
        ([(STEPS, LOSSES[:2])], SHARES, r"runs: expected 3 rows of losses, one a step, got shape \(2, 2\)"),
        ([(STEPS, LOSSES)], {"a": (0.5, 0.6, 0.7)}, r"shares\['a'\]: expected 0 <= low <= share <= high <= 1"),
    ],
)
def test_waiting_seeds_refuses_what_it_cannot_draw(runs, shares, message):
    with pytest.raises(ValueError, match=message):
        figures.waiting_seeds(runs, {}, shares)
