"""Pictures of softmax attention: what a head smooths, what pairs of heads approach, and what training makes of them."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator
from torch import Tensor

from mesa_lib.figures.construction import draw_matrix
from mesa_lib.figures.style import BAND, COLORS, MARKERS, look, panel_label, reference_level, styled
from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.tasks import TaskBatch
from mesa_lib.theory.softmax import SoftmaxHeads

NETWORKS = ("gradient descent", "interpolated", "trained", "gd++", "constructed")
"""The roles whose colours and line styles stand for networks side by side, in their order."""


def _same_length(name: str, values: Sequence[float] | Tensor, reference_name: str, length: int) -> None:
    if len(values) != length:
        raise ValueError(f"{name}: expected {length} numbers, as many as {reference_name}, got {len(values)}")


def _ticks_at(axes: Axes, betas: Sequence[float]) -> None:
    """Every other beta as a tick of the logarithmic axis, in plain digits."""
    axes.set_xticks(list(betas[::2]), [f"{beta:g}" for beta in betas[::2]])
    axes.xaxis.set_minor_locator(NullLocator())


@styled
def smoothers(
    batch: TaskBatch, smoothed: Mapping[float, Float[Tensor, "query"]], step: Float[Tensor, "query"]
) -> Figure:
    """A task with one input: its context, softmax heads of several betas, and one gradient step, against the query.

    Args:
        batch: one task with one input and one target, and a grid of queries in rising order.
        smoothed: beta -> what a head with these scores predicts at the queries.
        step: what a gradient step predicts there.

    Returns:
        A figure with one panel; the range of the context's targets is shaded.

    Raises:
        ValueError: more than one task, input or target, or not one prediction for each query.
    """
    if batch.context_x.shape[:-2] != (1,) or batch.x_dim != 1 or batch.y_dim != 1:
        raise ValueError(
            f"batch: expected one task with one input and one target, got context_x of shape "
            f"{tuple(batch.context_x.shape)} and y_dim = {batch.y_dim}"
        )
    grid, targets = batch.query_x[0, :, 0], batch.context_y[0, :, 0]
    figure, axes = plt.subplots(figsize=(7.0, 3.5))
    axes.axhspan(float(targets.min()), float(targets.max()), color=COLORS["other"], alpha=0.12, linewidth=0,
                 label="range of the targets")  # fmt: skip
    _same_length("step", step, "queries", len(grid))
    axes.plot(grid.numpy(), step.numpy(), **look("gradient descent"), label="one gradient step")
    tones = np.linspace(0.35, 1, len(smoothed))
    styles = cycle(("-", "-.", (0, (4, 1)), ":"))
    for (beta, values), tone, style in zip(smoothed.items(), tones, styles, strict=False):
        _same_length(f"smoothed[{beta}]", values, "queries", len(grid))
        axes.plot(grid.numpy(), values.numpy(), color=COLORS["trained"], alpha=float(tone), linestyle=style,
                  label=rf"softmax head, $\beta = {beta:g}$")  # fmt: skip
    axes.plot(batch.context_x[0, :, 0].numpy(), targets.numpy(), "o", color=COLORS["theory"], markersize=5, zorder=4,
              label="context")  # fmt: skip
    axes.set(xlabel="query $x_q$", ylabel="prediction", xlim=(float(grid[0]), float(grid[-1])))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


@styled
def convergence(
    betas: Sequence[float], errors: Mapping[str, tuple[int, Sequence[float]]], level: tuple[str, float]
) -> Figure:
    """Distances that vanish with beta, each with a line of the slope that theory gives, on logarithmic axes.

    Args:
        betas: in falling order.
        errors: name -> (order of convergence, one distance for each beta).
        level: name and height of a distance that does not vanish.

    Returns:
        A figure with one panel; the lines pass through the distances at the smallest beta.

    Raises:
        ValueError: not one distance for each beta, or no distances.
    """
    if not errors:
        raise ValueError("errors: expected at least one row of distances, got none")
    figure, axes = plt.subplots(figsize=(7.0, 3.5))
    roles = cycle(("trained", "constructed", "gd++"))
    for (name, (order, distances)), role, marker in zip(errors.items(), roles, cycle(MARKERS), strict=False):
        _same_length(f"errors[{name!r}]", distances, "betas", len(betas))
        line = [distances[-1] * (beta / betas[-1]) ** order for beta in betas]
        axes.plot(betas, line, **BAND)
        axes.plot(betas, distances, marker, color=COLORS[role], markersize=5.5, zorder=3, label=name)
        axes.annotate(f"slope {order}", (betas[len(betas) // 2], line[len(betas) // 2]), xytext=(6, -10),
                      textcoords="offset points", fontsize=8.5)  # fmt: skip
    axes.axhline(level[1], **look("gradient descent"), label=level[0])
    axes.set(xscale="log", yscale="log", xlabel=r"size of the scores $\beta$", ylabel="relative distance")
    _ticks_at(axes, betas)
    axes.legend(loc="lower right", fontsize=8.5)
    return figure


@styled
def shifted_inputs(
    along: Float[Tensor, "query"],
    softmax: Float[Tensor, "query"],
    step: Float[Tensor, "query"],
    constant: float,
) -> Figure:
    """How predictions change when one vector c is added to every input of the context, against the query along c.

    Args:
        along: c . x_q of each query.
        softmax: the change of a softmax layer's prediction.
        step: the change of a gradient step's.
        constant: the change that the theorem gives for the softmax layer.

    Returns:
        A figure with two panels of one scale.

    Raises:
        ValueError: not one change for each query.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.1), sharex=True, sharey=True)
    shown = (("softmax attention", "trained", softmax), ("one gradient step", "gradient descent", step))
    for axes, (name, role, change) in zip(panels, shown, strict=True):
        _same_length(name, change, "along", len(along))
        axes.plot(along.numpy(), change.numpy(), "o", color=COLORS[role], markersize=3, alpha=0.6, zorder=3)
        axes.set_xlabel("query along the shift, $c \\cdot x_q$")
        panel_label(axes, name)
    reference_level(panels[0], constant, r"predicted: $-\sum_h P_h W_{V,h} (c, 0)$", below=True)
    panels[0].set_ylabel("change of the prediction")
    return figure


@styled
def sink_distances(
    limits: Mapping[float, float],
    exact: tuple[Sequence[float], Sequence[float]],
    betas: Sequence[float],
    rows: Mapping[str, Sequence[float]],
) -> Figure:
    """How far pairs of softmax heads stay from the gradient step: against the sink, and against beta for some sinks.

    Args:
        limits: weight of the sink -> relative distance at a very small beta.
        exact: weights of a sink and the relative distances in the limit, from the formula.
        betas: sizes of the scores.
        rows: name -> one relative distance for each beta.

    Returns:
        A figure with two panels.

    Raises:
        ValueError: not one distance for each weight or beta.
    """
    _same_length("exact", exact[1], "its weights", len(exact[0]))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    left.plot(*exact, **BAND, label="exact limit")
    left.plot(list(limits), list(limits.values()), "o", color=COLORS["trained"], markersize=5.5, zorder=3,
              label=r"measured, small $\beta$")  # fmt: skip
    left.set_xscale("symlog", linthresh=1)
    left.set(xlabel="weight $s$ of the sink", ylabel="relative distance to the gradient step", yscale="log")
    left.legend(loc="lower left", fontsize=8.5)
    panel_label(left, "small scores")
    for (name, distances), role, marker in zip(rows.items(), cycle(NETWORKS), cycle(MARKERS), strict=False):
        _same_length(f"rows[{name!r}]", distances, "betas", len(betas))
        right.plot(betas, distances, marker=marker, markersize=4, **{**look(role), "linewidth": 1.3}, label=name)
    right.set(xlabel=r"size of the scores $\beta$", xscale="log")
    _ticks_at(right, betas)
    right.legend(fontsize=8.5)
    panel_label(right, "scores of any size")
    return figure


@styled
def head_losses(
    curves: Mapping[str, Sequence[SoftmaxHeads]],
    zero: float,
    levels: Mapping[str, Mapping[str, float]],
    trained: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> Figure:
    """The least relative loss of softmax heads against their beta, one panel a kind, with trained networks on them.

    Args:
        curves: kind -> heads with rising first beta; a band shows two standard errors.
        zero: L0, the loss of predicting zero.
        levels: kind -> {name -> relative loss}, drawn as horizontal lines.
        trained: kind -> (betas, relative losses) of trained seeds.

    Returns:
        A figure with one panel for each kind; each has a vertical scale of its own.

    Raises:
        ValueError: no curve.
    """
    if not curves:
        raise ValueError("curves: expected at least one, got none")
    figure, panels = plt.subplots(1, len(curves), figsize=(7.4, 3.3), squeeze=False)
    for axes, (kind, heads) in zip(panels[0], curves.items(), strict=True):
        betas = [one.betas[0] for one in heads]
        losses = np.array([one.loss for one in heads]) / zero
        errors = np.array([one.standard_error for one in heads]) / zero
        axes.plot(betas, losses, **look("other"), label="best outputs")
        axes.fill_between(betas, losses - 2 * errors, losses + 2 * errors, color=COLORS["other"], alpha=0.3,
                          linewidth=0)  # fmt: skip
        found, reached = trained.get(kind, ((), ()))
        axes.plot(found, reached, "o", color=COLORS["trained"], markersize=6, alpha=0.8, zorder=4, label="trained")
        for text, height in levels.get(kind, {}).items():
            reference_level(axes, height, text)
        axes.set_xlabel(r"size of the scores $\beta$")
        panel_label(axes, kind)
    panels[0, 0].set_ylabel("$L / L_0$")
    panels[0, 0].legend(fontsize=8.5)
    return figure


@styled
def network_losses(
    steps: Sequence[int], curves: Mapping[str, Float[Tensor, "record ensemble"]], levels: Mapping[str, float]
) -> Figure:
    """Relative losses of several networks through training, one curve a seed, with levels that theory gives.

    Args:
        steps: the recorded steps, the same for all networks.
        curves: name -> relative losses, shape (record, ensemble); at most five networks.
        levels: name -> relative loss, drawn as horizontal lines.

    Returns:
        A figure with one panel and a legend above.

    Raises:
        ValueError: not one row of losses for each step, or more than five networks.
    """
    if len(curves) > len(NETWORKS):
        raise ValueError(f"curves: expected at most {len(NETWORKS)} networks, got {len(curves)}")
    figure, axes = plt.subplots(figsize=(7.0, 4.0))
    for (name, losses), role in zip(curves.items(), NETWORKS, strict=False):
        _same_length(f"curves[{name!r}]", losses, "steps", len(steps))
        for member, curve in enumerate(losses.double().unbind(-1)):
            axes.plot(steps, curve.numpy(), **{**look(role), "linewidth": 1.3}, zorder=3,
                      label=name if member == 0 else None)  # fmt: skip
    for text, height in levels.items():
        crowded = any(0 < height - other < 0.06 for other in levels.values())
        reference_level(axes, height, text, below=not crowded)
    axes.set(xlabel="training step", ylabel="$L / L_0$", ylim=(0.45, 1.05), xlim=(0, steps[-1]))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


@styled
def head_products(weights: AttentionWeights, x_dim: int) -> Figure:
    """W_KQ and W_PV of every head of one layer; all heads share a colour scale for each product.

    With a softmax the products have a scale of their own, and nothing is normalised. Only the x columns of W_KQ and the
    y rows of W_PV reach a prediction: the rest is drawn paler.

    Args:
        weights: one layer without ensemble axes.
        x_dim: where the x block of a token ends.

    Returns:
        A figure with two panels a head and a colour bar for each product.

    Raises:
        ValueError: the layer has ensemble axes.
    """
    if weights.w_k.dim() != 3:
        raise ValueError(f"weights: expected a layer without ensemble axes, got {tuple(weights.w_k.shape)}")
    heads = weights.num_heads
    figure, panels = plt.subplots(1, 2 * heads, figsize=(1.85 * 2 * heads, 2.6), squeeze=False)
    kinds = (("$W_{KQ}$", weights.w_kq, weights.w_kq[..., :x_dim]), ("$W_{PV}$", weights.w_pv, weights.w_pv[:, x_dim:]))
    for number, (symbol, matrices, seen) in enumerate(kinds):
        limit, row = float(seen.abs().max()), panels[0, number * heads : (number + 1) * heads]
        for head, axes in enumerate(row):
            draw_matrix(axes, matrices[head], x_dim, limit, numbers=False)
            axes.set_title(f"{symbol}, head {head + 1}", fontsize=9)
            size = weights.token_dim
            hidden = (x_dim - 0.5, -0.5, size - x_dim, size) if number == 0 else (-0.5, -0.5, size, x_dim)
            axes.add_patch(Rectangle(hidden[:2], *hidden[2:], facecolor="white", alpha=0.75, linewidth=0))
        bar = figure.colorbar(row[0].images[0], ax=list(row), orientation="horizontal", shrink=0.75, pad=0.04)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8)
    return figure
