"""The source of an assignment: a folder of texts, read into one object."""

import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import mesa_lib.assignments.public
from mesa_lib.assignments.cases import Case, cases_of
from mesa_lib.assignments.variants import choices_of

DEFAULT_ROOT = Path(mesa_lib.__file__).resolve().parents[1] / "assignments" / "src"
"""Where a checkout keeps the sources."""

NAME = re.compile(r"a\d\d_[a-z0-9_]+")
CODE, TEXT = "code", "text"


class SourceError(ValueError):
    """A source that does not say what it has to say; the message names the file."""


@dataclass(frozen=True)
class Limits:
    """What a student's code may use.

    Attributes:
        cell_seconds: for one cell.
        call_seconds: for one call of a function.
        submission_seconds: for all cells and calls of a submission together, also in processor time.
        memory_mb: address space of one process. Torch needs some 2,000.
        processes: processes and threads at a time.
        file_mb: size of one file, and of all files together where the sandbox can limit that.
    """

    cell_seconds: float = 10.0
    call_seconds: float = 5.0
    submission_seconds: float = 120.0
    memory_mb: int = 4096
    processes: int = 64
    file_mb: int = 50


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        title: a few words.
        kind: "code", judged by cases, or "text", read by a person with the rubric.
        points: all of its points, public and hidden.
        minutes: the time it takes.
    """

    title: str
    kind: str
    points: int
    minutes: int


@dataclass(frozen=True)
class Mutant:
    """A solution with one mistake, and what it must score.

    Attributes:
        name: the mistake, in a few words.
        old: text that occurs once in the solution's code, or once in each variant of it.
        new: what stands there instead.
        scores: points of every question that the mistake costs points; all others stay full.
    """

    name: str
    old: str
    new: str
    scores: Mapping[str, int]


@dataclass(frozen=True)
class Assignment:
    """Everything that a folder of `assignments/src` says.

    Attributes:
        folder: the folder; its name is the assignment's.
        title: in the students' words.
        minutes: the time it takes, all questions together.
        goals: what one can do afterwards, a line each.
        prerequisites: what one needs to know.
        chapters: the chapters of the book it belongs to, by name, the first one first.
        questions: by name, in order.
        blocked: rooms of mesa_lib that hold an answer.
        limits: what a student's code may use.
        leakscan_allow: lines of the solution that may occur in public, each with its reason.
    """

    folder: Path
    title: str
    minutes: int
    goals: tuple[str, ...]
    prerequisites: tuple[str, ...]
    chapters: tuple[str, ...]
    questions: Mapping[str, Question]
    blocked: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    leakscan_allow: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name, such as "a01_one_step_is_attention"."""
        return self.folder.name

    @property
    def text_path(self) -> Path:
        """The MyST source of both notebooks."""
        return self.folder / f"{self.name}.md"

    @cached_property
    def public(self) -> ModuleType:
        """The module of public cases: `public.py` in the folder, or the one that mesa_lib ships."""
        own = self.folder / "public.py"
        return (
            _load(own)
            if own.is_file()
            else importlib.import_module(f"{mesa_lib.assignments.public.__name__}.{self.name}")
        )

    @cached_property
    def hidden(self) -> ModuleType:
        """The module of hidden cases."""
        return _load(self.folder / "hidden.py")

    @cached_property
    def cases(self) -> list[Case]:
        """All cases, question by question, the public ones first."""
        cases = [*cases_of(self.public, hidden=False), *cases_of(self.hidden, hidden=True)]
        order = {question: place for place, question in enumerate(self.questions)}
        return sorted(cases, key=lambda case: (order.get(case.question, len(order)), case.hidden))

    @cached_property
    def mutants(self) -> list[Mutant]:
        """The mutants of the solution."""
        return list(_load(self.folder / "mutants.py").MUTANTS)

    @cached_property
    def rubric(self) -> Mapping[str, str]:
        """What the reader of each free-text question looks for, with sample answers, as Markdown."""
        path = self.folder / "rubric.md"
        parts = (
            re.split(r"^## (q\d+)\b.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            if path.is_file()
            else [""]
        )
        return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}

    @property
    def names(self) -> list[str]:
        """Every function and variable that the cases ask for."""
        return sorted({name for wanted in self.public.QUESTIONS.values() for name in wanted})

    def choices(self, variant: str) -> dict[str, str]:
        """The choices of a variant; a LookupError if there is no such variant."""
        return choices_of(self.public, variant)

    def points(self, question: str, hidden: bool | None = None) -> int:
        """The points of a question's cases: all, or only the hidden or the public ones."""
        cases = [case for case in self.cases if case.question == question]
        return sum(case.points for case in cases if hidden is None or case.hidden == hidden)


def read_assignment(folder: Path) -> Assignment:
    """The assignment in a folder, checked.

    Raises:
        SourceError: the folder, or a text in it, lacks something or contradicts itself.
    """
    if not NAME.fullmatch(folder.name):
        raise SourceError(f"{folder}: expected a folder called aNN_words, such as a01_one_step_is_attention")
    path = folder / "meta.yml"
    if not path.is_file():
        raise SourceError(f"{folder}: there is no meta.yml")
    try:
        meta = dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise SourceError(f"{path}: no YAML mapping: {error}") from None
    known = {item.name for item in fields(Assignment)} - {"folder"}
    unknown, missing = set(meta) - known, known - set(meta) - {"blocked", "limits", "leakscan_allow"}
    if unknown or missing:
        raise SourceError(f"{path}: unknown entries {sorted(unknown)}, missing entries {sorted(missing)}")
    try:
        questions = {name: Question(**values) for name, values in meta["questions"].items()}
        limits = Limits(**meta.get("limits", {}))
    except TypeError as error:
        raise SourceError(f"{path}: {error}") from None
    lists = {key: tuple(meta.get(key, ())) for key in ("goals", "prerequisites", "chapters", "blocked")}
    allowed = meta.get("leakscan_allow", {})
    assignment = Assignment(
        folder=folder.resolve(),
        title=meta["title"],
        minutes=meta["minutes"],
        questions=questions,
        limits=limits,
        leakscan_allow=allowed,
        **lists,
    )
    _check(assignment)
    return assignment


def read_assignments(root: Path = DEFAULT_ROOT) -> dict[str, Assignment]:
    """Every assignment below a folder, by name.

    Raises:
        SourceError: there is no such folder, or a source is wrong.
    """
    if not root.is_dir():
        raise SourceError(
            f"{root}: no such folder; the sources of the assignments are in a checkout, not in the package"
        )
    folders = sorted(path for path in root.iterdir() if path.is_dir() and NAME.fullmatch(path.name))
    return {folder.name: read_assignment(folder) for folder in folders}


def find_assignment(name: str, root: Path = DEFAULT_ROOT) -> Assignment:
    """The assignment of a name or its beginning, such as "a01".

    Raises:
        SourceError: none or several begin like this.
    """
    found = [folder for folder in sorted(root.glob("a*")) if folder.name == name or folder.name.startswith(f"{name}_")]
    if len(found) != 1:
        there = ", ".join(sorted(path.name for path in root.glob("a*")))
        raise SourceError(f"no assignment {name!r} in {root}; there are: {there or 'none'}")
    return read_assignment(found[0])


def _check(assignment: Assignment) -> None:
    """Raise a SourceError unless the parts of an assignment fit together."""
    place = assignment.folder
    for question, about in assignment.questions.items():
        if about.kind not in (CODE, TEXT):
            raise SourceError(f"{place}/meta.yml: {question}: expected kind 'code' or 'text', got {about.kind!r}")
        if about.kind == CODE and assignment.points(question) != about.points:
            total = assignment.points(question)
            raise SourceError(f"{place}/meta.yml: {question}: {about.points} points, but its cases add up to {total}")
        if about.kind == TEXT and question not in assignment.rubric:
            raise SourceError(f"{place}/rubric.md: expected a section '## {question}' for the free-text question")
    code = {name for name, about in assignment.questions.items() if about.kind == CODE}
    if code != set(assignment.public.QUESTIONS):
        raise SourceError(
            f"{place}: meta.yml has the code questions {sorted(code)}, QUESTIONS of the public cases has "
            f"{sorted(assignment.public.QUESTIONS)}"
        )
    if stray := {case.question for case in [*cases_of(assignment.hidden, hidden=True)]} - code:
        raise SourceError(f"{place}/hidden.py: cases of questions that meta.yml does not have: {sorted(stray)}")
    if not assignment.text_path.is_file():
        raise SourceError(f"{assignment.text_path}: no such file")


def _load(path: Path) -> ModuleType:
    """The module in a file, under a name that no other file's module has."""
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    name = f"mesa_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module  # type: ignore[no-any-return]
