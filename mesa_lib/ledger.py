"""Verdicts: a chapter's check of a claim, as a box to read, a record to collect and an error if it fails.

A claim about the paper is judged where the chapter computes. The cell calls `verdict` with its ruling and its evidence;
each piece of evidence is a number held against a bound, so a ruling cannot stand on words alone. If a bound is
broken the cell fails, and with it the build. What the cell shows is stored in the notebook, and the book's ledger is
made from these stored outputs and from nothing else.
"""

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat

from mesa_lib.validation import finite_number, one_of

RULINGS = ("proved", "supported", "supported with limits", "contradicted", "open", "untestable here")
"""What a verdict may say: by proof and exact check; by measurement; by measurement, within stated limits; the opposite
holds; not decided by what we know; not to be decided with what this book can run."""

NEED_NOTE = ("supported with limits", "open", "untestable here")
"""Rulings that say too little without a sentence: which limits, what is missing."""

MIME_TYPE = "application/vnd.mesa.verdict+json"
"""The type of the machine-readable output of a check cell."""

_CLAIM = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*")


class VerdictError(AssertionError):
    """A piece of evidence does not hold; the message names the claim and the evidence."""


@dataclass(frozen=True)
class Evidence:
    """One measured number held against what it must be.

    Attributes:
        value: what was measured.
        low: the least value that fits the ruling; -infinity if there is no bound.
        high: the greatest; infinity if there is no bound.
        unit: unit or convention of the number ("half-MSE", "units of y", "" for a pure number).

    Raises:
        ValueError: no bound at all, a bound that is NaN, `low` > `high`, or a bound that takes more than six digits to
            write: what the box shows must be what was checked.

    Example:
        >>> mesa.between(0.5, 0.4, 0.6).value
        0.5
    """

    value: float
    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"low, high: expected low <= high, got {self.low:g} and {self.high:g}")
        finite = [bound for bound in (self.low, self.high) if not math.isinf(bound)]
        if not finite:
            raise ValueError(f"low, high: expected a finite bound, got {self.low:g} and {self.high:g}")
        for bound in finite:
            if float(f"{bound:g}") != bound:
                raise ValueError(f"bound: expected a number of at most six digits, as the box shows it, got {bound!r}")

    @property
    def holds(self) -> bool:
        """Whether the value lies within its bounds; never true for NaN or infinity."""
        return math.isfinite(self.value) and self.low <= self.value <= self.high

    @property
    def bound(self) -> str:
        """The bounds in words, with the unit. They are the same on every machine; the value's last digits are not."""
        unit = f" {self.unit}" if self.unit else ""
        if self.low == -math.inf:
            return f"at most {self.high:g}{unit}"
        if self.high == math.inf:
            return f"at least {self.low:g}{unit}"
        return f"{self.low:g}{unit}" if self.low == self.high else f"between {self.low:g} and {self.high:g}{unit}"


def at_most(value: SupportsFloat, bound: float, unit: str = "") -> Evidence:
    """Evidence that `value` <= `bound`.

    Args:
        value: one number; a tensor of one entry will do.
        bound: the greatest value that fits the ruling, in at most six digits.
        unit: unit or convention of both.

    Raises:
        TypeError, ValueError: the value is not one number, or the bound is not finite or has too many digits.

    Example:
        >>> mesa.at_most(1e-13, 1e-12, "units of y")
        Evidence(value=1e-13, low=-inf, high=1e-12, unit='units of y')
    """
    return Evidence(_number(value), -math.inf, finite_number("bound", bound), unit)


def at_least(value: SupportsFloat, bound: float, unit: str = "") -> Evidence:
    """Evidence that `value` >= `bound`; arguments and errors as for `at_most`.

    Raises:
        TypeError, ValueError: the value is not one number, or the bound is not finite or has too many digits.

    Example:
        >>> mesa.at_least(0.99, 0.9)
        Evidence(value=0.99, low=0.9, high=inf, unit='')
    """
    return Evidence(_number(value), finite_number("bound", bound), math.inf, unit)


def between(value: SupportsFloat, low: float, high: float, unit: str = "") -> Evidence:
    """Evidence that `low` <= `value` <= `high`; with equal bounds, that a count is what it must be.

    Raises:
        TypeError, ValueError: the value is not one number, a bound is not finite or has too many digits, or `low`
            exceeds `high`.

    Example:
        >>> mesa.between(0.5, 0.4, 0.6)
        Evidence(value=0.5, low=0.4, high=0.6, unit='')
    """
    return Evidence(_number(value), finite_number("low", low), finite_number("high", high), unit)


def _number(value: SupportsFloat) -> float:
    if isinstance(value, str):  # float would read it
        raise TypeError(f"value: expected one number, got the text {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:  # torch has a RuntimeError for tensors of several entries
        raise TypeError(f"value: expected one number, got {type(value).__name__}: {error}") from error


@dataclass(frozen=True)
class Verdict:
    """A ruling on a claim, with the evidence that it rests on. Made by `verdict`, which checks it.

    Attributes:
        claim: the claim's id in the book's list of claims.
        ruling: one of `RULINGS`.
        evidence: what was measured -> its bounds, in words.
        note: a limit of the ruling, in a sentence; may be empty.

    Example:
        >>> mesa.verdict("C1", "proved", {"error": mesa.at_most(0.0, 1e-12)}).claim
        'C1'
    """

    claim: str
    ruling: str
    evidence: Mapping[str, str]
    note: str = ""

    def __repr__(self) -> str:
        """The box as text, for a terminal."""
        lines = [f"Claim {self.claim}: {self.ruling}", *(f"  {name}: {bound}" for name, bound in self.evidence.items())]
        return "\n".join([*lines, f"  {self.note}"] if self.note else lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self.to_html(), MIME_TYPE: self.to_record()}

    def to_record(self) -> dict[str, Any]:
        """The box as data for JSON; evidence is a list, since files of notebooks sort the keys of an object."""
        evidence = [{"measured": name, "bound": bound} for name, bound in self.evidence.items()]
        return {"claim": self.claim, "ruling": self.ruling, "evidence": evidence, "note": self.note}

    def to_html(self) -> str:
        """The box as HTML; its id is the target of the ledger's link to this very cell."""
        pieces = [f"<li>{html.escape(name)}: <b>{html.escape(bound)}</b></li>" for name, bound in self.evidence.items()]
        rows = f"<ul>{''.join(pieces)}</ul>" if pieces else ""
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        kind = self.ruling.replace(" ", "-")
        return (
            f'<div class="verdict verdict-{kind}" id="verdict-{html.escape(self.claim.lower())}">'
            f"<p><b>Claim {html.escape(self.claim)}: {self.ruling}</b></p>{rows}{note}</div>"
        )


def verdict(claim: str, ruling: str, evidence: Mapping[str, Evidence], note: str = "") -> Verdict:
    """Judge a claim: check the evidence, and show a box that the book's ledger collects.

    The ruling "contradicted" needs evidence as well: bounds that the claim, if true, could not meet.

    Args:
        claim: the claim's id, as in `book/claims.yml`; in lower case it names the box on the page.
        ruling: one of `RULINGS`.
        evidence: what was measured -> `at_most`, `at_least` or `between`; at least one piece, except for "open" and
            "untestable here".
        note: a limit of the ruling, in a sentence; "supported with limits", "open" and "untestable here" need one.

    Returns:
        A Verdict; as the last value of a cell it shows itself as text, HTML and a machine-readable record.

    Raises:
        VerdictError: a piece of evidence does not hold.
        TypeError, ValueError: an unknown ruling, a claim's id that is none, evidence of another type, or no evidence
            or no note where one is needed.

    Example:
        >>> prediction = mesa.FreeTransformer([layer])(batch).detach()
        >>> error = (prediction - mesa.gradient_descent(batch, eta=1.0)).abs().max()
        >>> mesa.verdict("C1", "proved", {"error": mesa.at_most(error, 1e-12, "units of y")}).ruling
        'proved'
    """
    if not isinstance(claim, str) or not _CLAIM.fullmatch(claim):  # type: ignore[redundant-expr]
        raise ValueError(f"claim: expected an id of letters, digits and single hyphens, got {claim!r}")
    one_of("ruling", ruling, RULINGS)
    for name, piece in evidence.items():
        if not isinstance(piece, Evidence):
            raise TypeError(f"evidence[{name!r}]: expected Evidence, got {type(piece).__name__}")
    if not evidence and ruling not in ("open", "untestable here"):
        raise ValueError(f"evidence: expected at least one piece for {ruling!r}, got none")
    if ruling in NEED_NOTE and not note.strip():
        raise ValueError(f"note: expected a sentence on the limits of {ruling!r}, got {note!r}")
    broken = [f"{name} = {piece.value!r}, not {piece.bound}" for name, piece in evidence.items() if not piece.holds]
    if broken:
        raise VerdictError(f"claim {claim} is not {ruling}: " + "; ".join(broken))
    return Verdict(claim, ruling, {name: piece.bound for name, piece in evidence.items()}, note)
