"""What the tests of the site share: the book built once, a server for it, and somebody who reads it in a browser."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser

from tests.site.reader import Reader
from tools.toc import ROOT

# What a build reads; copied, so that a build under test and a reader's own do not meet in _build.
SOURCES = ("_config.yml", "_toc.yml", "assignments", "book", "mesa_lib", "CHANGELOG.md", "README.md")

SUB_PATH = "/a/sub/path/"
"""The site is served from below the root, as on GitHub Pages."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The HTML of the whole book, built as `make html` builds it (any warning is an error), once for all workers.

    MESA_SITE names a site that is built already, for whoever works on the pages.
    """
    if named := os.environ.get("MESA_SITE"):
        return Path(named).resolve()
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with FileLock(shared / "book.lock"):
        if not (shared / "book" / "built").exists():
            build(shared / "book")
    log = (shared / "book" / "log").read_text(encoding="utf-8")
    complaints = [line for line in log.splitlines() if re.search("WARNING|ERROR", line)]
    assert (shared / "book" / "built").read_text() == "0", "\n".join(complaints) or log
    return shared / "book" / "_build" / "html"


def build(source: Path) -> None:
    """Copy what a build reads and build it; leave its log and, when it is done, its exit status."""
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    command = [Path(sys.executable).with_name("jupyter-book"), "build", ".", "--all", "-W", "-n", "--keep-going"]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    (source / "log").write_text(re.sub(r"\x1b\[[0-9;]*m", "", built.stdout + built.stderr), encoding="utf-8")
    (source / "built").write_text(str(built.returncode))


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder below `SUB_PATH`, and nothing above it."""

    def translate_path(self, path: str) -> str:
        """The file behind a path; no file at all for one outside the site."""
        inside = path.removeprefix(SUB_PATH)
        return super().translate_path("/" + inside) if inside != path else "/nowhere"

    def log_message(self, *args: object) -> None:
        """Say nothing: the tests report what went wrong."""


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of the site on a local server."""
    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}{SUB_PATH}"
        server.shutdown()
        thread.join()


@pytest.fixture
def reader(chromium: Browser, address: str) -> Iterator[Reader]:
    """Somebody who reads the site on a laptop, and notes all that goes wrong."""
    looks = {"color_scheme": "light", "reduced_motion": "reduce"}
    context = chromium.new_context(viewport={"width": 1200, "height": 900}, **looks)
    context.set_default_timeout(20_000)
    yield Reader(context.new_page(), address)
    context.close()
