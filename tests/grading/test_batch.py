"""A class is graded once, goes on where it was, and is graded again only where something changed."""

import csv
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import jinja2
import pytest

from mesa_lib.assignments import LocalStudent, MistakeError
from mesa_lib.grading import batch
from mesa_lib.grading.batch import Found, find_submissions, grade_all, grade_rows, read_times, status
from mesa_lib.grading.feedback import feedback_page
from mesa_lib.grading.grade import FAILED, PASSED, UNCLEAR, CaseResult, Grade, Grader, judge
from mesa_lib.grading.sandbox import LIMITS, GraderError, Sandbox
from mesa_lib.grading.session import Worker
from mesa_lib.grading.source import read_assignment
from tests.grading.conftest import SALT, write_notebook


def touch(path, age=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    os.utime(path, (1_700_000_000 - age,) * 2)


def test_submissions_are_found_as_canvas_moodle_and_nbgrader_name_them(tmp_path):
    touch(tmp_path / "lovelaceada_LATE_12345_678901_a01_one_step.ipynb", age=50)
    touch(tmp_path / "lovelaceada_12345_678902_a01_one_step-1.ipynb")
    touch(tmp_path / "Kurt Gödel_4711_assignsubmission_file_" / "a01 (1).ipynb")
    touch(tmp_path / "emmy" / "a01" / "a01.ipynb")
    touch(tmp_path / "emmy" / "a01" / ".ipynb_checkpoints" / "a01-checkpoint.ipynb")
    touch(tmp_path / "hypatia.ipynb")
    touch(tmp_path / "euclid.pdf")
    (tmp_path / "nobody").mkdir()
    touch(tmp_path / ".DS_Store")
    touch(tmp_path / "times.csv")
    found = {found.student: found for found in find_submissions(tmp_path)}
    assert set(found) == {"lovelaceada", "Kurt Gödel", "emmy", "hypatia", "euclid", "nobody"}
    assert (found["lovelaceada"].aliases, found["lovelaceada"].path.name) == (
        ("12345",),
        "lovelaceada_12345_678902_a01_one_step-1.ipynb",
    )
    assert found["lovelaceada"].note.startswith("2 files; graded is")
    assert (found["Kurt Gödel"].aliases, found["Kurt Gödel"].path.name) == (("4711",), "a01 (1).ipynb")
    assert found["emmy"].path == tmp_path / "emmy" / "a01" / "a01.ipynb"
    assert found["nobody"].path.is_dir()


def test_students_with_odd_names_have_files_of_their_own():
    slugs = [Found(name, Path("x")).slug for name in ("a/b", "a b", "a_b", "../x", "", "x" * 99, "Kurt Gödel")]
    assert len(set(slugs)) == len(slugs)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", slug) and not slug.startswith(".") for slug in slugs)


@pytest.fixture
def graded(demo, library, solution, tmp_path):
    """Three students, graded: `graded()` grades again and returns the grades and the starts of workers that it took."""
    write_notebook(tmp_path / "in" / "ada.ipynb", solution) if (tmp_path / "in").mkdir() else None
    for name in ("ada", "bob"):
        write_notebook(tmp_path / "in" / f"{name}.ipynb", solution)
    (tmp_path / "in" / "carl.ipynb").write_text("not a notebook")

    def run(assignment=demo, broken=False, **changes):
        starts = []

        class Counting(Grader):
            def _worker(self, job):
                starts.append(job)
                return super()._worker(job)

        grader = (Grader if broken else Counting)(assignment, Sandbox(LIMITS), library, **{"salt": SALT, **changes})
        return grade_all(grader, find_submissions(tmp_path / "in"), tmp_path / "out", jobs=2), len(starts)

    return run


def test_what_is_graded_is_not_graded_again(graded, tmp_path, solution):
    first, starts = graded()
    assert [grade.student for grade in first] == ["ada", "bob", "carl"]
    assert starts == 2
    table = (tmp_path / "out" / "grades.csv").read_text()
    # A run that was ended: one result is missing, another is half written.
    (tmp_path / "out" / "results" / "ada.json").unlink()
    (tmp_path / "out" / "grades.csv").unlink()
    (tmp_path / "out" / "results" / ".bob.json.tmp").write_text("{")
    again, starts = graded()
    assert starts == 1
    assert (tmp_path / "out" / "grades.csv").read_text() == table
    assert [grade.results for grade in again] == [grade.results for grade in first]
    assert graded()[1] == 0
    # A new file of one student; another salt.
    wrong = "def best_eta(x, y):\n    return 0.0"
    cells = [(kind, wrong if "def best_eta" in source else source) for kind, source in solution]
    write_notebook(tmp_path / "in" / "bob.ipynb", cells)
    changed, starts = graded()
    assert (starts, changed[1].score("q2"), changed[0].score("q2")) == (1, 0, 4)
    assert graded(salt=b"another salt, long enough")[1] == 2
    results = json.loads((tmp_path / "out" / "results" / "ada.json").read_text())["results"]
    assert len({result["fingerprint"] for result in results}) == 5


def test_after_a_corrected_case_only_that_case_runs_again(graded, demo, tmp_path):
    graded()
    folder = tmp_path / "a00_demo"
    shutil.copytree(demo.folder, folder)
    text = (folder / "hidden.py").read_text()
    (folder / "hidden.py").write_text(text.replace("eta / 4", "eta / 5"))
    asked = []

    class Watching(Worker):
        def call(self, name, *rest, **more):
            asked.append(name)
            return super().call(name, *rest, **more)

    before = batch.read_grades(tmp_path / "out")
    changed = read_assignment(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mesa_lib.grading.grade.Worker", Watching)
        after, starts = graded(replace(changed))
    # The public cases are another module's now (the folder moved), its text is the same.
    assert starts == 2
    assert set(asked) == {"best_eta"} and len(asked) == 2 * 2
    assert [grade.score("q2") for grade in after] == [3, 3, 0]
    same = [
        (a, b) for old, new in zip(before, after, strict=True) for a, b in zip(old.results, new.results, strict=True)
    ]
    assert [a.name for a, b in same if a.fingerprint != b.fingerprint] == ["scaling"] * 3


def test_the_text_of_a_case_is_its_own_however_often_its_module_is_read(demo):
    sandbox, place = Sandbox(LIMITS), Path("nowhere")
    before = Grader(demo, sandbox, place, SALT).sources
    again = Grader(read_assignment(demo.folder), sandbox, place, SALT).sources
    late = Grader(demo, sandbox, place, SALT).sources
    assert list(before.values()) == list(again.values()) == list(late.values())
    for case, text in before.items():
        names = {other.run.__name__ for other in demo.cases}
        assert {name for name in names if f"def {name}(" in text} == {case.run.__name__}


def test_a_grader_error_is_neither_a_zero_nor_kept(graded, tmp_path, monkeypatch):
    def broken(self, job):
        raise GraderError("no room on the disk")

    with monkeypatch.context() as patch:
        patch.setattr(Grader, "_worker", broken)
        first, _ = graded(broken=True)
    assert [grade.error for grade in first] == ["no room on the disk"] * 2 + [""]
    rows = list(csv.DictReader((tmp_path / "out" / "grades.csv").read_text().splitlines()))
    assert [(row["q1"], row["total"]) for row in rows] == [("", ""), ("", ""), ("0", "0")]
    assert rows[0]["status"] == "GRADER ERROR: no room on the disk"
    assert "You lose no points" in (tmp_path / "out" / "feedback" / "ada.html").read_text()
    second, starts = graded()
    assert starts == 2
    assert [grade.score("q1") for grade in second] == [4, 4, 0]


def test_random_inputs_differ_by_student_and_by_salt(demo):
    from mesa_lib.grading.grade import seed_of

    case = demo.cases[1]
    seeds = {seed_of(salt, student, "a00", case) for salt in (b"s", b"t") for student in ("ada", "bob")}
    assert len(seeds) == 4
    assert seed_of(b"s", "ada", "a00", case) == seed_of(b"s", "ada", "a00", case)


def test_a_spreadsheet_runs_no_formula_of_a_students(tmp_path):
    batch.write_table(tmp_path / "t.csv", [{"student": "=HYPERLINK(1)", "total": -3, "status": "@x"}])
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == "'=HYPERLINK(1),-3,'@x"


def test_times_are_read_from_a_table(tmp_path):
    (tmp_path / "times.csv").write_text("student,time\nada,2027-02-01T10:00:00+01:00\n")
    assert read_times(tmp_path / "times.csv") == {"ada": "2027-02-01T10:00:00+01:00"}


def test_feedback_escapes_what_students_write(demo):
    evil = "<script>alert(1)</script>"
    grade = Grade(evil, evil, [], {"q3": evil}, [evil])
    page = feedback_page(demo, grade)
    assert "<script>" not in page and page.count("&lt;script&gt;") >= 4
    assert "<script>" not in feedback_page(demo, replace(grade, problem=evil))


def test_a_case_that_stumbles_is_shown_to_a_person(demo, graded):
    (ada, *_), _ = graded()
    stumbled = replace(ada, results=[replace(ada.results[0], status=UNCLEAR), *ada.results[1:]])
    assert status(stumbled) == "look at: q1 identity weights"
    assert grade_rows(demo, [stumbled])[0]["status"] == "look at: q1 identity weights"


def test_a_hidden_case_tells_only_what_it_means_to_tell(demo):
    def plain(student, rng):
        raise AssertionError("the oracle said 3.7")

    def named(student, rng):
        raise MistakeError("the factor N is missing")

    def stumbling(student, rng):
        raise ZeroDivisionError("oracle")

    def judged(run, hidden):
        return judge(replace(demo.cases[0], run=run, hidden=hidden), LocalStudent({}, {}), 0)

    assert judged(plain, True) == (FAILED, "wrong result")
    assert judged(plain, False) == (FAILED, "the oracle said 3.7")
    assert judged(named, True) == (FAILED, "the factor N is missing")
    assert judged(stumbling, True) == (UNCLEAR, "what came back could not be used (ZeroDivisionError)")
    assert judged(lambda student, rng: None, True) == (PASSED, "")


def test_feedback_names_public_cases_and_no_hidden_one(demo):
    results = [
        CaseResult(case.question, case.name, case.hidden, case.points, 0, FAILED, "wrong result", case.hint, "")
        for case in demo.cases
    ]
    page = feedback_page(demo, Grade("ada", "a.ipynb", results))
    assert all((case.name in page) is not case.hidden for case in demo.cases)
    assert page.count("hidden case") == 3 and page.count("wrong result") == 5
    assert all(jinja2.filters.escape(case.hint) in page for case in demo.cases)
