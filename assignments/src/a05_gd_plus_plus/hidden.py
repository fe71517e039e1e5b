"""Hidden cases of "GD++"."""

import numpy as np

from mesa_lib.assignments import case, expect, expect_array, expect_close, expect_number


def laid(student, array):
    """An array with examples in rows, as the variant lays it."""
    return array.T if student.variant["layout"] == "columns" else array


def weight(student, examples):
    """What stands before the sums over examples."""
    return 1.0 if student.variant["moment"] == "sum" else 1 / examples


def draw_inputs(student, rng, examples, x_dim):
    """Inputs in rows; the eigenvalues of A are of the size of 1 in both conventions."""
    return rng.normal(size=(examples, x_dim)) / (examples * weight(student, examples)) ** 0.5


def preconditioned(student, x, y, alphas, gammas):
    """GD++ in weights: the step of every layer is preconditioned by the square of what has become of the inputs."""
    w, moved = np.zeros((y.shape[1], x.shape[1])), np.eye(x.shape[1])
    for alpha, gamma in zip(alphas, gammas, strict=True):
        residuals = [y_i - w @ x_i for x_i, y_i in zip(x, y, strict=True)]
        step = weight(student, len(x)) * sum(np.outer(r_i, x_i) for r_i, x_i in zip(residuals, x, strict=True))
        moment = weight(student, len(x)) * sum(np.outer(moved @ x_i, moved @ x_i) for x_i in x)
        w = w + alpha * step @ moved.T @ moved
        moved = (np.eye(len(moment)) - gamma * moment) @ moved
    return w


def compare_net(student, rng, examples, x_dim, y_dim, queries, layers):
    """The student's net on tokens against the algorithm in weights."""
    x, y = draw_inputs(student, rng, examples, x_dim), rng.normal(size=(examples, y_dim))
    x_query = rng.normal(size=(queries, x_dim))
    alphas, gammas = rng.uniform(0.2, 0.8, size=layers), rng.uniform(0.05, 0.3, size=layers)
    given = [laid(student, array) for array in (x, y, x_query)]
    wanted = x_query @ preconditioned(student, x, y, alphas, gammas).T
    expect_close(student.call("gdpp_predictions", *given, alphas, gammas), laid(student, wanted), "the prediction")


@case("q1", points=2, hint="two layers: the second one reads inputs that the first has moved, the query's too")
def two_layers(student, rng):
    for examples, x_dim in ((7, 3), (3, 5)):
        compare_net(student, rng, examples, x_dim, 1, 1, 2)


@case("q1", points=1, hint="more layers: the matrix A of a layer is made of the inputs that this layer gets")
def more_layers(student, rng):
    for examples, x_dim, layers in ((8, 3, 3), (6, 4, 5)):
        compare_net(student, rng, examples, x_dim, 1, 1, layers)


@case("q1", points=1, hint="several targets, several queries, one example: which axis is which?")
def many_targets_and_queries(student, rng):
    for examples, x_dim, y_dim, queries in ((6, 3, 2, 4), (1, 2, 3, 2)):
        compare_net(student, rng, examples, x_dim, y_dim, queries, 3)


@case("q1", points=1, hint="which of the gammas moves inputs that somebody reads afterwards?")
def the_last_gamma(student, rng):
    x, y = draw_inputs(student, rng, 7, 3), rng.normal(size=(7, 1))
    alphas, gammas = np.array([0.5, 0.7]), np.array([0.2, 0.1])
    given = [laid(student, array) for array in (x, y, rng.normal(size=(2, 3)))]
    shape = laid(student, np.zeros((2, 1))).shape
    once = expect_array(student.call("gdpp_predictions", *given, alphas, gammas), shape, "the prediction")
    again = student.call("gdpp_predictions", *given, alphas, np.array([0.2, 7.0]))
    first = expect_array(
        student.call("gdpp_predictions", *given, alphas, np.array([0.3, 0.1])), shape, "the prediction"
    )
    expect(np.abs(first - once).max() > 1e-6 * np.abs(once).max(), "the first gamma has no effect on a prediction")
    expect_close(again, once, "the prediction, for another gamma in the last layer")


@case("q2", points=2, hint="move random inputs, and compute the eigenvalues of their second moment before and after")
def eigenvalues_of_moved_inputs(student, rng):
    for x_dim, factor in ((3, 0.2), (5, 0.95), (2, 1.5)):
        x = rng.normal(size=(x_dim, 9)) / 3
        values, vectors = np.linalg.eigh(x @ x.T)
        gamma = factor / values[-1]
        moved = x - gamma * x @ x.T @ x
        wanted = [v @ moved @ moved.T @ v for v in vectors.T]
        expect_close(student.call("moved_eigenvalues", values, gamma), np.array(wanted), "the new spectrum")


@case("q3", points=2, hint="compare with what the net does to targets W x, for queries along eigenvectors")
def share_of_a_net(student, rng):
    for layers in (1, 2, 4):
        x, w = draw_inputs(student, rng, 9, 4), rng.normal(size=(1, 4))
        alphas, gammas = rng.uniform(0.2, 0.8, size=layers), rng.uniform(0.05, 0.4, size=layers)
        values, vectors = np.linalg.eigh(weight(student, 9) * x.T @ x)
        after = preconditioned(student, x, x @ w.T, alphas, gammas)
        wanted = 1 - (after @ vectors)[0] / (w @ vectors)[0]
        expect_close(student.call("share_left", values, alphas, gammas), wanted, "the share of the error", rtol=1e-7)


def condition(gamma, line):
    """The condition number after a layer, for eigenvalues along a line."""
    moved = line * (1 - gamma * line) ** 2
    return moved.max() / max(moved.min(), 1e-300)


@case("q4", points=2, hint="compute the condition number on a fine grid: is it smaller at a neighbouring gamma?")
def no_gamma_is_better(student, rng):
    for ratio in (1.3, 5.0, 200.0):
        smallest = rng.uniform(0.2, 3.0)
        line = np.geomspace(smallest, ratio * smallest, 20001)
        gamma = expect_number(student.call("best_gamma", smallest, ratio * smallest), "gamma")
        here = condition(gamma, line)
        expect(here < condition(0.0, line), "the condition number has not become smaller")
        for factor in (0.7, 0.99, 0.9999, 1.0001, 1.01, 1.4):
            expect(here < condition(factor * gamma, line), "a slightly larger or smaller gamma is better")


@case("q4", points=1, hint="all eigenvalues doubled: what is the unit of gamma?")
def gamma_has_a_unit(student, rng):
    smallest = rng.uniform(0.2, 1.0)
    gamma = expect_number(student.call("best_gamma", smallest, 6 * smallest), "gamma")
    expect(gamma > 0, "gamma has to shrink the largest eigenvalues")
    twice = student.call("best_gamma", 2 * smallest, 12 * smallest)
    expect_close(twice, gamma / 2, "gamma for doubled eigenvalues", rtol=2e-4)
    closer = expect_number(student.call("best_gamma", smallest, 3 * smallest), "gamma")
    expect(closer > gamma * 1.1, "gamma does not depend on both ends of the interval as it should")


@case("q5", points=2, hint="which pairs does a line run through? logarithms of both, all pairs, least squares")
def noisy_orders(student, rng):
    for order in rng.uniform(0.8, 3.0, size=2):
        logarithms = [-0.5]
        for _ in range(5):
            logarithms.append(order * logarithms[-1] - 0.3 + 0.1 * rng.normal())
        u, v = np.array(logarithms[:-1]), np.array(logarithms[1:])
        wanted = (u - u.mean()) @ v / ((u - u.mean()) @ u)
        expect_close(student.call("fitted_order", np.exp(logarithms)), wanted, "the order", rtol=1e-6)
