"""JavaScript for tests: the widgets' modules, run in a browser."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser

from mesa_lib.widgets.linker import link


@pytest.fixture(scope="session")
def javascript(chromium: Browser) -> Callable[..., Any]:
    """`javascript("spectral", "m.newton(values, 1, 3)", values=[...])`: an expression of a module's exports, `m`."""
    page = chromium.new_page()

    def run(module: str, expression: str, **given: Any) -> Any:
        names = ", ".join(given)
        program = f"({{ {names} }}) => {{ {link(module)}\nconst m = module_{module};\nreturn {expression}; }}"
        return page.evaluate(program, given)

    return run
