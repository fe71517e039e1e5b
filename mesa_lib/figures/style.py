"""One look for all pictures of the book."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

P = ParamSpec("P")

COLORS = {
    "trained": "#0072B2",
    "gradient descent": "#D55E00",
    "gd++": "#009E73",
    "interpolated": "#CC79A7",
    "constructed": "#E69F00",
    "theory": "#222222",
    "other": "#777777",
}
"""Okabe and Ito's colours, which stay apart for every kind of colour vision; black is for exact theory."""

LINES: dict[str, Any] = {
    "trained": "-",
    "gradient descent": "--",
    "gd++": (0, (5, 1, 1, 1)),
    "interpolated": "-.",
    "constructed": ":",
    "theory": "-",
    "other": (0, (1, 1)),
}
"""A line style for each colour's role, so that no figure depends on colour alone."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
"""Markers for curves or networks side by side, in this order, so that no figure depends on colour alone."""

BAND: dict[str, Any] = {"color": COLORS["theory"], "linewidth": 4, "alpha": 0.3, "zorder": 1}
"""Exact theory under measured data: a broad pale line that does not hide what lies on it."""

DIVERGING = "RdBu_r"
"""The colour map of signed matrices, white at zero."""

STYLE: Any = {
    "figure.dpi": 160,
    "figure.figsize": (7.0, 3.4),
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e2e2e2",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a function that draws a figure do so in the book's style.

    The figure is returned closed: pyplot forgets it, and a notebook shows it once, as the value of the cell. Global
    settings of matplotlib stay as they were.
    """

    @wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Figure:
        before = set(plt.get_fignums())
        try:
            with plt.rc_context(STYLE):
                figure = draw(*args, **kwargs)
                figure.canvas.draw()  # lay out while the style holds; the notebook renders later, without it
        finally:  # a refusal half-way leaves its figure open otherwise
            for number in set(plt.get_fignums()) - before:
                plt.close(number)
        return figure

    return wrapped


def look(role: str) -> dict[str, Any]:
    """Colour and line style of a role ("trained", "gradient descent", ...), as keywords for `Axes.plot`.

    Raises:
        ValueError: there is no such role.
    """
    if role not in COLORS:
        raise ValueError(f"role: expected one of {', '.join(map(repr, COLORS))}, got {role!r}")
    return {"color": COLORS[role], "linestyle": LINES[role]}


def panel_label(axes: Axes, text: str) -> None:
    """A short heading at the upper left of a panel, where the eye starts."""
    axes.set_title(text, loc="left")


def reference_level(axes: Axes, level: float, text: str, *, below: bool = False) -> None:
    """A level that theory predicts: a broad pale line under the data, with its name at the right end.

    Args:
        axes: where to draw.
        level: its height, in units of the vertical axis.
        text: its name; may be empty.
        below: whether the name stands below the line.
    """
    axes.axhline(level, **BAND)
    axes.annotate(text, (1, level), xycoords=("axes fraction", "data"), xytext=(-2, -5 if below else 5),
                  textcoords="offset points", ha="right", va="top" if below else "bottom", fontsize=8.5,
                  color=COLORS["theory"])  # fmt: skip
