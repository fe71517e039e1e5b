"""Hidden cases of the demonstration."""

import numpy as np

from mesa_lib.assignments import case, expect, expect_close, expect_number


def by_hand(tokens, w_k, w_q, w_v, w_p):
    """One token after the other."""
    moved = tokens.copy()
    for j in range(tokens.shape[1]):
        for i in range(tokens.shape[1]):
            score = (w_k @ tokens[:, i]) @ (w_q @ tokens[:, j])
            moved[:, j] += w_p @ (w_v @ tokens[:, i]) * score
    return moved


@case("q1", points=3, hint="does it hold for weights that are not symmetric, and for more tokens than dimensions?")
def random_weights(student, rng):
    for _ in range(3):
        d, n = rng.integers(2, 6), rng.integers(3, 9)
        tokens, weights = rng.normal(size=(d, n)), rng.normal(size=(4, d, d))
        turn = np.transpose if student.variant["layout"] == "rows" else np.asarray
        expect_close(
            student.call("lsa_step", turn(tokens), *weights), turn(by_hand(tokens, *weights)), "the new tokens"
        )


@case("q2", points=1, hint="what happens to the best step when every feature doubles?")
def scaling(student, rng):
    x = rng.normal(size=(20, 4))
    y = x @ rng.normal(size=4)
    eta = expect_number(student.call("best_eta", x, y), "the step")
    expect(eta > 0, "the step has to move downhill")
    expect_close(student.call("best_eta", 2 * x, y), eta / 4, "the step for doubled features")


@case("q2", points=2, hint="is the loss lower at a slightly larger or smaller step? check the factors of N")
def no_step_is_better(student, rng):
    x = rng.normal(size=(20, 4))
    y = x @ rng.normal(size=4)
    gradient = -x.T @ y / 20
    eta = expect_number(student.call("best_eta", x, y), "the step")

    def loss(step):
        return np.mean((x @ (-step * gradient) - y) ** 2) / 2

    assert loss(eta) < loss(0.0)
    assert all(loss(eta) <= loss(eta * factor) for factor in (0.9, 0.99, 1.01, 1.1))
