"""Public cases of "Critical reading"."""

from collections.abc import Collection

import numpy as np

from mesa_lib.assignments.cases import Student, case
from mesa_lib.assignments.expectations import expect, expect_close

QUESTIONS = {
    "q1": ("verdicts",),
    "q2": ("evidence", "limits"),
    "q3": ("stacked_layers",),
}
VARIANTS = {"claims": ("first", "second"), "loss": ("mean", "sum")}

WORDS = ("supported", "partly", "not shown")
SENTENCES = tuple(f"c{number}" for number in range(1, 13))
LETTERS = "abcdefgh"
CHAPTERS = (
    "in_context_regression", "fast_weights", "one_layer_one_step", "training_finds_the_step", "symmetries_and_plateaus",
    "other_tasks", "off_distribution", "depth_and_gd_plus_plus", "what_gd_plus_plus_is", "deep_features", "softmax",
    "copying", "rival_accounts", "real_weights", "claims", "errata_and_questions",
)  # fmt: skip


def _entries(student: Student, name: str, allowed: Collection[str], kind: str) -> dict[str, str]:
    """A dictionary of sentences, its words checked."""
    given = student.get(name)
    expect(isinstance(given, dict), f"{name} has to be a dictionary such as {{'c0': ...}}")
    entries = {str(key).strip().lower(): str(value).strip().lower() for key, value in given.items()}
    unknown = [key for key in entries if key not in SENTENCES]
    expect(not unknown, f"{name} has an entry {', '.join(unknown)}; sentences are called 'c1' to 'c12'")
    strange = [value for value in dict.fromkeys(entries.values()) if value not in allowed]
    expect(not strange, f"{name} says {', '.join(map(repr, strange))}; that is no {kind} of this assignment")
    return entries


@case(
    "q1", points=1, hint="twelve entries, 'c1' to 'c12', each with one of the three words; is one of the words unused?"
)
def twelve_words(student: Student, rng: np.random.Generator) -> None:
    """Each sentence has one of the words, and each word is used."""
    entries = _entries(student, "verdicts", WORDS, "verdict")
    missing = [key for key in SENTENCES if key not in entries]
    expect(not missing, f"there is no verdict yet on {', '.join(missing)}")
    expect(
        set(entries.values()) == set(WORDS),
        "one of the three words is never used; in this table each of them fits some",
    )


@case("q2", points=1, hint="chapters by the names of their pages, limits by their letters, no letter twice")
def places_and_letters(student: Student, rng: np.random.Generator) -> None:
    """A chapter for each sentence, and letters that differ."""
    places = _entries(student, "evidence", CHAPTERS, "chapter")
    missing = [key for key in SENTENCES if key not in places]
    expect(not missing, f"there is no chapter yet for {', '.join(missing)}")
    letters = _entries(student, "limits", LETTERS, "letter")
    expect(letters, "there is no limit yet")
    expect(
        len(set(letters.values())) == len(letters), "one letter is used for several sentences; each fits one at most"
    )


@case("q3", points=1, hint="one input, x = 1, y = 4, the query 1, a step of a half: follow both slots by hand")
def one_example_by_hand(student: Student, rng: np.random.Generator) -> None:
    """One example, so that both conventions agree: two layers, with the query among the keys and without."""
    task = (np.array([[1.0]]), np.array([4.0]), np.array([1.0]), 0.5)
    expect_close(student.call("stacked_layers", *task, 1, False), 2.0, "the prediction after one layer", {
        "the sign of the prediction is the other way round: it is minus the query's slot": -2.0,
        "the slots are changed one after the other; a layer changes all of them at once": 1.0,
    })  # fmt: skip
    expect_close(student.call("stacked_layers", *task, 2, False), 3.0, "the prediction after two layers", {
        "the slots of the examples do not change from layer to layer; they have to": 4.0,
        "the second layer changes nothing, or the query is among the keys, where it should not be": 2.0,
    })  # fmt: skip
    expect_close(student.call("stacked_layers", *task, 2, True), 2.0, "the prediction with the query among the keys", {
        "the query is not among the keys, where it should be": 3.0,
        "the query is counted in N; the weights know the number of examples": 1.5,
    })  # fmt: skip
