"""What a student reads about a graded submission: points and hints, and nothing of a hidden case."""

from importlib import resources
from typing import Any

import jinja2

from mesa_lib.grading.grade import PASSED, CaseResult, Grade
from mesa_lib.grading.source import TEXT, Assignment


def feedback_page(assignment: Assignment, grade: Grade) -> str:
    """The HTML page of one student; a hidden case has no name there, only points, a likely mistake and a hint."""
    questions = []
    for name, about in assignment.questions.items():
        rows = [_row(result) for result in grade.results if result.question == name]
        score = None if about.kind == TEXT else grade.score(name)
        questions.append({"name": name, "about": about, "rows": rows, "score": score})
    code = [name for name, about in assignment.questions.items() if about.kind != TEXT]
    total, most = sum(grade.score(name) for name in code), sum(assignment.questions[name].points for name in code)
    return page("feedback.html", title=assignment.title, grade=grade, questions=questions, total=total, most=most)


def page(template: str, **values: Any) -> str:
    """A page from one of the templates in `pages`; every value is escaped."""
    return _environment().get_template(template).render(**values)


def _row(result: CaseResult) -> dict[str, Any]:
    """What of a result is shown."""
    return {
        "name": "hidden case" if result.hidden else result.name,
        "score": result.score,
        "points": result.points,
        "text": "ok" if result.status == PASSED else result.message,
        "hint": result.hint,
    }


def _environment() -> jinja2.Environment:
    folder = resources.files("mesa_lib.grading") / "pages"
    loader = jinja2.FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
