"""Gradescope, nbgrader and otter-grader: the same cases in their formats."""

import json
import os
import re
import subprocess
import sys
import zipfile

import nbformat
import pytest
import tomllib

from mesa_lib.grading.cli import main
from mesa_lib.grading.export import NBGRADER, OTTER, export
from mesa_lib.grading.grade import Grade
from mesa_lib.grading.gradescope import PACKAGES, results, write_zip
from mesa_lib.grading.sandbox import USER
from tests.grading.conftest import SALT, write_notebook
from tools.toc import ROOT


@pytest.fixture
def autograder(demo, tmp_path, monkeypatch):
    """Gradescope's folder, below a place that everybody may pass, with the content of our zip."""
    root = tmp_path / "autograder"
    (tmp_path / "salt").write_bytes(SALT)
    target = tmp_path / "autograder.zip"
    write_zip(demo, tmp_path / "salt", "", target)
    with zipfile.ZipFile(target) as archive:
        archive.extractall(root / "source")
    (root / "submission").mkdir()
    (root / "submission_metadata.json").write_text(json.dumps({"users": [{"email": "ada@x"}]}))
    return root


def test_the_zip_is_the_same_every_time_and_holds_what_it_needs(demo, tmp_path):
    (tmp_path / "salt").write_bytes(SALT)
    for name in ("a.zip", "b.zip"):
        write_zip(demo, tmp_path / "salt", "spring $(rm -rf /)", tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = set(archive.namelist())
        assert {
            "setup.sh",
            "run_autograder",
            "salt",
            "mesa_lib/grading/worker.py",
            "assignments/src/a00_demo/hidden.py",
        } <= names
        assert {"mesa_lib/grading/pages/style.html", "mesa_lib/assignments/checking.py"} <= names
        assert not [name for name in names if "__pycache__" in name]
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        assert modes["run_autograder"] == modes["setup.sh"] == 0o755 and modes["salt"] == 0o600
        scripts = {name: archive.read(name).decode() for name in ("setup.sh", "run_autograder")}
    assert "--variant 'spring $(rm -rf /)'" in scripts["run_autograder"]
    assert re.search(r"numpy==[\d.]+ ", scripts["setup.sh"]) and "bubblewrap" in scripts["setup.sh"]
    for name, script in scripts.items():
        checked = subprocess.run(["bash", "-n"], input=script, text=True, check=False)
        assert checked.returncode == 0, name


def test_the_image_gets_every_package_that_we_import():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["grading"]]
    assert sorted(re.match(r"[\w-]+", line)[0] for line in wanted) == sorted(PACKAGES)


def test_a_submission_is_graded_in_gradescopes_folders(autograder, solution, sandbox, readable_python):
    sandbox(USER)
    for folder in (autograder / "source", autograder / "submission"):
        folder.chmod(0o700)
    write_notebook(autograder / "submission" / "my homework (3).ipynb", solution)
    # As there: what runs is the copy of mesa_lib in the zip, which students' code cannot read.
    command = [
        sys.executable,
        "-m",
        "mesa_lib.grading",
        "--source",
        "assignments/src",
        "gradescope-run",
        str(autograder),
        "a00_demo",
    ]
    where = ["--sandbox", USER, "--python", str(readable_python)]
    environment = {**os.environ, "PYTHONPATH": str(autograder / "source")}
    done = subprocess.run(
        [*command, *where],
        cwd=autograder / "source",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((autograder / "results" / "results.json").read_text())
    assert found["score"] == 8 and len(found["warnings"]) == 1
    assert [(test["name"], test.get("score"), test["visibility"]) for test in found["tests"]] == [
        ("q1 identity weights", 1, "visible"),
        ("q1 hidden case", 3, "after_due_date"),
        ("q2 one feature", 1, "visible"),
        ("q2 hidden case", 1, "after_due_date"),
        ("q2 hidden case", 2, "after_due_date"),
        ("q3 In words (read by a person)", None, "visible"),
    ]
    assert "four times the curvature" in found["tests"][-1]["output"]


def test_a_broken_grader_gives_no_score_to_gradescope(demo):
    found = results(demo, Grade("ada", "a.ipynb", [], error="no room"))
    assert "score" not in found and "You lose no points" in found["output"]


def run_cells(cells):
    """Run code cells in order, in one namespace; the text of each error that comes."""
    namespace, errors = {}, []
    for source in cells:
        try:
            exec(compile(source, "<cell>", "exec"), namespace)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return errors


@pytest.mark.parametrize("variant", ["", "rows"])
def test_the_export_to_nbgrader_grades_the_solution_and_refuses_a_stub(demo, tmp_path, variant):
    notebook = nbformat.read(export(demo, NBGRADER, tmp_path, variant), 4)
    nbformat.validate(notebook)
    marks = [cell.metadata["nbgrader"] for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert sum(mark.get("points", 0) for mark in marks) == 10
    assert len({mark["grade_id"] for mark in marks}) == len(marks) == 8
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert run_cells(code) == []
    stripped = [
        re.sub(r"### BEGIN SOLUTION.*?### END SOLUTION", "raise NotImplementedError()", source, flags=re.DOTALL)
        for source in code
    ]
    assert len(run_cells(stripped)) == 5
    shown = [
        re.sub(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", source, flags=re.DOTALL) for source in stripped
    ]
    assert "by_hand" in "".join(code) and "by_hand" not in "".join(shown)


def test_the_export_to_otter_holds_each_question_its_solution_and_its_tests(demo, tmp_path):
    notebook = nbformat.read(export(demo, OTTER, tmp_path), 4)
    nbformat.validate(notebook)
    raw = [cell.source.splitlines()[0] for cell in notebook.cells if cell.cell_type == "raw"]
    question = [
        "# BEGIN QUESTION",
        "# BEGIN SOLUTION",
        "# END SOLUTION",
        "# BEGIN TESTS",
        "# END TESTS",
        "# END QUESTION",
    ]
    text = [name for name in question if "TESTS" not in name]
    assert raw == ["# ASSIGNMENT CONFIG", *question, *question, *text]
    tests = [cell.source for cell in notebook.cells if "BEGIN TEST CONFIG" in cell.source]
    assert [("hidden: true" in test, int(re.search(r"points: (\d)", test)[1])) for test in tests] == [
        (False, 1),
        (True, 3),
        (False, 1),
        (True, 1),
        (True, 2),
    ]
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code" and cell.source not in tests]
    namespace = {}
    for source in code:
        exec(source, namespace)
    for test in tests:
        local = {}
        exec(test, local)
        (run,) = [value for name, value in local.items() if name.startswith("test_")]
        run(namespace)
        with pytest.raises(Exception, match=r"was expected"):
            run({**namespace, "lsa_step": lambda *a: [], "best_eta": lambda *a: []})


def test_the_command_line_knows_every_verb(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    verbs = (
        "build",
        "check",
        "mutants",
        "salt",
        "grade",
        "readsheet",
        "gradebook",
        "plan",
        "similarity",
        "gradescope",
        "export",
        "leakscan",
    )
    assert [verb for verb in verbs if verb not in shown] == []
