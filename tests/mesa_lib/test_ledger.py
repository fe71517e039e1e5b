"""Verdicts: rulings that need evidence, bounds that hold or fail, and a box that is the same on every machine."""

import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from mesa_lib import Evidence, Verdict, VerdictError, at_least, at_most, between, verdict
from mesa_lib.ledger import MIME_TYPE, NEED_NOTE, RULINGS

HOLDS = {"error": at_most(1e-15, 1e-12, "units of y")}


@pytest.mark.parametrize(
    ("piece", "holds"),
    [
        (at_most(1.0, 1), True),
        (at_most(1.5, 1), False),
        (at_least(1.0, 1), True),
        (at_least(0.5, 1), False),
        (between(1.0, 1, 2), True),
        (between(2.0, 1, 2), True),
        (between(0.999, 1, 2), False),
        (between(2.001, 1, 2), False),
        (between(3, 3, 3), True),
        (between(4, 3, 3), False),
    ],
)
def test_a_bound_includes_its_end(piece, holds):
    assert piece.holds is holds


@pytest.mark.parametrize("piece", [at_most(math.nan, 1), at_least(math.nan, 1), between(math.nan, 0, 1)])
def test_nothing_holds_of_nan(piece):
    assert not piece.holds
    with pytest.raises(VerdictError, match=r"claim C1 is not proved: error = nan, not "):
        verdict("C1", "proved", {"error": piece})


@pytest.mark.parametrize(
    ("piece", "words"),
    [
        (at_most(0, 1e-12, "units of y"), "at most 1e-12 units of y"),
        (at_least(2, 0.998), "at least 0.998"),
        (between(0.5, 0.25, 1, "half-MSE"), "between 0.25 and 1 half-MSE"),
        (between(3, 3, 3, "seeds"), "3 seeds"),
    ],
)
def test_a_bound_in_words(piece, words):
    assert piece.bound == words


@pytest.mark.parametrize("value", [0.5, np.float64(0.5), np.float32(0.5), torch.tensor(0.5), torch.tensor([[0.5]])])
def test_any_single_number_can_be_measured(value):
    assert at_most(value, 1) == Evidence(0.5, -math.inf, 1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: at_most(0, math.inf), ValueError, "bound: expected a finite number, got inf"),
        (lambda: at_least(0, math.nan), ValueError, "bound: expected a finite number, got nan"),
        (lambda: at_least(0, "1"), TypeError, "bound: expected a finite number, got '1'"),
        (lambda: between(0, 2, 1), ValueError, "low, high: expected low <= high, got 2 and 1"),
        (lambda: between(0, -math.inf, 1), ValueError, "low: expected a finite number"),
        (lambda: Evidence(0.0, -math.inf, math.inf), ValueError, "low, high: expected a finite bound"),
        (lambda: Evidence(0.0, math.nan, 1.0), ValueError, "low, high: expected low <= high"),
        (lambda: at_most(0, 1 / 3), ValueError, "bound: expected a number of at most six digits"),
        (lambda: at_most(torch.zeros(3), 1), TypeError, "value: expected one number, got Tensor"),
        (
            lambda: verdict("", "proved", HOLDS),
            ValueError,
            "claim: expected an id of letters, digits and single hyphens",
        ),
        (lambda: verdict("C 1", "proved", HOLDS), ValueError, "got 'C 1'"),
        (lambda: verdict('C1"', "proved", HOLDS), ValueError, "claim: expected an id"),
        (lambda: verdict("C1", "true", HOLDS), ValueError, "ruling: expected one of 'proved', 'supported'"),
        (
            lambda: verdict("C1", "proved", {}),
            ValueError,
            "evidence: expected at least one piece for 'proved'",
        ),
        (
            lambda: verdict("C1", "proved", {"error": 1e-15}),
            TypeError,
            "evidence['error']: expected Evidence",
        ),
        (lambda: verdict("C1", "open", {}), ValueError, "note: expected a sentence on the limits of 'open'"),
        (lambda: verdict("C1", "supported with limits", HOLDS), ValueError, "note: expected a sentence"),
    ],
)
def test_what_makes_no_verdict_is_refused(call, error, message, refused):
    refused(call, error, message)


@pytest.mark.parametrize("ruling", RULINGS)
def test_every_ruling_can_be_made_and_shown(ruling):
    made = verdict("C2-LOSS", ruling, HOLDS, note="For one layer.")
    assert repr(made) == f"Claim C2-LOSS: {ruling}\n  error: at most 1e-12 units of y\n  For one layer."
    assert f"<b>Claim C2-LOSS: {ruling}</b>" in made.to_html()
    assert f'class="verdict verdict-{ruling.replace(" ", "-")}" id="verdict-c2-loss"' in made.to_html()


@pytest.mark.parametrize("ruling", RULINGS)
def test_broken_evidence_fails_whatever_the_ruling_and_names_claim_and_evidence(ruling):
    evidence = HOLDS | {"cosine": at_least(0.5, 0.998), "seeds": between(3, 4, 4)}
    with pytest.raises(VerdictError) as caught:
        verdict("C2", ruling, evidence, note="For one layer.")
    assert str(caught.value) == f"claim C2 is not {ruling}: cosine = 0.5, not at least 0.998; seeds = 3.0, not 4"
    assert isinstance(caught.value, AssertionError)


def test_only_the_rulings_that_decide_nothing_do_without_evidence():
    assert set(NEED_NOTE) < set(RULINGS)
    for ruling in ("open", "untestable here"):
        assert verdict("C5", ruling, {}, note="No language model is trained here.").evidence == {}


def test_the_box_holds_bounds_and_not_what_was_measured():
    one, other = (verdict("C1", "proved", {"error": at_most(value, 1e-12)}) for value in (1.1e-15, 7.3e-15))
    assert one == other
    assert repr(one) == repr(other) == "Claim C1: proved\n  error: at most 1e-12"
    assert one._repr_mimebundle_() == other._repr_mimebundle_()


def test_the_record_survives_a_file_and_keeps_the_order_of_the_evidence():
    made = verdict("C1", "proved", {"z": at_most(0, 1), "a": at_least(1, 0.5, "half-MSE")}, note="N = 10.")
    bundle = made._repr_mimebundle_()
    assert list(bundle) == ["text/plain", "text/html", MIME_TYPE]
    assert json.loads(json.dumps(bundle[MIME_TYPE], sort_keys=True)) == {
        "claim": "C1",
        "ruling": "proved",
        "evidence": [{"measured": "z", "bound": "at most 1"}, {"measured": "a", "bound": "at least 0.5 half-MSE"}],
        "note": "N = 10.",
    }


class Outline(HTMLParser):
    """What a browser makes of a piece of HTML: its tags, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_words_cannot_break_the_box():
    words = '<script>"&amp;'
    made = verdict(
        "C1", "supported with limits", {f"name {words}": at_most(0, 1, f"unit {words}")}, note=f"note {words}"
    )
    box = Outline()
    box.feed(made.to_html())
    assert box.tags == ["div", "p", "b", "ul", "li", "b", "p"]
    assert box.text == f"Claim C1: supported with limitsname {words}: at most 1 unit {words}note {words}"


def test_a_box_without_evidence_has_no_empty_list():
    assert Verdict("C5", "open", {}, "Why.").to_html().count("<ul>") == 0


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_no_bound_holds_for_a_value_that_is_not_finite(value):
    assert not at_most(value, 1).holds
    assert not at_least(value, 1).holds
