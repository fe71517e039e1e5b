"""Public cases of "One step is attention"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_array, expect_close

QUESTIONS = {
    "q1": ("layer",),
    "q2": ("step_weights",),
    "q3": ("query_token", "read_prediction"),
    "q4": ("self_attention_change",),
}
VARIANTS = {
    "layout": ("columns", "rows"),
    "order": ("xy", "yx"),
    "loss": ("mean", "sum"),
    "sign": ("minus", "plus"),
}


@case("q1", points=1, hint="follow one context token through the formula by hand, with these weights")
def two_tokens_by_hand(student: Student, rng: np.random.Generator) -> None:
    """Two context tokens and one query, with small whole numbers as weights."""
    columns = student.variant["layout"] == "columns"
    tokens, query = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, -1.0]])
    weights = [[[1, 0], [1, 1]], [[1, 2], [0, 1]], [[0, 1], [1, 0]], [[1, 0], [1, 2]]]
    given = (tokens.T, query.T) if columns else (tokens, query)
    moved = student.call("layer", *given, *(np.array(weight, dtype=float) for weight in weights))
    expect(isinstance(moved, (tuple, list)) and len(moved) == 2, "layer has to return two arrays: context, query")

    def laid(rows: list[list[float]]) -> NDArray[Any]:
        return np.array(rows).T if columns else np.array(rows)

    mistakes = {
        "the query token was among the keys and values; only the context is read": laid([[20, 53], [9, 24]]),
        "keys and queries are exchanged": laid([[28, 51], [5, 10]]),
        "what the layer finds has to be added to the token; the token itself is missing": laid([[24, 46], [11, 21]]),
        "P is missing": laid([[25, 13], [11, 6]]),
        "W_V is missing": laid([[12, 61], [5, 28]]),
        "P and W_V are applied in the wrong order": laid([[60, 13], [27, 6]]),
    }
    expect_close(moved[0], laid([[25, 48], [11, 22]]), "the new context", mistakes)
    expect_close(moved[1], laid([[-8, -18]]), "the new query", {
        "the query reads itself; only the context is read": laid([[-7, -19]]),
        "the query gets its sum, but the query itself is missing": laid([[-9, -17]]),
    })  # fmt: skip


@case("q2", points=1, hint="which of the matrices know the step size, and which know the number of examples?")
def shapes_and_step_sizes(student: Student, rng: np.random.Generator) -> None:
    """Four matrices that fit together; the write is proportional to the step size."""
    w_0 = np.array([[1.0, -2.0, 0.5]])
    once = _write(student, w_0, 0.5, 4)
    expect(np.abs(once).max() > 0, "with these weights the layer does nothing")
    expect_close(_write(student, w_0, 1.0, 4), 2 * once, "what the layer adds, for twice the step size")
    factor = 0.5 if student.variant["loss"] == "mean" else 1.0
    expect_close(
        _write(student, w_0, 0.5, 8), factor * once, "what the layer adds to a token for each example, for twice N"
    )


@case("q3", points=1, hint="the x-slot of a query holds x, in the order of slots that all tokens have")
def slots(student: Student, rng: np.random.Generator) -> None:
    """The x-slot holds the query; a prediction has the size of the y-slot."""
    w_0, x = np.array([[1.0, 2.0, -1.0], [0.0, 1.0, 3.0]]), np.array([0.5, -1.5, 2.0])
    token = expect_array(student.call("query_token", w_0, x), (5,), "the query token")
    x_slot = token[:3] if student.variant["order"] == "xy" else token[2:]
    expect(
        np.array_equal(x_slot, x), "the x-slot of the query token does not hold x: are the slots in the wrong order?"
    )
    expect_array(student.call("read_prediction", token, 3), (2,), "the prediction")


@case("q4", points=1, hint="with W_0 = 0 the query's own value is zero")
def from_zero_nothing_changes(student: Student, rng: np.random.Generator) -> None:
    """Shape, and W_0 = 0."""
    change = student.call("self_attention_change", np.zeros((2, 3)), np.array([0.5, -1.5, 2.0]), 0.3, 5)
    expect_close(change, np.zeros(2), "the change for W_0 = 0")


def _write(student: Student, w_0: NDArray[Any], eta: float, num_context: int) -> NDArray[Any]:
    """What the layer can add for one example: it depends on P W_V and on W_K^T W_Q, through their product only."""
    weights = student.call("step_weights", w_0, eta, num_context)
    expect(
        isinstance(weights, (tuple, list)) and len(weights) == 4,
        "step_weights has to return four matrices: w_k, w_q, w_v, w_p",
    )
    token = sum(w_0.shape)
    w_k, w_q, w_v = (
        expect_array(weight, (None, token), name) for name, weight in zip(("w_k", "w_q", "w_v"), weights, strict=False)
    )
    w_p = expect_array(weights[3], (token, len(w_v)), "w_p")
    expect(
        w_k.shape == w_q.shape, "w_k and w_q have different shapes; their products with a token could not be compared"
    )
    return np.kron(w_p @ w_v, w_k.T @ w_q)
