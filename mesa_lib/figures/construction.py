"""Pictures of the chapter on Proposition 1: the weights, how they move tokens, and what it means that they know N."""

from collections.abc import Mapping, Sequence
from typing import cast

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.figures.style import COLORS, DIVERGING, look, panel_label, styled
from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.networks.tokens import Tokens
from mesa_lib.validation import positive_integer


def draw_matrix(axes: Axes, matrix: Float[Tensor, "row column"], x_dim: int, limit: float, *, numbers: bool) -> None:
    """A signed matrix as coloured cells, with a line between its x and its y block; colours run over [-limit, limit].

    Args:
        axes: where to draw.
        matrix: shape (row, column), both of token size.
        x_dim: where the x block ends.
        limit: the value of the darkest colour.
        numbers: whether to write each non-zero entry into its cell.
    """
    values = matrix.detach().cpu().double().numpy()
    axes.imshow(values, cmap=DIVERGING, vmin=-limit, vmax=limit)
    for place in (axes.axhline, axes.axvline):
        place(x_dim - 0.5, color="#444444", linewidth=0.8)
    if numbers:
        for (row, column), value in np.ndenumerate(values):
            if abs(value) > 1e-12:
                tone = "white" if abs(value) > 0.6 * limit else "black"
                axes.text(column, row, f"{value:.2g}", ha="center", va="center", fontsize=7.5, color=tone)
    centres = [(x_dim - 1) / 2, (x_dim + values.shape[0] - 1) / 2]
    axes.set_xticks(centres, ["x", "y"])
    axes.set_yticks(centres, ["x", "y"])
    axes.tick_params(length=0)
    axes.grid(visible=False)


@styled
def block_weights(weights: AttentionWeights, x_dim: int) -> Figure:
    """The four factors of one head, W_K, W_Q, W_V and P, block by block with their entries.

    Args:
        weights: one layer, no ensemble axes; its first head is drawn.
        x_dim: where the x block of a token ends.

    Returns:
        A figure with four panels.

    Raises:
        TypeError, ValueError: `x_dim` is not a positive integer smaller than the token, or there are ensemble axes.
    """
    size = positive_integer("x_dim", x_dim)
    if size >= weights.token_dim or weights.w_k.dim() != 3:
        raise ValueError(
            f"weights: expected one layer of factors (head, ..., ...) on tokens longer than {size}, "
            f"got w_k of shape {tuple(weights.w_k.shape)}"
        )
    figure, panels = plt.subplots(1, 4, figsize=(7.2, 2.1))
    named = {"$W_K$": weights.w_k, "$W_Q$": weights.w_q, "$W_V$": weights.w_v, "$P$": weights.w_p}
    for axes, (name, factor) in zip(cast("Sequence[Axes]", panels), named.items(), strict=True):
        draw_matrix(axes, factor[0], size, float(factor.abs().max()), numbers=True)
        axes.set_title(name)
    return figure


@styled
def token_moves(
    before: Tokens, after: Tokens, weight_change: Float[Tensor, "y x"], w_0: Float[Tensor, "y x"]
) -> Figure:
    """How one layer moves the y-slots of one-dimensional tokens, beside the line -Delta W x of the gradient step.

    Args:
        before: tokens of one task with x_dim = y_dim = 1, context (1, context, 2) and query (1, query, 2).
        after: the same tokens behind the layer.
        weight_change: Delta W of the explicit gradient step, shape (1, 1).
        w_0: the weights that the step starts from, shape (1, 1).

    Returns:
        A figure with two panels: the slots before and after, and their movement against x.

    Raises:
        ValueError: the tokens are not those of one one-dimensional task.
    """
    if before.context.shape[0] != 1 or before.context.shape[-1] != 2 or after.context.shape != before.context.shape:
        raise ValueError(
            f"before, after: expected context tokens of shape (1, context, 2) both, got "
            f"{tuple(before.context.shape)} and {tuple(after.context.shape)}"
        )
    context, moved = before.context[0].double().numpy(), after.context[0].double().numpy()
    query, answered = before.query[0].double().numpy(), after.query[0].double().numpy()
    span = np.array([min(context[:, 0].min(), query[:, 0].min()), max(context[:, 0].max(), query[:, 0].max())]) * 1.08
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
    for start, end, colour in ((context, moved, COLORS["other"]), (query, answered, COLORS["trained"])):
        for (x, y), (_, y_new) in zip(start, end, strict=True):
            left.annotate("", (x, y_new), (x, y), arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.1})
    left.plot(context[:, 0], context[:, 1], "o", color=COLORS["other"], mfc="white", label="context, before")
    left.plot(moved[:, 0], moved[:, 1], "o", color=COLORS["other"], label="context, after")
    left.plot(query[:, 0], query[:, 1], "s", color=COLORS["trained"], mfc="white", label="query, before")
    left.plot(answered[:, 0], answered[:, 1], "s", color=COLORS["trained"], label="query, after")
    left.axhline(0, color="#999999", linewidth=0.8)
    left.set(xlabel="x-slot of the token", ylabel="y-slot of the token", xlim=tuple(span))
    panel_label(left, "what the layer does")
    left.legend(fontsize=8)
    right.plot(span, -float(weight_change) * span, **look("gradient descent"), label=r"$-\Delta W x$, gradient step")
    right.plot(context[:, 0], (moved - context)[:, 1], "o", color=COLORS["other"], label="context token")
    right.plot(query[:, 0], (answered - query)[:, 1], "s", color=COLORS["trained"], label="query token")
    right.set(xlabel="x-slot of the token", ylabel="change of its y-slot", xlim=tuple(span))
    panel_label(right, f"how far each token moved ($W_0$ = {float(w_0):.2g})")
    right.legend(fontsize=8)
    return figure


@styled
def frozen_length(
    lengths: Sequence[int],
    frozen: Float[Tensor, " length"],
    matched: Float[Tensor, " length"],
    sampled: Mapping[int, tuple[float, float]],
    made_for: int,
) -> Figure:
    """Relative loss against the context's length, for weights frozen at one length and for weights made for each.

    Args:
        lengths: context lengths M at which the exact losses are known, in rising order.
        frozen: exact L / L0 at each length of the weights made for `made_for` examples.
        matched: exact L / L0 at each length of the weights made for that length.
        sampled: length -> (mean, standard error) of a sampled L / L0 of the frozen weights.
        made_for: N.

    Returns:
        A figure with one panel, both axes logarithmic.

    Raises:
        ValueError: not one exact loss for each length.
    """
    for name, values in (("frozen", frozen), ("matched", matched)):
        if values.shape != (len(lengths),):
            raise ValueError(f"{name}: expected one loss for each of {len(lengths)} lengths, got {tuple(values.shape)}")
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    axes.plot(lengths, frozen.numpy(), **look("constructed"), label=f"weights made for N = {made_for}, exact")
    axes.plot(lengths, matched.numpy(), **look("theory"), label="weights made for each length, exact")
    means, errors = zip(*sampled.values(), strict=True)
    axes.errorbar(
        list(sampled), means, [2 * error for error in errors], fmt="o", ms=4.5, capsize=2, color=COLORS["constructed"],
        label="weights made for N, sampled (2 standard errors)",
    )  # fmt: skip
    axes.axhline(1, color=COLORS["other"], linewidth=0.9)
    axes.text(lengths[0], 1.06, "predicting zero", fontsize=8.5, color=COLORS["other"])
    axes.axvline(made_for, color=COLORS["other"], linewidth=0.9, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="examples M in the context", ylabel=r"expected query loss $L / L_0$")
    axes.set_xticks(list(sampled), [str(length) for length in sampled])
    axes.minorticks_off()
    axes.legend(fontsize=8.5)
    return figure
