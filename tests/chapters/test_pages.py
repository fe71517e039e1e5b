"""The pages beside the chapters keep their word: their code runs, and every name of the notation exists."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import mesa_lib
from tools.toc import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
PAGES = sorted((ROOT / "book").glob("*.md"))
PROGRAMS = [
    (page.stem, number, text) for page in PAGES for number, text in enumerate(BLOCK.findall(page.read_text("utf-8")))
]


def names_of_the_library() -> set[str]:
    """Everything that a reader may meet as a name: what mesa_lib exports, with its arguments, fields and methods."""
    names = set(mesa_lib.__all__)
    for public in (getattr(mesa_lib, name) for name in mesa_lib.__all__):
        is_error = inspect.isclass(public) and issubclass(public, Exception)
        if (inspect.isfunction(public) or inspect.isclass(public)) and not is_error:
            names.update(inspect.signature(public).parameters)
        if inspect.isclass(public):
            names.update(name for name in dir(public) if not name.startswith("_"))
            if dataclasses.is_dataclass(public):
                names.update(field.name for field in dataclasses.fields(public))
    return names


def section(text: str, heading: str) -> str:
    """The part of a page below a heading of the second level."""
    return re.split(r"^## ", text.partition(f"## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def code_column(table_rows: str) -> list[str]:
    """The code names of the notation's tables: the third cell of each row."""
    rows = [line.split(" | ") for line in table_rows.splitlines() if line.startswith("| ") and "|---" not in line]
    return [name for row in rows if len(row) >= 3 for name in CODE.findall(row[2])]


@pytest.mark.parametrize(("page", "number", "program"), PROGRAMS, ids=[f"{page}-{n}" for page, n, _ in PROGRAMS])
def test_programs_on_pages_run(page: str, number: int, program: str):
    exec(compile(program, f"{page}.md, program {number}", "exec"), {})


def test_the_front_page_and_the_page_on_running_hold_programs():
    assert {"index", "running"} <= {page for page, _, _ in PROGRAMS}


def test_every_name_of_the_notation_exists():
    names = code_column(section((ROOT / "book" / "notation.md").read_text("utf-8"), "Names"))
    assert len(names) > 40
    assert sorted(set(names) - names_of_the_library()) == []


def test_every_axis_of_the_notation_is_used_in_annotations():
    conventions = section((ROOT / "book" / "notation.md").read_text("utf-8"), "Conventions")
    listed = set(CODE.findall(conventions.partition("**Axis names.**")[2]))
    source = "\n".join(path.read_text("utf-8") for path in Path(mesa_lib.__file__).parent.rglob("*.py"))
    used = {axis.lstrip("*") for shape in re.findall(r'Float\[Tensor, "([^"]*)"\]', source) for axis in shape.split()}
    assert len(listed) > 5
    assert listed <= used
