"""Every break of mesa_lib is noticed: each mutant is killed by the assertion of the test that it names.

Killing them all takes some ten minutes and is asked for by name (`make mutants`); `make test` only sees to it that
every mutant still finds the text that it breaks and the test that shall notice.
"""

import multiprocessing
import xml.etree.ElementTree as ElementTree

import pytest

from tests.mutation.mutants import MUTANTS
from tests.mutation.runner import ROOT, break_library, copy_project, run_tests

# A server imports the slow packages once; every run is a fork of it, and starts at once.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["beartype", "hypothesis", "jaxtyping", "scipy.optimize", "torch", "tqdm.auto"])
MOST_SECONDS = 120


def run(project, tests):
    """Run tests in a copy of the project and return their cases in the report."""
    process = PROCESSES.Process(target=run_tests, args=(str(project), [f"tests/{test}" for test in tests]))
    process.start()
    process.join(MOST_SECONDS)
    if process.is_alive():
        process.kill()
        pytest.fail(f"{tests} took more than {MOST_SECONDS} s")
    report = project / "report.xml"
    assert report.exists(), (project / "output.txt").read_text()
    return list(ElementTree.parse(report).iter("testcase"))


@pytest.mark.mutants
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed_by_the_assertion_of_its_test(mutant, tmp_path):
    copy_project(tmp_path)
    break_library(tmp_path, mutant.file, mutant.old, mutant.new)
    cases = run(tmp_path, [mutant.killer])
    failures = [failure.get("message") or "" for case in cases for failure in case.iter("failure")]
    errors = [error.get("message") for case in cases for error in case.iter("error")]
    assert errors == [], "the test did not run"
    assert failures, f"{mutant.killer} passes although {mutant.name}"
    assert [message for message in failures if not message.startswith(("AssertionError", "assert "))] == []


@pytest.mark.mutants
def test_the_killers_pass_when_nothing_is_broken(tmp_path):
    copy_project(tmp_path)
    cases = run(tmp_path, sorted({mutant.killer for mutant in MUTANTS}))
    assert len(cases) >= len({mutant.killer for mutant in MUTANTS})
    outcomes = {f"{case.get('classname')}::{case.get('name')}": [child.tag for child in case] for case in cases}
    assert {name: tags for name, tags in outcomes.items() if tags} == {}


def test_mutants_have_names_of_their_own_and_break_many_rooms():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 14
    assert all((ROOT / "mesa_lib" / mutant.file).exists() for mutant in MUTANTS)
    assert len({mutant.file for mutant in MUTANTS}) >= 10


def test_every_mutant_finds_its_text_once_and_its_killer():
    for mutant in MUTANTS:
        text = (ROOT / "mesa_lib" / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.name}: mesa_lib/{mutant.file} holds {mutant.old!r} not once"
        file, _, name = mutant.killer.partition("::")
        killer = f"def {name.partition('[')[0]}("
        assert killer in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{mutant.name}: no {killer} in {file}"
