"""Pictures of a training: losses beside exact theory, agreement with gradient descent, weights, interpolation."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.comparison import Comparison
from mesa_lib.figures.construction import draw_matrix
from mesa_lib.figures.style import COLORS, look, panel_label, reference_level, styled
from mesa_lib.networks.attention import AttentionWeights


def _check_rows(name: str, values: Tensor, rows: int) -> None:
    if values.dim() != 2 or values.shape[0] != rows:
        raise ValueError(f"{name}: expected {rows} rows and one column a seed, got shape {tuple(values.shape)}")


@styled
def loss_curves(
    steps: Sequence[int], relative_losses: Float[Tensor, "record ensemble"], levels: Mapping[str, float]
) -> Figure:
    """Exact relative loss L / L0 of every seed against the training step, with named levels that theory predicts.

    Args:
        steps: the recorded steps.
        relative_losses: shape (record, ensemble).
        levels: text -> relative loss, drawn as horizontal lines.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: not one row of losses for each step.
    """
    _check_rows("relative_losses", relative_losses, len(steps))
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    for member, curve in enumerate(relative_losses.double().unbind(-1)):
        axes.plot(steps, curve.numpy(), color=COLORS["trained"], linewidth=1.2, alpha=0.85, zorder=3,
                  label=f"trained layer, {relative_losses.shape[-1]} seeds" if member == 0 else None)  # fmt: skip
    for text, level in levels.items():
        reference_level(axes, level, text, below=True)
    axes.set(xlabel="training step", ylabel=r"expected query loss $L / L_0$", ylim=(0.42, 1.06), xlim=(0, steps[-1]))
    axes.legend(loc="center right")
    return figure


@styled
def agreement_curves(steps: Sequence[int], comparisons: Sequence[Comparison], landed: Sequence[int]) -> Figure:
    """The paper's three measures through training, for the members that landed: median and full range.

    Args:
        steps: the recorded steps.
        comparisons: one for each step, its fields of shape (ensemble).
        landed: the ensemble members to draw.

    Returns:
        A figure with two panels: the two differences, and the cosine.

    Raises:
        ValueError: not one comparison for each step, or no member to draw.
    """
    if len(comparisons) != len(steps) or not landed:
        raise ValueError(
            f"comparisons, landed: expected {len(steps)} comparisons and at least one member, got "
            f"{len(comparisons)} and {len(landed)}"
        )
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
    shown = (
        (left, "prediction_difference", "prediction difference", "trained"),
        (left, "sensitivity_difference", "sensitivity difference", "interpolated"),
        (right, "sensitivity_cosine", "cosine of sensitivities", "trained"),
    )
    for axes, field, text, role in shown:
        rows = [getattr(comparison, field)[list(landed)].double() for comparison in comparisons]
        axes.plot(steps, [float(row.median()) for row in rows], **look(role), label=text)
        low, high = [float(row.min()) for row in rows], [float(row.max()) for row in rows]
        axes.fill_between(steps, low, high, color=COLORS[role], alpha=0.2, linewidth=0)
    left.set(xlabel="training step", ylabel="mean difference to one gradient step", yscale="log")
    right.set(xlabel="training step", ylabel="cosine", ylim=(-0.05, 1.05))
    reference_level(right, 1.0, "")
    panel_label(left, "how far from the gradient step")
    panel_label(right, "same direction?")
    left.legend()
    right.legend(loc="lower right")
    return figure


@styled
def products(trained: AttentionWeights, constructed: AttentionWeights, x_dim: int) -> Figure:
    """W_KQ and W_PV of a trained layer beside those of a construction, both in canonical form.

    Args:
        trained: one canonical layer without ensemble axes; its first head is drawn.
        constructed: the same for the construction.
        x_dim: where the x block of a token ends.

    Returns:
        A figure with two rows of two panels and one colour bar a column.

    Raises:
        ValueError: a layer has ensemble axes.
    """
    for name, weights in (("trained", trained), ("constructed", constructed)):
        if weights.w_k.dim() != 3:
            raise ValueError(f"{name}: expected a layer without ensemble axes, got {tuple(weights.w_k.shape)}")
    figure, panels = plt.subplots(1, 4, figsize=(7.4, 2.5), width_ratios=[1, 1, 1, 1])
    columns = (("$W_{KQ}$", trained.w_kq[0], constructed.w_kq[0]), ("$W_{PV}$", trained.w_pv[0], constructed.w_pv[0]))
    for number, (symbol, ours, theirs) in enumerate(columns):
        limit = float(theirs.abs().max())
        pair = panels[2 * number : 2 * number + 2]
        for axes, owner, matrix in zip(pair, ("trained", "constructed"), (ours, theirs), strict=True):
            draw_matrix(axes, matrix, x_dim, limit, numbers=False)
            axes.set_title(f"{symbol}, {owner}", fontsize=9)
        bar = figure.colorbar(pair[0].images[0], ax=list(pair), orientation="horizontal", shrink=0.75, pad=0.04)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8)
    return figure


@styled
def interpolation_curves(
    fractions: Sequence[float],
    in_product_space: Float[Tensor, "fraction ensemble"],
    factor_by_factor: Float[Tensor, "fraction ensemble"],
    optimum: float,
) -> Figure:
    """Relative loss on the way from each trained layer to the construction, averaged in two ways.

    Args:
        fractions: 0 is the trained layer, 1 the construction.
        in_product_space: L / L0 of `interpolate`, shape (fraction, ensemble).
        factor_by_factor: L / L0 of `average_factors`, shape (fraction, ensemble).
        optimum: L* / L0.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: not one row for each fraction.
    """
    _check_rows("in_product_space", in_product_space, len(fractions))
    _check_rows("factor_by_factor", factor_by_factor, len(fractions))
    figure, axes = plt.subplots(figsize=(7.0, 3.4))
    shown = ((in_product_space, "interpolated", "products, canonical"), (factor_by_factor, "other", "factor by factor"))
    for values, role, text in shown:
        for member, curve in enumerate(values.unbind(-1)):
            axes.plot(fractions, curve.numpy(), **{**look(role), "linewidth": 1.3, "zorder": 3},
                      label=text if member == 0 else None)  # fmt: skip
    reference_level(axes, optimum, "one gradient step, exact", below=True)
    axes.set(xlabel="fraction of the way: 0 trained, 1 constructed", ylabel=r"expected query loss $L / L_0$")
    axes.margins(y=0.12)
    axes.legend()
    return figure
