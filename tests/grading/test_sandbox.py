"""Sandboxes: what they hide, and that a broken one is nobody's zero."""

import ast
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

import mesa_lib
from mesa_lib.grading import sandbox as sandboxes
from mesa_lib.grading.grade import Grader
from mesa_lib.grading.library import PACKAGE, blocked_sources, copy_library
from mesa_lib.grading.prepare import prepared_grader, read_salt
from mesa_lib.grading.sandbox import BUBBLEWRAP, LIMITS, USER, GraderError, Sandbox, choose_sandbox
from mesa_lib.grading.session import Worker
from mesa_lib.grading.source import DEFAULT_ROOT
from tests.grading.conftest import SALT, write_notebook

BLOCKED = ("mesa_lib.networks", "mesa_lib.algorithms", "mesa_lib.theory")


def in_copy(folder, program):
    """Run a program that sees the copy of mesa_lib and no other."""
    command = [sys.executable, "-I", "-c", f"import sys\nsys.path.insert(0, {str(folder)!r})\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_copy_hides_the_sources_of_blocked_rooms_and_the_grader(tmp_path):
    copy = copy_library(tmp_path, BLOCKED) / "mesa_lib"
    assert not (copy / "grading").exists()
    for source in blocked_sources(BLOCKED):
        text = (copy / source.relative_to(PACKAGE)).read_text()
        assert "holds an answer" in text and len(text) < 1200
    assert (copy / "tasks.py").read_text() == (PACKAGE / "tasks.py").read_text()


def test_every_room_can_be_imported_beside_blocked_ones_and_a_blocked_name_cannot_be_used(tmp_path):
    copy_library(tmp_path, BLOCKED)
    program = """
import importlib, pkgutil, mesa_lib
print("torch" in sys.modules)
for room in pkgutil.walk_packages(mesa_lib.__path__, "mesa_lib."):
    importlib.import_module(room.name)
for name in mesa_lib.__all__:
    getattr(mesa_lib, name)
for use in (lambda: mesa_lib.gd_construction(1.0, 2, 1, 3), lambda: mesa_lib.ridge_regression(None, 1.0),
            lambda: mesa_lib.AttentionWeights.w_kq, lambda: mesa_lib.METHODS["gd"], lambda: list(mesa_lib.METHODS)):
    try:
        use()
    except RuntimeError as error:
        print(str(error).partition(" is ")[2].replace(" ", "_"))
print(mesa_lib.LinearTasks(x_dim=3).x_dim, mesa_lib.__version__)
from mesa_lib.assignments import check
check("q4", power=lambda r, eta: -2.0)
try:
    mesa_lib.no_such_name
except AttributeError:
    print("fine")
"""
    checked = "q4 three points ok q4: 1 of 1 public points. More cases, on random inputs, run when this is graded."
    refused = "not_available_while_this_assignment_is_graded"
    assert in_copy(tmp_path, program) == ["False", *[refused] * 5, "3", mesa_lib.__version__, *checked.split(), "fine"]


def test_only_rooms_of_mesa_lib_can_be_blocked(tmp_path):
    for number, room in enumerate(("mesa_lib.no_such_room", "numpy", "mesa_lib")):
        with pytest.raises(ValueError, match="expected a module of mesa_lib"):
            copy_library(tmp_path / str(number), [room])


def test_the_worker_reads_no_module_of_the_grader():
    tree = ast.parse(sandboxes.WORKER.read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in imported if str(name).startswith("mesa_lib")} == {"mesa_lib.assignments"}


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python"])
def test_a_broken_sandbox_is_a_grader_error_and_nobodys_zero(demo, library, solution, tmp_path, python):
    notebook = write_notebook(tmp_path / "ada.ipynb", solution)
    grade = Grader(demo, Sandbox(LIMITS, Path(python)), library, SALT).grade("ada", notebook)
    assert grade.error.startswith("the worker did not start") and python in grade.error
    assert (grade.results, grade.problem) == ([], "")


def test_a_machine_without_room_is_a_grader_error(demo, library, solution, tmp_path, monkeypatch):
    def full(**named):
        raise OSError("No space left on device")

    notebook = write_notebook(tmp_path / "ada.ipynb", solution)
    with monkeypatch.context() as patch:
        patch.setattr("mesa_lib.grading.session.tempfile.mkdtemp", full)
        grade = Grader(demo, Sandbox(LIMITS), library, SALT).grade("ada", notebook)
    assert grade.error == "the worker did not start: No space left on device"
    assert grade.results == []


@pytest.fixture
def own_locks(tmp_path, monkeypatch):
    """Locks of this test alone: tests beside it grade."""
    monkeypatch.setattr("mesa_lib.grading.sandbox.tempfile.tempdir", str(tmp_path))


@pytest.mark.usefixtures("own_locks")
def test_graders_at_the_same_time_take_different_users_and_give_them_back():
    (first, lock), (second, other) = sandboxes.claim_user(0), sandboxes.claim_user(0)
    assert len({first, second}) == 2
    lock.close()
    again, third = sandboxes.claim_user(first)
    assert again == first
    third.close()
    other.close()


@pytest.mark.usefixtures("own_locks")
def test_when_all_users_are_taken_the_grader_says_so():
    held = [sandboxes.claim_user(0)[1] for _ in range(sandboxes.MOST_JOBS)]
    try:
        with pytest.raises(GraderError, match="users of the sandboxes are taken"):
            sandboxes.claim_user(0)
    finally:
        for lock in held:
            lock.close()


def test_the_end_of_one_worker_leaves_that_of_another_grader_alone(demo, library, sandbox):
    one, other = (Worker(sandbox(USER), library, demo.limits, demo.names) for _ in range(2))
    try:
        assert one.job != other.job
        other.close()
        one.run(0, "answer = 6 * 7")
    finally:
        one.close()


def test_a_library_that_is_missing_is_a_grader_error(demo, solution, tmp_path):
    notebook = write_notebook(tmp_path / "ada.ipynb", solution)
    grade = Grader(demo, Sandbox(LIMITS), tmp_path / "nowhere", SALT).grade("ada", notebook)
    assert "No module named 'mesa_lib'" in grade.error


@pytest.mark.parametrize(("kind", "tool"), [(BUBBLEWRAP, "bwrap"), (USER, "setpriv")])
def test_a_sandbox_that_is_not_there_is_not_chosen_and_refused_if_asked_for(monkeypatch, kind, tool):
    found = sandboxes.shutil.which
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None if name == tool else found(name))
    sandboxes._why_no_bubblewrap.cache_clear()
    try:
        assert choose_sandbox()[0].kind != kind
        with pytest.raises(GraderError, match=f"the sandbox '{kind}' does not work here"):
            choose_sandbox(kind)
    finally:
        sandboxes._why_no_bubblewrap.cache_clear()


def test_without_any_sandbox_there_is_a_loud_warning(monkeypatch):
    monkeypatch.setattr(sandboxes, "_why_no_bubblewrap", lambda: "not installed")
    monkeypatch.setattr(sandboxes, "_why_no_user", lambda: "the grader is not root")
    chosen, warnings = choose_sandbox()
    assert chosen.kind == LIMITS
    assert warnings[0].startswith("NO SANDBOX") and "not installed" in warnings[0]
    assert choose_sandbox(LIMITS)[1] == warnings


def test_windows_is_sent_elsewhere(monkeypatch):
    monkeypatch.setattr(sandboxes, "os", types.SimpleNamespace(name="nt"))
    with pytest.raises(GraderError, match="on Windows use WSL"):
        choose_sandbox()


def test_another_user_is_warned_to_have_a_network(monkeypatch):
    monkeypatch.setattr(sandboxes, "_why_no_bubblewrap", lambda: "it fails")
    monkeypatch.setattr(sandboxes, "_why_no_user", lambda: "")
    chosen, warnings = choose_sandbox()
    assert chosen.kind == USER
    assert warnings == ["no bubblewrap (it fails): students' code can use the network"]


@pytest.fixture
def salt(tmp_path):
    path = tmp_path / "salt"
    path.write_bytes(SALT)
    path.chmod(0o600)
    return path


def test_a_sandbox_in_which_secrets_can_be_read_grades_nobody(demo, salt, sandbox, readable_python):
    sandbox(USER)
    # The demonstration lies in a folder that everybody may read; its hidden cases must not be.
    with (
        pytest.raises(GraderError, match=r"students' code could read .*a00_demo"),
        prepared_grader(demo, salt, kind=USER, python=readable_python),
    ):
        pass


def test_a_prepared_grader_has_seen_its_sandbox_work(demo, salt, solution, sandbox, tmp_path):
    sandbox(BUBBLEWRAP)
    with prepared_grader(demo, salt, kind=BUBBLEWRAP) as (grader, warnings):
        assert warnings == []
        grade = grader.grade("ada", write_notebook(tmp_path / "ada.ipynb", solution))
        assert grade.score("q1") == 4
    assert not grader.library.exists()
    with (
        pytest.raises(GraderError, match="the worker did not start"),
        prepared_grader(demo, salt, kind=LIMITS, python=Path("/bin/false")),
    ):
        pass
    with pytest.raises(GraderError, match="jobs: expected a positive number"), prepared_grader(demo, salt, jobs=0):
        pass


def test_a_salt_has_to_be_there_long_and_outside_the_repository(tmp_path):
    short = tmp_path / "salt"
    for path, message in (
        (short, "there is no salt"),
        (DEFAULT_ROOT / "_shared" / "end.md", "does not belong into the repository"),
    ):
        with pytest.raises(GraderError, match=message):
            read_salt(path)
    short.write_text("abc")
    with pytest.raises(GraderError, match="expected at least 16 bytes"):
        read_salt(short)


def test_time_for_the_whole_notebook_is_limited(demo, library, solution, tmp_path):
    brief = replace(demo, limits=replace(demo.limits, submission_seconds=0.5))
    cells = [("code", "import time\ntime.sleep(0.7)"), *solution]
    grade = Grader(brief, Sandbox(LIMITS), library, SALT).grade("ada", write_notebook(tmp_path / "ada.ipynb", cells))
    assert "the time of the whole notebook is over; its last cells did not run" in grade.notes
    assert grade.score("q1") == 0


def test_files_and_processes_are_limited(demo, library, solution, sandbox, tmp_path):
    sandbox(BUBBLEWRAP)
    program = """
import os, resource
wrote = 0
try:
    with open("big", "wb") as file:
        for _ in range(100):
            wrote += file.write(bytes(2**20))
except OSError as error:
    pass
try:
    for number in range(200):
        with open(f"part{number}", "wb") as file:
            file.write(bytes(2**20))
except OSError:
    pass
total = sum(os.path.getsize(name) for name in os.listdir("."))
processes = resource.getrlimit(resource.RLIMIT_NPROC)
raise RuntimeError(f"{wrote <= 50 * 2**20} {total <= 51 * 2**20} {processes} {os.path.exists('/home')}")
"""
    cells = [*solution, ("code", program)]
    grade = Grader(demo, Sandbox(BUBBLEWRAP), library, SALT).grade("ada", write_notebook(tmp_path / "ada.ipynb", cells))
    assert any("RuntimeError: True True (64, 64) False" in note for note in grade.notes), grade.notes
    assert grade.score("q1") == 4
