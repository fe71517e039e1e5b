"""An instructor's first hour, and a proof that finds what is wrong with an assignment."""

import csv
import json
import shutil

import pytest

from mesa_lib.grading import proof
from mesa_lib.grading.cli import main
from mesa_lib.grading.source import read_assignment
from tests.grading.conftest import SOURCES


@pytest.fixture
def verb(capsys):
    """`verb(arguments...)`: run the command line on the demonstration; its status and what it printed."""

    def run(*arguments, source=SOURCES):
        status = main(["--source", str(source), *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def test_build_a_variant_hand_it_out_grade_five_read_the_feedback(verb, tmp_path):
    seed = next(
        f"term {number}"
        for number in range(99)
        if "rows" in verb("build", "--variant", f"term {number}", "-o", tmp_path / "out")[1]
    )
    assert verb("build", "a00", "--variant", seed, "--solutions", "-o", tmp_path / "out")[0] == 0
    assert verb("salt", tmp_path / "salt")[0] == 0
    assert verb("salt", tmp_path / "salt")[0] == 2, "a salt is not overwritten"
    assert (tmp_path / "salt").stat().st_mode & 0o077 == 0

    handed_in = tmp_path / "submissions"
    solution = json.loads((tmp_path / "out" / "a00_demo_solution.ipynb").read_text())
    for student in ("ada", "bob", "carl", "dora", "eve"):
        (handed_in / student).mkdir(parents=True)
        notebook = json.loads(json.dumps(solution))
        for cell in notebook["cells"]:
            if student == "bob" and "def best_eta" in "".join(cell["source"]):
                cell["source"] = ["def best_eta(x, y):\n", "    return 1.0\n"]
        if student == "carl":
            notebook = json.loads((tmp_path / "out" / "a00_demo.ipynb").read_text())
        (handed_in / student / "a00 (1).ipynb").write_text(json.dumps(notebook) if student != "dora" else "PDF")
    (tmp_path / "times.csv").write_text("student,time\neve,2027-03-02T12:00\n")
    (tmp_path / "course.yml").write_text("name: x\nstart: 2027-02-01\ndeadlines: {a00: 2027-03-01 23:59}\n")

    grading = ["--salt-file", tmp_path / "salt", "--variant", seed, "--jobs", 2, "--times", tmp_path / "times.csv"]
    status, printed = verb("grade", handed_in, tmp_path / "graded", *grading)
    assert status == 0, printed
    rows = {
        row["student"]: row for row in csv.DictReader((tmp_path / "graded" / "grades.csv").read_text().splitlines())
    }
    assert {name: (row["q1"], row["q2"]) for name, row in rows.items()} == {
        "ada": ("4", "4"),
        "bob": ("4", "1"),
        "carl": ("0", "0"),
        "dora": ("0", "0"),
        "eve": ("4", "4"),
    }
    assert rows["dora"]["status"] == "the file is not a notebook"
    feedback = (tmp_path / "graded" / "feedback" / "bob.html").read_text()
    assert "5 of 8 points" in feedback and "check the factors of N" in feedback

    assert verb("readsheet", tmp_path / "graded")[0] == 0
    points = tmp_path / "graded" / "reading" / "q3.csv"
    points.write_text(
        points.read_text().replace("ada,,", "ada,2,").replace("bob,,", "bob,1,").replace("eve,,", "eve,2,")
    )
    book = ["gradebook", tmp_path / "graded", "--course", tmp_path / "course.yml", "-o", tmp_path / "book.csv"]
    assert verb(*book)[0] == 0
    totals = {row["student"]: row["total"] for row in csv.DictReader((tmp_path / "book.csv").read_text().splitlines())}
    assert totals == {"ada": "10", "bob": "6", "carl": "0", "dora": "0", "eve": "9"}

    assert verb("similarity", handed_in, "--variant", seed, "-o", tmp_path / "pairs.csv")[0] == 0
    assert "ada,eve,1.0" in (tmp_path / "pairs.csv").read_text()
    assert "a00 A demonstration" in verb("plan", tmp_path / "course.yml", "--weeks", 6)[1]
    assert verb("gradescope", "a00", "--salt-file", tmp_path / "salt", "-o", tmp_path / "a00.zip")[0] == 0
    for target in ("nbgrader", "otter"):
        assert verb("export", "a00", "--to", target, "-o", tmp_path / target)[0] == 0
    assert verb("leakscan", tmp_path / "out" / "a00_demo.ipynb")[0] == 0
    status, printed = verb("leakscan", tmp_path / "out")
    assert status == 1 and "a00_demo_solution.ipynb" in printed


def test_who_forgets_the_variant_or_gets_another_assignment_is_told(verb, tmp_path):
    seed = next(
        f"term {n}" for n in range(99) if "rows" in verb("build", "--variant", f"term {n}", "-o", tmp_path / "out")[1]
    )
    assert verb("build", "a00", "--variant", seed, "--solutions", "-o", tmp_path / "out")[0] == 0
    verb("salt", tmp_path / "salt")
    (tmp_path / "in").mkdir()
    shutil.copy(tmp_path / "out" / "a00_demo_solution.ipynb", tmp_path / "in" / "ada.ipynb")
    other = json.loads((tmp_path / "in" / "ada.ipynb").read_text())
    other["metadata"]["mesa"]["assignment"] = "a77_another"
    (tmp_path / "in" / "bob.ipynb").write_text(json.dumps(other))
    del other["metadata"]["mesa"]
    (tmp_path / "in" / "carl.ipynb").write_text(json.dumps(other))

    def graded(*options):
        arguments = ["--assignment", "a00", "--salt-file", tmp_path / "salt", *options]
        status, printed = verb("grade", tmp_path / "in", tmp_path / "graded", *arguments)
        table = csv.DictReader((tmp_path / "graded" / "grades.csv").read_text().splitlines())
        return status, printed, {row["student"]: row["status"] for row in table}

    forgotten = "the notebook says that it is of the variant 'rows'; it is graded as of no variant"
    for _ in range(2):  # the second time everything is there already
        status, printed, rows = graded()
        assert status == 0 and "WARNING: 2 of 3 notebooks say that they are of another variant or assignment" in printed
        assert rows == {"ada": forgotten, "bob": "the notebook says that it is a77_another", "carl": "graded"}
    status, printed, rows = graded("--variant", seed)
    assert status == 0 and "WARNING: 1 of 3" in printed
    assert rows == {"ada": "graded", "bob": "the notebook says that it is a77_another", "carl": "graded"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "--variant", "x"], "name a folder with --output"),
        (["build", "a77"], "no assignment 'a77'"),
        (["grade", "/no/such/place", "/tmp/x", "--salt-file", "y"], "No such file or directory"),
        (["gradebook", "/no/such/place", "-o", "x"], "no output of a finished `grade`"),
        (["gradescope", "a00", "--salt-file", "/no/salt", "-o", "x"], "GRADER ERROR: /no/salt: there is no salt"),
    ],
)
def test_a_wrong_command_is_answered_in_words(verb, arguments, message):
    status, printed = verb(*arguments)
    assert status == 2 and message in printed and "Traceback" not in printed


def test_a_good_assignment_is_proved(verb):
    status, printed = verb("check", "a00")
    assert status == 0 and printed.splitlines()[-1] == "22 passed, 0 failed"
    status, printed = verb("mutants", "a00")
    assert status == 0 and "mutant: no residual: q1 0, q2 4" in printed


@pytest.mark.parametrize(
    ("file", "old", "new", "finding"),
    [
        ("a00_demo.md", "(x.T @ (x @ gradient)) / len(y)", "(x.T @ (x @ gradient))", "solution, proof 0"),
        ("a00_demo.md", "    return moved<<", "    moved = 2 * moved\n    return moved<<", "solution, proof 4"),
        ("a00_demo.md", "    tokens = tokens.T\n", "", "solution, variant rows"),
        ("hidden.py", '    expect(eta > 0, "the step has to move downhill")\n', "", "constant 0"),
        ("mutants.py", '{"q2": 2}', '{"q2": 1}', "mutant: one over the largest curvature"),
        (
            "mutants.py",
            '    Mutant("no residual", "tokens + w_p", "w_p", {"q1": 0}),\n    Mutant(\n        "keys',
            '    Mutant(\n        "keys',
            "mutants",
        ),
    ],
)
def test_the_proof_finds_what_is_wrong_with_an_assignment(tmp_path, file, old, new, finding):
    folder = tmp_path / "a00_demo"
    shutil.copytree(SOURCES / "a00_demo", folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    if finding == "mutants":
        text = (folder / "mutants.py").read_text()
        (folder / "mutants.py").write_text(
            text.replace('    Mutant("no values", "(w_v @ tokens)", "tokens", {"q1": 1}),\n', "")
        )
    wrong = [found.what for found in proof.prove(read_assignment(folder)) if not found.passed]
    assert finding in wrong


def test_a_hidden_case_that_no_mutant_fails_is_dead_weight(tmp_path):
    folder = tmp_path / "a00_demo"
    shutil.copytree(SOURCES / "a00_demo", folder)
    dead = (
        '\n\n@case("q1", points=1, hint="none")\ndef shapes(student, rng):\n'
        '    assert student.call("lsa_step", *[np.eye(2)] * 5).shape == (2, 2)\n'
    )
    (folder / "hidden.py").write_text((folder / "hidden.py").read_text() + dead)
    meta = (folder / "meta.yml").read_text()
    (folder / "meta.yml").write_text(meta.replace("points: 4", "points: 5", 1))
    mutants = (folder / "mutants.py").read_text()
    (folder / "mutants.py").write_text(mutants.replace('"q1": 0', '"q1": 1').replace('"q1": 1}', '"q1": 2}'))
    findings = {found.what: found for found in proof.prove(read_assignment(folder))}
    assert findings["hidden cases that fail no mutant"].got == "q1 shapes"


def test_a_mutant_whose_text_occurs_twice_is_refused(demo):
    run = proof.NotebookRun(proof.build_notebooks(demo)[1])
    with (
        pytest.raises(ValueError, match="has to occur once in the solution's code, not 2 times"),
        run.changed("len(y)", "1"),
    ):
        pass
