"""Pictures of deep features: waves and what learners make of them, learned kernels, iteration, sweeps beside theory."""

from collections.abc import Mapping, Sequence
from typing import cast

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter
from torch import Tensor

from mesa_lib.figures.style import BAND, COLORS, DIVERGING, look, panel_label, styled
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import trailing_shape

ROLES = ("trained", "gradient descent", "gd++", "interpolated")
"""The looks of curves that are given by name, in their order."""

MAX_TASKS = 4


@styled
def wave_predictions(batch: TaskBatch, rows: Mapping[str, Mapping[str, Float[Tensor, "task query y"]]]) -> Figure:
    """A few one-dimensional tasks, one column each: the context's points, the hidden function, what learners answer.

    Args:
        batch: at most four tasks without ensemble axes, x_dim = y_dim = 1, their queries in increasing order.
        rows: text of a row of panels -> name of a learner -> its answers, shape (task, query, 1); at most four names.

    Returns:
        A figure with one row of panels for each entry.

    Raises:
        ValueError: no row, too many tasks or learners, tasks of other dimensions, or answers of another shape.
    """
    names = list(dict.fromkeys(name for answers in rows.values() for name in answers))
    if not 0 < len(names) <= len(ROLES):
        raise ValueError(f"rows: expected one to {len(ROLES)} names of learners, got {names}")
    if batch.context_x.dim() != 3 or batch.x_dim != 1 or batch.y_dim != 1 or batch.num_tasks > MAX_TASKS:
        raise ValueError(
            f"batch: expected at most {MAX_TASKS} tasks with one input and one target, got context_x of shape "
            f"{tuple(batch.context_x.shape)}"
        )
    for answers in rows.values():
        for name, values in answers.items():
            if values.shape != batch.query_y.shape:
                raise ValueError(f"{name}: expected shape {tuple(batch.query_y.shape)}, got {tuple(values.shape)}")
    figure, panels = plt.subplots(len(rows), batch.num_tasks, figsize=(7.4, 0.5 + 1.75 * len(rows)), sharex=True,
                                  sharey=True, squeeze=False)  # fmt: skip
    for row, (text, answers) in zip(panels, rows.items(), strict=True):
        for task, axes in enumerate(cast("Sequence[Axes]", row)):
            x = batch.query_x[task, :, 0].double().numpy()
            axes.plot(x, batch.query_y[task, :, 0].double().numpy(), label="hidden wave", **BAND)
            for name, values in answers.items():
                role = ROLES[names.index(name)]
                axes.plot(x, values[task, :, 0].double().numpy(), **{**look(role), "linewidth": 1.5}, label=name)
            axes.plot(batch.context_x[task, :, 0].double().numpy(), batch.context_y[task, :, 0].double().numpy(), "o",
                      color=COLORS["theory"], markersize=4, label="context", zorder=4)  # fmt: skip
        row[0].set_ylabel("$y$")
        panel_label(row[0], text)
    for axes in panels[-1]:
        axes.set_xlabel("$x$")
    found: dict[str, Artist] = {}
    for row in panels:
        handles, labels = row[0].get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=3, fontsize=9)
    return figure


@styled
def losses_through_training(
    steps: Sequence[int],
    losses: Mapping[str, Float[Tensor, "record ensemble"]],
    levels: Mapping[str, float],
    panels: bool = False,
) -> Figure:
    """Training losses of several kinds of learners, every seed a line, beside levels that theory predicts.

    Args:
        steps: the recorded steps.
        losses: text -> shape (record, ensemble), half-MSE; at most four kinds.
        levels: text -> half-MSE, drawn as horizontal lines.
        panels: whether every kind has a panel of its own.

    Returns:
        A figure.

    Raises:
        ValueError: no kind or too many, or not one row of losses for each step.
    """
    if not 0 < len(losses) <= len(ROLES):
        raise ValueError(f"losses: expected one to {len(ROLES)} kinds of learners, got {len(losses)}")
    for name, values in losses.items():
        if values.dim() != 2 or len(values) != len(steps):
            raise ValueError(f"{name}: expected {len(steps)} rows of losses, got shape {tuple(values.shape)}")
    count = len(losses) if panels else 1
    size = (7.4, 2.9) if panels else (6.4, 3.3)
    figure, places = plt.subplots(1, count, figsize=size, sharey=True, squeeze=False)
    for index, (role, (name, values)) in enumerate(zip(ROLES, losses.items(), strict=False)):
        axes = places[0][index if panels else 0]
        for member, curve in enumerate(values.double().unbind(-1)):
            axes.plot(steps, curve.numpy(), **{**look(role), "linewidth": 1.1}, alpha=0.85, zorder=3,
                      label=f"{name}, {values.shape[-1]} seeds" if member == 0 else None)  # fmt: skip
        if panels:
            panel_label(axes, name)
    for axes in places[0]:
        for text, level in levels.items():
            axes.axhline(level, **BAND)
            if axes is places[0][-1]:
                axes.annotate(text, (1, level), xycoords=("axes fraction", "data"), xytext=(-2, -5), ha="right",
                              va="top", textcoords="offset points", fontsize=8.5, zorder=5,
                              bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1})  # fmt: skip
        axes.set(xlabel="training step", yscale="log", xlim=(0, steps[-1]), ylim=(min(levels.values()) * 0.62, 0.1))
    places[0][0].set_ylabel("training loss, half-MSE")
    if not panels:
        places[0][0].legend(loc="upper right")
    return figure


@styled
def kernel_pictures(grid: Float[Tensor, "query"], matrices: Mapping[str, Float[Tensor, "query query"]]) -> Figure:
    """Kernels on a grid as pictures, and their singular values.

    Args:
        grid: inputs, in increasing order.
        matrices: name -> k(x_i, x_j) on the grid; at most three kernels. All share one colour scale.

    Returns:
        A figure with one panel for each kernel and one for the singular values, relative to the first.

    Raises:
        ValueError: no kernel or too many, or matrices of another size.
    """
    if not 0 < len(matrices) <= len(ROLES) - 1:
        raise ValueError(f"matrices: expected one to {len(ROLES) - 1} kernels, got {len(matrices)}")
    for name, matrix in matrices.items():
        if tuple(matrix.shape) != (len(grid), len(grid)):
            raise ValueError(f"{name}: expected a matrix of size {len(grid)}, got shape {tuple(matrix.shape)}")
    count = len(matrices)
    figure = plt.figure(figsize=(7.4, 4.9))
    places = figure.add_gridspec(2, count, height_ratios=[1.25, 1])
    limit = max(float(matrix.abs().max()) for matrix in matrices.values())
    ends = (float(grid[0]), float(grid[-1]))
    images = []
    for column, (name, matrix) in enumerate(matrices.items()):
        axes = figure.add_subplot(places[0, column])
        images.append(axes.imshow(matrix.double().numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, origin="lower",
                                  extent=(*ends, *ends), interpolation="none"))  # fmt: skip
        axes.set(xlabel="asking $x'$", ylabel="example $x$" if column == 0 else "")
        axes.grid(visible=False)
        panel_label(axes, name)
    bar = figure.colorbar(images[0], ax=figure.axes, shrink=0.85, pad=0.02)
    bar.outline.set_visible(False)
    below = figure.add_subplot(places[1, :])
    shown = min(8, len(grid))
    for role, marker, (name, matrix) in zip(("trained", "gradient descent", "theory"), "os^", matrices.items(),
                                            strict=False):  # fmt: skip
        values = matrix.double().svd()[1][:shown]
        below.plot(range(1, shown + 1), (values / values[0]).clamp(min=1e-6).numpy(), marker=marker, markersize=5,
                   **{**look(role), "linewidth": 1.2}, label=name)  # fmt: skip
    below.set(yscale="log", xlabel="number of the singular value", ylabel="relative to the first", ylim=(5e-4, 2))
    below.legend(loc="upper right", fontsize=9)
    return figure


@styled
def iterated_kernels(
    steps: Sequence[int],
    losses: Mapping[str, Float[Tensor, "step"]],
    limits: Mapping[str, float],
    spectra: Mapping[str, Float[Tensor, "context"]],
) -> Figure:
    """Loss of a learned kernel's descent against the number of steps, and the spectrum that explains it.

    Args:
        steps: numbers of steps, increasing.
        losses: name -> half-MSE after so many steps.
        limits: the same names -> half-MSE of kernel least squares, where the descent ends.
        spectra: the same names -> typical singular values of the kernel's matrix on a context, over N.

    Returns:
        A figure with two panels.

    Raises:
        ValueError: no kernel or too many, other names, or not one loss for each number of steps.
    """
    if not 0 < len(losses) <= len(ROLES) or not losses.keys() == limits.keys() == spectra.keys():
        raise ValueError(f"losses, limits, spectra: expected the same one to {len(ROLES)} names, got {list(losses)}")
    for name, values in losses.items():
        trailing_shape(name, values, (len(steps),))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), width_ratios=[1.35, 1])
    for role, name in zip(ROLES, losses, strict=False):
        left.plot(steps, losses[name].double().numpy(), marker="o", markersize=4, **{**look(role), "linewidth": 1.4},
                  label=name)  # fmt: skip
        left.axhline(limits[name], color=COLORS[role], linewidth=4, alpha=0.3, zorder=1)
        spectrum = spectra[name].double().numpy()
        right.plot(range(1, len(spectrum) + 1), spectrum, marker="o", markersize=4, **{**look(role), "linewidth": 1.2},
                   label=name)  # fmt: skip
    left.set(xscale="log", yscale="log", xlabel="steps of descent", ylabel="query loss, half-MSE")
    right.set(
        yscale="log", xlabel="number of the singular value", ylabel=r"of $K / N$, typical context", ylim=(1e-7, 4)
    )
    right.axhline(1 / 20, color=COLORS["theory"], linewidth=1, linestyle=":")
    right.annotate("slower than 20 steps", (1, 1 / 20), xycoords=("axes fraction", "data"), xytext=(-2, -4), ha="right",
                   va="top", textcoords="offset points", fontsize=8.5)  # fmt: skip
    panel_label(left, "bands: kernel least squares")
    panel_label(right, "two strong directions")
    left.legend(fontsize=9)
    return figure


@styled
def sweeps_beside_theory(
    panels: Mapping[str, tuple[Sequence[float], Float[Tensor, "_"], Sequence[float], Float[Tensor, "_ ensemble"]]],
    marked: Mapping[str, float],
    log: bool = True,
) -> Figure:
    """What trained learners lose when one number of the tasks changes, beside an exact curve.

    Args:
        panels: name of that number, the label of the axis -> (its values, exact losses there, values that were tried,
            losses of every trained learner there, shape (value, ensemble)).
        marked: the same names -> the value that the learners were trained at.
        log: whether the axis of that number is logarithmic.

    Returns:
        A figure with one panel for each entry.

    Raises:
        ValueError: no panel, other names, or losses that do not belong to the values.
    """
    if not panels or panels.keys() != marked.keys():
        raise ValueError(
            f"panels, marked: expected the same names, at least one, got {list(panels)} and {list(marked)}"
        )
    figure, places = plt.subplots(1, len(panels), figsize=(3.7 * len(panels), 3.2), squeeze=False)
    for axes, (name, (values, exact, tried, losses)) in zip(places[0], panels.items(), strict=True):
        trailing_shape(name, exact, (len(values),))
        if losses.dim() != 2 or len(losses) != len(tried):
            raise ValueError(f"{name}: expected {len(tried)} rows of losses, got shape {tuple(losses.shape)}")
        axes.plot(values, exact.double().numpy(), label="best step for the training tasks, exact", **BAND)
        for member, column in enumerate(losses.double().unbind(-1)):
            axes.plot(tried, column.numpy(), "o", color=COLORS["trained"], alpha=0.6, markersize=4.5, zorder=3,
                      label=f"trained block, {losses.shape[-1]} seeds" if member == 0 else None)  # fmt: skip
        axes.axvline(marked[name], color=COLORS["other"], linewidth=1, linestyle=":")
        axes.set(xlabel=name, yscale="log", xscale="log" if log and min(values) > 0 else "linear")
        if log and min(values) > 0:
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
            axes.xaxis.set_minor_formatter(NullFormatter())
    places[0][0].set_ylabel("query loss, half-MSE")
    handles, labels = places[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=9)
    return figure


@styled
def response_to_scale(scales: Sequence[float], sizes: Mapping[str, Float[Tensor, "scale"]]) -> Figure:
    """How the size of what a layer adds to a prediction grows with the scale of the context's targets.

    Args:
        scales: factors on the targets.
        sizes: name -> size of the update at each factor; at most four.

    Returns:
        A figure with one panel, both axes logarithmic.

    Raises:
        ValueError: no curve or too many, or not one size for each factor.
    """
    if not 0 < len(sizes) <= len(ROLES):
        raise ValueError(f"sizes: expected one to {len(ROLES)} curves, got {len(sizes)}")
    figure, axes = plt.subplots(figsize=(6.0, 3.2))
    for role, (name, values) in zip(ROLES, sizes.items(), strict=False):
        trailing_shape(name, values, (len(scales),))
        axes.plot(scales, values.double().numpy(), **look(role), label=name)
    axes.set(xscale="log", yscale="log", xlabel="factor on the context's targets", ylabel="size of the update")
    axes.legend(fontsize=9)
    return figure
