"""What frames every page: its icons, its scripts, its address and its description; and what screen readers need mended.

The templates beside it (book/_templates) leave out what the pages do not use; book/_static/custom.css is the look.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from . import icons

SCRIPT = Path(__file__).with_name("frame.js")
ROBOTS = "User-agent: *\nAllow: /\nSitemap: {url}sitemap.xml\n"

_DESCRIPTION = re.compile(r'<meta content="([^"]*)"[^>]*name="description"')
_SOCIAL_DESCRIPTION = re.compile(r'(?<=<meta property="og:description" content=")[^"]*')
# Live code (sphinx-thebe, which Jupyter Book always adds) would run from another host: the buttons are links instead.
_LIVE_CODE = re.compile(r"sphinx-thebe|THEBE_JS_URL")

# Parameters of a long signature: Sphinx writes a list of descriptions without anything described.
_SIGNATURE = re.compile(r'<dt class="sig[^>]*>.*?</dt>', re.DOTALL)
_LISTS_IN_SIGNATURES = {"<dl>": '<span class="sig-params">', "</dl>": "</span>"}
_LISTS_IN_SIGNATURES |= {"<dd>": '<span class="sig-line">', "</dd>": "</span>"}
# docutils marks references as a list without items, and each with a role that is no longer in use.
_ROLES_OF_REFERENCES = re.compile(
    r'(?<=<div) role="list"(?= class="citation-list")|(?<=<div class="citation")([^>]*) role="doc-biblioentry"'
)


def write_assets(app: Sphinx) -> None:
    """Write the script and the icons beside the doctrees, and add that folder to the static paths.

    Not through `_config.yml`: Jupyter Book turns every *.js and *.css below a static path that stands there into a
    <script> or <link> on every page.
    """
    if app.builder.format != "html":
        return
    target = Path(app.doctreedir) / "site_frame"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    icons.write(target)
    shutil.copy(SCRIPT, target)
    app.config.html_static_path.append(str(target))
    app.add_js_file(SCRIPT.name, loading_method="defer")


def frame(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Drop what would come from elsewhere, describe the page in its own words, and mend the roles of its lists."""
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if not _LIVE_CODE.search(_text_of(file))]
    if described := _DESCRIPTION.search(context.get("metatags") or ""):
        context["metatags"] = _SOCIAL_DESCRIPTION.sub(lambda _: described[1], context["metatags"])
    if "body" in context:
        context["body"] = mend_roles(context["body"])


def _text_of(file: Any) -> str:
    """The name of a script or style sheet, and its text if it stands in the page."""
    return f"{file} {getattr(file, 'attributes', {}).get('body') or ''}"


def mend_roles(body: str) -> str:
    """The HTML of a page without lists that contain no items, which screen readers announce wrongly."""

    def flat(signature: re.Match[str]) -> str:
        text = signature[0]
        for tag, replacement in _LISTS_IN_SIGNATURES.items():
            text = text.replace(tag, replacement)
        return text

    return _ROLES_OF_REFERENCES.sub(lambda role: role[1] or "", _SIGNATURE.sub(flat, body))


def tidy_site(app: Sphinx, error: Exception | None) -> None:
    """Write robots.txt with the site's address, and remove the theme's files that no page asks for."""
    if error is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    (site / "robots.txt").write_text(ROBOTS.format(url=app.config.html_baseurl), encoding="utf-8")
    for path in (site / "_static").rglob("*"):
        if path.is_file() and icons.is_left_over(path):
            path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks."""
    app.connect("builder-inited", write_assets)
    app.connect("html-page-context", frame, priority=900)  # after everyone who adds a script or a description
    app.connect("build-finished", tidy_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
