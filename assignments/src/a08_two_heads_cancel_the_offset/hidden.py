"""Hidden cases of "Two heads cancel the offset"."""

import cmath
import math

import numpy as np

from mesa_lib.assignments import case, expect, expect_array, expect_close, expect_number


def laid(student, rows):
    """Inputs or queries in rows, as the variant lays them."""
    return rows.T if student.variant["layout"] == "columns" else rows


def one_head(x, y, query, beta):
    """One head's answer to one query, example by example; beta may be complex."""
    scores = [beta * float(x_i @ query) for x_i in x]
    top = max(score.real for score in map(complex, scores))
    weights = [cmath.exp(score - top) for score in scores]
    return sum(weight * y_i for weight, y_i in zip(weights, y, strict=True)) / sum(weights)


def answers(x, y, queries, betas, outputs):
    """Several heads, one after the other."""
    return np.array([
        sum(a * one_head(x, y, query, b).real for a, b in zip(outputs, betas, strict=True)) for query in queries
    ])  # fmt: skip


def centred_step(student, x, y, queries, eta):
    """The step on centred inputs: in a pair of examples only differences of inputs and of targets count."""
    n = len(x)
    pairs = [(y[i] - y[j]) * (x[i] - x[j]) for i in range(n) for j in range(i)]
    total = sum(pairs, start=np.zeros(x.shape[1])) / n
    return eta * queries @ total / (n if student.variant["loss"] == "mean" else 1)


def draw(rng, examples, queries, x_dim, shift=1.0):
    """Inputs whose mean is not zero, targets, queries."""
    x = rng.normal(size=(examples, x_dim)) + shift * rng.normal(size=x_dim)
    return x, x @ rng.normal(size=x_dim) + rng.normal(size=examples), rng.normal(size=(queries, x_dim))


@case("q1", points=2, hint="each head has shares of its own, that add up to one over the examples, for each query")
def random_layers(student, rng):
    for examples, queries, x_dim, num in ((6, 1, 3, 2), (4, 5, 2, 3), (1, 2, 3, 1)):
        x, y, x_query = draw(rng, examples, queries, x_dim)
        betas, outputs = rng.normal(size=num), rng.normal(size=num)
        got = student.call("heads", laid(student, x), y, laid(student, x_query), betas, outputs)
        expect_close(got, answers(x, y, x_query, betas, outputs), "the array of answers")


@case(
    "q1", points=1, hint="scores of some thousands, of both signs: take the largest one away, for each head and query"
)
def large_scores(student, rng):
    x, y, x_query = draw(rng, 5, 4, 3)
    x_query[0] *= 1e-3
    betas, outputs = np.array([4e3, -3e3, 1.0]) * rng.uniform(0.9, 1.1), rng.normal(size=3)
    got = student.call("heads", laid(student, x), y, laid(student, x_query), betas, outputs)
    expect_close(got, answers(x, y, x_query, betas, outputs), "the array of answers")


def first_order_is_right(student, x, y, x_query):
    """The offset is the head at beta = 0, the slope its derivative there, by a step along the imaginary axis."""
    given = student.call("first_order", laid(student, x), y, laid(student, x_query))
    expect(isinstance(given, (tuple, list)) and len(given) == 2, "expected the offset and the slopes")
    expect_close(given[0], one_head(x, y, x_query[0], 0.0).real, "the offset")
    slopes = [one_head(x, y, query, 1e-30j).imag / 1e-30 for query in x_query]
    expect_close(given[1], slopes, "the vector of slopes")


@case("q2", points=1, hint="inputs of mean zero, where the denominator is N to first order: what is left of the sum?")
def inputs_of_mean_zero(student, rng):
    for examples, x_dim in ((6, 3), (2, 4)):
        x, y, x_query = draw(rng, examples, 3, x_dim)
        first_order_is_right(student, x - x.mean(axis=0), y, x_query)


@case("q2", points=2, hint="inputs whose mean is not zero: the denominator moves with beta, too")
def inputs_of_any_mean(student, rng):
    for examples, x_dim in ((7, 2), (3, 5), (1, 3)):
        first_order_is_right(student, *draw(rng, examples, 4, x_dim))


def error_of_pair(student, task, eta, beta, y_scale=1.0):
    """How far the student's pair is from the step on centred inputs, relative to it."""
    x, y, x_query = task
    given = student.call("pair_of_heads", eta, beta, len(y))
    expect(isinstance(given, (tuple, list)) and len(given) == 2, "expected two vectors: betas, outputs")
    betas, outputs = (
        expect_array(a, (2,), name)
        for a, name in zip(given, ("the vector of betas", "the vector of outputs"), strict=True)
    )
    step = centred_step(student, x, y, x_query, eta)
    return np.linalg.norm(answers(x, y, x_query, betas, outputs) - step) / np.linalg.norm(step)


def draw_for_pair(rng, examples):
    """A task and a step size that is not one."""
    return draw(rng, examples, 12, 4), rng.uniform(0.3, 0.8)


@case("q3", points=2, hint="small scores: do the outputs make up for the size of beta, for eta and for N?")
def the_limit(student, rng):
    for examples in (5, 8, 13):
        task, eta = draw_for_pair(rng, examples)
        error = error_of_pair(student, task, eta, 1e-4)
        expect(error < 2e-2, "for small beta the two heads do not answer as the step on centred inputs")


@case("q3", points=3, hint="halve beta: does the error fall to a quarter? which of the powers of beta cancel?")
def the_order(student, rng):
    for examples in (5, 8, 13):
        task, eta = draw_for_pair(rng, examples)
        coarse, fine = (error_of_pair(student, task, eta, beta) for beta in (1e-3, 5e-4))
        expect(fine > 1e-13, "the error is zero: no two softmax heads can do this")
        expect(fine < 2e-2, "for small beta the two heads do not answer as the step on centred inputs")
        expect(3.6 < coarse / fine < 4.4, f"halving beta makes the error {coarse / fine:.2f} times smaller, and not 4")


def in_single_precision(x, y, x_query, beta):
    """Half the difference of two heads over beta, in float32; the factor of the convention does not matter here."""
    x, y, x_query, beta = np.float32(x), np.float32(y), np.float32(x_query), np.float32(beta)

    def head(sharpness):
        scores = sharpness * (x_query @ x.T)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True)) @ y

    return (head(beta) - head(-beta)) * (np.float32(0.5) / beta)


@case("q4", points=3, hint="is the largest score small, and is it still far above the rounding error of float32?")
def single_precision(student, rng):
    for size, query_size in ((1.0, 1.0), (2e-3, 1.0), (500.0, 3.0), (30.0, 1e-3)):
        x, y, x_query = draw(rng, 9, 20, 4, shift=0.3)
        x, x_query = size * x, query_size * x_query
        beta = expect_number(student.call("good_beta", laid(student, x), laid(student, x_query)), "beta")
        expect(beta > 0 and math.isfinite(1 / beta), "beta has to be positive")
        slope = np.array([one_head(x, y, query, 1e-30j).imag / 1e-30 for query in x_query])
        error = np.abs(in_single_precision(x, y, x_query, beta) - slope).max() / np.abs(slope).max()
        expect(error < 1e-3, f"for inputs and queries of one of the sizes tried, the relative error is {error:.0e}")
