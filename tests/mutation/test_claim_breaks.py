"""Every verdict can fail: for each claim a break of mesa_lib turns its check cell into an error that names the claim.

About two seconds for each claim, five where the chapter trains one layer, and up to a minute where it trains five.
"""

import multiprocessing

import pytest

from book._ext.claims_ledger.rows import parse_claims
from tests.mutation.chapter_programs import copy_library, program, run_program
from tests.mutation.claim_breaks import CLAIM_BREAKS
from tests.mutation.runner import break_library
from tools.law import read_chapter
from tools.toc import ROOT, read_pages

# A server imports the slow packages once; every run is a fork of it, and starts at once.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["jaxtyping", "matplotlib.pyplot", "scipy.optimize", "torch", "tqdm.auto"])
MOST_SECONDS = 300

CHAPTER_OF = {claim.id: claim.chapter for claim in parse_claims((ROOT / "book" / "claims.yml").read_text("utf-8"))}
PAGES = {page.name: page for page in read_pages() if page.is_notebook}


def outcome(project, chapter, claims):
    """Run the check cells of some claims in a folder that holds a mesa_lib: "passed", or the error."""
    assert chapter in PAGES, f"{claims}: {chapter} is no notebook in _toc.yml"
    source = program(read_chapter(PAGES[chapter]), claims)
    process = PROCESSES.Process(target=run_program, args=(str(project), source))
    process.start()
    process.join(MOST_SECONDS)
    if process.is_alive():
        process.kill()
        pytest.fail(f"{chapter}: the checks of {claims} took more than {MOST_SECONDS} s")
    return (project / "outcome.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("broken", CLAIM_BREAKS, ids=lambda broken: f"{broken.claim}: {broken.name}")
def test_the_verdict_fails_and_names_the_claim(broken, tmp_path):
    copy_library(tmp_path)
    break_library(tmp_path, broken.file, broken.old, broken.new)
    ended = outcome(tmp_path, CHAPTER_OF[broken.claim], [broken.claim])
    assert ended.startswith(f"VerdictError: claim {broken.claim} is not "), f"although {broken.name}: {ended}"


@pytest.mark.parametrize("chapter", sorted(set(CHAPTER_OF.values())))
def test_the_same_cells_pass_when_nothing_is_broken(chapter, tmp_path):
    copy_library(tmp_path)
    assert outcome(tmp_path, chapter, [claim for claim, place in CHAPTER_OF.items() if place == chapter]) == "passed"


def test_every_claim_has_a_break():
    assert list(dict.fromkeys(broken.claim for broken in CLAIM_BREAKS)) == list(CHAPTER_OF)
