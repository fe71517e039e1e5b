"""Mutants of "Softmax is a smoother"."""

from mesa_lib.grading.source import Mutant

SCORES = "scores = queries @ keys.T * beta"
WEIGHTS = "weights = np.exp(scores - scores.max(axis=1, keepdims=True))"
SHARES = "shares = weights / weights.sum(axis=1, keepdims=True)"
LOGITS = "logits = -distances / (2 * width**2)"
BIAS = "return -0.5 * np.sum(keys**2, axis=1) * beta"
FAR = "far = 4 / np.sqrt(beta)"
SHARP = "sharp = values[match == match.max()].mean(axis=0)"

MUTANTS = [
    Mutant("normalised over the queries", SHARES, SHARES.replace("axis=1", "axis=0"), {"q1": 0}),
    Mutant("not normalised", SHARES, "shares = weights", {"q1": 0}),
    Mutant("the scores overflow", WEIGHTS, "weights = np.exp(scores)", {"q1": 3}),
    Mutant("one maximum for all queries", WEIGHTS, "weights = np.exp(scores - scores.max())", {"q1": 3}),
    Mutant("a factor of 1/sqrt(d)", SCORES, SCORES + " / np.sqrt(keys.shape[1])", {"q1": 1}),
    Mutant("beta is a temperature", SCORES, "scores = queries @ keys.T / beta", {"q1": 0}),
    Mutant("the sign of the scores", SCORES, "scores = -queries @ keys.T * beta", {"q1": 0}),
    Mutant("distances are not squared", LOGITS, LOGITS.replace("distances", "np.sqrt(distances)"), {"q2": 2}),
    Mutant("the width is not squared", LOGITS, LOGITS.replace("width**2", "width"), {"q2": 3}),
    Mutant("the 2 is missing in the kernel", LOGITS, "logits = -distances / width**2", {"q2": 2}),
    Mutant("the kernel is not normalised", " / kernel.sum(axis=1, keepdims=True)", "", {"q2": 2}),
    Mutant("the width falls like 1/beta", "return beta**-0.5", "return 1 / beta", {"q2": 3}),
    Mutant("the width has another 2", "return beta**-0.5", "return (2 * beta) ** -0.5", {"q2": 3}),
    Mutant("the width grows with beta", "return beta**-0.5", "return beta**0.5", {"q2": 3}),
    Mutant("keys that do not know the sharpness", FAR, "far = 4.0", {"q3": 3}),
    Mutant("keys that differ too little", FAR, "far = 3 / np.sqrt(beta)", {"q3": 3}),
    Mutant("keys that shrink too fast", FAR, "far = 4 / beta", {"q3": 3}),
    Mutant("the query in the middle", "np.array([[far / 4]])", "np.array([[far / 2]])", {"q3": 3}),
    Mutant("the bias has the wrong sign", BIAS, BIAS.replace("-0.5", "0.5"), {"q3": 4}),
    Mutant("the bias lacks the half", BIAS, BIAS.replace("-0.5", "-1"), {"q3": 4}),
    Mutant("the bias lacks beta", BIAS, BIAS.replace(" * beta", ""), {"q3": 4}),
    Mutant("the bias uses the length", BIAS, "return -0.5 * np.linalg.norm(keys, axis=1) * beta", {"q3": 4}),
    Mutant(
        "the nearest key",
        "match = keys @ query",
        "match = -np.sum((keys - query) ** 2, axis=1)",
        {"q4": 0},
    ),
    Mutant("the first of the largest", SHARP, "sharp = values[match.argmax()]", {"q4": 3}),
    Mutant("the smallest score", SHARP, SHARP.replace("match.max()", "match.min()"), {"q4": 0}),
    Mutant("the sum for the mean", "flat = values.mean(axis=0)", "flat = values.sum(axis=0)", {"q4": 1}),
]
