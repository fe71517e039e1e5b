"""Pictures of deep networks: losses beside families, agreement, the weights of every layer, interpolation."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from torch import Tensor

from mesa_lib.figures.construction import draw_matrix
from mesa_lib.figures.style import COLORS, MARKERS, look, panel_label, styled
from mesa_lib.networks.attention import AttentionWeights

NETWORK_MARKERS = MARKERS[:5]

Row = tuple[str, Sequence[float]]
"""A role of `COLORS`, and the numbers that stand in one row."""


@styled
def loss_ladders(panels: Mapping[str, Mapping[str, Row]]) -> Figure:
    """Losses of methods and of trained networks, one row each, on logarithmic axes.

    Args:
        panels: heading -> {name of a row -> (role, losses)}, in half-MSE; several losses in a row are seeds, or the
            minima of a fit. Trained rows are filled, the others hollow.

    Returns:
        A figure with one panel a heading, one above the other.

    Raises:
        ValueError: no panel, or a row without a positive loss.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    heights = [len(rows) for rows in panels.values()]
    size = (7.0, 0.75 * len(panels) + 0.27 * sum(heights))
    figure, places = plt.subplots(len(panels), 1, figsize=size, height_ratios=heights, squeeze=False)
    for axes, (heading, rows) in zip(places[:, 0], panels.items(), strict=True):
        for height, (name, (role, losses)) in enumerate(rows.items()):
            if not losses or not all(loss > 0 for loss in losses):
                raise ValueError(f"panels[{heading!r}][{name!r}]: expected positive losses, got {list(losses)}")
            filled = COLORS[role] if role == "trained" else "white"
            axes.axhline(height, color="#eeeeee", linewidth=0.8, zorder=0)
            axes.plot(losses, [height] * len(losses), "o", markersize=7, color=COLORS[role], markerfacecolor=filled,
                      markeredgewidth=1.6, alpha=0.85, zorder=3)  # fmt: skip
        axes.set_yticks(range(len(rows)), list(rows), fontsize=9)
        axes.set(xscale="log", ylim=(len(rows) - 0.5, -0.5))
        axes.grid(visible=False, axis="y")
        _plain_ticks(axes.xaxis, *axes.get_xlim())
        panel_label(axes, heading)
    places[-1, 0].set_xlabel("mean loss over tasks, half-MSE")
    return figure


def _plain_ticks(axis: Axis, low: float, high: float) -> None:
    """Ticks of a logarithmic axis at round numbers, written without powers of ten; more of them on a short axis."""
    leading = (1, 2, 5) if high / low > 5 else (1, 1.2, 1.4, 1.6, 1.8, 2, 3, 4, 5, 7, 9)
    ticks = [digit * 10.0**power for power in range(-6, 4) for digit in leading]
    shown = [tick for tick in ticks if low <= tick <= high]
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(shown, [f"{tick:g}" for tick in shown])


@styled
def agreement_ladder(references: Sequence[str], cosines: Mapping[str, Float[Tensor, "_ ensemble"]]) -> Figure:
    """How far the sensitivities of trained networks point from those of other algorithms, as 1 - cosine.

    Args:
        references: the algorithms, from top to bottom.
        cosines: network -> cosines, shape (reference, ensemble); NaN where there is nothing to compare.

    Returns:
        A figure with one panel; its logarithmic axis is labelled with cosines, better to the right.

    Raises:
        ValueError: more networks than markers, or not one row of cosines for each reference.
    """
    if len(cosines) > len(NETWORK_MARKERS):
        raise ValueError(f"cosines: expected at most {len(NETWORK_MARKERS)} networks, got {len(cosines)}")
    figure, axes = plt.subplots(figsize=(7.0, 0.9 + 0.42 * len(references)))
    for number, (name, rows) in enumerate(cosines.items()):
        if rows.dim() != 2 or rows.shape[0] != len(references):
            raise ValueError(f"cosines[{name!r}]: expected {len(references)} rows, got shape {tuple(rows.shape)}")
        shift = 0.22 * (number - (len(cosines) - 1) / 2)
        tint = [COLORS["interpolated"], COLORS["constructed"], COLORS["trained"]][number % 3]
        for height, row in enumerate(rows.double().tolist()):
            axes.plot([1 - cosine for cosine in row], [height + shift] * len(row), NETWORK_MARKERS[number], color=tint,
                      markersize=5.5, alpha=0.8, label=name if height == 0 else None, zorder=3)  # fmt: skip
    axes.set_yticks(range(len(references)), list(references), fontsize=9)
    axes.set(xscale="log", ylim=(len(references) - 0.5, -0.5), xlabel="cosine of sensitivities, mean over tasks")
    ticks = [0.9, 0.95, 0.99, 0.999, 0.9999]
    axes.set_xlim(0.2, 1e-4)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([1 - tick for tick in ticks], [f"{tick:g}" for tick in ticks])
    axes.legend(loc="upper right", fontsize=8.5)
    return figure


@styled
def layer_products(layers: Sequence[AttentionWeights], x_dim: int) -> Figure:
    """The canonical products of every layer: W_KQ above, W_PV below, each in the scale of its largest y or x diagonal.

    Args:
        layers: canonical layers without ensemble axes; first heads are drawn.
        x_dim: where the x block of a token ends.

    Returns:
        A figure with two rows and a column for each layer. The x rows of the last W_PV are drawn pale: no layer reads
        what they write.

    Raises:
        ValueError: no layer, or one with ensemble axes.
    """
    if not layers:
        raise ValueError("layers: expected at least one AttentionWeights, got none")
    figure, panels = plt.subplots(2, len(layers), figsize=(0.4 + 1.4 * len(layers), 3.3), squeeze=False)
    for number, weights in enumerate(layers):
        if weights.w_k.dim() != 3:
            raise ValueError(f"layers[{number}]: expected no ensemble axes, got {tuple(weights.w_k.shape)}")
        for axes, matrix in zip(panels[:, number], (weights.w_kq[0], weights.w_pv[0]), strict=True):
            draw_matrix(axes, matrix, x_dim, float(matrix.diagonal().abs().max()), numbers=False)
        panels[0, number].set_title(f"layer {number + 1}", fontsize=9.5)
    panels[0, 0].set_ylabel("$W_{KQ}$")
    panels[1, 0].set_ylabel("$W_{PV}$")
    panels[1, -1].axhspan(-0.5, x_dim - 0.5, facecolor="#ffffffaa", edgecolor="#999999", hatch="////", linewidth=0)
    return figure


@styled
def layer_numbers(
    etas: Float[Tensor, "ensemble layer"],
    gammas: Float[Tensor, "ensemble _"],
    references: Mapping[str, Sequence[float]],
) -> Figure:
    """eta_l / N and gamma_l of every layer on a logarithmic axis, beside sequences that grow by a fixed factor.

    Args:
        etas: eta_l / N of each trained network.
        gammas: gamma_l, one between any two layers.
        references: text -> one number a layer, drawn as lines.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: not one gamma between any two layers, or a reference of another length.
    """
    layers = etas.shape[-1]
    if gammas.shape != (*etas.shape[:-1], layers - 1):
        raise ValueError(f"gammas: expected shape {(*etas.shape[:-1], layers - 1)}, got {tuple(gammas.shape)}")
    figure, axes = plt.subplots(figsize=(6.2, 3.6))
    places = list(range(1, layers + 1))
    for (text, line), style in zip(references.items(), cycle(("-", "--", ":")), strict=False):
        if len(line) != layers:
            raise ValueError(f"references[{text!r}]: expected {layers} numbers, got {len(line)}")
        axes.plot(places, line, color=COLORS["theory"], linewidth=2.5, alpha=0.35, linestyle=style, label=text)
    for number, (eta, gamma) in enumerate(zip(etas.double(), gammas.double(), strict=True)):
        first = number == 0
        axes.plot([place - 0.06 for place in places], eta.tolist(), "o", color=COLORS["trained"], alpha=0.8,
                  markersize=6, label=r"$\eta_l / N$, trained" if first else None)  # fmt: skip
        axes.plot([place + 0.06 for place in places[:-1]], gamma.tolist(), "^", color=COLORS["interpolated"], alpha=0.8,
                  markersize=6, label=r"$\gamma_l$, trained" if first else None)  # fmt: skip
    axes.set(yscale="log", xlabel="layer", ylabel=r"in units of $1/x^2$")
    axes.set_xticks(places)
    axes.legend()
    return figure


@styled
def network_interpolation(
    fractions: Sequence[float], panels: Mapping[str, Mapping[str, tuple[str, Float[Tensor, "fraction ensemble"]]]]
) -> Figure:
    """Loss on the way between two networks, averaged layer by layer in several ways.

    Args:
        fractions: 0 is the one network, 1 the other.
        panels: heading -> {text -> (role, losses of shape (fraction, ensemble))}.

    Returns:
        A figure with one panel a heading, side by side, sharing a logarithmic axis of losses.

    Raises:
        ValueError: no panel, or not one row of losses for each fraction.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    figure, places = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.3), sharey=True, squeeze=False)
    for axes, (heading, kinds) in zip(places[0], panels.items(), strict=True):
        for text, (role, losses) in kinds.items():
            if losses.dim() != 2 or losses.shape[0] != len(fractions):
                raise ValueError(
                    f"panels[{heading!r}][{text!r}]: expected {len(fractions)} rows and one column a seed, "
                    f"got shape {tuple(losses.shape)}"
                )
            for member, curve in enumerate(losses.double().unbind(-1)):
                axes.plot(fractions, curve.tolist(), **{**look(role), "linewidth": 1.4},
                          label=text if member == 0 else None)  # fmt: skip
        axes.set(yscale="log", xlabel="fraction of the way")
        panel_label(axes, heading)
    places[0, 0].set_ylabel("mean loss, capped, half-MSE")
    _plain_ticks(places[0, 0].yaxis, *places[0, 0].get_ylim())
    places[0, 0].legend(fontsize=8.5)
    return figure


@styled
def loss_by_depth(
    depths: Sequence[int],
    curves: Mapping[str, Row],
    trained: Float[Tensor, "layer ensemble"],
) -> Figure:
    """Relative losses against the number of layers: what algorithms can reach, and where trained networks are.

    Args:
        depths: numbers of layers, or of steps.
        curves: text -> (role, one relative loss a depth), drawn as lines.
        trained: relative losses of the networks, one row a depth and one column a seed.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: a curve or the networks' losses without one entry for each depth.
    """
    if trained.dim() != 2 or len(trained) != len(depths):
        raise ValueError(f"trained: expected {len(depths)} rows and a column a seed, got shape {tuple(trained.shape)}")
    figure, axes = plt.subplots(figsize=(6.2, 3.6))
    for text, (role, losses) in curves.items():
        if len(losses) != len(depths):
            raise ValueError(f"curves[{text!r}]: expected {len(depths)} losses, got {len(losses)}")
        axes.plot(depths, losses, **look(role), label=text)
    for number, column in enumerate(trained.double().unbind(-1)):
        axes.plot(depths, column.tolist(), "o", color=COLORS["trained"], markersize=6.5, alpha=0.75, zorder=3,
                  label="trained nets" if number == 0 else None)  # fmt: skip
    axes.set(yscale="log", xlabel="layers, or steps", ylabel="loss / loss of predicting zero")
    axes.set_xticks(list(depths))
    _plain_ticks(axes.yaxis, *axes.get_ylim())
    axes.legend(fontsize=9)
    return figure
