"""The pictures of softmax attention draw the numbers that they are given, with labels, and refuse others."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import mesa_lib as mesa
from mesa_lib import figures

BETAS = [0.4, 0.2, 0.1]


@pytest.fixture
def task():
    """One task with one input and a grid of five queries."""
    tasks = mesa.LinearTasks(x_dim=1, num_context=4, num_queries=5)
    batch = tasks.sample(1, torch.Generator().manual_seed(0))
    grid = torch.linspace(-1, 1, 5).view(1, 5, 1)
    return replace(batch, query_x=grid, query_y=grid)


def labelled(axes):
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def test_smoothers_draws_the_context_its_range_and_every_curve(task):
    curves, step = {0.5: torch.arange(5.0), 2.0: -torch.arange(5.0)}, torch.ones(5)
    (axes,) = figures.smoothers(task, curves, step).axes
    lines = labelled(axes)
    assert np.allclose(lines[r"softmax head, $\beta = 0.5$"].get_ydata(), np.arange(5))
    assert np.allclose(lines[r"softmax head, $\beta = 2$"].get_ydata(), -np.arange(5))
    assert np.allclose(lines["one gradient step"].get_ydata(), 1)
    assert np.allclose(lines["context"].get_xydata(), np.c_[task.context_x[0], task.context_y[0]])
    (band,) = axes.patches
    ends = band.get_extents().transformed(axes.transData.inverted())
    assert (ends.y0, ends.y1) == pytest.approx((float(task.context_y.min()), float(task.context_y.max())))
    assert axes.get_xlabel() and axes.get_ylabel()


def test_smoothers_refuses_other_tasks_and_other_grids(task, refused):
    step = torch.ones(5)
    wide = mesa.LinearTasks(x_dim=2).sample(1, torch.Generator().manual_seed(0))
    refused(lambda: figures.smoothers(wide, {}, step), ValueError, "batch: expected one task with one input")
    message = "step: expected 5 numbers, as many as queries, got 3"
    refused(lambda: figures.smoothers(task, {}, step[:3]), ValueError, message)
    message = "smoothed[0.5]: expected 5 numbers, as many as queries, got 2"
    refused(lambda: figures.smoothers(task, {0.5: step[:2]}, step), ValueError, message)


def test_convergence_draws_distances_on_lines_of_their_order():
    rows = {"pair": (2, [0.17, 0.04, 0.01]), "one-sided": (1, [0.4, 0.2, 0.1])}
    (axes,) = figures.convergence(BETAS, rows, ("floor", 0.25)).axes
    lines = labelled(axes)
    assert np.allclose(lines["pair"].get_ydata(), rows["pair"][1])
    assert np.allclose(lines["one-sided"].get_ydata(), rows["one-sided"][1])
    assert np.allclose(lines["floor"].get_ydata(), 0.25)
    slopes = [line.get_ydata() for line in axes.lines if line.get_label().startswith("_")]
    assert np.allclose(slopes, [[0.16, 0.04, 0.01], [0.4, 0.2, 0.1]])
    assert [text.get_text() for text in axes.texts] == ["slope 2", "slope 1"]
    assert axes.get_xlabel() and axes.get_ylabel() and axes.get_xscale() == axes.get_yscale() == "log"


def test_convergence_refuses_rows_that_do_not_fit(refused):
    message = "errors: expected at least one row of distances, got none"
    refused(lambda: figures.convergence(BETAS, {}, ("floor", 0.25)), ValueError, message)
    message = "errors['pair']: expected 3 numbers, as many as betas, got 1"
    refused(lambda: figures.convergence(BETAS, {"pair": (2, [1.0])}, ("floor", 0.25)), ValueError, message)


def test_shifted_inputs_draws_both_changes_and_the_predicted_one():
    along, softmax, step = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.5]), torch.tensor([3.0, -4.0])
    left, right = figures.shifted_inputs(along, softmax, step, 0.5).axes
    assert np.allclose(left.lines[0].get_xydata(), [[1, 0.5], [2, 0.5]])
    assert np.allclose(left.lines[1].get_ydata(), 0.5)
    assert np.allclose(right.lines[0].get_xydata(), [[1, 3], [2, -4]])
    assert left.get_xlabel() and right.get_xlabel() and left.get_ylabel()


def test_shifted_inputs_refuses_other_numbers_of_queries(refused):
    one, two = torch.ones(1), torch.ones(2)
    message = "one gradient step: expected 2 numbers, as many as along, got 1"
    refused(lambda: figures.shifted_inputs(two, two, one, 0.0), ValueError, message)


def test_sink_distances_draws_limits_formula_and_rows():
    limits, rows = {0.0: 0.24, 10.0: 0.12}, {"sink 0": [0.3, 0.25, 0.24], "four heads": [0.1, 0.02, 0.005]}
    left, right = figures.sink_distances(limits, ([0.0, 1.0], [0.24, 0.22]), BETAS, rows).axes
    lines = labelled(left)
    assert np.allclose(lines["exact limit"].get_xydata(), [[0, 0.24], [1, 0.22]])
    assert np.allclose(lines[r"measured, small $\beta$"].get_xydata(), [[0, 0.24], [10, 0.12]])
    for name, line in labelled(right).items():
        assert np.allclose(line.get_xydata(), np.c_[BETAS, rows[name]])
    assert set(labelled(right)) == set(rows)
    assert left.get_xlabel() and right.get_xlabel() and left.get_ylabel()


def test_sink_distances_refuses_rows_that_do_not_fit(refused):
    exact = ([0.0, 1.0], [0.24])
    message = "exact: expected 2 numbers, as many as its weights, got 1"
    refused(lambda: figures.sink_distances({}, exact, BETAS, {}), ValueError, message)
    message = "rows['a']: expected 3 numbers, as many as betas, got 2"
    refused(lambda: figures.sink_distances({}, ([0.0], [1.0]), BETAS, {"a": [1.0, 2.0]}), ValueError, message)


def heads(beta, loss):
    return mesa.SoftmaxHeads((beta, -beta), (1.0, -1.0), loss, 0.01)


def test_head_losses_draws_curves_levels_and_trained_seeds():
    curves = {"one head": [heads(1.0, 3.0), heads(2.0, 2.0)], "a pair": [heads(1.0, 1.0), heads(2.0, 1.5)]}
    trained = {"a pair": ([1.1, 1.2], [0.5, 0.6])}
    left, right = figures.head_losses(curves, 2.0, {"a pair": {"step": 0.495}}, trained).axes
    assert np.allclose(labelled(left)["best outputs"].get_xydata(), [[1, 1.5], [2, 1.0]])
    assert np.allclose(labelled(right)["best outputs"].get_xydata(), [[1, 0.5], [2, 0.75]])
    assert np.allclose(labelled(right)["trained"].get_xydata(), [[1.1, 0.5], [1.2, 0.6]])
    assert len(labelled(left)["trained"].get_xdata()) == 0
    assert [text.get_text() for text in right.texts] == ["step"]
    assert right.collections[0].get_paths()[0].get_extents().y1 == pytest.approx(0.75 + 0.01)
    assert left.get_xlabel() and right.get_xlabel() and left.get_ylabel()


def test_head_losses_refuses_to_draw_nothing(refused):
    refused(lambda: figures.head_losses({}, 1.0, {}, {}), ValueError, "curves: expected at least one, got none")


def test_network_losses_draws_every_seed_and_every_level():
    curves = {"linear": torch.tensor([[1.0, 0.9], [0.5, 0.6]]), "softmax": torch.tensor([[1.1, 1.0], [0.7, 0.8]])}
    figure = figures.network_losses([0, 10], curves, {"one": 0.7, "step": 0.495})
    (axes,) = figure.axes
    drawn = [line.get_ydata() for line in axes.lines[:4]]
    assert np.allclose(np.array(drawn).T, torch.cat(list(curves.values()), dim=1))
    assert [line.get_ydata()[0] for line in axes.lines[4:]] == [0.7, 0.495]
    assert [text.get_text() for text in axes.texts] == ["one", "step"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["linear", "softmax"]
    assert axes.get_xlabel() and axes.get_ylabel()


def test_network_losses_refuses_other_steps_and_too_many_networks(refused):
    losses = torch.ones(2, 3)
    message = "curves['a']: expected 3 numbers, as many as steps, got 2"
    refused(lambda: figures.network_losses([0, 1, 2], {"a": losses}, {}), ValueError, message)
    message = "curves: expected at most 5 networks, got 6"
    refused(lambda: figures.network_losses([0, 1], dict.fromkeys("abcdef", losses), {}), ValueError, message)


def test_head_products_shows_every_head_in_one_scale():
    layer = mesa.two_head_softmax_construction(0.5, 1.2, 3, 1, 10)
    panels = figures.head_products(layer, x_dim=3).axes[:4]
    shown = [axes.images[0] for axes in panels]
    for image, matrix in zip(shown, [*layer.w_kq, *layer.w_pv], strict=True):
        assert np.allclose(image.get_array(), matrix)
    assert shown[0].get_clim() == shown[1].get_clim() == pytest.approx((-0.5, 0.5))
    assert shown[2].get_clim() == shown[3].get_clim() == pytest.approx((-1.2, 1.2))
    assert [axes.get_title() for axes in panels] == [f"{m}, head {h}" for m in ("$W_{KQ}$", "$W_{PV}$") for h in (1, 2)]


def test_head_products_refuses_an_ensemble(refused):
    ensemble = mesa.random_weights(3, 1, [0])
    message = "weights: expected a layer without ensemble axes, got (1, 1, 4, 4)"
    refused(lambda: figures.head_products(ensemble, x_dim=3), ValueError, message)
