"""The pictures of rival accounts draw the numbers that they are given, with labels, and refuse others."""

import math

import numpy as np
import pytest
import torch

from mesa_lib import figures
from mesa_lib.figures import Curve


def drawn(axes):
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]


def test_errors_are_drawn_as_given_with_exact_ones_beneath():
    curves = [Curve("exact", "theory", [1, 2], [0.9, 0.8]), Curve("net", "trained", [1, 2], [0.95, math.nan])]
    left, right = figures.errors_against_examples({"one": curves, "two": curves[1:]}).axes
    (x, exact), (_, net) = drawn(left)[:2]
    assert (x, exact) == ([1, 2], [0.9, 0.8]) and net[0] == 0.95 and math.isnan(net[1])
    assert left.lines[0].get_zorder() < left.lines[1].get_zorder()
    assert left.get_ylabel() and left.get_xlabel() == "examples in the prompt" and left.get_title(loc="left") == "one"
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["net"]


def test_every_measured_curve_has_a_marker_of_its_own():
    curves = [Curve(str(k), "other", [0], [0.5]) for k in range(8)]
    (axes,) = figures.errors_against_examples({"many": curves}).axes
    markers = [line.get_marker() for line in axes.lines[:8]]
    assert len(set(markers)) == 8


def test_mini_batches_are_dots_with_bars_on_the_exact_line():
    (axes,) = figures.errors_by_mini_batch([1, 4], [0.2, 0.3], [0.21, 0.29], [0.01, 0.02]).axes
    assert drawn(axes)[0] == ([1, 4], [0.2, 0.3])
    assert drawn(axes)[1] == ([1, 4], [0.21, 0.29])
    bars = axes.containers[0].lines[2][0].get_segments()
    assert np.allclose([segment[:, 1] for segment in bars], [[0.19, 0.23], [0.25, 0.33]])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "4"]
    assert axes.get_xlabel() and axes.get_ylabel()


def test_distances_are_written_and_the_nearest_framed():
    values = torch.tensor([[0.5, 2e-4], [0.03, 7.0]])
    (axes,) = figures.distances(["a", "b"], ["one", "two"], {"ten": values}).axes
    assert [text.get_text() for text in axes.texts] == ["0.5", "0.03", "0.0002", "7"]
    framed = [(round(patch.get_x() + 0.48), round(patch.get_y() + 0.48)) for patch in axes.patches]
    assert framed == [(0, 1), (1, 0)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "two"]


def test_layers_are_matched_seed_by_seed_with_a_line_through_the_medians():
    counts = torch.tensor([[1, 2, 1], [5, 40, 6]])
    left, right = figures.layer_matches(
        {"steps": {"Newton": ("interpolated", counts)}, "alike": {"Newton": ("interpolated", counts / 100)}}
    ).axes
    assert drawn(left)[0] == ([1, 2], [1.0, 6.0])
    assert [y for _, y in drawn(left)[1:]] == [[1, 5], [2, 40], [1, 6]]
    assert (left.get_yscale(), right.get_yscale()) == ("log", "linear")
    assert left.get_xlabel() == "layer" and left.get_legend() is not None


def test_concepts_are_shown_for_every_length():
    left, right = figures.concept_inference([0, 1, 4], {3: [0.2, 0.5, 0.9]}, {3: [0.3, 0.6, 1.0]}).axes
    assert drawn(left)[0] == ([0, 1, 2], [0.2, 0.5, 0.9])
    assert drawn(right)[0] == ([0, 1, 2], [0.3, 0.6, 1.0])
    assert [label.get_text() for label in left.get_xticklabels()] == ["0", "1", "4"]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["examples of 3 symbols"]


def test_two_objectives_share_an_axis():
    panels = {
        "honest": [Curve("context", "gradient descent", [0, 1], [1, 0.2])],
        "lying": [Curve("query", "trained", [0, 1], [1, 1.4])],
    }
    left, right = figures.two_objectives([0, 1], panels).axes
    assert drawn(left)[0] == ([0, 1], [1, 0.2]) and drawn(right)[0] == ([0, 1], [1, 1.4])
    assert left.get_ylim() == right.get_ylim() and left.get_ylabel() and left.get_xlabel()


@pytest.mark.parametrize("draw", [figures.errors_against_examples, figures.layer_matches])
def test_pictures_refuse_to_be_empty(draw, refused):
    refused(lambda: draw({}), ValueError, "panels: expected at least one, got none")


def test_pictures_refuse_numbers_that_do_not_fit(refused):
    crooked = {"one": [Curve("net", "trained", [1, 2], [0.5])]}
    refused(lambda: figures.errors_against_examples(crooked), ValueError, "as many numbers as places in 'net'")
    refused(lambda: figures.two_objectives([0], crooked), ValueError, "as many numbers as places in 'net'")
    refused(lambda: figures.two_objectives([0], {}), ValueError, "panels: expected at least one, got none")
    refused(
        lambda: figures.errors_by_mini_batch([1], [0.1], [0.1, 0.2], [0.1]), ValueError, "means: expected 1 numbers"
    )
    values = torch.tensor([[0.5]])
    refused(lambda: figures.distances(["a", "b"], ["one"], {"ten": values}), ValueError, "panels['ten']: expected")
    refused(lambda: figures.distances(["a"], ["one"], {"ten": 0 * values}), ValueError, "panels['ten']: expected")
    refused(lambda: figures.distances(["a"], ["one"], {}), ValueError, "panels: expected at least one, got none")
    flat = {"steps": {"Newton": ("other", torch.ones(3))}}
    refused(lambda: figures.layer_matches(flat), ValueError, "panels['steps']['Newton']: expected (layer, seed)")
    refused(lambda: figures.concept_inference([0, 1], {3: [0.1]}, {3: [0.1]}), ValueError, "as many numbers as places")
