"""Reading sheets: the free-text answers to a question on one page, with the rubric, and a table for the points.

OUT/reading/q5.html     every answer, in an order that has nothing to do with names
OUT/reading/q5.csv      columns student, points, comment: fill in the points
"""

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from mesa_lib.grading.batch import read_grades, write_table
from mesa_lib.grading.feedback import page
from mesa_lib.grading.grade import Grade
from mesa_lib.grading.source import TEXT, Assignment

FOLDER = "reading"


class ReadingError(ValueError):
    """Points on a reading sheet that are none; the text names the row."""


def write_sheets(assignment: Assignment, output: Path) -> list[Path]:
    """Write a page and a table for each free-text question; points that are already in a table stay.

    Args:
        assignment: what was graded.
        output: the output folder of `grade`.

    Returns:
        The pages.
    """
    grades = sorted(read_grades(output), key=_shuffled)
    folder = output / FOLDER
    folder.mkdir(exist_ok=True)
    pages = []
    for question, about in assignment.questions.items():
        if about.kind == TEXT:
            sheet = folder / f"{question}.html"
            sheet.write_text(_sheet(assignment, question, grades), encoding="utf-8")
            _write_points(folder / f"{question}.csv", question, grades)
            pages.append(sheet)
    return pages


def read_points(assignment: Assignment, output: Path) -> dict[str, dict[str, float]]:
    """The points that readers gave: question -> student -> points. Blank ones are left out.

    Raises:
        ReadingError: points that are no number from 0 to the question's.
    """
    found: dict[str, dict[str, float]] = {}
    for question, about in assignment.questions.items():
        path = output / FOLDER / f"{question}.csv"
        if about.kind == TEXT:
            found[question] = {
                student: _points(row["points"], about.points, f"{path}, {student}")
                for student, row in _rows(path).items()
                if row["points"].strip()
            }
    return found


def _sheet(assignment: Assignment, question: str, grades: Sequence[Grade]) -> str:
    """The page of a question."""
    markdown = MarkdownIt("commonmark", {"html": False})
    answers = [
        {"student": grade.student, "text": markdown.render(grade.texts[question])}
        for grade in grades
        if grade.texts.get(question)
    ]
    missing = [grade.student for grade in grades if not grade.texts.get(question)]
    about = assignment.questions[question]
    rubric = markdown.render(assignment.rubric[question])
    title = f"{assignment.title}, question {question.removeprefix('q')}: {about.title}"
    return page("reading.html", title=title, points=about.points, rubric=rubric, answers=answers, missing=missing)


def _write_points(path: Path, question: str, grades: Sequence[Grade]) -> None:
    """The table of a question. No text is worth no points; all other points are for a person to give."""
    known = _rows(path)
    rows: list[dict[str, Any]] = []
    for grade in grades:
        before = known.get(grade.student, {"points": "", "comment": ""})
        points = before["points"] or ("" if grade.texts.get(question) or grade.error else "0")
        rows.append({"student": grade.student, "points": points, "comment": before["comment"]})
    write_table(path, rows)


def _rows(path: Path) -> dict[str, dict[str, str]]:
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8-sig") as file:
        return {row["student"].removeprefix("'"): row for row in csv.DictReader(file)}


def _points(text: str, most: int, place: str) -> float:
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        raise ReadingError(f"{place}: expected points, got {text!r}") from None
    if not 0 <= points <= most:
        raise ReadingError(f"{place}: expected 0 to {most} points, got {text}")
    return points


def _shuffled(grade: Grade) -> str:
    """An order in which nobody is always first, the same every time for one set of texts."""
    return hashlib.sha256(f"{grade.student} {sorted(grade.texts.items())}".encode()).hexdigest()
