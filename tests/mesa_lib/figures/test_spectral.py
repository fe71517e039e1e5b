"""Pictures of methods on eigenvalues: they draw the numbers that they are given."""

import pytest
import torch

from mesa_lib import figures

CURVES = {
    "one": ("gd++", torch.tensor([1.0, 0.1, 0.01])),
    "two": ("gd++", torch.tensor([1.0, 0.2])),
    "bound": ("theory", torch.tensor([0.9, 0.05, 0.001])),
}


def drawn(axes):
    return {line.get_label(): (line.get_xdata(), line.get_ydata(), line) for line in axes.get_lines()}


@pytest.mark.parametrize("markers", [True, False])
def test_every_method_is_a_named_curve_and_curves_of_one_role_differ(markers):
    figure = figures.method_curves([1, 2, 3], CURVES, "layers", "error", "log y", {"goal": 0.02}, markers, (1e-3, 2))
    (axes,) = figure.axes
    lines = drawn(axes)
    for text, (_, values) in CURVES.items():
        assert list(lines[text][0]) == [1, 2, 3][: len(values)]
        assert [float(value) for value in lines[text][1]] == pytest.approx(values.tolist())
    one, two = lines["one"][2], lines["two"][2]
    assert (one.get_marker(), one.get_linewidth()) != (two.get_marker(), two.get_linewidth())
    assert axes.get_xlabel() == "layers" and axes.get_ylabel() == "error" and axes.get_yscale() == "log"
    assert axes.get_ylim() == (1e-3, 2) and "goal" in [text.get_text() for text in axes.texts]
    assert {text.get_text() for text in figure.legends[0].get_texts()} == set(CURVES)


def test_eigenvalues_are_drawn_with_their_images_and_condition_numbers():
    values = torch.linspace(0, 1, 5)
    figure = figures.eigenvalue_moves(values, {"a": values / 2}, {"a": torch.tensor([9.0, 3.0])})
    left, right = figure.axes
    assert [float(value) for value in drawn(left)["a"][1]] == pytest.approx((values / 2).tolist())
    assert list(drawn(right)["a"][0]) == [0, 1] and right.get_yscale() == "log"
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: figures.method_curves([1], {}, "x", "y"), ValueError, "curves: expected at least one, got none"),
        (
            lambda: figures.method_curves([1], CURVES, "x", "y"),
            ValueError,
            "curves['one']: expected 1 to 1 numbers, got",
        ),
        (
            lambda: figures.method_curves([1, 2, 3], CURVES, "x", "y", "log"),
            ValueError,
            "scale: expected one of 'linear'",
        ),
        (
            lambda: figures.method_curves([1], {"a": ("x", torch.ones(1))}, "x", "y"),
            ValueError,
            "role: expected one of",
        ),
        (
            lambda: figures.eigenvalue_moves(torch.ones(2), {}, {}),
            ValueError,
            "images, ratios: expected at least one each",
        ),
    ],
)
def test_a_bad_argument_is_refused(call, error, message, refused):
    refused(call, error, message)
