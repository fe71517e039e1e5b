"""The pictures of in-context regression draw the numbers that they were given."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from mesa_lib import LinearTasks, context_loss, loss_gradient, optimal_eta, population_loss, zero_loss
from mesa_lib.figures import (
    loss_against_eta,
    moving_bowl,
    one_dimensional_tasks,
    step_beside_moved_targets,
)


def exact(*rows):
    return torch.tensor(rows, dtype=torch.float64)


@pytest.fixture
def line(draw_batch):
    return draw_batch(1, x_dim=1, y_dim=1, num_queries=1)


@pytest.fixture
def plane(draw_batch):
    return draw_batch(1, x_dim=2, y_dim=1, num_queries=1, noise_std=0.0)


def points(axes, marker):
    """All points of an axes that are drawn with a marker, as rows (x, y)."""
    lines = [np.column_stack(line.get_data()) for line in axes.lines if line.get_marker() == marker]
    return np.concatenate(lines)


def labelled(axes):
    return bool(axes.get_xlabel()) and bool(axes.get_ylabel())


def test_each_task_shows_its_context_its_line_and_its_query(draw_batch):
    batch = draw_batch(2, x_dim=1, y_dim=1, num_queries=1, noise_std=0.0)
    panels = one_dimensional_tasks(batch).axes
    assert len(panels) == 2
    assert labelled(panels[0])
    for task, axes in enumerate(panels):
        context = torch.cat([batch.context_x[task], batch.context_y[task]], dim=-1).numpy()
        np.testing.assert_allclose(points(axes, "o"), context)
        np.testing.assert_allclose(points(axes, "D"), [[batch.query_x[task].item(), batch.query_y[task].item()]])
        x, y = axes.lines[0].get_data()
        np.testing.assert_allclose(y, batch.teacher[task].item() * np.asarray(x))


def test_the_step_shows_equal_residuals_in_both_panels(line):
    weights, change = exact([0.4]), exact([-0.7])
    left, right = step_beside_moved_targets(line, weights, change).axes
    assert labelled(left)
    expected = (line.context_x[0] @ (weights + change).mT - line.context_y[0])[:, 0].numpy()
    for axes in (left, right):
        bars = np.array(axes.collections[0].get_segments())  # (example, end, coordinate)
        np.testing.assert_allclose(bars[:, 0, 0], line.context_x[0, :, 0])
        np.testing.assert_allclose(bars[:, 1, 1] - bars[:, 0, 1], expected, atol=1e-12)


def test_the_bowl_moves_so_that_standing_still_is_as_good_as_stepping(plane):
    weights = exact([0.1, -0.2])
    change = -loss_gradient(weights, plane)[0]
    left, right = moving_bowl(plane, weights, change).axes
    assert labelled(left)
    start, goal = points(left, "o")
    np.testing.assert_allclose(goal - start, change[0])
    np.testing.assert_allclose(points(right, "o"), [start])
    least, (was, is_now) = points(left, "+")[0], points(right, "+")
    np.testing.assert_allclose(least, plane.teacher[0, 0], atol=1e-9)  # no noise: the teacher has the least loss
    np.testing.assert_allclose(was, least)
    np.testing.assert_allclose(is_now - least, -change[0], atol=1e-9)
    landed = context_loss(weights + change, plane).item()
    for axes in (left, right):
        assert any(len(drawn.levels) == 1 and math.isclose(drawn.levels[0], landed) for drawn in axes.collections)


def test_losses_lie_on_the_parabola_relative_to_predicting_zero():
    tasks = LinearTasks(x_dim=3, num_context=4)
    losses = exact(0.3, 0.5, 0.7)
    (axes,) = loss_against_eta(tasks, {0.0: losses, 1.25: 2 * losses}).axes
    assert labelled(axes)
    etas, curve = axes.lines[0].get_data()
    at = int(np.argmin(curve))
    assert math.isclose(etas[at], optimal_eta(tasks), abs_tol=etas[1])
    assert math.isclose(curve[at], population_loss(tasks, float(etas[at])).item() / zero_loss(tasks))
    (bars,) = axes.containers
    np.testing.assert_allclose(bars[0].get_xydata(), [[0, 0.5 / zero_loss(tasks)], [1.25, 1.0 / zero_loss(tasks)]])
    (low, high), _ = bars[2][0].get_segments()
    assert math.isclose(high[1] - low[1], 4 * 0.2 / math.sqrt(3) / zero_loss(tasks))


def test_figures_are_returned_closed(line):
    before = plt.get_fignums()
    step_beside_moved_targets(line, exact([0.4]), exact([-0.7]))
    assert plt.get_fignums() == before


def test_tasks_of_other_dimensions_are_refused(refused, draw_batch, line, plane):
    refused(lambda: one_dimensional_tasks(plane), ValueError, "batch: expected 1 task(s) with x_dim = 1")
    many = draw_batch(4, x_dim=1, y_dim=1)
    refused(lambda: one_dimensional_tasks(many), ValueError, "batch: expected at most 3 tasks, got 4")
    row = exact([0.0])
    refused(lambda: step_beside_moved_targets(many, row, row), ValueError, "batch: expected 1 task(s)")
    refused(lambda: moving_bowl(line, row, row), ValueError, "batch: expected 1 task(s) with x_dim = 2")


def test_matrices_of_other_shapes_are_refused(refused, line, plane):
    row, pair = exact([0.0]), exact([0.0, 0.0])
    refused(
        lambda: step_beside_moved_targets(line, pair, row), ValueError, "weights: expected one matrix of shape (1, 1)"
    )
    refused(lambda: moving_bowl(plane, pair, row), ValueError, "weight_change: expected one matrix of shape (1, 2)")
    nan = exact([math.nan])
    refused(lambda: step_beside_moved_targets(line, row, nan), ValueError, "weight_change: expected finite numbers")


def test_tasks_without_a_teacher_are_refused(refused, line):
    hidden = type(line)(line.context_x, line.context_y, line.query_x, line.query_y)
    refused(lambda: one_dimensional_tasks(hidden), ValueError, "batch: expected tasks with a teacher")


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ({}, "measured: expected losses of at least one step size"),
        ({0.5: torch.zeros(1)}, "measured[0.5]: expected the losses of at least two tasks, got 1"),
        ({math.inf: torch.zeros(3)}, "measured: a step size: expected a finite number"),
        ({0.5: torch.tensor([0.1, math.nan])}, "measured[0.5]: expected finite numbers"),
        ({0.5: torch.zeros(3, 2)}, "measured[0.5]: expected a shape that ends in (6,)"),
    ],
)
def test_bad_losses_are_refused_by_name(refused, measured, message):
    refused(lambda: loss_against_eta(LinearTasks(), measured), ValueError, message)
