"""A whole class graded: find the submissions, grade several at a time, keep each result as it comes.

OUT/results/STUDENT.json    everything known about a submission; what has not changed is not graded again
OUT/feedback/STUDENT.html   what the student reads
OUT/grades.csv              one row a student
OUT/report.json             how it was graded: assignment, variant, sandbox
"""

import csv
import hashlib
import json
import os
import queue
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from mesa_lib.grading.feedback import feedback_page
from mesa_lib.grading.grade import UNCLEAR, Grade, Grader
from mesa_lib.grading.source import CODE, Assignment

_CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_.+")
_MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_file_?")
_CHECKPOINTS = {".ipynb_checkpoints", "__MACOSX"}


@dataclass(frozen=True)
class Found:
    """A submission in a folder.

    Attributes:
        student: who, from the name of the file or folder.
        path: the file to grade.
        aliases: other names of the student: the number that Canvas or Moodle gave.
        note: what was odd about the file.
    """

    student: str
    path: Path
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def slug(self) -> str:
        """The student as the name of a file, different for different students."""
        plain = re.sub(r"[^A-Za-z0-9.-]+", "_", self.student).strip("._")[:60]
        return (
            plain
            if plain and plain == self.student
            else f"{plain}-{hashlib.sha256(self.student.encode()).hexdigest()[:6]}"
        )


def find_submissions(folder: Path) -> list[Found]:
    """One submission a student, in order.

    A file belongs to the student that its name begins with, as Canvas names it, or is named after; a folder to the
    student after whom it is named, as Moodle and nbgrader do. Of several files of a student the notebook that is newest
    counts.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    found: dict[str, list[Found]] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name in _CHECKPOINTS or entry.suffix in (".csv", ".yml"):
            continue
        name = entry.name if entry.is_dir() else entry.stem
        match = _MOODLE.fullmatch(name) or _CANVAS.fullmatch(name)
        student, aliases = (match["name"], (match["id"],)) if match else (name, ())
        files = _files_in(entry) if entry.is_dir() else [entry]
        found.setdefault(student, []).extend(Found(student, path, aliases) for path in files)
    return [_newest(files) for files in found.values()]


def submission_of(student: str, folder: Path) -> Found:
    """The submission in a folder of one student's: the notebook that is newest."""
    return _newest([Found(student, path) for path in _files_in(folder)])


def grade_all(
    grader: Grader,
    submissions: Sequence[Found],
    output: Path,
    jobs: int,
    times: dict[str, str] | None = None,
    show: Callable[[str], None] = print,
) -> list[Grade]:
    """Grade every submission, several at a time, and write all files of the output.

    A grade is written as soon as it is known, so a run that was ended goes on where it was; a submission whose file,
    cases, variant and salt are the same is not graded again, and of the others only the cases that changed are.

    Args:
        grader: what is graded, and how.
        submissions: one a student.
        output: the folder, made if need be; only its owner may read it.
        jobs: how many at a time.
        times: when each student handed in, ISO 8601, if it is known.
        show: gets a line for every submission that a person should look at.

    Returns:
        The grades, in the order of the submissions.
    """
    for folder in (output, output / "results", output / "feedback"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    began, slots = time.monotonic(), queue.SimpleQueue[int]()
    for job in range(jobs):
        slots.put(job)

    def work(found: Found) -> Grade:
        job = slots.get()
        try:
            return _grade_one(grader, found, output, job, (times or {}).get(found.student, ""))
        finally:
            slots.put(job)

    grades: dict[str, Grade] = {}
    switched_off = os.environ.get("TQDM_DISABLE", "0") not in ("", "0")
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(work, found): found for found in submissions}
        try:
            done = as_completed(running)
            for future in tqdm(done, total=len(running), desc=grader.assignment.name, disable=switched_off or None):
                grade = grades[running[future].student] = future.result()
                if grade.error:
                    show(f"{grade.student}: GRADER ERROR (no points are lost): {grade.error}")
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    ordered = [grades[found.student] for found in submissions]
    write_table(output / "grades.csv", grade_rows(grader.assignment, ordered))
    report = {
        "assignment": grader.assignment.name,
        "variant": grader.variant,
        "sandbox": grader.sandbox.kind,
        "students": [grade.student for grade in ordered],
        "seconds": round(time.monotonic() - began, 1),
    }
    _replace(output / "report.json", json.dumps(report, indent=1))
    return ordered


def grade_rows(assignment: Assignment, grades: Iterable[Grade]) -> list[dict[str, Any]]:
    """The table of grades: points a question, blank where the grader broke, and what to look at."""
    code = [name for name, about in assignment.questions.items() if about.kind == CODE]
    most = sum(assignment.questions[name].points for name in code)
    rows = []
    for grade in grades:
        scores = {name: "" if grade.error else grade.score(name) for name in code}
        total = "" if grade.error else sum(grade.score(name) for name in code)
        rows.append(
            {
                "student": grade.student,
                **scores,
                "total": total,
                "of": most,
                "file": grade.file,
                "status": status(grade),
            }
        )
    return rows


def status(grade: Grade) -> str:
    """In a few words, what a person should know about a grade."""
    if grade.error:
        return f"GRADER ERROR: {grade.error.splitlines()[0][:150]}"
    if grade.problem:
        return grade.problem
    unclear = [f"{result.question} {result.name}" for result in grade.results if result.status == UNCLEAR]
    if unclear:
        return f"look at: {', '.join(unclear)}"
    return "; ".join(grade.notes)[:200] or "graded"


def read_grades(output: Path) -> list[Grade]:
    """The grades in an output folder, by student."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((output / "results").glob("*.json"))]
    return [Grade.from_record(record) for record in records]


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a CSV file; a text that a spreadsheet would take for a formula gets an apostrophe before it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else ["student"])
        table.writeheader()
        table.writerows({key: _as_text(value) for key, value in row.items()} for row in rows)


def read_times(path: Path) -> dict[str, str]:
    """When each student handed in: a CSV file with the columns `student` and `time` (ISO 8601, with its zone)."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return {row["student"]: row["time"] for row in csv.DictReader(file)}


def _grade_one(grader: Grader, found: Found, output: Path, job: int, submitted: str) -> Grade:
    """Grade one submission unless its result is there, and write its files."""
    record = output / "results" / f"{found.slug}.json"
    earlier = _earlier(record)
    grade = grader.grade(found.student, found.path, job, earlier)
    notes = list(dict.fromkeys([*([found.note] if found.note else []), *grade.notes]))
    grade = replace(grade, notes=notes, aliases=list(found.aliases), submitted=submitted)
    page = output / "feedback" / f"{found.slug}.html"
    if grade != earlier or not page.is_file():
        _replace(page, feedback_page(grader.assignment, grade))
        _replace(record, json.dumps(grade.to_record(), indent=1))
    return grade


def _earlier(record: Path) -> Grade | None:
    """The grade in a file, unless there is none, or none of this version's."""
    try:
        return Grade.from_record(json.loads(record.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _files_in(folder: Path) -> list[Path]:
    """The notebooks in a student's folder; if it has none, whatever it has; if it is empty, the folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _CHECKPOINTS & set(path.parts)]
    return [path for path in files if path.suffix == ".ipynb"] or files[:1] or [folder]


def _newest(files: Sequence[Found]) -> Found:
    chosen = max(files, key=lambda found: (found.path.suffix == ".ipynb", found.path.stat().st_mtime, found.path.name))
    note = f"{len(files)} files; graded is {chosen.path.name}, the newest" if len(files) > 1 else ""
    return replace(chosen, note=note)


def _as_text(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _replace(path: Path, text: str) -> None:
    """Write a file in one step, so that a run that is ended leaves whole files."""
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
