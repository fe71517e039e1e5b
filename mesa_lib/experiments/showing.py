"""What a run has come to: a table beside the paper's numbers, and a figure."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib import figures
from mesa_lib.experiments.catalogue import EXPERIMENTS, Published
from mesa_lib.experiments.files import RunError, write_whole
from mesa_lib.experiments.measures import levels, predict_zero
from mesa_lib.experiments.plans import finished_results, read_description
from mesa_lib.experiments.settings import Settings, from_plain

_SHOWN = ("loss", "median_loss", "relative_loss", "capped_loss", "prediction_difference", "sensitivity_difference",
          "sensitivity_cosine", "signal_next", "signal_previous", "signal_other")  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """One part of a run: its settings, and its finished seeds.

    Attributes:
        settings: of the part.
        results: seed -> the "results" of its file.
    """

    settings: Settings
    results: Mapping[int, Mapping[str, Any]]

    @property
    def steps(self) -> list[int]:
        """The recorded steps."""
        steps: list[int] = next(iter(self.results.values()))["steps"]
        return steps

    def curve(self, name: str) -> Tensor:
        """A measure through training, shape (record, seed)."""
        return torch.tensor([_numbers(one["curves"][name]) for one in self.results.values()], dtype=torch.float64).mT

    def final(self, name: str) -> list[float]:
        """A measure at the end, seed by seed; none where it was not measured."""
        return _numbers([one["final"][name] for one in self.results.values() if name in one["final"]])


def _numbers(values: list[float | str]) -> list[float]:
    """What JSON cannot write as a number stands there as a word."""
    return [float(value) for value in values]


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, Finished]]:
    """A run's description, and its parts that have finished seeds.

    Raises:
        RunError: the folder is no run's, or a file in it is damaged or another's.
    """
    if not folder.is_dir():
        raise RunError(f"{folder}: expected the folder of a run, got {'a file' if folder.exists() else 'no folder'}")
    if not (folder / "run.json").exists():
        raise RunError(f"{folder}: expected the folder of a run, got one without run.json")
    description = read_description(folder)
    results = finished_results(folder, description)
    return description, {
        part: Finished(from_plain(plain), {seed: one["results"] for seed, one in results[part].items()})
        for part, plain in description["settings"].items()
        if results[part]
    }


def table(folder: Path) -> str:
    """The numbers of a run, mean and range over seeds, beside published ones where there are any.

    Raises:
        RunError: see `read_run`.
    """
    description, parts = read_run(folder)
    lines = [f"{description['experiment']}, scale {description['scale']}, device {description['device']}"]
    chosen = EXPERIMENTS.get(description["experiment"])
    published = chosen.published if chosen else ()
    for part in description["settings"]:
        if part not in parts:
            lines.append(f"{part}: no seed finished")
            continue
        one = parts[part]
        lines.append(f"{part}: {len(one.results)} of {len(description['seeds'])} seeds finished")
        theirs = {number.measure: number for number in published if number.part == part}
        for name in dict.fromkeys([*_SHOWN, *theirs]):
            if found := one.final(name):
                lines.append(_row(name, found, theirs.get(name), description["scale"]))
        for text, level in {**levels(one.settings), "predicting zero": predict_zero(one.settings)}.items():
            lines.append(f"  theory: {text:32} {level:10.4g}")
    return "\n".join(lines)


def _row(name: str, found: list[float], theirs: Published | None, scale: str) -> str:
    values = torch.tensor(found, dtype=torch.float64)
    text = f"  {name:24} {float(values.mean()):10.4g}"
    if len(found) > 1:
        text += f"  ({float(values.min()):.4g} to {float(values.max()):.4g})"
    if theirs is None:
        return text
    where = "published" if scale == "paper" else "published, for the paper's scale"
    return f"{text}  {where}: {theirs.value:.4g}, {theirs.source}"


def show(folder: Path) -> Path:
    """Draw the figure of a run, into its folder.

    Returns:
        The picture's path.

    Raises:
        RunError: see `read_run`; or no seed is finished, or the picture cannot be written.
    """
    description, parts = read_run(folder)
    if not parts:
        raise RunError(f"{folder}: no seed is finished: there is nothing to draw")
    path = folder / "figure.png"
    chosen = EXPERIMENTS.get(description["experiment"])
    theirs = {one.part: one.value for one in chosen.published if one.measure == "relative_loss"} if chosen else {}
    picture = io.BytesIO()
    draw(parts, theirs).savefig(picture, format="png", dpi=160)
    write_whole(path, picture.getvalue())
    return path


def draw(parts: Mapping[str, Finished], published: Mapping[str, float]) -> Figure:
    """The figure that suits a run: copying signals, a roll-out, or else losses through training.

    Args:
        parts: the parts with finished seeds.
        published: part -> a loss relative to predicting zero.
    """
    first = next(iter(parts.values()))
    zero = predict_zero(first.settings)
    relative_levels = {text: level / zero for text, level in levels(first.settings).items()}
    if first.settings.evaluation.num_signals:
        shown = replace(first, results=dict(list(first.results.items())[:4]))  # as many as a page is wide
        signals = {name: shown.curve(f"signal_{name}") for name in ("next", "previous", "other")}
        rises = (signals["next"] > signals["next"].max(0).values / 2).int().argmax(0)
        marks = [first.steps[index] for index in rises.tolist()]
        return figures.copying_curves(first.steps, shown.curve("loss") / zero, signals, relative_levels, marks)
    if first.settings.evaluation.num_loops:
        counts = range(1, first.settings.evaluation.num_loops + 1, 3)
        medians, lost = (
            torch.tensor([first.final(f"roll_out_{kind}_{count}") for count in counts], dtype=torch.float64)
            for kind in ("median", "lost")
        )
        return figures.applied_again(list(counts), medians, lost, first.settings.evaluation.damping)
    return figures.losses_by_part({part: _panel(one, published.get(part)) for part, one in parts.items()})


def _panel(one: Finished, theirs: float | None) -> figures.PartLosses:
    zero = predict_zero(one.settings)
    known = {**levels(one.settings), "predicting zero": zero}
    return figures.PartLosses(one.steps, one.curve("loss"), known, None if theirs is None else theirs * zero)
