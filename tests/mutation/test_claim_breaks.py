"""Every verdict can fail: for each claim a break of mesa_lib turns its check cell into an error that names the claim.

What a chapter trains is trained once, on the library as it is, and kept: a break then meets the trained networks, and
the verdict on them has to fail. Breaks that only act while something is trained say so (`trains`), and train again. So
most breaks take a second or two; the chapter with networks of five layers takes about a minute, once.
"""

import multiprocessing
import os
from dataclasses import replace

import pytest
from filelock import FileLock

from book._ext.claims_ledger.rows import parse_claims, read_checks
from tests.mutation.chapter_programs import copy_library, program, run_program
from tests.mutation.claim_breaks import CLAIM_BREAKS
from tests.mutation.runner import break_library
from tools.law import Cell, around_exercises, read_chapter
from tools.toc import ROOT, read_pages

# A server imports the slow packages once; every run is a fork of it, and starts at once.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["jaxtyping", "matplotlib.pyplot", "scipy.optimize", "torch", "tqdm.auto"])
MOST_SECONDS = 300

CHAPTER_OF = {claim.id: claim.chapter for claim in parse_claims((ROOT / "book" / "claims.yml").read_text("utf-8"))}
PAGES = {page.name: page for page in read_pages() if page.is_notebook}


def outcome(project, chapter, claims, trained, keep=False):
    """Run the check cells of some claims in a folder that holds a mesa_lib: "passed", or the error.

    Trainings are taken from the folder `trained`, or put there.
    """
    assert chapter in PAGES, f"{claims}: {chapter} is no notebook in _toc.yml"
    source = program(read_chapter(PAGES[chapter]), claims)
    process = PROCESSES.Process(target=run_program, args=(str(project), source, str(trained), keep))
    process.start()
    process.join(MOST_SECONDS)
    if process.is_alive():
        process.kill()
        pytest.fail(f"{chapter}: the checks of {claims} took more than {MOST_SECONDS} s")
    return (project / "outcome.txt").read_text(encoding="utf-8")


def test_no_verdict_needs_anything_of_a_solution():
    """A solution that gives a function of the chapter a new meaning would be looked up in its place."""
    for name in {chapter for chapter in CHAPTER_OF.values() if chapter in PAGES}:
        chapter = read_chapter(PAGES[name])
        told = [part for part in around_exercises(chapter)[0] if isinstance(part, Cell)]
        claims = [claim for claim, where in CHAPTER_OF.items() if where == name]
        assert program(chapter, claims) == program(replace(chapter, cells=told), claims), name


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory):
    """`unbroken(chapter)`: a folder with the outcome of all check cells of a chapter, and with what they trained.

    Every chapter runs once, also if pytest-xdist has several workers.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def ran(chapter):
        project = shared / f"unbroken_{chapter}"
        with FileLock(f"{project}.lock"):
            if not (project / "outcome.txt").exists():
                copy_library(project)
                (project / "trained").mkdir()
                claims = [claim for claim, place in CHAPTER_OF.items() if place == chapter]
                outcome(project, chapter, claims, project / "trained", keep=True)
        return project

    return ran


@pytest.mark.parametrize("broken", CLAIM_BREAKS, ids=lambda broken: f"{broken.claim}: {broken.name}")
def test_the_verdict_fails_and_names_the_claim(broken, tmp_path, unbroken):
    chapter = CHAPTER_OF[broken.claim]
    trained = tmp_path / "nothing" if broken.trains else unbroken(chapter) / "trained"
    copy_library(tmp_path)
    break_library(tmp_path, broken.file, broken.old, broken.new)
    ended = outcome(tmp_path, chapter, [broken.claim], trained)
    assert ended.startswith(f"VerdictError: claim {broken.claim} is not "), f"although {broken.name}: {ended}"


@pytest.mark.parametrize("chapter", sorted(set(CHAPTER_OF.values())))
def test_the_same_cells_pass_when_nothing_is_broken(chapter, unbroken):
    assert (unbroken(chapter) / "outcome.txt").read_text(encoding="utf-8") == "passed"


def test_every_claim_with_evidence_has_a_break():
    """A ruling "open" or "untestable here" may stand without evidence; then no change of the library can refute it."""
    evident = {check.claim for page in PAGES.values() for check in read_checks(page.path) if check.evidence}
    assert list(dict.fromkeys(broken.claim for broken in CLAIM_BREAKS)) == [
        name for name in CHAPTER_OF if name in evident
    ]
