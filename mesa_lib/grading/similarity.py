"""Which submissions are more alike than chance and the assignment explain. Evidence to read, never a proof.

Code is reduced to the kinds of its tokens: names, numbers and texts lose what they say, so renaming hides nothing.
Every run of a few tokens is a fingerprint. Fingerprints of what was handed out do not count, and one that many students
share counts little: a one-line formula is the same for everybody who got it right.
"""

import io
import keyword
import math
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from mesa_lib.grading.batch import Found, write_table
from mesa_lib.grading.submission import SubmissionError, read_submission

RUN = 12
"""Tokens in a fingerprint of code."""

WORDS = 5
"""Words in a fingerprint of text."""

_UNSEEN = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Pair:
    """Two submissions.

    Attributes:
        first: one student.
        second: the other one.
        code: how alike their code is: 0 for nothing in common but the usual, 1 for the same.
        text: the same for their free text.
    """

    first: str
    second: str
    code: float
    text: float

    @property
    def most(self) -> float:
        """The larger of the two."""
        return max(self.code, self.text)


def similar_pairs(release: NotebookNode, submissions: Sequence[Found], least: float = 0.3) -> list[Pair]:
    """The pairs of submissions that are alike, the most alike first.

    Args:
        release: the notebook that was handed out.
        submissions: one a student.
        least: pairs below are left out.
    """
    handed_out = [(cell.cell_type, cell.source) for cell in release.cells]
    code: dict[str, set[int]] = {}
    text: dict[str, set[int]] = {}
    for found in submissions:
        try:
            cells = list(read_submission(found.path).cells)
        except SubmissionError:
            continue
        code[found.student] = _code_prints(cells) - _code_prints(handed_out)
        text[found.student] = _text_prints(cells) - _text_prints(handed_out)
    code_weights, text_weights = _weights(code.values()), _weights(text.values())
    pairs = [
        Pair(a, b, _alike(code[a], code[b], code_weights), _alike(text[a], text[b], text_weights))
        for a, b in combinations(sorted(code), 2)
    ]
    return sorted((pair for pair in pairs if pair.most >= least), key=lambda pair: -pair.most)


def write_pairs(pairs: Iterable[Pair], path: Path) -> None:
    """Write a table of pairs."""
    rows: list[dict[str, Any]] = [
        {"first": pair.first, "second": pair.second, "code": round(pair.code, 2), "text": round(pair.text, 2)}
        for pair in pairs
    ]
    write_table(path, rows or [{"first": "", "second": "", "code": "", "text": ""}])


def code_tokens(source: str) -> list[str]:
    """The tokens of a cell, without names, numbers, texts, comments and layout; what cannot be read is left out."""
    tokens = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in _UNSEEN:
                continue
            plain = {tokenize.NUMBER: "0", tokenize.STRING: "''"}.get(token.type, token.string)
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                plain = "name"
            tokens.append(plain)
    except (tokenize.TokenError, SyntaxError):
        pass
    return tokens


def _code_prints(cells: Iterable[tuple[str, str]]) -> set[int]:
    return {mark for kind, source in cells if kind == "code" for mark in _runs(code_tokens(source), RUN)}


def _text_prints(cells: Iterable[tuple[str, str]]) -> set[int]:
    return {mark for kind, source in cells if kind == "markdown" for mark in _runs(source.casefold().split(), WORDS)}


def _runs(words: Sequence[str], length: int) -> set[int]:
    return {hash(tuple(words[start : start + length])) for start in range(len(words) - length + 1)}


def _weights(prints: Iterable[set[int]]) -> Mapping[int, float]:
    """How much a fingerprint counts: a lot if only two students have it, nothing if all have."""
    listed = list(prints)
    shared = Counter(mark for marks in listed for mark in marks)
    return {mark: math.log(len(listed) / count) for mark, count in shared.items() if count > 1}


def _alike(a: set[int], b: set[int], weights: Mapping[int, float]) -> float:
    """The weight of what two share, of the weight of the smaller of the two; marks of one student alone weigh most."""
    alone = max(weights.values(), default=1.0) or 1.0
    common = sum(weights.get(mark, alone) for mark in a & b)
    smaller = min(sum(weights.get(mark, alone) for mark in marks) for marks in (a, b))
    return common / smaller if smaller > 0 else 0.0
