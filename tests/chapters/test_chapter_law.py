"""Every chapter keeps the chapter law, and every exception from comparing its outputs is listed with a reason."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tools.law import LAWS, Chapter, orphans, read_chapter
from tools.toc import ROOT, read_pages

PAGES = read_pages()
CHAPTERS = [read_chapter(page) for page in PAGES if page.is_notebook]

EXCEPTIONS = yaml.safe_load((Path(__file__).parent / "nbval_exceptions.yml").read_text(encoding="utf-8")) or []
# Tags that keep nbval from comparing a cell, or let it raise.
EXCEPTIONAL_TAGS = {"nbval-ignore-output", "nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution"}
MAX_EXCEPTIONS = 0.10


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_chapter_keeps_the_law(chapter: Chapter, law: Callable[[Chapter], Iterator[str]]):
    complaints = list(law(chapter))
    assert not complaints, "\n".join([f"{chapter.name}: {law.__doc__}", *complaints])


def test_every_notebook_is_in_the_table_of_contents():
    assert orphans(ROOT, PAGES) == []


def test_figure_names_are_unique_in_the_book():
    names = [cell.metadata.get("mystnb", {}).get("figure", {}).get("name") for c in CHAPTERS for cell in c.code]
    assert [name for name, count in Counter(filter(None, names)).items() if count > 1] == []


def test_every_exception_is_listed_with_a_reason():
    tagged = {
        (chapter.name, cell.first_line, tag)
        for chapter in CHAPTERS
        for cell in chapter.code
        for tag in cell.tags
        if tag in EXCEPTIONAL_TAGS
    }
    listed = {(entry["chapter"], entry["cell"], entry["tag"]) for entry in EXCEPTIONS}
    assert tagged - listed == set(), "cells whose tag is not listed in nbval_exceptions.yml"
    assert listed - tagged == set(), "entries of nbval_exceptions.yml whose cell or tag is gone"
    assert [entry for entry in EXCEPTIONS if len(entry["reason"].split()) < 3] == [], "entries without a real reason"


def test_exceptions_are_rare():
    cells = [cell for chapter in CHAPTERS for cell in chapter.code if cell.outputs]
    exceptional = [cell for cell in cells if EXCEPTIONAL_TAGS.intersection(cell.tags)]
    assert len(exceptional) <= MAX_EXCEPTIONS * len(cells), [str(cell) for cell in exceptional]
