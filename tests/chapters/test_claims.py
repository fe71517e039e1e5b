"""The ledger is whole: every claim of `book/claims.yml` has one executed check in its chapter, every check a claim."""

import pytest

from book._ext.claims_ledger.rows import Claim, complaints, parse_claims, read_checks
from tools.toc import ROOT, notebooks, read_pages


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return parse_claims((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))


def test_every_claim_has_one_executed_check_in_its_chapter_and_every_check_a_claim(claims):
    assert complaints(claims, [check for path in notebooks() for check in read_checks(path)]) == []


def test_claims_are_listed_by_chapter_in_reading_order(claims):
    order = [page.name for page in read_pages()]
    places = [order.index(claim.chapter) for claim in claims]
    assert places == sorted(places)


def test_a_statement_is_a_sentence_in_other_words_than_the_quote(claims):
    assert [claim.id for claim in claims if not claim.statement.endswith(".")] == []
    assert [claim.id for claim in claims if claim.quote.casefold() in claim.statement.casefold()] == []
