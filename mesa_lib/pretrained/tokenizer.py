"""Text becomes symbols: byte-pair encoding, as GPT-2 introduced it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from jaxtyping import Int
from torch import Tensor

# Words with the space in front of them, runs of other signs, and spaces; digits have been cut off before.
_PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[^\sA-Za-z]+|\s+(?!\S)|\s+")


def _letters() -> dict[int, str]:
    """A printable letter for each of the 256 bytes: itself, or else one from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


LETTERS = _letters()


@dataclass(frozen=True, eq=False)
class BytePairTokenizer:
    """Cuts text into symbols by a list of merges: of all neighbours in a word, the pair that is listed first is joined.

    Digits are symbols of their own, as for SmolLM2. Only ASCII text is cut; for other letters the cut into words would
    need tables that are not here.

    Attributes:
        symbols: the text of every symbol, by number, its bytes written as letters.
        merges: pairs "left right", the earliest to be joined first.

    Example:
        >>> tokenizer = mesa.BytePairTokenizer(("l", "o", "w", "lo", "low"), ("l o", "lo w"))
        >>> tokenizer.encode("lowlo")
        [4, 3]
    """

    symbols: tuple[str, ...]
    merges: tuple[str, ...]

    @cached_property
    def _ranks(self) -> dict[tuple[str, str], int]:
        pairs = (merge.partition(" ") for merge in self.merges)
        return {(left, right): rank for rank, (left, _, right) in enumerate(pairs)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    def encode(self, text: str) -> list[int]:
        """The symbols of a text.

        Raises:
            TypeError, ValueError: `text` is no string, not ASCII, or holds a byte that is no symbol.
        """
        if not isinstance(text, str):
            raise TypeError(f"text: expected a string, got {type(text).__name__}")
        if not text.isascii():
            raise ValueError(f"text: expected ASCII letters only, got {text!r}")
        cut = (piece for run in re.split(r"(\d)", text) for piece in _pieces(run))
        return [self._number(symbol) for piece in cut for symbol in self._merged(piece)]

    def decode(self, numbers: Sequence[int] | Int[Tensor, "context"]) -> str:
        """The text of some symbols; what is no valid UTF-8 is replaced.

        Raises:
            IndexError: there is no such symbol.
        """
        listed = [int(number) for number in numbers]
        for number in listed:
            if not 0 <= number < len(self.symbols):
                raise IndexError(f"numbers: expected numbers from 0 to {len(self.symbols) - 1}, got {number}")
        letters = "".join(self.symbols[number] for number in listed)
        codes = {letter: byte for byte, letter in LETTERS.items()}
        return bytes(codes[letter] for letter in letters).decode("utf-8", errors="replace")

    def _number(self, symbol: str) -> int:
        if symbol not in self._numbers:
            raise ValueError(f"text: expected letters that are symbols, got {symbol!r}")
        return self._numbers[symbol]

    def _merged(self, piece: str) -> list[str]:
        parts = [LETTERS[byte] for byte in piece.encode()]
        while len(parts) > 1:
            never = len(self.merges)
            rank, place = min((self._ranks.get(pair, never), place) for place, pair in enumerate(pairwise(parts)))
            if rank == never:
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return parts


def _pieces(run: str) -> list[str]:
    return [run] if run.isdigit() else _PIECES.findall(run)
