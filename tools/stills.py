"""Draw what readers without JavaScript see of a widget: `python -m tools.stills` writes the files of book/_stills.

A widget draws itself in the browser. Its still is what it draws when a page opens: the panels, as plain SVG and tables
that take the page's style, with nothing in them that a hand could move. The pages put it behind a `<noscript>`
(`book/_ext/live_widgets`). A still is named after the state that it shows, so that one of another state is never shown.
"""

import argparse
import re
from collections.abc import Sequence

from bs4 import BeautifulSoup
from playwright.sync_api import Browser

from book._ext.live_widgets import RUNTIME, stored_widgets
from book._ext.live_widgets.stills import FOLDER, still_name
from mesa_lib.widgets.linker import page_script, style_sheet
from tools.browser import chromium_or_exit, running
from tools.notebooks import replace_file
from tools.toc import notebooks

# What only a live picture needs: the focus, the values of handles, the word that they can be moved.
_INTERACTIVE = ("tabindex", "aria-valuemin", "aria-valuemax", "aria-valuenow", "aria-valuetext", "aria-orientation")


def page_of(output: str) -> str:
    """A page with one widget, as the book makes it: the output, the style, the front end, and the runtime last."""
    scripts = (page_script(still_name(output).rsplit("-", 1)[0]), RUNTIME.read_text(encoding="utf-8"))
    return (
        f'<!doctype html><html lang="en" data-theme="light"><head><style>{style_sheet()}</style></head><body>{output}'
        + "".join(f"<script>{script}</script>" for script in scripts)
        + "</body></html>"
    )


def draw(browser: Browser, output: str) -> str:
    """The still of a widget.

    Args:
        browser: runs the front end.
        output: the widget's HTML, as stored in a notebook.

    Returns:
        HTML: the panels as the front end draws them for the stored state.

    Raises:
        ValueError: the front end did not start.
    """
    page = browser.new_page(viewport={"width": 1200, "height": 1600})
    try:
        page.set_content(page_of(output))
        if not page.locator(".mw-panels").count():
            raise ValueError(f"{still_name(output)}: the front end did not start")
        return still(str(page.locator(".mw-panels").evaluate("(panels) => panels.outerHTML")))
    finally:
        page.close()


def still(panels: str) -> str:
    """Panels without what answers to a hand, one element a line where a drawing begins."""
    soup = BeautifulSoup(panels, "html.parser")
    for handle in soup.select(".mw-handle"):
        for name in ("role", "aria-label"):
            handle.attrs.pop(name, None)
    for grip in soup.select(".mw-grip"):
        grip.decompose()
    for control in soup.select("button, input, select"):
        control.decompose()
    for element in soup.find_all(True):
        for name in _INTERACTIVE:
            element.attrs.pop(name, None)
    return re.sub(r"(?=<svg class=\"mw-plot)", "\n", str(soup)).strip() + "\n"


def write_all(browser: Browser) -> dict[str, bool]:
    """Write the still of every widget in the chapters, and remove those that no chapter shows any more.

    Returns:
        By name, whether the file is new or changed.
    """
    outputs = {still_name(text): text for path in notebooks() for text in stored_widgets(path)}
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.html"):
        if path.name not in outputs:
            path.unlink()
    return {name: replace_file(FOLDER / name, draw(browser, text).encode()) for name, text in outputs.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.stills", description="Draw the stills of all widgets.")
    parser.parse_args(arguments)
    with running(chromium_or_exit()) as browser:
        for name, new in write_all(browser).items():
            print(f"{name}: {'written' if new else 'unchanged'}, {(FOLDER / name).stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
