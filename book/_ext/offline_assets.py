"""Serve every third-party script and style from the book itself, so that no page asks another host.

MathJax 3.2.2 comes from the package sphinx-mathjax-offline, used as data: only the parts that turn TeX into CHTML, with
MathML for screen readers, are copied, 1.4 MB instead of 24 MB, of which a page loads a tenth. `_config.yml` names the
parts to load. Widgets come in through live_widgets.
"""

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

MATHJAX_FILES = (
    "startup.js",
    "core.js",
    "input/tex.js",
    "input/tex/extensions",  # loaded when a formula uses one of their macros
    "output/chtml.js",
    "output/chtml/fonts",
    "a11y/assistive-mml.js",
)
# matplotlib's to_jshtml() links an icon font on another host; the theme's own draws the same buttons.
_REMOTE_LINK = re.compile(r"<link\b[^>]*https?://[^>]*>\s*", re.DOTALL)


def collect_assets(app: Sphinx) -> None:
    """Copy MathJax beside the doctrees, and add that folder to the static paths.

    Not through `_config.yml`: Jupyter Book turns every *.js and *.css below a static path that stands there into a
    <script> or <link> on every page.
    """
    if app.builder.format != "html":
        return
    target = Path(app.doctreedir) / "offline_assets"
    shutil.rmtree(target, ignore_errors=True)
    source = _mathjax_folder()
    for name in MATHJAX_FILES:
        destination = target / "mathjax" / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        copy(source / name, destination)
    app.config.html_static_path.append(str(target))


def _mathjax_folder() -> Path:
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ExtensionError("offline_assets: MathJax not found; pip install sphinx-mathjax-offline")
    return Path(spec.origin).parent / "static" / "mathjax"


def strip_remote_links(app: Sphinx, doctree: nodes.document) -> None:
    """Remove <link> elements to other hosts from the HTML that cells put out."""
    for node in doctree.findall(nodes.raw):
        if "html" in node.get("format", "") and "<link" in node.astext():
            text = _REMOTE_LINK.sub("", node.astext())
            node.children = [nodes.Text(text)]
            node.rawsource = text


def drop_repeated_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Emit each inline script once; Sphinx 7.4 lists some twice, and a repeated `const` is an error in the browser."""
    seen: set[str] = set()
    kept = []
    for script in context.get("script_files", []):
        body = getattr(script, "attributes", {}).get("body")
        if body not in seen:
            kept.append(script)
        if body:
            seen.add(body)
    context["script_files"] = kept


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks."""
    app.connect("builder-inited", collect_assets)
    app.connect("doctree-read", strip_remote_links)
    app.connect("html-page-context", drop_repeated_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
