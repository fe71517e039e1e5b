"""A course: lateness, extensions, reading sheets, tables for Canvas and Moodle, a plan, similar submissions."""

import csv
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from mesa_lib.grading.batch import Found
from mesa_lib.grading.build import build_notebooks
from mesa_lib.grading.course import Course, CourseError, lateness, read_course, short_name, term_plan
from mesa_lib.grading.grade import PASSED, CaseResult, Grade
from mesa_lib.grading.gradebook import (
    CANVAS,
    MOODLE,
    GradebookError,
    entries,
    graded_folders,
    plain_rows,
    roster_rows,
)
from mesa_lib.grading.reading import ReadingError, read_points, write_sheets
from mesa_lib.grading.similarity import code_tokens, similar_pairs, write_pairs
from tests.grading.conftest import write_notebook

COURSE = """
name: Mesa
start: 2027-02-01
time_zone: Europe/Zurich
late: {free_days: 2, grace_minutes: 15, percent_per_day: 10, most_days: 3}
deadlines: {a01: 2027-02-12 23:59, a02: 2027-02-19 23:59}
extensions: {eve: {a01: 2}}
"""


@pytest.fixture
def course(tmp_path):
    path = tmp_path / "course.yml"
    path.write_text(COURSE)
    return read_course(path)


@pytest.mark.parametrize(
    ("student", "submitted", "days", "free", "percent"),
    [
        ("ada", "2027-02-12T23:00:00+01:00", 0, 0, 0),
        ("ada", "2027-02-12T23:00:00", 0, 0, 0),  # the course's zone
        ("ada", "2027-02-12T22:30:00Z", 0, 0, 0),  # 23:30 in Zurich
        ("ada", "2027-02-13T00:10:00+01:00", 0, 0, 0),  # grace
        ("ada", "2027-02-13T00:20:00+01:00", 1, 1, 0),
        ("ada", "2027-02-15T12:00:00+01:00", 3, 2, 10),
        ("eve", "2027-02-15T12:00:00+01:00", 1, 1, 0),  # an extension of two days
        ("ada", "2027-02-18T12:00:00+01:00", 6, 2, 100),  # four paid days, three are accepted
        ("ada", "", 0, 0, 0),
    ],
)
def test_lateness_counts_begun_days_after_grace_and_extension(course, student, submitted, days, free, percent):
    late = lateness(course, student, {"a01": submitted})["a01"]
    assert (late.days, late.free, late.percent) == (days, free, percent)


def test_free_days_are_spent_on_the_earliest_deadline_first(course):
    late = lateness(course, "ada", {"a02": "2027-02-22T12:00", "a01": "2027-02-13T12:00", "a99": "2027-01-01"})
    assert [(late[name].days, late[name].free, late[name].percent) for name in ("a01", "a02", "a99")] == [
        (1, 1, 0),
        (3, 1, 20),
        (0, 0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "no course"),
        ("name: x\nstart: 2027-02-01\ncolour: 1", r"unknown entries \['colour'\]"),
        ("name: x\nstart: soon", "ValueError"),
        ("start: 2027-02-01", "name"),
        ("name: x\nstart: 2027-02-01\ntime_zone: Nowhere", "Nowhere"),
        ("name: x\nstart: 2027-02-01\ndeadlines: {a01: tomorrow}", "tomorrow"),
    ],
)
def test_a_course_file_that_makes_no_sense_is_refused(tmp_path, text, message):
    (tmp_path / "course.yml").write_text(text)
    with pytest.raises(CourseError, match=message):
        read_course(tmp_path / "course.yml")


def result(question, points, score):
    return CaseResult(question, "a case", True, points, score, PASSED, "", "", "print")


@pytest.fixture
def output(demo, tmp_path):
    """The output of a `grade`: ada and bob wrote a text, carl did not, and at dora the grader broke."""
    folder = tmp_path / "out"
    (folder / "results").mkdir(parents=True)
    late = "2027-02-15T12:00:00+01:00"
    grades = [
        Grade(
            "lovelaceada",
            "a.ipynb",
            [result("q1", 4, 4), result("q2", 4, 3)],
            {"q3": "It *shrinks*."},
            aliases=["11"],
            submitted=late,
        ),
        Grade("Kurt Gödel", "b.ipynb", [result("q1", 4, 4), result("q2", 4, 4)], {"q3": "<b>No</b>"}, aliases=["22"]),
        Grade("carl", "c.ipynb", [result("q1", 4, 0), result("q2", 4, 0)], {"q3": ""}),
        Grade("dora", "d.ipynb", [], error="no room"),
    ]
    for number, grade in enumerate(grades):
        (folder / "results" / f"{number}.json").write_text(json.dumps(grade.to_record()))
    (folder / "report.json").write_text(json.dumps({"assignment": demo.name}))
    return folder


def fill(path: Path, **points: str):
    rows = list(csv.DictReader(path.read_text().splitlines()))
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, ["student", "points", "comment"])
        table.writeheader()
        table.writerows({**row, "points": points.get(row["student"].replace(" ", "_"), row["points"])} for row in rows)


def test_a_reading_sheet_shows_every_text_with_the_rubric_and_keeps_the_points(demo, output):
    (page,) = write_sheets(demo, output)
    text = page.read_text()
    assert "One point for the curvature" in text and "<em>shrinks</em>" in text
    assert "<b>No</b>" not in text and "&lt;b&gt;No" in text
    assert "No text: carl, dora" in text or "No text: dora, carl" in text
    assert read_points(demo, output) == {"q3": {"carl": 0.0}}
    fill(output / "reading" / "q3.csv", lovelaceada="1,5", Kurt_Gödel="2")
    write_sheets(demo, output)
    assert read_points(demo, output) == {"q3": {"carl": 0.0, "lovelaceada": 1.5, "Kurt Gödel": 2.0}}
    for wrong in ("3", "-1", "good"):
        fill(output / "reading" / "q3.csv", carl=wrong)
        with pytest.raises(ReadingError, match="carl: expected"):
            read_points(demo, output)


@pytest.fixture
def found(demo, output, course):
    """The entries of that output, with a deadline for the demonstration."""
    write_sheets(demo, output)
    fill(output / "reading" / "q3.csv", lovelaceada="1", Kurt_Gödel="2")
    graded = graded_folders([output], {demo.name: demo})
    return entries(graded, replace(course, deadlines={"a00": course.deadlines["a01"]}))


def test_the_gradebook_adds_cases_texts_and_lateness_and_leaves_open_what_is_open(found):
    rows = {row["student"]: row for row in plain_rows(found)}
    assert (rows["lovelaceada"]["a00"], rows["lovelaceada"]["notes"]) == (7.2, "a00: 3 days late, 10 % off")
    assert (rows["Kurt Gödel"]["a00"], rows["Kurt Gödel"]["total"]) == (10, 10)
    assert (rows["carl"]["a00"], rows["carl"]["notes"]) == (0, "")
    assert (rows["dora"]["a00"], rows["dora"]["notes"]) == ("", "a00: GRADER ERROR: grade again; q3 not read yet")


def test_canvas_gets_its_own_columns_back_with_the_points_filled_in(found, tmp_path):
    roster = tmp_path / "canvas.csv"
    roster.write_text(
        "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,a00 A demonstration (987),Final Score\n"
        "    Points Possible,,,,,10,(read only)\n"
        '"Lovelace, Ada",11,s1,alove,1,,50\n"Gödel, Kurt",22,s2,kgoe,1,,60\n'
        '"Carl, ",33,s3,carl,1,,70\n"Nobody, Here",44,s4,nob,1,,0\n'
    )
    rows, missing = roster_rows(found, {"a00": "A demonstration"}, roster, CANVAS)
    assert list(rows[0]) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "a00 A demonstration (987)"]
    assert [row["a00 A demonstration (987)"] for row in rows] == [10, 7.2, 10, 0, ""]
    assert missing == ["dora"]
    roster.write_text("Student,ID\nLovelace Ada,11\n")
    rows, _ = roster_rows(found, {"a00": "A demonstration"}, roster, CANVAS)
    assert rows[0] == {"Student": "Points Possible", "ID": "", "a00 A demonstration": 10}


def test_moodle_gets_its_own_columns_back_with_a_new_one(found, tmp_path):
    roster = tmp_path / "moodle.csv"
    roster.write_text(
        "Identifier,Full name,Email address,Status,Grade\n"
        "Participant 22,Kurt Goedel,kurt@x,Submitted,\n"
        "Participant 9,Ada Lovelace,ada@x,Submitted,\nParticipant 8,Carl,c@x,,\n"
    )
    rows, missing = roster_rows(found, {"a00": "A demonstration"}, roster, MOODLE)
    assert [row["a00 A demonstration"] for row in rows] == [10, 7.2, 0]
    assert missing == ["dora"]
    roster.write_text("Name\nAda\n")
    with pytest.raises(GradebookError, match="is it an export of moodle"):
        roster_rows(found, {"a00": "x"}, roster, MOODLE)


def test_a_folder_that_is_no_output_is_refused(demo, output, tmp_path):
    with pytest.raises(GradebookError, match="no output of a finished `grade`"):
        graded_folders([tmp_path], {demo.name: demo})
    with pytest.raises(GradebookError, match="graded in two folders"):
        graded_folders([output, output], {demo.name: demo})


def test_a_plan_has_a_week_to_read_before_what_is_due(demo):
    items = [replace(demo, folder=Path(f"a{number:02}_x"), chapters=(f"c{number}",)) for number in range(4)]
    plan = term_plan(Course("x", date(2027, 2, 1)), items, 6, ["c0", "c1", "between", "c2", "c3", "last"])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in plan.splitlines()[2:]]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert rows[1][1] == "2027-02-08"
    due = {row[3].split()[0]: int(row[0]) for row in rows if row[3]}
    read = {chapter: int(row[0]) for row in rows for chapter in row[2].split(", ") if chapter}
    assert sorted(due) == ["a00", "a01", "a02", "a03"] and list(due.values()) == sorted(due.values())
    assert all(read[f"c{number}"] == due[f"a{number:02}"] - 1 for number in range(4))
    assert read["c1"] < read["between"] <= read["c2"] and read["last"] == 6
    with pytest.raises(CourseError, match="weeks: expected at least 2"):
        term_plan(Course("x", date(2027, 2, 1)), items, 1)


def test_a_deadline_fixes_the_week(demo, course):
    plan = term_plan(course, [replace(demo, folder=Path("a02_x"))], 5)
    assert "| 3 | 2027-02-15 |  | a02 A demonstration (20 min) |" in plan
    assert short_name("a02_x") == "a02"


def test_renamed_copies_are_found_and_right_answers_alone_are_not_suspicious(demo, solution, tmp_path):
    def with_code(name, code):
        path = write_notebook(tmp_path / f"{name}.ipynb", [*solution[:4], ("code", code), *solution[5:]])
        return Found(name, path)

    usual = (
        "def helper(a, b):\n    total = 0\n    for i in range(len(a)):\n        total = total + a[i] * b[i] ** 2\n"
        "    return total / 3"
    )
    renamed = usual.replace("total", "s").replace("helper", "mine").replace("len(a)", "len( a )") + "  # my own idea"
    other = (
        "def other(x):\n    if x > 2:\n        return [y for y in x if y]\n    while x:\n        x = x - 1\n"
        "    return {1: x, 2: x}"
    )
    submissions = [
        with_code("ada", usual),
        with_code("bob", renamed),
        with_code("carl", other),
        with_code("dora", "x = 1"),
    ]
    (tmp_path / "eve.ipynb").write_text("no notebook")
    pairs = similar_pairs(build_notebooks(demo)[0], [*submissions, Found("eve", tmp_path / "eve.ipynb")])
    assert [(pair.first, pair.second) for pair in pairs] == [("ada", "bob")]
    assert pairs[0].code > 0.9
    write_pairs(pairs, tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text().splitlines()[1].startswith("ada,bob,")


def test_code_is_compared_without_names_and_layout():
    assert code_tokens("x = f(1, 'a')  # note") == code_tokens("total = g(22,\n    'b')")
    assert code_tokens("x = (1,")[:3] == ["name", "=", "("]


def test_what_was_handed_out_makes_nobody_alike(demo, tmp_path):
    given = build_notebooks(demo)[0]
    cells = [(cell.cell_type, cell.source) for cell in given.cells]
    submissions = [
        Found(name, write_notebook(tmp_path / f"{name}.ipynb", [*cells, ("code", f"x = {code}")]))
        for name, code in (
            ("ada", "[y ** 2 for y in range(3) if y > 1 and y < 2]"),
            ("bob", "(1, {2: 3}, 4, [5], 6, 7, 8)"),
        )
    ] + [Found("carl", write_notebook(tmp_path / "carl.ipynb", [("code", "y = 1")]))]
    assert similar_pairs(given, submissions, least=0.01) == []
