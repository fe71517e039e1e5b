"""Public cases of "Is it the same model?"."""

import numpy as np

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_array, expect_close

QUESTIONS = {
    "q1": ("predictions_apart",),
    "q2": ("sensitivity",),
    "q3": ("compare_sensitivities",),
    "q4": ("disguise",),
    "q5": ("canonical",),
    "q6": ("blind_spot",),
}
VARIANTS = {"layout": ("rows", "columns"), "average": ("mean", "rms")}

OTHER_AVERAGE = "this is the other average of distances, mean or root mean square: which one does the question ask for?"


@case("q1", points=1, hint="two queries: the answers to one of them are 5 apart, to the other one 1")
def two_queries(student: Student, rng: np.random.Generator) -> None:
    """One task, two queries, two targets."""
    a, b = np.array([[[4.0, 3.0], [1.0, 1.0]]]), np.array([[[1.0, -1.0], [1.0, 0.0]]])
    mean, root = 3.0, 13**0.5
    right, other = (mean, root) if student.variant["average"] == "mean" else (root, mean)
    expect_close(student.call("predictions_apart", a, b), right, "the distance", {
        OTHER_AVERAGE: other,
        "this is the mean over all entries; the entries of one answer make one distance": 2.0,
        "this is a root mean square over all entries; the entries of one answer make one distance": 6.5**0.5,
        "the distances are not averaged": 6.0,
        "this is the length of one long vector, not an average": 26**0.5,
        "distances first, averages afterwards: here the differences were averaged before": 8.5**0.5,
        "distances first, averages afterwards: the squares were never rooted": 13.0,
    })  # fmt: skip


@case("q2", points=1, hint="write the prediction for this context as a polynomial in the query, with numbers")
def one_input_by_hand(student: Student, rng: np.random.Generator) -> None:
    """One example of one input and one target; only the values mix x and y."""
    one = np.eye(2)
    weights = [one, one, np.array([[1.0, 0.0], [1.0, 1.0]]), one]
    jacobian = student.call("sensitivity", weights, np.array([[2.0]]), np.array([[3.0]]), np.array([1.0]))
    own = "the query is a key and a value, too: a part of its own share of the derivative is missing"
    expect_close(jacobian, [[-13.0]], "the Jacobian", {
        "the query's own share is missing: it is a key and a value, too": [[-10.0]],
        own: [[-12.0]],
        f"{own} (or this is the prediction divided by the query)": [[-11.0]],
        "this looks like the derivative at a query of zero; it depends on the query": [[10.0]],
        "the context is missing": [[-3.0]],
    }, rtol=1e-5)  # fmt: skip


@case("q3", points=1, hint="two queries: at one the Jacobians are at a right angle, at the other they are parallel")
def a_right_angle_and_none(student: Student, rng: np.random.Generator) -> None:
    """One task, two queries, one target, two inputs."""
    a, b = np.array([[[[3.0, 0.0]], [[1.0, 0.0]]]]), np.array([[[[0.0, 4.0]], [[2.0, 0.0]]]])
    measures = student.call("compare_sensitivities", a, b)
    if isinstance(measures, np.ndarray):
        measures = list(measures)
    expect(
        isinstance(measures, (tuple, list)) and len(measures) == 2,
        "compare_sensitivities has to return two numbers: the difference and the cosine",
    )
    mean, root = 3.0, 13**0.5
    right, other = (mean, root) if student.variant["average"] == "mean" else (root, mean)
    exchanged = "the two numbers are in the wrong order: the difference comes first"
    expect_close(measures[0], right, "the difference", {OTHER_AVERAGE: other, exchanged: 0.5})
    expect_close(measures[1], 0.5, "the cosine", {
        "a cosine for each query first, then their mean; here all queries made one cosine": 2 / 200**0.5,
        "the cosines are not averaged, or the inner products are not divided by the lengths of both": 1.0,
    })  # fmt: skip


@case("q4", points=1, hint="one number for a key and one for a value: what undoes a factor of 2, what a factor of 4?")
def one_key_and_one_value(student: Student, rng: np.random.Generator) -> None:
    """Keys and values of one number."""
    weights = [np.array([[1.0, 2.0]]), np.array([[4.0, -2.0]]), np.array([[3.0, 1.0]]), np.array([[8.0], [4.0]])]
    moved = student.call("disguise", weights, np.array([[2.0]]), np.array([[4.0]]))
    expect(
        isinstance(moved, (tuple, list)) and len(moved) == 4,
        "disguise has to return four matrices: w_k, w_q, w_v, w_p",
    )
    expect_close(moved[0], [[2.0, 4.0]], "the new w_k", {"w_k was not multiplied by a": weights[0]})
    expect_close(moved[2], [[12.0, 4.0]], "the new w_v", {"w_v was not multiplied by b": weights[2]})
    nothing = "nothing makes up for the change of"
    again = "the same change twice does not undo itself:"
    expect_close(moved[1], [[2.0, -1.0]], "the new w_q", {
        f"{nothing} w_k": weights[1], f"{again} w_q": 2 * weights[1],
    })  # fmt: skip
    expect_close(moved[3], [[2.0], [1.0]], "the new w_p", {
        f"{nothing} w_v": weights[3], f"{again} w_p": 4 * weights[3],
    })  # fmt: skip


@case("q5", points=1, hint="multiply the matrices by hand, keep the part that is read, then divide and multiply")
def one_input_and_one_target(student: Student, rng: np.random.Generator) -> None:
    """Small whole numbers, none of the matrices symmetric."""
    weights = [[[1, 2], [0, 1]], [[2, 1], [1, 1]], [[1, 1], [0, 2]], [[1, 0], [3, 1]]]
    products = student.call("canonical", [np.array(weight, dtype=float) for weight in weights], 1)
    expect(
        isinstance(products, (tuple, list)) and len(products) == 2,
        "canonical has to return two matrices: y-rows of P W_V, and x-columns of W_K^T W_Q",
    )
    write = expect_array(products[0], (1, 2), "the first product")
    expect_close(write, [[6.0, 10.0]], "the first product", {
        "the y-rows of P W_V are not scaled": [[3.0, 5.0]],
        "the y-rows of P W_V were divided by the number, not multiplied": [[1.5, 2.5]],
        "these are rows of the x-slot": [[2.0, 2.0]],
        "P and W_V are applied in the wrong order": [[12.0, 4.0]],
        "the diagonal of the whole product was used, not that of the x-slot's block": [[7.5, 12.5]],
    })  # fmt: skip
    expect_close(products[1], [[1.0], [2.5]], "the second product", {
        "the x-columns of W_K^T W_Q are not scaled": [[2.0], [5.0]],
        "the x-columns of W_K^T W_Q were multiplied by the number, not divided": [[4.0], [10.0]],
        "keys and queries are exchanged": [[1.0], [0.5]],
        "these are columns of the y-slot": [[0.5], [1.5]],
        "the diagonal of the whole product was used, not that of the x-slot's block": [[0.8], [2.0]],
    })  # fmt: skip


@case("q6", points=1, hint="draw the one query in the plane; which directions does it not see?")
def one_query_in_the_plane(student: Student, rng: np.random.Generator) -> None:
    """There are two answers, and both are right."""
    query = np.array([[1.0, 2.0]])
    delta = expect_array(student.call("blind_spot", query), (2,), "the change")
    expect(np.linalg.norm(delta) > 0, "a change of zero changes nothing")
    expect(abs(float((query @ delta).item())) < 1e-8, "the answer to this query betrays the change")
    expect(abs(np.linalg.norm(delta) - 1) < 1e-8, "the change does not have length 1")
