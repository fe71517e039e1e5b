"""The pictures of real weights draw the numbers that they are given, with labels, and refuse others."""

import numpy as np
import pytest
import torch

from mesa_lib import figures
from mesa_lib.figures import HeadStatistic


def test_near_zeros_have_a_row_of_dots_for_each_matrix_and_chance_above_it():
    (axes,) = figures.near_zeros({"built": ("constructed", [0.9], []), "real": ("trained", [0.1, 0.2], [0.08])}).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["built", "real"]
    _, built, chance, real, _ = axes.lines
    assert list(built.get_xdata()) == [0.9] and list(real.get_xdata()) == [0.1, 0.2]
    assert list(real.get_ydata()) == [1, 1] and list(chance.get_xdata()) == [0.08] and chance.get_ydata()[0] < 1
    assert axes.yaxis_inverted() and axes.get_xlabel() == "share of entries below 0.01"


def test_shares_lie_between_zero_and_one(refused):
    refused(lambda: figures.near_zeros({"a": ("trained", [1.2], [])}), ValueError, "rows['a']: expected shares between")
    refused(lambda: figures.near_zeros({}), ValueError, "rows: expected at least one")


@pytest.fixture
def statistics():
    values = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    return {"one": HeadStatistic(values, (0.4, 0.6), 1.0), "two": HeadStatistic(values / 2, (0.1, 0.2), 0.0)}


def test_head_statistics_have_a_row_for_each_number_and_a_column_for_each_model(statistics):
    deeper = {name: one._replace(values=torch.cat([one.values] * 3)) for name, one in statistics.items()}
    panels = figures.head_statistics({"small": statistics, "deep": deeper}).axes
    assert len(panels) == 4
    assert [panels[i].get_title(loc="left") for i in (0, 1)] == ["small", "deep"]
    assert [panels[i].get_ylabel() for i in (0, 2)] == ["one", "two"] and panels[3].get_xlabel() == "layer"
    construction, heads = panels[0].lines
    assert construction.get_ydata() == [1.0, 1.0] and construction.get_linestyle() == ":"
    assert np.allclose(heads.get_ydata(), statistics["one"].values.flatten())
    assert list(heads.get_xdata()) == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    (band,) = panels[0].patches
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.4, 0.6))
    assert panels[1].get_position().width > panels[0].get_position().width


def test_head_statistics_refuse_models_that_differ(statistics, refused):
    one = {"one": statistics["one"]}
    refused(
        lambda: figures.head_statistics({"a": statistics, "b": one}), ValueError, "models: expected the same numbers"
    )
    refused(lambda: figures.head_statistics({}), ValueError, "models: expected the same numbers for at least one model")
    flat = {"one": statistics["one"]._replace(values=torch.ones(3))}
    refused(lambda: figures.head_statistics({"a": flat}), ValueError, "expected shape (layer, head), got (3,)")


def test_head_maps_show_every_share_in_its_place(refused):
    shares = torch.rand(6, 4, generator=torch.Generator().manual_seed(0))
    panels = figures.head_maps({"first": shares, "rest": 1 - shares}).axes
    assert [axes.get_title() for axes in panels[:2]] == ["first", "rest"]
    assert np.allclose(panels[0].images[0].get_array(), shares)
    assert panels[0].images[0].get_extent() == [0.5, 4.5, 6.5, 0.5] and panels[0].images[0].get_clim() == (0, 1)
    assert panels[0].get_ylabel() == "layer" and panels[1].get_xlabel() == "head"
    refused(lambda: figures.head_maps({"a": shares * 3}), ValueError, "maps['a']: expected a matrix of numbers from 0")
    refused(lambda: figures.head_maps({}), ValueError, "maps: expected at least one")


def test_answers_by_order_mark_every_order_and_none(refused):
    orders = {"a": torch.tensor([0.2, 0.5]), "b": torch.tensor([0.9, 0.8])}
    (axes,) = figures.answers_by_order(orders, {"a": 0.01, "b": 0.02}).axes
    a, without, b, _ = axes.lines
    assert np.allclose(a.get_xdata(), [0.2, 0.5]) and list(without.get_xdata()) == [0.01]
    assert list(b.get_ydata()) == [1, 1] and axes.yaxis_inverted()
    assert axes.get_xlabel() == "probability of the answer" and axes.get_xlim()[0] < 0 < 1 < axes.get_xlim()[1]
    refused(
        lambda: figures.answers_by_order(orders, {"a": 0.1}), ValueError, "without: expected the prompts ['a', 'b']"
    )
    refused(
        lambda: figures.answers_by_order({"a": -orders["a"]}, {"a": 0.1}), ValueError, "answers['a']: expected shares"
    )


def test_answers_after_filler_are_full_with_demonstrations_and_dashed_without(refused):
    (axes,) = figures.answers_after_filler([0, 10], {"a": ([0.5, 0.2], [0.01, 0.02])}).axes
    told, untold, _ = axes.lines
    assert list(told.get_ydata()) == [0.5, 0.2] and told.get_linestyle() == "-"
    assert list(untold.get_ydata()) == [0.01, 0.02] and untold.get_linestyle() == "--"
    assert told.get_color() == untold.get_color() and axes.get_yscale() == "log" and axes.get_xlabel()
    refused(lambda: figures.answers_after_filler([0], {}), ValueError, "answers: expected at least one prompt")
    short = {"a": ([0.5], [0.0])}
    refused(lambda: figures.answers_after_filler([0], short), ValueError, "answers['a']: expected 1 probabilities > 0")


def test_memory_left_draws_medians_over_theory(refused):
    left = torch.tensor([[1.0, 1.0, 1.0], [0.9, 0.5, 0.7]])
    (axes,) = figures.memory_left([0, 5], {"keys": ("trained", left)}, [1.0, 0.6]).axes
    theory, measured = axes.lines
    assert list(theory.get_ydata()) == [1.0, 0.6] and theory.get_linewidth() == figures.style.BAND["linewidth"]
    assert np.allclose(measured.get_ydata(), [1.0, 0.7]) and len(axes.collections) == 1
    assert axes.get_xlabel() == "tokens read after the context" and axes.get_ylim()[0] == 0
    refused(lambda: figures.memory_left([0, 5], {}, [1.0]), ValueError, "theory: expected 2 numbers, one a step, got 1")
    wrong = {"keys": ("trained", left[:1])}
    refused(
        lambda: figures.memory_left([0, 5], wrong, [1.0, 0.6]), ValueError, "left['keys']: expected shape (2, task)"
    )
