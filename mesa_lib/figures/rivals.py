"""Pictures of rival accounts: errors of many learners on one axis, who is like whom, concepts, and two objectives."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

import matplotlib.pyplot as plt
from jaxtyping import Float, Shaped
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from mesa_lib.figures.style import BAND, COLORS, MARKERS, look, panel_label, styled


class Curve(NamedTuple):
    """One line of a picture.

    Attributes:
        name: for the legend; "" for none.
        role: one of `COLORS`; "theory" draws a broad pale line under the others.
        x: where.
        y: what, as many numbers; NaN leaves a gap.
    """

    name: str
    role: str
    x: Sequence[float]
    y: Sequence[float]


def _draw(axes: Axes, curves: Sequence[Curve]) -> None:
    number = 0
    for curve in curves:
        if len(curve.x) != len(curve.y) or not curve.x:
            raise ValueError(
                f"curves: expected as many numbers as places in {curve.name!r}, at least one, got {len(curve.y)} "
                f"and {len(curve.x)}"
            )
        if curve.role == "theory":
            axes.plot(curve.x, curve.y, **BAND, label=curve.name or None)
            continue
        axes.plot(curve.x, curve.y, **{**look(curve.role), "linewidth": 1.3}, marker=MARKERS[number % len(MARKERS)],
                  markersize=4.5, markerfacecolor="white" if number % 2 else None, label=curve.name or None,
                  zorder=3)  # fmt: skip
        number += 1


@styled
def errors_against_examples(panels: Mapping[str, Sequence[Curve]], top: float = 1.25) -> Figure:
    """Normalised error L / L0 against the number of examples, one panel below the other.

    Args:
        panels: heading -> curves; those of role "theory" are exact.
        top: where the vertical axis ends; curves may leave it.

    Returns:
        A figure with one panel a heading and a legend below each.

    Raises:
        ValueError: no panel, or a curve whose numbers and places do not match.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    figure, places = plt.subplots(len(panels), 1, figsize=(6.0, 4.3 * len(panels)), squeeze=False)
    for axes, (heading, curves) in zip(places[:, 0], panels.items(), strict=True):
        _draw(axes, curves)
        axes.axhline(1.0, color="#999999", linewidth=0.8, zorder=0)
        axes.set(ylim=(-0.03, top), xlim=(0, None))
        axes.set(xlabel="examples in the prompt", ylabel=r"normalised error $L / L_0$")
        panel_label(axes, heading)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return figure


@styled
def errors_by_mini_batch(
    sizes: Sequence[int], theory: Sequence[float], means: Sequence[float], errors: Sequence[float]
) -> Figure:
    """Relative loss after one pass over a context, against the size of the mini-batch: from delta rule to one step.

    Args:
        sizes: the mini-batches b.
        theory: the exact loss at each.
        means: the measured loss at each.
        errors: its standard error; bars show two of them.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: not one number of each kind for each size.
    """
    for name, values in (("theory", theory), ("means", means), ("errors", errors)):
        if len(values) != len(sizes):
            raise ValueError(f"{name}: expected {len(sizes)} numbers, one for each size, got {len(values)}")
    figure, axes = plt.subplots(figsize=(6.4, 3.2))
    axes.plot(sizes, theory, **BAND, label=r"exact, $(1 - b / (b + d + 1))^{N/b}$")
    axes.errorbar(sizes, means, yerr=[2 * error for error in errors], fmt="o", color=COLORS["gradient descent"],
                  markersize=5, capsize=3, zorder=3, label="measured, two standard errors")  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(sizes), [str(size) for size in sizes])
    axes.set(xlabel="examples in a mini-batch, $b$", ylabel=r"loss after one pass, $L / L_0$")
    axes.margins(y=0.15)
    axes.annotate("delta rule", (sizes[0], theory[0]), xytext=(6, -14), textcoords="offset points", fontsize=9)
    axes.annotate("one gradient step", (sizes[-1], theory[-1]), xytext=(-8, -4), textcoords="offset points",
                  ha="right", va="center", fontsize=9)  # fmt: skip
    axes.legend(loc="upper left")
    return figure


@styled
def distances(
    rows: Sequence[str], columns: Sequence[str], panels: Mapping[str, Float[Tensor, "reference learner"]]
) -> Figure:
    """How far learners are from algorithms, as numbers on a logarithmic scale of greys: light is near.

    Args:
        rows: the algorithms.
        columns: the learners.
        panels: heading -> distances, shape (row, column), positive.

    Returns:
        A figure with one panel a heading; the nearest algorithm of each learner is framed.

    Raises:
        ValueError: no panel, or distances of another shape or not positive.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    for heading, values in panels.items():
        if tuple(values.shape) != (len(rows), len(columns)) or not bool((values > 0).all()):
            raise ValueError(
                f"panels[{heading!r}]: expected positive numbers of shape {(len(rows), len(columns))}, "
                f"got shape {tuple(values.shape)}"
            )
    scale = LogNorm(1e-4, 1e3, clip=True)  # the same in every picture, and light enough for black numbers
    figure, places = plt.subplots(1, len(panels), figsize=(7.4, 0.32 * len(rows) + 1.1), sharey=True, squeeze=False)
    for axes, (heading, values) in zip(places[0], panels.items(), strict=True):
        axes.imshow(values.double().numpy(), cmap="Greys", norm=scale, aspect="auto")
        for column in range(len(columns)):
            nearest = int(values[:, column].argmin())
            for row in range(len(rows)):
                value = float(values[row, column])
                axes.text(column, row, f"{value:.1g}" if value < 1000 else ">1000", ha="center", va="center",
                          fontsize=8, fontweight="bold" if row == nearest else "normal")  # fmt: skip
            axes.add_patch(Rectangle((column - 0.48, nearest - 0.48), 0.96, 0.96, fill=False,
                                         edgecolor=COLORS["trained"], linewidth=2))  # fmt: skip
        axes.set_xticks(range(len(columns)), list(columns), fontsize=9)
        axes.set_yticks(range(len(rows)), list(rows), fontsize=9)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        panel_label(axes, heading)
    return figure


@styled
def layer_matches(panels: Mapping[str, Mapping[str, tuple[str, Shaped[Tensor, "layer ensemble"]]]]) -> Figure:
    """What each layer of a network is most like: numbers of steps, or similarities, against the layer.

    Args:
        panels: heading -> {name -> (role, numbers of shape (layer, ensemble))}. Panels whose numbers reach beyond ten
            get a logarithmic axis.

    Returns:
        A figure with one panel a heading; each seed is a marker, and lines join the medians.

    Raises:
        ValueError: no panel, or numbers that are no (layer, ensemble) matrix.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    figure, places = plt.subplots(1, len(panels), figsize=(7.4, 3.3), squeeze=False)
    for axes, (heading, series) in zip(places[0], panels.items(), strict=True):
        for number, (name, (role, values)) in enumerate(series.items()):
            if values.dim() != 2:
                raise ValueError(f"panels[{heading!r}][{name!r}]: expected (layer, seed), got {tuple(values.shape)}")
            layers = range(1, len(values) + 1)
            axes.plot(layers, values.double().median(-1).values.tolist(), **{**look(role), "linewidth": 1.3}, zorder=2)
            for seed in range(values.shape[1]):
                axes.plot(layers, values[:, seed].tolist(), MARKERS[number], color=COLORS[role], markersize=5,
                          markerfacecolor="white", zorder=3, label=name if seed == 0 else None)  # fmt: skip
        if max(float(values.max()) for _, values in series.values()) > 10:
            axes.set_yscale("log")
        axes.set(xlabel="layer", xticks=list(layers))
        panel_label(axes, heading)
        axes.legend(fontsize=8.5)
    return figure


@styled
def concept_inference(
    numbers: Sequence[int], posterior: Mapping[int, Sequence[float]], agreement: Mapping[int, Sequence[float]]
) -> Figure:
    """A Bayesian reader of prompts: how sure it is of the right concept, and how often it answers as one who knows.

    Args:
        numbers: examples in the prompt.
        posterior: length of an example -> mean probability of the right concept at each number.
        agreement: the same -> share of prompts with the answer of a reader who is told the concept.

    Returns:
        A figure with two panels.

    Raises:
        ValueError: not one number for each place.
    """
    figure, places = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
    shown = (("probability of the right concept", posterior), ("answers as if told the concept", agreement))
    roles = ("other", "interpolated", "constructed", "gd++")
    for axes, (heading, by_length) in zip(places, shown, strict=True):
        curves = [
            Curve(f"examples of {length} symbols", role, range(len(numbers)), list(values))
            for role, (length, values) in zip(cycle(roles), by_length.items(), strict=False)
        ]
        _draw(axes, curves)
        axes.set_xticks(range(len(numbers)), [str(number) for number in numbers])
        axes.set(xlabel="examples in the prompt", ylim=(0, 1.05))
        panel_label(axes, heading)
    places[0].set_ylabel("mean over prompts")
    places[1].legend(loc="lower right")
    return figure


@styled
def two_objectives(steps: Sequence[int], panels: Mapping[str, Sequence[Curve]]) -> Figure:
    """Two losses of one network, layer after layer: that of its context, and that of its query.

    Args:
        steps: the ticks of the horizontal axis.
        panels: heading -> curves over these steps.

    Returns:
        A figure with one panel a heading.

    Raises:
        ValueError: no panel, or a curve whose numbers and places do not match.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    figure, places = plt.subplots(1, len(panels), figsize=(7.4, 3.4), sharey=True, squeeze=False)
    for axes, (heading, curves) in zip(places[0], panels.items(), strict=True):
        _draw(axes, curves)
        axes.axhline(1.0, color="#999999", linewidth=0.8, zorder=0)
        axes.set(xlabel="gradient steps, one a layer", xticks=list(steps))
        panel_label(axes, heading)
    places[0, 0].set_ylabel("relative to predicting zero")
    places[0, -1].legend(fontsize=8.5)
    return figure
