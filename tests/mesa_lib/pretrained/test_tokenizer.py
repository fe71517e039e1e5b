"""Byte pairs: merges in their order, within words only, and back to the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import BytePairTokenizer
from mesa_lib.pretrained.tokenizer import LETTERS

SPACE = LETTERS[ord(" ")]
MERGES = ("l o", "lo w", "e r", f"{SPACE} low", "w er", "1 2")
SYMBOLS = (*LETTERS.values(), "lo", "low", "er", f"{SPACE}low", "wer", "12")


@pytest.fixture
def tokenizer():
    return BytePairTokenizer(SYMBOLS, MERGES)


def texts(tokenizer, text):
    return [tokenizer.decode([number]) for number in tokenizer.encode(text)]


def test_every_byte_has_a_printable_letter_of_its_own():
    assert len(LETTERS) == len(set(LETTERS.values())) == 256
    assert all(letter.isprintable() and not letter.isspace() for letter in LETTERS.values())
    assert LETTERS[ord("a")] == "a" and LETTERS[ord("\n")] != "\n"


def test_the_pair_that_is_listed_first_is_joined_first(tokenizer):
    # "lower" is low + er, not lo + wer: of (w, e r) and (lo, w), the second is listed earlier.
    assert texts(tokenizer, "lower") == ["low", "er"]
    assert texts(tokenizer, "wer") == ["wer"]


def test_no_pair_is_joined_across_words(tokenizer):
    assert texts(tokenizer, "low low") == ["low", " low"]
    assert texts(tokenizer, "l ow") == ["l", " ", "o", "w"]


def test_digits_stand_alone_even_after_a_space(tokenizer):
    assert texts(tokenizer, "lo 12lo") == ["lo", " ", "1", "2", "lo"]


@given(st.text(st.characters(max_codepoint=127)))
def test_what_is_cut_is_put_together_again(text):
    tokenizer = BytePairTokenizer(SYMBOLS, MERGES)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("number", [-1, len(SYMBOLS)])
def test_numbers_of_no_symbol_are_refused(tokenizer, number):
    with pytest.raises(IndexError, match=f"numbers: expected numbers from 0 to 261, got {number}"):
        tokenizer.decode([number])


def test_other_texts_are_refused(tokenizer, refused):
    refused(lambda: tokenizer.encode("Zürich"), ValueError, "text: expected ASCII letters only")
    refused(lambda: tokenizer.encode(3), TypeError, "text: expected a string, got int")
    few = BytePairTokenizer(("a",), ())
    refused(lambda: few.encode("ab"), ValueError, "text: expected letters that are symbols, got 'b'")
