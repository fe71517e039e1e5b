"""Pictures of a layer off its training distribution: other scales, lengths and sizes, and the layer repeated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.figures.style import BAND, COLORS, MARKERS, look, panel_label, styled
from mesa_lib.validation import trailing_shape

SIZE_MARKERS = MARKERS[:4]


@dataclass(frozen=True, eq=False)
class Sweep:
    """One property of the tasks moved away from training, and the relative losses L / L0 of frozen weights there.

    Attributes:
        at: where the tasks are, in rising order.
        exact: the closed form of a gradient step, one number a place.
        constructed: the weights of Proposition 1.
        trained: trained layers, one column a seed.
        interpolated: halfway between each trained layer and the construction.
        sampled: place -> (mean, standard error) of a trained layer on sampled tasks.
        home: where the layers were trained.
        swept: the range that the paper's released code sweeps, or None.
    """

    at: Sequence[float]
    exact: Float[Tensor, "place"]
    constructed: Float[Tensor, "place"]
    trained: Float[Tensor, "place ensemble"]
    interpolated: Float[Tensor, "place ensemble"]
    sampled: Mapping[float, tuple[float, float]] = field(default_factory=dict)
    home: float | None = None
    swept: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("exact", "constructed", "trained", "interpolated"):
            if len(getattr(self, name)) != len(self.at):
                raise ValueError(
                    f"Sweep.{name}: expected {len(self.at)} rows, one a place, got {len(getattr(self, name))}"
                )


@styled
def sweeps(panels: Mapping[str, Sweep]) -> Figure:
    """Frozen weights on tasks other than those of training: trained, constructed, interpolated, and the closed form.

    Args:
        panels: what is swept -> the losses; one panel each, with logarithmic axes, that of the losses shared.

    Returns:
        A figure with one panel for each sweep and a legend above.

    Raises:
        ValueError: no panel.
    """
    if not panels:
        raise ValueError("panels: expected at least one sweep, got none")
    figure, places = plt.subplots(1, len(panels), figsize=(7.4, 3.6), sharey=True, squeeze=False)
    for axes, (text, sweep) in zip(places[0], panels.items(), strict=True):
        if sweep.swept is not None:
            axes.axvspan(
                *sweep.swept, color=COLORS["other"], alpha=0.13, linewidth=0, label="swept by the released code"
            )
        if sweep.home is not None:
            axes.axvline(sweep.home, color=COLORS["other"], linewidth=1, linestyle=":", zorder=1)
        axes.axhline(1, color=COLORS["other"], linewidth=0.9, zorder=1)
        axes.plot(sweep.at, sweep.exact.numpy(), color=COLORS["theory"], linewidth=5, alpha=0.25, zorder=2,
                  label="one gradient step, closed form")  # fmt: skip
        for order, (role, curves) in enumerate((("trained", sweep.trained), ("interpolated", sweep.interpolated))):
            for member, curve in enumerate(curves.unbind(-1)):
                axes.plot(sweep.at, curve.numpy(), **{**look(role), "linewidth": 1.3}, zorder=3 + order,
                          label=f"{role} layers, {curves.shape[-1]} seeds" if member == 0 else None)  # fmt: skip
        axes.plot(sweep.at, sweep.constructed.numpy(), **look("constructed"), zorder=5, label="constructed layer")
        if sweep.sampled:
            means, errors = zip(*sweep.sampled.values(), strict=True)
            axes.errorbar(list(sweep.sampled), means, [2 * error for error in errors], fmt="o", markersize=4, capsize=2,
                          color=COLORS["trained"], label="trained, sampled tasks", zorder=6)  # fmt: skip
        axes.set(yscale="log", xlabel=text)
        axes.set_xscale("log", base=10 if sweep.at[-1] / sweep.at[0] > 32 else 2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
    places[0][0].set_ylabel("$L / L_0$")
    _legend_above(figure, list(places[0]))
    return figure


def _legend_above(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, each name once, outside of them."""
    handles: dict[str, Artist] = {}
    for axes in panels:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=2, fontsize=8.5)


@styled
def divergence(
    largest: Float[Tensor, "task"],
    thresholds: Mapping[float, float],
    shares: Mapping[float, tuple[float, float, float]],
) -> Figure:
    """Where the largest eigenvalues of contexts lie, what each damping allows, and how many tasks lie beyond.

    Args:
        largest: the largest eigenvalue of X X^T / N of each task.
        thresholds: damping -> the largest eigenvalue at which a repeated step still converges.
        shares: damping -> (share of tasks beyond, lower and upper end of its interval).

    Returns:
        A figure with two panels: a histogram with the thresholds, and the shares on a logarithmic axis.

    Raises:
        ValueError: the thresholds and the shares are not for the same dampings, or a share is outside its interval.
    """
    if set(thresholds) != set(shares) or not shares:
        raise ValueError(f"shares: expected one for each damping of {sorted(thresholds)}, got {sorted(shares)}")
    for damping, (share, low, high) in shares.items():
        if not 0 <= low <= share <= high:
            raise ValueError(f"shares[{damping}]: expected 0 <= low <= share <= high, got {(share, low, high)}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), width_ratios=[1.5, 1])
    left.hist(largest.numpy(), bins=120, color=COLORS["gradient descent"], alpha=0.65, log=True)
    top = left.get_ylim()[1]
    for number, (damping, threshold) in enumerate(thresholds.items()):
        left.axvline(threshold, color=COLORS["theory"], linewidth=1.1)
        left.annotate(rf"$\lambda = {damping:g}$", (threshold, top), xytext=(3, -12 - 14 * number), fontsize=8.5,
                      textcoords="offset points", bbox={"facecolor": "white", "linewidth": 0, "pad": 1})  # fmt: skip
    left.set(xlabel=r"largest eigenvalue of $XX^\top / N$", ylabel="tasks")
    panel_label(left, "a step diverges to the right of its line")
    dampings = list(shares)
    middle = [share for share, _, _ in shares.values()]
    below = [share - low for share, low, _ in shares.values()]
    above = [high - share for share, _, high in shares.values()]
    right.errorbar(dampings, middle, [below, above], fmt="o", markersize=5, capsize=3, color=COLORS["gradient descent"])
    right.set(xlabel=r"damping $\lambda$", ylabel="share of tasks that diverge", yscale="log")
    right.set_xticks(dampings, [f"{damping:g}" for damping in dampings], fontsize=8.5)
    panel_label(right, "and how many do")
    return figure


@styled
def evaluation_sets(
    steps: Sequence[int],
    means: Mapping[float, Float[Tensor, "step set"]],
    medians: Mapping[float, Float[Tensor, "step"]],
) -> Figure:
    """What readers see who evaluate one and the same repeated step on different draws of tasks.

    Args:
        steps: numbers of applications.
        means: damping -> the mean relative loss of each set of tasks.
        medians: damping -> the median over all tasks.

    Returns:
        A figure with one panel for each damping, on one logarithmic axis of losses.

    Raises:
        ValueError: the means and the medians are not for the same dampings, or are not one row a step.
    """
    if set(means) != set(medians) or not means:
        raise ValueError(f"medians: expected one for each damping of {sorted(means)}, got {sorted(medians)}")
    figure, panels = plt.subplots(1, len(means), figsize=(7.4, 3.2), sharey=True, squeeze=False)
    for axes, (damping, curves) in zip(panels[0], means.items(), strict=True):
        for name, values in (("means", curves), ("medians", medians[damping])):
            if len(values) != len(steps):
                raise ValueError(f"{name}[{damping}]: expected {len(steps)} rows, one a step, got {len(values)}")
        axes.plot(steps, curves.numpy(), color=COLORS["gradient descent"], linewidth=0.7, alpha=0.5, zorder=2)
        axes.plot(steps, medians[damping].numpy(), color=COLORS["theory"], linewidth=2, linestyle="--", zorder=3)
        axes.axhline(1, color=COLORS["other"], linewidth=0.9, zorder=1)
        axes.set(yscale="log", xlabel="steps", ylim=(3e-2, 1e4))
        panel_label(axes, rf"$\lambda = {damping:g}$")
    panels[0][0].set_ylabel("$L / L_0$")
    last = panels[0][-1]
    last.plot([], [], color=COLORS["gradient descent"], linewidth=1, label=f"mean of one set, {curves.shape[-1]} sets")
    last.plot([], [], color=COLORS["theory"], linewidth=2, linestyle="--", label="median task")
    _legend_above(figure, [last])
    return figure


@styled
def roll_outs(
    panels: Mapping[str, Mapping[str, tuple[str, Float[Tensor, "step ensemble"], Float[Tensor, "step ensemble"]]]],
) -> Figure:
    """A layer applied again and again: the median task's loss, and the share of tasks that are lost.

    Args:
        panels: text -> text of a network -> (its role in `COLORS`, median relative loss, share of divergent tasks),
            after 1, 2, ... applications, one column a seed.

    Returns:
        A figure with two rows: median losses and divergent shares, and one column for each panel.

    Raises:
        ValueError: no panel, or losses and shares of different shapes.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got none")
    figure, rows = plt.subplots(2, len(panels), figsize=(7.4, 5.0), sharex=True, sharey="row", squeeze=False,
                                height_ratios=[1.6, 1])  # fmt: skip
    for (upper, lower), (title, networks) in zip(rows.T, panels.items(), strict=True):
        for text, (role, medians, shares) in networks.items():
            trailing_shape(f"panels[{title!r}][{text!r}]", shares, tuple(medians.shape))
            steps = range(1, len(medians) + 1)
            for member, (loss, lost) in enumerate(zip(medians.unbind(-1), shares.unbind(-1), strict=True)):
                style = {**look(role), "linewidth": 3.5 if role == "gradient descent" else 1.4}
                style["alpha"] = 0.45 if role == "gradient descent" else 0.9
                upper.plot(steps, loss.clamp(max=10).numpy(), **style, label=text if member == 0 else None)
                lower.plot(steps, lost.numpy(), **style)
        upper.set(yscale="log", ylim=(0.03, 1.5))
        lower.set(xlabel="applications", ylim=(-0.03, 1.03))
        panel_label(upper, title)
    rows[0][0].set_ylabel("median $L / L_0$")
    rows[1][0].set_ylabel("share of tasks lost")
    _legend_above(figure, list(rows[0]))
    return figure


@styled
def loss_by_size(
    lengths: Sequence[int],
    exact: Mapping[int, Float[Tensor, "length"]],
    trained: Mapping[int, tuple[Sequence[int], Float[Tensor, "size ensemble"]]],
    targets: tuple[int, Float[Tensor, "member"]] | None = None,
) -> Figure:
    """Relative losses of trained layers for several numbers of inputs and of examples, on the exact curves.

    Args:
        lengths: numbers N of examples of the curves.
        exact: number of inputs d -> L* / L0 at each length.
        trained: d -> (some N, L / L0 of the layers trained there).
        targets: an N, and L / L0 of layers with several targets, drawn there in another colour.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: curves and trained layers are not for the same d, there are more d than markers, or a curve is not
            one number a length.
    """
    if set(exact) != set(trained) or not 1 <= len(exact) <= len(SIZE_MARKERS):
        raise ValueError(
            f"trained: expected layers for each d of {sorted(exact)}, 1 to {len(SIZE_MARKERS)}, got {sorted(trained)}"
        )
    figure, axes = plt.subplots(figsize=(7.0, 3.5))
    for marker, (d, curve) in zip(SIZE_MARKERS, exact.items(), strict=False):
        if len(curve) != len(lengths):
            raise ValueError(f"exact[{d}]: expected {len(lengths)} numbers, one a length, got {len(curve)}")
        axes.plot(lengths, curve.numpy(), **BAND,
                  label="one gradient step, exact" if marker == SIZE_MARKERS[0] else None)  # fmt: skip
        sizes, losses = trained[d]
        for size, row in zip(sizes, losses, strict=True):
            axes.plot([size] * len(row), row.numpy(), marker, color=COLORS["trained"], alpha=0.6, markersize=5.5,
                      label=f"trained, d = {d}" if size == sizes[0] else None, zorder=3)  # fmt: skip
    if targets is not None:
        at, row = targets
        axes.plot([at] * len(row), row.numpy(), "x", color=COLORS["gradient descent"], markersize=7, zorder=4,
                  label="trained, several targets")  # fmt: skip
    axes.set(xlabel="examples $N$ in the context", ylabel="$L / L_0$", ylim=(0, 1))
    axes.legend(fontsize=8.5, ncols=2)
    return figure
