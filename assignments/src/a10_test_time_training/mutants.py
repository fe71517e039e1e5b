"""Mutants of "Test-time training"."""

from mesa_lib.grading.source import Mutant

ATTENTION = "return np.tril(q @ k.T) @ v"
STEP = "step = 2 * eta"
AT_ONCE = "return q @ w_0.T + step * np.tril(q @ k.T) @ (v - k @ w_0.T)"
THEOREM = "eta_of_attention = 0.5"
POINT = "if t % batch_size == 0:"
UPDATE = "state = state - 2 * eta * np.outer(start @ k_t - v_t, k_t)"
ANSWER = "answers.append(state @ q_t)"
SCORES = "scores = np.where(np.tri(len(q)) > 0, q @ k.T, -np.inf)"
WEIGHTS = "weights = np.exp(scores - scores.max(axis=1, keepdims=True))"
SHARES = "shares = weights / weights.sum(axis=1, keepdims=True)"

MUTANTS = [
    Mutant("it reads the future", ATTENTION, "return q @ k.T @ v", {"q1": 0}),
    Mutant("it reads only the future", ATTENTION, "return np.triu(q @ k.T) @ v", {"q1": 0}),
    Mutant("a token does not read itself", ATTENTION, "return np.tril(q @ k.T, -1) @ v", {"q1": 0}),
    Mutant("keys and queries exchanged", ATTENTION, "return np.tril(k @ q.T) @ v", {"q1": 0}),
    Mutant("divided by the number of tokens", ATTENTION, ATTENTION + " / len(q)", {"q1": 0}),
    Mutant("the 2 of the gradient is missing", STEP, "step = eta", {"q2": 1}),
    Mutant("the step goes uphill", STEP, "step = -2 * eta", {"q2": 1}),
    Mutant("W_0 does not answer", AT_ONCE, AT_ONCE.replace("q @ w_0.T + ", ""), {"q2": 2}),
    Mutant("values for residuals", AT_ONCE, AT_ONCE.replace("(v - k @ w_0.T)", "v"), {"q2": 3}),
    Mutant("residuals with a plus", AT_ONCE, AT_ONCE.replace("v - k", "v + k"), {"q2": 3}),
    Mutant("the mean of the gradients", AT_ONCE, AT_ONCE.replace("step *", "step / len(q) *"), {"q2": 1}),
    Mutant("the other convention's step", THEOREM, "eta_of_attention = 1.0", {"q2": 4}),
    Mutant("the gradient at the latest state", POINT, "if True:", {"q3": 3}),
    Mutant("the gradient always at W_0", POINT, "if False:", {"q3": 1}),
    Mutant("batches begin one token late", POINT, "if t % batch_size == min(1, batch_size - 1):", {"q3": 3}),
    Mutant(
        "the last, shorter batch is skipped", POINT, "if t % batch_size == 0 and t + batch_size <= len(q):", {"q3": 4}
    ),
    Mutant(
        "it answers before it reads",
        ANSWER,
        "answers.append((state + 2 * eta * np.outer(start @ k_t - v_t, k_t)) @ q_t)",
        {"q3": 0},
    ),
    Mutant("the 2 of the online gradient is missing", UPDATE, UPDATE.replace("2 * ", ""), {"q3": 0}),
    Mutant("the batch's own point answers", ANSWER, "answers.append(start @ q_t)", {"q3": 0}),
    Mutant("the constants read the future", SCORES, "scores = q @ k.T", {"q4": 0}),
    Mutant("scores of zero for the future", SCORES, "scores = np.tril(q @ k.T)", {"q4": 0}),
    Mutant("the scores overflow", WEIGHTS, "weights = np.exp(scores)", {"q4": 3}),
    Mutant(
        "the largest score of all tokens",
        WEIGHTS,
        "weights = np.exp(scores - (q @ k.T).max(axis=1, keepdims=True))",
        {"q4": 3},
    ),
    Mutant("the weights are not divided by their sum", SHARES, "shares = weights", {"q4": 1}),
    Mutant("a factor of 1/sqrt(d)", SCORES, SCORES.replace("q @ k.T", "q @ k.T / np.sqrt(k.shape[1])"), {"q4": 2}),
]
