"""A Chromium of the system, driven by Playwright: for tests of the pages, and for what is measured and drawn there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no Chromium found; install one (Debian: apt-get install chromium), or name it in the variable CHROMIUM"


def find_chromium() -> str | None:
    """The path of a Chromium: the one that the environment names, or one on the search path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running(path: str) -> Iterator[Browser]:
    """A running Chromium; `path` is its program."""
    with sync_playwright() as playwright:
        # No sandbox: in a container there is often none to be had, and the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def chromium_or_exit() -> str:
    """The path of a Chromium; a SystemExit says how to get one."""
    if (path := find_chromium()) is None:
        raise SystemExit(MISSING)
    return path
