"""The pictures of other tasks draw the numbers that they are given, with labels, and refuse others."""

import numpy as np
import pytest
import torch

from mesa_lib import figures

VARIANCES = torch.tensor([0.1, 0.5, 1.0])
STEPS = torch.tensor([3.0, 2.0, 1.0])
SEEDS = torch.tensor([[2.9, 2.1, 1.1], [3.1, 1.9, 0.9]])


def preconditioner(**changes):
    given = {
        "variances": VARIANCES,
        "exact": STEPS,
        "sampled": (STEPS + 0.05, torch.full((3,), 0.02)),
        "trained": SEEDS,
        "scalar": 1.5,
        "losses": {"best step size": 0.55, "trained layer": torch.tensor([0.51, 0.52]), "best matrix": 0.5},
    }
    return figures.preconditioner_against_variance(**(given | changes))


def test_the_preconditioner_is_drawn_beside_its_estimate_the_seeds_and_the_single_step():
    left, right = preconditioner().axes
    curves = {line.get_label(): line for line in left.lines}
    assert np.allclose(curves["optimal, exact"].get_ydata(), STEPS)
    assert np.allclose(curves["best single step size"].get_ydata(), 1.5)
    dots = [line for line in left.lines if line.get_marker() == "o"]
    assert np.allclose([line.get_ydata() for line in dots], SEEDS)
    assert np.allclose(left.containers[0].lines[0].get_ydata(), STEPS + 0.05)
    segments = left.containers[0].lines[2][0].get_segments()  # two standard errors up and down
    assert np.allclose([np.ptp(segment[:, 1]) for segment in segments], 4 * 0.02)
    assert left.get_xscale() == "log" and left.get_xlabel() and left.get_ylabel() and "L_0" in right.get_xlabel()
    assert [text.get_text() for text in right.get_yticklabels()] == ["best step size", "trained layer", "best matrix"]
    assert [np.round(np.unique(np.asarray(line.get_xdata(), float)), 6).tolist() for line in right.lines] == [
        [0.55],
        [0.51, 0.52],
        [0.5],
    ]


@pytest.mark.parametrize("name", ["exact", "trained"])
def test_steps_along_other_directions_are_refused(name, refused):
    refused(lambda: preconditioner(**{name: torch.ones(2, 4)[0 if name == "exact" else slice(None)]}), ValueError, name)


def test_steps_on_one_curve_draws_every_kind_at_its_effective_examples(refused):
    kinds = {"signs": (19.0, torch.tensor([0.52, 0.53])), "normal": (21.0, torch.tensor([0.47, 0.48]))}
    (axes,) = figures.steps_on_one_curve(([19.0, 22.0], [0.53, 0.45]), kinds).axes
    curve, signs, normal = axes.lines
    assert np.allclose(curve.get_xydata(), [[19.0, 0.53], [22.0, 0.45]])
    assert np.allclose(signs.get_xydata(), [[19.0, 0.52], [19.0, 0.53]])
    assert np.allclose(normal.get_xydata(), [[21.0, 0.47], [21.0, 0.48]])
    assert signs.get_marker() != normal.get_marker() and signs.get_color() != normal.get_color()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["optimal step, exact", "signs", "normal"]
    assert axes.get_xlabel() and axes.get_ylabel()
    empty = lambda: figures.steps_on_one_curve(([1.0], [1.0]), {})  # noqa: E731
    refused(empty, ValueError, "kinds: expected 1 to 7 kinds of tasks, got 0")


def test_stored_start_draws_every_place_against_the_mean(refused):
    mean = torch.tensor([1.0, -0.5, 0.2])
    figure = figures.stored_start(mean, {"slot": SEEDS, "values": 2 * SEEDS})
    for axes, text, factor in zip(figure.axes, ("slot", "values"), (1, 2), strict=True):
        assert axes.get_title(loc="left") == text and axes.get_xlabel()
        dots = axes.lines[1:]
        assert np.allclose([line.get_xdata() for line in dots], mean.expand(2, 3))
        assert np.allclose([line.get_ydata() for line in dots], factor * SEEDS)
    refused(lambda: figures.stored_start(mean, {}), ValueError, "places: expected at least one place")
    message = "places['slot']: expected a shape that ends in (3,), got (2, 2)"
    refused(lambda: figures.stored_start(mean, {"slot": SEEDS[:, :2]}), ValueError, message)


def test_loss_rows_draws_predictions_seeds_and_levels(refused):
    rows = {"one": (0.4, torch.tensor([0.41, 0.42])), "two": (0.3, None)}
    (axes,) = figures.loss_rows(rows, {"zero": 0.5}).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "two"]
    drawn = [sorted(set(np.round(np.asarray(line.get_xdata(), dtype=float), 6).tolist())) for line in axes.lines]
    assert drawn == [[0.4], [0.41, 0.42], [0.3], [0.5]]
    assert "L_0" in axes.get_xlabel()
    refused(lambda: figures.loss_rows({}, {}), ValueError, "rows: expected at least one row of losses, got none")


def test_longer_tests_draws_curves_floors_and_seeds(refused):
    exact, floors = {"normal": torch.tensor([0.5, 0.3])}, {"normal": 0.27}
    (axes,) = figures.longer_tests([10, 100], exact, floors, ([10, 100], SEEDS.T[:2] / 10), made_for=10).axes
    curve, floor, *rest = axes.lines
    assert np.allclose(curve.get_xydata(), [[10, 0.5], [100, 0.3]])
    assert np.allclose(floor.get_ydata(), 0.27)
    assert np.allclose([line.get_ydata() for line in rest[:2]], SEEDS.T[:2] / 10)
    assert axes.get_xscale() == "log" and axes.get_xlabel() and axes.get_ylabel()
    others = lambda: figures.longer_tests([10], exact, {"other": 0.2}, ([10], SEEDS[:1]), 10)  # noqa: E731
    refused(others, ValueError, "floors: expected one for each of ['normal'], got ['other']")
    short = lambda: figures.longer_tests([10], exact, floors, ([10], SEEDS[:1]), 10)  # noqa: E731
    refused(short, ValueError, "exact['normal']: expected 1 numbers, one a length, got 2")
