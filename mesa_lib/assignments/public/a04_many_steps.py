"""Public cases of "Many steps"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_array, expect_close, expect_number

QUESTIONS = {
    "q1": ("layer_stack", "descend"),
    "q2": ("loss_curve",),
    "q3": ("largest_eta",),
    "q4": ("fastest_eta", "steps_needed"),
    "q5": ("exact_etas",),
}
VARIANTS = {"loss": ("mean", "sum"), "layout": ("rows", "columns")}

X, Y = np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]])
FACTOR = "a factor N is missing, or there is one too many: look at the loss of this assignment"


@case("q1", points=1, hint="two examples of one input: compute the y-slots after one layer, then go on with those")
def two_layers_by_hand(student: Student, rng: np.random.Generator) -> None:
    """One input, one target, one query that is 2, two different step sizes."""
    slots = student.call("layer_stack", _laid(student, X), _laid(student, Y), np.array([[2.0]]), _etas(student))
    expect(
        isinstance(slots, (tuple, list)) and len(slots) == 2,
        "layer_stack has to return two arrays: the y-slots of the context and the slots of the queries",
    )
    expect_close(slots[1], [[-2.45]], "the array of query slots", {
        "the y-slots of the context have to move, too: every layer reads the old ones here": [[-3.5]],
        "a query reads what the context is before the layer, not after it": [[-0.9625]],
        "only the first layer arrived in the slots of the queries": [[-1.4]],
        "only the last layer arrived in the slots of the queries; a layer adds to what is there": [[-1.05]],
        FACTOR: [[-2.8]] if student.variant["loss"] == "mean" else [[-1.4875]],
        f"{FACTOR} (N twice?)": [[-1.4875]],
    })  # fmt: skip
    expect_close(slots[0], _laid(student, np.array([[-0.225], [0.55]])), "the array of context slots", {
        "the y-slots of the context have not moved": _laid(student, Y),
    })  # fmt: skip


@case("q1", points=1, hint="the same two examples, now in W: the gradient at zero, a step, the gradient there")
def two_steps_by_hand(student: Student, rng: np.random.Generator) -> None:
    """The same data, in weights."""
    w = student.call("descend", _laid(student, X), _laid(student, Y), _etas(student))
    expect_close(w, [[1.225]], "the matrix W", {
        "both gradients were taken at zero": [[1.75]],
        "only the first step arrived": [[0.7]],
        FACTOR: [[1.4]] if student.variant["loss"] == "mean" else [[0.74375]],
        f"{FACTOR} (N twice?)": [[0.74375]],
    })  # fmt: skip


@case("q2", points=1, hint="the same two examples: L of W = 0, of W after one step, and so on; is the half there?")
def three_losses_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Targets that no weight fits: the losses have a floor."""
    losses = student.call("loss_curve", _laid(student, X), _laid(student, Y), float(_etas(student)[0]), 2)
    factor = 1.0 if student.variant["loss"] == "mean" else 2.0
    right = factor * np.array([2.5, 0.6625, 0.203125])
    expect(
        np.shape(losses) != (2,),
        "these are two numbers; the loss before the first step counts, too, so there is one more than steps",
    )
    expect_close(losses, right, "the array of losses", {
        "the half is missing in the loss": 2 * right,
        "the first loss is that before the first step": factor * np.array([0.6625, 0.203125, 0.08828125]),
        "the part of the targets that no weights fit is missing": right - factor * 0.05,
    })  # fmt: skip


@case("q3", points=1, hint="write the error after a step as a number times the error before, with numbers")
def two_inputs_along_axes(student: Student, rng: np.random.Generator) -> None:
    """Two examples, along the two axes."""
    x = np.array([[3.0, 0.0], [0.0, 1.0]])
    factor = 1.0 if student.variant["loss"] == "mean" else 0.5
    expect_close(student.call("largest_eta", x), factor * 4 / 9, "the step size", {
        "here the error in one direction is gone after one step; larger step sizes converge, too": factor * 2 / 9,
        "this is where the direction with the smallest eigenvalue diverges; another one has done so before": factor * 4,
        FACTOR: (0.5 if factor == 1.0 else 2.0) * factor * 4 / 9,
        "the eigenvalues are squares of singular values": 2 / 3 if factor == 0.5 else 4 / 3,
    })  # fmt: skip


@case("q4", points=1, hint="the same two examples: draw |1 - eta lambda| for both eigenvalues, against eta")
def two_directions(student: Student, rng: np.random.Generator) -> None:
    """Two examples, along the two axes."""
    x = np.array([[3.0, 0.0], [0.0, 1.0]])
    factor = 1.0 if student.variant["loss"] == "mean" else 0.5
    expect_close(student.call("fastest_eta", x), factor * 0.4, "the step size", {
        "with this step size the other direction is slow; a larger one is better for it": factor * 2 / 9,
        "with this step size one error keeps its size for ever": factor * 4 / 9,
        FACTOR: (0.5 if factor == 1.0 else 2.0) * factor * 0.4,
        "the eigenvalues are squares of singular values": 0.5 if factor == 0.5 else 1.0,
    })  # fmt: skip
    count = expect_number(student.call("steps_needed", x, 0.1), "the number of steps")
    expect(count == round(count), "the number of steps has to be a whole number")
    expect(count != 10, "after 10 steps the slowest error is still a little too large: round the other way")
    expect(count == 11, "not the least number of steps after which both errors are a tenth of what they were")


@case("q5", points=1, hint="two directions, two steps: the first may finish one of them, the second the other one")
def two_steps_that_arrive(student: Student, rng: np.random.Generator) -> None:
    """Two examples, along the two axes."""
    factor = 1.0 if student.variant["loss"] == "mean" else 0.5
    etas = expect_array(student.call("exact_etas", np.array([[3.0, 0.0], [0.0, 1.0]])), (2,), "the array of step sizes")
    other = 0.5 if factor == 1.0 else 2.0
    expect_close(np.sort(etas), factor * np.array([2 / 9, 2.0]), "the array of step sizes, sorted", {
        FACTOR: other * factor * np.array([2 / 9, 2.0]),
        "these are eigenvalues; what step size finishes a direction at once?": np.array([0.5, 4.5]) / factor,
        "at these step sizes an error changes its sign and keeps its size": factor * np.array([4 / 9, 4.0]),
    })  # fmt: skip


def _laid(student: Student, rows: NDArray[Any]) -> NDArray[Any]:
    """An array with examples in rows, as the variant lays it."""
    return rows.T if student.variant["layout"] == "columns" else rows


def _etas(student: Student) -> NDArray[Any]:
    """Two step sizes that take the same two steps in both conventions."""
    return np.array([0.2, 0.3] if student.variant["loss"] == "mean" else [0.1, 0.15])
