"""Every figure as a drawing that fits the page, light or dark, and that can be downloaded; and a gallery of them all.

    :::{figure-gallery}
    :::

The drawings are the SVGs that the notebooks store beside the PNGs (tools/drawings.py).
"""

import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from .drawings import Drawing, read_drawings

FOLDER = "_static/figures"


def notebooks(env: BuildEnvironment) -> dict[str, Path]:
    """The notebooks of the book, by page, in reading order."""
    site_map = env.external_site_map  # type: ignore[attr-defined]  # of sphinx-external-toc: _toc.yml
    sources = {page: Path(env.doc2path(page)) for page in site_map}
    return {page: source for page, source in sources.items() if source.suffix == ".ipynb"}


def write_files(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Write every drawing, as it is and for both papers, beside the doctrees; add that folder to the static paths."""
    folder = Path(app.doctreedir) / "figure_files"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "figures").mkdir(parents=True)
    for source in notebooks(env).values():
        for drawing in read_drawings(source):
            texts = {"": drawing.svg, "-light": drawing.on("light"), "-dark": drawing.on("dark")}
            for suffix, text in texts.items():
                (folder / "figures" / f"{drawing.name}{suffix}.svg").write_text(text, encoding="utf-8")
    app.config.html_static_path.append(str(folder))


def show_drawings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put a page's drawings in the places of its pictures, and a link to the file at the end of each caption."""
    source = Path(app.env.doc2path(docname))
    if app.builder.format != "html" or source.suffix != ".ipynb":
        return
    drawings = {drawing.name: drawing for drawing in read_drawings(source)}
    folder = relative_uri(app.builder.get_target_uri(docname), FOLDER)
    for figure in doctree.findall(nodes.figure):
        drawing = next((drawings[name] for name in figure["names"] if name in drawings), None)
        picture = next(figure.findall(nodes.image), None)
        if drawing is None or picture is None:
            continue
        shown = images(drawing, folder, picture.get("width", "100%"))
        picture.replace_self(nodes.raw("", shown, format="html"))
        for caption in figure.findall(nodes.caption):
            caption += nodes.raw("", " " + download(drawing, folder), format="html")


def images(drawing: Drawing, folder: str, width: str) -> str:
    """The HTML of a drawing on both papers; the page shows one, and the browser fetches only that."""
    room = "width={} height={}".format(*(f'"{pixels}"' for pixels in drawing.size))
    return "".join(
        f'<img class="drawing on-{paper}" src="{folder}/{drawing.name}-{paper}.svg" alt="{escape(drawing.alt)}" {room}'
        f' style="--drawing-width: {escape(width)}" loading="lazy" decoding="async">'
        for paper in ("light", "dark")
    )


def download(drawing: Drawing, folder: str) -> str:
    """The HTML of a link to a drawing's file."""
    file = f"{drawing.name}.svg"
    return f'<a class="drawing-file" href="{folder}/{file}" download="{file}" aria-label="Download {file}">SVG</a>'


class FigureGallery(SphinxDirective):
    """Every figure of the book, by chapter: the drawing, its caption, and the file."""

    def run(self) -> list[nodes.Node]:
        """Make a grid of the figures of every notebook that has some."""
        shown: list[nodes.Node] = []
        for page, source in notebooks(self.env).items():
            self.env.note_dependency(str(source))
            if drawings := read_drawings(source):
                heading, messages = self.parse_inline(f"{{doc}}`/{page}`")
                shown += [nodes.rubric("", "", *heading), *messages, self._grid(page, drawings)]
        return shown

    def _grid(self, page: str, drawings: Sequence[Drawing]) -> nodes.container:
        here, builder = self.env.docname, self.env.app.builder
        folder = relative_uri(builder.get_target_uri(here), FOLDER)
        target = builder.get_relative_uri(here, page)
        grid = nodes.container(classes=["figure-gallery"])
        for drawing in drawings:
            item = nodes.container(classes=["figure-gallery-item"])
            place = f"{target}#{drawing.name}"
            item += nodes.raw("", f'<a href="{place}">{images(drawing, folder, "100%")}</a>', format="html")
            said, messages = self.parse_inline(f"{{numref}}`{drawing.name}`. {drawing.caption}")
            item += nodes.paragraph("", "", *said, nodes.raw("", " " + download(drawing, folder), format="html"))
            item += messages
            grid += item
        return grid


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the hooks."""
    app.add_directive("figure-gallery", FigureGallery)
    app.connect("env-before-read-docs", write_files)
    app.connect("doctree-resolved", show_drawings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
