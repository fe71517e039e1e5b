"""Build the pages on all cores, and without work that is done again and again. No page changes by it.

- Pages are read and written by several processes (Sphinx's `-j`, which Jupyter Book has no option for).
- Python's cyclic garbage collector rests: a build makes trees of nodes and keeps them, and looking through them for
  garbage took a quarter of the time.
- Plugins of the bibliography are looked up once, and a word is reduced to its stem once.

A process that reads some of the pages does not see what the others define. So whatever is defined on two pages that
were read apart is noticed here, when they come together: a build on many cores complains of what a build on one would.
"""

import functools
import gc
import os
from collections.abc import Iterator
from typing import Any

from pybtex.plugin import find_plugin, register_plugin  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.search.en import SearchEnglish
from sphinx.util import logging
from sphinx_proof.domain import ProofDomain  # type: ignore[import-untyped]

MOST_CORES = 8
"""A process takes some 200 MB; there is little to gain from more."""

SAFE_UNDECLARED = ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering")
"""Extensions that may read in parallel and do not say so: one is for LaTeX, one numbers sections when all are read."""

SLOWEST = "book/api"
"""It takes as long to read as all other pages together."""

PLUGINS = (("pybtex.backends", "docutils"), ("pybtex.backends", "plaintext"))

logger = logging.getLogger(__name__)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class MergedProofs(ProofDomain):  # type: ignore[misc]  # untyped
    """The domain of theorems, with what Sphinx asks of one that is read in parallel.

    The theorems themselves are in the environment, where sphinx-proof merges them.
    """

    def merge_domaindata(self, docnames: set[str], otherdata: dict[str, Any]) -> None:
        """Do nothing: the domain keeps no data."""


class RememberedEnglish(SearchEnglish):
    """The search's English, with a memory."""

    @functools.cache  # noqa: B019  # there is one, as long as the build
    def stem(self, word: str) -> str:
        """The stem of a word."""
        return super().stem(word)


def use_all_cores(app: Sphinx) -> None:
    """Let Sphinx use every core, unless an extension is not safe.

    One process more than cores: while pages are written, one process resolves references for the others.
    """
    for name in SAFE_UNDECLARED:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
    is_safe = all(one.parallel_read_safe and one.parallel_write_safe for one in app.extensions.values())
    app.parallel = min(cores(), MOST_CORES) + 1 if is_safe and cores() > 1 else 1


def begin_with_the_slowest(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Put the page that takes longest at the end of the list, where Sphinx begins."""
    docnames.sort(key=lambda docname: docname == SLOWEST)


def definitions(env: BuildEnvironment) -> Iterator[tuple[str, str, str]]:
    """What can be defined once in a book: kind, name, and the page that defines it."""
    kinds = {"label": ("std", "labels"), "term": ("std", "terms"), "equation": ("math", "objects")}
    kinds |= {"object": ("py", "objects")}
    for kind, (domain, table) in kinds.items():
        yield from ((kind, str(name), data[0]) for name, data in env.domaindata[domain].get(table, {}).items())
    for kind, table in {"theorem": "proof_list", "exercise": "sphinx_exercise_registry"}.items():
        yield from ((kind, name, data["docname"]) for name, data in getattr(env, table, {}).items())


class Duplicates:
    """Complains of what is defined on two pages that different processes have read."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, str], str] = {}

    def notice(self, app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
        """Compare what some pages define with what those before them did."""
        for kind, name, page in definitions(other):
            if page not in docnames:
                continue
            first = self._pages.setdefault((kind, name), page)
            if first != page:
                logger.warning("duplicate %s %s, other instance in %s", kind, name, env.doc2path(first), location=page)


def order_sitemap(app: Sphinx, error: Exception | None) -> None:
    """Put the links that sphinx-sitemap has collected into the order of their pages, whoever was done first."""
    links = getattr(app, "sitemap_links", None)
    if error is not None or links is None:
        return
    found = [links.get() for _ in range(links.qsize())]
    place = {app.builder.get_target_uri(docname): number for number, docname in enumerate(sorted(app.env.found_docs))}
    for link in sorted(found, key=lambda link: place.get(link[0], len(place))):
        links.put(link)


def wake_collector(app: Sphinx, error: Exception | None) -> None:
    """Let the collector work again, but not on what the build leaves behind: the process ends."""
    gc.freeze()
    gc.enable()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks."""
    gc.disable()
    for group, name in PLUGINS:
        register_plugin(group, name, find_plugin(group, name), force=True)
    app.setup_extension("sphinx_proof")
    app.add_domain(MergedProofs, override=True)
    app.add_search_language(RememberedEnglish)
    app.connect("builder-inited", use_all_cores)
    app.connect("env-before-read-docs", begin_with_the_slowest)
    app.connect("env-merge-info", Duplicates().notice)
    app.connect("build-finished", order_sitemap, priority=400)  # before the sitemap is written
    app.connect("build-finished", wake_collector, priority=999)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
