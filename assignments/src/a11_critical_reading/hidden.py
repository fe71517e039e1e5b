"""Hidden cases of "Critical reading"."""

import numpy as np

from mesa_lib.assignments import case, expect, expect_number

CLAIMS = {
    "first": {
        "c1": "C1",
        "c2": "A-QUERY-ZERO",
        "c3": "KEY-STEP",
        "c4": "C2",
        "c5": "C2-OOD",
        "c6": "C2-COSINE",
        "c7": "GDPP-NOT-GD",
        "c8": "A9-OFFSET",
        "c9": "LINEAR-COPY",
        "c10": "C5",
        "c11": "LATER-WORK",
        "c12": "THEORY-067",
    },
    "second": {
        "c1": "A-UNIQUE",
        "c2": "KEY-OUTER",
        "c3": "PROP-2",
        "c4": "C2-LOSS",
        "c5": "COPY-FIRST",
        "c6": "SINE-MLP",
        "c7": "DEF-GDPP",
        "c8": "C2-REPEAT",
        "c9": "INDUCTION",
        "c10": "C5",
        "c11": "DP-010",
        "c12": "LATER-WORK",
    },
}
"""The id of each sentence in the ledger. A test holds the answers below against the ledger's own."""

WORDS = {"proved": "supported", "supported": "supported", "supported with limits": "partly"} | dict.fromkeys(
    ("open", "untestable here"), "not shown"
)
"""The word of this assignment for each of the ledger's rulings that occur."""

ANSWERS = {
    "C1": ("supported", "one_layer_one_step", ""),
    "A-QUERY-ZERO": ("partly", "one_layer_one_step", "c"),
    "KEY-STEP": ("supported", "in_context_regression", ""),
    "C2": ("partly", "training_finds_the_step", "a"),
    "C2-OOD": ("partly", "off_distribution", "b"),
    "C2-COSINE": ("partly", "symmetries_and_plateaus", "d"),
    "GDPP-NOT-GD": ("supported", "what_gd_plus_plus_is", ""),
    "A9-OFFSET": ("partly", "softmax", "g"),
    "LINEAR-COPY": ("partly", "copying", "f"),
    "C5": ("not shown", "claims", ""),
    "THEORY-067": ("supported", "claims", ""),
    "KEY-OUTER": ("supported", "fast_weights", ""),
    "A-UNIQUE": ("partly", "symmetries_and_plateaus", "c"),
    "PROP-2": ("supported", "deep_features", ""),
    "C2-LOSS": ("partly", "training_finds_the_step", "d"),
    "C2-REPEAT": ("partly", "off_distribution", "e"),
    "SINE-MLP": ("partly", "deep_features", "g"),
    "COPY-FIRST": ("supported", "copying", ""),
    "DEF-GDPP": ("partly", "what_gd_plus_plus_is", "a"),
    "INDUCTION": ("partly", "copying", "h"),
    "LATER-WORK": ("not shown", "rival_accounts", ""),
    "DP-010": ("supported", "claims", ""),
}
"""For each id: the word, the chapter, and the letter of the limit; letters are those of the variant it belongs to."""

VERDICT, CHAPTER, LIMIT = range(3)


def agrees(student, name, part, sentences, mistake):
    """The student's dictionary agrees with the answers to some sentences, as far as there are any."""
    given = student.get(name)
    expect(isinstance(given, dict), f"{name} has to be a dictionary")
    given = {str(key).strip().lower(): str(value).strip().lower() for key, value in given.items()}
    claims = CLAIMS[student.variant["claims"]]
    answers = {key: ANSWERS[claims[key]][part] for key in sentences}
    expect(all(given.get(key) == answer for key, answer in answers.items() if answer), mistake)


@case(
    "q1", points=2, hint="c1 to c3 are about what can be proved with a pencil: for every start, and for every context?"
)
def verdicts_on_the_construction(student, rng):
    agrees(student, "verdicts", VERDICT, ("c1", "c2", "c3"), "not all three verdicts agree with the evidence")


@case("q1", points=2, hint="c4 to c6 are about experiments: for every seed, everywhere, and for which numbers?")
def verdicts_on_training(student, rng):
    agrees(student, "verdicts", VERDICT, ("c4", "c5", "c6"), "not all three verdicts agree with the evidence")


@case("q1", points=2, hint="c7 to c9 are about other layers and algorithms: read the chapter's note on its verdict")
def verdicts_on_other_layers(student, rng):
    agrees(student, "verdicts", VERDICT, ("c7", "c8", "c9"), "not all three verdicts agree with the evidence")


@case("q1", points=2, hint="c10 to c12 are about reach: was this tested here, or is it said of somewhere else?")
def verdicts_on_reach(student, rng):
    agrees(student, "verdicts", VERDICT, ("c10", "c11", "c12"), "not all three verdicts agree with the evidence")


@case("q2", points=1, hint="the ledger has a link to the check of each of c1 to c6")
def places_of_the_first_half(student, rng):
    half = ("c1", "c2", "c3", "c4", "c5", "c6")
    agrees(student, "evidence", CHAPTER, half, "not all six chapters are those whose check judges the sentence")


@case("q2", points=1, hint="the ledger has a link to the check of each of c7 to c12")
def places_of_the_second_half(student, rng):
    half = ("c7", "c8", "c9", "c10", "c11", "c12")
    agrees(student, "evidence", CHAPTER, half, "not all six chapters are those whose check judges the sentence")


@case(
    "q2", points=2, hint="some sentences among c1 to c5 lack a limit: what does the proof, or the training, start from?"
)
def limits_of_the_first(student, rng):
    agrees(
        student,
        "limits",
        LIMIT,
        ("c1", "c2", "c3", "c4", "c5"),
        "among c1 to c5 not every limit is the one that the chapter names",
    )


@case("q2", points=2, hint="some sentences among c6 to c12 lack a limit: read the note on the chapter's verdict")
def limits_of_the_others(student, rng):
    agrees(
        student,
        "limits",
        LIMIT,
        ("c6", "c7", "c8", "c9", "c10", "c11", "c12"),
        "among c6 to c12 not every limit is the one that the chapter names",
    )


def descended(student, x, y, query, eta, steps, examples):
    """The prediction of gradient descent on W, from zero, with a step written for so many examples."""
    w = np.zeros(x.shape[1])
    for _ in range(steps):
        gradient = sum((w @ x_i - y_i) * x_i for x_i, y_i in zip(x, y, strict=True))
        w = w - eta * gradient / (examples if student.variant["loss"] == "mean" else 1)
    return w @ query


def compare(student, rng, among_keys):
    """The student's stack against gradient descent; a query among the keys is an example whose target is zero."""
    for examples, x_dim, layers in ((6, 3, 1), (5, 2, 2), (4, 6, 5), (1, 3, 3)):
        x, y, query = rng.normal(size=(examples, x_dim)), rng.normal(size=examples), rng.normal(size=x_dim)
        eta = rng.uniform(0.1, 0.3)
        seen_x, seen_y = (np.vstack([x, query]), np.append(y, 0.0)) if among_keys else (x, y)
        wanted = descended(student, seen_x, seen_y, query, eta, layers, examples)
        got = expect_number(student.call("stacked_layers", x, y, query, eta, layers, among_keys), "the prediction")
        message = f"after {layers} layers, with {examples} examples, the prediction is wrong"
        expect(abs(got - wanted) <= 1e-8 * max(abs(wanted), 1e-3), message)


@case(
    "q3", points=2, hint="without the query among the keys it is gradient descent: all slots change at once, with one N"
)
def the_query_is_not_read(student, rng):
    compare(student, rng, among_keys=False)


@case("q3", points=2, hint="with the query among the keys, its slot is one more term of every sum; N stays what it was")
def the_query_is_read(student, rng):
    compare(student, rng, among_keys=True)
