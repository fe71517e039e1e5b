"""The claims ledger: what it refuses, and what it shows of small books made for the purpose."""

import csv
import io
import json
import re
import warnings
from pathlib import Path
from unittest.mock import patch

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from book._ext.claims_ledger import rows
from mesa_lib import at_most, verdict
from mesa_lib.ledger import MIME_TYPE
from tools.notebooks import KERNEL, LANGUAGE

CLAIM = {
    "id": "C1",
    "statement": "A layer takes a step of size $\\eta$.",
    "source": "Reading note",
    "quote": "exactly implement one GD step",
    "kind": "claim",
    "strength": "strong (proof)",
    "chapter": "one",
}
OTHER = CLAIM | {"id": "A-P-N", "source": "Reading note and NOTE-280", "chapter": "two"}


def claims(*entries):
    return yaml.safe_dump(list(entries))


def check_cell(claim="C1", ruling="proved", source=None, execution_count=2, **changes):
    """A cell that has judged a claim; `changes` go into its record."""
    made = verdict(claim, ruling, {"largest <error>": at_most(0, 1e-12, "units of y")}, note="Whatever W_0 & N.")
    data = made._repr_mimebundle_()
    data[MIME_TYPE] = data[MIME_TYPE] | changes
    output = new_output("execute_result", data, execution_count=execution_count)
    source = source or f'mesa.verdict(\n    "{claim}",\n    "{ruling}",\n    evidence,\n)'
    return new_code_cell(source, outputs=[output], execution_count=execution_count)


def chapter(title, *cells):
    first = new_code_cell("import mesa_lib as mesa", execution_count=1)
    top = new_markdown_cell(f"(ch-{title.split()[0].lower()})=\n# {title}\n\nWords.")
    notebook = new_notebook(cells=[top, first], metadata={"kernelspec": KERNEL, "language_info": LANGUAGE})
    notebook.cells += [nbformat.from_dict(cell | {"id": f"check-{n}"}) for n, cell in enumerate(cells)]
    return notebook


def checks(name, *cells):
    return rows.parse_checks(chapter("A title", *cells), name)


# --- the list of claims ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- id: [", "(?s)the list of claims is no YAML: .*line 1"),
        ("", "the list of claims: expected a list of mappings, got None"),
        ("id: C1", "the list of claims: expected a list of mappings, got {'id': 'C1'}"),
        ("- C1", "claim number 1: expected a mapping, got 'C1'"),
        (claims({"id": "C1"}), "claim C1: fields that are missing: statement, source, .*; .* unknown: none"),
        (claims(CLAIM | {"verdict": "proved"}), "claim C1: fields that are missing: none; .* unknown: verdict"),
        (claims({k: v for k, v in CLAIM.items() if k != "id"}), "claim number 1: fields that are missing: id;"),
        (claims(CLAIM | {"quote": " "}), "claim C1: quote: expected a text, got ' '"),
        (claims(CLAIM | {"strength": None}), "claim C1: strength: expected a text, got None"),
        (claims(CLAIM | {"id": "c1"}), "claim c1: id: expected capitals, digits and single hyphens"),
        (claims(CLAIM | {"id": "C--1"}), "claim C--1: id: expected"),
        (claims(CLAIM | {"kind": "opinion"}), "claim C1: kind: expected one of 'claim', .*, got 'opinion'"),
        (
            claims(CLAIM | {"source": "hearsay"}),
            "claim C1: source: expected 'Reading note' or .*'hearsay'",
        ),
        (claims(CLAIM | {"quote": "word " * 21}), "claim C1: quote: expected at most 20 words, got 21"),
        (claims(CLAIM, OTHER, CLAIM), "claim C1: stands 2 times in the list of claims"),
    ],
)
def test_a_malformed_list_of_claims_is_refused_by_name(text, message):
    with pytest.raises(rows.LedgerError, match=message):
        rows.parse_claims(text)


def test_claims_keep_their_order_and_their_words():
    parsed = rows.parse_claims(claims(OTHER, CLAIM | {"statement": "Two\n  lines."}))
    assert [claim.id for claim in parsed] == ["A-P-N", "C1"]
    assert parsed[0].notes == ["Reading note", "NOTE-280"]
    assert parsed[1].statement == "Two lines."


# --- stored checks --------------------------------------------------------------------------------------------------


def test_a_stored_verdict_is_read_with_its_place():
    (check,) = checks("one", new_code_cell("1 + 1", execution_count=2), check_cell(execution_count=3))
    assert (check.claim, check.ruling, check.note) == ("C1", "proved", "Whatever W_0 & N.")
    assert check.evidence == {"largest <error>": "at most 1e-12 units of y"}
    assert (check.chapter, check.title, check.cell, check.anchor) == ("one", "A title", 3, "verdict-c1")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (check_cell(execution_count=None), "claim C1: .* has not been executed"),
        (
            check_cell(source="mesa.verdict('C1', 'supported', {})"),
            r"claim C1: .*code has no verdict\('C1', 'proved'",
        ),
        (check_cell(source="mesa.verdict('C2', 'proved', {})"), "claim C1: .*its code has no verdict"),
        (check_cell(source="shown_before"), "claim C1: one, code cell 2 shows the stored verdict 'proved'"),
        (check_cell(source="mesa.verdict(name, ruling, {})"), "claim C1: .*write both as they are"),
        (check_cell(evidence=["a"]), "one, code cell 2: a malformed stored verdict, .*C1"),
    ],
)
def test_a_stale_or_malformed_check_is_refused_by_name(cell, message):
    with pytest.raises(rows.LedgerError, match=message):
        checks("one", cell)


def test_an_unknown_ruling_is_refused_by_name():
    cell = check_cell()
    cell.outputs[0].data[MIME_TYPE]["ruling"] = "proven"
    with pytest.raises(rows.LedgerError, match="claim C1: one, code cell 2 has the unknown ruling 'proven'"):
        checks("one", cell)


def test_a_file_that_is_no_notebook_is_named(tmp_path):
    (tmp_path / "broken.ipynb").write_text("{")
    with pytest.raises(rows.LedgerError, match=r"broken\.ipynb: holds no notebook"):
        rows.read_checks(tmp_path / "broken.ipynb")


# --- one ledger -----------------------------------------------------------------------------------------------------

BOTH = rows.parse_claims(claims(CLAIM, OTHER))
C1, APN = check_cell("C1"), check_cell("A-P-N")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([*checks("one", C1), *checks("two", APN)], []),
        (checks("one", C1), ["claim A-P-N: no executed check in two; end a cell with verdict('A-P-N', ...)"]),
        (
            [*checks("one", C1, check_cell("C9")), *checks("two", APN)],
            ["claim C9: checked in one, code cell 3, but not in the list of claims"],
        ),
        (checks("one", C1, APN), ["claim A-P-N: checked in one, but the list of claims says two"]),
        (
            [*checks("one", C1, C1), *checks("two", APN)],
            ["claim C1: checked 2 times, in one, code cell 2; one, code cell 3"],
        ),
    ],
    ids=["whole", "missing check", "check without claim", "other chapter", "two checks"],
)
def test_what_does_not_fit_is_complained_about_by_name(found, expected):
    assert rows.complaints(BOTH, found) == expected


def test_the_files_hold_every_field_of_every_row():
    table = rows.join(BOTH, [*checks("two", APN), *checks("one", C1)])
    first, second = json.loads(rows.to_json(table))
    assert [first["id"], second["id"]] == ["C1", "A-P-N"]
    assert first == CLAIM | {
        "ruling": "proved",
        "evidence": {"largest <error>": "at most 1e-12 units of y"},
        "note": "Whatever W_0 & N.",
        "cell": 2,
        "anchor": "verdict-c1",
    }
    (line, _) = csv.DictReader(rows.to_csv(table).splitlines())
    assert line == first | {"evidence": "largest <error>: at most 1e-12 units of y", "cell": "2"}


# --- small books ----------------------------------------------------------------------------------------------------

CONFIG = {
    "extensions": ["myst_nb", "book._ext.claims_ledger"],
    "myst_enable_extensions": ["colon_fence", "dollarmath"],
    "nb_execution_mode": "off",
    "html_theme": "basic",
}
INDEX = "# Claims\n\n:::{claims-ledger} claims.yml\n:::\n\n:::{toctree}\none\ntwo\n:::\n"


def write_book(folder: Path, one, two, listed=(CLAIM, OTHER)):
    source = folder / "source"
    source.mkdir(exist_ok=True)
    (source / "index.md").write_text(INDEX)
    (source / "claims.yml").write_text(claims(*listed))
    for name, notebook in {"one": one, "two": two}.items():
        (source / f"{name}.ipynb").write_text(json.dumps(notebook))


def build(folder: Path):
    """Build a small book, warnings being errors as for the real one. Returns the exit status and the complaints."""
    source, log = folder / "source", io.StringIO()
    places = {"confdir": None, "outdir": folder / "html", "doctreedir": folder / "doctrees"}
    strict = {"status": None, "warning": log, "warningiserror": True, "keep_going": True}
    with patch_docutils(), docutils_namespace(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's own kind, from Sphinx's libraries
        app = Sphinx(source, buildername="html", confoverrides=CONFIG, **places, **strict)
        app.build()
    return app.statuscode, re.sub(r"\x1b\[[0-9;]*m", "", log.getvalue())


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    write_book(folder, chapter("First & last", C1), chapter("Second", APN))
    assert build(folder) == (0, "")
    return folder


def page(folder, name):
    return BeautifulSoup((folder / "html" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def test_a_row_shows_claim_note_verdict_and_evidence(small):
    row = page(small, "index").find(id="claim-c1")
    assert row.name == "tr"
    cells = [" ".join(cell.get_text().split()) for cell in row.find_all(["th", "td"])]
    assert cells == [
        "C1",
        r"A layer takes a step of size \(\eta\).",
        "Reading note, claim “exactly implement one GD step” Its strength: strong (proof)",
        "proved C1 in First & last",
        "largest <error>: at most 1e-12 units of y Whatever W_0 & N.",
    ]
    assert row.find(class_="ruling")["class"] == ["ruling", "verdict-proved"]


def test_a_row_links_to_the_box_of_its_check(small):
    links = page(small, "index").select("table.claims-ledger a")
    assert [link["href"] for link in links] == ["one.html#verdict-c1", "two.html#verdict-a-p-n"]
    for link in links:
        name, _, anchor = link["href"].partition("#")
        assert "verdict" in page(small, name.removesuffix(".html")).find(id=anchor)["class"]


def test_the_files_of_the_table_can_be_downloaded(small):
    links = page(small, "index").find_all("a", class_="download")
    assert [link.get_text() for link in links] == ["CSV", "JSON"]
    table, records = ((small / "html" / link["href"]).read_bytes().decode() for link in links)
    assert table.count("\r\n") == table.count("\n") == 3
    assert [record["id"] for record in json.loads(records)] == ["C1", "A-P-N"]


def test_the_filter_waits_for_its_script_and_every_control_has_a_label(small):
    form = page(small, "index").find("form", class_="claims-filter")
    assert form.has_attr("hidden"), "without scripts there is nothing to filter with"
    assert [control.parent.name for control in form.find_all(["select", "input"])] == ["label"] * 3
    options = [option.get_text() for option in form.find_all("option")]
    assert options == ["all", "proved", "all", "Reading note", "NOTE-280"]
    assert form.find("output")["aria-live"] == "polite"
    scripts = [script.get_text() for script in page(small, "index").find_all("script")]
    assert sum("form.claims-filter" in script for script in scripts) == 1
    assert "claims-filter" not in str(page(small, "one")), "other pages do without"


def test_a_note_page_and_the_ledger_link_to_each_other_sentence_by_sentence(tmp_path):
    write_book(tmp_path, chapter("First", C1), chapter("Second", APN))
    source = tmp_path / "source"
    (source / "index.md").rename(source / "claims.md")
    (source / "claims.md").write_text(INDEX.replace("one\n", "note_280\nreading_note\none\n"))
    listed = ":::{note-sentences} claims.yml\n:note: %s\n:kind: claim\n:::\n"
    (source / "reading_note.md").write_text("# One note\n\n" + listed % "Reading note")
    (source / "note_280.md").write_text("# Another\n\n" + listed % "NOTE-280")
    with patch.dict(CONFIG, root_doc="claims"):
        assert build(tmp_path) == (0, "")
    links = [link["href"] for link in page(tmp_path, "claims").select("tr#claim-a-p-n a")]
    assert links[:2] == ["reading_note.html#sentence-a-p-n", "note_280.html#sentence-a-p-n"]
    for link, quoted in zip(links, (True, False), strict=False):
        name, _, anchor = link.partition("#")
        sentence = page(tmp_path, name.removesuffix(".html")).find("li", id=anchor)
        assert sentence.find("a")["href"] == "claims.html#claim-a-p-n"
        assert (f"“{OTHER['quote']}”" in sentence.get_text()) is quoted, "the quote is the first note's"
    assert page(tmp_path, "note_280").find(id="sentence-c1") is None


def test_a_note_without_such_sentences_fails_the_build(tmp_path):
    write_book(tmp_path, chapter("First", C1), chapter("Second", APN))
    with (tmp_path / "source" / "index.md").open("a") as index:
        index.write("\n:::{note-sentences} claims.yml\n:note: NOTE-280\n:kind: bearing\n:::\n")
    status, complaint = build(tmp_path)
    assert status != 0 and "no sentence of" in complaint and "bearing" in complaint


def test_a_changed_output_is_seen_without_touching_the_page(tmp_path):
    write_book(tmp_path, chapter("First", C1), chapter("Second", APN))
    assert build(tmp_path) == (0, "")
    (tmp_path / "source" / "two.ipynb").write_text(json.dumps(chapter("Second", check_cell("A-P-N", "contradicted"))))
    assert build(tmp_path) == (0, "")
    assert page(tmp_path, "index").find(id="claim-a-p-n").find(class_="ruling").get_text() == "contradicted"


def test_a_ledger_with_holes_fails_the_build_and_names_the_claims(tmp_path):
    write_book(tmp_path, chapter("First", check_cell("C9")), chapter("Second", APN))
    status, complaint = build(tmp_path)
    assert status != 0
    assert "index.md:3: WARNING: claim C1: no executed check in one" in complaint
    assert "claim C9: checked in one, code cell 2, but not in the list of claims" in complaint


def test_a_list_of_claims_that_is_malformed_or_missing_fails_the_build(tmp_path):
    write_book(tmp_path, chapter("First", C1), chapter("Second", APN), listed=[CLAIM | {"kind": "opinion"}])
    status, complaint = build(tmp_path)
    assert status != 0
    assert "index.md:3: WARNING: claim C1: kind: expected one of" in complaint
    (tmp_path / "source" / "claims.yml").unlink()
    status, complaint = build(tmp_path)
    assert status != 0
    assert "the list of claims claims.yml can't be read: No such file" in complaint
