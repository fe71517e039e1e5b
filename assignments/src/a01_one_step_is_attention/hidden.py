"""Hidden cases of "One step is attention"."""

import numpy as np

from mesa_lib.assignments import case, expect_array, expect_close


def by_loops(context, query, w_k, w_q, w_v, w_p):
    """The layer on tokens in rows, one reader and one example after the other."""

    def read(token):
        return token + sum(w_p @ (w_v @ other) * ((w_k @ other) @ (w_q @ token)) for other in context)

    return np.array([read(token) for token in context]), np.array([read(token) for token in query])


def laid(student, rows):
    """Tokens in rows, as the variant lays them."""
    return rows.T if student.variant["layout"] == "columns" else rows


def moved(student, context, query, weights):
    """The student's layer, on tokens in rows."""
    return student.call("layer", laid(student, context), laid(student, query), *weights)


def compare(student, context, query, weights):
    """The student's layer against the loops."""
    got, wanted = moved(student, context, query, weights), by_loops(context, query, *weights)
    for name, array, right in zip(("the new context", "the new query"), got, wanted, strict=True):
        expect_close(array, laid(student, right), name)


def draw_weights(rng, token):
    """Weights of all sizes, without any symmetry."""
    qk, v = rng.integers(1, 6, size=2)
    return [rng.normal(size=shape) for shape in ((qk, token), (qk, token), (v, token), (token, v))]


@case("q1", points=2, hint="weights need not be square or symmetric: check each transposition on a small example")
def random_weights(student, rng):
    for token in (2, 3, 5):
        compare(student, rng.normal(size=(4, token)), rng.normal(size=(1, token)), draw_weights(rng, token))


@case(
    "q1", points=1, hint="one example in the context, several queries at once: does each query read the context alone?"
)
def one_example_and_many_queries(student, rng):
    for examples, queries in ((1, 3), (9, 2)):
        compare(student, rng.normal(size=(examples, 4)), rng.normal(size=(queries, 4)), draw_weights(rng, 4))


def step(student, w_0, x, y, eta):
    """Delta W, example by example."""
    total = sum(np.outer(w_0 @ x_i - y_i, x_i) for x_i, y_i in zip(x, y, strict=True))
    return -eta * total / (len(x) if student.variant["loss"] == "mean" else 1)


def join(student, x, y_slot):
    """Tokens in rows from x-slots and y-slots."""
    return np.hstack([x, y_slot] if student.variant["order"] == "xy" else [y_slot, x])


def sign(student):
    """+1 if context tokens carry y, -1 if they carry -y."""
    return 1.0 if student.variant["sign"] == "minus" else -1.0


def takes_the_step(student, rng, start, y_dim, x_dim, examples):
    """With the student's weights, the y-slots move by the step."""
    w_0, eta = start * rng.normal(size=(y_dim, x_dim)), rng.uniform(0.2, 2.0)
    x, y = rng.normal(size=(examples, x_dim)), rng.normal(size=(examples, y_dim))
    weights = student.call("step_weights", w_0, eta, examples)
    token = x_dim + y_dim
    w_k, w_q, w_v, w_p = weights
    w_k, w_q, w_v = (expect_array(w, (None, token), name) for name, w in (("w_k", w_k), ("w_q", w_q), ("w_v", w_v)))
    w_p = expect_array(w_p, (token, len(w_v)), "w_p")
    after, _ = by_loops(join(student, x, sign(student) * y), np.zeros((1, token)), w_k, w_q, w_v, w_p)
    moved_y = y - x @ step(student, w_0, x, y, eta).T
    expect_close(after, join(student, x, sign(student) * moved_y), "the tokens after the layer")


@case("q2", points=2, hint="start with W_0 = 0: does the y-slot move by the step, and does the x-slot stay?")
def a_step_from_zero(student, rng):
    for y_dim, x_dim, examples in ((1, 3, 6), (2, 2, 1)):
        takes_the_step(student, rng, 0.0, y_dim, x_dim, examples)


@case(
    "q2", points=3, hint="a start that is not zero, and more than one target: where does W_0 go, and with which sign?"
)
def a_step_from_anywhere(student, rng):
    for y_dim, x_dim, examples in ((1, 4, 7), (3, 2, 5), (2, 5, 1)):
        takes_the_step(student, rng, 1.0, y_dim, x_dim, examples)


def reference(student, w_0, eta, examples):
    """Weights that take the step, in one product each: keys select x, values are residuals."""
    y_dim, x_dim = w_0.shape
    factor = eta / examples if student.variant["loss"] == "mean" else eta
    select_x = join(student, np.eye(x_dim), np.zeros((x_dim, y_dim)))
    residual = join(student, sign(student) * w_0, -np.eye(y_dim))
    write_y = factor * join(student, np.zeros((y_dim, x_dim)), np.eye(y_dim)).T
    return select_x, select_x, residual, write_y


def after_layer(student, rng, w_0, query, with_itself=False):
    """The query token after one layer on a random context, and the step that the context asks for."""
    y_dim, x_dim = w_0.shape
    x, y, eta = rng.normal(size=(6, x_dim)), rng.normal(size=(6, y_dim)), 0.7
    context = join(student, x, sign(student) * y)
    keys = np.vstack([context, query]) if with_itself else context
    return by_loops(keys, query[None], *reference(student, w_0, eta, 6))[1][0], step(student, w_0, x, y, eta)


@case("q3", points=1, hint="with W_0 = 0 the slot is empty before the layer; with which sign is the prediction read?")
def a_prediction_from_zero(student, rng):
    w_0, x = np.zeros((2, 3)), rng.normal(size=3)
    token = expect_array(student.call("query_token", w_0, x), (5,), "the query token")
    after, change = after_layer(student, rng, w_0, token)
    expect_close(student.call("read_prediction", after, 3), change @ x, "the prediction")


@case(
    "q3",
    points=2,
    hint="a start that is not zero: the layer adds the change only, so what has to be in the slot before?",
)
def a_prediction_from_anywhere(student, rng):
    for y_dim, x_dim in ((1, 4), (3, 2)):
        w_0, x = rng.normal(size=(y_dim, x_dim)), rng.normal(size=x_dim)
        token = expect_array(student.call("query_token", w_0, x), (x_dim + y_dim,), "the query token")
        after, change = after_layer(student, rng, w_0, token)
        expect_close(student.call("read_prediction", after, x_dim), (w_0 + change) @ x, "the prediction")


@case("q4", points=3, hint="the query's value is W_V times its token; its score with itself is the square of |x|")
def change_by_attending_to_itself(student, rng):
    for y_dim, x_dim, examples in ((1, 3, 4), (2, 2, 9)):
        w_0, x, eta = rng.normal(size=(y_dim, x_dim)), rng.normal(size=x_dim), rng.uniform(0.2, 2.0)
        query = join(student, x[None], -sign(student) * (w_0 @ x)[None])[0]
        context = rng.normal(size=(examples, x_dim + y_dim))
        weights = reference(student, w_0, eta, examples)
        alone = by_loops(context, query[None], *weights)[1][0]
        itself = by_loops(np.vstack([context, query]), query[None], *weights)[1][0]
        slot = slice(x_dim, None) if student.variant["order"] == "xy" else slice(0, y_dim)
        change = -sign(student) * (itself - alone)[slot]
        expect_close(student.call("self_attention_change", w_0, x, eta, examples), change, "the change")
