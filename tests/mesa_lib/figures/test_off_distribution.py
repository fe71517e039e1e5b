"""The pictures of layers off their distribution draw what they are given, with labels, and refuse what does not fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mesa_lib import figures

AT = [0.5, 1.0, 2.0]
EXACT = torch.tensor([0.8, 0.5, 5.0])
TRAINED = torch.tensor([[0.81, 0.82], [0.51, 0.52], [5.1, 5.2]])
SWEEP = figures.Sweep(AT, EXACT, EXACT + 0.01, TRAINED, TRAINED + 0.1)
SHARES = {1.0: (0.03, 0.02, 0.04), 0.75: (1e-4, 5e-5, 2e-4)}
THRESHOLDS = {1.0: 1.3, 0.75: 1.8}


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_sweeps_draw_theory_trained_interpolated_and_constructed_in_every_panel():
    there = replace(SWEEP, sampled={1.0: (0.5, 0.05)}, home=1.0, swept=(0.5, 1.5))
    figure = figures.sweeps({"input range": SWEEP, "teacher": there})
    left, right = figure.axes
    assert [axes.get_xlabel() for axes in (left, right)] == ["input range", "teacher"] and left.get_ylabel()
    curves = [line.get_ydata() for line in left.lines if len(line.get_xdata()) == len(AT)]
    drawn = [EXACT, TRAINED[:, 0], TRAINED[:, 1], TRAINED[:, 0] + 0.1, TRAINED[:, 1] + 0.1, EXACT + 0.01]
    assert np.allclose(curves, [curve.numpy() for curve in drawn])
    assert not left.containers and not left.patches
    (dots,) = right.containers
    assert dots[0].get_xdata().tolist() == [1.0]
    assert np.allclose(dots[2][0].get_segments()[0][:, 1], [0.4, 0.6])
    (band,) = right.patches
    assert (band.get_x(), band.get_width()) == (0.5, 1.0)
    assert any(list(line.get_xdata()) == [1.0, 1.0] for line in right.lines)
    assert {"trained layers, 2 seeds", "constructed layer", "trained, sampled tasks"} <= set(texts(figure.legends[0]))
    assert left.get_xscale() == left.get_yscale() == "log"


def test_sweeps_refuse_nothing_and_a_sweep_refuses_curves_of_another_length(refused):
    with pytest.raises(ValueError, match="panels: expected at least one sweep, got none"):
        figures.sweeps({})
    refused(lambda: replace(SWEEP, exact=EXACT[:2]), ValueError, "Sweep.exact: expected 3 rows, one a place, got 2")
    refused(lambda: replace(SWEEP, trained=TRAINED[:1]), ValueError, "Sweep.trained: expected 3 rows")


def test_divergence_draws_every_task_every_threshold_and_every_share():
    largest = torch.linspace(0.5, 2, 50)
    left, right = figures.divergence(largest, THRESHOLDS, SHARES).axes
    assert sum(patch.get_height() for patch in left.patches) == 50
    assert [line.get_xdata()[0] for line in left.lines] == [1.3, 1.8]
    assert [text.get_text() for text in left.texts] == [r"$\lambda = 1$", r"$\lambda = 0.75$"]
    (dots,) = right.containers
    assert dots[0].get_xdata().tolist() == [1.0, 0.75] and dots[0].get_ydata().tolist() == [0.03, 1e-4]
    bars = [segment[:, 1] for segment in dots[2][0].get_segments()]
    assert np.allclose(bars, [(0.02, 0.04), (5e-5, 2e-4)])
    assert left.get_xlabel() and left.get_ylabel() and right.get_xlabel() and right.get_ylabel()


@pytest.mark.parametrize(
    ("thresholds", "shares", "message"),
    [
        (THRESHOLDS, {1.0: SHARES[1.0]}, r"shares: expected one for each damping of \[0.75, 1.0\], got \[1.0\]"),
        ({}, {}, "shares: expected one for each damping"),
        ({1.0: 1.3}, {1.0: (0.1, 0.2, 0.3)}, r"shares\[1.0\]: expected 0 <= low <= share <= high"),
    ],
)
def test_divergence_refuses_shares_that_do_not_fit(thresholds, shares, message):
    with pytest.raises(ValueError, match=message):
        figures.divergence(torch.ones(3), thresholds, shares)


def test_evaluation_sets_draws_the_mean_of_every_set_and_the_median():
    means = {1.0: torch.tensor([[0.3, 0.4, 0.5], [1.0, 2.0, 3.0]]), 0.7: torch.tensor([[0.3], [0.2]])}
    medians = {1.0: torch.tensor([0.3, 0.2]), 0.7: torch.tensor([0.31, 0.21])}
    figure = figures.evaluation_sets([5, 10], means, medians)
    for axes, damping in zip(figure.axes, means, strict=True):
        curves = [line.get_ydata() for line in axes.lines if list(line.get_xdata()) == [5, 10]]
        assert np.allclose(curves, [*means[damping].T.numpy(), medians[damping].numpy()])
        assert axes.get_title(loc="left") == rf"$\lambda = {damping:g}$" and axes.get_xlabel() == "steps"
    assert "median task" in texts(figure.legends[0])


def test_evaluation_sets_refuses_medians_and_rows_that_do_not_fit(refused):
    means = {1.0: torch.ones(2, 3)}
    for steps, medians, message in (
        ([5, 10], {}, "medians: expected one for each damping of [1.0], got []"),
        ([5, 10], {1.0: torch.ones(3)}, "medians[1.0]: expected 2 rows, one a step, got 3"),
        ([5, 10, 15], {1.0: torch.ones(3)}, "means[1.0]: expected 3 rows, one a step, got 2"),
    ):
        refused(lambda s=steps, m=medians: figures.evaluation_sets(s, means, m), ValueError, message)


def test_roll_outs_draws_losses_above_and_lost_tasks_below():
    loss, lost = torch.tensor([[0.5, 0.6], [0.3, float("inf")]]), torch.tensor([[0.0, 0.1], [0.0, 0.9]])
    lines = {"descent": ("gradient descent", loss[:, :1], lost[:, :1]), "layer": ("trained", loss, lost)}
    figure = figures.roll_outs({"a": lines, "b": lines})
    upper, other, lower, _ = figure.axes
    assert [axes.get_title(loc="left") for axes in (upper, other)] == ["a", "b"]
    assert np.allclose([line.get_ydata() for line in upper.lines], [[0.5, 0.3], [0.5, 0.3], [0.6, 10]])
    assert np.allclose([line.get_ydata() for line in lower.lines], [[0, 0], [0, 0], [0.1, 0.9]])
    assert [list(line.get_xdata()) for line in upper.lines] == [[1, 2]] * 3
    assert upper.get_ylabel() and lower.get_ylabel() and lower.get_xlabel() == "applications"
    assert texts(figure.legends[0]) == ["descent", "layer"]


def test_roll_outs_refuse_nothing_and_shares_of_another_shape(refused):
    refused(lambda: figures.roll_outs({}), ValueError, "panels: expected at least one, got none")
    unequal = {"a": {"layer": ("trained", torch.ones(2, 3), torch.ones(2, 2))}}
    message = "panels['a']['layer']: expected a shape that ends in (2, 3), got (2, 2)"
    refused(lambda: figures.roll_outs(unequal), ValueError, message)


def test_loss_by_size_draws_every_curve_every_seed_and_the_targets():
    exact = {5: torch.tensor([0.9, 0.5]), 10: torch.tensor([0.95, 0.7])}
    trained = {5: ([2, 8], torch.tensor([[0.9, 0.91], [0.5, 0.51]])), 10: ([8], torch.tensor([[0.71, 0.72]]))}
    (axes,) = figures.loss_by_size([2, 8], exact, trained, targets=(8, torch.tensor([0.73]))).axes
    drawn = [line.get_ydata() for line in axes.lines]
    wanted = [[0.9, 0.5], [0.9, 0.91], [0.5, 0.51], [0.95, 0.7], [0.71, 0.72], [0.73]]
    assert all(np.allclose(line, numbers) for line, numbers in zip(drawn, wanted, strict=True))
    assert "trained, several targets" in texts(axes.get_legend()) and axes.get_xlabel() and axes.get_ylabel()


def test_loss_by_size_refuses_sizes_that_do_not_fit():
    curve, layers = torch.ones(2), ([2], torch.ones(1, 3))
    with pytest.raises(ValueError, match=r"trained: expected layers for each d of \[5\], 1 to 4, got \[10\]"):
        figures.loss_by_size([2, 8], {5: curve}, {10: layers})
    with pytest.raises(ValueError, match=r"exact\[5\]: expected 1 numbers, one a length, got 2"):
        figures.loss_by_size([2], {5: curve}, {5: layers})
