"""Pictures of methods on eigenvalues: what a layer does to them, and how fast errors fall."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mesa_lib.figures.style import COLORS, MARKERS, look, panel_label, styled
from mesa_lib.validation import one_of


def _draw(axes: Axes, x: Sequence[float], curves: Mapping[str, tuple[str, Tensor]], *, markers: bool) -> None:
    seen: dict[str, int] = {}
    for text, (role, values) in curves.items():
        if values.dim() != 1 or len(values) > len(x) or len(values) == 0:
            raise ValueError(f"curves[{text!r}]: expected 1 to {len(x)} numbers, got shape {tuple(values.shape)}")
        number = seen[role] = seen.get(role, -1) + 1
        places = x[: len(values)]
        if role == "theory":
            axes.plot(places, values, color=COLORS["theory"], linewidth=5, alpha=0.3, label=text, zorder=1)
        elif markers:
            axes.plot(places, values, **look(role), marker=MARKERS[number % len(MARKERS)], markersize=4.5,
                      linewidth=1.3, label=text, zorder=3)  # fmt: skip
        else:
            axes.plot(places, values, **look(role), linewidth=1.6 + number, label=text, zorder=3)


@styled
def method_curves(
    x: Sequence[float],
    curves: Mapping[str, tuple[str, Tensor]],
    x_label: str,
    y_label: str,
    scale: str = "linear",
    levels: Mapping[str, float] | None = None,
    markers: bool = True,
    y_range: tuple[float, float] | None = None,
) -> Figure:
    """One curve for each method, with names; theory's is a broad pale line, and levels are thin ones.

    Args:
        x: places on the horizontal axis.
        curves: name -> (role, values); fewer values than places end early. Curves of one role differ in marker or line.
        x_label: what x is.
        y_label: what the values are, with their unit.
        scale: "linear", "log x", "log y" or "log log".
        levels: name -> height of a horizontal line.
        markers: whether to mark each value; fine grids are better without.
        y_range: the values to show; all of them by default.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: no curve, a curve that is no vector or longer than `x`, an unknown role or scale.
    """
    one_of("scale", scale, ("linear", "log x", "log y", "log log"))
    if not curves:
        raise ValueError("curves: expected at least one, got none")
    figure, axes = plt.subplots(figsize=(7.0, 3.8))
    _draw(axes, x, curves, markers=markers)
    for text, height in (levels or {}).items():
        axes.axhline(height, color=COLORS["theory"], linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(text, (1, height), xycoords=("axes fraction", "data"), xytext=(-2, 3),
                      textcoords="offset points", ha="right", va="bottom", fontsize=8.5)  # fmt: skip
    axes.set(xlabel=x_label, ylabel=y_label,
             xscale="log" if scale in ("log x", "log log") else "linear",
             yscale="log" if scale in ("log y", "log log") else "linear")  # fmt: skip
    if y_range is not None:
        axes.set_ylim(*y_range)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8.5)
    return figure


@styled
def eigenvalue_moves(
    eigenvalues: Float[Tensor, "point"],
    images: Mapping[str, Float[Tensor, "point"]],
    ratios: Mapping[str, Float[Tensor, "layer"]],
) -> Figure:
    """Left: where one layer sends each eigenvalue, beside the diagonal. Right: the condition number layer by layer.

    Args:
        eigenvalues: ascending, shape (point).
        images: name -> where they go, shape (point).
        ratios: name -> largest over least eigenvalue after 0, 1, 2, ... layers.

    Returns:
        A figure with two panels.

    Raises:
        ValueError: nothing to draw, or shapes that do not fit.
    """
    if not images or not ratios:
        raise ValueError("images, ratios: expected at least one each")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.5))
    left.plot(eigenvalues, eigenvalues, color=COLORS["other"], linewidth=1, linestyle=(0, (1, 1)), label="unchanged")
    roles = ("gd++", "constructed", "interpolated")
    _draw(left, eigenvalues.tolist(), {text: (roles[k % 3], image) for k, (text, image) in enumerate(images.items())},
          markers=False)  # fmt: skip
    longest = max(len(values) for values in ratios.values())
    _draw(right, range(longest), {text: (roles[k % 3], values) for k, (text, values) in enumerate(ratios.items())},
          markers=True)  # fmt: skip
    left.set(xlabel=r"eigenvalue $\lambda$ before the layer", ylabel="after the layer")
    right.set(xlabel="layers", ylabel=r"condition number", yscale="log")
    panel_label(left, "one layer")
    panel_label(right, "many layers")
    left.legend(fontsize=8)
    right.legend(fontsize=8)
    return figure
