"""The proof that an assignment grades: what the solution, the blank notebook, constants and mutants score.

- The solution earns every point, on several salts and in every variant; the blank notebook earns none.
- Six constants (0, 1, NaN, None, the first argument, an empty array) in place of every answer earn no hidden point.
- Each mutant, a solution with one named mistake, loses exactly the points that it is said to lose.
- Every hidden case fails at least one mutant; another would be dead weight.

All of this is our own code and runs in this process, with values copied as on their way to a worker. A
cell of the solution is run once; a mutant runs again what its mistake changes.
"""

import contextlib
import io
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from nbformat import NotebookNode

from mesa_lib.assignments.cases import Case, LocalStudent
from mesa_lib.assignments.variants import all_variants, spanning_variants
from mesa_lib.grading.build import ANSWER, INSTALL, USES_ANSWERS, as_node, build_notebooks
from mesa_lib.grading.grade import PASSED, judge, seed_of
from mesa_lib.grading.source import CODE, Assignment, Mutant

SALTS = tuple(f"proof {number}".encode() for number in range(5))
FEWEST_MUTANTS = 6
CONSTANTS: Mapping[str, Callable[..., Any]] = {
    "0": lambda *arguments: 0.0,
    "1": lambda *arguments: 1.0,
    "NaN": lambda *arguments: math.nan,
    "None": lambda *arguments: None,
    "the first argument": lambda *arguments: arguments[0] if arguments else 0.0,
    "an empty array": lambda *arguments: np.zeros(0),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was tried.

    Attributes:
        what: "solution, salt 0", "mutant: the step goes uphill".
        expected: what it has to score, in words.
        got: what it scored.
        passed: whether that is right.
    """

    what: str
    expected: str
    got: str
    passed: bool


def prove(assignment: Assignment, every_variant: bool = True) -> Iterator[Finding]:
    """Try everything, and say how it went, one finding after the other.

    Args:
        assignment: what is tried.
        every_variant: whether the solution is tried in all variants, or only in so many that each choice is in one.
    """
    for variant in (all_variants if every_variant else spanning_variants)(assignment.public):
        # What the experiments do, they do in every variant.
        run = NotebookRun(build_notebooks(assignment, variant)[1], experiments=variant == "")
        for salt in SALTS if variant == "" else SALTS[:1]:
            name = f"solution, {salt.decode()}" if variant == "" else f"solution, variant {variant}"
            yield _compared(name, assignment, failures(assignment, run.namespace, variant, salt))
        if variant == "":
            yield from _of_default(assignment, run)


def mutant_findings(assignment: Assignment) -> Iterator[Finding]:
    """The part of the proof that is about mutants."""
    yield from _mutants(assignment, NotebookRun(build_notebooks(assignment)[1]))


def full_scores(assignment: Assignment) -> dict[str, int]:
    """The points of every question that cases judge."""
    return {name: about.points for name, about in assignment.questions.items() if about.kind == CODE}


def failures(assignment: Assignment, namespace: Mapping[str, Any], variant: str, salt: bytes) -> dict[Case, str]:
    """The cases that a namespace fails, each with its message."""
    choices, failed = assignment.choices(variant), {}
    for case in assignment.cases:
        student = LocalStudent(namespace, choices, strict=not case.hidden)
        status, message = judge(case, student, seed_of(salt, "nobody", assignment.name, case))
        if status != PASSED:
            failed[case] = f"{case.name}: {message}"
    return failed


class NotebookRun:
    """A notebook that has run in this process, quietly; its answers can be changed and put back.

    Args:
        notebook: a built notebook of ours, never a student's.
        experiments: whether cells that only use answers, those with `once_written`, run too.
    """

    def __init__(self, notebook: NotebookNode, experiments: bool = True) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__", "display": lambda *things: None}
        self.cells = [
            cell for cell in notebook.cells if cell.cell_type == "code" and INSTALL not in cell.metadata.get("tags", [])
        ]
        for cell in self.cells:
            if experiments or USES_ANSWERS not in cell.source:
                self.execute(cell.source)

    def execute(self, source: str) -> str:
        """Run one cell; return what it prints."""
        with _quiet() as printed:
            exec(compile(source, "<solution>", "exec"), self.namespace)
        return printed.getvalue()

    @contextlib.contextmanager
    def changed(self, old: str, new: str) -> Iterator[dict[str, Any]]:
        """The namespace with one text in one answer replaced, and all answers below run again."""
        found = [index for index, cell in enumerate(self.cells) if old in cell.source]
        count = sum(cell.source.count(old) for cell in self.cells)
        if count != 1:
            raise ValueError(f"a mutant's text has to occur once in the solution's code, not {count} times: {old!r}")
        first, before = found[0], dict(self.namespace)
        self.execute(self.cells[first].source.replace(old, new))
        self._answers_below(first)
        try:
            yield self.namespace
        finally:
            self.namespace.clear()
            self.namespace.update(before)

    def _answers_below(self, first: int) -> None:
        for cell in self.cells[first + 1 :]:
            if ANSWER in cell.metadata.get("tags", []):
                self.execute(cell.source)


def student_run(assignment: Assignment, variant: str = "") -> list[str]:
    """What the cells of the student's notebook print when none is written, in order; an error is raised as it comes."""
    notebook = build_notebooks(assignment, variant)[0]
    run = NotebookRun(as_node({"cells": []}))
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [run.execute(cell.source) for cell in cells if INSTALL not in cell.metadata.get("tags", [])]


def _of_default(assignment: Assignment, run: NotebookRun) -> Iterator[Finding]:
    """The blank notebook, the constants and the mutants."""
    blank = NotebookRun(build_notebooks(assignment)[0])
    nothing = dict.fromkeys(full_scores(assignment), 0)
    yield _compared("blank", assignment, failures(assignment, blank.namespace, "", SALTS[0]), nothing)
    names = set(assignment.names)
    for name, constant in CONSTANTS.items():
        answers = {
            key: constant if callable(value) else constant() for key, value in run.namespace.items() if key in names
        }
        failed = failures(assignment, answers, "", SALTS[0])
        earned = [case.name for case in assignment.cases if case.hidden and case not in failed]
        yield Finding(f"constant {name}", "no hidden point", ", ".join(earned) or "no hidden point", not earned)
    yield from _mutants(assignment, run)


def _mutants(assignment: Assignment, run: NotebookRun) -> Iterator[Finding]:
    alive = [case for case in assignment.cases if case.hidden]
    for mutant in assignment.mutants:
        failed = _failures_of(assignment, run, mutant)
        alive = [case for case in alive if case not in failed]
        yield _compared(f"mutant: {mutant.name}", assignment, failed, {**full_scores(assignment), **mutant.scores})
    count = len(assignment.mutants)
    yield Finding("mutants", f"at least {FEWEST_MUTANTS}", str(count), count >= FEWEST_MUTANTS)
    idle = ", ".join(f"{case.question} {case.name}" for case in alive)
    yield Finding("hidden cases that fail no mutant", "none", idle or "none", not alive)


def _failures_of(assignment: Assignment, run: NotebookRun, mutant: Mutant) -> dict[Case, str]:
    with run.changed(mutant.old, mutant.new) as namespace:
        return failures(assignment, namespace, "", SALTS[0])


def _compared(
    what: str, assignment: Assignment, failed: Mapping[Case, str], expected: Mapping[str, int] | None = None
) -> Finding:
    """A finding on the scores of all questions, full ones unless told otherwise."""
    wanted = full_scores(assignment) if expected is None else expected
    got = {name: points - sum(case.points for case in failed if case.question == name)
           for name, points in full_scores(assignment).items()}  # fmt: skip
    why = "".join(f"\n    {case.question} {message}" for case, message in failed.items()) if got != wanted else ""
    return Finding(what, _in_words(wanted), _in_words(got) + why, got == wanted)


def _in_words(scores: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {points}" for name, points in scores.items())


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """Catch what a cell prints, and leave none of its figures and warnings behind."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield printed
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
