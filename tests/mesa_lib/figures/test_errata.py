"""The pictures of published numbers draw the numbers that they are given, with labels, and refuse others."""

import torch

from mesa_lib import figures

LENGTHS = [10, 100]
PRINTED = torch.tensor([4.6, 17.2])
SIMULATED = {"small": torch.tensor([[4.0, 5.0, 4.5], [16.0, 17.0, 18.0]]), "wide": torch.tensor([[16.0], [70.0]])}


def test_printed_maxima_draw_the_dots_and_a_band_from_least_to_greatest():
    (axes,) = figures.printed_maxima(LENGTHS, PRINTED, SIMULATED).axes
    (dots,) = axes.lines
    assert list(dots.get_xdata()) == LENGTHS and list(dots.get_ydata()) == PRINTED.tolist()
    small = axes.collections[0].get_paths()[0].vertices
    assert {tuple(corner) for corner in small.tolist()} >= {(10, 4), (10, 5), (100, 16), (100, 18)}
    assert [note.get_text() for note in axes.texts] == ["small", "wide"]
    assert "N" in axes.get_xlabel() and "units" in axes.get_ylabel()


def test_printed_maxima_refuse_numbers_without_their_length(refused):
    draw = figures.printed_maxima
    refused(lambda: draw(LENGTHS, PRINTED[:1], SIMULATED), ValueError, "printed: expected 2 numbers, got shape (1,)")
    message = "simulated['small']: expected 2 rows, got shape (1, 3)"
    refused(lambda: draw(LENGTHS, PRINTED, {"small": SIMULATED["small"][:1]}), ValueError, message)


def test_no_reading_is_dropped_for_want_of_a_hatch():
    simulated = {str(factor): factor * SIMULATED["small"] for factor in range(1, 6)}
    (axes,) = figures.printed_maxima(LENGTHS, PRINTED, simulated).axes
    assert len(axes.collections) == 5 and [note.get_text() for note in axes.texts] == list(simulated)
