"""The directive `claims-ledger`: a table of every claim with its verdict, from the outputs that the chapters hold.

    :::{claims-ledger} claims.yml
    :::

The claims come from the file that is named, the verdicts from the stored outputs of the book's notebooks and from
nothing else. Whatever does not fit is a warning that names the claim, and so an error for a build with -W.

A second directive, `note-sentences`, lists the sentences of one note for the page that sums it up:

    :::{note-sentences} claims.yml
    :note: NOTE-280
    :kind: limitation
    :::

Each sentence links to its row of the ledger, and the row back to it.
"""

import html
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from mesa_lib.ledger import MIME_TYPE, RULINGS

from .rows import (
    KINDS,
    NOTES,
    Check,
    Claim,
    LedgerError,
    Row,
    complaints,
    join,
    parse_claims,
    read_checks,
    to_csv,
    to_json,
)

SCRIPT = Path(__file__).with_name("filter.js")
HEADINGS = {"Claim": 10, "In our words": 24, "In the note": 24, "Our verdict": 16, "Evidence": 26}  # with widths

NOTE_PAGES = {"Reading note": "reading_note", "NOTE-280": "note_280"}
"""The pages that sum up the notes, beside the ledger."""

LEDGER_PAGE = "claims"

logger = logging.getLogger(__name__)


class ClaimsLedger(SphinxDirective):
    """The table, a filter that appears where scripts run, and the table's files to download."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Read claims and checks, complain about what does not fit, and show the rest."""
        try:
            claims, checks = self._read()
        except LedgerError as error:
            self._warn(str(error))
            return []
        for complaint in complaints(claims, checks):
            self._warn(complaint)
        rows = join(claims, checks)
        self.env.note_dependency(str(SCRIPT))
        script = f"<script>\n{SCRIPT.read_text(encoding='utf-8')}</script>"
        return [
            nodes.paragraph("", summary(rows)),
            nodes.raw("", filter_form(rows), format="html"),
            self._table(rows),
            self._downloads(rows),
            nodes.raw("", script, format="html"),
        ]

    def _warn(self, message: str) -> None:
        logger.warning(message, type="claims_ledger", location=self.get_location())

    def _read(self) -> tuple[list[Claim], list[Check]]:
        """The claims, and the checks of every notebook of the book; the page is made anew when one of them changes."""
        name, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(name)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise LedgerError(f"the list of claims {name} can't be read: {error.strerror}") from error
        self._pages: dict[str, str] = {}
        checks = []
        for page in sorted(self.env.found_docs):
            source = Path(self.env.doc2path(page))
            if source.suffix == ".ipynb":
                self.env.note_dependency(str(source))
                self._pages[source.stem] = page
                checks += read_checks(source)
        return parse_claims(text), checks

    def _table(self, rows: Sequence[Row]) -> nodes.table:
        group = nodes.tgroup("", cols=len(HEADINGS))
        for number, width in enumerate(HEADINGS.values()):
            group += nodes.colspec("", colwidth=width, stub=int(number == 0))
        headings = [nodes.entry("", nodes.paragraph("", heading)) for heading in HEADINGS]
        group += nodes.thead("", nodes.row("", *headings))
        group += nodes.tbody("", *map(self._row, rows))
        return nodes.table("", group, classes=["claims-ledger"])

    def _row(self, row: Row) -> nodes.row:
        claim, check = row.claim, row.check
        statement, messages = self.parse_inline(claim.statement)
        ruling = nodes.inline("", check.ruling, classes=["ruling", ruling_class(check.ruling)])
        source = nodes.paragraph("", "", *self._sources(claim), nodes.Text(f", {claim.kind}"))
        cells = [
            [nodes.paragraph("", claim.id)],
            [nodes.paragraph("", "", *statement), *messages],
            [source, nodes.paragraph("", f"“{claim.quote}”"), nodes.paragraph("", f"Its strength: {claim.strength}")],
            [nodes.paragraph("", "", ruling), nodes.paragraph("", "", self._link(check))],
            evidence(check),
        ]
        return nodes.row("", *(nodes.entry("", *cell) for cell in cells), ids=[f"claim-{claim.id.lower()}"])

    def _sources(self, claim: Claim) -> list[nodes.Node]:
        """The notes of a claim, each a link to its sentence on the page that sums the note up, if there is one."""
        pieces: list[nodes.Node] = []
        for note in claim.notes:
            page = beside(self.env.docname, NOTE_PAGES[note])
            text: nodes.Node = nodes.strong("", note)
            if page in self.env.found_docs:
                place = f"{self.env.app.builder.get_relative_uri(self.env.docname, page)}#{sentence_id(claim)}"
                text = nodes.reference("", "", nodes.strong("", note), internal=True, refuri=place)
            pieces += [nodes.Text(" and "), text]
        return pieces[1:]

    def _link(self, check: Check) -> nodes.reference:
        page = self.env.app.builder.get_relative_uri(self.env.docname, self._pages[check.chapter])
        text = f"{check.claim} in {check.title}"
        return nodes.reference("", text, internal=True, refuri=f"{page}#{check.anchor}")

    def _downloads(self, rows: Sequence[Row]) -> nodes.paragraph:
        """Links to the table's files, which Sphinx copies like any download; they are made beside the doctrees."""
        folder = Path(self.env.doctreedir) / "claims_ledger"
        folder.mkdir(parents=True, exist_ok=True)
        links: list[nodes.Node] = []
        for kind, text in {"CSV": to_csv(rows), "JSON": to_json(rows)}.items():
            path = folder / f"claims.{kind.lower()}"
            path.write_text(text, encoding="utf-8", newline="")
            from_root = Path(os.path.relpath(path, self.env.srcdir)).as_posix()
            links += [nodes.Text(" or "), addnodes.download_reference("", kind, reftarget=f"/{from_root}")]
        return nodes.paragraph("", "The same table to keep: ", *links[1:], nodes.Text("."))


class NoteSentences(SphinxDirective):
    """The sentences of one note: the note's words, ours, and a link to the row of the ledger."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "note": lambda text: directives.choice(text, tuple(note.lower() for note in NOTES)),
        "kind": lambda text: directives.choice(text, KINDS),
    }

    def run(self) -> list[nodes.Node]:
        """Read the claims and list those that are asked for; complain if there are none."""
        name, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(name)
        try:
            claims = parse_claims(Path(path).read_text(encoding="utf-8"))
        except (OSError, LedgerError) as error:
            return self._complain(f"the list of claims {name} can't be read: {error}")
        chosen = [claim for claim in claims if self._is_asked_for(claim)]
        if not chosen:
            return self._complain(f"no sentence of {self.options}")
        items = [nodes.list_item("", *self._sentence(claim), ids=[sentence_id(claim)]) for claim in chosen]
        return [nodes.bullet_list("", *items, classes=["note-sentences"])]

    def _is_asked_for(self, claim: Claim) -> bool:
        notes = [note.lower() for note in claim.notes]
        return self.options.get("note", notes[0]) in notes and self.options.get("kind", claim.kind) == claim.kind

    def _sentence(self, claim: Claim) -> list[nodes.Node]:
        statement, messages = self.parse_inline(claim.statement)
        page = self.env.app.builder.get_relative_uri(self.env.docname, beside(self.env.docname, LEDGER_PAGE))
        row = nodes.reference("", claim.id, internal=True, refuri=f"{page}#claim-{claim.id.lower()}")
        ours = nodes.paragraph("", "", *statement, nodes.Text(" "), row)
        if self.options.get("note") not in (None, claim.notes[0].lower()):  # the quote is the first note's
            return [ours, *messages]
        return [nodes.paragraph("", "", nodes.emphasis("", f"“{claim.quote}”")), ours, *messages]

    def _complain(self, text: str) -> list[nodes.Node]:
        logger.warning(text, type="claims_ledger", location=self.get_location())
        return []


def beside(docname: str, name: str) -> str:
    """The page of that name in the folder of another."""
    folder = docname.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def sentence_id(claim: Claim) -> str:
    """Where a claim's sentence stands on the page of its note."""
    return f"sentence-{claim.id.lower()}"


def summary(rows: Sequence[Row]) -> str:
    """A sentence that counts the rulings."""
    counts = Counter(row.check.ruling for row in rows)
    listed = ", ".join(f"{counts[ruling]} {ruling}" for ruling in RULINGS if counts[ruling])
    return f"{len(rows)} claims: {listed}."


def ruling_class(ruling: str) -> str:
    """The class that gives a ruling its colour, the same as on the box in the chapter."""
    return f"verdict-{ruling.replace(' ', '-')}"


def evidence(check: Check) -> list[nodes.Node]:
    """What was measured with its bounds, and the ruling's limit."""
    items = [nodes.list_item("", nodes.paragraph("", f"{name}: {bound}")) for name, bound in check.evidence.items()]
    shown: list[nodes.Node] = [nodes.bullet_list("", *items)] if items else []
    return [*shown, nodes.paragraph("", check.note)] if check.note else shown


def filter_form(rows: Sequence[Row]) -> str:
    """Controls that the script brings to life; hidden until it does."""
    rulings = [ruling for ruling in RULINGS if any(row.check.ruling == ruling for row in rows)]
    notes = [note for note in NOTES if any(note in row.claim.notes for row in rows)]
    return (
        '<form class="claims-filter" role="search" aria-label="Filter the claims" hidden>'
        f"{_select('Verdict', 'ruling', rulings)}{_select('Note', 'note', notes)}"
        '<label>Text <input type="search" name="text" autocomplete="off"></label>'
        '<button type="reset">Show all</button><output aria-live="polite"></output></form>'
    )


def _select(label: str, name: str, values: Sequence[str]) -> str:
    options = "".join(f"<option>{html.escape(value)}</option>" for value in values)
    return f'<label>{label} <select name="{name}"><option value="">all</option>{options}</select></label>'


def hide_records(app: Sphinx, docname: str, source: list[str]) -> None:
    """Take the machine-readable verdicts out of a notebook about to be shown: myst-nb warns of types unknown to it."""
    if MIME_TYPE in source[0] and str(app.env.doc2path(docname)).endswith(".ipynb"):
        notebook = json.loads(source[0])
        for cell in notebook["cells"]:
            for output in cell.get("outputs", []):
                output.get("data", {}).pop(MIME_TYPE, None)
        source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and the hook."""
    app.add_directive("claims-ledger", ClaimsLedger)
    app.add_directive("note-sentences", NoteSentences)
    app.connect("source-read", hide_records)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
