"""The pictures of deep networks draw the numbers that they are given, with labels, and refuse others."""

import numpy as np
import pytest
import torch

import mesa_lib as mesa
from mesa_lib import figures

LADDER = {"descent": ("gradient descent", [0.15]), "net": ("trained", [0.091, 0.092, 0.093])}


def test_loss_ladders_draw_every_loss_in_its_row():
    panels = {"two": LADDER, "five": {"net": ("trained", [0.01, 0.2])}}
    two, five = figures.loss_ladders(panels).axes
    dots = [line for line in two.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots] == [[0.15], [0.091, 0.092, 0.093]]
    assert [set(line.get_ydata()) for line in dots] == [{0}, {1}]
    assert dots[0].get_markerfacecolor() == "white" and dots[1].get_markerfacecolor() == figures.COLORS["trained"]
    assert [label.get_text() for label in two.get_yticklabels()] == ["descent", "net"]
    assert two.get_title(loc="left") == "two" and five.get_xlabel() == "mean loss over tasks, half-MSE"
    for axes in (two, five):
        written = [label.get_text() for label in axes.get_xticklabels()]
        assert len(written) >= 3 and [float(text) for text in written] == pytest.approx(list(axes.get_xticks()))


def test_loss_ladders_refuse_what_has_no_place_on_their_axis(refused):
    message = "panels['two']['net']: expected positive losses, got [0.0]"
    refused(lambda: figures.loss_ladders({"two": {"net": ("trained", [0.0])}}), ValueError, message)
    refused(lambda: figures.loss_ladders({"two": {"net": ("trained", [])}}), ValueError, "expected positive losses")
    refused(lambda: figures.loss_ladders({}), ValueError, "panels: expected at least one, got none")


def test_agreement_ladder_draws_one_minus_each_cosine_and_labels_cosines():
    cosines = {"looped": torch.tensor([[0.9, 0.8], [0.99, 0.95]]), "five": torch.tensor([[0.5, 0.6], [0.7, 0.999]])}
    (axes,) = figures.agreement_ladder(["descent", "gd++"], cosines).axes
    drawn = np.array([line.get_xdata() for line in axes.lines])
    assert np.allclose(drawn, 1 - torch.cat(list(cosines.values())).numpy(), atol=1e-7)
    assert [round(float(np.mean(line.get_ydata()))) for line in axes.lines] == [0, 1, 0, 1]
    assert len({line.get_marker() for line in axes.lines}) == 2
    for label, tick in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True):
        assert float(label.get_text()) == pytest.approx(1 - tick)
    left, right = axes.get_xlim()
    assert left > right  # more alike is further right
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["looped", "five"]


def test_agreement_ladder_refuses_other_rows_and_too_many_networks(refused):
    rows = torch.zeros(2, 3)
    message = "cosines['net']: expected 1 rows, got shape (2, 3)"
    refused(lambda: figures.agreement_ladder(["one"], {"net": rows}), ValueError, message)
    many = {str(k): rows for k in range(6)}
    refused(lambda: figures.agreement_ladder(["a", "b"], many), ValueError, "expected at most 5 networks, got 6")


def test_layer_products_show_both_products_of_every_layer_in_their_own_scale():
    layers = [mesa.gd_plus_plus_construction(10 * k, 2.0 * k, 3, 1, 10) for k in (1, 3)]
    figure = figures.layer_products([mesa.canonicalize(layer) for layer in layers], x_dim=3)
    (first_kq, second_kq, first_pv, second_pv) = figure.axes
    for axes, matrix in zip(
        (first_kq, second_kq, first_pv, second_pv), (*[x.w_kq for x in layers], *[x.w_pv for x in layers]), strict=True
    ):
        assert np.allclose(axes.images[0].get_array(), matrix[0])
        assert axes.images[0].get_clim()[1] == pytest.approx(float(matrix.abs().max()))
    assert [axes.get_title() for axes in (first_kq, second_kq)] == ["layer 1", "layer 2"]
    assert [len(axes.patches) for axes in (first_pv, second_pv)] == [0, 1]  # only the last x rows are hatched
    assert second_pv.patches[0].get_hatch() == "////"


def test_layer_products_refuse_ensembles_and_nothing(refused):
    ensemble = mesa.random_weights(3, 1, [0])
    refused(lambda: figures.layer_products([ensemble], 3), ValueError, "layers[0]: expected no ensemble axes, got")
    refused(lambda: figures.layer_products([], 3), ValueError, "layers: expected at least one AttentionWeights")


def test_layer_numbers_draw_what_was_read_and_the_lines_beside_it():
    etas, gammas = torch.tensor([[0.3, 1.5, 9.0], [0.4, 1.6, 8.0]]), torch.tensor([[0.2, 1.0], [0.25, 1.1]])
    (axes,) = figures.layer_numbers(etas, gammas, {"ninefold": [0.3, 2.7, 24.3]}).axes
    lines = {marker: [] for marker in ("None", "o", "^")}
    for line in axes.lines:
        lines[line.get_marker()].append(list(line.get_ydata()))
    assert np.allclose(lines["o"], etas) and np.allclose(lines["^"], gammas)
    assert lines["None"] == [[0.3, 2.7, 24.3]]
    assert axes.get_yscale() == "log" and list(axes.get_xticks()) == [1, 2, 3]


def test_layer_numbers_refuse_a_gamma_for_the_last_layer_and_short_lines(refused):
    etas = torch.ones(2, 3)
    message = "gammas: expected shape (2, 2), got (2, 3)"
    refused(lambda: figures.layer_numbers(etas, etas, {}), ValueError, message)
    message = "references['short']: expected 3 numbers, got 2"
    refused(lambda: figures.layer_numbers(etas, etas[:, :2], {"short": [1.0, 2.0]}), ValueError, message)


def test_network_interpolation_draws_every_seed_of_every_way():
    one, other = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.1, 0.2]]), torch.full((3, 2), 0.15)
    panels = {"two": {"naive": ("other", one), "canonical": ("interpolated", other)}, "five": {"naive": ("other", one)}}
    left, right = figures.network_interpolation([0.0, 0.5, 1.0], panels).axes
    assert np.allclose(np.array([line.get_ydata() for line in left.lines]).T, torch.cat([one, other], dim=1))
    assert np.allclose(np.array([line.get_ydata() for line in right.lines]).T, one)
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["naive", "canonical"]
    assert left.get_ylabel() and right.get_xlabel() == "fraction of the way"
    assert left.get_title(loc="left") == "two"


def test_network_interpolation_refuses_other_fractions(refused):
    panels = {"two": {"naive": ("other", torch.ones(2, 3))}}
    message = "panels['two']['naive']: expected 3 rows and one column a seed, got shape (2, 3)"
    refused(lambda: figures.network_interpolation([0, 0.5, 1], panels), ValueError, message)
    refused(lambda: figures.network_interpolation([0, 1], {}), ValueError, "panels: expected at least one, got none")


def test_loss_by_depth_draws_curves_and_every_seed():
    curves = {"descent": ("gradient descent", [0.5, 0.4]), "gd++": ("gd++", [0.5, 0.1])}
    (axes,) = figures.loss_by_depth([1, 5], curves, torch.tensor([[0.5, 0.51], [0.12, 0.11]])).axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines[:2]}
    assert lines == {"descent": [0.5, 0.4], "gd++": [0.5, 0.1]}
    drawn = np.array([line.get_ydata() for line in axes.lines[2:]])
    assert np.allclose(drawn, [[0.5, 0.12], [0.51, 0.11]])
    assert list(axes.get_xticks()) == [1, 5] and axes.get_yscale() == "log"


def test_loss_by_depth_refuses_rows_without_their_depth(refused):
    curve = {"descent": ("gradient descent", [0.5])}
    message = "curves['descent']: expected 2 losses, got 1"
    refused(lambda: figures.loss_by_depth([1, 5], curve, torch.ones(2, 3)), ValueError, message)
    message = "trained: expected 2 rows and a column a seed, got shape (3, 2)"
    refused(lambda: figures.loss_by_depth([1, 5], {}, torch.ones(3, 2)), ValueError, message)


def test_no_reference_is_dropped_for_want_of_a_line_style():
    references = {f"times {factor}": [1.0 * factor, 9.0 * factor] for factor in range(1, 6)}
    (axes,) = figures.layer_numbers(torch.tensor([[1.0, 9.0]]), torch.tensor([[1.0]]), references).axes
    assert {line.get_label() for line in axes.lines} >= set(references)
