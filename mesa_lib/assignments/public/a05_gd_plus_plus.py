"""Public cases of "GD++"."""

import numpy as np

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_close, expect_number

QUESTIONS = {
    "q1": ("gdpp_predictions",),
    "q2": ("moved_eigenvalues",),
    "q3": ("share_left",),
    "q4": ("best_gamma",),
    "q5": ("fitted_order",),
}
VARIANTS = {"moment": ("sum", "mean"), "layout": ("rows", "columns")}


FACTOR = "a factor N is missing, or there is one too many: look at the sums of this assignment"


@case("q1", points=1, hint="two examples of one input: slots and inputs after one layer, then go on with those")
def two_layers_by_hand(student: Student, rng: np.random.Generator) -> None:
    """One input, one target, one query; the numbers of the layers give the same net in both conventions."""
    x, y, x_query = np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]]), np.array([[2.0]])
    if student.variant["layout"] == "columns":
        x, y = x.T, y.T
    factor = 1.0 if student.variant["moment"] == "sum" else 2.0
    alphas, gammas = factor * np.array([0.1, 0.15]), factor * np.array([0.08, 0.3])
    prediction = student.call("gdpp_predictions", x, y, x_query, alphas, gammas)
    expect_close(prediction, [[1.778]], "the prediction", {
        "the inputs have not moved, neither the query's nor the context's: this is gradient descent": [[2.45]],
        "the inputs of the context have to move, and that of the query, too": [[2.03]],
        "a layer's step uses the inputs before they move; here they moved first": [[0.635175072]],
        "the inputs have grown: look at the sign before gamma": [[3.458]],
        "the y-slots of the context have to move, too": [[2.156]],
        FACTOR: [[1.204]] if factor == 1.0 else [[2.8]],
        f"{FACTOR}, at both of them": [[1.204]],
        "this is the query's slot; with which sign is the prediction read?": [[-1.778]],
    })  # fmt: skip


@case("q2", points=1, hint="one input in one example: its square before the layer, and its square after it")
def two_eigenvalues(student: Student, rng: np.random.Generator) -> None:
    """Two eigenvalues, which change places."""
    moved = student.call("moved_eigenvalues", np.array([2.0, 5.0]), 0.15)
    expect_close(moved, [0.98, 0.3125], "the new spectrum", {
        "an eigenvalue is made of two inputs, and each of them was multiplied": [1.4, 1.25],
        "this is what a layer multiplies by; the eigenvalue itself is missing": [0.49, 0.0625],
        "these are in another order than the eigenvalues that were given": [0.3125, 0.98],
        "the input is multiplied by a number that is linear in the eigenvalue": [0.8, -13.75],
    })  # fmt: skip


@case("q3", points=1, hint="one eigenvalue, two layers: which eigenvalue does the second layer meet?")
def two_layers_for_one_eigenvalue(student: Student, rng: np.random.Generator) -> None:
    """One eigenvalue of 2, two layers."""
    share = student.call("share_left", np.array([2.0]), np.array([0.1, 0.5]), np.array([0.25, 0.4]))
    expect_close(share, [0.6], "the share of the error", {
        "the second layer meets an eigenvalue that the first one has moved": [0.0],
        "a layer's step meets the eigenvalue before the layer moves it": [0.95 * (1 - 0.5 * 0.32)],
        "this is the share that is gone, not the one that is left": [0.4],
        "only the last layer's factor is in it": [0.75],
        "only the first layer's factor is in it": [0.8],
        "the eigenvalue was multiplied once; it is made of two inputs": [0.4],
    })  # fmt: skip


@case("q4", points=1, hint="eigenvalues from 1 to 4: draw the cubic for square roots from 1 to 2")
def from_one_to_four(student: Student, rng: np.random.Generator) -> None:
    """An interval with nice square roots."""
    gamma = expect_number(student.call("best_gamma", 1.0, 4.0), "gamma")
    expect(gamma != 0, "with a gamma of zero nothing moves")
    maps_to_zero = (
        "with this gamma an eigenvalue of the interval is mapped to zero, and the condition number is infinite"
    )
    expect_close(gamma, 1 / 7, "gamma", {
        maps_to_zero: 0.25,
        f"{maps_to_zero} (another one)": 1.0,
        f"{maps_to_zero} (one in the middle)": 0.4,
        "with this gamma every larger eigenvalue stays the larger one; a larger gamma makes them more alike": 1 / 12,
        "the cubic is one in the square root of an eigenvalue; was a root forgotten?": 1 / 21,
        "with this gamma the upper end comes out much lower than the lower end": 1 / 3,
    }, rtol=1e-4)  # fmt: skip


@case("q5", points=1, hint="1/2, 1/4, 1/16, 1/256: which power of an error is the next one?")
def squares(student: Student, rng: np.random.Generator) -> None:
    """Each error is the square of the one before."""
    errors = np.array([0.5, 0.25, 0.0625, 0.00390625])
    expect_close(student.call("fitted_order", errors), 2.0, "the order", {
        "the axes are exchanged: the next error stands on the vertical axis": 0.5,
        "this is the slope without logarithms": np.polyfit(errors[:3], errors[1:], 1)[0],
        "this is the slope against the number of the iteration": np.polyfit(range(4), np.log(errors), 1)[0],
    })  # fmt: skip
