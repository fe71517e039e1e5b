"""The ledger as data: the claims of the notes, the checks that chapters have executed, and the rows that join them.

Nothing here knows Sphinx. Functions that read raise a `LedgerError`; functions that compare return complaints, one
sentence each. Either names the claim.
"""

import ast
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from IPython.core.inputtransformer2 import TransformerManager

from mesa_lib.ledger import MIME_TYPE, RULINGS

NOTES = ("Reading note", "NOTE-280")
KINDS = ("claim", "assumption", "limitation", "open question", "bearing")
MAX_QUOTE_WORDS = 20

_ID = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*")
_TITLE = re.compile(r"^#[ \t]+(.+?)[ \t]*$", re.MULTILINE)


class LedgerError(Exception):
    """The list of claims or a stored check is not what it must be; the message names the claim."""


@dataclass(frozen=True)
class Claim:
    """One row of `claims.yml`: what a note says. Nothing in it is a verdict.

    Attributes:
        id: the claim's id, in capitals, digits and hyphens.
        statement: the claim in our words; Markdown, and mathematics between dollar signs.
        source: the note that makes it, one of `NOTES`, or two of them joined by "and".
        quote: some words of the (first) note's sentence, by which a reader finds it.
        kind: one of `KINDS`.
        strength: how strong the note calls it, or "stated".
        chapter: the chapter that judges it, by its file's name without the suffix.
    """

    id: str
    statement: str
    source: str
    quote: str
    kind: str
    strength: str
    chapter: str

    @property
    def notes(self) -> list[str]:
        """The notes that make the claim."""
        return self.source.split(" and ")


@dataclass(frozen=True)
class Check:
    """A verdict among the stored outputs of a chapter.

    Attributes:
        claim: the claim's id.
        ruling: one of `RULINGS`.
        evidence: what was measured -> its bounds, in words.
        note: a limit of the ruling; may be empty.
        chapter: the chapter's name.
        title: the chapter's title.
        cell: the cell's place among the chapter's code cells, from 1.
    """

    claim: str
    ruling: str
    evidence: Mapping[str, str]
    note: str
    chapter: str
    title: str
    cell: int

    @property
    def anchor(self) -> str:
        """The id of the check's box on the chapter's page."""
        return f"verdict-{self.claim.lower()}"


@dataclass(frozen=True)
class Row:
    """A claim and the one check that judges it."""

    claim: Claim
    check: Check


# --- claims -----------------------------------------------------------------------------------------------------------


@cache
def _read_yaml(text: str) -> Any:
    """What the text says, remembered: several directives ask for one file, which takes a third of a second."""
    return yaml.safe_load(text)


def parse_claims(text: str) -> list[Claim]:
    """The claims in the text of a `claims.yml`, in its order.

    Raises:
        LedgerError: it is no list of mappings with exactly the fields of `Claim`, each a text that is not empty; an
            id, a source or a kind is none; a quote is too long; an id occurs twice.
    """
    try:
        entries = _read_yaml(text)
    except yaml.YAMLError as error:
        raise LedgerError(f"the list of claims is no YAML: {error}") from error
    if not isinstance(entries, list) or not entries:
        raise LedgerError(f"the list of claims: expected a list of mappings, got {entries!r:.80}")
    claims = [_claim(entry, number) for number, entry in enumerate(entries, start=1)]
    for name, count in Counter(claim.id for claim in claims).items():
        if count > 1:
            raise LedgerError(f"claim {name}: stands {count} times in the list of claims")
    return claims


def _claim(entry: Any, number: int) -> Claim:
    if not isinstance(entry, dict):
        raise LedgerError(f"claim number {number}: expected a mapping, got {entry!r:.80}")
    name = f"claim {entry['id']}" if "id" in entry else f"claim number {number}"
    expected = [field.name for field in fields(Claim)]
    if set(entry) != set(expected):
        missing = ", ".join(key for key in expected if key not in entry) or "none"
        unknown = ", ".join(str(key) for key in entry if key not in expected) or "none"
        raise LedgerError(f"{name}: fields that are missing: {missing}; fields that are unknown: {unknown}")
    for key, value in entry.items():
        if not isinstance(value, str) or not value.strip():
            raise LedgerError(f"{name}: {key}: expected a text, got {value!r}")
    claim = Claim(**{key: " ".join(value.split()) for key, value in entry.items()})
    if not _ID.fullmatch(claim.id):
        raise LedgerError(f"{name}: id: expected capitals, digits and single hyphens")
    if not set(claim.notes) <= set(NOTES):
        raise LedgerError(f"{name}: source: expected {' or '.join(map(repr, NOTES))}, got {claim.source!r}")
    if claim.kind not in KINDS:
        raise LedgerError(f"{name}: kind: expected one of {', '.join(map(repr, KINDS))}, got {claim.kind!r}")
    if (length := len(claim.quote.split())) > MAX_QUOTE_WORDS:
        raise LedgerError(f"{name}: quote: expected at most {MAX_QUOTE_WORDS} words, got {length}")
    return claim


# --- checks -----------------------------------------------------------------------------------------------------------


def read_checks(notebook: Path) -> list[Check]:
    """The verdicts among a notebook's stored outputs, in reading order.

    Raises:
        LedgerError: see `parse_checks`; or the file holds no notebook.
    """
    try:
        content = json.loads(notebook.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LedgerError(f"{notebook.name}: holds no notebook: {error}") from error
    return parse_checks(content, notebook.stem)


def parse_checks(notebook: Mapping[str, Any], chapter: str) -> list[Check]:
    """The verdicts among the stored outputs of a notebook, in reading order.

    Args:
        notebook: the content of the file.
        chapter: the chapter's name.

    Raises:
        LedgerError: a stored verdict is malformed, has an unknown ruling, or is stale: its cell has not been executed,
            or has since come to say something else.
    """
    title = _title(notebook, chapter)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    return [
        _check(record, cell, chapter, title, number)
        for number, cell in enumerate(code, start=1)
        for output in cell["outputs"]
        if (record := output.get("data", {}).get(MIME_TYPE)) is not None
    ]


def _title(notebook: Mapping[str, Any], chapter: str) -> str:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and (found := _TITLE.search("".join(cell["source"]))):
            return found[1]
    return chapter


def _check(record: Any, cell: Mapping[str, Any], chapter: str, title: str, number: int) -> Check:
    place = f"{chapter}, code cell {number}"
    try:
        claim, ruling, note = record["claim"], record["ruling"], record["note"]
        evidence = {piece["measured"]: piece["bound"] for piece in record["evidence"]}
    except (KeyError, TypeError) as error:
        raise LedgerError(f"{place}: a malformed stored verdict, {record!r:.400}; run `make execute`") from error
    if ruling not in RULINGS:
        raise LedgerError(f"claim {claim}: {place} has the unknown ruling {ruling!r}")
    if cell["execution_count"] is None:
        raise LedgerError(f"claim {claim}: {place} shows a verdict but has not been executed; run `make execute`")
    if (claim, ruling) not in list(_called("".join(cell["source"]))):
        raise LedgerError(
            f"claim {claim}: {place} shows the stored verdict {ruling!r}, but its code has no "
            f"verdict({claim!r}, {ruling!r}, ...); write both as they are, and run `make execute`"
        )
    return Check(claim, ruling, evidence, note, chapter, title, number)


def _called(source: str) -> Iterator[tuple[Any, ...]]:
    """Claim and ruling of every call of `verdict` in a cell that writes both down as they are."""
    tree = ast.parse(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name == "verdict":
                yield tuple(argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant))


# --- the ledger -------------------------------------------------------------------------------------------------------


def complaints(claims: Sequence[Claim], checks: Sequence[Check]) -> list[str]:
    """What keeps claims and checks from being one ledger: each claim has one check, in its chapter, and no check more.

    Returns:
        One sentence for each; none if all is well.
    """
    chapters = {claim.id: claim.chapter for claim in claims}
    found: dict[str, list[Check]] = {}
    for check in checks:
        found.setdefault(check.claim, []).append(check)
    result = [
        f"claim {claim.id}: no executed check in {claim.chapter}; end a cell with verdict({claim.id!r}, ...)"
        for claim in claims
        if claim.id not in found
    ]
    for name, of_claim in found.items():
        places = [f"{check.chapter}, code cell {check.cell}" for check in of_claim]
        if name not in chapters:
            result.append(f"claim {name}: checked in {places[0]}, but not in the list of claims")
            continue
        if len(of_claim) > 1:
            result.append(f"claim {name}: checked {len(of_claim)} times, in {'; '.join(places)}")
        result += [
            f"claim {name}: checked in {check.chapter}, but the list of claims says {chapters[name]}"
            for check in of_claim
            if check.chapter != chapters[name]
        ]
    return result


def join(claims: Sequence[Claim], checks: Sequence[Check]) -> list[Row]:
    """The ledger in the order of the claims: without those that have no check, and of several checks with the last."""
    by_claim = {check.claim: check for check in checks}
    return [Row(claim, by_claim[claim.id]) for claim in claims if claim.id in by_claim]


_COLUMNS = (*(field.name for field in fields(Claim)), "ruling", "evidence", "note", "cell", "anchor")


def to_json(rows: Sequence[Row]) -> str:
    """The ledger as JSON: one object a row, evidence as an object."""
    return json.dumps([_record(row) for row in rows], indent=2, ensure_ascii=False) + "\n"


def to_csv(rows: Sequence[Row]) -> str:
    """The ledger as CSV with a line of headings; pieces of evidence are joined by semicolons."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS)
    writer.writeheader()
    for record in map(_record, rows):
        evidence = "; ".join(f"{name}: {bound}" for name, bound in record["evidence"].items())
        writer.writerow(record | {"evidence": evidence})
    return text.getvalue()


def _record(row: Row) -> dict[str, Any]:
    check = row.check
    judged = (check.ruling, dict(check.evidence), check.note, check.cell, check.anchor)
    return asdict(row.claim) | dict(zip(_COLUMNS[-len(judged) :], judged, strict=True))
