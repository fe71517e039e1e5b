"""`check`: what a student runs after each question, in the notebook, anywhere."""

import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from mesa_lib.assignments import public
from mesa_lib.assignments.cases import Case, LocalStudent, MistakeError, cases_of
from mesa_lib.assignments.values import NotWrittenError
from mesa_lib.assignments.variants import choices_of

GRADING = "MESA_LIB_GRADING"
"""In the grader's process this variable is set: the grader runs the cases itself, and `check` has nothing to do."""


def check(question: str, /, *, variant: str = "", **answers: object) -> None:
    """Run the public cases of a question on a student's answers, and print a line for each.

    ``check("q1", lsa_step=lsa_step)`` says of each case "ok", "not written yet", or what is likely wrong. It needs no
    files and knows no answers; more cases, on random inputs, run when the work is graded.

    Args:
        question: "q1".
        variant: the variant of the assignment, as the notebook says it.
        answers: the functions or values to check, by the names that the question gives them.
    """
    if os.environ.get(GRADING):
        return
    try:
        module = _module_of(question, answers)
        choices = choices_of(module, variant)
    except LookupError as error:
        print(f"check: {error.args[0]}")
        return
    cases = [case for case in cases_of(module, hidden=False) if case.question == question]
    student = LocalStudent(answers, choices)
    outcomes = [(case, outcome_of(case, student)) for case in cases]
    width = max((len(case.name) for case in cases), default=0)
    for case, outcome in outcomes:
        print(f"{question}  {case.name:<{width}}  {outcome}")
        if outcome not in ("ok", "not written yet") and case.hint:
            print(f"{question}  {'':<{width}}  hint: {case.hint}")
    points = sum(case.points for case, outcome in outcomes if outcome == "ok")
    total = sum(case.points for case in cases)
    print(f"{question}: {points} of {total} public points. More cases, on random inputs, run when this is graded.")


def outcome_of(case: Case, student: LocalStudent) -> str:
    """How a case goes, in one line: "ok", "not written yet", or what is wrong."""
    try:
        with np.errstate(all="ignore"):
            case.run(student, np.random.default_rng(0))
    except NotWrittenError:
        return "not written yet"
    except AssertionError as error:
        return f"not yet: {error}" if str(error) else "not yet"
    except Exception:
        # The case met something that it cannot work with. Our traceback would help nobody.
        return "not yet: what came back could not be used; print it, and compare its type with the question"
    return "ok"


@contextmanager
def once_written() -> Iterator[None]:
    """Let the lines of a `with` block wait for the answers that they use.

    A function that raises NotImplementedError inside the block ends the block and prints "not written yet"; the
    notebook runs on.
    """
    try:
        yield
    except (NotImplementedError, NotWrittenError):
        print("not written yet")


def assignments() -> dict[str, ModuleType]:
    """The modules of public cases, by the name of the assignment, in order."""
    names = sorted(module.name for module in pkgutil.iter_modules(public.__path__))
    return {name: importlib.import_module(f"{public.__name__}.{name}") for name in names}


def _module_of(question: str, answers: Mapping[str, object]) -> ModuleType:
    """The assignment that asks for these names under this question.

    Raises:
        LookupError: none does; the text says which names are near.
    """
    asked = {name: module.QUESTIONS[question] for name, module in assignments().items() if question in module.QUESTIONS}
    if not asked:
        raise LookupError(f"no assignment has a question {question!r}; questions are called 'q1', 'q2', ...")
    found = [name for name, wanted in asked.items() if set(wanted) == set(answers)]
    if len(found) == 1:
        return assignments()[found[0]]
    near = [wanted for wanted in asked.values() if set(wanted) & set(answers)] or list(asked.values())
    calls = " or ".join(f"check({question!r}, {', '.join(f'{name}={name}' for name in wanted)})" for wanted in near)
    raise LookupError(f"{question} does not ask for {', '.join(answers) or 'nothing'}; call {calls}")


__all__ = ["MistakeError", "assignments", "check", "once_written", "outcome_of"]
