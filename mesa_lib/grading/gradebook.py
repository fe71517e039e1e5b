"""The term's gradebook: cases, readers' points and lateness put together, as a table that Canvas or Moodle imports."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_lib.grading.batch import read_grades
from mesa_lib.grading.course import Course, lateness, short_name
from mesa_lib.grading.grade import Grade
from mesa_lib.grading.reading import read_points
from mesa_lib.grading.source import CODE, TEXT, Assignment

CANVAS, MOODLE, PLAIN = "canvas", "moodle", "csv"
TARGETS = (PLAIN, CANVAS, MOODLE)

KEYS = {
    CANVAS: ("Student", "ID", "SIS User ID", "SIS Login ID", "Section"),
    MOODLE: ("Identifier", "Full name", "First name", "Last name", "ID number", "Username", "Email address"),
}
"""The columns of a roster that say who somebody is; they are handed back as they came."""

_POINTS_POSSIBLE = "points possible"


class GradebookError(ValueError):
    """Something that keeps a gradebook from being made; the text says what."""


@dataclass(frozen=True)
class Entry:
    """One student's points for one assignment.

    Attributes:
        student: who.
        aliases: other names of the student.
        points: after lateness; None if the grader broke or a text is not read yet.
        most: full points.
        note: what the number alone does not say.
    """

    student: str
    aliases: tuple[str, ...]
    points: float | None
    most: int
    note: str


def entries(graded: Mapping[str, tuple[Assignment, Path]], course: Course | None) -> dict[str, dict[str, Entry]]:
    """Every student's entries, by assignment (short name) and student.

    Args:
        graded: short name -> the assignment and the output folder of its `grade`.
        course: deadlines, late days and extensions; None: nobody is late.
    """
    grades = {name: {grade.student: grade for grade in read_grades(output)} for name, (_, output) in graded.items()}
    read = {name: read_points(assignment, output) for name, (assignment, output) in graded.items()}
    found: dict[str, dict[str, Entry]] = {name: {} for name in graded}
    for student in sorted({student for by_student in grades.values() for student in by_student}):
        mine = {name: by_student[student] for name, by_student in grades.items() if student in by_student}
        times = {name: grade.submitted for name, grade in mine.items()}
        late = lateness(course, student, times) if course else {}
        for name, grade in mine.items():
            percent = late[name].percent if name in late else 0.0
            days = late[name].days if name in late else 0
            found[name][student] = _entry(graded[name][0], grade, read[name], percent, days)
    return found


def plain_rows(found: Mapping[str, Mapping[str, Entry]]) -> list[dict[str, Any]]:
    """A row a student: points of each assignment, the total, and notes."""
    students = sorted({student for by_student in found.values() for student in by_student})
    rows = []
    for student in students:
        mine = {name: by_student.get(student) for name, by_student in found.items()}
        points = {name: _number(entry) for name, entry in mine.items()}
        total = sum(entry.points or 0.0 for entry in mine.values() if entry)
        notes = "; ".join(f"{name}: {entry.note}" for name, entry in mine.items() if entry and entry.note)
        rows.append({"student": student, **points, "total": _tidy(total), "notes": notes})
    return rows


def roster_rows(
    found: Mapping[str, Mapping[str, Entry]], titles: Mapping[str, str], roster: Path, target: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a roster with a column of points for each assignment, for Canvas or Moodle to import.

    A student is found by any column that says who somebody is, and by the number that Canvas or Moodle puts into the
    name of a submission. A column of the roster that is called like the assignment, such as Canvas' "a01 Title (1234)",
    is filled; otherwise one is added.

    Args:
        found: see `entries`.
        titles: short name -> the title of the assignment.
        roster: the gradebook or the list of participants that Canvas or Moodle exports, as CSV.
        target: "canvas" or "moodle".

    Returns:
        The rows, and the students of whom the roster knows nothing.

    Raises:
        GradebookError: the roster has none of the columns that say who somebody is.
    """
    with roster.open(newline="", encoding="utf-8-sig") as file:
        table = list(csv.DictReader(file))
    columns = list(table[0]) if table else []
    keys = [column for column in columns if column in KEYS[target]]
    if not keys:
        raise GradebookError(f"{roster}: none of the columns {', '.join(KEYS[target])}; is it an export of {target}?")
    rows, matched = [], set()
    for person in table:
        names = ({_plain(person[column]) for column in keys} | _spelled(person)) - {""}
        row: dict[str, Any] = {column: person[column] for column in keys}
        for name, by_student in found.items():
            header = _header(name, titles[name], columns)
            entry = next((entry for entry in by_student.values() if names & _names(entry)), None)
            possible = person[keys[0]].strip().lower() == _POINTS_POSSIBLE
            row[header] = next(iter(by_student.values())).most if possible and by_student else _number(entry)
            if entry:
                matched.add(entry.student)
        rows.append(row)
    if target == CANVAS and not any(str(row[keys[0]]).strip().lower() == _POINTS_POSSIBLE for row in rows):
        most = {
            _header(name, titles[name], columns): next(iter(found[name].values())).most for name in found if found[name]
        }
        rows.insert(0, {**dict.fromkeys(keys, ""), keys[0]: "Points Possible", **most})
    missing = sorted({entry.student for by_student in found.values() for entry in by_student.values()} - matched)
    return rows, missing


def graded_folders(
    outputs: Sequence[Path], assignments: Mapping[str, Assignment]
) -> dict[str, tuple[Assignment, Path]]:
    """Output folders of `grade` by the short name of what was graded.

    Raises:
        GradebookError: a folder is none, or two grade the same assignment.
    """
    found: dict[str, tuple[Assignment, Path]] = {}
    for output in outputs:
        try:
            name = json.loads((output / "report.json").read_text(encoding="utf-8"))["assignment"]
            assignment = assignments[name]
        except (OSError, ValueError, KeyError) as error:
            raise GradebookError(f"{output}: no output of a finished `grade` ({type(error).__name__})") from None
        if short_name(name) in found:
            raise GradebookError(f"{output}: {name} is graded in two folders")
        found[short_name(name)] = (assignment, output)
    return found


def _entry(
    assignment: Assignment, grade: Grade, read: Mapping[str, Mapping[str, float]], percent: float, days: int
) -> Entry:
    """One student's entry for one assignment."""
    texts = [name for name, about in assignment.questions.items() if about.kind == TEXT]
    code = [name for name, about in assignment.questions.items() if about.kind == CODE]
    most = sum(about.points for about in assignment.questions.values())
    unread = [name for name in texts if grade.student not in read[name]]
    notes = []
    if days:
        notes.append(f"{days} day{'' if days == 1 else 's'} late, {percent:g} % off")
    if grade.error:
        notes.append("GRADER ERROR: grade again")
    if unread:
        notes.append(f"{', '.join(unread)} not read yet")
    points = None
    if not grade.error and not unread:
        points = sum(grade.score(name) for name in code) + sum(read[name][grade.student] for name in texts)
        points = round(points * (1 - percent / 100), 2)
    return Entry(grade.student, tuple(grade.aliases), points, most, "; ".join(notes))


def _header(name: str, title: str, columns: Sequence[str]) -> str:
    """The column of an assignment: the roster's own, or a new one."""
    return next((column for column in columns if column.startswith((f"{name} ", title))), f"{name} {title}")


def _number(entry: Entry | None) -> Any:
    return "" if entry is None or entry.points is None else _tidy(entry.points)


def _tidy(number: float) -> int | float:
    return int(number) if float(number).is_integer() else round(number, 2)


def _names(entry: Entry) -> set[str]:
    return {_plain(name) for name in (entry.student, *entry.aliases)}


def _spelled(person: Mapping[str, str]) -> set[str]:
    """The ways in which Canvas and Moodle spell a name in the name of a file."""
    full = person.get("Student") or person.get("Full name") or ""
    full = full or " ".join(filter(None, (person.get("First name"), person.get("Last name"))))
    last, _, first = (part.strip() for part in full.partition(",")) if "," in full else ("", "", full)
    words = [*last.split(), *first.split()] if last else full.split()
    spelled = {_plain(full), _plain(last + first)}
    if len(words) > 1:
        spelled |= {_plain(words[-1] + "".join(words[:-1])), _plain("".join(words))}
    identifier = person.get("Identifier", "")  # Moodle: "Participant 12345"
    return spelled | {re.sub(r"\D", "", identifier)}


def _plain(text: str) -> str:
    """A name without case, blanks and punctuation."""
    return "".join(character for character in text.casefold() if character.isalnum())
