"""Mutants of "Kernel regression"."""

from mesa_lib.grading.source import Mutant

ANGLES = "angles = x @ (normals / width).T + 2 * np.pi * uniforms"
FEATURES = "return np.sqrt(2 / len(normals)) * np.cos(angles)"
ERROR = "np.sqrt(np.mean((phi @ phi.T - np.exp(-squares / (2 * width**2))) ** 2))"
LAYER = "return phi_query @ w_0.T + eta * scores @ values / len(y)"
STEP = "alpha = alpha + eta * ((y - kernel @ alpha) / len(y) - penalty * alpha)"
RIDGE = "ridge = kernel + penalty * len(y) * np.eye(len(y))"

MUTANTS = [
    Mutant("frequencies times the width", ANGLES, ANGLES.replace("/ width", "* width"), {"q1": 0}),
    Mutant("the width is squared", ANGLES, ANGLES.replace("/ width", "/ width**2"), {"q1": 0}),
    Mutant("phases are not in radians", ANGLES, ANGLES.replace("2 * np.pi * ", ""), {"q1": 1}),
    Mutant("the two under the root is missing", FEATURES, FEATURES.replace("2 / len", "1 / len"), {"q1": 0}),
    Mutant("no normalisation", FEATURES, "return np.sqrt(2) * np.cos(angles)", {"q1": 0}),
    Mutant(
        "divided by m, not by its root",
        FEATURES,
        FEATURES.replace("np.sqrt(2 / len(normals))", "np.sqrt(2) / len(normals)"),
        {"q1": 0},
    ),
    Mutant("sines", FEATURES, FEATURES.replace("cos", "sin"), {"q1": 1}),
    Mutant("divided by the number of inputs", FEATURES, FEATURES.replace("len(normals)", "len(x)"), {"q1": 1}),
    Mutant(
        "the mean of absolute errors",
        ERROR,
        "np.abs(phi @ phi.T - np.exp(-squares / (2 * width**2))).mean()",
        {"q2": 0},
    ),
    Mutant("the half is missing in the kernel", ERROR, ERROR.replace("(2 * width**2)", "width**2"), {"q2": 0}),
    Mutant("the width is not squared", ERROR, ERROR.replace("width**2", "width"), {"q2": 0}),
    Mutant("distances are not squared", ERROR, ERROR.replace("-squares", "-np.sqrt(squares)"), {"q2": 1}),
    Mutant("not rooted", ERROR, ERROR.replace("np.sqrt(", "(", 1), {"q2": 0}),
    Mutant("the first input only", "x[:, None] - x[None]", "x[:, None, :1] - x[None, :, :1]", {"q2": 1}),
    Mutant("values are the targets", "values = y - phi @ w_0.T", "values = y", {"q3": 1}),
    Mutant("the query's slot is empty", LAYER, LAYER.replace("phi_query @ w_0.T + ", ""), {"q3": 1}),
    Mutant("uphill", LAYER, LAYER.replace("+ eta", "- eta"), {"q3": 0}),
    Mutant("1/N is missing in the layer", LAYER, LAYER.replace(" / len(y)", ""), {"q3": 0}),
    Mutant("one over the number of features", LAYER, LAYER.replace("len(y)", "phi.shape[1]"), {"q3": 0}),
    Mutant("1/N is missing in the descent", STEP, STEP.replace(" / len(y)", ""), {"q4": 0}),
    Mutant("the penalty is forgotten", STEP, STEP.replace(" - penalty * alpha", ""), {"q4": 2}),
    Mutant("the penalty is divided by N", STEP, STEP.replace("- penalty", "- penalty / len(y)"), {"q4": 2}),
    Mutant(
        "the penalty without the step size", STEP, STEP.replace("- penalty * alpha)", ") - penalty * alpha"), {"q4": 2}
    ),
    Mutant("residuals at zero in every step", STEP, STEP.replace("- kernel @ alpha", ""), {"q4": 0}),
    Mutant("one step fewer", "range(num_steps)", "range(num_steps - 1)", {"q4": 0}),
    Mutant("no penalty in the limit", RIDGE, "ridge = kernel + 1e-9 * np.eye(len(y))", {"q5": 0}),
    Mutant("N is forgotten in the limit", RIDGE, RIDGE.replace(" * len(y)", "", 1), {"q5": 0}),
    Mutant("N divides in the limit", RIDGE, RIDGE.replace("* len(y)", "/ len(y)", 1), {"q5": 0}),
    Mutant("the penalty on all entries", RIDGE, "ridge = kernel + penalty * len(y)", {"q5": 0}),
]
