"""Pictures of a layer's symmetries: one layer at several gauges, the loss around its twin, seeds that wait there."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.figures.construction import draw_matrix
from mesa_lib.figures.style import BAND, COLORS, DIVERGING, panel_label, styled
from mesa_lib.networks.attention import AttentionWeights


@styled
def gauges(layers: Mapping[str, AttentionWeights], x_dim: int) -> Figure:
    """Factors and products of several layers, one row each; every panel has its own colour scale.

    Args:
        layers: text -> one layer without ensemble axes; its first head is drawn.
        x_dim: where the x block of a token ends.

    Returns:
        A figure with six panels a row: W_K, W_Q, W_V, P, W_KQ and W_PV.

    Raises:
        ValueError: no layer, or one with ensemble axes.
    """
    if not layers:
        raise ValueError("layers: expected at least one layer, got none")
    for name, weights in layers.items():
        if weights.w_k.dim() != 3:
            raise ValueError(
                f"layers[{name!r}]: expected no ensemble axes, got w_k of shape {tuple(weights.w_k.shape)}"
            )
    symbols = ("$W_K$", "$W_Q$", "$W_V$", "$P$", "$W_{KQ}$", "$W_{PV}$")
    figure, panels = plt.subplots(len(layers), 6, figsize=(7.2, 0.4 + 1.25 * len(layers)), squeeze=False)
    for row, (name, weights) in zip(panels, layers.items(), strict=True):
        shown = (weights.w_k, weights.w_q, weights.w_v, weights.w_p, weights.w_kq, weights.w_pv)
        for axes, symbol, matrix in zip(row, symbols, shown, strict=True):
            draw_matrix(axes, matrix[0], x_dim, float(matrix[0].abs().max()), numbers=False)
            axes.set_xticks([])
            axes.set_yticks([])
            if axes in panels[0]:
                axes.set_title(symbol)
        row[0].set_ylabel(name, fontsize=9)
    return figure


@styled
def twin_landscapes(
    panels: Mapping[str, tuple[Float[Tensor, "_ _"], Float[Tensor, "_ _"], Float[Tensor, "_ _"]]],
) -> Figure:
    """Exact loss around a twin, in the plane of the direct path, for several kinds of tasks.

    Args:
        panels: text -> (what the values get of y, what the keys get of x, loss relative to the twin's), three matrices
            of one shape; the twin is the origin. Each panel's colours have a range of their own, white at the twin's
            loss, and saturate in its steepest third.

    Returns:
        A figure with one panel for each entry.

    Raises:
        ValueError: no panel, or matrices of different shapes.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    figure, places = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.2), squeeze=False)
    for axes, (name, grids) in zip(places[0], panels.items(), strict=True):
        values, keys, losses = (grid.double().numpy() for grid in grids)
        if not values.shape == keys.shape == losses.shape:
            raise ValueError(
                f"panels[{name!r}]: expected three matrices of one shape, got {values.shape}, {keys.shape} and "
                f"{losses.shape}"
            )
        limit = float(np.quantile(np.abs(losses - 1), 0.7))  # the steep corners would hide what happens near the twin
        edges = np.linspace(1 - limit, 1 + limit, 16)
        axes.contourf(values, keys, losses, edges, cmap=DIVERGING, extend="both")
        axes.contour(values, keys, losses, [1], colors=COLORS["theory"], linewidths=1)
        axes.plot(0, 0, "o", color=COLORS["interpolated"], markeredgecolor="white", markersize=9)
        axes.annotate("twin", (0, 0), xytext=(8, 6), textcoords="offset points", fontsize=9)
        axes.set(xlabel="values read $y$")
        axes.grid(visible=False)
        panel_label(axes, name)
    places[0][0].set_ylabel("keys read the other $x$")
    return figure


@styled
def waiting_seeds(
    runs: Sequence[tuple[Sequence[int], Float[Tensor, "_ _"]]],
    levels: Mapping[str, float],
    shares: Mapping[str, tuple[float, float, float]],
) -> Figure:
    """Exact relative loss of many seeds against a logarithmic step, and the shares of seeds that wait.

    Args:
        runs: (recorded steps, losses of shape (record, ensemble)) of each training; step 0 has no place on the axis and
            is left out. The first run is drawn in the colour of trained layers, the others in another.
        levels: text -> relative loss that theory predicts.
        shares: text -> (share, lower and upper end of its interval), drawn from top to bottom.

    Returns:
        A figure with two panels.

    Raises:
        ValueError: no run, losses of other steps, or a share outside its interval.
    """
    if not runs:
        raise ValueError("runs: expected at least one, got none")
    for steps, losses in runs:
        if losses.dim() != 2 or losses.shape[0] != len(steps):
            raise ValueError(f"runs: expected {len(steps)} rows of losses, one a step, got shape {tuple(losses.shape)}")
    for name, (share, low, high) in shares.items():
        if not 0 <= low <= share <= high <= 1:
            raise ValueError(f"shares[{name!r}]: expected 0 <= low <= share <= high <= 1, got {(share, low, high)}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.5), width_ratios=[1.25, 1])
    for number, (steps, losses) in enumerate(runs):
        colour, first = COLORS["trained" if number == 0 else "interpolated"], int(steps[0] == 0)
        shown = losses[first:].double().numpy()
        left.plot(steps[first:], shown, color=colour, linewidth=0.9, alpha=0.55, zorder=3)
    for text, level in levels.items():
        left.axhline(level, **BAND)
        above = level > 0.7  # beside the curves, which come from above and end on a level
        axes_and_data = ("axes fraction", "data")
        left.annotate(text, (1, level), xycoords=axes_and_data, xytext=(-2, 12 if above else -5), ha="right",
                      va="bottom" if above else "top", textcoords="offset points", fontsize=8.5)  # fmt: skip
    left.set(xlabel="training step", ylabel=r"expected query loss $L / L_0$", xscale="log", ylim=(0.4, 1.06))
    places = range(len(shares))
    for place, (share, low, high) in zip(places, shares.values(), strict=True):
        right.errorbar(share, place, xerr=[[share - low], [high - share]], fmt="o", color=COLORS["trained"], capsize=3)
    right.set_yticks(list(places), list(shares), fontsize=8.5)
    right.set(xlabel="share of seeds that wait", xlim=(-0.02, max(high for _, _, high in shares.values()) * 1.1))
    right.invert_yaxis()
    right.grid(visible=False, axis="y")
    panel_label(left, "every seed")
    panel_label(right, "what helps")
    return figure
