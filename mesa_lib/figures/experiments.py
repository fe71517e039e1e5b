"""Pictures of runs from the command line: losses of every part and seed, and a layer applied again and again."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from torch import Tensor

from mesa_lib.figures.style import COLORS, look, panel_label, reference_level, styled
from mesa_lib.validation import positive_number

_COLUMNS = 3


class PartLosses(NamedTuple):
    """What a panel of `losses_by_part` shows.

    Attributes:
        steps: the recorded steps.
        losses: half-MSE, shape (record, ensemble).
        levels: text -> half-MSE that theory gives.
        published: half-MSE that somebody else has published, if any.
    """

    steps: Sequence[int]
    losses: Float[Tensor, "record ensemble"]
    levels: Mapping[str, float]
    published: float | None = None


@styled
def losses_by_part(parts: Mapping[str, PartLosses]) -> Figure:
    """Losses on fresh tasks through training, a panel for each part and a line for each seed, beside theory.

    Args:
        parts: name -> what its panel shows.

    Returns:
        A figure with at most three panels a row, with one logarithmic axis of losses.

    Raises:
        ValueError: no part, or not one row of losses for each step.
    """
    if not parts:
        raise ValueError("parts: expected at least one, got none")
    for name, part in parts.items():
        if part.losses.dim() != 2 or len(part.losses) != len(part.steps):
            raise ValueError(
                f"parts[{name!r}]: expected {len(part.steps)} rows of losses, got shape {tuple(part.losses.shape)}"
            )
    columns = min(len(parts), _COLUMNS)
    rows = -(-len(parts) // columns)
    figure, places = plt.subplots(rows, columns, figsize=(2.4 * columns + 2.0, 2.7 * rows + 0.3), sharey=True,
                                  squeeze=False)  # fmt: skip
    for axes, (name, part) in zip(places.flat, parts.items(), strict=False):
        for text, level in part.levels.items():
            reference_level(axes, level, text, below=level < max(part.levels.values()))
        if part.published is not None:
            axes.axhline(part.published, color=COLORS["other"], linestyle=":", linewidth=1.4, zorder=2)
            axes.annotate("published", (0, part.published), xycoords=("axes fraction", "data"), xytext=(3, 3),
                          textcoords="offset points", fontsize=8.5, color=COLORS["other"])  # fmt: skip
        for curve in part.losses.double().unbind(-1):
            axes.plot(part.steps, curve.numpy(), **{**look("trained"), "linewidth": 1.1}, alpha=0.85, zorder=3)
        axes.set(yscale="log", xlim=(0, max(part.steps)), xlabel="training step")
        axes.margins(y=0.13)  # for the names of the outer levels
        _round_ticks(axes)
        count = part.losses.shape[-1]
        panel_label(axes, f"{name}, {count} seed{'s' if count > 1 else ''}")
    for axes in places.flat[len(parts) :]:
        axes.set_visible(False)
    for axes in places[:, 0]:
        axes.set_ylabel("loss, half-MSE")
    return figure


def _round_ticks(axes: Axes) -> None:
    """Round numbers on a logarithmic axis, written without powers of ten."""
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 10 * low else (1, 1.2, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


@styled
def applied_again(
    counts: Sequence[int],
    medians: Float[Tensor, "record ensemble"],
    lost: Float[Tensor, "record ensemble"],
    damping: float,
) -> Figure:
    """A trained layer applied again and again: the median task's loss, and the share of tasks that are lost.

    Args:
        counts: how often it was applied.
        medians: over tasks, relative to predicting zero; shape (record, ensemble).
        lost: share of tasks whose loss is more than ten times that of predicting zero; the same shape.
        damping: factor of each update.

    Returns:
        A figure with two panels, one line a seed.

    Raises:
        TypeError, ValueError: not one row for each count, or a damping that is not positive.
    """
    positive_number("damping", damping)
    for name, values in (("medians", medians), ("lost", lost)):
        if values.dim() != 2 or len(values) != len(counts):
            raise ValueError(f"{name}: expected {len(counts)} rows, got shape {tuple(values.shape)}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.1))
    for axes, values in ((left, medians), (right, lost)):
        for curve in values.double().unbind(-1):
            axes.plot(counts, curve.numpy(), marker="o", markersize=3, **{**look("trained"), "linewidth": 1.2})
        axes.set_xlabel("applications")
    left.set(yscale="log", ylabel="median $L / L_0$")
    _round_ticks(left)
    right.set(ylabel="share of tasks lost", ylim=(-0.03, 1.03))
    panel_label(left, rf"damping $\lambda$ = {damping:g}")
    return figure
