"""The assignment on critical reading says of each sentence what the ledger says."""

import re

import pytest

from book._ext.claims_ledger.rows import parse_claims, read_checks
from mesa_lib.grading.build import build_notebooks
from mesa_lib.grading.source import find_assignment
from tools.toc import ROOT, notebooks

VARIANTS = ("first", "second")


@pytest.fixture(scope="module")
def assignment():
    return find_assignment("a11")


@pytest.fixture(scope="module")
def checks():
    return {check.claim: check for path in notebooks() for check in read_checks(path)}


@pytest.mark.parametrize("claims", VARIANTS)
def test_each_answer_is_the_ledgers(assignment, checks, claims):
    hidden = assignment.hidden
    asked = hidden.CLAIMS[claims].values()
    ledgers = {claim: (hidden.WORDS.get(checks[claim].ruling), checks[claim].chapter) for claim in asked}
    assert {claim: hidden.ANSWERS[claim][: hidden.LIMIT] for claim in asked} == ledgers


@pytest.mark.parametrize("claims", VARIANTS)
def test_each_sentence_is_quoted_from_its_claim(assignment, claims):
    quotes = {
        claim.id: claim.quote for claim in parse_claims((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))
    }
    variant = "" if claims == VARIANTS[0] else claims
    text = "\n".join(cell.source for cell in build_notebooks(assignment, variant)[0].cells)
    rows = dict(re.findall(r"^\| (c\d+) \| (.*)$", text, flags=re.MULTILINE))
    assert list(rows) == list(assignment.hidden.CLAIMS[claims])
    for sentence, claim in assignment.hidden.CLAIMS[claims].items():
        shown = rows[sentence].split('"')[1]
        assert plain(shown) in plain(quotes[claim])


@pytest.mark.parametrize("claims", VARIANTS)
def test_what_holds_in_part_has_a_limit_of_its_own_and_two_letters_fit_nothing(assignment, claims):
    answers = [assignment.hidden.ANSWERS[claim] for claim in assignment.hidden.CLAIMS[claims].values()]
    letters = [letter for _, _, letter in answers if letter]
    assert [word == "partly" for word, _, _ in answers] == [letter != "" for _, _, letter in answers]
    assert len(set(letters)) == len(letters) == len(assignment.public.LETTERS) - 2


def test_the_chapters_to_choose_from_are_the_books(assignment):
    assert set(assignment.public.CHAPTERS) == {path.stem for path in notebooks()}


def plain(text: str) -> str:
    """The text with typewriter marks for typographic ones."""
    return text.replace("\u2019", "'").replace("\u2013", "-").replace("\u2212", "-")
