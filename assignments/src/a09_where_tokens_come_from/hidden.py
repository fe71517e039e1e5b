"""Hidden cases of "Where do tokens come from?"."""

import numpy as np

from mesa_lib.assignments import case, expect, expect_array, expect_close, expect_number


def orthonormal(rng, places):
    """Orthonormal codes, as many numbers as places."""
    return np.linalg.qr(rng.normal(size=(places, places)))[0]


def independent(rng, places, width):
    """Codes that are independent, neither orthogonal nor of length one, and well conditioned."""
    longer = orthonormal(rng, width)[:places]
    return (np.eye(places) + 0.4 * orthonormal(rng, places)) @ longer * rng.uniform(0.5, 2.0)


def true_pairs(student, examples):
    """The pairs of a sequence of so many examples: the reader, then what it reads."""
    pairs = [(2 * j + 1, 2 * j) for j in range(examples)]
    return pairs if student.variant["direction"] == "previous" else [pair[::-1] for pair in pairs]


@case("q1", points=1, hint="count places from 0; the reader comes first; the query is in no pair")
def pairs_of_any_length(student, rng):
    for examples in (1, 4, int(rng.integers(5, 20))):
        for query in (0, 1):
            got = expect_array(student.call("pairs_of", 2 * examples + query), (examples, 2), "the array of pairs")
            message = "for one of the lengths tried, with or without a query, the pairs are not right"
            expect(sorted(map(tuple, got)) == sorted(true_pairs(student, examples)), message)


def reads_right(student, rng, codes, pairs):
    """Scores of one for the pairs, and of zero for all others."""
    matrix = student.call("reading_matrix", codes, np.array(pairs))
    matrix = expect_array(matrix, (codes.shape[1], codes.shape[1]), "the matrix")
    wanted = np.zeros((len(codes), len(codes)))
    for reader, read in pairs:
        wanted[read, reader] = 1.0
    expect_close(codes @ matrix @ codes.T, wanted, "the scores of all tokens (rows) and readers (columns)")


def any_pairs(rng, places):
    """Pairs of places that are no neighbours: some read two tokens, some read none, one reads itself."""
    readers = rng.integers(0, places, size=places)
    return sorted({(int(r), int(i)) for r, i in zip(readers, rng.permutation(places), strict=True)} | {(0, places - 1)})


@case("q1", points=1, hint="orthonormal codes: one outer product for each pair; which code goes on the left?")
def orthonormal_codes(student, rng):
    for places in (4, 7):
        reads_right(student, rng, orthonormal(rng, places), any_pairs(rng, places))


@case("q1", points=2, hint="codes that are not orthonormal: p_i . p_i is not 1, and p_i . p_j is not 0")
def independent_codes(student, rng):
    for places, width in ((5, 5), (4, 9)):
        reads_right(student, rng, independent(rng, places, width), any_pairs(rng, places))


def draw_tokens(student, rng, examples, x_dim, width):
    """Tokens of examples and a query, with their places permuted; their pairs, a matrix that knows them, the codes."""
    places = 2 * examples + 1
    codes = independent(rng, places, width)
    tokens = np.zeros((places, x_dim + width + 1))
    tokens[0::2, :x_dim] = rng.normal(size=(examples + 1, x_dim))
    tokens[1::2, -1] = rng.normal(size=examples)
    order = rng.permutation(places)
    tokens, place = tokens[order], np.argsort(order)
    tokens[:, x_dim:-1] = codes
    pairs = [(place[reader], place[read]) for reader, read in true_pairs(student, examples)]
    dual = np.linalg.pinv(codes)
    matrix = sum(np.outer(dual[:, read], dual[:, reader]) for reader, read in pairs)
    return tokens, pairs, matrix


def read(readers, context, weights):
    """The readers after a linear layer, one after the other; w_kq and w_pv are checked."""
    expect(isinstance(weights, (tuple, list)) and len(weights) == 2, "expected two matrices: w_kq, w_pv")
    token = readers.shape[1]
    w_kq, w_pv = (
        expect_array(w, (token, token), name)
        for w, name in zip(weights, ("the matrix w_kq", "the matrix w_pv"), strict=True)
    )
    return np.array([r + sum(w_pv @ e * (e @ w_kq @ r) for e in context) for r in readers])


def copied_exactly(student, rng):
    """Tokens of several sequences after the student's layer, and what they should be."""
    previous = student.variant["direction"] == "previous"
    for examples, x_dim, width in ((3, 2, 7), (2, 4, 8), (1, 1, 5)):
        tokens, pairs, matrix = draw_tokens(student, rng, examples, x_dim, width)
        after = read(tokens, tokens, student.call("copying_weights", matrix, x_dim))
        slot = slice(0, x_dim) if previous else slice(x_dim + width, None)
        wanted = tokens.copy()
        for reader, partner in pairs:
            wanted[reader, slot] = tokens[partner, slot]
        yield after, wanted, [reader for reader, _ in pairs], slot


@case("q2", points=2, hint="follow one reader: which score has its partner, and which numbers are moved where?")
def what_is_copied_arrives(student, rng):
    for after, wanted, readers, slot in copied_exactly(student, rng):
        expect_close(after[readers, slot], wanted[readers, slot], "the slot of the readers after the copy")


@case("q2", points=1, hint="do the other slots, the other tokens and the query stay as they were?")
def nothing_else_changes(student, rng):
    for after, wanted, _, _ in copied_exactly(student, rng):
        expect_close(after, wanted, "the tokens after the copy")


@case("q3", points=2, hint="put your k into the softmax: what do all tokens but the partner get together?")
def the_share_that_is_missed(student, rng):
    for missed in (0.5, rng.uniform(0.1, 0.9), 10 ** rng.uniform(-6, -2)):
        num = int(rng.integers(2, 200))
        k = expect_number(student.call("sharpness_for", missed, num), "the sharpness")
        weights = np.exp(np.array([k] + [0.0] * (num - 1)) - max(k, 0.0))
        expect_close(weights[1:].sum() / weights.sum(), missed, "what the softmax misses at your k")


def predicts(student, rng, contexts, code_dim):
    """The y-slot of a query after the student's second layer, for contexts (x, y) -> tokens."""
    for examples, x_dim in ((4, 3), (1, 2), (7, 2)):
        x, y, query, eta = rng.normal(size=(examples, x_dim)), rng.normal(size=examples), rng.normal(size=x_dim), 0.7
        codes = rng.normal(size=(2 * examples + 1, code_dim)) if code_dim else np.zeros((2 * examples + 1, 0))
        token = np.concatenate([query, codes[-1], [0.0]])
        weights = student.call("step_after_copy", eta, examples, x_dim, code_dim)
        after = read(token[None], contexts(x, y, codes), weights)[0]
        step = sum(eta * y_i * (x_i @ query) for x_i, y_i in zip(x, y, strict=True))
        expect_close(after[-1], step / (examples if student.variant["loss"] == "mean" else 1), "the prediction")


@case(
    "q4", points=1, hint="tokens without codes, each with its input and its target: which slot scores, which is moved?"
)
def tokens_that_hold_both(student, rng):
    predicts(student, rng, lambda x, y, codes: np.hstack([x, y[:, None]]), 0)


@case("q4", points=3, hint="2N tokens with codes: does a code change a score? do the tokens that copied nothing count?")
def tokens_after_the_copy(student, rng):
    previous = student.variant["direction"] == "previous"

    def after_copy(x, y, codes):
        tokens = np.zeros((2 * len(x), x.shape[1] + codes.shape[1] + 1))
        tokens[:, x.shape[1] : -1] = codes[:-1]
        tokens[0::2, : x.shape[1]], tokens[1::2, -1] = x, y
        if previous:
            tokens[1::2, : x.shape[1]] = x
        else:
            tokens[0::2, -1] = y
        return tokens

    predicts(student, rng, after_copy, 6)
