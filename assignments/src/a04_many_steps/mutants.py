"""Mutants of "Many steps"."""

from mesa_lib.grading.source import Mutant

UPDATE = "y, slot = y - x @ memory.T, slot - x_query @ memory.T"
MEMORY = "memory = eta * y.T @ x / len(x)"
STEP = "w = w - eta * (x @ w.T - y).T @ x / len(x)"
LOSS = "np.sum((kept[:, :, None] * start) ** 2, axis=(1, 2)) / 2 / len(x)"
LARGEST = "return 2 * len(x) / np.linalg.norm(x, 2) ** 2"
FASTEST = "return 2 / (values[0] + values[-1])"
COUNT = "int(np.ceil(np.log(tolerance) / np.log(rate)))"
EXACT = "return 1 / np.linalg.eigvalsh(x.T @ x / len(x))"

MUTANTS = [
    Mutant("the context does not move", UPDATE, "slot = slot - x_query @ memory.T", {"q1": 3}),
    Mutant(
        "queries read the new context",
        UPDATE,
        "y = y - x @ memory.T\n        slot = slot - x_query @ (eta * y.T @ x / len(x)).T",
        {"q1": 3},
    ),
    Mutant("the slot forgets earlier layers", UPDATE, "y, slot = y - x @ memory.T, -x_query @ memory.T", {"q1": 3}),
    Mutant("uphill", UPDATE, "y, slot = y + x @ memory.T, slot + x_query @ memory.T", {"q1": 3}),
    Mutant("1/N is missing in a layer", MEMORY, "memory = eta * y.T @ x", {"q1": 3}),
    Mutant("the first target for all", MEMORY, MEMORY.replace("y.T", "y[:, :1].T"), {"q1": 6}),
    Mutant(
        "the first step size for all",
        "for eta in etas:\n        memory",
        "for eta in etas[:1].repeat(len(etas)):\n        memory",
        {"q1": 3},
    ),
    Mutant("the context is changed in place", UPDATE, "y -= x @ memory.T; slot -= x_query @ memory.T", {"q1": 6}),
    Mutant("1/N is missing in a step", STEP, STEP.replace(" / len(x)", ""), {"q1": 4}),
    Mutant("each step starts from zero", STEP, STEP.replace("w = w -", "w = -"), {"q1": 4}),
    Mutant("one long step", STEP, STEP.replace("(x @ w.T - y)", "(-y)"), {"q1": 4}),
    Mutant("the second step from the first target", STEP, STEP.replace("- y)", "- y[:, :1])"), {"q1": 5}),
    Mutant("the half is missing", LOSS, LOSS.replace(" / 2", ""), {"q2": 0}),
    Mutant(
        "the loss before the first step is missing",
        "np.arange(num_steps + 1)",
        "np.arange(1, num_steps + 2)",
        {"q2": 0},
    ),
    Mutant("no floor", "start = basis.T @ y", "start = basis.T @ y * (values > 1e-9)[:, None]", {"q2": 0}),
    Mutant(
        "residuals are not squared by components",
        LOSS,
        LOSS.replace("(1, 2)", "1").replace("/ 2", "[:, 0] / 2"),
        {"q2": 3},
    ),
    Mutant("one over the largest eigenvalue", LARGEST, LARGEST.replace("2 * len", "len"), {"q3": 0}),
    Mutant("the factor N is missing", LARGEST, LARGEST.replace(" * len(x)", ""), {"q3": 0}),
    Mutant("the trace for the largest", LARGEST, "return 2 * len(x) / np.sum(x**2)", {"q3": 0}),
    Mutant("the singular value is not squared", LARGEST, LARGEST.replace(" ** 2", ""), {"q3": 0}),
    Mutant("the smallest eigenvalue", LARGEST, LARGEST.replace("2) ** 2", "-2) ** 2"), {"q3": 0}),
    Mutant("one over the largest, again", FASTEST, "return 1 / values[-1]", {"q4": 2}),
    Mutant("the largest one that converges", FASTEST, "return 2 / values[-1]", {"q4": 2}),
    Mutant("the mean of all eigenvalues", FASTEST, "return 1 / values.mean()", {"q4": 3}),
    Mutant("the geometric mean", FASTEST, "return 1 / np.sqrt(values[0] * values[-1])", {"q4": 2}),
    Mutant("rounded down", COUNT, COUNT.replace("ceil", "floor"), {"q4": 2}),
    Mutant("of singular values, not of their squares", "compute_uv=False) ** 2", "compute_uv=False)", {"q4": 2}),
    Mutant(
        "the rate of 1 / largest",
        "(spectrum[0] - spectrum[-1]) / (spectrum[0] + spectrum[-1])",
        "1 - spectrum[-1] / spectrum[0]",
        {"q4": 2},
    ),
    Mutant("the eigenvalues themselves", EXACT, EXACT.replace("1 / np", "np"), {"q5": 0}),
    Mutant("the factor N is missing there, too", EXACT, EXACT.replace(" / len(x)", ""), {"q5": 0}),
    Mutant("one step size, d times", EXACT, "return np.full(x.shape[1], fastest_eta(x))", {"q5": 0}),
    Mutant("two over the eigenvalues", EXACT, EXACT.replace("1 / np", "2 / np"), {"q5": 0}),
]
