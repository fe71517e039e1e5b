"""Pictures of linear attention as a memory: what is written, what is recalled, and where gradient descent takes it."""

from collections.abc import Mapping, Sequence
from typing import cast

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.figures.style import COLORS, DIVERGING, look, styled
from mesa_lib.networks import attend_by_scores, read_memory, write_memory
from mesa_lib.theory import least_squares_recall_error, sum_rule_recall_error
from mesa_lib.validation import finite_tensor, positive_integer

MAX_PAIRS = 4


@styled
def written_memory(
    keys: Float[Tensor, "context qk"], values: Float[Tensor, "context v"], query: Float[Tensor, "qk"]
) -> Figure:
    """A memory as a sum, read by columns: each pair's outer product (above) and what it answers to a query (below).

    The last column is the sum of the others: the matrix M = sum_i v_i k_i^T, and M q = sum_i (k_i . q) v_i.

    Args:
        keys: at most four, shape (context, qk).
        values: shape (context, v).
        query: one query q, shape (qk,).

    Returns:
        A figure with two rows of panels, one column for each pair and one for the memory.

    Raises:
        TypeError, ValueError: more than four pairs, or shapes that do not fit.
    """
    finite_tensor("query", query, min_dims=1)
    memory = write_memory(keys, values)
    if keys.dim() != 2 or len(keys) > MAX_PAIRS:
        raise ValueError(f"keys: expected the keys of at most {MAX_PAIRS} pairs, got shape {tuple(keys.shape)}")
    answer = read_memory(memory, query[None])[0]
    products = [write_memory(key[None], value[None]) for key, value in zip(keys, values, strict=True)]
    parts = [attend_by_scores(key[None], value[None], query[None])[0] for key, value in zip(keys, values, strict=True)]
    written = [(rf"$v_{i}k_{i}^\top$", matrix) for i, matrix in enumerate(products, start=1)] + [("$M$", memory)]
    answered = [(rf"$(k_{i}\cdot q)\,v_{i}$", part) for i, part in enumerate(parts, start=1)] + [("$Mq$", answer)]
    limit = max(float(matrix.abs().max()) for _, matrix in written)
    reach = 1.15 * max(float(part.abs().max()) for _, part in answered)
    places = np.arange(1, values.shape[-1] + 1)

    columns = len(written)
    figure, panels = plt.subplots(2, columns, figsize=(1.35 * columns, 3.7), height_ratios=[1.15, 1])
    for axes, (title, matrix) in zip(cast("Sequence[Axes]", panels[0]), written, strict=True):
        edge = (0.5, keys.shape[-1] + 0.5, values.shape[-1] + 0.5, 0.5)
        axes.imshow(matrix.double().numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, extent=edge, aspect="auto")
        axes.set_title(title)
        axes.set(xlabel="entry of $k$", yticks=places, xticks=np.arange(1, keys.shape[-1] + 1))
        axes.grid(visible=False)
    for axes, (title, part) in zip(cast("Sequence[Axes]", panels[1]), answered, strict=True):
        colour = COLORS["trained"] if title == "$Mq$" else COLORS["other"]
        axes.set_axisbelow(True)
        axes.barh(places, part.double().numpy(), color=colour, height=0.7)
        axes.axvline(0, color="#222222", linewidth=0.8)
        axes.set_title(title)
        axes.set(xlim=(-reach, reach), ylim=(values.shape[-1] + 0.5, 0.5), yticks=places, xlabel="answer")
    for row in panels:
        row[0].set_ylabel("entry of $v$")
        for axes in row[1:]:
            axes.set_yticklabels([])
    for column, sign in enumerate(["+"] * (columns - 2) + ["="]):
        for row in panels:
            row[column].annotate(sign, (1, 0.5), xycoords="axes fraction", xytext=(9, 0), textcoords="offset points",
                                 ha="center", va="center", fontsize=13)  # fmt: skip
    return figure


def _check_errors(name: str, errors: Mapping[int, Tensor]) -> None:
    if not errors:
        raise ValueError(f"{name}: expected recall errors of at least one number, got none")
    for number, draws in errors.items():
        positive_integer(f"{name}: a key", number)
        finite_tensor(f"{name}[{number}]", draws, min_dims=1)
        if draws.dim() != 1 or draws.numel() < 2:
            raise ValueError(f"{name}[{number}]: expected at least two draws, (task), got shape {tuple(draws.shape)}")


def _draw_means(
    axes: Axes, errors: Mapping[int, Tensor], marker: str, colour: str, label: str, *, open_size: float | None = None
) -> None:
    means = [float(draws.mean()) for draws in errors.values()]
    bars = [2 * float(draws.std()) / draws.numel() ** 0.5 for draws in errors.values()]
    axes.errorbar(
        list(errors), means, bars, fmt=marker, ms=open_size or 5.5, mew=1.4, capsize=2.5, color=colour, clip_on=False,
        zorder=3, mfc="none" if open_size else colour, label=label,
    )  # fmt: skip


@styled
def recall_against_pairs(
    key_dim: int,
    sum_rule: Mapping[int, Float[Tensor, "task"]],
    best_linear: Mapping[int, Float[Tensor, "task"]],
    orthonormal: Mapping[int, Float[Tensor, "task"]],
) -> Figure:
    """Relative recall error against the number of stored pairs, for three memories of the same size.

    Dots are means over draws with bars of two standard errors, lines are `sum_rule_recall_error` and
    `least_squares_recall_error`.

    Args:
        key_dim: d.
        sum_rule: n -> recall error of each draw, shape (task): random unit keys, written by the sum rule.
        best_linear: the same for the least-squares memory.
        orthonormal: the same for orthonormal keys, written by the sum rule.

    Returns:
        A figure with one panel.

    Raises:
        TypeError, ValueError: no errors, fewer than two draws somewhere, or a number that is not a positive integer.
    """
    size = positive_integer("key_dim", key_dim)
    for name, errors in (("sum_rule", sum_rule), ("best_linear", best_linear), ("orthonormal", orthonormal)):
        _check_errors(name, errors)
    largest = max([*sum_rule, *best_linear, *orthonormal])
    pairs = np.arange(1, largest + 1)
    figure, axes = plt.subplots(figsize=(5.3, 3.9))
    axes.plot(pairs, [sum_rule_recall_error(int(n), size) for n in pairs], **look("theory"))
    axes.plot(pairs, [least_squares_recall_error(int(n), size) for n in pairs], **look("theory"))
    axes.axhline(1, color=COLORS["other"], linewidth=1, linestyle=":")
    axes.axvline(size, ymax=0.8, color=COLORS["other"], linewidth=1, linestyle=":")
    one_step, other = COLORS["gradient descent"], COLORS["trained"]
    _draw_means(axes, sum_rule, "o", one_step, "sum rule, random keys")
    _draw_means(axes, orthonormal, "s", one_step, "sum rule, orthonormal keys", open_size=9.5)
    _draw_means(axes, best_linear, "D", other, "best linear memory, random keys")
    axes.set(xlabel="pairs stored, $n$", ylabel="relative squared recall error")
    axes.set(xlim=(0, 1.02 * largest), ylim=(0, None))
    top = axes.get_ylim()[1]
    axes.annotate(f"$n = d = {size}$", (size, 0.66 * top), xytext=(-4, 0), textcoords="offset points", ha="right",
                  fontsize=9, color="#555555")  # fmt: skip
    axes.annotate("empty memory", (largest, 1), xytext=(0, 4), textcoords="offset points", ha="right", fontsize=9,
                  color="#555555")  # fmt: skip
    axes.legend(loc="upper left", fontsize=9, frameon=True, framealpha=1, edgecolor="none")
    return figure


@styled
def recall_against_steps(key_dim: int, descents: Mapping[int, Mapping[int, Float[Tensor, "task"]]]) -> Figure:
    """Relative recall error of a memory that descends its own loss, against the number of steps from zero.

    Args:
        key_dim: d; the level of the best linear memory, max(0, 1 - d/n), is drawn for each n.
        descents: number of pairs n -> number of steps -> recall error of each draw, shape (task).

    Returns:
        A figure with one panel; the steps are on a logarithmic axis. Bars are two standard errors.

    Raises:
        TypeError, ValueError: no descent, no errors, fewer than two draws somewhere, or more than three descents.
    """
    size = positive_integer("key_dim", key_dim)
    styles = (("gradient descent", "o"), ("trained", "D"), ("gd++", "s"))
    if not 1 <= len(descents) <= len(styles):
        raise ValueError(f"descents: expected one to {len(styles)} numbers of pairs, got {len(descents)}")
    for pairs, errors in descents.items():
        _check_errors(f"descents[{pairs}]", errors)
    figure, axes = plt.subplots(figsize=(5.3, 3.2))
    for (pairs, errors), (role, marker) in zip(descents.items(), styles, strict=False):
        level = least_squares_recall_error(pairs, size)
        axes.axhline(level, color=COLORS["theory"], linewidth=1.2)
        axes.plot(list(errors), [float(draws.mean()) for draws in errors.values()], **look(role), linewidth=1.2)
        _draw_means(axes, errors, marker, COLORS[role], f"$n = {pairs}$ pairs")
        axes.annotate(f"best linear memory: {level:.2g}", (1, level), xycoords=("axes fraction", "data"), fontsize=9,
                      xytext=(-2, -13 if level else 7), textcoords="offset points", ha="right")  # fmt: skip
    axes.set(xscale="log", xlabel="gradient steps from the empty memory", ylabel="relative squared recall error",
             ylim=(0, 1))  # fmt: skip
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.legend(loc="upper right", fontsize=9)
    return figure
