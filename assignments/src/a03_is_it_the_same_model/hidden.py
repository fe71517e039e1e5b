"""Hidden cases of "Is it the same model?"."""

import numpy as np

from mesa_lib.assignments import case, expect, expect_array, expect_close, expect_number


def averaged(student, distances):
    """What the variant calls the average of some distances."""
    distances = np.asarray(distances)
    return distances.mean() if student.variant["average"] == "mean" else np.sqrt((distances**2).mean())


def predicted(weights, x, y, x_query):
    """The prediction, token after token; x (N, d) and y (N, k) in rows."""
    w_k, w_q, w_v, w_p = weights
    query = np.concatenate([x_query, np.zeros(y.shape[1])])
    tokens = [*(np.concatenate(pair) for pair in zip(x, y, strict=True)), query]
    written = sum(w_p @ (w_v @ token) * ((w_k @ token) @ (w_q @ query)) for token in tokens)
    return -written[len(x_query) :]


def draw_weights(rng, token, qk=None, v=None):
    """Weights without any symmetry."""
    qk, v = qk or token, v or token
    return [rng.normal(size=shape) for shape in ((qk, token), (qk, token), (v, token), (token, v))]


def draw_mixer(rng, size):
    """An invertible matrix, neither symmetric nor orthogonal, of condition number at most 4."""
    left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2))
    return left @ np.diag(rng.uniform(0.5, 2.0, size=size)) @ right * rng.uniform(1.5, 2.0)


def four_matrices(student, function, *arguments):
    """What a function returned, if it is four things."""
    weights = student.call(function, *arguments)
    expect(isinstance(weights, (tuple, list)) and len(weights) == 4, f"{function} has to return four matrices")
    return weights


@case("q1", points=2, hint="one distance for each task and query; then which average of these distances?")
def random_predictions(student, rng):
    for shape in ((4, 3, 2), (1, 6, 3), (5, 1, 1)):
        a, b = rng.normal(size=shape), rng.normal(size=shape)
        distances = [sum((p - q) ** 2) ** 0.5 for u, v in zip(a, b, strict=True) for p, q in zip(u, v, strict=True)]
        expect_close(student.call("predictions_apart", a, b), averaged(student, distances), "the distance")


def compare_jacobian(student, rng, examples, x_dim, y_dim):
    """The student's Jacobian against a difference formula that is exact for polynomials up to the fourth power."""
    weights = [0.7 * weight for weight in draw_weights(rng, x_dim + y_dim, qk=x_dim + 1, v=y_dim + 2)]
    x, y, query = rng.normal(size=(examples, x_dim)), rng.normal(size=(examples, y_dim)), rng.normal(size=x_dim)
    wanted = np.empty((y_dim, x_dim))
    for b, axis in enumerate(np.eye(x_dim)):
        at = {h: predicted(weights, x, y, query + h * axis) for h in (-2, -1, 1, 2)}
        wanted[:, b] = (at[-2] - 8 * at[-1] + 8 * at[1] - at[2]) / 12
    given = (x, y) if student.variant["layout"] == "rows" else (x.T, y.T)
    expect_close(student.call("sensitivity", weights, *given, query), wanted, "the Jacobian", rtol=1e-5)


@case("q2", points=2, hint="compare with differences of predict; the query is a key and a value as well")
def one_target(student, rng):
    for examples, x_dim in ((5, 3), (1, 4), (9, 2)):
        compare_jacobian(student, rng, examples, x_dim, 1)


@case("q2", points=2, hint="several targets: a row of the Jacobian for each")
def several_targets(student, rng):
    for examples, x_dim, y_dim in ((6, 2, 3), (2, 4, 2)):
        compare_jacobian(student, rng, examples, x_dim, y_dim)


def compared(student, a, b):
    """The student's two measures."""
    measures = student.call("compare_sensitivities", a, b)
    if isinstance(measures, np.ndarray):
        measures = list(measures)
    expect(isinstance(measures, (tuple, list)) and len(measures) == 2, "two numbers have to be returned")
    return measures


@case("q3", points=2, hint="several targets: all entries of a Jacobian are one vector; averages come last")
def random_jacobians(student, rng):
    for shape in ((4, 3, 2, 3), (1, 5, 1, 4), (3, 1, 2, 2)):
        a = rng.normal(size=shape) * rng.uniform(0.2, 3.0, size=(*shape[:2], 1, 1))
        b = 0.5 * a + rng.normal(size=shape)
        pairs = list(zip(a.reshape(-1, shape[2] * shape[3]), b.reshape(-1, shape[2] * shape[3]), strict=True))
        difference, cosine = compared(student, a, b)
        wanted = averaged(student, [sum((u - v) ** 2) ** 0.5 for u, v in pairs])
        expect_close(difference, wanted, "the difference")
        angle = np.mean([u @ v / (u @ u) ** 0.5 / (v @ v) ** 0.5 for u, v in pairs])
        expect_close(cosine, angle, "the cosine")


@case("q3", points=1, hint="a Jacobian of zeros among others: its cosine counts as 0, in the mean as well")
def a_jacobian_of_zeros(student, rng):
    a = rng.normal(size=(3, 2, 2, 2))
    b = a * rng.uniform(0.5, 2.0, size=(3, 2, 1, 1))
    a[1, 0], b[2, 1] = 0.0, 0.0
    _, cosine = compared(student, a, b)
    expect_close(cosine, 4 / 6, "the cosine, where two of the Jacobians are zero and the others point the same way")


def is_the_same_function(student, rng, x_dim, y_dim, qk, v):
    """The disguised layer has the keys and values that were asked for, and makes the same predictions."""
    weights = draw_weights(rng, x_dim + y_dim, qk, v)
    a, b = draw_mixer(rng, qk), draw_mixer(rng, v)
    other = four_matrices(student, "disguise", weights, a, b)
    token = x_dim + y_dim
    shapes = ((qk, token), (qk, token), (v, token), (token, v))
    other = [
        expect_array(matrix, shape, name)
        for matrix, shape, name in zip(other, shapes, ("w_k", "w_q", "w_v", "w_p"), strict=True)
    ]
    expect_close(other[0], a @ weights[0], "the new w_k")
    expect_close(other[2], b @ weights[2], "the new w_v")
    for _ in range(3):
        task = rng.normal(size=(4, x_dim)), rng.normal(size=(4, y_dim)), rng.normal(size=x_dim)
        expect_close(predicted(other, *task), predicted(weights, *task), "the prediction in disguise", {}, rtol=1e-7)


@case("q4", points=2, hint="a and b need not be symmetric or orthogonal: check each inverse and each transposition")
def any_keys_and_values(student, rng):
    for x_dim, y_dim in ((2, 1), (3, 2)):
        is_the_same_function(student, rng, x_dim, y_dim, x_dim + y_dim, x_dim + y_dim)


@case("q4", points=1, hint="keys and values may have fewer or more numbers than a token")
def other_sizes(student, rng):
    is_the_same_function(student, rng, 3, 1, 2, 5)
    is_the_same_function(student, rng, 2, 2, 6, 1)


def two_products(student, weights, x_dim):
    """What canonical returned, if it is two things."""
    products = student.call("canonical", weights, x_dim)
    expect(isinstance(products, (tuple, list)) and len(products) == 2, "canonical has to return two matrices")
    return products


def draw_scaled(rng, token, x_dim):
    """Weights whose scale is well away from zero."""
    while True:
        weights = draw_weights(rng, token, token + 1, token + 2)
        if abs(np.trace((weights[0].T @ weights[1])[:x_dim, :x_dim])) > 0.5:
            return weights


@case("q5", points=2, hint="which rows of the one product, which columns of the other? whose diagonal, and its mean?")
def products_of_random_weights(student, rng):
    for x_dim, y_dim in ((3, 1), (2, 3), (4, 2)):
        weights = draw_scaled(rng, x_dim + y_dim, x_dim)
        w_k, w_q, w_v, w_p = weights
        scale = np.mean([w_k[:, i] @ w_q[:, i] for i in range(x_dim)])
        write, score = two_products(student, weights, x_dim)
        expect_close(write, scale * np.einsum("av,vt->at", w_p[x_dim:], w_v), "the first product")
        expect_close(score, np.einsum("qt,qb->tb", w_k, w_q[:, :x_dim]) / scale, "the second product")


@case("q5", points=1, hint="a layer in disguise, and with other numbers where nobody reads: is the result the same?")
def the_same_in_disguise(student, rng):
    weights = draw_scaled(rng, 4, 3)
    a, b = draw_mixer(rng, 5), draw_mixer(rng, 6)
    w_k, w_q, w_v, w_p = weights
    factor = rng.uniform(-4.0, -2.0)
    other = [a @ w_k, np.linalg.solve(a.T, w_q) * factor, b @ w_v, np.linalg.solve(b.T, w_p.T).T / factor]
    other[1][:, 3:], other[3][:3] = rng.normal(size=(5, 1)), rng.normal(size=(3, 6))
    once, again = two_products(student, weights, 3), two_products(student, other, 3)
    for name, one, two, shape in zip(("the first", "the second"), once, again, ((1, 4), (4, 3)), strict=True):
        one = expect_array(one, shape, f"{name} product")
        expect(np.abs(one).max() > 0.01, f"{name} product is zero")
        expect_close(two, one, f"{name} product, for another layer of the same function", rtol=1e-7)
    different = two_products(student, [w_k, w_q + 0.1 * rng.normal(size=w_q.shape), w_v, w_p], 3)
    changed = np.abs(expect_array(different[1], (4, 3), "the second product") - once[1]).max()
    expect(changed > 1e-4, "another function has the same products")


def is_hidden(student, queries):
    """A direction of length one that no query sees."""
    delta = expect_array(student.call("blind_spot", queries), (queries.shape[1],), "the change")
    expect_number(float(np.linalg.norm(delta)), "the length of the change")
    expect(abs(np.linalg.norm(delta) - 1) < 1e-8, "the change does not have length 1")
    expect(np.abs(queries @ delta).max() < 1e-8 * np.abs(queries).max(), "some answer betrays the change")


@case("q6", points=1, hint="one query only, and as many as there may be")
def random_queries(student, rng):
    for count, x_dim in ((1, 4), (3, 4), (2, 6)):
        is_hidden(student, rng.normal(size=(count, x_dim)))


@case("q6", points=1, hint="queries that repeat, and queries along an axis: does the method still find a direction?")
def repeated_queries_and_axes(student, rng):
    first, other = np.eye(5)[0], rng.normal(size=5)
    is_hidden(student, np.array([first, other, other, 2 * first]))
    is_hidden(student, np.array([np.eye(5)[4], rng.normal(size=5), np.eye(5)[2]]))
