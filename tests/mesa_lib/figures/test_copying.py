"""The pictures of copying draw the numbers that they are given, with labels, and refuse others."""

import numpy as np
import pytest
import torch

import mesa_lib as mesa
from mesa_lib import figures


def test_attention_maps_show_every_share_in_its_place():
    shares = torch.rand(4, 6, generator=torch.Generator().manual_seed(0))
    panels = figures.attention_maps({"one": shares, "two": torch.eye(3)}).axes
    assert [axes.get_title() for axes in panels[:2]] == ["one", "two"]
    assert np.allclose(panels[0].images[0].get_array(), shares)
    assert panels[0].images[0].get_extent() == [0.5, 6.5, 4.5, 0.5]
    assert panels[0].get_ylabel() == "reader" and panels[1].get_xlabel() == "token that is read"
    assert panels[0].images[0].get_clim() == panels[1].images[0].get_clim() == (0, 1)


def test_missed_weights_draws_the_law_under_the_measured_shares():
    ks, law = [1, 2, 4], [0.9, 0.7, 0.3]
    (axes,) = figures.missed_weights(ks, law, {"one-hot": ("trained", law), "waves": ("gd++", [0.95, 0.9, 0.8])}).axes
    assert [list(line.get_ydata()) for line in axes.lines[:3]] == [law, law, [0.95, 0.9, 0.8]]
    assert axes.lines[0].get_linewidth() == figures.style.BAND["linewidth"]
    assert axes.get_xscale() == axes.get_yscale() == "log" and axes.get_xlabel() == "sharpness k"
    assert list(axes.lines[3].get_xdata()) == [1, 1]


def test_copying_curves_have_a_column_for_every_seed():
    losses = torch.tensor([[1.0, 1.0], [0.9, 0.8], [0.5, 0.6]])
    signals = {"next": losses.flip(0), "previous": losses / 10, "other": losses / 100}
    panels = figures.copying_curves([0, 10, 20], losses, signals, {"one step": 0.5}, [10, 20]).axes
    assert len(panels) == 4
    for member in range(2):
        above, below = panels[member], panels[2 + member]
        assert above.get_title(loc="left") == f"seed {member}" and below.get_xlabel() == "training step"
        assert np.allclose(above.lines[-1].get_ydata(), losses[:, member])
        mark, *curves = below.lines
        assert list(mark.get_xdata()) == [10 * (member + 1)] * 2
        assert [line.get_label() for line in curves] == list(signals)
        for line, values in zip(curves, signals.values(), strict=True):
            assert np.allclose(line.get_ydata(), values[:, member])
    assert panels[0].get_ylabel() and panels[2].get_ylabel()


def test_code_spectra_draw_singular_values():
    codes = {"one-hot": mesa.one_hot_codes(5), "waves": mesa.sinusoidal_codes(21, 10, dtype=torch.float64)}
    (axes,) = figures.code_spectra(codes).axes
    assert np.allclose(axes.lines[0].get_ydata(), 1)
    expected = torch.linalg.svdvals(codes["waves"]).clamp(min=1e-10)
    assert np.allclose(axes.lines[1].get_ydata(), expected, rtol=1e-6)
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "singular value"


def test_first_layers_draw_every_seed_of_every_kind():
    curves = torch.tensor([[1.0, 1.0], [0.5, 0.6]])
    kinds = {"softmax": ("trained", [0, 10], curves), "linear": ("gd++", [0, 20], curves / 2)}
    left, right = figures.first_layers({"a": kinds, "b": {"softmax": kinds["softmax"]}}, {"one step": 0.5}).axes
    drawn = [line for line in left.lines if line.get_linewidth() != figures.style.BAND["linewidth"]]
    assert [list(line.get_xdata()) for line in drawn] == [[0, 10]] * 2 + [[0, 20]] * 2
    assert np.allclose(drawn[3].get_ydata(), [0.5, 0.3])
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["softmax", "linear"]
    assert right.get_title(loc="left") == "b" and left.get_ylabel()


def test_knock_outs_draw_every_seed_in_the_row_of_its_part():
    panels = {"a": {"whole": [1.0, 1.1], "no query": [2.0, 3.0]}, "b": {"whole": [0.8]}}
    first, second = figures.knock_outs(panels, {"one step": 1.0}).axes
    dots = [(line.get_xdata()[0], line.get_ydata()[0], line.get_marker()) for line in first.lines[1:]]
    assert dots == [(1.0, 0, "o"), (1.1, 0, "s"), (2.0, 1, "o"), (3.0, 1, "s")]
    assert [label.get_text() for label in first.get_yticklabels()] == ["whole", "no query"]
    assert first.get_xlim() == second.get_xlim() and second.get_xlabel()


def test_induction_accuracy_draws_a_curve_for_every_method():
    (axes,) = figures.induction_accuracy([8, 64], {"step": ("trained", [0.3, 1.0]), "ls": ("gd++", [0.5, 1.0])}).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[0.3, 1.0], [0.5, 1.0]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["8", "64"]
    assert axes.get_xlabel() and axes.get_ylabel()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: figures.attention_maps({}), "maps: expected at least one, got none"),
        (
            lambda: figures.attention_maps({"a": torch.ones(2, 2, 2)}),
            "maps['a']: expected a matrix, got shape",
        ),
        (lambda: figures.missed_weights([1, 2], [0.5], {}), "law: expected 2 positive shares, got [0.5]"),
        (
            lambda: figures.missed_weights([1], [0.5], {"m": ("gd++", [0.0])}),
            "m: expected 1 positive shares, got",
        ),
        (
            lambda: figures.copying_curves([0, 1], torch.ones(2, 3), {"next": torch.ones(2, 2)}, {}, [0, 0, 0]),
            "next: expected 2 rows and 3 columns, got shape (2, 2)",
        ),
        (
            lambda: figures.copying_curves([0, 1], torch.ones(2, 3), {}, {}, [0]),
            "marks: expected one step for each of 3 seeds, got [0]",
        ),
        (lambda: figures.code_spectra({}), "codes: expected from one to four, got 0"),
        (lambda: figures.knock_outs({}, {}), "panels: expected at least one, got none"),
        (lambda: figures.knock_outs({"a": {"b": [0.0]}}, {}), "panels['a']['b']: expected positive losses, got [0.0]"),
        (lambda: figures.first_layers({}, {}), "panels: expected at least one, got none"),
        (
            lambda: figures.first_layers({"a": {"k": ("gd++", [0], torch.ones(2, 1))}}, {}),
            "k: expected 1 rows of losses, got shape (2, 1)",
        ),
        (lambda: figures.induction_accuracy([8], {}), "shares: expected at least one method, got none"),
        (lambda: figures.induction_accuracy([8], {"a": ("gd++", [1, 1])}), "a: expected 1 shares, got 2"),
    ],
)
def test_pictures_of_nothing_are_refused(call, message, refused):
    refused(call, ValueError, message)
