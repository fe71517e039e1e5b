"""Hidden cases of "The step size"."""

from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar

from mesa_lib.assignments import case, expect, expect_close, expect_number


def draw_task(rng, examples, x_dim, y_dim):
    """Inputs and noisy targets, in rows."""
    x = rng.normal(size=(examples, x_dim)) * rng.uniform(0.5, 2.0, size=x_dim)
    return x, x @ rng.normal(size=(x_dim, y_dim)) + 0.3 * rng.normal(size=(examples, y_dim))


def laid(student, array):
    """An array with examples in rows (its last axis but one), as the variant lays it."""
    return np.swapaxes(array, -1, -2) if student.variant["layout"] == "columns" else array


def eta_of(student, x, y):
    """The student's step for one task."""
    return expect_number(student.call("best_eta", laid(student, x), laid(student, y)), "the step")


def weight(student, examples):
    """What stands before the sum over examples."""
    return 1 / examples if student.variant["loss"] == "mean" else 1.0


def loss_after(student, eta, x, y):
    """The loss after a step from zero, example by example."""
    factor = weight(student, len(x))
    w = eta * factor * sum(np.outer(y_i, x_i) for x_i, y_i in zip(x, y, strict=True))
    return 0.5 * factor * sum(np.sum((w @ x_i - y_i) ** 2) for x_i, y_i in zip(x, y, strict=True))


def is_lowest(student, rng, examples, x_dim, y_dim):
    """The loss is lower than at zero, and no neighbour is lower."""
    x, y = draw_task(rng, examples, x_dim, y_dim)
    eta = eta_of(student, x, y)
    here = loss_after(student, eta, x, y)
    expect(here < loss_after(student, 0.0, x, y), "after this step the loss is not lower than before")
    neighbours = [loss_after(student, factor * eta, x, y) for factor in (0.9, 0.999, 1.001, 1.1)]
    expect(here <= min(neighbours), "a slightly larger or smaller step has a lower loss")


@case("q1", points=3, hint="is the loss lower at a slightly larger or smaller step? check the factors of N")
def no_step_is_better(student, rng):
    for examples, x_dim in ((12, 3), (2, 5), (1, 2)):
        is_lowest(student, rng, examples, x_dim, 1)


@case("q1", points=1, hint="several targets share one step: which sums run over all entries of the gradient?")
def several_targets(student, rng):
    is_lowest(student, rng, 9, 4, 3)


@case("q1", points=1, hint="what happens to the best step when every input doubles, and when every target does?")
def scaling(student, rng):
    x, y = draw_task(rng, 8, 3, 1)
    eta = eta_of(student, x, y)
    expect(eta > 0, "the step has to move downhill")
    expect_close(eta_of(student, 2 * x, y), eta / 4, "the step for doubled inputs")
    expect_close(eta_of(student, x, 3 * y), eta, "the step for targets three times as large")


def draw_tasks(rng, tasks, examples, x_dim):
    """Many tasks with a query each: x, y, x_query, y_query, in rows."""
    x, x_query = rng.normal(size=(tasks, examples, x_dim)), rng.normal(size=(tasks, x_dim))
    w = rng.normal(size=(tasks, x_dim))
    return x, np.einsum("tni,ti->tn", x, w), x_query, np.sum(w * x_query, axis=1)


def mean_query_loss(student, eta, x, y, x_query, y_query):
    """The mean loss of the queries, task by task."""
    predictions = [
        eta * weight(student, len(y_t)) * sum(y_i * (x_i @ q) for x_i, y_i in zip(x_t, y_t, strict=True))
        for x_t, y_t, q in zip(x, y, x_query, strict=True)
    ]
    return np.mean((np.array(predictions) - y_query) ** 2) / 2


@case("q2", points=3, hint="compare with a search along eta on the mean loss of all tasks")
def agrees_with_a_search(student, rng):
    for tasks, examples, x_dim in ((30, 6, 3), (7, 2, 4)):
        x, y, x_query, y_query = draw_tasks(rng, tasks, examples, x_dim)
        found = minimize_scalar(lambda eta, data=(x, y, x_query, y_query): mean_query_loss(student, eta, *data)).x
        eta = student.call("best_shared_eta", laid(student, x), y, x_query, y_query)
        expect_close(eta, found, "the step", rtol=1e-5)


@case("q2", points=1, hint="a task whose targets are all zero predicts zero with every step: it must not count")
def doubled_inputs_and_a_task_without_targets(student, rng):
    x, y, x_query, y_query = draw_tasks(rng, 12, 5, 3)
    y[0], y_query[0] = 0.0, 0.0
    without = student.call("best_shared_eta", laid(student, x[1:]), y[1:], x_query[1:], y_query[1:])
    with_it = student.call("best_shared_eta", laid(student, 2 * x), y, 2 * x_query, y_query)
    quarter = expect_number(without, "the step") / 4
    expect(abs(quarter) > 1e-6, "this step does not move")
    expect_close(with_it, quarter, "the step for doubled inputs, with one task more whose targets are zero", rtol=1e-5)


def exact_eta(student, examples, x_dim, input_range):
    """E tr S and E tr S^2 by adding up all contexts on a grid: three nodes are exact up to the fifth power."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    size = examples * x_dim
    contexts = input_range * np.array(list(product(nodes, repeat=size))).reshape(-1, examples, x_dim)
    chances = np.prod(np.array(list(product(weights / 2, repeat=size))), axis=1)
    moments = np.swapaxes(contexts, 1, 2) @ contexts
    first = chances @ np.trace(moments, axis1=1, axis2=2)
    second = chances @ np.trace(moments @ moments, axis1=1, axis2=2)
    return first / second / weight(student, examples)


@case("q3", points=3, hint="count the terms of tr S^2: which contain the fourth moment of one coordinate?")
def agrees_with_exact_expectations(student, rng):
    for examples, x_dim in ((1, 3), (3, 2), (2, 3), (5, 1)):
        input_range = rng.uniform(0.3, 2.0)
        eta = student.call("expected_eta", examples, x_dim, input_range)
        expect_close(eta, exact_eta(student, examples, x_dim, input_range), "the step")


@case("q3", points=1, hint="twice the range is four times the second moment")
def scales_with_the_range(student, rng):
    examples, x_dim, input_range = int(rng.integers(2, 30)), int(rng.integers(1, 20)), rng.uniform(0.3, 2.0)
    eta = expect_number(student.call("expected_eta", examples, x_dim, input_range), "the step")
    expect(eta > 0, "the step has to move downhill")
    wider = student.call("expected_eta", examples, x_dim, 3 * input_range)
    expect_close(wider, eta / 9, "the step for three times the range")


@case("q4", points=2, hint="a straight line through the logarithms of both, by least squares over all points")
def noisy_law(student, rng):
    r = np.sort(rng.uniform(0.2, 5.0, size=9))
    eta = 1.7 * r ** rng.uniform(-3.0, 3.0) * np.exp(0.1 * rng.normal(size=9))
    u, v = np.log(r) - np.log(r).mean(), np.log(eta)
    expect_close(student.call("power", r, eta), (u @ v) / (u @ u), "the power")
