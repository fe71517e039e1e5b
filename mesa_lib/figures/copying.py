"""Pictures of copying: who reads whom, how sharp a softmax must be, signal and loss in training, codes, induction."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.figures.style import BAND, COLORS, MARKERS, look, panel_label, styled
from mesa_lib.validation import finite_tensor


@styled
def attention_maps(maps: Mapping[str, Float[Tensor, "query context"]]) -> Figure:
    """Who reads whom: the share of attention (or the score) of every reader, a row, on every token, a column.

    Args:
        maps: title -> numbers from 0 to 1, shape (query, context); values outside are drawn as the nearest of the two.

    Returns:
        A figure with one panel for each map and one colour bar.

    Raises:
        TypeError, ValueError: no map, or one that is no matrix of finite numbers.
    """
    if not maps:
        raise ValueError("maps: expected at least one, got none")
    figure, row = plt.subplots(1, len(maps), figsize=(0.6 + 2.05 * len(maps), 2.55), squeeze=False)
    for axes, (title, shares) in zip(row[0], maps.items(), strict=True):
        matrix = finite_tensor(f"maps[{title!r}]", shares)
        if matrix.dim() != 2:
            raise ValueError(f"maps[{title!r}]: expected a matrix, got shape {tuple(matrix.shape)}")
        edges = (0.5, matrix.shape[1] + 0.5, matrix.shape[0] + 0.5, 0.5)
        image = axes.imshow(matrix.detach().double().numpy(), cmap="Blues", vmin=0, vmax=1, extent=edges)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("token that is read")
        axes.grid(visible=False)
    row[0][0].set_ylabel("reader")
    bar = figure.colorbar(image, ax=list(row[0]), shrink=0.6, ticks=[0, 0.5, 1])
    bar.outline.set_visible(False)
    return figure


@styled
def missed_weights(
    sharpness: Sequence[float],
    law: Sequence[float],
    measured: Mapping[str, tuple[str, Sequence[float]]],
) -> Figure:
    """The share of attention that misses its target, against the sharpness of the softmax, on a logarithmic scale.

    Args:
        sharpness: k, ascending.
        law: what theory says of one-hot scores, one number for each k: a broad line under the data.
        measured: text -> (role of `COLORS`, one share for each k).

    Returns:
        A figure with one panel; the paper's k = 1 is marked.

    Raises:
        ValueError: not one positive number for each k, or an unknown role.
    """
    rows = {"law": law} | {text: values for text, (_, values) in measured.items()}
    for name, values in rows.items():
        if len(values) != len(sharpness) or min(values) <= 0:
            raise ValueError(f"{name}: expected {len(sharpness)} positive shares, got {list(values)}")
    figure, axes = plt.subplots(figsize=(7.0, 3.4))
    axes.plot(sharpness, law, **BAND, label="one-hot, exact")
    for (text, (role, values)), marker in zip(measured.items(), cycle(MARKERS), strict=False):
        axes.plot(sharpness, values, **look(role), linewidth=1.2, marker=marker, markersize=3.5, label=text)
    axes.axvline(1, color=COLORS["other"], linewidth=1, linestyle=":")
    axes.annotate("as printed, k = 1", (1, 0), xycoords=("data", "axes fraction"), xytext=(4, 4),
                  textcoords="offset points", fontsize=8.5)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="sharpness k", ylabel="share that misses the target", ylim=(1e-7, 2))
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.12))
    return figure


@styled
def copying_curves(
    steps: Sequence[int],
    losses: Float[Tensor, "record ensemble"],
    signals: Mapping[str, Float[Tensor, "record ensemble"]],
    levels: Mapping[str, float],
    marks: Sequence[int],
) -> Figure:
    """Loss and copying signal against the training step, one panel a seed: does the copy come before the loss falls?

    Args:
        steps: the recorded steps.
        losses: relative to predicting zero, shape (record, ensemble).
        signals: "next", "previous" and "other" -> shape (record, ensemble).
        levels: text -> a loss that theory predicts.
        marks: for each seed a step, drawn as a thin line through its two panels.

    Returns:
        A figure with two rows, losses above and signals below, and one column a seed.

    Raises:
        ValueError: not one row for each step, or not one mark for each seed.
    """
    for name, values in {"losses": losses, **signals}.items():
        if values.dim() != 2 or len(values) != len(steps) or values.shape[1] != losses.shape[1]:
            raise ValueError(
                f"{name}: expected {len(steps)} rows and {losses.shape[-1]} columns, got shape {tuple(values.shape)}"
            )
    roles = {"next": "gradient descent", "previous": "interpolated", "other": "other"}
    members = losses.shape[1]
    if len(marks) != members:
        raise ValueError(f"marks: expected one step for each of {members} seeds, got {list(marks)}")
    figure, (top, bottom) = plt.subplots(2, members, figsize=(2.4 * members + 0.4, 4.0), sharex=True, sharey="row",
                                         squeeze=False)  # fmt: skip
    for member, (above, below) in enumerate(zip(top, bottom, strict=True)):
        for text, level in levels.items():
            above.axhline(level, **BAND)
            if member == 0:
                above.annotate(text, (0, level), xycoords=("axes fraction", "data"), xytext=(4, -4), va="top",
                               textcoords="offset points", fontsize=8.5)  # fmt: skip
        for axes in (above, below):
            axes.axvline(marks[member], color=COLORS["other"], linewidth=0.9, zorder=1)
        above.plot(steps, losses[:, member].tolist(), **look("trained"), label="loss")
        for name, values in signals.items():
            below.plot(steps, values[:, member].tolist(), **look(roles.get(name, "other")), label=name)
        panel_label(above, f"seed {member}")
        below.set_xlabel("training step")
    top[0].set(ylabel=r"loss $L / L_0$", ylim=(0.4, 1.12))
    bottom[0].set_ylabel("copying signal")
    bottom[0].set_ylim(bottom=0)
    bottom[-1].legend(loc="upper left", fontsize=8.5)
    return figure


@styled
def code_spectra(codes: Mapping[str, Float[Tensor, "context token"]]) -> Figure:
    """Singular values of positional codes, largest first: how many directions there are to tell places apart.

    Args:
        codes: text -> codes, shape (context, token); at most four.

    Returns:
        A figure with one panel, on a logarithmic scale; what is smaller than 1e-10 is drawn there.

    Raises:
        TypeError, ValueError: no codes or more than four, or codes that are no matrix of finite numbers.
    """
    if not 1 <= len(codes) <= 4:
        raise ValueError(f"codes: expected from one to four, got {len(codes)}")
    figure, axes = plt.subplots(figsize=(7.0, 3.2))
    styles = (("trained", "o"), ("gradient descent", "s"), ("gd++", "^"), ("interpolated", "D"))
    for (text, matrix), (role, marker) in zip(codes.items(), styles, strict=False):
        sizes = np.linalg.svd(finite_tensor(f"codes[{text!r}]", matrix, min_dims=2).double().numpy(), compute_uv=False)
        axes.plot(range(1, len(sizes) + 1), np.maximum(sizes, 1e-10), **look(role), linewidth=1.2, marker=marker,
                  markersize=4, label=text)  # fmt: skip
    axes.set(yscale="log", xlabel="number of the direction", ylabel="singular value", xticks=range(1, 22, 4))
    axes.legend(loc="center right")
    return figure


@styled
def first_layers(
    panels: Mapping[str, Mapping[str, tuple[str, Sequence[int], Float[Tensor, "record ensemble"]]]],
    levels: Mapping[str, float],
) -> Figure:
    """Relative loss against the training step for several kinds of networks, one panel for each group of them.

    Args:
        panels: title -> text of a kind -> (role of `COLORS`, recorded steps, relative losses (record, ensemble)).
        levels: text -> a relative loss that theory predicts, in every panel.

    Returns:
        A figure with one panel a group.

    Raises:
        ValueError: no panel, an unknown role, or not one row of losses for each step.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    figure, row = plt.subplots(1, len(panels), figsize=(0.6 + 3.4 * len(panels), 3.3), sharey=True, squeeze=False)
    for axes, (title, kinds) in zip(row[0], panels.items(), strict=True):
        for text, level in levels.items():
            axes.axhline(level, **BAND)
            axes.annotate(text, (0, level), xycoords=("axes fraction", "data"), xytext=(4, -4), va="top",
                          textcoords="offset points", fontsize=8.5)  # fmt: skip
        for text, (role, steps, losses) in kinds.items():
            if losses.dim() != 2 or len(losses) != len(steps):
                raise ValueError(f"{text}: expected {len(steps)} rows of losses, got shape {tuple(losses.shape)}")
            for member, curve in enumerate(losses.unbind(-1)):
                axes.plot(steps, curve.tolist(), **{**look(role), "linewidth": 1.4},
                          label=text if member == 0 else None)  # fmt: skip
        panel_label(axes, title)
        axes.set_xlabel("training step")
        axes.legend(loc="upper right", fontsize=8.5)
    row[0][0].set(ylabel=r"loss $L / L_0$", ylim=(0.25, 1.15))
    return figure


@styled
def knock_outs(panels: Mapping[str, Mapping[str, Sequence[float]]], levels: Mapping[str, float]) -> Figure:
    """What networks lose without a part: one panel a network, one row a knock-out, one dot a seed, on one common axis.

    Args:
        panels: title -> name of a row -> losses, relative to the level that counts as one; a seed keeps its marker.
        levels: text -> a loss that theory predicts.

    Returns:
        A figure with one panel a network, one above the other, on a logarithmic axis.

    Raises:
        ValueError: no panel, or a row without positive losses.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    rows = sum(len(parts) for parts in panels.values())
    figure, column = plt.subplots(len(panels), 1, figsize=(7.0, 0.7 + 0.45 * len(panels) + 0.26 * rows), sharex=True,
                                  height_ratios=[len(parts) for parts in panels.values()], squeeze=False)  # fmt: skip
    for axes, (title, parts) in zip(column[:, 0], panels.items(), strict=True):
        for level in levels.values():
            axes.axvline(level, **BAND)
        for height, (name, losses) in enumerate(parts.items()):
            if not losses or min(losses) <= 0:
                raise ValueError(f"panels[{title!r}][{name!r}]: expected positive losses, got {list(losses)}")
            for seed, loss in enumerate(losses):
                axes.plot([loss], [height], "os^Dv"[seed % 5], color=COLORS["trained"], markersize=6, alpha=0.8)
        axes.set_yticks(range(len(parts)), list(parts), fontsize=9)
        axes.set(xscale="log", ylim=(len(parts) - 0.5, -0.5))
        panel_label(axes, title)
    for text, level in levels.items():
        column[0, 0].annotate(text, (level, 0), xycoords=("data", "axes fraction"), xytext=(3, 3), fontsize=8,
                              textcoords="offset points")  # fmt: skip
    column[-1, 0].set_xlabel("loss / that of one gradient step")
    ticks = [0.5, 0.7, 1, 1.5, 2, 3, 5, 10]
    column[-1, 0].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    column[-1, 0].minorticks_off()
    return figure


@styled
def induction_accuracy(dimensions: Sequence[int], shares: Mapping[str, tuple[str, Sequence[float]]]) -> Figure:
    """Share of sequences that are continued correctly, against the dimension of the symbols' embedding.

    Args:
        dimensions: ascending.
        shares: text of a method -> (role of `COLORS`, one share for each dimension).

    Returns:
        A figure with one panel.

    Raises:
        ValueError: no method, an unknown role, or not one share for each dimension.
    """
    if not shares:
        raise ValueError("shares: expected at least one method, got none")
    figure, axes = plt.subplots(figsize=(7.0, 3.2))
    for (text, (role, values)), marker in zip(shares.items(), cycle(MARKERS), strict=False):
        if len(values) != len(dimensions):
            raise ValueError(f"{text}: expected {len(dimensions)} shares, got {len(values)}")
        axes.plot(dimensions, list(values), **look(role), linewidth=1.4, marker=marker, markersize=5, label=text)
    axes.set(xscale="log", xlabel="dimension of the embedding", ylabel="share continued correctly", ylim=(0, 1.05))
    axes.set_xticks(list(dimensions), [str(dimension) for dimension in dimensions])
    axes.minorticks_off()
    axes.legend(loc="lower right")
    return figure
