"""Gradescope: the zip to upload there, and what runs inside its container.

    setup.sh            installs Python, bubblewrap and the packages, once, when the image is built
    run_autograder      grades one submission
    source/             mesa_lib, the source of one assignment, the salt: readable for root alone

Gradescope starts `run_autograder` as root in a container without the rights that bubblewrap needs; there students' code
runs as another user. What it must not read is below `/autograder/source` and closed to others.
"""

import importlib.metadata
import json
import shlex
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mesa_lib
from mesa_lib.grading.batch import status, submission_of
from mesa_lib.grading.grade import PASSED, Grade
from mesa_lib.grading.prepare import prepared_grader
from mesa_lib.grading.source import CODE, TEXT, Assignment, find_assignment

PACKAGES = (
    "anywidget", "filelock", "ipython", "ipywidgets", "jaxtyping", "jinja2", "jupytext", "markdown-it-py", "matplotlib",
    "nbformat", "numpy", "pyyaml", "safetensors", "scipy", "torch", "tqdm",
)  # fmt: skip
"""What mesa_lib and its grading import; Gradescope's image gets the versions that are installed here."""

DATE = (2026, 1, 1, 0, 0, 0)
"""The date of every file in the zip, so that the same content makes the same bytes."""

SETUP = """#!/usr/bin/env bash
# Runs once, when Gradescope builds the image.
set -euo pipefail
apt-get update
apt-get install --yes --no-install-recommends bubblewrap python3 python3-venv util-linux
python3 -m venv /opt/mesa
/opt/mesa/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu {packages}
chmod -R go-rwx /autograder/source
"""

RUN = """#!/usr/bin/env bash
# Grades /autograder/submission into /autograder/results/results.json.
set -euo pipefail
chmod -R go-rwx /autograder/source /autograder/results /autograder/submission
cd /autograder/source
exec /opt/mesa/bin/python -m mesa_lib.grading --source assignments/src gradescope-run /autograder {options}
"""


def write_zip(assignment: Assignment, salt_file: Path, seed: str, target: Path) -> None:
    """Write the zip for an assignment.

    Args:
        assignment: what is graded.
        salt_file: the salt; it goes into the zip, which students never see.
        seed: the instructor's seed of the variant.
        target: the zip.
    """
    packages = " ".join(f"{name}=={_version(name)}" for name in PACKAGES)
    options = f"{assignment.name} --variant {shlex.quote(seed)}" if seed else assignment.name
    files: dict[str, tuple[bytes, int]] = {
        "setup.sh": (SETUP.format(packages=packages).encode(), 0o755),
        "run_autograder": (RUN.format(options=options).encode(), 0o755),
        "salt": (salt_file.read_bytes(), 0o600),
    }
    package = Path(mesa_lib.__file__).parent
    for path in _files(package):
        files[f"mesa_lib/{path.relative_to(package).as_posix()}"] = (path.read_bytes(), 0o600)
    for folder in (assignment.folder, assignment.folder.parent / "_shared"):
        for path in _files(folder):
            files[f"assignments/src/{folder.name}/{path.relative_to(folder).as_posix()}"] = (path.read_bytes(), 0o600)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            content, mode = files[name]
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            archive.writestr(entry, content)


def run(root: Path, name: str, seed: str, kind: str | None = None, python: Path | None = None) -> dict[str, Any]:
    """Grade what Gradescope put into `root/submission`, and write `root/results/results.json`.

    Args:
        root: /autograder there.
        name: the assignment.
        seed: the instructor's seed of the variant.
        kind: of the sandbox; None chooses.
        python: the interpreter for students' code.

    Returns:
        What was written, with the sandbox's warnings. A broken grader gives no score, and says so to the instructor.
    """
    assignment = find_assignment(name, root / "source" / "assignments" / "src")
    mine = submission_of(_student(root), root / "submission")
    private = [root / "results", root / "submission"]
    with prepared_grader(assignment, root / "source" / "salt", seed, kind, python, 1, private) as (grader, warnings):
        grade = grader.grade(mine.student, mine.path)
    result = results(assignment, grade)
    result["warnings"] = warnings
    (root / "results").mkdir(exist_ok=True)
    (root / "results" / "results.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return result


def results(assignment: Assignment, grade: Grade) -> dict[str, Any]:
    """A grade as Gradescope's results.json: a hidden case has no name, and shows a hint after the deadline."""
    if grade.error:
        output = "Something of the grader's broke. You lose no points; please tell the course staff."
        return {"output": output, "tests": [], "stdout_visibility": "hidden", "extra_data": {"error": grade.error}}
    tests: list[dict[str, Any]] = [
        {
            "name": f"{result.question} {'hidden case' if result.hidden else result.name}",
            "score": result.score,
            "max_score": result.points,
            "output": "ok" if result.status == PASSED else f"{result.message}\nHint: {result.hint}",
            "visibility": "after_due_date" if result.hidden else "visible",
        }
        for result in grade.results
    ]
    for question, about in assignment.questions.items():
        if about.kind == TEXT:
            tests.append({
                "name": f"{question} {about.title} (read by a person)",
                "output": grade.texts.get(question) or "No text was found below the heading of this question.",
                "visibility": "visible",
            })  # fmt: skip
    score = sum(grade.score(name) for name, about in assignment.questions.items() if about.kind == CODE)
    return {"score": score, "output": status(grade), "tests": tests, "stdout_visibility": "hidden"}


def _student(root: Path) -> str:
    """Who submitted, from Gradescope's metadata: the same seed for every submission of one student."""
    path = root / "submission_metadata.json"
    if not path.is_file():
        return "nobody"
    users = json.loads(path.read_text(encoding="utf-8")).get("users", [])
    return " ".join(sorted(str(user.get("email", user.get("id", ""))) for user in users)) or "nobody"


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def _version(name: str) -> str:
    """The version that is installed here, without the mark of torch's CPU build."""
    return importlib.metadata.version(name).partition("+")[0]
