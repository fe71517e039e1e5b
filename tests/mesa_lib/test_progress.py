"""The progress bar counts, and shows nothing where nobody watches."""

import io

import pytest

from mesa_lib import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_it_counts_from_the_start_to_the_end(refused):
    assert list(progress.progress_steps(4, "counting")) == [0, 1, 2, 3]
    assert list(progress.progress_steps(4, "counting", start=2)) == [2, 3]
    refused(lambda: list(progress.progress_steps(0, "counting")), ValueError, "count: expected a positive integer")
    refused(lambda: list(progress.progress_steps(3, "counting", -1)), ValueError, "start: expected an integer >= 0")


@pytest.mark.parametrize(("disabled", "shown"), [("1", False), ("0", True)])
def test_on_a_terminal_it_shows_the_step_the_speed_and_the_note(disabled, shown, monkeypatch):
    screen = Terminal()
    monkeypatch.setenv("TQDM_DISABLE", disabled)
    monkeypatch.setattr("sys.stderr", screen)
    losses = iter([0.5, 0.25, 0.125, 0.0625])
    steps = progress.progress_steps(6, "training seed 3", start=2, note=lambda: f"loss {next(losses):g}")
    assert list(steps) == [2, 3, 4, 5]
    assert ("training seed 3" in screen.getvalue() and "/6 [" in screen.getvalue()) == shown
    assert next(losses, "all asked for") == ("all asked for" if shown else 0.5)
