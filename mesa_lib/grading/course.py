"""A course: its weeks, deadlines, late days and extensions, in a file of the instructor's.

name: Mesa, spring
start: 2027-02-01                      # the Monday of week 1
variant: "spring 2027, kx81"           # the seed of this term's variants
time_zone: Europe/Zurich
late: {free_days: 3, grace_minutes: 15, percent_per_day: 10, most_days: 5}
deadlines: {a01: 2027-02-12 23:59, a02: 2027-02-19 23:59}
extensions:                            # days, for one student and one assignment
  ada: {a01: 2}
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml

from mesa_lib.grading.source import Assignment


class CourseError(ValueError):
    """A course file that does not say what it has to say; the message names the entry."""


@dataclass(frozen=True)
class LateRule:
    """What being late costs.

    Attributes:
        free_days: days that each student may be late without cost, over the whole term.
        grace_minutes: minutes after a deadline that do not count.
        percent_per_day: of the points, for each further day that has begun.
        most_days: after so many days of cost nothing is accepted.
    """

    free_days: int = 0
    grace_minutes: int = 15
    percent_per_day: float = 10.0
    most_days: int = 5


@dataclass(frozen=True)
class Course:
    """See the head of this module."""

    name: str
    start: date
    variant: str = ""
    time_zone: str = "UTC"
    late: LateRule = field(default_factory=LateRule)
    deadlines: Mapping[str, datetime] = field(default_factory=dict)
    extensions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Lateness:
    """How late one submission was, and what it costs.

    Attributes:
        days: days after the deadline and the extension, each begun day counted.
        free: how many of them the student's free days pay for.
        percent: what the others cost, in percent of the points; 100 if it was too late.
    """

    days: int
    free: int
    percent: float


def read_course(path: Path) -> Course:
    """The course in a file.

    Raises:
        CourseError: the file is no course; the message names the entry.
    """
    try:
        entries = dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, TypeError, ValueError) as error:
        raise CourseError(f"{path}: no course: {error}") from None
    if unknown := set(entries) - {item.name for item in fields(Course)}:
        raise CourseError(f"{path}: unknown entries {sorted(unknown)}")
    try:
        zone = ZoneInfo(entries.get("time_zone", "UTC"))
        late = LateRule(**entries.get("late", {}))
        deadlines = {name: _moment(value, zone) for name, value in entries.get("deadlines", {}).items()}
        start = entries["start"] if isinstance(entries["start"], date) else date.fromisoformat(entries["start"])
        return Course(**{**entries, "start": start, "late": late, "deadlines": deadlines})
    except (KeyError, TypeError, ValueError, ZoneInfoNotFoundError) as error:
        raise CourseError(f"{path}: {type(error).__name__}: {error}") from None


def lateness(course: Course, student: str, submitted: Mapping[str, str]) -> dict[str, Lateness]:
    """How late each of a student's submissions was; free days pay for the earliest deadlines first.

    Args:
        course: the course.
        student: who.
        submitted: when each assignment was handed in, ISO 8601, by its short name ("a01"); an unknown time is no
            lateness.
    """
    left, found = course.late.free_days, {}
    zone = ZoneInfo(course.time_zone)
    never = datetime.max.replace(tzinfo=zone)
    for name in sorted(submitted, key=lambda name: (course.deadlines.get(name, never), name)):
        days = 0
        if submitted[name] and name in course.deadlines:
            extension = timedelta(days=course.extensions.get(student, {}).get(name, 0))
            due = course.deadlines[name] + extension + timedelta(minutes=course.late.grace_minutes)
            over = (_moment(submitted[name], zone) - due).total_seconds()
            days = max(0, math.ceil(over / 86400))
        free = min(days, left)
        left -= free
        paid = days - free
        percent = 100.0 if paid > course.late.most_days else min(100.0, paid * course.late.percent_per_day)
        found[name] = Lateness(days, free, percent)
    return found


def term_plan(course: Course, assignments: Sequence[Assignment], weeks: int, chapters: Iterable[str] = ()) -> str:
    """A plan of the term as a table in Markdown: what to read and what is due each week.

    Assignments with a deadline stand in its week; the others are spread over the weeks, in order, from the second one
    on. A week's reading is the chapters of the next assignment that nobody has read yet.

    Args:
        course: start and deadlines.
        assignments: in order.
        weeks: how many.
        chapters: the book's chapters in order; whatever no assignment asks for is read in its place in between.
    """
    if weeks < 2:
        raise CourseError(f"weeks: expected at least 2, got {weeks}")
    due: dict[int, list[Assignment]] = {week: [] for week in range(1, weeks + 1)}
    for index, assignment in enumerate(assignments):
        deadline = course.deadlines.get(short_name(assignment.name))
        if deadline is not None:
            week = (deadline.date() - course.start).days // 7 + 1
        else:
            week = 2 + index * (weeks - 2) // max(1, len(assignments) - 1) if len(assignments) > 1 else 2
        due[min(max(week, 1), weeks)].append(assignment)
    reading = _reading(due, list(chapters), weeks)
    rows = ["| week | from | read | due |", "|---|---|---|---|"]
    for week in range(1, weeks + 1):
        monday = course.start + timedelta(weeks=week - 1)
        titles = "; ".join(f"{short_name(item.name)} {item.title} ({item.minutes} min)" for item in due[week])
        rows.append(f"| {week} | {monday.isoformat()} | {', '.join(reading[week])} | {titles} |")
    return "\n".join(rows) + "\n"


def short_name(name: str) -> str:
    """The first part of a name, "a01" of "a01_one_step_is_attention"."""
    return name.partition("_")[0]


def _reading(due: Mapping[int, Sequence[Assignment]], chapters: list[str], weeks: int) -> dict[int, list[str]]:
    """What to read each week: before an assignment is due, its chapters and those of the book before them."""
    read: set[str] = set()
    plan: dict[int, list[str]] = {week: [] for week in range(1, weeks + 1)}
    for week in range(1, weeks + 1):
        for assignment in due[week]:
            needed = [name for name in chapters if name in assignment.chapters] or list(assignment.chapters)
            last = max((chapters.index(name) for name in needed if name in chapters), default=-1)
            fresh = [name for name in [*chapters[: last + 1], *needed] if name not in read]
            read.update(fresh)
            # A week to read, a week to work.
            plan[max(1, week - 1)] += list(dict.fromkeys(fresh))
    rest = [name for name in chapters if name not in read]
    plan[weeks] += rest
    return plan


def _moment(value: Any, zone: ZoneInfo) -> datetime:
    """A point in time; one without a zone is in the course's."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
