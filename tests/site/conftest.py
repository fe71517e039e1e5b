"""What the tests of the site share: the book built once, a server for it, and somebody who reads it in a browser."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser

from tests.site.reader import Reader
from tools.browser import served
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


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of the site on a local server."""
    with served(site, SUB_PATH) as found:
        yield found


@pytest.fixture
def reader(chromium: Browser, address: str) -> Iterator[Reader]:
    """Somebody who reads the site on a laptop, and notes all that goes wrong."""
    looks = {"color_scheme": "light", "reduced_motion": "reduce"}
    context = chromium.new_context(viewport={"width": 1200, "height": 900}, **looks)
    context.set_default_timeout(20_000)
    yield Reader(context.new_page(), address)
    context.close()
