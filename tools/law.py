"""The chapter law (CONTRIBUTING.md): what every notebook of the book keeps to, read from its cells.

Each law takes a chapter and returns its complaints, one sentence each; none means that the chapter keeps it.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from tools.notebooks import read
from tools.toc import Page

MAX_CELL_LINES = 12
MAX_DEF_LINES = 5
EXERCISES = 3

# What these stand for has one place, mesa_lib: training is `train`, and seeds enter as arguments.
FORBIDDEN = {
    "a training loop": re.compile(r"\.backward\(|\boptim\."),
    "a seed set by hand": re.compile(r"\bmanual_seed\(|\brandom\.seed\(|\bdefault_rng\("),
}
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\{", re.MULTILINE)
_HEADING = re.compile(r"^##[ \t]+(.+?)\s*$", re.MULTILINE)
_EXERCISE = re.compile(r"^:{3,}\{exercise\}", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
_PROGRESS_BAR = re.compile(r"\d+%\|")


@dataclass(frozen=True)
class Cell:
    """A code cell as the laws see it.

    Attributes:
        number: its place among the chapter's code cells, from 1.
        source: the code.
        metadata: the cell's metadata.
        outputs: the stored outputs.
        execution_count: as stored; None if it was never executed.
    """

    number: int
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    execution_count: int | None = None

    @property
    def tags(self) -> list[str]:
        """The cell's tags."""
        return list(self.metadata.get("tags", []))

    @property
    def first_line(self) -> str:
        """The first line of code, by which files and messages name the cell."""
        return self.source.strip().partition("\n")[0]

    def __str__(self) -> str:
        return f"code cell {self.number} ({self.first_line})"

    def parse(self) -> ast.Module:
        """The syntax tree, with magics such as %pip turned into calls."""
        return ast.parse(TransformerManager().transform_cell(self.source))  # type: ignore[no-untyped-call]

    def shows(self, kind: str) -> bool:
        """Whether an output holds data of a MIME type."""
        return any(kind in output.get("data", {}) for output in self.outputs)


@dataclass(frozen=True)
class Chapter:
    """A notebook as the laws see it.

    Attributes:
        name: the file's name without its suffix.
        numbered: whether it stands in a numbered part; only there exercises are due.
        code: its code cells that hold code.
        text: all its Markdown, in order.
    """

    name: str
    numbered: bool
    code: list[Cell]
    text: str


def read_chapter(page: Page) -> Chapter:
    """Read a notebook of the book."""
    return chapter_from(read(page.path), page.name, page.numbered)


def chapter_from(notebook: Any, name: str, numbered: bool = True) -> Chapter:
    """See a notebook as a chapter."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    cells = [
        Cell(number, cell.source, dict(cell.metadata), list(cell.outputs), cell.execution_count)
        for number, cell in enumerate(code, start=1)
    ]
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return Chapter(name, numbered, cells, text)


# --- the laws ---------------------------------------------------------------------------------------------------------


def logic_lives_in_the_package(chapter: Chapter) -> Iterator[str]:
    """No class, no function over five lines, no training loop, no seed set by hand."""
    for cell in chapter.code:
        for node in ast.walk(cell.parse()):
            if isinstance(node, ast.ClassDef):
                yield f"{cell}: class {node.name}; classes belong into mesa_lib"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_DEF_LINES:
                    yield f"{cell}: def {node.name} has {length} lines, allowed are {MAX_DEF_LINES}"
        for name, pattern in FORBIDDEN.items():
            if found := pattern.search(cell.source):
                yield f"{cell}: {name} ('{found[0]}')"


def cells_are_short(chapter: Chapter) -> Iterator[str]:
    """At most twelve lines of code in a cell, blank lines not counted."""
    for cell in chapter.code:
        length = sum(bool(line.strip()) for line in cell.source.splitlines())
        if length > MAX_CELL_LINES:
            yield f"{cell}: {length} lines, allowed are {MAX_CELL_LINES}"


def figures_are_described(chapter: Chapter) -> Iterator[str]:
    """Every picture has a caption, a name to refer to, and a text for those who do not see it."""
    for cell in chapter.code:
        if not cell.shows("image/png"):
            continue
        mystnb = cell.metadata.get("mystnb", {})
        figure, image = mystnb.get("figure", {}), mystnb.get("image", {})
        wanted = {
            "figure.caption": figure.get("caption"),
            "figure.name": figure.get("name"),
            "image.alt": image.get("alt"),
        }
        missing = [key for key, value in wanted.items() if not str(value or "").strip()]
        if missing:
            yield f"{cell}: shows a picture, but its metadata 'mystnb' lacks {', '.join(missing)}"


def cells_ran_in_order(chapter: Chapter) -> Iterator[str]:
    """Every code cell was executed, from top to bottom on a fresh kernel: counts 1, 2, ..., n."""
    ran = [cell for cell in chapter.code if "skip-execution" not in cell.tags]
    for expected, cell in enumerate(ran, start=1):
        if cell.execution_count != expected:
            yield f"{cell}: execution count {cell.execution_count}, expected {expected}; run `make execute`"


def outputs_are_clean(chapter: Chapter) -> Iterator[str]:
    """No warnings, no unexpected errors and no progress bars among the outputs."""
    for cell in chapter.code:
        for output in cell.outputs:
            if output["output_type"] == "stream" and output["name"] == "stderr":
                yield f"{cell}: output on stderr: {output['text']:.80}"
            if output["output_type"] == "error" and "raises-exception" not in cell.tags:
                yield f"{cell}: {output['ename']}"
            text = output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
            if _PROGRESS_BAR.search(text):
                yield f"{cell}: a progress bar among the outputs"


def directives_read_everywhere(chapter: Chapter) -> Iterator[str]:
    """Directives open with colons: Colab and GitHub show a fenced one as code."""
    for found in _FENCE.finditer(chapter.text):
        line = chapter.text[found.start() :].strip().partition("\n")[0]
        yield f"the directive '{line}' opens with a code fence; write :::{{...}}"


def ends_with_exercises(chapter: Chapter) -> Iterator[str]:
    """A numbered chapter ends with a section 'Exercises' that holds three of them."""
    if not chapter.numbered:
        return
    text = _CODE_BLOCK.sub("", chapter.text)
    headings = list(_HEADING.finditer(text))
    last = headings[-1][1] if headings else "(none)"
    if last != "Exercises":
        yield f"the last section is '{last}', expected 'Exercises'"
        return
    count = len(_EXERCISE.findall(text, headings[-1].start()))
    if count != EXERCISES:
        yield f"the section 'Exercises' holds {count} exercises (:::{{exercise}}), expected {EXERCISES}"


def last_cell_asserts(chapter: Chapter) -> Iterator[str]:
    """The last code cell asserts the chapter's sentence, so that a false sentence fails the build."""
    if not chapter.code:
        yield "no code cell, so nothing is asserted"
        return
    last = chapter.code[-1]
    calls = [node.func for node in ast.walk(last.parse()) if isinstance(node, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None) for func in calls}
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(last.parse()))
    if not asserts and "verdict" not in names:
        yield f"{last}: the last code cell has neither an assert nor a call of verdict"


LAWS: tuple[Callable[[Chapter], Iterator[str]], ...] = (
    logic_lives_in_the_package,
    cells_are_short,
    figures_are_described,
    cells_ran_in_order,
    outputs_are_clean,
    directives_read_everywhere,
    ends_with_exercises,
    last_cell_asserts,
)


def orphans(root: Path, pages: list[Page]) -> list[Path]:
    """Notebooks in the book's folder that the table of contents does not list: nobody would read or test them."""
    listed = {page.path for page in pages}
    found = (path for path in (root / "book").glob("**/*.ipynb") if path.parent.name != ".ipynb_checkpoints")
    return sorted(path for path in found if path not in listed)
