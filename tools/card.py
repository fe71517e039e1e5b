"""Draw the picture that stands beside links to the book: `python -m tools.card` writes book/_static/card.png."""

from typing import Any

import matplotlib.pyplot as plt
import torch

import mesa_lib as mesa
from mesa_lib.figures import COLORS
from tools.toc import ROOT

CARD = ROOT / "book" / "_static" / "card.png"
PAPER, INK, QUIET = "#fcfaf5", "#24272b", "#5a5a58"
WIDTH, HEIGHT, DPI = 1200, 630, 100


def main() -> None:
    """Draw a task, the line before a step of gradient descent and the line after it, and the book's title."""
    batch = mesa.LinearTasks(x_dim=1, num_context=9, noise_std=0.15).sample(1, mesa.generator(4, "validation tasks"))
    x, y = batch.context_x.flatten(), batch.context_y.flatten()
    before = -0.35
    after = before - 2.2 * float(((before * x - y) * x).mean())
    ends = torch.tensor([-1.1, 1.1])

    figure = plt.figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=PAPER)
    axes = figure.add_axes((0.52, 0.1, 0.44, 0.8), facecolor=PAPER)
    axes.plot(ends, before * ends, color=QUIET, linestyle=(0, (3, 3)), linewidth=3)
    axes.plot(ends, after * ends, color=INK, linewidth=5)
    axes.plot(x, y, "o", color=COLORS["trained"], markersize=17)
    arrow = {"arrowstyle": "-|>,head_width=0.6,head_length=1.0", "color": COLORS["gradient descent"], "linewidth": 4}
    axes.annotate("", (0.8, after * 0.8), (0.8, before * 0.8), arrowprops=arrow)
    axes.axis("off")
    serif: dict[str, Any] = {"family": "DejaVu Serif", "color": INK}
    figure.text(0.055, 0.62, "Mesa", fontsize=72, weight="bold", **serif)
    figure.text(0.058, 0.43, "a transformer’s forward pass\nas gradient descent", fontsize=25, linespacing=1.4, **serif)
    figure.text(0.058, 0.12, "an executable book", fontsize=18, **serif | {"color": QUIET})
    figure.savefig(CARD, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
