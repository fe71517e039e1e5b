"""Mutants of "GD++"."""

from mesa_lib.grading.source import Mutant

SLOTS = "y, slot = y - x @ memory.T, slot - x_query @ memory.T"
INPUTS = "x, x_query = x - x @ shrink, x_query - x_query @ shrink"
MEMORY = "memory = alpha * y.T @ x"
MOVED = "return eigenvalues * (1 - gamma * eigenvalues) ** 2"
LEFT = "rho, now = rho * (1 - alpha * now), now * (1 - gamma * now) ** 2"
GAMMA = "return 1 / (high**2 + high * low + low**2)"
ORDER = "np.polyfit(np.log(errors[:-1]), np.log(errors[1:]), 1)[0]"

MUTANTS = [
    Mutant("gradient descent", INPUTS, "pass", {"q1": 0}),
    Mutant("the query's input stays", INPUTS, "x = x - x @ shrink", {"q1": 1}),
    Mutant("the context's inputs stay", INPUTS, "x_query = x_query - x_query @ shrink", {"q1": 1}),
    Mutant(
        "inputs move first",
        MEMORY,
        "x_query = x_query - gamma * x_query @ x.T @ x; x = x - gamma * x @ x.T @ x\n        " + MEMORY,
        {"q1": 0},
    ),
    Mutant(
        "the first A for all layers",
        SLOTS,
        SLOTS + "\n        first = shrink / gamma if alpha == alphas[0] else first\n        shrink = gamma * first",
        {"q1": 4},
    ),
    Mutant("inputs grow", INPUTS, "x, x_query = x + x @ shrink, x_query + x_query @ shrink", {"q1": 1}),
    Mutant("the context's targets stay", SLOTS, "slot = slot - x_query @ memory.T", {"q1": 1}),
    Mutant("the slot for the prediction", "return -slot", "return slot", {"q1": 1}),
    Mutant("divided by N", MEMORY, MEMORY + " / len(x)", {"q1": 1}),
    Mutant("the first target for all", MEMORY, "memory = alpha * y[:, :1].T @ x", {"q1": 5}),
    Mutant("the first query for all", "return -slot", "return -slot[:1].repeat(len(slot), 0)", {"q1": 5}),
    Mutant("the last gamma counts", "return -slot", "return -slot * (1 + 1e-3 * gammas[-1])", {"q1": 0}),
    Mutant("the factor is not squared", MOVED, MOVED.replace(" ** 2", ""), {"q2": 0}),
    Mutant("only the factor", MOVED, MOVED.replace("eigenvalues * (", "(", 1), {"q2": 0}),
    Mutant("the factor is squared inside", MOVED, "return eigenvalues * (1 - gamma * eigenvalues**2)", {"q2": 0}),
    Mutant("sorted", MOVED, "return np.sort(eigenvalues * (1 - gamma * eigenvalues) ** 2)", {"q2": 0}),
    Mutant("the eigenvalues stay", LEFT, "rho = rho * (1 - alpha * now)", {"q3": 0}),
    Mutant(
        "eigenvalues move first", LEFT, "now = now * (1 - gamma * now) ** 2; rho = rho * (1 - alpha * now)", {"q3": 0}
    ),
    Mutant("what is gone, not what is left", "return rho", "return 1 - rho", {"q3": 0}),
    Mutant("without a sign", "return rho", "return np.abs(rho)", {"q3": 1}),
    Mutant("Newton and Schulz", GAMMA, "return 1 / (3 * largest)", {"q4": 1}),
    Mutant("one over the largest", GAMMA, "return 1 / largest", {"q4": 1}),
    Mutant(
        "eigenvalues for singular values",
        GAMMA,
        "return 1 / (largest**2 + largest * smallest + smallest**2)",
        {"q4": 0},
    ),
    Mutant("nothing moves", GAMMA, "return 0.0", {"q4": 0}),
    Mutant("as small as possible at the upper end", GAMMA, "return 4 / (3 * largest)", {"q4": 1}),
    Mutant("a coarse search", GAMMA, GAMMA + " * (1 + 1e-3)", {"q4": 1}),
    Mutant("in units of the example", GAMMA, "return 1 / 7", {"q4": 1}),
    Mutant(
        "against the number of the layer", ORDER, "np.polyfit(np.arange(len(errors)), np.log(errors), 1)[0]", {"q5": 0}
    ),
    Mutant("without logarithms", ORDER, "np.polyfit(errors[:-1], errors[1:], 1)[0]", {"q5": 0}),
    Mutant("the axes exchanged", ORDER, "np.polyfit(np.log(errors[1:]), np.log(errors[:-1]), 1)[0]", {"q5": 0}),
    Mutant(
        "a line through zero",
        ORDER,
        "np.log(errors[1:]) @ np.log(errors[:-1]) / np.sum(np.log(errors[:-1]) ** 2)",
        {"q5": 1},
    ),
    Mutant(
        "the last three only", ORDER, "np.log(errors[-1] / errors[-2]) / np.log(errors[-2] / errors[-3])", {"q5": 1}
    ),
]
