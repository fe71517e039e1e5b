"""Mutants of "One step is attention"."""

from mesa_lib.grading.source import Mutant

READ = "return context + memory @ context, query + memory @ query"
VALUES = "w_v[y_slot, x_slot] = w_0"
CHANGE = "return -2 * step * (x @ x) * (w_0 @ x)"

MUTANTS = [
    Mutant("the token itself is not added", READ, "return memory @ context, memory @ query", {"q1": 0}),
    Mutant("keys and queries exchanged", "(w_k @ context).T @ w_q", "(w_q @ context).T @ w_k", {"q1": 0}),
    Mutant(
        "a query reads itself",
        READ,
        "full = np.hstack([context, query]); full_memory = w_p @ (w_v @ full) @ (w_k @ full).T @ w_q\n"
        "    return context + memory @ context, query + full_memory @ query",
        {"q1": 0},
    ),
    Mutant(
        "right for one query only",
        READ,
        READ.replace("query + memory @ query", "query + memory @ query[:, :1]"),
        {"q1": 3},
    ),
    Mutant("the step goes uphill", "-np.eye(y_dim)", "np.eye(y_dim)", {"q2": 1}),
    Mutant("1/N is missing", " * eta / num_context", " * eta", {"q2": 0}),
    Mutant("W_0 is forgotten", VALUES, "w_v[y_slot, x_slot] = 0 * w_0", {"q2": 3}),
    Mutant("W_0 has the wrong sign", VALUES, "w_v[y_slot, x_slot] = -w_0", {"q2": 3}),
    Mutant("keys see y as well", "w_k[x_slot, x_slot] = np.eye(x_dim)", "w_k += np.eye(x_dim + y_dim)", {"q2": 1}),
    Mutant("the x-slot moves too", "w_v[y_slot, y_slot] = -np.eye(y_dim)", "w_v -= np.eye(x_dim + y_dim)", {"q2": 1}),
    Mutant("the query's slot is zero", "np.concatenate([x, -w_0 @ x])", "np.concatenate([x, 0 * w_0 @ x])", {"q3": 2}),
    Mutant("the query's slot has a plus", "np.concatenate([x, -w_0 @ x])", "np.concatenate([x, w_0 @ x])", {"q3": 2}),
    Mutant("the read-out keeps the sign", "return -slot", "return slot", {"q3": 1}),
    Mutant("the query's value is counted once", CHANGE, CHANGE.replace("-2", "-1"), {"q4": 1}),
    Mutant("the change has the wrong sign", CHANGE, CHANGE.replace("-2", "2"), {"q4": 1}),
    Mutant("the score is not squared", CHANGE, CHANGE.replace("(x @ x)", "np.sqrt(x @ x)"), {"q4": 1}),
    Mutant("1/N is missing in the change", "step = eta / num_context", "step = eta", {"q4": 1}),
    Mutant("a layer that changes its input", "memory = w_p @", "context[:, :1] = 0; memory = w_p @", {"q1": 0}),
]
