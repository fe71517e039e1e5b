"""Public cases of "Test-time training"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect_close, expect_number

QUESTIONS = {
    "q1": ("causal_attention",),
    "q2": ("read_at_once", "eta_of_attention"),
    "q3": ("read_in_batches",),
    "q4": ("local_constant",),
}
VARIANTS = {"loss": ("square", "half"), "layout": ("rows", "columns")}


def _laid(student: Student, rows: list[list[float]]) -> NDArray[Any]:
    """Tokens in rows, as the variant lays them."""
    array = np.array(rows, dtype=float)
    return array.T if student.variant["layout"] == "columns" else array


def _two_tokens(student: Student) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Queries, keys and values of two tokens."""
    return (
        _laid(student, [[1, 0], [3, 1]]),
        _laid(student, [[1, 0], [1, 1]]),
        _laid(student, [[1, 0, 2], [10, 1, 0]]),
    )


@case("q1", points=1, hint="two tokens: the first answer knows the first token only, the second one knows both")
def two_tokens_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Scores 1; 3 and 4."""
    answers = student.call("causal_attention", *_two_tokens(student))
    expect_close(answers, _laid(student, [[1, 0, 2], [43, 4, 6]]), "the array of answers", {
        "the first token reads the second one, which is its future": _laid(student, [[11, 1, 2], [43, 4, 6]]),
        "a token has to read itself, too": _laid(student, [[0, 0, 0], [3, 0, 6]]),
        "only the future is read: the other half of the table belongs to the past": _laid(
            student, [[11, 1, 2], [40, 4, 0]]
        ),
        "keys and queries are exchanged": _laid(student, [[1, 0, 2], [41, 4, 2]]),
    })  # fmt: skip


@case("q2", points=1, hint="with eta = 0 the state stays W_0; from W_0 = 0 the answers are a multiple of attention's")
def two_tokens_at_once(student: Student, rng: np.random.Generator) -> None:
    """A step of size zero from some state; a quarter of a step from zero."""
    arrays, w_0 = _two_tokens(student), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    still = student.call("read_at_once", *arrays, w_0, 0.0)
    expect_close(still, _laid(student, [[1, 0, 1], [3, 1, 4]]), "the array of answers for eta = 0", {
        "for eta = 0 the state is W_0, and W_0 q has to remain": _laid(student, [[0, 0, 0], [0, 0, 0]]),
    })  # fmt: skip
    moved = student.call("read_at_once", *arrays, np.zeros((3, 2)), 0.25)
    whole, half = [[0.5, 0, 1], [21.5, 2, 3]], [[0.25, 0, 0.5], [10.75, 1, 1.5]]
    right, other = (whole, half) if student.variant["loss"] == "square" else (half, whole)
    expect_close(moved, _laid(student, right), "the array of answers from zero", {
        "a factor 2 is missing, or there is one too many: differentiate the loss of this assignment": _laid(
            student, other
        ),
    })  # fmt: skip
    expect_number(student.get("eta_of_attention"), "eta_of_attention")


@case(
    "q3", points=1, hint="one key, read twice with two values, one token a batch: what is the residual the second time?"
)
def one_key_read_twice(student: Student, rng: np.random.Generator) -> None:
    """The values 4 and 8 for the same key, online, with a step of a quarter."""
    same, values = _laid(student, [[1, 0], [1, 0]]), _laid(student, [[4], [8]])
    answers = student.call("read_in_batches", same, same, values, np.zeros((1, 2)), 0.25, 1)
    if student.variant["loss"] == "square":
        right, stale, before, other = [[2.0], [5.0]], [[2.0], [6.0]], [[0.0], [2.0]], [[1.0], [2.75]]
    else:
        right, stale, before, other = [[1.0], [2.75]], [[1.0], [3.0]], [[0.0], [1.0]], [[2.0], [5.0]]
    expect_close(answers, _laid(student, right), "the array of answers", {
        "both gradients are taken at the start; with batches of one, the second is taken after the first step": (
            _laid(student, stale)
        ),
        "a token has been read when it is answered; these are the answers of the states before": _laid(student, before),
        "a factor 2 is missing, or there is one too many: differentiate the loss of this assignment": _laid(
            student, other
        ),
    })  # fmt: skip


@case("q4", points=1, hint="keys 0 and log 3, the query 1 twice: which weights do the two values have at the end?")
def two_values(student: Student, rng: np.random.Generator) -> None:
    """One value alone; then weights 1 and 3."""
    q, k, v = _laid(student, [[1], [1]]), _laid(student, [[0], [np.log(3)]]), _laid(student, [[4], [8]])
    expect_close(student.call("local_constant", q, k, v), _laid(student, [[4], [7]]), "the array of answers", {
        "the first token reads the second one, which is its future": _laid(student, [[7], [7]]),
        "this is the weighted sum of the values; where does it have to be divided?": _laid(student, [[4], [28]]),
        "these are plain means; each value counts with its weight": _laid(student, [[4], [6]]),
        "a score of zero for the future is not the same as leaving it out": _laid(student, [[6], [7]]),
    })  # fmt: skip
