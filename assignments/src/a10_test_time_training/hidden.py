"""Hidden cases of "Test-time training"."""

import math

import numpy as np

from mesa_lib.assignments import case, expect_close, expect_number


def laid(student, rows):
    """Tokens in rows, as the variant lays them."""
    return rows.T if student.variant["layout"] == "columns" else rows


def slope(student):
    """The factor of the gradient: 2 without the half in the loss, 1 with it."""
    return 2.0 if student.variant["loss"] == "square" else 1.0


def draw(rng, tokens, key_dim, value_dim):
    """Queries, keys and values in rows."""
    return rng.normal(size=(tokens, key_dim)), rng.normal(size=(tokens, key_dim)), rng.normal(size=(tokens, value_dim))


def asked(student, function, arrays, *others):
    """The student's answers, for tokens in rows."""
    return student.call(function, *(laid(student, array) for array in arrays), *others)


def attended(q, k, v):
    """Causal linear attention, number by number."""
    return np.array([sum(v[s] * math.fsum(k[s] * q[t]) for s in range(t + 1)) for t in range(len(q))])


@case("q1", points=2, hint="keys and queries have their own roles; values may be of another size than keys")
def random_sequences(student, rng):
    for sizes in ((6, 3, 2), (3, 4, 5), (1, 2, 3)):
        arrays = draw(rng, *sizes)
        expect_close(
            asked(student, "causal_attention", arrays), laid(student, attended(*arrays)), "the array of answers"
        )


@case("q1", points=1, hint="does an answer change when a later token changes? a token reads itself, too")
def the_future_does_not_matter(student, rng):
    q, k, v = draw(rng, 7, 3, 2)
    changed = [np.vstack([array[:4], rng.normal(size=array[4:].shape)]) for array in (q, k, v)]
    wanted = attended(q, k, v)[:4]
    got = asked(student, "causal_attention", changed)
    expect_close(got, laid(student, attended(*changed)), "the array of answers")
    expect_close(laid(student, np.array(got))[:4], wanted, "the answers before the change")


def read(student, q, k, v, w_0, eta, batch_size):
    """Answers by gradients from differences of the loss, exact for a quadratic loss, entry by entry."""

    def loss(w, key, value):
        return slope(student) / 2 * sum((w @ key - value) ** 2)

    def gradient(w, key, value):
        units = np.eye(w.size).reshape(-1, *w.shape)
        return np.array([(loss(w + u, key, value) - loss(w - u, key, value)) / 2 for u in units]).reshape(w.shape)

    answers, point, state = [], w_0, w_0
    for t in range(len(q)):
        point = state if t % batch_size == 0 else point
        state = state - eta * gradient(point, k[t], v[t])
        answers.append(state @ q[t])
    return np.array(answers)


def draw_start(rng, tokens, key_dim, value_dim):
    """A sequence, a start that is not zero, a step size."""
    return draw(rng, tokens, key_dim, value_dim), rng.normal(size=(value_dim, key_dim)), rng.uniform(0.05, 0.3)


@case("q2", points=1, hint="start from zero: is the factor of the gradient that of the loss of this assignment?")
def at_once_from_zero(student, rng):
    for sizes in ((5, 3, 2), (2, 4, 1)):
        arrays, w_0, eta = draw_start(rng, *sizes)
        wanted = laid(student, read(student, *arrays, 0 * w_0, eta, len(arrays[0])))
        expect_close(asked(student, "read_at_once", arrays, 0 * w_0, eta), wanted, "the array of answers")


@case("q2", points=2, hint="a start that is not zero: what does W_0 answer by itself, and what are the residuals?")
def at_once_from_anywhere(student, rng):
    for sizes in ((6, 3, 2), (1, 2, 4), (4, 5, 3)):
        arrays, w_0, eta = draw_start(rng, *sizes)
        wanted = laid(student, read(student, *arrays, w_0, eta, len(arrays[0])))
        expect_close(asked(student, "read_at_once", arrays, w_0, eta), wanted, "the array of answers")


@case("q2", points=1, hint="the factor of the gradient and eta together have to be one")
def the_step_of_theorem_1(student, rng):
    arrays = draw(rng, 5, 3, 2)
    eta = expect_number(student.get("eta_of_attention"), "eta_of_attention")
    trained = read(student, *arrays, np.zeros((2, 3)), eta, 5)
    expect_close(trained, attended(*arrays), "the layer with your eta, held against linear attention")


def in_batches(student, rng, sizes, batch_size):
    """The student's answers against those by differences."""
    arrays, w_0, eta = draw_start(rng, *sizes)
    wanted = laid(student, read(student, *arrays, w_0, eta, batch_size))
    expect_close(asked(student, "read_in_batches", arrays, w_0, eta, batch_size), wanted, "the array of answers")


@case("q3", points=2, hint="batches of one: the gradient of a token is taken at the state after the token before")
def online(student, rng):
    for sizes in ((6, 3, 2), (1, 2, 4)):
        in_batches(student, rng, sizes, 1)


@case("q3", points=1, hint="one batch for all: every gradient is taken at W_0, and still each token has its own answer")
def one_batch(student, rng):
    for sizes in ((6, 3, 2), (4, 5, 1)):
        in_batches(student, rng, sizes, sizes[0])


@case("q3", points=2, hint="batches of three, the last one shorter: at which state are its gradients taken?")
def several_batches(student, rng):
    for tokens, batch_size in ((8, 3), (6, 2), (7, 5)):
        in_batches(student, rng, (tokens, 4, 2), batch_size)


def best_constants(q, k, v):
    """The constants, by weighted least squares; the largest score is taken away first."""
    answers = []
    for t in range(len(q)):
        scores = k[: t + 1] @ q[t]
        roots = np.exp((scores - scores.max()) / 2)[:, None]
        answers.append(np.linalg.lstsq(roots, roots * v[: t + 1], rcond=None)[0][0])
    return np.array(answers)


@case("q4", points=2, hint="the weighted residuals of z add up to zero over the tokens that were read so far")
def random_constants(student, rng):
    for sizes in ((6, 3, 2), (3, 4, 5), (1, 2, 3)):
        arrays = draw(rng, *sizes)
        wanted = laid(student, best_constants(*arrays))
        expect_close(asked(student, "local_constant", arrays), wanted, "the array of answers")


@case("q4", points=1, hint="scores of some thousands: is the largest one taken from the tokens read so far only?")
def large_scores(student, rng):
    q, k, v = draw(rng, 6, 3, 2)
    q, k[-1] = 2e3 * q, 50 * k[-1]
    expect_close(
        asked(student, "local_constant", (q, k, v)), laid(student, best_constants(q, k, v)), "the array of answers"
    )
