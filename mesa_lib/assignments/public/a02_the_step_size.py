"""Public cases of "The step size"."""

import numpy as np

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect_close

QUESTIONS = {
    "q1": ("best_eta",),
    "q2": ("best_shared_eta",),
    "q3": ("expected_eta",),
    "q4": ("power",),
}
VARIANTS = {"loss": ("mean", "sum"), "layout": ("rows", "columns")}


@case("q1", points=1, hint="two examples of one input that is 2: write L as a parabola in eta, with numbers")
def two_equal_examples(student: Student, rng: np.random.Generator) -> None:
    """One input, always 2; one target."""
    x, y = np.array([[2.0], [2.0]]), np.array([[1.0], [3.0]])
    turned = student.variant["layout"] == "columns"
    eta = student.call("best_eta", x.T, y.T) if turned else student.call("best_eta", x, y)
    mean, total = 0.25, 0.125
    right, other = (mean, total) if student.variant["loss"] == "mean" else (total, mean)
    expect_close(eta, right, "the step", {
        "a factor N is missing, or there is one too many: look at the loss of this assignment": other,
        "this is the square of the right step, or a factor was squared": right**2,
        "the step has to move downhill: the sign is the other way round": -right,
    })  # fmt: skip


@case("q2", points=1, hint="two tasks with one example each: write down p for both, then fit y_query = eta p")
def two_small_tasks(student: Student, rng: np.random.Generator) -> None:
    """One input and one example a task, so that both conventions and both layouts agree."""
    x, y = np.array([[[1.0]], [[2.0]]]), np.array([[1.0], [2.0]])
    eta = student.call("best_shared_eta", x, y, np.array([[1.0], [1.0]]), np.array([1.0, 2.0]))
    expect_close(eta, 9 / 17, "the step", {
        "this is the mean of the two tasks' own best steps; the loss is a mean, the steps are not": 0.75,
        "numerator and denominator are exchanged": 17 / 9,
    }, rtol=1e-5)  # fmt: skip


@case("q3", points=1, hint="one example and one input: the expected loss needs the second and the fourth moment of x")
def one_example_of_one_input(student: Student, rng: np.random.Generator) -> None:
    """Both conventions agree for one example."""
    expect_close(student.call("expected_eta", 1, 1, 1.0), 5 / 3, "the step", {
        "this would be right for a context of very many examples": 3.0,
        "this would be right for normal inputs: which fourth moment has a uniform variable?": 1.0,
        "the fourth moment of the input is missing": 1.5,
    })  # fmt: skip


@case("q4", points=1, hint="three points: the second number falls by four whenever the first doubles")
def three_points(student: Student, rng: np.random.Generator) -> None:
    """A law without noise."""
    expect_close(student.call("power", np.array([1.0, 2.0, 4.0]), np.array([8.0, 2.0, 0.5])), -2.0, "the power", {
        "the two axes are exchanged": -0.5,
        "this is the slope without logarithms": np.polyfit([1, 2, 4], [8, 2, 0.5], 1)[0],
    })  # fmt: skip
