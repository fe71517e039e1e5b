"""From one source come the student's notebook and the solution's, byte for byte the same each time."""

import re
import shutil

import pytest

from mesa_lib.grading.build import build_marked, build_notebooks, notebook_bytes, source_lines, write_release
from mesa_lib.grading.source import SourceError, find_assignment, read_assignment
from tests.grading.conftest import SOURCES


@pytest.fixture
def copy(tmp_path):
    """`copy(file, old, new)`: the demonstration with one text of one file changed, read."""

    def changed(file="meta.yml", old="", new=""):
        folder = tmp_path / "a00_demo"
        if not folder.exists():
            shutil.copytree(SOURCES / "a00_demo", folder)
        path = folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return read_assignment(folder)

    return changed


def source(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


def test_students_get_everything_but_what_is_between_the_markers(demo):
    student, solution = build_notebooks(demo)
    assert "w_p @ (w_v @ tokens)" not in source(student) and "four times the curvature" not in source(student)
    assert "w_p @ (w_v @ tokens)" in source(solution) and "four times the curvature" in source(solution)
    assert source(student).count("raise NotImplementedError") == 2
    assert source(student).count("*Your answer here.*") == 1
    assert "SOLUTION" not in source(student) + source(solution)
    assert source(build_marked(demo)).count("BEGIN SOLUTION") == 3


def test_building_twice_gives_the_same_bytes(demo, tmp_path):
    assert notebook_bytes(build_notebooks(demo)[0]) == notebook_bytes(build_notebooks(demo)[0])
    path = write_release(demo, tmp_path)
    before = path.stat().st_mtime_ns
    assert write_release(demo, tmp_path).stat().st_mtime_ns == before


def test_a_variant_changes_the_text_the_solution_and_the_checks(demo):
    for built in build_notebooks(demo, "rows"):
        assert "Tokens are the rows of" in source(built)
        assert 'check = partial(check, variant="rows")' in source(built)
        assert built.metadata.mesa == {"assignment": "a00_demo", "variant": "rows"}
    assert "tokens = tokens.T" in source(build_notebooks(demo, "rows")[1])
    assert "partial" not in source(build_notebooks(demo)[0])


def test_a_variable_gets_the_stub_that_its_marker_names(copy):
    assignment = copy(
        "a00_demo.md", "    ### BEGIN SOLUTION\n    gradient", "    ### BEGIN SOLUTION gradient = ...\n    gradient"
    )
    assert "    gradient = ...\n" in source(build_notebooks(assignment)[0]) + "\n"


def test_the_lines_of_a_solution_are_known(demo):
    shown, solution = source_lines(demo)
    assert "return moved" in solution and "return moved.T" in source_lines(demo, "rows")[1]
    assert any("four times the curvature" in line for line in solution)
    assert [any("def lsa_step" in line for line in lines) for lines in (shown, solution)] == [True, False]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("a00_demo.md", "    ### END SOLUTION\n", "", "misspelled or has no partner"),
        ("a00_demo.md", "    ### BEGIN SOLUTION\n", "", "do not match"),
        ("a00_demo.md", "### BEGIN SOLUTION", "### BEGIN SOLUTIONS", "do not match"),
        ("a00_demo.md", "<<layout>>", "<<lay out>>", "expected token"),
        ("a00_demo.md", "<<layout>>", "<<colour>>", "'colour' is undefined"),
        ("a00_demo.md", "Thank you.", "### END SOLUTION", "do not match"),
    ],
)
def test_a_text_that_cannot_be_built_is_refused(copy, file, old, new, message):
    with pytest.raises(SourceError, match=re.escape(message)):
        build_notebooks(copy(file, old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("meta.yml", "points: 4", "points: 5", "q1: 5 points, but its cases add up to 4"),
        ("meta.yml", "kind: text", "kind: essay", "expected kind 'code' or 'text', got 'essay'"),
        ("meta.yml", "title: A demonstration\n", "", "missing entries ['title']"),
        ("meta.yml", "title: A demonstration", "titel: 1\ntitle: A", "unknown entries ['titel']"),
        ("meta.yml", "title: A demonstration", "title: [", "no YAML mapping"),
        ("meta.yml", "cell_seconds", "cell_second", "unexpected keyword argument 'cell_second'"),
        ("rubric.md", "## q3", "## q4", "expected a section '## q3'"),
        ("public.py", '"q2": ("best_eta",)', '"q4": ("best_eta",)', "meta.yml has the code questions"),
        ("hidden.py", '@case("q2", points=1', '@case("q7", points=1', "q2: 4 points, but its cases add up to 3"),
        (
            "hidden.py",
            "def by_hand(",
            "@case('q7', points=1)\ndef stray(student, rng): ...\n\n\ndef by_hand(",
            "['q7']",
        ),
    ],
)
def test_a_source_that_contradicts_itself_is_refused(copy, file, old, new, message):
    with pytest.raises(SourceError, match=re.escape(message)):
        copy(file, old, new)


@pytest.mark.parametrize("name", ["demo", "a0_demo", "a00-demo"])
def test_a_folder_needs_a_name_of_the_right_form(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(SourceError, match="expected a folder called aNN_words"):
        read_assignment(tmp_path / name)


def test_an_assignment_is_found_by_the_beginning_of_its_name():
    assert find_assignment("a00", SOURCES).name == "a00_demo"
    with pytest.raises(SourceError, match="no assignment 'a99'"):
        find_assignment("a99", SOURCES)
