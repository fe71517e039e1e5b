"""Accidents keep the other questions' points, and no attack earns more than honest work would."""

import os
import re
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mesa_lib.grading.batch import Found, grade_all, read_grades
from mesa_lib.grading.sandbox import BUBBLEWRAP, FIRST_USER, LIMITS, MOST_JOBS, USER
from mesa_lib.grading.source import Limits
from tests.grading.attacks import ACCIDENTS, ATTACKS, cheat
from tests.grading.conftest import write_notebook

ALL = [*ACCIDENTS, *ATTACKS]
BRIEF = Limits(cell_seconds=1, call_seconds=1, submission_seconds=30, memory_mb=2048)


def slug(name: str) -> str:
    return re.sub(r"\W+", "-", name)


@pytest.fixture(scope="module")
def graded(grader, solution, tmp_path_factory):
    """Every submission of the table, graded as one class in bubblewrap; results by name."""
    folder = tmp_path_factory.mktemp("class")
    grades = {}
    for hangs in (False, True):
        submissions = [
            Found(slug(attack.name), write_notebook(folder / f"{slug(attack.name)}.ipynb", attack.change(solution)))
            for attack in ALL
            if attack.hangs is hangs
        ]
        one = grader(BUBBLEWRAP)
        # Nobody waits long for what never ends, and what ends may take its time on a busy machine.
        one = replace(one, assignment=replace(one.assignment, limits=BRIEF)) if hangs else one
        found = grade_all(one, submissions, folder / "out", jobs=4)
        grades |= {grade.student: grade for grade in found}
    return grades, folder / "out"


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_everybody_gets_the_points_that_are_due(graded, attack):
    grade = graded[0][slug(attack.name)]
    assert grade.error == ""
    assert (grade.score("q1"), grade.score("q2")) == (attack.q1, attack.q2), (grade.notes, grade.results)


def test_no_feedback_shows_a_hidden_case(graded):
    pages = [page.read_text() for page in (graded[1] / "feedback").glob("*.html")]
    assert len(pages) == len(ALL)
    hidden = ("random weights", "no step is better", "by_hand", "rng.normal", "w_p @ (w_v @ tokens[:, i])")
    assert [text for text in hidden if any(text in page for page in pages)] == []


def test_what_a_student_reads_names_the_accident(graded):
    grades = graded[0]

    def told(name):
        grade = grades[slug(name)]
        return " ".join([*grade.notes, *(f"{result.message} {result.hint}" for result in grade.results)])

    assert "SyntaxError" in told("a syntax error")
    assert "does a loop never end?" in told("an endless loop in the function")
    assert "no answer within 1 seconds; the other cells ran without it" in told("a cell that swallows every exception")
    assert "os._exit" in told("os._exit in a cell")
    assert "changed its input in place" in told("changes its input in place")
    assert "MemoryError" in told("an array of eight terabytes")
    assert "is not available while this assignment is graded" in told("a blocked room used")
    assert "lsa_step raised NameError in line 3 of its cell: name 'nothing' is not defined" in told(
        "a name that nobody defines"
    )
    assert told("a cell that uses what an experiment defines").strip() == ""
    assert "lsa_step is a value of type int, not a function" in told("the name used for a number later")


def test_free_text_is_found_without_any_metadata(graded):
    grades = graded[0]
    assert all("four times the curvature" in grades[slug(name)].texts["q3"] for name in ("perfect", "a check deleted"))
    assert grades[slug("all text deleted")].texts["q3"] == ""


@pytest.mark.parametrize("name", ["a00 (1).ipynb", "Übung.final.ipynb"])
def test_the_name_of_a_file_does_not_matter(grader, solution, tmp_path, name):
    grade = grader(BUBBLEWRAP).grade("ada", write_notebook(tmp_path / name, solution))
    assert (grade.score("q1"), grade.score("q2")) == (4, 4)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"%PDF-1.7",
        b"\xff\xfe\x00",
        b"[]",
        b'"text"',
        b"null",
        b"[" * 100_000,
        b'{"cells": 3}',
        b'{"cells": [{}]}',
        b'{"cells": [1]}',
        b'{"cells": [], "metadata": 3, "worksheets": 1}',
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_no_notebook_is_one_row_with_its_reason(grader, tmp_path, content):
    path = tmp_path / "ada.ipynb"
    path.write_bytes(content)
    grade = grader(BUBBLEWRAP).grade("ada", path)
    assert (grade.problem, grade.error) == ("the file is not a notebook", "")
    assert (grade.score("q1"), grade.score("q2")) == (0, 0)


def test_a_link_to_a_file_of_the_graders_is_not_read(grader, tmp_path):
    (tmp_path / "ada.ipynb").symlink_to("/etc/passwd")
    assert grader(BUBBLEWRAP).grade("ada", tmp_path / "ada.ipynb").problem == "there is no notebook file"


def probing(paths, port, marker):
    """Cells that read what they can of some paths, connect to a port and leave a marker, and raise what they found."""
    return cheat(
        f"import os, socket\nfound = []\n"
        f"for path in {[str(path) for path in paths]!r}:\n"
        f"    try: found.append(open(path).read(20))\n"
        f"    except OSError: pass\n"
        f"try: open({str(marker)!r}, 'w').write('here')\n"
        f"except OSError: pass\n"
        f"try: socket.create_connection(('127.0.0.1', {port}), 0.3).close(); found.append('network')\n"
        f"except OSError: pass\n"
        f"raise RuntimeError(f'found: {{found}}, uid {{os.getuid()}}')"
    )([])


def test_code_in_the_sandbox_reaches_no_file_and_no_network(grader, demo, kind, tmp_path):
    if kind == LIMITS:
        pytest.skip("this sandbox keeps nothing out, and says so")
    secret = tmp_path / "salt"
    secret.write_text("the salt")
    secret.chmod(0o600)
    os.chmod(demo.folder / "hidden.py", 0o600)  # noqa: PTH101
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            paths = [
                secret,
                demo.folder / "hidden.py",
                "/proc/1/environ",
                f"/proc/{os.getpid()}/environ",
                "/etc/shadow",
            ]
            cells = probing(paths, server.getsockname()[1], tmp_path / "marker")
            grade = grader(kind).grade("eve", write_notebook(tmp_path / "eve.ipynb", cells))
    finally:
        os.chmod(demo.folder / "hidden.py", 0o644)  # noqa: PTH101
    assert not (tmp_path / "marker").exists()
    found = "[]" if kind == BUBBLEWRAP else "['network']"
    assert f"found: {found}, uid " in " ".join(grade.notes)
    if os.geteuid() == 0:
        (user,) = map(int, re.findall(r"uid (\d+)", " ".join(grade.notes)))
        assert FIRST_USER <= user < FIRST_USER + MOST_JOBS


def test_every_sandbox_grades(grader, solution, kind, tmp_path):
    grade = grader(kind).grade("ada", write_notebook(tmp_path / "ada.ipynb", solution))
    assert (grade.error, grade.notes) == ("", [])
    assert (grade.score("q1"), grade.score("q2")) == (4, 4)


@pytest.mark.parametrize("kind", [USER, LIMITS])
@pytest.mark.parametrize(
    "name", ["a loop that swallows every exception", "os._exit in a cell", "an array of eight terabytes"]
)
def test_the_other_sandboxes_keep_the_other_question_too(grader, solution, kind, name, tmp_path):
    (accident,) = [attack for attack in ACCIDENTS if attack.name == name]
    one = grader(kind)
    one = replace(one, assignment=replace(one.assignment, limits=BRIEF)) if accident.hangs else one
    grade = one.grade("ada", write_notebook(tmp_path / "ada.ipynb", accident.change(solution)))
    assert (grade.score("q1"), grade.score("q2")) == (accident.q1, accident.q2)


def test_nothing_that_another_user_started_outlives_the_submission(grader, tmp_path):
    (attack,) = [attack for attack in ATTACKS if attack.name == "children left behind"]
    grader(USER).grade("eve", write_notebook(tmp_path / "eve.ipynb", attack.change([])))
    time.sleep(0.1)
    listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True)
    assert "sleep 600.125" not in listed.stdout.splitlines()


def test_the_table_has_a_row_for_everybody(graded):
    rows = (graded[1] / "grades.csv").read_text().splitlines()
    assert rows[0] == "student,q1,q2,total,of,file,status"
    assert len(rows) == len([attack for attack in ALL if attack.hangs]) + 1
    assert len(read_grades(graded[1])) == len(ALL)
    assert all((Path(graded[1]) / name).stat().st_mode & 0o077 == 0 for name in (".", "results", "feedback"))
