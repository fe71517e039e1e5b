"""Public cases of "Softmax is a smoother"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_array, expect_close, expect_number

QUESTIONS = {
    "q1": ("softmax_head",),
    "q2": ("gaussian_smoother", "matching_width"),
    "q3": ("disagreement", "key_bias"),
    "q4": ("extreme_answers",),
}
VARIANTS = {"layout": ("rows", "columns"), "sharpness": ("beta", "temperature")}


def _laid(student: Student, rows: list[list[float]]) -> NDArray[Any]:
    """An array with one thing in each row, as the variant lays it."""
    array = np.array(rows, dtype=float)
    return array.T if student.variant["layout"] == "columns" else array


@case("q1", points=1, hint="two keys, at 0 and at log 3: what are the kernels of both for the query 1?")
def two_keys_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Kernels 1 and 3, at a sharpness that both conventions share; the second query takes the plain mean."""
    keys, values = _laid(student, [[0.0], [np.log(3)]]), _laid(student, [[0.0, 8.0], [4.0, 0.0]])
    answer = student.call("softmax_head", _laid(student, [[1.0], [0.0], [2.0]]), keys, values, 1.0)
    expect_close(answer, _laid(student, [[3.0, 2.0], [2.0, 4.0], [3.6, 0.8]]), "the array of answers", {
        "the kernels are not divided by their sum over the keys": _laid(student, [[12, 8], [4, 8], [36, 8]]),
        "the shares have to add up to one for each query, over the keys, not over the queries": _laid(
            student, [[12 / 13, 8 / 3], [4 / 13, 8 / 3], [36 / 13, 8 / 3]]
        ),
        "these are the shares; the answers are means of the values": [[0.25, 0.75], [0.5, 0.5], [0.1, 0.9]],
        "the largest score gets the smallest share: look at the sign of the scores": _laid(
            student, [[1.0, 6.0], [2.0, 4.0], [0.4, 7.2]]
        ),
    })  # fmt: skip
    sharper = student.call("softmax_head", _laid(student, [[1.0]]), keys, values, 2.0)
    right, other = [[3.6, 0.8]], [[4 * 3**0.5 / (1 + 3**0.5), 8 / (1 + 3**0.5)]]
    if student.variant["sharpness"] == "temperature":
        right, other = other, right
    expect_close(sharper, _laid(student, right), "the answer at a sharpness of 2", {
        "scores are multiplied by the sharpness where they should be divided, or the other way round": _laid(
            student, other
        ),
        "the sharpness has no effect": _laid(student, [[3.0, 2.0]]),
    })  # fmt: skip


@case("q2", points=1, hint="a key on the query and one at a distance of 2; the width is 1")
def a_key_on_the_query(student: Student, rng: np.random.Generator) -> None:
    """Kernels 1 and exp(-2); a sharpness of one."""
    far = float(np.exp(-2.0))
    keys, values = _laid(student, [[1.0, 0.0], [1.0, 2.0]]), _laid(student, [[1.0], [0.0]])
    answer = student.call("gaussian_smoother", _laid(student, [[1.0, 0.0]]), keys, values, 1.0)
    expect_close(answer, [[1 / (1 + far)]], "the answer", {
        "the distance is not squared": [[1 / (1 + np.exp(-1.0))]],
        "the factor 1/2 in the kernel is missing": [[1 / (1 + far**2)]],
        "this is the softmax head's answer; the Gaussian kernel looks at distances": [[0.5]],
        "the nearer key gets the smaller share: look at the sign in the exponential": [[far / (1 + far)]],
        "the kernels are not divided by their sum": [[1.0]],
    })  # fmt: skip
    width = expect_number(student.call("matching_width", 1.0), "the width")
    expect(width > 0, "a width has to be positive")


@case("q3", points=1, hint="with keys of equal length the two agree; the bias knows nothing of queries")
def shapes_and_lengths(student: Student, rng: np.random.Generator) -> None:
    """Three arrays that fit together, keys of different lengths; one bias for each key."""
    given = student.call("disagreement", 1.0)
    expect(
        isinstance(given, (tuple, list)) and len(given) == 3,
        "disagreement has to return three arrays: keys, values, query",
    )
    keys, values, query = (
        expect_array(array, (None, None), name)
        for array, name in zip(given, ("the array of keys", "the array of values", "the query"), strict=True)
    )
    if student.variant["layout"] == "columns":
        keys, values, query = keys.T, values.T, query.T
    expect(values.shape == (len(keys), 1), "there has to be one value, a single number, for each key")
    expect(query.shape == (1, keys.shape[1]), "there has to be one query, of the size of a key")
    expect(values.size > 0 and values.min() >= 0 and values.max() <= 1, "the values have to be between 0 and 1")
    lengths = np.linalg.norm(keys, axis=1)
    expect(float(np.ptp(lengths)) > 1e-9, "these keys are all equally long: then the two answers agree for any query")
    bias = student.call("key_bias", _laid(student, [[1.0, 0.0], [0.0, 2.0], [0.0, -1.0]]), 1.0)
    bias = expect_array(bias, (3,), "the vector of biases")
    expect(abs(bias[0] - bias[2]) < 1e-12, "keys of equal length have to get the same bias")
    expect(abs(bias[0] - bias[1]) > 1e-12, "keys of different lengths get the same bias: then nothing is mended")


@case("q4", points=1, hint="which of three keys has the largest score, and what are the shares when all scores vanish?")
def three_keys_on_a_line(student: Student, rng: np.random.Generator) -> None:
    """The nearest key is not the one with the largest score."""
    keys, values = _laid(student, [[-1.0], [1.0], [3.0]]), _laid(student, [[6.0], [0.0], [9.0]])
    given = student.call("extreme_answers", np.array([1.0]), keys, values)
    expect(
        isinstance(given, (tuple, list, np.ndarray)) and len(given) == 2,
        "extreme_answers has to return two vectors: the limit of small scores, that of large ones",
    )
    expect_close(given[0], [5.0], "the answer in the limit of small scores", {
        "this is the sum of the values; their shares add up to one": [15.0],
    })  # fmt: skip
    expect_close(given[1], [9.0], "the answer in the limit of large scores", {
        "this is the value of the nearest key; a head looks at scores, not at distances": [0.0],
        "this is the value of the smallest score": [6.0],
    })  # fmt: skip
