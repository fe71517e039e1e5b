"""Hidden cases of "Kernel regression"."""

import numpy as np

from mesa_lib.assignments import case, expect, expect_array, expect_close


def weight(student, examples):
    """What stands before the sum over examples."""
    return 1 / examples if student.variant["loss"] == "mean" else 1.0


def gaussian(x, width):
    """The kernel matrix, from inner products."""
    inner = x @ x.T
    return np.exp((inner - np.diag(inner) / 2 - np.diag(inner)[:, None] / 2) / width**2)


def has_phases(student):
    """Whether features have phases, or come in pairs."""
    return student.variant["features"] == "phases"


def drawn_features(student, rng, x, width, count):
    """The student's features of some inputs, with random numbers of ours."""
    numbers = [rng.normal(size=(count, x.shape[1]))]
    if has_phases(student):
        numbers.append(rng.uniform(size=count))
    return student.call("fourier_features", x, width, *numbers), numbers


@case("q1", points=2, hint="several inputs, and a width that is not 1: one feature after the other, by hand")
def one_feature_after_the_other(student, rng):
    for examples, x_dim, count in ((4, 3, 5), (1, 2, 7), (6, 1, 1)):
        x, width = rng.normal(size=(examples, x_dim)), rng.uniform(0.3, 3.0)
        got, numbers = drawn_features(student, rng, x, width, count)
        wanted = np.empty((examples, count if has_phases(student) else 2 * count))
        for row, x_i in zip(wanted, x, strict=True):
            for j, normal in enumerate(numbers[0]):
                angle = sum(u * v for u, v in zip(normal, x_i, strict=True)) / width
                if has_phases(student):
                    row[j] = (2 / count) ** 0.5 * np.cos(angle + 2 * np.pi * numbers[1][j])
                else:
                    row[j], row[count + j] = np.cos(angle) / count**0.5, np.sin(angle) / count**0.5
        expect_close(got, wanted, "the array of features")


@case("q1", points=1, hint="a hundred times as many frequencies: does the error of the kernel fall to a tenth?")
def error_falls_with_the_root(student, rng):
    # Over 780 pairs and three draws the slope has a standard deviation of 0.009, and in 1,500 trials it never was more
    # than 0.032 off; it leaves the band by chance less often than once in a million million.
    x, width, counts = rng.normal(size=(40, 8)), 1.2, (20, 500)
    kernel, errors = gaussian(x, width), []
    for count in counts:
        squares = []
        for _ in range(3):
            phi = expect_array(drawn_features(student, rng, x, width, count)[0], (40, None), "the array of features")
            squares.append(np.mean((phi @ phi.T - kernel) ** 2))
        errors.append(np.mean(squares) ** 0.5)
    slope = np.log(errors[1] / max(errors[0], 1e-300)) / np.log(25)
    expect(errors[1] < 0.1, "with 500 frequencies the inner products are still far from the kernel")
    expect(abs(slope + 0.5) < 0.1, "the error does not fall like one over the root of the number of features")


@case("q2", points=2, hint="all pairs, the pairs of an input with itself too; several inputs; features of any number")
def error_over_all_pairs(student, rng):
    for examples, x_dim, count in ((5, 3, 4), (2, 1, 9), (7, 2, 2)):
        x, width, phi = rng.normal(size=(examples, x_dim)), rng.uniform(0.5, 2.0), rng.normal(size=(examples, count))
        kernel = gaussian(x, width)
        squares = [(phi[i] @ phi[j] - kernel[i, j]) ** 2 for i in range(examples) for j in range(examples)]
        expect_close(student.call("kernel_error", x, width, phi), (sum(squares) / examples**2) ** 0.5, "the error")


def descended(student, phi, y, w, eta, penalty=0.0, steps=1):
    """Weights after gradient descent on features, example by example."""
    for _ in range(steps):
        total = sum(np.outer(w @ p - t, p) for p, t in zip(phi, y, strict=True))
        w = w - eta * (weight(student, len(y)) * total + penalty * w)
    return w


def compare_layer(student, rng, sizes, start):
    """The student's layer against a step in the weights."""
    examples, count, y_dim, queries = sizes
    phi, y, phi_query = (rng.normal(size=shape) for shape in ((examples, count), (examples, y_dim), (queries, count)))
    w_0, eta = start * rng.normal(size=(y_dim, count)), rng.uniform(0.1, 1.0)
    wanted = phi_query @ descended(student, phi, y, w_0, eta).T
    expect_close(student.call("feature_layer", phi, y, phi_query, w_0, eta), wanted, "the prediction")


@case("q3", points=1, hint="start with W_0 = 0: scores times values, and the step size with its factor")
def a_layer_from_zero(student, rng):
    for sizes in ((6, 3, 1, 1), (4, 7, 2, 3)):
        compare_layer(student, rng, sizes, 0.0)


@case("q3", points=2, hint="a start that is not zero: it is needed in the values and in the query's slot")
def a_layer_from_anywhere(student, rng):
    for sizes in ((6, 3, 1, 1), (1, 4, 2, 3), (5, 2, 3, 4)):
        compare_layer(student, rng, sizes, 1.0)


def compare_steps(student, rng, penalties):
    """The student's descent without features against one with features."""
    for (examples, count, y_dim, queries), steps in (((6, 3, 1, 2), 3), ((4, 9, 2, 3), 7), ((1, 2, 2, 1), 2)):
        phi, phi_query = (rng.normal(size=(rows, count)) / count**0.5 for rows in (examples, queries))
        y, eta, penalty = rng.normal(size=(examples, y_dim)), rng.uniform(0.1, 0.3), rng.choice(penalties)
        w = descended(student, phi, y, np.zeros((y_dim, count)), eta, penalty, steps)
        got = student.call("kernel_steps", phi @ phi.T, phi_query @ phi.T, y, eta, float(penalty), steps)
        expect_close(got, phi_query @ w.T, "the prediction")


@case("q4", points=2, hint="without penalty: compare two steps with two steps in the weights, for a few features")
def descent_without_penalty(student, rng):
    compare_steps(student, rng, [0.0])


@case("q4", points=1, hint="with a penalty: what does a step of its gradient take away from W, and so from alpha?")
def descent_with_penalty(student, rng):
    compare_steps(student, rng, [0.3, 0.7])


@case("q5", points=2, hint="take many steps and compare; or compare with ridge regression on a few features")
def ridge_regression_on_features(student, rng):
    for examples, count, y_dim in ((8, 3, 1), (3, 6, 2), (1, 2, 1)):
        phi, phi_query, y = (rng.normal(size=shape) for shape in ((examples, count), (4, count), (examples, y_dim)))
        penalty, factor = rng.uniform(0.1, 2.0), weight(student, examples)
        moments = factor * sum(np.outer(p, p) for p in phi) + penalty * np.eye(count)
        w = np.linalg.solve(moments, factor * phi.T @ y).T
        got = student.call("kernel_limit", phi @ phi.T, phi_query @ phi.T, y, penalty)
        expect_close(got, phi_query @ w.T, "the prediction")
