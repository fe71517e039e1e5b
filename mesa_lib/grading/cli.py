"""The command line, `python -m mesa_lib.grading`: each verb is a few lines on top of the rooms that do the work."""

import argparse
import contextlib
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mesa_lib.assignments.variants import variant_of
from mesa_lib.grading import export, gradebook, gradescope, proof, reading
from mesa_lib.grading.batch import Found, find_submissions, grade_all, read_times, write_table
from mesa_lib.grading.build import build_notebooks, notebook_bytes, write_release
from mesa_lib.grading.catalogue import update_page
from mesa_lib.grading.course import CourseError, read_course, term_plan
from mesa_lib.grading.grade import SAYS
from mesa_lib.grading.leakscan import find_leaks
from mesa_lib.grading.library import PACKAGE
from mesa_lib.grading.prepare import prepared_grader, read_salt
from mesa_lib.grading.sandbox import KINDS, GraderError
from mesa_lib.grading.similarity import similar_pairs, write_pairs
from mesa_lib.grading.source import DEFAULT_ROOT, Assignment, SourceError, find_assignment, read_assignments
from mesa_lib.grading.submission import SubmissionError, read_submission

RELEASE = DEFAULT_ROOT.parent / "release"
PAGE = DEFAULT_ROOT.parents[1] / "book" / "assignments" / "index.md"
FINE, WRONG, BROKEN = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; return 0 if all is well, 1 if something was found, 2 if something is broken."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.verb(options))
    except (GraderError, SourceError, CourseError, gradebook.GradebookError, reading.ReadingError, OSError) as error:
        print(f"{'GRADER ERROR: ' if isinstance(error, GraderError) else ''}{error}", file=sys.stderr)
        return BROKEN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mesa_lib.grading", description=__doc__)
    parser.add_argument("--source", type=Path, default=DEFAULT_ROOT, help="the folder of the sources (assignments/src)")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    build = _verb(verbs, "build", _build, "make the students' notebooks")
    build.add_argument("names", nargs="*", help="a01 ...; all by default")
    build.add_argument(
        "--variant", default="", metavar="SEED", help="a text of your own: conventions are drawn from it"
    )
    build.add_argument("-o", "--output", type=Path, help="where to (assignments/release; a variant needs a folder)")
    build.add_argument("--solutions", action="store_true", help="also write aNN_..._solution.ipynb; needs --output")

    check = _verb(verbs, "check", _check, "prove that assignments grade: solution, blank, constants, mutants")
    check.add_argument("names", nargs="*", help="a01 ...; all by default")
    mutants = _verb(verbs, "mutants", _mutants, "only the mutants, with what each one fails")
    mutants.add_argument("names", nargs="*", help="a01 ...; all by default")

    salt = _verb(verbs, "salt", _salt, "make the secret behind the random inputs")
    salt.add_argument("file", type=Path, help="a new file, outside the repository")

    grade = _verb(verbs, "grade", _grade, "grade a folder of submissions; what is graded and has not changed stays")
    grade.add_argument(
        "submissions", type=Path, help="one notebook or folder a student, as Canvas, Moodle or nbgrader name them"
    )
    grade.add_argument("output", type=Path, help="grades.csv, feedback and results go here")
    grade.add_argument("--assignment", help="a01 ...; by default what the notebooks say that they are")
    grade.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2 * 2), help="how many at a time")
    _add_grading_options(grade)
    grade.add_argument("--times", type=Path, help="CSV with the columns student, time: when each one handed in")

    sheet = _verb(
        verbs, "readsheet", _readsheet, "put the free-text answers of a graded folder on one sheet a question"
    )
    sheet.add_argument("output", type=Path, help="the output folder of `grade`")

    book = _verb(
        verbs, "gradebook", _gradebook, "put cases, readers' points and late days together, for Canvas or Moodle"
    )
    book.add_argument("outputs", type=Path, nargs="+", help="output folders of `grade`, one an assignment")
    book.add_argument("--course", type=Path, help="the course file: deadlines, late days, extensions")
    book.add_argument("--to", choices=gradebook.TARGETS, default=gradebook.PLAIN)
    book.add_argument(
        "--roster", type=Path, help="what Canvas or Moodle exports: its gradebook or its list of participants"
    )
    book.add_argument("-o", "--table", type=Path, required=True, help="the CSV file to write")

    plan = _verb(verbs, "plan", _plan, "a plan of the term: what to read and what is due each week")
    plan.add_argument("course", type=Path, help="the course file")
    plan.add_argument("--weeks", type=int, default=12)

    alike = _verb(
        verbs, "similarity", _similarity, "pairs of submissions that are more alike than the assignment explains"
    )
    alike.add_argument("submissions", type=Path)
    alike.add_argument("--assignment", help="a01 ...; by default what the notebooks say that they are")
    alike.add_argument("--variant", default="", metavar="SEED", help="the seed with which the notebooks were built")
    alike.add_argument("--least", type=float, default=0.3, help="leave out pairs below (0 to 1)")
    alike.add_argument("-o", "--table", type=Path, required=True, help="the CSV file to write")

    scope = _verb(verbs, "gradescope", _gradescope, "make the zip that Gradescope takes")
    scope.add_argument("name", help="a01 ...")
    scope.add_argument("--salt-file", type=Path, required=True, help="the file that `salt` made")
    scope.add_argument("--variant", default="", metavar="SEED", help="the seed with which the notebooks were built")
    scope.add_argument("-o", "--output", type=Path, required=True, help="the zip to write")
    inside = _verb(verbs, "gradescope-run", _gradescope_run, "what runs inside Gradescope's container")
    inside.add_argument("root", type=Path, help="/autograder")
    inside.add_argument("name")
    inside.add_argument("--variant", default="", metavar="SEED")
    inside.add_argument("--sandbox", choices=KINDS)
    inside.add_argument("--python", type=Path)

    exported = _verb(verbs, "export", _export, "an assignment in the format of another grader")
    exported.add_argument("names", nargs="*", help="a01 ...; all by default")
    exported.add_argument("--to", choices=export.TARGETS, required=True)
    exported.add_argument(
        "--variant", default="", metavar="SEED", help="a text of your own: conventions are drawn from it"
    )
    exported.add_argument("-o", "--output", type=Path, required=True, help="the folder to write")

    leaks = _verb(verbs, "leakscan", _leakscan, "look for lines of solutions where students can read them")
    leaks.add_argument(
        "places", nargs="*", type=Path, help="folders, pages, wheels; by default the releases, mesa_lib and _build/html"
    )
    return parser


def _add_grading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--salt-file", type=Path, required=True, help="the file that `salt` made")
    parser.add_argument("--variant", default="", metavar="SEED", help="the seed with which the notebooks were built")
    parser.add_argument(
        "--sandbox", choices=KINDS, help="where students' code runs; by default the strongest that works"
    )
    parser.add_argument("--python", type=Path, help="the interpreter for students' code; by default this one")


def _verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(verb=run)
    return parser


def _chosen(options: argparse.Namespace) -> list[Assignment]:
    if options.names:
        return [find_assignment(name, options.source) for name in options.names]
    return list(read_assignments(options.source).values())


def _build(options: argparse.Namespace) -> int:
    if (options.variant or options.solutions) and options.output is None:
        raise SourceError("a variant and solutions stay out of the repository: name a folder with --output")
    for assignment in _chosen(options):
        variant = variant_of(assignment.public, options.variant)
        path = write_release(assignment, options.output or RELEASE, variant)
        print(f"{path}{f'  (variant {variant})' if variant else ''}")
        if options.solutions:
            solution = path.with_name(f"{assignment.name}_solution.ipynb")
            solution.write_bytes(notebook_bytes(build_notebooks(assignment, variant)[1]))
            print(solution)
    if options.output is None and options.source == DEFAULT_ROOT:
        update_page(PAGE, read_assignments().values())
    return FINE


def _check(options: argparse.Namespace) -> int:
    return _report((assignment.name, proof.prove(assignment)) for assignment in _chosen(options))


def _mutants(options: argparse.Namespace) -> int:
    return _report((assignment.name, proof.mutant_findings(assignment)) for assignment in _chosen(options))


def _salt(options: argparse.Namespace) -> int:
    options.file.parent.mkdir(parents=True, exist_ok=True)
    with options.file.open("x", encoding="utf-8") as file:
        options.file.chmod(0o600)
        file.write(secrets.token_hex(32) + "\n")
    print(f"{options.file}: keep it for the whole term, and out of every repository")
    return FINE


def _grade(options: argparse.Namespace) -> int:
    submissions = find_submissions(options.submissions)
    if not submissions:
        raise SourceError(f"{options.submissions}: there are no submissions")
    assignment = find_assignment(options.assignment or _guess(submissions), options.source)
    times = read_times(options.times) if options.times else {}
    with prepared_grader(
        assignment, options.salt_file, options.variant, options.sandbox, options.python, options.jobs,
        [options.submissions, options.output],
    ) as (grader, warnings):  # fmt: skip
        for warning in warnings:
            print(f"WARNING: {warning}", file=sys.stderr)
        grades = grade_all(grader, submissions, options.output, options.jobs, times)
    doubtful = sum(any(note.startswith(SAYS) for note in grade.notes) for grade in grades)
    if doubtful:
        print(
            f"WARNING: {doubtful} of {len(grades)} notebooks say that they are of another variant or assignment. Was "
            f"--variant forgotten? See the last column of {options.output / 'grades.csv'}",
            file=sys.stderr,
        )
    broken = sum(bool(grade.error) for grade in grades)
    print(f"{assignment.name}: {len(grades) - broken} graded, {broken} GRADER ERROR; {options.output / 'grades.csv'}")
    return BROKEN if broken else FINE


def _readsheet(options: argparse.Namespace) -> int:
    ((assignment, output),) = _graded(options, [options.output]).values()
    for page in reading.write_sheets(assignment, output):
        print(f"{page}; points go into {page.with_suffix('.csv').name}")
    return FINE


def _gradebook(options: argparse.Namespace) -> int:
    graded = _graded(options, options.outputs)
    found = gradebook.entries(graded, read_course(options.course) if options.course else None)
    missing: list[str] = []
    if options.to == gradebook.PLAIN:
        rows = gradebook.plain_rows(found)
    elif options.roster is None:
        raise SourceError(f"--to {options.to} needs the --roster that {options.to.title()} exports")
    else:
        titles = {name: assignment.title for name, (assignment, _) in graded.items()}
        rows, missing = gradebook.roster_rows(found, titles, options.roster, options.to)
    write_table(options.table, rows)
    print(f"{options.table}: {len(rows)} rows")
    if missing:
        print(f"WARNING: not in the roster: {', '.join(missing)}", file=sys.stderr)
    return WRONG if missing else FINE


def _graded(options: argparse.Namespace, outputs: Sequence[Path]) -> dict[str, tuple[Assignment, Path]]:
    return gradebook.graded_folders(outputs, read_assignments(options.source))


def _plan(options: argparse.Namespace) -> int:
    assignments = list(read_assignments(options.source).values())
    chapters = dict.fromkeys(chapter for assignment in assignments for chapter in reversed(assignment.chapters))
    print(term_plan(read_course(options.course), assignments, options.weeks, chapters), end="")
    return FINE


def _similarity(options: argparse.Namespace) -> int:
    submissions = find_submissions(options.submissions)
    assignment = find_assignment(options.assignment or _guess(submissions), options.source)
    release = build_notebooks(assignment, variant_of(assignment.public, options.variant))[0]
    pairs = similar_pairs(release, submissions, options.least)
    write_pairs(pairs, options.table)
    print(
        f"{options.table}: {len(pairs)} pairs of {len(submissions)} submissions. Read both before you think anything."
    )
    return FINE


def _gradescope(options: argparse.Namespace) -> int:
    read_salt(options.salt_file)
    assignment = find_assignment(options.name, options.source)
    gradescope.write_zip(assignment, options.salt_file, options.variant, options.output)
    print(f"{options.output}: upload it as the autograder; it holds the salt and the hidden cases")
    return FINE


def _gradescope_run(options: argparse.Namespace) -> int:
    result = gradescope.run(options.root, options.name, options.variant, options.sandbox, options.python)
    return FINE if "score" in result else BROKEN


def _export(options: argparse.Namespace) -> int:
    for assignment in _chosen(options):
        variant = variant_of(assignment.public, options.variant)
        print(export.export(assignment, options.to, options.output, variant))
    return FINE


def _leakscan(options: argparse.Namespace) -> int:
    default = [RELEASE, PACKAGE, RELEASE.parents[1] / "_build" / "html"]
    places = options.places or [place for place in default if place.exists()]
    leaks = find_leaks(read_assignments(options.source).values(), places)
    for leak in leaks:
        print(f"{leak.file}: {leak.assignment}: {leak.line}")
    print(f"{len(leaks)} lines of solutions in {', '.join(map(str, places))}")
    return WRONG if leaks else FINE


def _guess(submissions: Sequence[Found]) -> str:
    """The assignment that most of the notebooks say they are."""
    named = Counter[str]()
    for found in submissions:
        with contextlib.suppress(SubmissionError):
            named[read_submission(found.path).assignment] += 1
    named.pop("", None)
    if not named:
        raise SourceError("no notebook says which assignment it is: name it with --assignment")
    return named.most_common(1)[0][0]


def _report(findings: Iterable[tuple[str, Iterable[proof.Finding]]]) -> int:
    """Print findings as they come, and how many are right."""
    passed = failed = 0
    for name, found in findings:
        print(name)
        for finding in found:
            passed, failed = passed + finding.passed, failed + (not finding.passed)
            print(f"  {'ok ' if finding.passed else 'BAD'} {finding.what}: {finding.got}")
            if not finding.passed:
                print(f"      expected: {finding.expected}")
    print(f"{passed} passed, {failed} failed")
    return WRONG if failed else FINE
