"""Public cases of "Kernel regression"."""

import numpy as np

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect_close

QUESTIONS = {
    "q1": ("fourier_features",),
    "q2": ("kernel_error",),
    "q3": ("feature_layer",),
    "q4": ("kernel_steps",),
    "q5": ("kernel_limit",),
}
VARIANTS = {"loss": ("mean", "sum"), "features": ("phases", "pairs")}

FACTOR = "a factor N is missing, or there is one too many: look at the loss of this assignment"
NARROW = "the features change too fast with the input: what does a wider kernel do to frequencies?"


@case("q1", points=1, hint="two inputs and two frequencies: the first input is zero, so its row shows phases and scale")
def two_inputs_two_frequencies(student: Student, rng: np.random.Generator) -> None:
    """Inputs 0 and 2, width 2, so that inputs over width are 0 and 1."""
    x, normals = np.array([[0.0], [2.0]]), np.array([[1.0], [-0.5]])
    name = "the array of features"
    c, s, half = 0.8775825618903728, 0.479425538604203, 0.5**0.5  # of one half
    cos, sin = 0.5403023058681398, 0.8414709848078965  # of one
    if student.variant["features"] == "phases":
        phi = student.call("fourier_features", x, 2.0, normals, np.array([0.25, 0.5]))
        right = np.array([[0.0, -1.0], [-sin, -c]])
        expect_close(phi, right, name, {
            NARROW: [[0.0, -1.0], [0.7568024953079282, 0.4161468365471424]],
            "a uniform number between 0 and 1 is not yet a phase": [[0.9689124217106447, c], [0.3153223623952687, 1.0]],
            "the scale is off: with it, is the inner product of the features of one input about 1?": half * right,
            "the scale is off by the root of the number of features": half**-1 * right,
            "these are sines": [[1.0, 0.0], [cos, s]],
        })  # fmt: skip
    else:
        phi = student.call("fourier_features", x, 2.0, normals)
        right = half * np.array([[1.0, 1.0, 0.0, 0.0], [cos, c, sin, -s]])
        fast = [-0.6536436208636119, -0.4161468365471424, -0.7568024953079282, -0.9092974268256817]
        expect_close(phi, right, name, {
            NARROW: half * np.array([[1.0, 1.0, 0.0, 0.0], fast]),
            "the scale is off: with it, is the inner product of the features of one input 1?": right / half,
            "cosine and sine of one frequency stand together; all cosines come first": right[:, [0, 2, 1, 3]],
            "the sines come first; the question puts them last": right[:, [2, 3, 0, 1]],
        })  # fmt: skip


@case("q2", points=1, hint="two inputs: write down both matrices, subtract, and look at all four entries")
def two_inputs_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Features that are no good estimate."""
    phi = np.array([[1.0, 0.0, 0.0], [0.5, 0.8, 0.6]])
    error = student.call("kernel_error", np.array([[0.0], [1.0]]), 2.0, phi)
    expect_close(error, 0.2979545942646375, "the error", {
        "in this kernel the width is not squared, or the 2 is missing": 0.23343079985429147,
        "the width is missing in the kernel": 0.14594310785167092,
        "this is the mean of absolute differences, not the root of the mean of squares": 0.2537484512922977,
        "the root is missing": 0.08877694024340475,
        "the squares are added, not averaged": 0.595909188529275,
        "this is the largest difference": 0.38249690258459546,
    })  # fmt: skip


@case(
    "q3", points=1, hint="two examples, one feature: write down the slots of all tokens, then the score of each example"
)
def one_feature_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Two examples of one feature, from a start that is not zero."""
    mean = student.variant["loss"] == "mean"
    prediction = student.call(
        "feature_layer",
        np.array([[1.0], [2.0]]),
        np.array([[1.0], [3.0]]),
        np.array([[2.0]]),
        np.array([[0.5]]),
        0.2 if mean else 0.1,
    )
    expect_close(prediction, [[1.9]], "the prediction", {
        "the y-slots of the examples hold what W_0 leaves of the targets, not the targets": [[2.4]],
        "the query's y-slot is not empty before the layer": [[0.9]],
        "W_0 is missing, in the examples and in the query": [[1.4]],
        "the step goes uphill": [[0.1]],
        "the query's y-slot has the wrong sign before the layer": [[-0.1]],
        FACTOR: [[2.8]] if mean else [[1.45]],
        f"{FACTOR} (N twice?)": [[1.45]],
    })  # fmt: skip


@case("q4", points=1, hint="two examples: alpha after one step is a multiple of y; what are the residuals then?")
def two_steps_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Two examples, one query, two steps; the numbers take the same steps in both conventions."""
    mean = student.variant["loss"] == "mean"
    kernel, across, y = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 2.0]]), np.array([[1.0], [2.0]])
    eta, penalty = (0.2, 0.5) if mean else (0.1, 1.0)
    expect_close(student.call("kernel_steps", kernel, across, y, eta, penalty, 2), [[0.77]], "the prediction", {
        "the penalty is missing": [[0.82]],
        "only one step was taken": [[0.5]],
        "the residuals change from step to step": [[0.95]],
        "the penalty's gradient is multiplied by the step size, too": [[0.57]] if mean else [[0.32]],
        FACTOR: [[1.18]] if mean else [[0.43]],
        f"{FACTOR} (N twice?)": [[0.43]],
    })  # fmt: skip


@case("q5", points=1, hint="the same two examples: for which alpha does a step change nothing?")
def a_standstill_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Two examples, one query."""
    mean = student.variant["loss"] == "mean"
    kernel, across, y = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 2.0]]), np.array([[1.0], [2.0]])
    prediction = student.call("kernel_limit", kernel, across, y, 0.5 if mean else 1.0)
    expect_close(prediction, [[12 / 11]], "the prediction", {
        "the penalty is missing": [[1.4]],
        FACTOR: [[9.5 / 7.75]] if mean else [[17 / 19]],
        "the penalty is on all entries; it belongs to each example by itself": [[1.0]],
    })  # fmt: skip
