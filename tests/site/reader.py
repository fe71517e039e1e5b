"""Somebody who reads the built pages in a browser, asks nothing of other hosts, and notes all that goes wrong."""

from contextlib import suppress

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, Request, Response, Route
from playwright.sync_api import TimeoutError as Waited

# Formulas are typeset in place; before this is done, the page is not what a reader sees.
TYPESET = "!window.MathJax || MathJax.startup?.promise?.then(() => true)"
# What axe need not see a thousand times: formulas, which MathJax hides from screen readers in favour of their MathML;
# code, of which one token of each kind stays; all but the first entries of long lists.
SHORTEN = r"""() => {
    document.querySelectorAll("mjx-container").forEach((formula) => formula.replaceWith("x"));
    const blocks = [...document.querySelectorAll("div.highlight pre")];
    const tokens = blocks.flatMap((block) => [...block.querySelectorAll("span[class]")]);
    const kinds = new Map(tokens.map((token) => [token.className, token]));
    blocks.slice(1).forEach((block) => block.replaceChildren("code"));
    blocks[0]?.replaceChildren(...[...kinds.values()].flatMap((token) => [token, "\n"]));
    [...document.querySelectorAll("dl.py:not(dl.py dl.py)")].slice(2).forEach((entry) => entry.remove());
    [...document.querySelectorAll("table.claims-ledger tbody tr")].slice(7).forEach((row) => row.remove());
    [...document.querySelectorAll("table.indextable li, .page-toc li")].slice(20).forEach((entry) => entry.remove());
}"""
# The Web Content Accessibility Guidelines, level AA. Axe needs no second copy of the style sheets for them.
GUIDELINES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}
GRAVE = {"serious", "critical"}


class Reader:
    """A page in a browser, and the notes of what went wrong on it.

    Attributes:
        page: the browser's page.
        address: of the site.
        notes: requests to other hosts (which are refused), answers that are errors, and what the console complains of.
        waits_for_formulas: whether formulas are typeset, which takes the longest of all that a page does.
    """

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.notes: list[str] = []
        self.waits_for_formulas = True
        page.route("**/*", self._route)
        page.on("response", self._on_response)
        page.on("requestfailed", self._on_failure)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.notes.append(f"error: {error}"))

    def _route(self, route: Route) -> None:
        url = route.request.url
        if "/mathjax/" in url and not self.waits_for_formulas:
            route.fulfill(body="")
        elif url.startswith((self.address, "data:", "blob:", "file:")):
            route.continue_()
        else:
            self.notes.append(f"asked another host: {url}")
            route.abort()

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.notes.append(f"{response.status}: {response.url}")

    def _on_failure(self, request: Request) -> None:
        # A page that is left behind takes its unfinished requests with it.
        if request.failure != "net::ERR_ABORTED":
            self.notes.append(f"{request.failure}: {request.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.notes.append(f"console {message.type}: {message.text}")

    def open(self, path: str) -> Page:
        """Open a page of the site, or another address, and wait until it is there."""
        self.page.goto(path if "://" in path else self.address + path, wait_until="load")
        if self.waits_for_formulas:
            self.page.wait_for_function(TYPESET)
        return self.page

    def overflow(self, width: int) -> list[str]:
        """What is wider than a window of this width and does not scroll in place; empty if the page does not scroll."""
        self.page.set_viewport_size({"width": width, "height": 900})
        with suppress(Waited):  # the page's own script comes a moment after the window
            self.page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=2000)
            return []
        return self.page.evaluate(  # type: ignore[no-any-return]
            """() => {
                const scrolls = (e) => e !== document.body && e !== null &&
                    (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
                const wide = (e) => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement);
                return [...document.querySelectorAll("main *")].filter(wide).slice(0, 5).map((e) => e.outerHTML);
            }"""
        )

    def unset_formulas(self) -> list[str]:
        """Formulas that were not typeset, and those that MathJax did not understand."""
        return self.page.evaluate(  # type: ignore[no-any-return]
            r"""() => [...document.querySelectorAll("span.math, div.math")]
                .filter((e) => !e.querySelector("mjx-container mjx-assistive-mml") || e.querySelector("mjx-merror"))
                .map((e) => e.textContent.slice(0, 100))"""
        )

    def grave_findings(self, rules: list[str] = GUIDELINES) -> list[str]:
        """What axe calls serious or critical. Shortens the page: look at nothing else after it."""
        self.page.evaluate(SHORTEN)
        violations = Axe().run(self.page, options=AXE_OPTIONS | {"runOnly": rules}).response["violations"]
        return [
            f"{rule['id']} ({rule['impact']}): {node['html'][:200]}"
            for rule in violations
            if rule["impact"] in GRAVE
            for node in rule["nodes"]
        ]
