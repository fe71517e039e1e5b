"""Hidden cases of "Many steps"."""

import numpy as np

from mesa_lib.assignments import case, expect, expect_array, expect_close, expect_number


def laid(student, array):
    """An array with examples in rows, as the variant lays it."""
    return array.T if student.variant["layout"] == "columns" else array


def weight(student, examples):
    """What stands before the sum over examples."""
    return 1 / examples if student.variant["loss"] == "mean" else 1.0


def draw_inputs(rng, examples, x_dim):
    """Inputs in rows; the eigenvalues of their mean second moment lie between 0.4 and 2.5, none alike."""
    left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0] for size in (examples, x_dim))
    count = min(examples, x_dim)
    middle = np.zeros((examples, x_dim))
    np.fill_diagonal(middle, np.linspace(0.7, 1.5, count) * rng.uniform(0.95, 1.05, size=count) * examples**0.5)
    return left @ middle @ right


def moments(student, x):
    """The matrix that acts on errors of W; its eigenvalues decide everything."""
    return weight(student, len(x)) * sum(np.outer(x_i, x_i) for x_i in x)


def draw_etas(student, rng, examples, count):
    """Step sizes, all different, that converge for the inputs above."""
    return rng.uniform(0.1, 0.7, size=count) / (examples * weight(student, examples))


def stepped(student, x, y, etas):
    """Weights after gradient descent from zero, example by example."""
    w = np.zeros((y.shape[1], x.shape[1]))
    for eta in etas:
        total = sum(np.outer(w @ x_i - y_i, x_i) for x_i, y_i in zip(x, y, strict=True))
        w = w - eta * weight(student, len(x)) * total
    return w


def compare_stack(student, rng, examples, x_dim, y_dim, queries, layers):
    """The student's stack against explicit steps."""
    x, y = draw_inputs(rng, examples, x_dim), rng.normal(size=(examples, y_dim))
    x_query, etas = rng.normal(size=(queries, x_dim)), draw_etas(student, rng, examples, layers)
    slots = student.call("layer_stack", laid(student, x), laid(student, y), laid(student, x_query), etas)
    expect(isinstance(slots, (tuple, list)) and len(slots) == 2, "layer_stack has to return two arrays of slots")
    w = stepped(student, x, y, etas)
    expect_close(slots[1], laid(student, -x_query @ w.T), "the array of query slots")
    expect_close(slots[0], laid(student, y - x @ w.T), "the array of context slots")


@case(
    "q1", points=2, hint="compare with your own gradient descent: one layer first, then two with different step sizes"
)
def a_stack_against_steps(student, rng):
    for examples, x_dim, layers in ((6, 3, 2), (9, 4, 5), (3, 5, 3)):
        compare_stack(student, rng, examples, x_dim, 1, 1, layers)


@case("q1", points=1, hint="several targets, several queries, one example: which axis is which?")
def a_stack_for_many_queries(student, rng):
    for examples, x_dim, y_dim, queries in ((7, 3, 2, 5), (1, 2, 3, 4)):
        compare_stack(student, rng, examples, x_dim, y_dim, queries, 3)


@case(
    "q1", points=2, hint="compare the direction of your step with finite differences of L; then check the factor of N"
)
def descent_against_steps(student, rng):
    for examples, x_dim, y_dim, steps in ((6, 3, 1, 4), (4, 5, 3, 3), (1, 2, 2, 2)):
        x, y = draw_inputs(rng, examples, x_dim), rng.normal(size=(examples, y_dim))
        etas = draw_etas(student, rng, examples, steps)
        w = student.call("descend", laid(student, x), laid(student, y), etas)
        expect_close(w, stepped(student, x, y, etas), "the matrix W")


def compare_curve(student, rng, examples, x_dim, y_dim, steps):
    """The student's losses against a descent that is really taken; the targets are noise that no weights fit."""
    x, y = draw_inputs(rng, examples, x_dim), rng.normal(size=(examples, y_dim))
    eta = draw_etas(student, rng, examples, 1).item()
    losses = expect_array(
        student.call("loss_curve", laid(student, x), laid(student, y), eta, steps), (steps + 1,), "the array of losses"
    )
    taken = [stepped(student, x, y, [eta] * count) for count in range(steps + 1)]
    wanted = [weight(student, examples) * np.sum((x @ w.T - y) ** 2) / 2 for w in taken]
    expect_close(losses, np.array(wanted), "the array of losses")


@case("q2", points=2, hint="more examples than inputs, and targets that no weights fit: does the loss keep its floor?")
def losses_with_a_floor(student, rng):
    for examples, x_dim in ((8, 3), (5, 1)):
        compare_curve(student, rng, examples, x_dim, 1, 12)


@case("q2", points=1, hint="several targets; and fewer examples than inputs")
def losses_for_other_shapes(student, rng):
    for examples, x_dim, y_dim in ((6, 2, 3), (2, 4, 2)):
        compare_curve(student, rng, examples, x_dim, y_dim, 8)


def worst_factor(student, x, eta):
    """The largest factor by which a step multiplies an error."""
    return np.abs(1 - eta * np.linalg.eigvalsh(moments(student, x))).max()


@case("q3", points=2, hint="try it: a thousand steps with a step size just below yours, and just above")
def just_below_and_just_above(student, rng):
    for examples, x_dim in ((9, 3), (2, 5), (4, 4)):
        x = draw_inputs(rng, examples, x_dim) * rng.uniform(0.5, 2.0)
        limit = expect_number(student.call("largest_eta", laid(student, x)), "the step size")
        above = worst_factor(student, x, (1 + 1e-6) * limit)
        expect(above > 1 + 1e-6, "a step size that is slightly larger still converges")
        below = worst_factor(student, x, (1 - 1e-6) * limit)
        expect(below <= 1 + 1e-9, "a step size that is slightly smaller diverges already")


@case("q4", points=2, hint="is the worst factor smaller at a slightly larger or a slightly smaller step size?")
def no_step_size_is_faster(student, rng):
    for examples, x_dim in ((8, 3), (5, 5), (20, 2)):
        x = draw_inputs(rng, examples, x_dim) * rng.uniform(0.5, 2.0)
        eta = expect_number(student.call("fastest_eta", laid(student, x)), "the step size")
        here = worst_factor(student, x, eta)
        expect(here < 1, "with this step size some error never becomes smaller")
        neighbours = [worst_factor(student, x, factor * eta) for factor in (0.9, 0.999, 1.001, 1.1)]
        expect(here < min(neighbours), "with a slightly larger or smaller step size the slowest direction is faster")


@case("q4", points=2, hint="take the steps: is one fewer not enough, and is this number enough?")
def enough_and_not_one_more(student, rng):
    for examples, x_dim, tolerance in ((7, 3, 1e-3), (6, 2, 0.2), (12, 5, 1e-6)):
        x = draw_inputs(rng, examples, x_dim) * rng.uniform(0.5, 2.0)
        values = np.linalg.eigvalsh(moments(student, x))
        factor = worst_factor(student, x, 1 / np.mean([values[0], values[-1]]))
        count = expect_number(student.call("steps_needed", laid(student, x), tolerance), "the number of steps")
        expect(count == round(count), "the number of steps is not a whole number")
        expect(count >= 1 and factor**count <= tolerance, "after so many steps some error is still too large")
        expect(factor ** (count - 1) > tolerance, "fewer steps are enough")


@case("q5", points=2, hint="take the steps on a small example: is the error in each eigenvector zero at some point?")
def arrives_at_least_squares(student, rng):
    for examples, x_dim, y_dim in ((6, 3, 1), (4, 4, 2), (9, 2, 3)):
        x, y = draw_inputs(rng, examples, x_dim), rng.normal(size=(examples, y_dim))
        etas = expect_array(student.call("exact_etas", laid(student, x)), (x_dim,), "the array of step sizes")
        wanted = np.linalg.lstsq(x, y, rcond=None)[0].T
        expect_close(stepped(student, x, y, etas), wanted, "the matrix W after these steps", rtol=1e-6)
