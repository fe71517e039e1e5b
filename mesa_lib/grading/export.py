"""For courses that already run nbgrader or otter-grader: the assignment in their formats.

Both run the student's code and the cases in one process, and both put the hidden cases into files or cells that a
student with some skill can reach: a copied cell, an endless loop or a patched function costs or earns points there that
it does not cost or earn here. The cases are the same. Tried with nbgrader 0.9.6 and otter-grader 7.0.0.
"""

import inspect
import json
from pathlib import Path

from nbformat import NotebookNode

from mesa_lib.assignments.cases import Case
from mesa_lib.grading.build import ANSWER, as_node, build_marked, build_notebooks, new_cell, notebook_bytes
from mesa_lib.grading.source import TEXT, Assignment

NBGRADER, OTTER = "nbgrader", "otter"
TARGETS = (NBGRADER, OTTER)


def export(assignment: Assignment, target: str, folder: Path, variant: str = "") -> Path:
    """Write the instructor's version of an assignment in another grader's format.

    Args:
        assignment: the source.
        target: "nbgrader" (for `source/NAME/NAME.ipynb`) or "otter" (for `otter assign`).
        folder: where to.
        variant: which variant.

    Returns:
        The notebook.
    """
    student, marked = build_notebooks(assignment, variant)[0], build_marked(assignment, variant)
    cells = (_nbgrader if target == NBGRADER else _otter)(assignment, student, marked, variant)
    notebook = as_node({**marked, "cells": cells})
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index:03d}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{assignment.name}.ipynb"
    path.write_bytes(notebook_bytes(notebook))
    return path


def _nbgrader(assignment: Assignment, student: NotebookNode, marked: NotebookNode, variant: str) -> list[NotebookNode]:
    """Cells with nbgrader's metadata: solutions between its markers, which are ours, and one graded cell a case."""
    cells: list[NotebookNode] = []
    texts = iter([name for name, about in assignment.questions.items() if about.kind == TEXT])
    for number, (shown, full) in enumerate(zip(student.cells, marked.cells, strict=True)):
        if not _is_answer(full):
            cells.append(_plain(full))
        elif full.cell_type == "code":
            cells.append(_graded(new_cell("code", full.source), f"answer-{number}", solution=True))
        else:
            question = next(texts)
            points = assignment.questions[question].points
            cells.append(_graded(new_cell("markdown", shown.source), f"{question}-text", solution=True, points=points))
    for number, case in enumerate(assignment.cases):
        source = f"# {case.question}: {case.name if not case.hidden else 'hidden case'}\n"
        body = _program(assignment, case, variant)
        source += f"### BEGIN HIDDEN TESTS\n{body}\n### END HIDDEN TESTS" if case.hidden else body
        cells.append(
            _graded(new_cell("code", source), f"{case.question}-case-{number}", locked=True, points=case.points)
        )
    return cells


def _otter(assignment: Assignment, student: NotebookNode, marked: NotebookNode, variant: str) -> list[NotebookNode]:
    """Cells for `otter assign`: raw cells around each question, up to its `check`, and one test cell a case."""
    config = {"name": assignment.name, "tests": {"ok_format": False}, "show_question_points": True}
    cells = [_raw("ASSIGNMENT CONFIG", **config)]
    answers: list[NotebookNode] = []
    texts = iter([name for name, about in assignment.questions.items() if about.kind == TEXT])
    for full in marked.cells:
        if _is_answer(full) and full.cell_type == "code":
            answers.append(new_cell("code", full.source.replace("### BEGIN", "# BEGIN").replace("### END", "# END")))
        elif _is_answer(full):
            question = next(texts)
            points = assignment.questions[question].points
            cells += [_raw("BEGIN QUESTION", name=question, manual=True, points=points), _raw("BEGIN SOLUTION")]
            cells += [new_cell("markdown", full.source), _raw("END SOLUTION"), _raw("END QUESTION")]
        elif full.cell_type == "code" and full.source.startswith("check(") and answers:
            question = full.source.split('"')[1]
            cases = [case for case in assignment.cases if case.question == question]
            cells += [_raw("BEGIN QUESTION", name=question), _raw("BEGIN SOLUTION"), *answers, _raw("END SOLUTION")]
            cells += [_raw("BEGIN TESTS"), *(_otter_test(assignment, case, n, variant) for n, case in enumerate(cases))]
            cells += [_raw("END TESTS"), _raw("END QUESTION")]
            answers = []
        else:
            cells.append(_plain(full))
    return cells


def _otter_test(assignment: Assignment, case: Case, number: int, variant: str) -> NotebookNode:
    """One test cell, a function of the student's environment."""
    body = _program(assignment, case, variant, answers="env")
    config = (
        f'""" # BEGIN TEST CONFIG\npoints: {case.points}\nhidden: {str(case.hidden).lower()}\n""" # END TEST CONFIG\n'
    )
    indented = "\n".join(f"    {line}" if line else "" for line in body.splitlines())
    return new_cell("code", f"{config}def test_{case.question}_{number}(env):\n{indented}")


def _program(assignment: Assignment, case: Case, variant: str, answers: str = "globals()") -> str:
    """A program that runs one case on the answers in a namespace."""
    module = inspect.getmodule(case.run)
    assert module is not None
    lines = ["import numpy as np", "from mesa_lib.assignments import LocalStudent"]
    if case.hidden:
        lines += ["cases = {}", f"exec({inspect.getsource(module)!r}, cases)", f"run = cases[{case.run.__name__!r}]"]
    else:
        lines.append(f"from {module.__name__} import {case.run.__name__} as run")
    lines.append(
        f"run(LocalStudent(dict({answers}), {assignment.choices(variant)!r}, strict=False), np.random.default_rng(0))"
    )
    return "\n".join(lines)


def _is_answer(cell: NotebookNode) -> bool:
    return ANSWER in cell.metadata.get("tags", [])


def _plain(cell: NotebookNode) -> NotebookNode:
    """A cell without metadata."""
    return new_cell(cell.cell_type, cell.source)


def _raw(heading: str, **entries: object) -> NotebookNode:
    """One of otter's raw cells; JSON is YAML."""
    return new_cell(
        "raw", "\n".join([f"# {heading}", *(f"{key}: {json.dumps(value)}" for key, value in entries.items())])
    )


def _graded(
    cell: NotebookNode, name: str, solution: bool = False, locked: bool = False, points: int | None = None
) -> NotebookNode:
    """The cell with nbgrader's metadata; what has points is graded."""
    mark: dict[str, object] = {
        "grade": points is not None,
        "grade_id": name,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    cell.metadata["nbgrader"] = {**mark, "points": points} if points is not None else mark
    return cell
