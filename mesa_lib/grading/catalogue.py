"""The book's list of assignments, made from their sources: goals, minutes, points, prerequisites, links."""

from collections.abc import Iterable
from pathlib import Path

from mesa_lib.grading.repository import binder_link, colab_link
from mesa_lib.grading.source import CODE, TEXT, Assignment, SourceError

BEGIN, END = "<!-- made by `python -m mesa_lib.grading build`; don't edit -->", "<!-- end of what is made -->"


def catalogue(assignments: Iterable[Assignment]) -> str:
    """The list as MyST text, for a page in `book/assignments`."""
    listed = list(assignments)
    rows = ["| | assignment | minutes | points | read first |", "|---|---|---|---|---|"]
    for assignment in listed:
        chapter = f"[](../{assignment.chapters[0]}.ipynb)"
        points = sum(about.points for about in assignment.questions.values())
        link = f"[{assignment.title}](#{_label(assignment)})"
        rows.append(f"| {_short(assignment)} | {link} | {assignment.minutes} | {points} | {chapter} |")
    return "\n".join(rows) + "\n\n" + "\n".join(_entry(assignment) for assignment in listed)


def update_page(page: Path, assignments: Iterable[Assignment]) -> None:
    """Write the list into a page, between its two marks.

    Raises:
        SourceError: the page lacks a mark.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SourceError(f"{page}: expected the marks {BEGIN!r} and {END!r}")
    updated = f"{before}{BEGIN}\n\n{catalogue(assignments)}\n{END}{after}"
    if updated != text:
        page.write_text(updated, encoding="utf-8")


def _entry(assignment: Assignment) -> str:
    """The section of one assignment."""
    path = f"assignments/release/{assignment.name}.ipynb"
    links = [
        f"[Colab]({colab_link(path)})",
        f"[Binder]({binder_link(path)})",
        f"{{download}}`the notebook <../../{path}>`",
    ]
    code = sum(about.points for about in assignment.questions.values() if about.kind == CODE)
    text = sum(about.points for about in assignment.questions.values() if about.kind == TEXT)
    lines = [
        f"({_label(assignment)})=",
        f"### {_short(assignment)} {assignment.title}",
        "",
        f"About {assignment.minutes} minutes. {code} points from cases, {text} for free text that a person reads. "
        f"Open it in {links[0]} or {links[1]}, or take {links[2]}.",
        "",
        "Afterwards you can",
        "",
        *(f"- {goal}" + ("," if goal != assignment.goals[-1] else ".") for goal in assignment.goals),
        "",
        f"You need {', '.join(assignment.prerequisites)}. Read first: "
        f"{', '.join(f'[](../{chapter}.ipynb)' for chapter in assignment.chapters)}.",
        "",
    ]
    return "\n".join(lines)


def _short(assignment: Assignment) -> str:
    return assignment.name.partition("_")[0]


def _label(assignment: Assignment) -> str:
    return f"assignment-{_short(assignment)}"
