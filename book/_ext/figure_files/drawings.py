"""A chapter's figures as files: each drawing as it was made, and recoloured for the paper of light and dark pages."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIME_TYPE = "image/svg+xml"

# The page's colours, as in book/_static/custom.css.
PAPER = {"light": "#fcfaf5", "dark": "#17191d"}
INK = {"light": "#000000", "dark": "#dcd9d1"}
# Okabe and Ito's colours, lighter: as far from dark paper as the others are from white.
LIGHTER = {
    "#0072b2": "#56b4e9",
    "#d55e00": "#f0894a",
    "#009e73": "#3cc79b",
    "#cc79a7": "#dd9cc0",
    "#e69f00": "#eeb43c",
}

_COLOR = re.compile(r"#[0-9a-f]{6}\b")
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt" height="([\d.]+)pt"')
_CSS_PIXELS = 96 / 72  # a point's


@dataclass(frozen=True)
class Drawing:
    """A figure of a chapter.

    Attributes:
        name: by which text refers to it.
        caption: in MyST.
        alt: what it shows, in words.
        svg: the drawing as the chapter stores it.
    """

    name: str
    caption: str
    alt: str
    svg: str

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in CSS pixels, for the room that the page keeps until the drawing is there."""
        found = _SIZE.search(self.svg)
        if found is None:
            raise ValueError(f"{self.name}: the drawing has no size in points: {self.svg[:120]!r}")
        return round(float(found[1]) * _CSS_PIXELS), round(float(found[2]) * _CSS_PIXELS)

    def on(self, paper: str) -> str:
        """The drawing for "light" or "dark" pages: white becomes the paper, black the ink, greys go between."""
        recoloured = _COLOR.sub(lambda color: recolor(color[0], paper), self.svg)
        return recoloured.replace("<svg ", f'<svg fill="{INK[paper]}" ', 1)  # of what has no colour of its own: text


def recolor(color: str, paper: str) -> str:
    """What a colour becomes on a paper."""
    channels = _channels(color)
    if len(set(channels)) == 1:
        share = channels[0] / 255
        mixed = (i + share * (p - i) for i, p in zip(_channels(INK[paper]), _channels(PAPER[paper]), strict=True))
        return "#" + "".join(f"{round(channel):02x}" for channel in mixed)
    return LIGHTER.get(color, color) if paper == "dark" else color


def _channels(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


def read_drawings(path: Path) -> list[Drawing]:
    """The figures of a notebook that it stores as drawings, in order."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [drawing for cell in cells if (drawing := _drawing(cell)) is not None]


def _drawing(cell: Mapping[str, Any]) -> Drawing | None:
    described = cell["metadata"].get("mystnb", {})
    for output in cell.get("outputs", []):
        if "figure" in described and MIME_TYPE in output.get("data", {}):
            figure = described["figure"]
            alt = described.get("image", {}).get("alt", "")
            return Drawing(figure["name"], figure["caption"], alt, "".join(output["data"][MIME_TYPE]))
    return None
