"""Pictures of tasks that are less plain: a preconditioner, one curve of steps, a stored W_0, longer tests."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter
from torch import Tensor

from mesa_lib.figures.style import BAND, COLORS, LINES, MARKERS, look, panel_label, styled
from mesa_lib.validation import trailing_shape

MOST_KINDS = 7


@styled
def preconditioner_against_variance(
    variances: Float[Tensor, "x"],
    exact: Float[Tensor, "x"],
    sampled: tuple[Float[Tensor, "x"], Float[Tensor, "x"]],
    trained: Float[Tensor, "ensemble x"],
    scalar: float,
    losses: Mapping[str, float | Float[Tensor, "ensemble"]],
) -> Figure:
    """How far a layer steps along each direction of the inputs, beside the loss that this earns.

    Args:
        variances: the eigenvalues of the inputs' covariance.
        exact: the optimal preconditioner along the eigenvectors.
        sampled: its estimate from sampled tasks, and the standard error.
        trained: the same read off each trained layer.
        scalar: the best step size eta.
        losses: text -> relative loss L / L0, one number for an exact level or one a seed; the text "trained layer"
            stands for the seeds.

    Returns:
        A figure with two panels.

    Raises:
        ValueError: the numbers do not belong to the same directions.
    """
    for name, values in (("exact", exact), ("sampled", sampled[0]), ("sampled", sampled[1]), ("trained", trained)):
        trailing_shape(name, values, (len(variances),))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), width_ratios=[1.5, 1])
    x = variances.numpy()
    left.plot(x, exact.numpy(), label="optimal, exact", **BAND)
    left.axhline(scalar, **look("gradient descent"), label="best single step size", zorder=2)
    for member, row in enumerate(trained):
        left.plot(x, row.numpy(), "o", markersize=4.5, color=COLORS["trained"], alpha=0.6, zorder=3,
                  label=f"trained layer, {len(trained)} seeds" if member == 0 else None)  # fmt: skip
    left.errorbar(x, sampled[0].numpy(), yerr=2 * sampled[1].numpy(), fmt="_", markersize=9, capsize=2,
                  color=COLORS["theory"], linewidth=1, label="optimal, sampled tasks", zorder=4)  # fmt: skip
    left.set(xscale="log", xlabel="variance of the inputs along a direction", ylabel="step along it", ylim=(0, None))
    left.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    left.xaxis.set_minor_formatter(NullFormatter())
    panel_label(left, "further where inputs are small")
    left.legend(fontsize=8.5)
    _loss_rows(right, losses, {name: "trained" if name == "trained layer" else "theory" for name in losses})
    right.set_xlabel(r"expected query loss $L / L_0$")
    panel_label(right, "and what it earns")
    return figure


@styled
def steps_on_one_curve(
    curve: tuple[Sequence[float], Sequence[float]], kinds: Mapping[str, tuple[float, Float[Tensor, "ensemble"]]]
) -> Figure:
    """Step sizes of trained layers, for several kinds of tasks, against the noise that a step has to bear.

    Args:
        curve: effective examples and eta* m2 for them, exact.
        kinds: text -> effective examples of the tasks, and eta m2 read off each trained layer.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: no kind of tasks, or more than there are markers.
    """
    if not 1 <= len(kinds) <= MOST_KINDS:
        raise ValueError(f"kinds: expected 1 to {MOST_KINDS} kinds of tasks, got {len(kinds)}")
    figure, axes = plt.subplots(figsize=(7.0, 3.4))
    axes.plot(*curve, label="optimal step, exact", **BAND)
    colors = [color for role, color in COLORS.items() if role != "theory"]
    for number, (text, (examples, steps)) in enumerate(kinds.items()):
        axes.plot([examples] * len(steps), steps.numpy(), MARKERS[number], markersize=6, alpha=0.75, linestyle="none",
                  color=colors[number % len(colors)], label=text, zorder=3)  # fmt: skip
    axes.set(xlabel=r"effective examples $N + d - 2 + \kappa + s$", ylabel=r"step size $\eta\, m_2$")
    axes.margins(y=0.2)
    axes.legend(ncols=2, fontsize=8.5)
    return figure


@styled
def stored_start(mean: Float[Tensor, "x"], places: Mapping[str, Float[Tensor, "ensemble x"]]) -> Figure:
    """What trained layers hold as W_0, entry by entry, against the mean of the teachers.

    Args:
        mean: the teacher's mean, for one target.
        places: text -> W_0 as read off there, from each trained layer; one panel each.

    Returns:
        A figure with one panel a place.

    Raises:
        ValueError: no place, or numbers that are not one a weight.
    """
    if not places:
        raise ValueError("places: expected at least one place to read W_0 off, got none")
    for text, values in places.items():
        trailing_shape(f"places[{text!r}]", values, (len(mean),))
    figure, panels = plt.subplots(1, len(places), figsize=(7.4, 3.0), sharex=True, sharey=True, squeeze=False)
    limit = 1.15 * float(mean.abs().max())
    for axes, (text, values) in zip(panels[0], places.items(), strict=True):
        axes.plot([-limit, limit], [-limit, limit], **BAND)
        for row in values:
            axes.plot(mean.numpy(), row.numpy(), "o", markersize=4.5, color=COLORS["trained"], alpha=0.6, zorder=3)
        axes.set_xlabel("entry of the teachers' mean")
        axes.set_title(text, loc="left", fontsize=9.5)
    panels[0, 0].set_ylabel("entry of the stored $W_0$")
    return figure


@styled
def loss_rows(
    rows: Mapping[str, tuple[float, Float[Tensor, "ensemble"] | None]], levels: Mapping[str, float]
) -> Figure:
    """Losses of trained layers, one row for each way to build them, beside the prediction for that row.

    Args:
        rows: text -> the predicted relative loss, and one of each trained layer, or None if none was trained.
        levels: text -> relative loss, drawn as vertical lines through all rows.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: no row.
    """
    if not rows:
        raise ValueError("rows: expected at least one row of losses, got none")
    figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.46 * len(rows)))
    names = list(rows)
    for place, (predicted, losses) in enumerate(rows.values()):
        axes.plot([predicted] * 2, [place - 0.32, place + 0.32], color=COLORS["theory"], linewidth=4, alpha=0.35,
                  label="predicted" if place == 0 else None, zorder=2)  # fmt: skip
        if losses is not None:
            axes.plot(losses.numpy(), [place] * len(losses), "o", color=COLORS["trained"], alpha=0.6, markersize=5.5,
                      label="trained, one dot a seed", zorder=3)  # fmt: skip
    for (text, level), style in zip(levels.items(), cycle(("--", ":", "-.")), strict=False):
        axes.axvline(level, color=COLORS["gradient descent"], linestyle=style, linewidth=1.2, label=text, zorder=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel=r"expected query loss $L / L_0$")
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside upper center", ncols=2, fontsize=8.5)
    return figure


@styled
def longer_tests(
    lengths: Sequence[int],
    exact: Mapping[str, Float[Tensor, "length"]],
    floors: Mapping[str, float],
    trained: tuple[Sequence[int], Float[Tensor, "length ensemble"]],
    made_for: int,
) -> Figure:
    """Relative loss of a layer whose step is held fixed while the test's context grows, and where it ends.

    Args:
        lengths: the test lengths M of the curves.
        exact: text -> L / L0 at each length.
        floors: text -> the limit for M to infinity, for the same kinds of inputs.
        trained: some lengths, and L / L0 of trained layers there.
        made_for: the length of the training contexts.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: the curves and their floors do not have the same names, or a curve is not one number a length.
    """
    if set(exact) != set(floors):
        raise ValueError(f"floors: expected one for each of {sorted(exact)}, got {sorted(floors)}")
    for text, curve in exact.items():
        if len(curve) != len(lengths):
            raise ValueError(f"exact[{text!r}]: expected {len(lengths)} numbers, one a length, got {len(curve)}")
    figure, axes = plt.subplots(figsize=(7.0, 3.5))
    roles = [role for role in COLORS if role not in ("theory", "trained")]
    for role, (text, curve) in zip(cycle(roles), exact.items(), strict=False):
        axes.plot(lengths, curve.numpy(), color=COLORS[role], linestyle=LINES[role], label=text, zorder=3)
        axes.axhline(floors[text], color=COLORS[role], linewidth=3.5, alpha=0.25, zorder=1)
    at, losses = trained
    for place, row in zip(at, losses, strict=True):
        axes.plot([place] * len(row), row.numpy(), "o", color=COLORS["trained"], alpha=0.6, markersize=5, zorder=4,
                  label=f"trained, {losses.shape[-1]} seeds" if place == at[0] else None)  # fmt: skip
    axes.axvline(made_for, color=COLORS["other"], linewidth=1, linestyle=":", zorder=1)
    axes.annotate("length in training", (made_for, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
                  textcoords="offset points", fontsize=8.5, color=COLORS["other"])  # fmt: skip
    axes.set(xscale="log", xlabel="length $M$ of the test's context", ylabel="$L / L_0$", ylim=(0, None))
    axes.legend(fontsize=8.5)
    return figure


def _loss_rows(axes: Axes, losses: Mapping[str, float | Tensor], roles: Mapping[str, str]) -> None:
    for place, (text, value) in enumerate(losses.items()):
        color = COLORS[roles[text]]
        if isinstance(value, Tensor):
            axes.plot(value.numpy(), [place] * len(value), "o", color=color, alpha=0.6, markersize=5, zorder=3)
        else:
            axes.plot([value] * 2, [place - 0.3, place + 0.3], color=color, linewidth=4, alpha=0.35, zorder=2)
    axes.set(yticks=range(len(losses)), yticklabels=list(losses), ylim=(len(losses) - 0.4, -0.6))
    axes.grid(axis="y", visible=False)
