"""Public cases of "Where do tokens come from?"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_array, expect_close

QUESTIONS = {
    "q1": ("pairs_of", "reading_matrix"),
    "q2": ("copying_weights",),
    "q3": ("sharpness_for",),
    "q4": ("step_after_copy",),
}
VARIANTS = {"direction": ("previous", "next"), "loss": ("mean", "sum")}


@case("q1", points=1, hint="draw x_1, y_1, x_2, y_2, x_q in a row and number them from 0; then one-hot codes by hand")
def five_tokens_and_three_codes(student: Student, rng: np.random.Generator) -> None:
    """Two examples and a query; then one-hot codes, one pair that are no neighbours."""
    pairs = expect_array(student.call("pairs_of", 5), (2, 2), "the array of pairs")
    right = {(1, 0), (3, 2)} if student.variant["direction"] == "previous" else {(0, 1), (2, 3)}
    got = {(int(reader), int(read)) for reader, read in pairs}
    swapped = {(read, reader) for reader, read in right}
    expect(got != swapped, "reader and read are exchanged: who reads comes first")
    expect(got != {(a + 1, b + 1) for a, b in right}, "places are counted from 0")
    expect(got == right, "for five tokens the pairs are not right: write down which places hold inputs and targets")
    matrix = student.call("reading_matrix", np.eye(3), np.array([[2, 0]]))
    expect_close(matrix, [[0, 0, 1], [0, 0, 0], [0, 0, 0]], "the matrix for one-hot codes", {
        "reader and read are exchanged: in p_i M p_r the token that is read stands on the left": [
            [0, 0, 0], [0, 0, 0], [1, 0, 0]
        ],
        "the pairs are ignored: which were passed?": [[0, 1, 0], [0, 0, 0], [0, 0, 0]],
    })  # fmt: skip


@case("q2", points=1, hint="three slots: which one decides who reads whom, and which one is moved?")
def slots_that_take_no_part(student: Student, rng: np.random.Generator) -> None:
    """Shapes; inputs and targets have no say in who reads whom; no code is moved or written."""
    w_kq, w_pv = _two_matrices(
        student.call("copying_weights", np.array([[0.0, 1.0], [0.0, 0.0]]), 3), "copying_weights", 6
    )
    code = slice(3, 5)
    expect(np.abs(w_kq).max() > 0 and np.abs(w_pv).max() > 0, "with these weights the layer does nothing")
    outside = w_kq.copy()
    outside[code, code] = 0
    expect(not outside.any(), "the scores depend on inputs or targets; only the codes may say who reads whom")
    expect(not w_pv[code].any(), "the layer writes into the code of the reader")
    expect(not w_pv[:, code].any(), "the layer moves the code of the token that is read")


@case("q3", points=1, hint="four tokens, half of the attention missed: the partner weighs as much as the three others")
def four_tokens(student: Student, rng: np.random.Generator) -> None:
    """The partner's exponential is three."""
    expect_close(student.call("sharpness_for", 0.5, 4), np.log(3), "the sharpness", {
        "the partner is not one of the others: how many of those are there?": np.log(4),
        "this is e to the power k": 3.0,
        "the sign is the other way round, or the missed share and the other one are exchanged": -np.log(3),
    })  # fmt: skip
    expect_close(student.call("sharpness_for", 0.25, 2), np.log(3), "the sharpness for two tokens", {
        "the missed share and the partner's are exchanged": -np.log(3),
        "this is right only if next to nothing is missed": np.log(4),
    })  # fmt: skip


@case("q4", points=1, hint="which slot of the reader must change? what if eta doubles?")
def shapes_and_step_sizes(student: Student, rng: np.random.Generator) -> None:
    """Shapes; what the layer writes is proportional to the step size, and depends on N as the loss says."""
    once = _write(student, 0.5, 4)
    expect(np.abs(once[-1]).max() > 0, "with these weights the y-slot of the query never changes")
    expect_close(_write(student, 1.0, 4), 2 * once, "what the layer adds, for twice the step size")
    factor = 0.5 if student.variant["loss"] == "mean" else 1.0
    expect_close(_write(student, 0.5, 8), factor * once, "what the layer adds for each example, for twice N")


def _two_matrices(weights: Any, function: str, token: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both matrices of a layer, checked."""
    expect(
        isinstance(weights, (tuple, list)) and len(weights) == 2,
        f"{function} has to return two matrices: w_kq and w_pv",
    )
    shape = (token, token)
    return expect_array(weights[0], shape, "the matrix w_kq"), expect_array(weights[1], shape, "the matrix w_pv")


def _write(student: Student, eta: float, num_context: int) -> NDArray[Any]:
    """What the layer can add for one token: it depends on w_pv and w_kq through their product only."""
    weights = student.call("step_after_copy", eta, num_context, 2, 3)
    w_kq, w_pv = _two_matrices(weights, "step_after_copy", 6)
    return np.kron(w_pv, w_kq.reshape(1, -1))
