"""Pictures of in-context regression: a task, a step on the weights beside the same step on the targets, its loss."""

from collections.abc import Mapping, Sequence
from typing import cast

import matplotlib.pyplot as plt
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from mesa_lib.algorithms import context_loss, step_moved_targets
from mesa_lib.figures.style import COLORS, look, panel_label, styled
from mesa_lib.tasks import LinearTasks, TaskBatch
from mesa_lib.theory import optimal_eta, population_loss, zero_loss
from mesa_lib.validation import finite_number, finite_tensor, trailing_shape

MAX_TASKS = 3


def _check_dimensions(batch: TaskBatch, x_dim: int, num_tasks: int) -> None:
    expected = (num_tasks, batch.num_context, x_dim)
    if tuple(batch.context_x.shape) != expected or batch.y_dim != 1:
        raise ValueError(
            f"batch: expected {num_tasks} task(s) with x_dim = {x_dim}, y_dim = 1 and no ensemble axes, got context_x "
            f"of shape {tuple(batch.context_x.shape)} and y_dim = {batch.y_dim}"
        )


def _check_matrix(name: str, matrix: Tensor, x_dim: int) -> None:
    finite_tensor(name, matrix, min_dims=2)
    if tuple(matrix.shape) != (1, x_dim):
        raise ValueError(f"{name}: expected one matrix of shape (1, {x_dim}), got {tuple(matrix.shape)}")


def _span(batch: TaskBatch) -> np.ndarray:
    reach = 1.12 * float(torch.cat([batch.context_x, batch.query_x], dim=-2).abs().max())
    return np.array([-reach, reach])


@styled
def one_dimensional_tasks(batch: TaskBatch) -> Figure:
    """Tasks with one input and one target: what each context shows, the line behind it, and what the query asks.

    Args:
        batch: one to three tasks with x_dim = y_dim = 1 and a teacher, whose line is drawn; the first query is shown.

    Returns:
        A figure with one panel for each task.

    Raises:
        ValueError: another number of tasks, other dimensions, or no teacher.
    """
    count = batch.num_tasks
    if count > MAX_TASKS:
        raise ValueError(f"batch: expected at most {MAX_TASKS} tasks, got {count}")
    _check_dimensions(batch, 1, count)
    if batch.teacher is None:
        raise ValueError("batch: expected tasks with a teacher, whose line is drawn, got none")
    figure, panels = plt.subplots(1, count, figsize=(2.6 * count, 3.0), sharex=True, sharey=True, squeeze=False)
    span = _span(batch)
    for task, axes in enumerate(cast("Sequence[Axes]", panels[0])):
        slope, query_x, query_y = (
            float(value[task].flatten()[0]) for value in (batch.teacher, batch.query_x, batch.query_y)
        )
        axes.plot(span, slope * span, color=COLORS["other"], linestyle=(0, (4, 2)), linewidth=1.3, label="hidden $W$")
        axes.plot(
            batch.context_x[task, :, 0], batch.context_y[task, :, 0], "o", color=COLORS["trained"], label="context"
        )
        axes.axvline(query_x, color=COLORS["gradient descent"], linewidth=1, linestyle=":")
        asked = COLORS["gradient descent"]
        axes.plot([query_x], [query_y], "D", color=asked, mfc="white", mew=1.6, label="asked by the query")
        axes.set(xlabel="input $x$", xlim=tuple(span))
        panel_label(axes, f"task {task + 1}")
    panels[0, 0].set_ylabel("target $y$")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, handletextpad=0.5)
    return figure


@styled
def step_beside_moved_targets(
    batch: TaskBatch, weights: Float[Tensor, "y x"], weight_change: Float[Tensor, "y x"]
) -> Figure:
    """One step in one dimension, told twice: the line moves to the points, or the points move to the line.

    Both panels share their axes, and draw the same residuals as vertical bars: (W + Delta W) x_i - y_i at the left,
    W x_i - (y_i - Delta W x_i) at the right.

    Args:
        batch: one task with x_dim = y_dim = 1.
        weights: W, shape (1, 1).
        weight_change: Delta W, shape (1, 1).

    Returns:
        A figure with two panels.

    Raises:
        TypeError, ValueError: more tasks or dimensions than one, or matrices of another shape.
    """
    _check_dimensions(batch, 1, 1)
    _check_matrix("weights", weights, 1)
    _check_matrix("weight_change", weight_change, 1)
    x, y = (value[0, :, 0].double().numpy() for value in (batch.context_x, batch.context_y))
    moved = step_moved_targets(batch, weight_change)[0, :, 0].double().numpy()
    slope, change = float(weights), float(weight_change)
    span = _span(batch)
    figure, (left, right) = plt.subplots(1, 2, figsize=(5.3, 3.3), sharex=True, sharey=True)
    faint, strong, bars = COLORS["other"], COLORS["trained"], COLORS["gradient descent"]

    left.vlines(x, y, (slope + change) * x, color=bars, linewidth=2.2, label="residual")
    left.plot(span, slope * span, color=faint, linestyle=(0, (4, 2)), linewidth=1.3)
    left.plot(span, (slope + change) * span, color="#222222")
    left.plot(x, y, "o", color=strong)
    end = 0.86 * span[1]
    left.annotate("", (end, (slope + change) * end), (end, slope * end), arrowprops={"arrowstyle": "->", "lw": 1.2})
    panel_label(left, "the line moves")

    right.vlines(x, moved, slope * x, color=bars, linewidth=2.2)
    right.plot(span, slope * span, color="#222222", label="model's line")
    right.plot(x, y, "o", color=faint, mfc="white", label="before the move")
    right.plot(x, moved, "o", color=strong, label="target")
    for at, start, stop in zip(x, y, moved, strict=True):
        right.annotate("", (at, stop), (at, start), zorder=1.5,
                       arrowprops={"arrowstyle": "->", "lw": 1.0, "color": "#666666", "shrinkB": 3})  # fmt: skip
    panel_label(right, "the targets move")

    left.set(xlabel="input $x$", ylabel="target $y$", xlim=tuple(span))
    right.set(xlabel="input $x$")
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4, columnspacing=1.0, handletextpad=0.4, fontsize=9
    )
    return figure


def _landscape(batch: TaskBatch, grid: Tensor) -> np.ndarray:
    return context_loss(grid[..., None, None, :], batch)[..., 0].double().numpy()


@styled
def moving_bowl(batch: TaskBatch, weights: Float[Tensor, "y x"], weight_change: Float[Tensor, "y x"]) -> Figure:
    """Level lines of L over (w_1, w_2): a step down in the bowl, beside the bowl that the moved targets make.

    The bowl of the targets y_i - Delta W x_i is the old one shifted by -Delta W, so the standing W (right) has the loss
    that the stepped W + Delta W has (left). Both panels show the same levels over the same axes.

    Args:
        batch: one task with x_dim = 2 and y_dim = 1.
        weights: W, shape (1, 2).
        weight_change: Delta W, shape (1, 2).

    Returns:
        A figure with two panels.

    Raises:
        TypeError, ValueError: more tasks or other dimensions, or matrices of another shape.
    """
    _check_dimensions(batch, 2, 1)
    _check_matrix("weights", weights, 2)
    _check_matrix("weight_change", weight_change, 2)
    moved = TaskBatch(batch.context_x, step_moved_targets(batch, weight_change), batch.query_x, batch.query_y)
    start, step = weights[0].double(), weight_change[0].double()
    bottom = torch.linalg.lstsq(batch.context_x[0].double(), batch.context_y[0, :, 0].double()).solution
    marks = torch.stack([start, start + step, bottom, bottom - step])
    centre = (marks.amin(0) + marks.amax(0)) / 2
    reach = 0.8 * float((marks.amax(0) - marks.amin(0)).max())
    first, second = (torch.linspace(float(c) - reach, float(c) + reach, 121, dtype=torch.float64) for c in centre)
    grid = torch.stack(torch.meshgrid(first, second, indexing="xy"), dim=-1).to(batch.context_x.dtype)
    landed = float(context_loss(weights + weight_change, batch)[0])
    stood = float(context_loss(weights, batch)[0])
    levels = np.unique(np.array([*(landed * np.array([0.1, 0.4])), landed, (landed + stood) / 2, stood, 1.6 * stood]))

    figure, panels = plt.subplots(1, 2, figsize=(5.3, 3.2), sharex=True, sharey=True)
    titles = ("$W$ steps, the bowl stays", "$W$ stays, the bowl moves")
    for axes, shown, title in zip(cast("Sequence[Axes]", panels), (batch, moved), titles, strict=True):
        surface = _landscape(shown, grid)
        axes.contour(first, second, surface, levels=levels, colors="#9a9a9a", linewidths=0.9)
        axes.contour(first, second, surface, levels=[landed], colors=COLORS["gradient descent"], linewidths=1.8)
        axes.set(xlabel="$w_1$", aspect="equal")
        axes.grid(visible=False)
        panel_label(axes, title)
    left, right = panels
    left.set_ylabel("$w_2$")
    goal = start + step
    bottoms = ((left, bottom, None), (right, bottom, 0.4), (right, bottom - step, None))
    for axes, place, alpha in bottoms:
        axes.plot(*place, "+", color="#222222", ms=9, mew=1.6, alpha=alpha)
    arrow = {"arrowstyle": "->", "lw": 1.5}
    left.annotate("", tuple(goal.tolist()), tuple(start.tolist()), arrowprops={**arrow, "shrinkA": 4, "shrinkB": 4})
    right.annotate("", tuple((bottom - step).tolist()), tuple(bottom.tolist()), arrowprops=arrow)
    left.plot(*start, "o", color=COLORS["trained"], mfc="white", mew=1.6, label="$W$ before")
    left.plot(*goal, "o", color=COLORS["trained"], label="$W$ after")
    right.plot(*start, "o", color=COLORS["trained"])
    handles = [
        *left.get_legend_handles_labels()[0],
        Line2D([], [], color="#222222", marker="+", ls="", ms=9, mew=1.6, label="least loss"),
        Line2D([], [], color=COLORS["gradient descent"], lw=1.8, label="level of the new loss"),
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4, columnspacing=1.0, handletextpad=0.4, fontsize=9
    )
    return figure


@styled
def loss_against_eta(tasks: LinearTasks, measured: Mapping[float, Float[Tensor, "task"]]) -> Figure:
    """Query loss of one gradient step against its step size: the exact parabola, and sampled means upon it.

    Args:
        tasks: the distribution; the exact curve and L0 are its own.
        measured: step size eta -> half-MSE of each sampled task, shape (task).

    Returns:
        A figure with one panel. Bars are two standard errors.

    Raises:
        TypeError, ValueError: nothing was measured, or losses that are not one finite number for each of several tasks.
    """
    if not measured:
        raise ValueError("measured: expected losses of at least one step size, got none")
    scale = zero_loss(tasks)
    for eta, losses in measured.items():
        finite_number("measured: a step size", eta)
        finite_tensor(f"measured[{eta}]", losses, min_dims=1)
        trailing_shape(f"measured[{eta}]", losses, (losses.numel(),))
        if losses.numel() < 2:
            raise ValueError(f"measured[{eta}]: expected the losses of at least two tasks, got {losses.numel()}")
    best = optimal_eta(tasks)
    etas = np.linspace(min([0.0, *measured]), max([2 * best, *measured]), 201)
    exact = [float(population_loss(tasks, float(eta))) / scale for eta in etas]
    means = [float(losses.mean()) / scale for losses in measured.values()]
    errors = [2 * float(losses.std()) / losses.numel() ** 0.5 / scale for losses in measured.values()]
    figure, axes = plt.subplots(figsize=(5.2, 3.3))
    axes.plot(etas, exact, **look("theory"), label="exact, predicted")
    axes.errorbar(
        list(measured), means, errors, fmt="o", ms=5, capsize=3, color=COLORS["gradient descent"],
        label="measured, two standard errors",
    )  # fmt: skip
    axes.axhline(1, color=COLORS["other"], linewidth=1, linestyle=":")
    axes.annotate("predicting zero", (best, 1), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=9,
                  color="#555555")  # fmt: skip
    axes.annotate(r"best step $\eta^*$", (best, min(exact)), xytext=(0, -14), textcoords="offset points", ha="center",
                  fontsize=9)  # fmt: skip
    axes.set(xlabel=r"step size $\eta$", ylabel="query loss, relative to zero's", ylim=(0, None))
    axes.legend(loc="lower center", fontsize=9)
    return figure
