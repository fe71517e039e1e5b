"""One submission graded: its cells in a worker, every case against it, and a record of both."""

import hashlib
import inspect
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from nbformat import NotebookNode

import mesa_lib.assignments
from mesa_lib.assignments.cases import Case, MistakeError, Student
from mesa_lib.assignments.values import NotWrittenError
from mesa_lib.grading.build import build_notebooks
from mesa_lib.grading.sandbox import GraderError, Sandbox
from mesa_lib.grading.session import RemoteStudent, Session, Worker
from mesa_lib.grading.source import TEXT, Assignment
from mesa_lib.grading.submission import Submission, SubmissionError, code_cells, read_submission, text_answers

PASSED, NOT_WRITTEN, FAILED, UNCLEAR = "passed", "not written yet", "failed", "unclear"
SAYS = "the notebook says"
"""How the note of a notebook that says it is another one begins."""


@dataclass(frozen=True)
class CaseResult:
    """How one case went.

    Attributes:
        question: "q1".
        name: the case's name.
        hidden: whether only the grader knows it.
        points: what it is worth.
        score: what it earned: all or nothing.
        status: PASSED, NOT_WRITTEN, FAILED or UNCLEAR (the case itself stumbled over what came back: have a look).
        message: for the student; of a hidden case it tells nothing but a likely mistake or the student's own error.
        hint: the case's hint, if it failed.
        fingerprint: changes when the case, the submission, the salt or the variant does.
    """

    question: str
    name: str
    hidden: bool
    points: int
    score: int
    status: str
    message: str
    hint: str
    fingerprint: str


@dataclass(frozen=True)
class Grade:
    """The record of one submission.

    Attributes:
        student: who.
        file: the name of the file that was graded.
        results: of every case.
        texts: the free-text answers, by question.
        notes: what happened while the notebook ran.
        error: what broke in the grader; then there are no results, and nobody's points are lost.
        problem: why the file could not be graded, such as "the file is not a notebook".
        seconds: how long it took.
        aliases: other names of the student.
        submitted: when it was handed in, ISO 8601, if that is known.
    """

    student: str
    file: str
    results: list[CaseResult]
    texts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: str = ""
    problem: str = ""
    seconds: float = 0.0
    aliases: list[str] = field(default_factory=list)
    submitted: str = ""

    def score(self, question: str) -> int:
        """The points of a question's cases."""
        return sum(result.score for result in self.results if result.question == question)

    def to_record(self) -> dict[str, Any]:
        """The grade as data for JSON."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Grade":
        """The grade of a record; a TypeError if it is none."""
        return cls(**{**record, "results": [CaseResult(**result) for result in record["results"]]})


@dataclass(frozen=True)
class Grader:
    """Everything that grading a submission needs, the same for all of them.

    Attributes:
        assignment: what is graded.
        sandbox: where students' code runs.
        library: the folder that holds the copy of mesa_lib without the blocked rooms.
        salt: the secret behind the random inputs.
        variant: which variant was handed out.
        secrets: paths that students' code must not be able to read.
    """

    assignment: Assignment
    sandbox: Sandbox
    library: Path
    salt: bytes
    variant: str = ""
    secrets: tuple[Path, ...] = ()

    @cached_property
    def release(self) -> NotebookNode:
        """The notebook that was handed out."""
        return build_notebooks(self.assignment, self.variant)[0]

    @cached_property
    def sources(self) -> Mapping[Case, str]:
        """The text that each case is made of."""
        return {case: _source_of(case) for case in self.assignment.cases}

    def grade(self, student: str, path: Path, job: int = 0, earlier: Grade | None = None) -> Grade:
        """Grade one file.

        Args:
            student: who; the random inputs depend on it.
            path: the notebook.
            job: which of the jobs at a time this is.
            earlier: a grade whose results stand where nothing has changed.

        Returns:
            The grade. A broken grader shows in `error`, a file that is none in `problem`; nothing is raised for either.
        """
        began = time.monotonic()
        prints = self.fingerprints(student, path)
        known = {result.fingerprint: result for result in earlier.results} if earlier and not earlier.error else {}
        if earlier and not earlier.error and set(prints.values()) <= set(known):
            results = [known[prints[case]] for case in self.assignment.cases]
            return Grade(**{**vars(earlier), "results": results, "file": path.name})
        try:
            submission = read_submission(path)
        except SubmissionError as error:
            results = [self._result(case, prints[case], FAILED, str(error)) for case in self.assignment.cases]
            return Grade(student, path.name, results, problem=str(error), seconds=time.monotonic() - began)
        session = Session(lambda: self._worker(job), code_cells(submission, self.release), self.assignment.limits)
        results = []
        try:
            for case in self.assignment.cases:
                again = known.get(prints[case])
                results.append(again or self._judge(case, session, student, prints[case]))
        except GraderError as error:
            return Grade(student, path.name, [], error=str(error), seconds=time.monotonic() - began)
        finally:
            session.close()
        questions = [name for name, about in self.assignment.questions.items() if about.kind == TEXT]
        texts = text_answers(submission, self.release, questions)
        notes = session.notes or (earlier.notes if earlier and known else [])
        notes = [*self._doubts(submission), *(note for note in notes if not note.startswith(SAYS))]
        return Grade(student, path.name, results, texts, notes, seconds=time.monotonic() - began)

    def _doubts(self, submission: Submission) -> list[str]:
        """Whether the notebook says that it is another one; that costs nothing, but a person should know."""
        if submission.assignment and submission.assignment != self.assignment.name:
            return [f"{SAYS} that it is {submission.assignment}"]
        if submission.variant is not None and submission.variant != self.variant:
            was, graded = (
                f"the variant {name!r}" if name else "no variant" for name in (submission.variant, self.variant)
            )
            return [f"{SAYS} that it is of {was}; it is graded as of {graded}"]
        return []

    def fingerprints(self, student: str, path: Path) -> dict[Case, str]:
        """What each case's result depends on, in short."""
        content = hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest()
        salt = hashlib.sha256(self.salt).hexdigest()
        common = [content, salt, student, self.variant, self.assignment.name, repr(self.assignment.limits)]
        return {
            case: hashlib.sha256(
                "\0".join([*common, case.question, str(case.points), self.sources[case]]).encode()
            ).hexdigest()
            for case in self.assignment.cases
        }

    def _judge(self, case: Case, session: Session, student: str, fingerprint: str) -> CaseResult:
        """Run one case against the worker."""
        remote = RemoteStudent(session, self.assignment.choices(self.variant), strict=not case.hidden)
        status, message = judge(case, remote, seed_of(self.salt, student, self.assignment.name, case))
        return self._result(case, fingerprint, status, message)

    def _result(self, case: Case, fingerprint: str, status: str, message: str = "") -> CaseResult:
        passed = status == PASSED
        return CaseResult(
            case.question, case.name, case.hidden, case.points, case.points if passed else 0, status, message,
            "" if passed else case.hint, fingerprint,
        )  # fmt: skip

    def _worker(self, job: int) -> Worker:
        assignment = self.assignment
        if not (self.library / "mesa_lib").is_dir():
            # Else an installed mesa_lib would take its place, whole, with the rooms that hold the answers.
            raise GraderError(f"the worker did not start: No module named 'mesa_lib' in {self.library}")
        try:
            return Worker(self.sandbox, self.library, assignment.limits, assignment.names, self.secrets, job)
        except OSError as error:
            raise GraderError(f"the worker did not start: {error}") from error


def judge(case: Case, student: Student, seed: int) -> tuple[str, str]:
    """How a case goes, and what its student may read about it."""
    try:
        # The values come from students; what overflows is the case's to judge, not a warning's.
        with np.errstate(all="ignore"):
            case.run(student, np.random.default_rng(seed))
    except NotWrittenError:
        return NOT_WRITTEN, NOT_WRITTEN
    except MistakeError as error:
        return FAILED, str(error)
    except AssertionError as error:
        return FAILED, "wrong result" if case.hidden else str(error) or "wrong result"
    except GraderError:
        raise
    except Exception as error:
        return UNCLEAR, f"what came back could not be used ({type(error).__name__})"
    return PASSED, ""


def seed_of(salt: bytes, student: str, assignment: str, case: Case) -> int:
    """The seed of a case's random inputs: nobody without the salt can know it, and everybody's differ."""
    text = "\n".join([student, assignment, case.question, case.name, str(case.hidden)]).encode()
    return int.from_bytes(hashlib.sha256(salt + b"\n" + text).digest()[:8], "big")


def _source_of(case: Case) -> str:
    """The text of a case, and of everything in its module that is not another case, and of what cases are made of."""
    module = inspect.getmodule(case.run)
    assert module is not None
    whole = inspect.getsource(module)
    for other in vars(module).values():
        # By name: a module that has been read twice has two functions of each name.
        is_case = hasattr(other, "mesa_case") and other.__module__ == module.__name__
        if is_case and other.__name__ != case.run.__name__:
            whole = whole.replace(inspect.getsource(other), "")
    return whole + inspect.getsource(mesa_lib.assignments.expectations)
