"""Every chapter and every assignment opens on Colab: its first code cell installs mesa_lib there."""

import json
from pathlib import Path

import pytest

from mesa_lib.grading.repository import FIRST_CELL
from tools.law import read_chapter, starts_with_the_first_cell
from tools.toc import ROOT, read_pages

CHAPTERS = [page for page in read_pages() if page.is_notebook]
RELEASES = sorted((ROOT / "assignments" / "release").glob("*.ipynb"))


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.name)
def test_a_chapter_starts_with_the_cell_that_installs_mesa_lib(page):
    assert list(starts_with_the_first_cell(read_chapter(page))) == []


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_an_assignment_starts_with_the_same_cell(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert "".join(first["source"]) == FIRST_CELL
