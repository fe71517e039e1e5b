"""Pictures of real weights: zeros counted, numbers that no basis changes, what heads attend to, orders, what lasts."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.figures.style import BAND, COLORS, MARKERS, look, panel_label, styled
from mesa_lib.validation import finite_numbers, finite_tensor


@styled
def near_zeros(rows: Mapping[str, tuple[str, Sequence[float], Sequence[float]]]) -> Figure:
    """The share of small entries in some matrices, a row of dots each, beside normal numbers of the same spread.

    Args:
        rows: name -> (role of `COLORS`, the share in each matrix, the share for normal numbers; may be empty).

    Returns:
        A figure with one panel, the first row on top.

    Raises:
        ValueError: no row, a role that is none, or shares that do not lie between 0 and 1.
    """
    if not rows:
        raise ValueError("rows: expected at least one, got none")
    figure, axes = plt.subplots(figsize=(7.0, 0.9 + 0.33 * len(rows)))
    for height, (name, (role, shares, by_chance)) in enumerate(rows.items()):
        measured = _shares(f"rows[{name!r}]", shares)
        expected = _shares(f"rows[{name!r}]", by_chance) if by_chance else ()
        axes.plot(expected, [height - 0.26] * len(expected), "|", color=COLORS["theory"], markersize=7, alpha=0.5)
        axes.plot(measured, [height] * len(measured), "o", color=look(role)["color"], markersize=5, alpha=0.7)
    axes.plot([], [], "|", color=COLORS["theory"], markersize=7, alpha=0.5, label="normal numbers of the same spread")
    axes.set(xlim=(-0.02, 1.02), ylim=(len(rows) - 0.4, -0.6), xlabel="share of entries below 0.01")
    axes.set_yticks(range(len(rows)), list(rows))
    axes.grid(visible=False, axis="y")
    axes.legend(loc="center right", fontsize=8.5)
    return figure


def _shares(name: str, values: Sequence[float]) -> tuple[float, ...]:
    numbers = finite_numbers(name, values)
    if min(numbers) < 0 or max(numbers) > 1:
        raise ValueError(f"{name}: expected shares between 0 and 1, got {list(numbers)}")
    return numbers


class HeadStatistic(NamedTuple):
    """One number of every head of a model.

    Attributes:
        values: shape (layer, head).
        by_chance: the least and the greatest among heads of random numbers.
        construction: that of the gradient-descent construction.
    """

    values: Float[Tensor, "layer head"]
    by_chance: tuple[float, float]
    construction: float


@styled
def head_statistics(models: Mapping[str, Mapping[str, HeadStatistic]]) -> Figure:
    """Numbers of every head against its layer, beside chance and the construction: a row a number, a column a model.

    Args:
        models: model -> (name of the number -> HeadStatistic), the same names for all.

    Returns:
        A figure whose columns are as wide as their models have layers, up to a factor of two.

    Raises:
        TypeError, ValueError: no model, names that differ, or values that are no finite (layer, head) numbers.
    """
    names = {tuple(rows) for rows in models.values()}
    if len(names) != 1 or not next(iter(names)):
        raise ValueError(f"models: expected the same numbers for at least one model, got {sorted(names)}")
    (order,) = names
    depths = [max(len(next(iter(rows.values())).values), 1) for rows in models.values()]
    widths = [max(depth, max(depths) / 2) for depth in depths]
    figure, grid = plt.subplots(len(order), len(models), figsize=(7.0, 0.5 + 1.45 * len(order)), sharex="col",
                                sharey="row", squeeze=False, width_ratios=widths)  # fmt: skip
    for column, (model, rows) in enumerate(models.items()):
        for row, name in enumerate(order):
            _heads(grid[row][column], rows[name], f"models[{model!r}][{name!r}]")
            grid[row][0].set_ylabel(name)
        panel_label(grid[0][column], model)
        grid[-1][column].set_xlabel("layer")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


def _heads(axes: Axes, statistic: HeadStatistic, name: str) -> None:
    values = finite_tensor(name, statistic.values)
    if values.dim() != 2:
        raise ValueError(f"{name}: expected shape (layer, head), got {tuple(values.shape)}")
    low, high = finite_numbers(name, statistic.by_chance)
    axes.axhspan(low, high, color=COLORS["other"], alpha=0.45, linewidth=1, zorder=1, label="random heads")
    axes.axhline(statistic.construction, **{**look("constructed"), "linewidth": 2}, label="construction")
    layers = np.repeat(np.arange(1, len(values) + 1), values.shape[1])
    axes.plot(layers, values.detach().double().flatten().numpy(), "o", color=COLORS["trained"], markersize=3,
              alpha=0.6, linestyle="none", label="real heads")  # fmt: skip
    axes.margins(x=0.03, y=0.1)


@styled
def head_maps(maps: Mapping[str, Float[Tensor, "layer head"]]) -> Figure:
    """A share of attention for every head of a model: a row a layer, a column a head, side by side.

    Args:
        maps: title -> numbers from 0 to 1, shape (layer, head).

    Returns:
        A figure with one panel for each map and one colour bar.

    Raises:
        TypeError, ValueError: no map, or one that is no matrix of numbers from 0 to 1.
    """
    if not maps:
        raise ValueError("maps: expected at least one, got none")
    figure, row = plt.subplots(1, len(maps), figsize=(0.8 + 2.0 * len(maps), 4.2), squeeze=False, sharey=True)
    for axes, (title, shares) in zip(row[0], maps.items(), strict=True):
        matrix = finite_tensor(f"maps[{title!r}]", shares)
        if matrix.dim() != 2 or bool((matrix < 0).any()) or bool((matrix > 1 + 1e-6).any()):
            raise ValueError(f"maps[{title!r}]: expected a matrix of numbers from 0 to 1, of shape (layer, head)")
        edges = (0.5, matrix.shape[1] + 0.5, matrix.shape[0] + 0.5, 0.5)
        image = axes.imshow(matrix.detach().double().numpy(), cmap="Blues", vmin=0, vmax=1, extent=edges, aspect="auto")
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("head")
        axes.set_xticks(range(1, matrix.shape[1] + 1, 2))
        axes.grid(visible=False)
    row[0][0].set_ylabel("layer")
    bar = figure.colorbar(image, ax=list(row[0]), shrink=0.6, pad=0.02, ticks=[0, 0.5, 1])
    bar.outline.set_visible(False)
    return figure


@styled
def answers_by_order(answers: Mapping[str, Float[Tensor, "task"]], without: Mapping[str, float]) -> Figure:
    """The probability of an answer for every order of the demonstrations: a row of marks for each prompt.

    Args:
        answers: prompt -> one probability for each order.
        without: prompt -> the probability without demonstrations.

    Returns:
        A figure with one panel; the first prompt is on top.

    Raises:
        TypeError, ValueError: prompts that differ, or numbers that are no probabilities.
    """
    if not answers or set(answers) != set(without):
        raise ValueError(f"without: expected the prompts {list(answers)}, at least one, got {list(without)}")
    figure, axes = plt.subplots(figsize=(7.0, 1.0 + 0.42 * len(answers)))
    for height, (prompt, orders) in enumerate(answers.items()):
        measured = finite_tensor(f"answers[{prompt!r}]", orders).flatten().tolist()
        values = _shares(f"answers[{prompt!r}]", [*measured, without[prompt]])
        axes.plot(values[:-1], [height] * (len(values) - 1), "|", color=COLORS["trained"], markersize=16,
                  markeredgewidth=1.4, label="one order" if height == 0 else None)  # fmt: skip
        axes.plot(values[-1:], [height], "x", color=COLORS["gradient descent"], markersize=7,
                  label="no demonstrations" if height == 0 else None)  # fmt: skip
    axes.set(xlim=(-0.02, 1.02), ylim=(len(answers) - 0.4, -0.6), xlabel="probability of the answer")
    axes.set_yticks(range(len(answers)), list(answers))
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8.5)
    return figure


@styled
def answers_after_filler(
    lengths: Sequence[int],
    answers: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> Figure:
    """The probability of an answer against the tokens of other text that stand between demonstrations and question.

    Args:
        lengths: how many tokens, ascending.
        answers: prompt -> (with the demonstrations, without them), a probability for each length.

    Returns:
        A figure with one panel, on a logarithmic axis: full lines with demonstrations, dashed ones without.

    Raises:
        ValueError: no prompt, or not one probability > 0 for each length.
    """
    if not answers:
        raise ValueError("answers: expected at least one prompt, got none")
    figure, axes = plt.subplots(figsize=(7.0, 3.4))
    roles = ("trained", "gradient descent", "gd++", "interpolated", "constructed", "other")
    for (prompt, pair), role, marker in zip(answers.items(), cycle(roles), cycle(MARKERS), strict=False):
        for values, style in zip(pair, ("-", "--"), strict=True):
            numbers = finite_numbers(f"answers[{prompt!r}]", values)
            if len(numbers) != len(lengths) or min(numbers) <= 0 or max(numbers) > 1:
                raise ValueError(f"answers[{prompt!r}]: expected {len(lengths)} probabilities > 0, got {list(numbers)}")
            axes.plot(lengths, numbers, color=COLORS[role], linestyle=style, marker=marker, markersize=4.5,
                      markerfacecolor="white" if style == "--" else None, linewidth=1.3,
                      label=prompt if style == "-" else None)  # fmt: skip
    axes.set(yscale="log", xlabel="tokens of other text before the question", ylabel="probability of the answer")
    axes.plot([], [], color=COLORS["theory"], linestyle="--", marker="o", markerfacecolor="white", markersize=4.5,
              linewidth=1.3, label="without demonstrations")  # fmt: skip
    figure.legend(loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


@styled
def memory_left(
    steps: Sequence[int], left: Mapping[str, tuple[str, Float[Tensor, "record task"]]], theory: Sequence[float]
) -> Figure:
    """What is left of a memory after more tokens: the median of many, and where eight of ten lie.

    Args:
        steps: how many tokens have been read since, ascending.
        left: name -> (role of `COLORS`, the share that is left, shape (record, task)).
        theory: for each number of steps the share that theory predicts for random keys.

    Returns:
        A figure with one panel.

    Raises:
        TypeError, ValueError: not one number for each step, or a role that is none.
    """
    if len(theory) != len(steps):
        raise ValueError(f"theory: expected {len(steps)} numbers, one a step, got {len(theory)}")
    figure, axes = plt.subplots(figsize=(7.0, 3.2))
    axes.plot(steps, finite_numbers("theory", theory), **BAND, label="random keys, root of the mean square")
    for (name, (role, values)), marker in zip(left.items(), cycle(MARKERS), strict=False):
        shares = finite_tensor(f"left[{name!r}]", values).double()
        if shares.dim() != 2 or len(shares) != len(steps):
            raise ValueError(f"left[{name!r}]: expected shape ({len(steps)}, task), got {tuple(shares.shape)}")
        low, middle, high = (shares.quantile(q, dim=1).numpy() for q in (0.1, 0.5, 0.9))
        axes.fill_between(steps, low, high, color=look(role)["color"], alpha=0.2, linewidth=0)
        axes.plot(steps, middle, **{**look(role), "linewidth": 1.5}, marker=marker, markersize=4, label=name)
    axes.set(xlabel="tokens read after the context", ylabel="share of the memory left", ylim=(0, 1.03))
    axes.legend(loc="lower left")
    return figure
