"""From the source of an assignment to its notebooks: the students', without the solutions, and the solution's.

The source is MyST text. What stands between these two lines is the solution:

    ### BEGIN SOLUTION          in a text cell:  <!-- BEGIN SOLUTION -->
    ### END SOLUTION                             <!-- END SOLUTION -->

In a function the student gets `raise NotImplementedError` in its place, or whatever follows `BEGIN SOLUTION` on its
line: `### BEGIN SOLUTION slope = ...`. The source is a Jinja template with `<< >>` around expressions and `<% %>`
around statements; it knows the choices of the variant by their names, `meta` (the assignment), `question("q1")` (that
question's heading), `first_cell` (it installs mesa_lib on Colab) and `site` (the book's address), and may include the
texts in the folder `_shared` beside it. Building twice gives the same bytes.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import jupytext
import nbformat
from nbformat import NotebookNode

from mesa_lib.grading.repository import FIRST_CELL, SITE
from mesa_lib.grading.source import Assignment, SourceError

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
PLACEHOLDER = "*Your answer here.*"
NOT_WRITTEN = "raise NotImplementedError"
ANSWER, SETUP, INSTALL = "answer", "setup", "install"
USES_ANSWERS = "with once_written()"
NOTHING, SOLUTION, MARKED = "nothing", "solution", "solution and markers"

_BEGIN = re.compile(r"^(\s*)(?:#+|<!--)\s*BEGIN SOLUTION\s*?(?: (\S.*?))?\s*(?:-->)?$")
_END = re.compile(r"^\s*(?:#+|<!--)\s*END SOLUTION\s*(?:-->)?\s*$")
_IMPORT = re.compile(r"^from mesa_lib\.assignments import .*\bcheck\b.*$", re.MULTILINE)


def build_notebooks(assignment: Assignment, variant: str = "") -> tuple[NotebookNode, NotebookNode]:
    """The student's notebook and the solution's.

    Args:
        assignment: the source.
        variant: a variant, such as "rows.yx"; the empty text is the default.

    Raises:
        SourceError: a marker is missing, an answer cell has no solution, or the template does not fit the variant.
    """
    notebook = jupytext.reads(_render(assignment, variant), fmt="md:myst")
    return _built(notebook, assignment, variant, NOTHING), _built(notebook, assignment, variant, SOLUTION)


def build_marked(assignment: Assignment, variant: str = "") -> NotebookNode:
    """The solution's notebook with its markers, for other graders' tools."""
    return _built(jupytext.reads(_render(assignment, variant), fmt="md:myst"), assignment, variant, MARKED)


def notebook_bytes(notebook: NotebookNode) -> bytes:
    """The file of a built notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook).encode() + b"\n"  # type: ignore[no-untyped-call, no-any-return]


def as_node(value: Mapping[str, Any]) -> NotebookNode:
    """A deep copy of a notebook, or of a part of one, in nbformat's type."""
    return nbformat.from_dict(value)  # type: ignore[no-untyped-call, no-any-return]


def new_cell(kind: str, source: str) -> NotebookNode:
    """A cell without metadata and outputs; `kind` is "code", "markdown" or "raw"."""
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source}
    return as_node({**cell, "outputs": [], "execution_count": None} if kind == "code" else cell)


def write_release(assignment: Assignment, folder: Path, variant: str = "") -> Path:
    """Write the student's notebook into a folder; the file's date stays if its content does.

    Returns:
        The path of the notebook.
    """
    student, _ = build_notebooks(assignment, variant)
    folder.mkdir(parents=True, exist_ok=True)
    path, content = folder / f"{assignment.name}.ipynb", notebook_bytes(student)
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)
    return path


def source_lines(assignment: Assignment, variant: str = "") -> tuple[list[str], list[str]]:
    """Every line of the source, stripped: those that students get, and those between the markers."""
    shown: list[str] = []
    solution: list[str] = []
    inside = False
    for line in _render(assignment, variant).splitlines():
        if _BEGIN.match(line) or _END.match(line):
            inside = _BEGIN.match(line) is not None
        elif line.strip():
            (solution if inside else shown).append(line.strip())
    return shown, solution


def _render(assignment: Assignment, variant: str) -> str:
    """The MyST text of one variant."""
    shared = assignment.folder.parent / "_shared"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([assignment.folder, shared]),
        block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>", trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined, autoescape=False,
    )  # fmt: skip
    try:
        template = environment.get_template(assignment.text_path.name)
        return template.render(
            assignment.choices(variant),
            meta=assignment,
            question=lambda name: _heading(assignment, name),
            first_cell=FIRST_CELL,
            site=SITE,
        )
    except jinja2.TemplateError as error:
        raise SourceError(f"{assignment.text_path}: {error}") from error


def _heading(assignment: Assignment, name: str) -> str:
    """The heading of a question, by which the reading sheets find its free text."""
    about = assignment.questions[name]
    points = "1 point" if about.points == 1 else f"{about.points} points"
    return f"## Question {name.removeprefix('q')}: {about.title} ({points}, {about.minutes} minutes)"


def _built(notebook: NotebookNode, assignment: Assignment, variant: str, keep: str) -> NotebookNode:
    """A copy of the notebook with nothing, the solution, or the solution and its markers where the markers are."""
    copy = as_node(notebook)
    for cell in copy.cells:
        source, found = _cut(cell.source, cell.cell_type, keep, assignment)
        if ANSWER in cell.metadata.get("tags", []) and not found:
            raise SourceError(f"{assignment.text_path}: an answer cell without BEGIN SOLUTION: {cell.source[:60]!r}")
        cell.source = source
    _settle(copy, assignment, variant)
    return copy


def _cut(source: str, cell_type: str, keep: str, assignment: Assignment) -> tuple[str, bool]:
    """The text of a cell, and whether it held a solution."""
    lines: list[str] = []
    inside = found = False
    for line in source.split("\n"):
        begin, end = _BEGIN.match(line), _END.match(line)
        if (begin and inside) or (end and not inside):
            raise SourceError(f"{assignment.text_path}: BEGIN SOLUTION and END SOLUTION do not match: {source[:60]!r}")
        if begin:
            inside = found = True
            if keep == NOTHING:
                lines.append(PLACEHOLDER if cell_type == "markdown" else f"{begin[1]}{begin[2] or NOT_WRITTEN}")
        kept = keep == MARKED if begin or end else keep != NOTHING or not inside
        if kept:
            lines.append(line)
        inside = inside and not end
    if inside or (keep != MARKED and re.search("(BEGIN|END) SOLUTION", "\n".join(lines))):
        raise SourceError(f"{assignment.text_path}: a marker is misspelled or has no partner: {source[:60]!r}")
    return "\n".join(lines), found


def _settle(notebook: NotebookNode, assignment: Assignment, variant: str) -> None:
    """Give metadata and cell ids that are the same in every build, and tell `check` the variant."""
    notebook.metadata = as_node(
        {
            "kernelspec": KERNEL,
            "language_info": {"name": "python"},
            "mesa": {"assignment": assignment.name, "variant": variant},
        }
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for index, cell in enumerate(notebook.cells):
        cell["id"] = hashlib.sha256(f"{assignment.name} {index}".encode()).hexdigest()[:8]
        tags = cell.metadata.get("tags", [])
        cell.metadata = as_node({"tags": tags} if tags else {})
        if variant and cell.cell_type == "code":
            told = f'from functools import partial\n\\g<0>\n\ncheck = partial(check, variant="{variant}")'
            cell.source = _IMPORT.sub(told, cell.source)
