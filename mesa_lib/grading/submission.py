"""A student's notebook, read with every tolerance: cells may be copied, deleted, moved, renamed or without metadata."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from mesa_lib.grading.build import INSTALL, PLACEHOLDER, SETUP, USES_ANSWERS
from mesa_lib.grading.session import Cell

MOST_BYTES = 50 * 2**20

_QUESTION = re.compile(r"^#+ +Question (\d+)\b", re.MULTILINE)
_LABEL = re.compile(r"^\**Answer to question \d+\.?\**:?\s*", re.IGNORECASE)


class SubmissionError(ValueError):
    """A file that is no notebook; the text is the reason that its row gets."""


@dataclass(frozen=True)
class Submission:
    """The cells of a notebook, in order.

    Attributes:
        cells: kind ("code", "markdown", "raw") and source of each.
        assignment: the name in its metadata, if it is still there.
        variant: the variant in its metadata, if it is still there.
    """

    cells: Sequence[tuple[str, str]]
    assignment: str = ""
    variant: str | None = None


def read_submission(path: Path) -> Submission:
    """The notebook in a file, of any version of the format.

    Raises:
        SubmissionError: the file is no notebook, or too large; nothing else, whatever the file holds.
    """
    try:
        if path.is_symlink() or not path.is_file():
            raise SubmissionError("there is no notebook file")
        if path.stat().st_size > MOST_BYTES:
            raise SubmissionError(f"the file is larger than {MOST_BYTES // 2**20} MB")
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        sheets = notebook.get("worksheets", [notebook])
        cells = [_cell(cell) for sheet in sheets for cell in sheet["cells"]]
        about = notebook.get("metadata", {})
        said = about.get("mesa", {}) if isinstance(about, dict) else {}
        named, variant = said.get("assignment", ""), said.get("variant")
    except SubmissionError:
        raise
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise SubmissionError("the file is not a notebook") from None
    return Submission(cells, named if isinstance(named, str) else "", variant if isinstance(variant, str) else None)


def _cell(cell: dict[str, object]) -> tuple[str, str]:
    source = cell.get("source", cell.get("input", ""))
    text = source if isinstance(source, str) else "".join(map(str, source))  # type: ignore[call-overload]
    return str(cell["cell_type"]), text


def code_cells(submission: Submission, release: NotebookNode) -> list[Cell]:
    """The cells to run: those that set things up, as they were handed out, then the student's.

    The first make a deleted import cost nothing. What installs packages does not run, and what only uses answers, as it
    was handed out, is optional.
    """
    tagged = {tag: [cell.source for cell in release.cells if tag in _tags(cell)] for tag in (SETUP, INSTALL)}
    installs = {_plain(source) for source in tagged[INSTALL]}
    optional = {_plain(cell.source) for cell in release.cells if USES_ANSWERS in cell.source}
    own = [(number, text) for number, (kind, text) in enumerate(submission.cells, 1) if kind == "code" and text.strip()]
    return [
        *(Cell(0, source) for source in tagged[SETUP]),
        *(Cell(number, text, _plain(text) in optional) for number, text in own if _plain(text) not in installs),
    ]


def text_answers(submission: Submission, release: NotebookNode, questions: Sequence[str]) -> dict[str, str]:
    """The free-text answer to each question: what the student wrote in text cells below the question's heading.

    Text that was handed out does not count, wherever it stands, so copies of it change nothing, and no metadata is
    read.
    """
    given = {_plain(cell.source) for cell in release.cells if cell.cell_type == "markdown"}
    given |= {_plain(PLACEHOLDER)}
    found: dict[str, list[str]] = {question: [] for question in questions}
    current = ""
    for kind, source in submission.cells:
        if kind != "markdown":
            continue
        text = source.strip()
        if headings := _QUESTION.findall(text):
            current = f"q{headings[-1]}"
        answer = _LABEL.sub("", text).replace(PLACEHOLDER, "").strip()
        if current in found and answer and _plain(text) not in given and not _QUESTION.search(text):
            found[current].append(answer)
        elif current in found and _QUESTION.search(text) and _plain(text) not in given:
            found[current].append(_without_given(text, release))
    return {question: "\n\n".join(filter(None, answers)) for question, answers in found.items()}


def _without_given(text: str, release: NotebookNode) -> str:
    """What a student added to a text cell that was handed out."""
    given = {line.strip() for cell in release.cells for line in cell.source.splitlines()}
    return "\n".join(line for line in text.splitlines() if line.strip() not in given).strip()


def _plain(text: str) -> str:
    return " ".join(text.split())


def _tags(cell: NotebookNode) -> list[str]:
    return list(cell.metadata.get("tags", []))
