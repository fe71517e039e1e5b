"""A Chromium of the system, driven by Playwright, and a server for what it opens."""

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder below an address, and nothing above it."""

    def __init__(self, *args: Any, below: str, **kwargs: Any) -> None:
        self.below = below
        super().__init__(*args, **kwargs)

    def translate_path(self, path: str) -> str:
        """The file behind a path; no file at all for one outside the folder."""
        inside = path.removeprefix(self.below)
        return super().translate_path("/" + inside) if inside != path else "/nowhere"

    def log_message(self, *args: object) -> None:
        """Say nothing: who asked reports what went wrong."""


@contextmanager
def served(site: Path, below: str = "/") -> Iterator[str]:
    """The address of a folder on a server of its own on this machine; `below` starts and ends with a slash."""
    handler = functools.partial(_Handler, directory=str(site), below=below)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}{below}"
        server.shutdown()
        thread.join()
