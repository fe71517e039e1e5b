"""Widgets in the pages: each page gets the front ends of the widgets that it shows, and what they share, and no others.

    :::{widget-gallery}
    :::

shows all of them on one page, each with a link to its chapter, and

    :::{widget} step_on_data
    :::

shows one away from its chapter, named by its front end.

What a page needs is read from the outputs of its cells: the HTML of a widget names its front end (`mesa_lib.widgets`).
The front ends come from the package, so that a page and a notebook run the same code. They are added here and not in
`_config.yml`, since Jupyter Book would put every script that stands there on every page.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from mesa_lib.widgets.linker import front_ends, page_script, style_sheet

from .stills import with_still

RUNTIME = Path(__file__).with_name("runtime.js")
_FRONT_END = re.compile(r'<div class="mesa-widget" data-front-end="(\w+)"')


def write_scripts(app: Sphinx) -> None:
    """Write every front end, the runtime and the style sheet beside the doctrees, and add them to the static paths."""
    if app.builder.format != "html":
        return
    folder = Path(app.doctreedir) / "live_widgets"
    shutil.rmtree(folder, ignore_errors=True)
    scripts = folder / "widgets"
    scripts.mkdir(parents=True)
    for name in front_ends():
        (scripts / f"{name}.js").write_text(page_script(name), encoding="utf-8")
    (scripts / "widgets.css").write_text(style_sheet(), encoding="utf-8")
    shutil.copy(RUNTIME, scripts)
    app.config.html_static_path.append(str(folder))


def shown_front_ends(doctree: nodes.document) -> list[str]:
    """The front ends of the widgets on a page, each once, in the order of the page."""
    raw = (node.astext() for node in doctree.findall(nodes.raw) if "html" in node.get("format", ""))
    return list(dict.fromkeys(name for text in raw for name in _FRONT_END.findall(text)))


def add_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Link what the page's widgets need, the runtime last: it starts them when the front ends are there.

    Raises:
        ExtensionError: a widget whose front end the package does not have; the message names the page.
    """
    names = shown_front_ends(doctree) if doctree is not None else []
    if not names:
        return
    if unknown := sorted(set(names) - set(front_ends())):
        raise ExtensionError(f"live_widgets: {pagename}: no front end {', '.join(unknown)}; run `make execute`")
    app.add_css_file("widgets/widgets.css")
    for name in [*names, RUNTIME.stem]:
        app.add_js_file(f"widgets/{name}.js", loading_method="defer")


def add_stills(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give every widget of a page its still."""
    for node in doctree.findall(nodes.raw):
        if "html" in node.get("format", "") and _FRONT_END.match(text := node.astext()):
            node.children = [nodes.Text(with_still(text))]


def stored_widgets(notebook: Path) -> list[str]:
    """The HTML of the widgets among a notebook's stored outputs."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    texts = ["".join(data["text/html"]) for data in outputs if "text/html" in data]
    return [text for text in texts if _FRONT_END.match(text)]


class OfTheBook(SphinxDirective):
    """A directive that shows widgets of the chapters."""

    def widgets(self) -> Iterator[tuple[str, list[str]]]:
        """The pages that show widgets, in reading order, with the HTML of each."""
        for page in self.env.external_site_map:  # type: ignore[attr-defined]  # of sphinx-external-toc: _toc.yml
            source = Path(self.env.doc2path(page))
            if source.suffix != ".ipynb":
                continue
            self.env.note_dependency(str(source))
            if found := stored_widgets(source):
                yield page, found


class WidgetGallery(OfTheBook):
    """Every widget of the book, in reading order, as it opens in its chapter."""

    def run(self) -> list[nodes.Node]:
        """Make a heading and the widgets for every notebook that has some."""
        shown: list[nodes.Node] = []
        for page, found in self.widgets():
            heading, messages = self.parse_inline(f"{{doc}}`/{page}`")
            shown += [nodes.rubric("", "", *heading), *messages]
            shown += [nodes.raw("", text, format="html") for text in found]
        return shown


class OneWidget(OfTheBook):
    """One widget of the book, as it opens in its chapter."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Show the first widget with the front end that is named."""
        for _, found in self.widgets():
            for text in found:
                if text.startswith(f'<div class="mesa-widget" data-front-end="{self.arguments[0]}"'):
                    return [nodes.raw("", text, format="html")]
        raise self.error(f"no chapter shows a widget with the front end '{self.arguments[0]}'")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks."""
    app.add_directive("widget-gallery", WidgetGallery)
    app.add_directive("widget", OneWidget)
    app.connect("builder-inited", write_scripts)
    app.connect("doctree-resolved", add_stills)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
