"""Hidden cases of "Softmax is a smoother"."""

import math

import numpy as np

from mesa_lib.assignments import case, expect, expect_array, expect_close, expect_number


def laid(student, rows):
    """An array with one thing in each row, as the variant lays it."""
    return rows.T if student.variant["layout"] == "columns" else rows


def sharpness(student, beta):
    """What the variant calls a sharpness of beta."""
    return beta if student.variant["sharpness"] == "beta" else 1 / beta


def mean_of(values, logs):
    """The mean of values (N, m) whose weights have these logarithms (N,), one value after the other."""
    top = max(logs)
    weights = [math.exp(log - top) for log in logs]
    return sum(weight * value for weight, value in zip(weights, values, strict=True)) / math.fsum(weights)


def smoothed(queries, keys, values, log_kernel):
    """The smoother's answers, in rows, one query after the other."""
    return np.array([mean_of(values, [log_kernel(key, query) for key in keys]) for query in queries])


def heads(queries, keys, values, beta):
    """The softmax head."""
    return smoothed(queries, keys, values, lambda key, query: beta * float(key @ query))


def gaussians(queries, keys, values, width):
    """The Gaussian smoother."""
    return smoothed(queries, keys, values, lambda key, query: -sum((key - query) ** 2) / (2 * width**2))


def draw(rng, examples, queries, x_dim, y_dim):
    """Queries, keys and values in rows."""
    return rng.normal(size=(queries, x_dim)), rng.normal(size=(examples, x_dim)), rng.normal(size=(examples, y_dim))


def asked(student, function, arrays, *numbers):
    """The student's answers on arrays in rows."""
    return student.call(function, *(laid(student, array) for array in arrays), *numbers)


@case("q1", points=2, hint="the shares of one query add up to one over the keys; the sharpness enters once")
def random_heads(student, rng):
    for sizes in ((6, 1, 3, 1), (4, 5, 2, 3), (1, 2, 3, 2)):
        arrays, beta = draw(rng, *sizes), rng.uniform(0.3, 3.0)
        wanted = laid(student, heads(*arrays, beta))
        expect_close(asked(student, "softmax_head", arrays, sharpness(student, beta)), wanted, "the array of answers")


@case("q1", points=1, hint="scores of some thousands: which number may be taken from all scores of one query?")
def large_scores(student, rng):
    arrays, beta = draw(rng, 5, 3, 4, 2), rng.uniform(3e3, 6e3)
    arrays[0][0] *= 1e-3
    wanted = laid(student, heads(*arrays, beta))
    expect_close(asked(student, "softmax_head", arrays, sharpness(student, beta)), wanted, "the array of answers")


@case("q2", points=2, hint="squared distances over twice the square of the width; several queries at once")
def random_smoothers(student, rng):
    for sizes in ((6, 1, 3, 1), (4, 5, 2, 3), (1, 2, 3, 2)):
        arrays, width = draw(rng, *sizes), rng.uniform(0.5, 2.0)
        wanted = laid(student, gaussians(*arrays, width))
        expect_close(asked(student, "gaussian_smoother", arrays, width), wanted, "the array of answers")


@case("q2", points=2, hint="compare the mixed term of the square with the score: where does the 2 go?")
def agreement_at_equal_length(student, rng):
    for _ in range(3):
        (queries, keys, values), beta = draw(rng, 7, 4, 3, 1), rng.uniform(0.2, 8.0)
        keys *= 1.5 / np.linalg.norm(keys, axis=1, keepdims=True)
        width = expect_number(student.call("matching_width", sharpness(student, beta)), "the width")
        expect(width > 0, "a width has to be positive")
        message = "at this width the Gaussian smoother does not agree with the head, for keys of equal length"
        expect(np.allclose(gaussians(queries, keys, values, width), heads(queries, keys, values, beta)), message)


@case("q3", points=3, hint="two keys, values 0 and 1: the answers depend on the sharpness times lengths squared")
def they_differ(student, rng):
    for beta in (1.0, rng.uniform(0.02, 0.1), rng.uniform(10, 50)):
        given = student.call("disagreement", sharpness(student, beta))
        expect(isinstance(given, (tuple, list)) and len(given) == 3, "expected three arrays: keys, values, query")
        names = ("the array of keys", "the array of values", "the query")
        k, v, q = (
            laid(student, expect_array(array, (None, None), name)) for name, array in zip(names, given, strict=True)
        )
        expect(
            len(k) == len(v) > 0 and len(q) == 1 and k.shape[1] == q.shape[1] > 0 and v.shape[1] == 1,
            "the shapes of keys, values and query do not fit together: N keys, N values, one query",
        )
        expect(v.min() >= 0 and v.max() <= 1, "the values have to be between 0 and 1")
        gap = abs(heads(q, k, v, beta) - gaussians(q, k, v, beta**-0.5)).item()
        expect(gap >= 0.9, f"for one of the sharpnesses asked for, the answers differ by {gap:.2f} only")


@case("q3", points=2, hint="which term of the square is missing in the score? with which factor, and which sign?")
def the_bias_mends_it(student, rng):
    for examples, x_dim in ((5, 3), (2, 4), (6, 1)):
        (queries, keys, values), beta = draw(rng, examples, 4, x_dim, 2), rng.uniform(0.3, 3.0)
        bias = student.call("key_bias", laid(student, keys), sharpness(student, beta))
        bias = expect_array(bias, (examples,), "the vector of biases")
        mended = np.array([mean_of(values, list(beta * keys @ query + bias)) for query in queries])
        expect(
            np.allclose(mended, gaussians(queries, keys, values, beta**-0.5), rtol=1e-8),
            "with these biases the head does not agree with the Gaussian smoother for every query",
        )


@case("q4", points=2, hint="is the key with the largest dot product always the nearest one? keys differ in length")
def random_limits(student, rng):
    for examples, x_dim, y_dim in ((6, 2, 1), (9, 4, 3), (1, 2, 2)):
        queries, keys, values = draw(rng, examples, 1, x_dim, y_dim)
        keys *= rng.uniform(0.2, 3.0, size=(examples, 1))
        flat, sharp = limits_of(student, queries[0], keys, values)
        expect_close(flat, mean_of(values, [0.0] * examples), "the answer in the flat limit")
        expect_close(sharp, heads(queries, keys, values, 1e12)[0], "the answer in the sharp limit")


@case("q4", points=1, hint="two keys with the largest score: what are their shares at any sharpness?")
def keys_that_share(student, rng):
    keys = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0], [2.0, 3.0]])
    query, values = np.array([1.0, 1.0]) * rng.integers(1, 5), rng.normal(size=(4, 2))
    keys[3] = [4.0, 0.0]
    _, sharp = limits_of(student, query, keys, values)
    expect_close(sharp, (values[1] + values[3]) / 2, "the answer in the sharp limit, with two equal largest scores")


def limits_of(student, query, keys, values):
    """The student's two limits."""
    given = student.call("extreme_answers", query, laid(student, keys), laid(student, values))
    there = isinstance(given, (tuple, list, np.ndarray)) and len(given) == 2
    expect(there, "expected two vectors: the flat limit, the sharp one")
    return given
