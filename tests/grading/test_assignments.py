"""Every assignment grades: what the solution, the blank notebook, constants and mutants score, and what is released."""

import json
import os
import subprocess
import sys
import time

import pytest

from mesa_lib.assignments.checking import assignments
from mesa_lib.assignments.variants import all_variants
from mesa_lib.grading import proof
from mesa_lib.grading.build import build_notebooks, notebook_bytes
from mesa_lib.grading.catalogue import BEGIN, END, catalogue
from mesa_lib.grading.cli import PAGE, RELEASE
from mesa_lib.grading.grade import Grader
from mesa_lib.grading.library import copy_library
from mesa_lib.grading.sandbox import BUBBLEWRAP
from mesa_lib.grading.source import DEFAULT_ROOT, TEXT, read_assignment, read_assignments
from tests.grading.conftest import SALT
from tools.toc import ROOT

NAMES = sorted(path.parent.name for path in DEFAULT_ROOT.glob("*/meta.yml"))
MOST_SECONDS = 60

pytestmark = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def of():
    """`of(name)`: the assignment, read once."""
    read = read_assignments()
    return lambda name: read[name]


def test_it_is_proved_to_grade(of, name):
    findings = list(proof.prove(of(name), every_variant=False))
    assert [finding for finding in findings if not finding.passed] == []
    assert len(findings) >= len(proof.SALTS) + 1 + len(proof.CONSTANTS) + proof.FEWEST_MUTANTS + 2


def test_the_release_is_a_rebuild(of, name):
    student, _ = build_notebooks(of(name))
    assert (RELEASE / f"{name}.ipynb").read_bytes() == notebook_bytes(student), (
        f"python -m mesa_lib.grading build {name}"
    )


def test_the_blank_notebook_runs_to_its_end(of, name):
    printed = "".join(proof.student_run(of(name)))
    checked = [line for line in printed.splitlines() if line.startswith("q")]
    assert checked != []
    public = [line for line in checked if "public points" not in line]
    assert [line for line in public if not line.endswith("not written yet")] == []
    assert "not written yet" in printed


def test_the_solution_earns_everything_in_the_sandbox(of, name, sandbox, tmp_path):
    assignment = of(name)
    (tmp_path / "library").mkdir()
    library = copy_library(tmp_path / "library", assignment.blocked)
    variant = all_variants(assignment.public)[-1]
    notebook = tmp_path / "solution.ipynb"
    notebook.write_bytes(notebook_bytes(build_notebooks(assignment, variant)[1]))
    began = time.monotonic()
    grade = Grader(assignment, sandbox(BUBBLEWRAP), library, SALT, variant).grade("ada", notebook)
    assert (grade.error, grade.problem, grade.notes) == ("", "", [])
    assert {name: grade.score(name) for name in proof.full_scores(assignment)} == proof.full_scores(assignment)
    texts = [name for name, about in assignment.questions.items() if about.kind == TEXT]
    assert all(grade.texts[name] for name in texts)
    assert time.monotonic() - began < MOST_SECONDS


def test_it_says_what_a_student_needs(of, name):
    assignment = of(name)
    assert 40 <= assignment.minutes <= 75
    assert sum(about.minutes for about in assignment.questions.values()) == assignment.minutes
    assert len(assignment.questions) >= 3
    assert len(assignment.goals) >= 2 and assignment.prerequisites
    assert all((ROOT / "book" / f"{chapter}.ipynb").is_file() for chapter in assignment.chapters)
    assert len(all_variants(assignment.public)) >= 2
    kinds = [about.kind for about in assignment.questions.values()]
    assert TEXT in kinds
    for question, about in assignment.questions.items():
        assert about.kind == TEXT or assignment.points(question, hidden=True) > 0
        assert about.kind == TEXT or all(case.hint for case in assignment.cases)
        if about.kind == TEXT:
            assert all(f"### {score} point" in assignment.rubric[question] for score in (0, 1, 2))


def test_no_other_assignment_asks_for_the_same_names(name):
    asked = [
        (question, frozenset(names))
        for module in assignments().values()
        for question, names in module.QUESTIONS.items()
    ]
    mine = [(question, frozenset(names)) for question, names in assignments()[name].QUESTIONS.items()]
    assert all(asked.count(pair) == 1 for pair in mine)


def test_its_solution_is_clean_code(of, name, tmp_path):
    notebook = tmp_path / f"{name}.ipynb"
    notebook.write_bytes(notebook_bytes(build_notebooks(of(name))[1]))
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--config",
        str(ROOT / "pyproject.toml"),
        "--no-cache",
        str(notebook),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    assert checked.returncode == 0, checked.stdout


def test_its_release_holds_no_output_and_no_trace_of_the_solution(name):
    cells = json.loads((RELEASE / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
    assert "SOLUTION" not in json.dumps(cells)


def test_it_has_a_source_of_its_own(name):
    assert read_assignment(DEFAULT_ROOT / name).name == name


def test_the_books_list_is_made_from_the_sources(of, name):
    page = PAGE.read_text(encoding="utf-8")
    made = page.partition(BEGIN)[2].partition(END)[0]
    assert made.strip() == catalogue(read_assignments().values()).strip(), "make assignments"
    assert f"### {name[:3]} {of(name).title}\n" in made
