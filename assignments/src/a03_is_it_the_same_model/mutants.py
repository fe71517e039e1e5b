"""Mutants of "Is it the same model?"."""

from mesa_lib.grading.source import Mutant

APART = "return apart.mean()"
OWN = "own = form * values[:, :x_dim] + np.outer(own_values, (own_scores + own_scores.T) @ x_query)"
COSINES = "np.divide(inner, lengths, out=np.zeros_like(inner), where=lengths > 0)"
FLAT = "a, b = a.reshape(*a.shape[:2], -1), b.reshape(*b.shape[:2], -1)"
DISGUISE = "np.linalg.inv(a).T @ w_q, b @ w_v, w_p @ np.linalg.inv(b)"
SCALE = "scale = np.trace(score[:x_dim]) / x_dim"
NARROW = "w_q = w_q[:, : len(a)] @ np.eye(len(a), w_q.shape[1])\n    return a @ w_k, "
FIRST_AXIS = "(np.eye(queries.shape[1]) - np.linalg.pinv(queries) @ queries)[0]"
CANONICAL = "return write * scale, score / scale"
BLIND = "np.linalg.svd(queries, full_matrices=True)[2][-1]"

MUTANTS = [
    Mutant("the mean of all differences", APART, "return np.abs(a - b).mean()", {"q1": 0}),
    Mutant("the other average", APART, "return np.sqrt(np.mean(np.sum((a - b) ** 2, axis=-1)))", {"q1": 0}),
    Mutant("the distance of the means", APART, "return np.linalg.norm((a - b).mean((0, 1)))", {"q1": 0}),
    Mutant("one long vector", APART, "return np.linalg.norm(a - b)", {"q1": 0}),
    Mutant("the query reads the context only", OWN, "own = 0", {"q2": 0}),
    Mutant(
        "the query's value is constant",
        OWN,
        "own = np.outer(own_values, (own_scores + own_scores.T) @ x_query)",
        {"q2": 0},
    ),
    Mutant(
        "the form is differentiated once", "(own_scores + own_scores.T) @ x_query", "own_scores @ x_query", {"q2": 0}
    ),
    Mutant("the sign of the prediction", "return -(seen + own)", "return seen + own", {"q2": 0}),
    Mutant("keys and queries exchanged", "w_k.T @ w_q[:, :x_dim]", "w_q.T @ w_k[:, :x_dim]", {"q2": 1}),
    Mutant(
        "the first target for all",
        "return -(seen + own)",
        "return -(seen + own)[:1] * np.ones((len(seen), 1))",
        {"q2": 3},
    ),
    Mutant("a cosine for each target", FLAT, "a, b = (j.reshape(len(j), -1, j.shape[-1]) for j in (a, b))", {"q3": 2}),
    Mutant(
        "the cosine of everything", "cosines.mean()", "inner.sum() / np.linalg.norm(a) / np.linalg.norm(b)", {"q3": 0}
    ),
    Mutant("zeros are left out of the mean", "cosines.mean()", "cosines[lengths > 0].mean()", {"q3": 3}),
    Mutant("zeros give NaN", COSINES, "inner / lengths", {"q3": 3}),
    Mutant("no division by the lengths", COSINES, "inner", {"q3": 0}),
    Mutant("the inverse is not transposed", DISGUISE, DISGUISE.replace("inv(a).T", "inv(a)"), {"q4": 1}),
    Mutant("transposes for inverses", DISGUISE, "a @ w_q, b @ w_v, w_p @ b.T", {"q4": 0}),
    Mutant("the inverse of b is transposed", DISGUISE, DISGUISE + ".T", {"q4": 1}),
    Mutant("nothing is changed", "return a @ w_k, " + DISGUISE, "return w_k, w_q, w_v, w_p", {"q4": 0}),
    Mutant("keys of another size are cut", "return a @ w_k, ", NARROW, {"q4": 2}),
    Mutant("the sum of the diagonal", SCALE, "scale = np.trace(score[:x_dim])", {"q5": 2}),
    Mutant("the whole diagonal", SCALE, "scale = np.trace(w_k.T @ w_q) / len(w_k.T)", {"q5": 0}),
    Mutant("only one product is scaled", CANONICAL, "return write, score / scale", {"q5": 0}),
    Mutant("the scale is forgotten", CANONICAL, "return write, score", {"q5": 0}),
    Mutant("queries before keys", "(w_k.T @ w_q)[:, :x_dim]", "(w_q.T @ w_k)[:, :x_dim]", {"q5": 0}),
    Mutant("scaled by the norm", SCALE, "scale = np.linalg.norm(score)", {"q5": 0}),
    Mutant(
        "the smallest direction that is asked", BLIND, "np.linalg.svd(queries, full_matrices=False)[2][-1]", {"q6": 0}
    ),
    Mutant("an axis", BLIND, "np.eye(queries.shape[1])[-1]", {"q6": 0}),
    Mutant(
        "the first axis, without what the queries see",
        BLIND,
        f"(lambda v: v / np.linalg.norm(v))({FIRST_AXIS})",
        {"q6": 2},
    ),
    Mutant("not of length one", BLIND, "2 * " + BLIND, {"q6": 0}),
]
