"""A case: one thing that an answer must do, as a function of the student's work and a random generator.

The same case runs in the student's notebook, where a call is a call, and in the grader, where a call is a message to
another process. It knows neither.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mesa_lib.assignments.values import NotWrittenError, UnreadableValueError, copied, same

_MARK = "mesa_case"


class MistakeError(AssertionError):
    """What is wrong with an answer, in words that name the likely mistake and never the right answer.

    Its text is shown to students, also when a hidden case raises it; that of any other AssertionError is shown for
    public cases only.
    """


@runtime_checkable
class Student(Protocol):
    """A student's work, as a case sees it."""

    @property
    def variant(self) -> Mapping[str, str]:
        """The choices of this term's variant, each by the name of what was chosen."""
        ...

    def call(self, function: str, *arguments: object, torch: bool = False) -> Any:
        """What a function of the student's returns.

        Args:
            function: its name.
            arguments: values; the function gets copies.
            torch: arrays arrive as tensors.

        Raises:
            NotWrittenError: it is missing or not written yet.
            MistakeError: it raised an error, returned nothing or something unreadable, or changed its arguments.
        """
        ...

    def get(self, name: str) -> Any:
        """The value of a variable of the student's; errors as for `call`."""
        ...


@dataclass(frozen=True)
class Case:
    """One case of a question.

    Attributes:
        question: "q1".
        name: what the answer must do, in a few words.
        points: whole points for it.
        hint: a sentence for whoever fails it, public or hidden; it names a likely mistake, never the answer.
        run: the case itself; returns if the answer passes, raises an AssertionError if it does not.
        hidden: whether only the grader knows it.
    """

    question: str
    name: str
    points: int
    hint: str
    run: Callable[[Student, np.random.Generator], None]
    hidden: bool


def case(question: str, points: int, hint: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function `(student, rng) -> None` a case; its name, underscores apart, is the name of the case.

    Args:
        question: "q1".
        points: whole points for passing it, 0 or more.
        hint: see `Case`.
    """

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        setattr(function, _MARK, (question, points, hint))
        return function

    return mark


def cases_of(module: ModuleType, hidden: bool) -> list[Case]:
    """The cases that a module defines, in order."""
    found = []
    for name, function in vars(module).items():
        if hasattr(function, _MARK) and function.__module__ == module.__name__:
            question, points, hint = getattr(function, _MARK)
            found.append(Case(question, name.replace("_", " "), points, hint, function, hidden))
    return found


def received(name: str, value: Any, called: bool = True) -> Any:
    """What a function returned, or the value of a variable, unless it is nothing.

    Raises:
        MistakeError: the value is None.
    """
    if value is None:
        raise MistakeError(f"{name} returned None: is the line with `return` missing?" if called else f"{name} is None")
    return value


def changed_arguments(function: str) -> MistakeError:
    """The error of a function that worked in place."""
    return MistakeError(f"{function} changed its input in place: work on a copy, or write x = x + ... and not x += ...")


@dataclass(frozen=True)
class LocalStudent:
    """Answers in this process: functions and values by name.

    Attributes:
        answers: what there is to judge.
        variant: the choices of the variant.
        strict: whether a function may not change its arguments.
    """

    answers: Mapping[str, object]
    variant: Mapping[str, str]
    strict: bool = True

    def call(self, function: str, *arguments: object, torch: bool = False) -> Any:
        """See `Student.call`."""
        answer = self._answer(function)
        if not callable(answer):
            raise MistakeError(
                f"{function} is {_described(answer)}, not a function: was its name used for something else?"
            )
        given = [as_tensors(copied(argument)) if torch else copied(argument) for argument in arguments]
        try:
            value = answer(*given)
        except NotImplementedError:
            raise NotWrittenError(function) from None
        except Exception as error:
            own = getattr(getattr(answer, "__code__", None), "co_filename", None)
            raise MistakeError(error_in(function, error, lambda file: file == own)) from None
        if self.strict and not same(copied(given), copied(list(arguments))):
            raise changed_arguments(function)
        return received(function, _arrived(function, value))

    def get(self, name: str) -> Any:
        """See `Student.get`."""
        return received(name, _arrived(name, self._answer(name)), called=False)

    def _answer(self, name: str) -> object:
        if self.answers.get(name, ...) is ...:
            raise NotWrittenError(name)
        return self.answers[name]


def as_tensors(value: Any) -> Any:
    """The value with tensors for its arrays."""
    if isinstance(value, np.ndarray):
        import torch  # only here: most answers need none, and it takes seconds

        return torch.from_numpy(value)
    if isinstance(value, (list, tuple)):
        return type(value)(as_tensors(item) for item in value)
    if isinstance(value, dict):
        return {key: as_tensors(item) for key, item in value.items()}
    return value


def error_in(function: str, error: BaseException, is_own: Callable[[str], bool]) -> str:
    """A student's error in a line: its type, its text, and the line of the student's own code that raised it.

    Args:
        function: the name of the function that was called.
        error: what it raised.
        is_own: whether a file, by its name in the traceback, is the student's.
    """
    traceback, line = error.__traceback__, None
    while traceback is not None:
        if is_own(traceback.tb_frame.f_code.co_filename):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    text = next(iter(str(error).strip().splitlines()), "")[:200]
    where = f" in line {line} of its cell" if line else ""
    return f"{function} raised {type(error).__name__}{where}{': ' + text if text else ''}"


def _arrived(name: str, value: object) -> Any:
    try:
        return copied(value)
    except UnreadableValueError as error:
        raise MistakeError(f"{name} gave {error}") from None


def _described(value: object) -> str:
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
