"""The browser that tests drive, or a word about the one that is missing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser

from tools.browser import MISSING, find_chromium, running

REQUIRED = "MESA_REQUIRE_BROWSER"
"""The variable of the environment, set by .ci/run, under which a missing browser is a failure."""


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """A running Chromium. Where there is none the test is skipped, or fails where one is required."""
    path = find_chromium()
    if path is None:
        message = f"pages and widgets are not tried in a browser: {MISSING}"
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(message)
    with running(path) as browser:
        yield browser
