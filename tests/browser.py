"""The browser that tests drive: a Chromium of the system, by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "pages and widgets are not tried in a browser: no Chromium found; install one (Debian: apt-get install chromium), "
    "or name it in the variable CHROMIUM"
)
REQUIRED = "MESA_REQUIRE_BROWSER"
"""The variable of the environment, set by .ci/run, under which a missing browser is a failure."""


def find_chromium() -> str | None:
    """The path of a Chromium: the one that the environment names, or one on the search path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """A running Chromium. Where there is none the test is skipped, or fails where one is required."""
    path = find_chromium()
    if path is None:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(MISSING)
    with sync_playwright() as playwright:
        # No sandbox: in a container there is often none to be had, and the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
