"""Mutants of the demonstration."""

from mesa_lib.grading.source import Mutant

LAYER = "moved = tokens + w_p @ (w_v @ tokens) @ (w_k @ tokens).T @ (w_q @ tokens)"
STEP = "return float(gradient @ gradient / curvature)"

MUTANTS = [
    Mutant("no residual", "tokens + w_p", "w_p", {"q1": 0}),
    Mutant(
        "keys and queries exchanged",
        "(w_k @ tokens).T @ (w_q @ tokens)",
        "(w_q @ tokens).T @ (w_k @ tokens)",
        {"q1": 1},
    ),
    Mutant("no values", "(w_v @ tokens)", "tokens", {"q1": 1}),
    Mutant("the step is one", STEP, "return 1.0", {"q2": 1}),
    Mutant("the step is zero", STEP, "return 0.0", {"q2": 0}),
    Mutant("one over the largest curvature", STEP, "return float(len(y) / np.linalg.norm(x, 2) ** 2)", {"q2": 2}),
    Mutant("changes its input", "moved = tokens +", "tokens += 0 * tokens + 1; moved = tokens - 1 +", {"q1": 0}),
]
