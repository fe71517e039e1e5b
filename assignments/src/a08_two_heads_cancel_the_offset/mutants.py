"""Mutants of "Two heads cancel the offset"."""

from mesa_lib.grading.source import Mutant

WEIGHTS = "weights = np.exp(scores - scores.max(axis=-1, keepdims=True))"
SLOPE = "x_query @ (centred.T @ y) / len(y)"
CENTRED = "centred = x - x.mean(axis=0, keepdims=True)"
SIZE = "size = eta / (2 * beta)"
PAIR = "return np.array([beta, -beta]), np.array([size, -size])"
GOOD = "return 0.02 / np.abs(x_query @ x.T).max()"

MUTANTS = [
    Mutant("the scores overflow", WEIGHTS, "weights = np.exp(scores)", {"q1": 3}),
    Mutant("one maximum for all", WEIGHTS, "weights = np.exp(scores - scores.max())", {"q1": 3}),
    Mutant("not normalised", "weights @ y / weights.sum(axis=-1)", "weights @ y", {"q1": 0}),
    Mutant("the mean over the heads", "outputs @ answers", "outputs @ answers / len(outputs)", {"q1": 0}),
    Mutant("the outputs are forgotten", "outputs @ answers", "answers.sum(axis=0)", {"q1": 0}),
    Mutant("negative betas count as positive", "scores = betas[", "scores = abs(betas)[", {"q1": 0}),
    Mutant("the mean stays in the inputs", CENTRED, "centred = x", {"q2": 1}),
    Mutant("every input is centred by itself", CENTRED, CENTRED.replace("axis=0", "axis=1"), {"q2": 0}),
    Mutant("the mean is added", CENTRED, CENTRED.replace("x - x", "x + x"), {"q2": 1}),
    Mutant("1/N is missing in the slope", SLOPE, "x_query @ (centred.T @ y)", {"q2": 0}),
    Mutant("the offset is the sum", "return y.mean(), ", "return y.sum(), ", {"q2": 0}),
    Mutant("the outputs lack the 2", SIZE, "size = eta / beta", {"q3": 1}),
    Mutant("the outputs lack beta", SIZE, "size = eta / 2", {"q3": 1}),
    Mutant("the outputs lack eta", SIZE, "size = 1 / (2 * beta)", {"q3": 1}),
    Mutant("the outputs have 1/N", SIZE, "size = eta / (2 * beta) / num_context", {"q3": 1}),
    Mutant("the step goes uphill", PAIR, PAIR.replace("[size, -size]", "[-size, size]"), {"q3": 1}),
    Mutant("the offset is doubled", PAIR, PAIR.replace("[size, -size]", "[size, size]"), {"q3": 0}),
    Mutant(
        "scores beta and 0",
        PAIR,
        PAIR.replace("-beta]", "0.0]").replace("[size, -size]", "[2 * size, -2 * size]"),
        {"q3": 3},
    ),
    Mutant("always the same small beta", PAIR, "beta, size = 1e-5, size * beta / 1e-5; " + PAIR, {"q3": 3}),
    Mutant("as small as possible", GOOD, "return 1e-8", {"q4": 0}),
    Mutant("scores as small as possible", GOOD, GOOD.replace("0.02", "1e-6"), {"q4": 1}),
    Mutant("scores that are too large", GOOD, GOOD.replace("0.02", "2.0"), {"q4": 1}),
    Mutant("right for inputs of size one", GOOD, "return 0.02 / np.abs(x).max() ** 2", {"q4": 1}),
]
