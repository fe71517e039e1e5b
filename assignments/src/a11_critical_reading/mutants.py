"""Mutants of "Critical reading"."""

from mesa_lib.grading.source import Mutant

READ = "num_read = len(x) + 1 if among_keys else len(x)"
UPDATE = "slots = slots - eta / len(x) * scores @ slots[:num_read]"

MUTANTS = [
    Mutant("the query's slot may be zero for every start", '"c2": "partly"', '"c2": "supported"', {"q1": 7}),
    Mutant("what is proved is called partly right", '"c3": "supported"', '"c3": "partly"', {"q1": 7}),
    Mutant("a plateau is overlooked", '"c4": "partly"', '"c4": "supported"', {"q1": 7}),
    Mutant("identically is taken at its word", '"c5": "partly"', '"c5": "supported"', {"q1": 7}),
    Mutant("the offset is everything", '"c8": "partly"', '"c8": "supported"', {"q1": 7}),
    Mutant("failed once is failed for ever", '"c9": "partly"', '"c9": "supported"', {"q1": 7}),
    Mutant("a hypothesis is half believed", '"c10": "not shown"', '"c10": "partly"', {"q1": 7}),
    Mutant("what others measured is counted", '"c11": "not shown"', '"c11": "supported"', {"q1": 7}),
    Mutant("the step stands in the wrong chapter", '"c3": "in_context_regression"', '"c3": "fast_weights"', {"q2": 6}),
    Mutant("all evidence is the ledger", '"c9": "copying"', '"c9": "claims"', {"q2": 6}),
    Mutant("two limits are exchanged", '"c2": "c", "c4": "a"', '"c2": "a", "c4": "c"', {"q2": 5}),
    Mutant("a limit that nobody found", '"c6": "d"', '"c6": "h"', {"q2": 5}),
    Mutant("one limit is missing", ', "c9": "f"}', "}", {"q2": 5}),
    Mutant("the query is never read", READ, "num_read = len(x)", {"q3": 2}),
    Mutant("the query is always read", READ, "num_read = len(x) + 1", {"q3": 2}),
    Mutant("the query counts in N", UPDATE, UPDATE.replace("len(x)", "num_read"), {"q3": 2}),
    Mutant("1/N is missing", UPDATE, UPDATE.replace(" / len(x)", ""), {"q3": 1}),
    Mutant("the step goes uphill", UPDATE, UPDATE.replace("slots - eta", "slots + eta"), {"q3": 0}),
    Mutant(
        "only the query moves",
        UPDATE,
        "slots = np.append(y, " + UPDATE.removeprefix("slots = ").replace("slots - eta", "(slots - eta") + ")[-1])",
        {"q3": 0},
    ),
    Mutant(
        "one after the other",
        UPDATE,
        "for j, row in enumerate(scores):\n            slots[j] -= eta / len(x) * row @ slots[:num_read]",
        {"q3": 0},
    ),
    Mutant("the sign of the read-out", "return -slots[-1]", "return slots[-1]", {"q3": 0}),
]
