"""Mutants of "Where do tokens come from?"."""

from mesa_lib.grading.source import Mutant

PAIRS = "return np.stack([inputs + 1, inputs], axis=1)"
DUAL = "dual = np.linalg.pinv(codes)"
WANTED = "wanted[read, reader] = 1"
BLOCK = "w_kq[x_dim:-1, x_dim:-1] = matrix"
MOVES = "w_pv[:x_dim, :x_dim] = np.eye(x_dim)"
SHARPNESS = "return np.log((num_tokens - 1) * (1 - missed) / missed)"
KEYS = "w_kq[:x_dim, :x_dim] = np.eye(x_dim)"
WRITE = "w_pv[-1, -1] = eta / num_context"

MUTANTS = [
    Mutant("the read token comes first", PAIRS, "return np.stack([inputs, inputs + 1], axis=1)", {"q1": 3}),
    Mutant("the query reads, too", "num_tokens // 2)", "(num_tokens + 1) // 2)", {"q1": 3}),
    Mutant(
        "each token reads the one before it", PAIRS, "return np.arange(num_tokens // 2)[:, None] + [1, 0]", {"q1": 3}
    ),
    Mutant("places are counted from 1", PAIRS, PAIRS + " + 1", {"q1": 3}),
    Mutant("codes for their duals", DUAL, "dual = codes.T", {"q1": 3}),
    Mutant("codes divided by their length", DUAL, "dual = codes.T / np.sum(codes**2, axis=1)", {"q1": 3}),
    Mutant("as many numbers as places", DUAL, "dual = np.linalg.inv(codes)", {"q1": 3}),
    Mutant("reader and read exchanged", WANTED, "wanted[reader, read] = 1", {"q1": 1}),
    Mutant("neighbours, whatever the pairs", WANTED, "wanted[reader - 1, reader] = 1", {"q1": 1}),
    Mutant("the matrix is transposed", BLOCK, BLOCK.replace("= matrix", "= matrix.T"), {"q2": 1}),
    Mutant("the other slots score, too", BLOCK, "w_kq += np.eye(token); " + BLOCK, {"q2": 2}),
    Mutant("the whole token is moved", MOVES, "w_pv += np.eye(token)", {"q2": 2}),
    Mutant("the code is moved as well", MOVES, MOVES + "; w_pv[x_dim:-1, x_dim:-1] = np.eye(len(matrix))", {"q2": 2}),
    Mutant("the other direction is copied", MOVES, "w_pv[-1, -1] = 1", {"q2": 1}),
    Mutant("only the first number is moved", MOVES, "w_pv[0, 0] = 1", {"q2": 1}),
    Mutant(
        "the partner counts among the others", SHARPNESS, SHARPNESS.replace("num_tokens - 1", "num_tokens"), {"q3": 0}
    ),
    Mutant("no logarithm", SHARPNESS, "return (num_tokens - 1) * (1 - missed) / missed", {"q3": 0}),
    Mutant("many tokens taken for granted", SHARPNESS, "return np.log((num_tokens - 1) / missed)", {"q3": 0}),
    Mutant("missed and hit exchanged", SHARPNESS, "return np.log((num_tokens - 1) * missed / (1 - missed))", {"q3": 0}),
    Mutant("the mean over 2N tokens", WRITE, "w_pv[-1, -1] = eta / (2 * num_context)", {"q4": 1}),
    Mutant("1/N is missing", WRITE, "w_pv[-1, -1] = eta", {"q4": 0}),
    Mutant("codes score in the second layer", KEYS, "w_kq[:-1, :-1] = np.eye(token - 1)", {"q4": 2}),
    Mutant("targets score in the second layer", KEYS, KEYS + "; w_kq[-1, :x_dim] = 1", {"q4": 1}),
    Mutant("the step goes uphill", WRITE, "w_pv[-1, -1] = -eta / num_context", {"q4": 1}),
]
