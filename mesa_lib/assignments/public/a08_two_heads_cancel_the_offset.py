"""Public cases of "Two heads cancel the offset"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_array, expect_close, expect_number

QUESTIONS = {
    "q1": ("heads",),
    "q2": ("first_order",),
    "q3": ("pair_of_heads",),
    "q4": ("good_beta",),
}
VARIANTS = {"loss": ("mean", "sum"), "layout": ("rows", "columns")}


def _laid(student: Student, rows: list[list[float]]) -> NDArray[Any]:
    """Inputs or queries in rows, as the variant lays them."""
    array = np.array(rows, dtype=float)
    return array.T if student.variant["layout"] == "columns" else array


@case(
    "q1", points=1, hint="inputs 0 and log 3, queries 1 and 0: what are the shares of a head with beta 1, and with -1?"
)
def two_heads_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Shares 1/4 and 3/4 for beta = 1, 3/4 and 1/4 for beta = -1, and halves for the query 0."""
    x, x_query = _laid(student, [[0.0], [np.log(3)]]), _laid(student, [[1.0], [0.0], [2.0]])
    arguments = (x, np.array([4.0, 8.0]), x_query, np.array([1.0, -1.0]), np.array([1.0, 2.0]))
    answer = student.call("heads", *arguments)
    expect_close(answer, [17.0, 18.0, 16.4], "the array of answers", {
        "the outputs are not used": [12.0, 12.0, 12.0],
        "this is the mean over the heads; it has to be their sum": [8.5, 9.0, 8.2],
        "the sign of beta has no effect, or beta and -beta are exchanged": [19.0, 18.0, 19.6],
        "both heads use the absolute value of beta": [21.0, 18.0, 22.8],
    })  # fmt: skip


@case("q2", points=1, hint="two examples, at 1 and at -1: the mean input is zero, and the denominator is even in beta")
def two_opposite_inputs(student: Student, rng: np.random.Generator) -> None:
    """Inputs 1 and -1, targets 6 and 2, queries 1 and 3."""
    given = student.call(
        "first_order", _laid(student, [[1.0], [-1.0]]), np.array([6.0, 2.0]), _laid(student, [[1.0], [3.0]])
    )
    expect(
        isinstance(given, (tuple, list)) and len(given) == 2,
        "first_order has to return two things: the offset c, and the slopes g",
    )
    expect_close(given[0], 4.0, "the offset", {"this is the sum of the targets; shares add up to one": 8.0})
    expect_close(given[1], [2.0, 6.0], "the vector of slopes", {
        "a factor 1/N is missing, or there is one too many": [4.0, 12.0],
        "a second 1/N": [1.0, 3.0],
        "the offset is contained in the slopes": [6.0, 10.0],
    })  # fmt: skip
    alone = student.call("first_order", _laid(student, [[3.0]]), np.array([5.0]), _laid(student, [[1.0]]))
    expect_close(alone[0], 5.0, "the offset of one example")
    expect_close(alone[1], [0.0], "the slope of one example", {
        "with one example a head answers its target, whatever beta is; your slope says something else": [15.0],
    })  # fmt: skip


@case("q3", points=1, hint="the offset of a head does not know beta: what must the two outputs add up to?")
def a_constant_does_not_get_through(student: Student, rng: np.random.Generator) -> None:
    """Two vectors of two numbers; outputs that let no constant through, heads that differ."""
    given = student.call("pair_of_heads", 1.5, 0.25, 10)
    expect(
        isinstance(given, (tuple, list)) and len(given) == 2,
        "pair_of_heads has to return two vectors: the betas, and the outputs",
    )
    betas, outputs = (
        expect_array(a, (2,), name)
        for a, name in zip(given, ("the vector of betas", "the vector of outputs"), strict=True)
    )
    expect(betas[0] != betas[1], "both heads have the same beta: then they are one head")
    expect(np.abs(outputs).max() > 0, "with these outputs the heads answer nothing")
    expect(
        abs(outputs.sum()) <= 1e-9 * np.abs(outputs).max(), "with these outputs a constant on all targets gets through"
    )


@case("q4", points=1, hint="does the best beta stay the same when all inputs are a thousand times as large?")
def it_follows_the_inputs(student: Student, rng: np.random.Generator) -> None:
    """Positive, and smaller for larger inputs."""
    x, x_query = _laid(student, [[1.0, 0.0], [0.5, -1.0], [-2.0, 1.0]]), _laid(student, [[1.0, 1.0]])
    beta = expect_number(student.call("good_beta", x, x_query), "beta")
    expect(beta > 0, "beta has to be positive")
    larger = expect_number(student.call("good_beta", 1000 * x, x_query), "beta for inputs a thousand times as large")
    expect(larger > 0, "beta has to be positive")
    expect(larger < beta, "for inputs a thousand times as large beta has to be smaller")
