"""Measure how quick the built pages are: `python -m tools.bench_pages` opens each in a Chromium, several times.

`tools.bench pages` keeps what it finds.

For every page, the median over fresh visits, none of which finds anything in a cache, from a server on this machine:

- first paint: until the browser shows text or a picture (the First Contentful Paint of the Paint Timing interface);
- alive: until the page's widgets answer;
- frame: what a moved slider costs, from the browser's call for a new frame until the page is laid out again; the median
  of 30 moves, of the slowest widget of the page.

The aims are 1,000, 1,500 and 16 milliseconds; the tests of the site fail at three times as much.
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser
from tqdm import tqdm

from tools.browser import chromium_or_exit, running, served
from tools.toc import ROOT, read_pages

AIMS = {"first_paint": 1000, "alive": 1500, "frame": 16}
"""Milliseconds."""

FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
ALIVE = "performance.getEntriesByName('widgets-alive')[0]?.startTime"
FRAME_TIMES = """async (widget) => {
  const slider = widget.querySelector("input[type=range]");
  const times = [];
  for (let move = 0; move < 30; move += 1) {
    let start;
    // Callbacks of one frame run in the order in which they were asked for: ours, the widget's, ours.
    requestAnimationFrame(() => (start = performance.now()));
    slider.value = Number(slider.min) + ((slider.max - slider.min) * ((move * 7) % 30)) / 30;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(done));
    document.body.getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times;
}"""
"""The milliseconds of 30 moves of an element's first slider."""


def visit(browser: Browser, address: str) -> dict[str, float]:
    """Milliseconds of one visit of a page, with an empty cache; "alive" and "frame" only for a page with widgets."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    try:
        page = context.new_page()
        page.goto(address, wait_until="load")
        page.wait_for_function(FIRST_PAINT)
        times = {"first_paint": float(page.evaluate(FIRST_PAINT))}
        if (alive := page.evaluate(ALIVE)) is not None:
            widgets = page.locator(".mesa-widget:has(input[type=range])").all()
            frames = [statistics.median(widget.evaluate(FRAME_TIMES)) for widget in widgets]
            times |= {"alive": float(alive), "frame": max(frames)}
        return times
    finally:
        context.close()


def measure(browser: Browser, address: str, visits: int) -> dict[str, int | float]:
    """The medians of several visits, after one that does not count."""
    visit(browser, address)
    found = [visit(browser, address) for _ in range(visits)]
    return {name: round(statistics.median(times[name] for times in found), 1) for name in found[0]}


def measure_site(browser: Browser, site: Path, visits: int) -> dict[str, Any]:
    """The record of all pages of the table of contents."""
    names = [page.path.relative_to(ROOT / "book").with_suffix("").as_posix() for page in read_pages()]
    with served(site) as address:
        progress = tqdm(names, desc="pages", disable=None)
        pages = {name: measure(browser, f"{address}book/{name}.html", visits) for name in progress}
    return {"browser": f"Chromium {browser.version}", "visits": visits, "aims": AIMS, "pages": pages}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench_pages", description="Measure how quick the pages are.")
    parser.add_argument("--site", type=Path, default=ROOT / "_build" / "html", help="the built pages")
    parser.add_argument("--visits", type=int, default=5, help="counted visits of each page (default: 5)")
    options = parser.parse_args(arguments)
    if options.visits < 1:
        parser.error(f"--visits: expected a positive number, got {options.visits}")
    if not (options.site / "index.html").is_file():
        parser.error(f"--site: {options.site} holds no built pages; run `make html` first")
    with running(chromium_or_exit()) as browser:
        record = measure_site(browser, options.site, options.visits)
    for name, times in record["pages"].items():
        print(f"{name:26}" + "  ".join(f"{what} {value:6.0f} ms" for what, value in times.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
