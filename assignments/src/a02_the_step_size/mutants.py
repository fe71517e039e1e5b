"""Mutants of "The step size"."""

from mesa_lib.grading.source import Mutant

BEST = "return np.sum(gradient**2) / curvature"
SHARED = "return unit @ y_query / (unit @ unit)"
EXPECTED = "/ (num_context + x_dim - 2 + kurtosis) / second_moment"
POWER = "np.polyfit(np.log(r), np.log(eta), 1)[0]"

MUTANTS = [
    Mutant(
        "1/N is missing in the curvature",
        "np.sum((x @ gradient.T) ** 2) / len(x)",
        "np.sum((x @ gradient.T) ** 2)",
        {"q1": 1},
    ),
    Mutant("the step goes uphill", BEST, "return -np.sum(gradient**2) / curvature", {"q1": 0}),
    Mutant("one over the largest curvature", BEST, "return len(x) / np.linalg.norm(x, 2) ** 2", {"q1": 2}),
    Mutant("the step is one", BEST, "return 1.0", {"q1": 0}),
    Mutant("half of the best step", BEST, "return 0.5 * np.sum(gradient**2) / curvature", {"q1": 1}),
    Mutant("only the first target", "gradient = -y.T @ x / len(x)", "gradient = -y[:, :1].T @ x / len(x)", {"q1": 5}),
    Mutant("the gradient's length is not squared", BEST, "return np.sqrt(np.sum(gradient**2)) / curvature", {"q1": 0}),
    Mutant("the mean of the tasks' own steps", SHARED, "return np.mean(y_query / unit)", {"q2": 0}),
    Mutant("1/N is missing in the prediction", "x_query) / y.shape[1]", "x_query)", {"q2": 2}),
    Mutant("numerator and denominator exchanged", SHARED, "return unit @ unit / (unit @ y_query)", {"q2": 0}),
    Mutant("the best step on the examples", SHARED, "return unit @ unit / np.sum(unit**2)", {"q2": 0}),
    Mutant("the first task decides", SHARED, "return y_query[0] / unit[0]", {"q2": 0}),
    Mutant("the kurtosis of normal inputs", "kurtosis = 9 / 5", "kurtosis = 3", {"q3": 1}),
    Mutant("many examples taken for granted", EXPECTED, "/ num_context / second_moment", {"q3": 1}),
    Mutant("the range for its square", "input_range**2 / 3", "input_range / 3", {"q3": 1}),
    Mutant("the second moment is r^2", "input_range**2 / 3", "input_range**2", {"q3": 1}),
    Mutant("no logarithms", POWER, "np.polyfit(r, eta, 1)[0]", {"q4": 0}),
    Mutant("axes exchanged", POWER, "np.polyfit(np.log(eta), np.log(r), 1)[0]", {"q4": 0}),
    Mutant("only the ends", POWER, "np.log(eta[-1] / eta[0]) / np.log(r[-1] / r[0])", {"q4": 1}),
]
