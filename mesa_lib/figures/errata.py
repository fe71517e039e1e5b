"""Pictures of published numbers beside what the readings of a text would have given."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from torch import Tensor

from mesa_lib.figures.style import COLORS, styled


@styled
def printed_maxima(
    lengths: Sequence[int],
    printed: Float[Tensor, "length"],
    simulated: Mapping[str, Float[Tensor, "length draw"]],
) -> Figure:
    """Printed largest eigenvalues beside bands of simulated ones, against the context's length, on logarithmic axes.

    Args:
        lengths: N of every printed number.
        printed: largest eigenvalues of X X^T, in units of x squared.
        simulated: reading of the text -> largest eigenvalues of several draws; each band goes from least to greatest.

    Returns:
        A figure with one panel.

    Raises:
        ValueError: not one printed number and one row of draws for each length.
    """
    if printed.shape != (len(lengths),):
        raise ValueError(f"printed: expected {len(lengths)} numbers, got shape {tuple(printed.shape)}")
    figure, axes = plt.subplots(figsize=(5.4, 3.6))
    for (text, draws), hatch in zip(simulated.items(), cycle(("", "///", "...")), strict=False):
        if draws.dim() != 2 or len(draws) != len(lengths):
            raise ValueError(f"simulated[{text!r}]: expected {len(lengths)} rows, got shape {tuple(draws.shape)}")
        low, high = draws.double().amin(-1).tolist(), draws.double().amax(-1).tolist()
        axes.fill_between(lengths, low, high, color=COLORS["theory"], alpha=0.35, linewidth=1.2, hatch=hatch)
        middle = (low[-1] * high[-1]) ** 0.5
        axes.annotate(text, (lengths[-1], middle), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)
    axes.plot(lengths, printed.tolist(), "o", color=COLORS["gradient descent"], markersize=6, label="printed", zorder=3)
    axes.set(xscale="log", yscale="log", xlabel="examples in the context $N$")
    axes.set_ylabel("largest eigenvalue of $X X^T$\nin units of $x^2$")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(list(lengths), [str(length) for length in lengths])
    least, greatest = axes.get_ylim()
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500) if least <= tick <= greatest]
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.legend(loc="upper left")
    return figure
