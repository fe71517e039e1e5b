"""The pictures of runs draw the numbers that they are given, with labels, and refuse others."""

import pytest
import torch

from mesa_lib import figures

STEPS = [0, 5, 10]
LOSSES = torch.tensor([[1.0, 0.9], [0.5, 0.6], [0.2, 0.3]])


def test_losses_by_part_draw_one_panel_a_part_and_one_line_a_seed():
    levels = {"floor": 0.1, "zero": 2.0}
    parts = {name: figures.PartLosses(STEPS, (k + 1) * LOSSES, levels) for k, name in enumerate("abc")}
    parts["d"] = figures.PartLosses([0, 1], LOSSES[:2], {"other": 0.3}, published=0.7)
    figure = figures.losses_by_part(parts)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == [f"{name}, 2 seeds" for name in parts]
    for axes, part in zip(panels, parts.values(), strict=True):
        *marks, one, two = axes.lines
        heights = [*part.levels.values(), *([part.published] if part.published else [])]
        assert [line.get_ydata()[0] for line in marks] == heights
        texts = [*part.levels, *(["published"] if part.published else [])]
        assert [(note.get_text(), note.xy[1]) for note in axes.texts] == list(zip(texts, heights, strict=True))
        for line, member in ((one, 0), (two, 1)):
            assert list(line.get_xdata()) == list(part.steps)
            assert line.get_ydata() == pytest.approx(part.losses[:, member].tolist(), rel=1e-6)
        assert axes.get_xlabel() == "training step" and axes.get_yscale() == "log"
    assert panels[0].get_ylabel() == "loss, half-MSE" and len(figure.axes) == 6


def test_a_layer_applied_again_draws_medians_and_shares_for_every_seed():
    figure = figures.applied_again([1, 4, 7], LOSSES, LOSSES / 10, damping=0.75)
    left, right = figure.axes
    for axes, values in ((left, LOSSES), (right, LOSSES / 10)):
        assert [list(line.get_xdata()) for line in axes.lines] == [[1, 4, 7]] * 2
        drawn = torch.tensor([list(line.get_ydata()) for line in axes.lines]).mT
        torch.testing.assert_close(drawn, values.double(), check_dtype=False)
        assert axes.get_xlabel() == "applications"
    assert "0.75" in left.get_title(loc="left") and "median" in left.get_ylabel() and "share" in right.get_ylabel()


def test_wrong_numbers_are_refused(refused):
    refused(lambda: figures.losses_by_part({}), ValueError, "parts: expected at least one, got none")
    message = "parts['a']: expected 3 rows of losses, got shape (2, 2)"
    short = figures.PartLosses(STEPS, LOSSES[:2], {})
    refused(lambda: figures.losses_by_part({"a": short}), ValueError, message)
    message = "lost: expected 3 rows, got shape (2, 2)"
    refused(lambda: figures.applied_again([1, 4, 7], LOSSES, LOSSES[:2], 0.5), ValueError, message)
    message = "damping: expected a number > 0, got 0.0"
    refused(lambda: figures.applied_again([1, 4, 7], LOSSES, LOSSES, 0.0), ValueError, message)
