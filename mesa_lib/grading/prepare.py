"""A grader made ready: the salt read, the library copied, and the sandbox tried before anybody is graded in it."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mesa_lib.assignments.variants import variant_of
from mesa_lib.grading.grade import Grader
from mesa_lib.grading.library import blocked_sources, copy_library
from mesa_lib.grading.sandbox import LIMITS, MOST_JOBS, USER, GraderError, choose_sandbox
from mesa_lib.grading.session import Worker
from mesa_lib.grading.source import DEFAULT_ROOT, Assignment

FEWEST_BYTES_OF_SALT = 16


def read_salt(path: Path) -> bytes:
    """The salt in a file.

    Raises:
        GraderError: there is no such file, it is too short, or it lies in the repository, where it is no secret for
            long.
    """
    if not path.is_file():
        raise GraderError(f"{path}: there is no salt; make one with: python -m mesa_lib.grading salt {path}")
    repository = DEFAULT_ROOT.parents[1]
    if (repository / ".git").exists() and path.resolve().is_relative_to(repository):
        raise GraderError(f"{path}: a salt does not belong into the repository")
    salt = path.read_bytes().strip()
    if len(salt) < FEWEST_BYTES_OF_SALT:
        raise GraderError(f"{path}: expected at least {FEWEST_BYTES_OF_SALT} bytes of salt, got {len(salt)}")
    return salt


@contextmanager
def prepared_grader(
    assignment: Assignment,
    salt_file: Path,
    seed: str = "",
    kind: str | None = None,
    python: Path | None = None,
    jobs: int = 1,
    private: Sequence[Path] = (),
) -> Iterator[tuple[Grader, list[str]]]:
    """A grader whose sandbox has been seen to work, and warnings about what it does not keep out.

    Args:
        assignment: what is graded.
        salt_file: see `read_salt`.
        seed: the instructor's seed of the variant; empty for the default.
        kind: one of `KINDS` of sandboxes; None chooses the strongest.
        python: the interpreter for students' code.
        jobs: how many workers at a time.
        private: folders that students' code must not read, beside the sources, the salt and the blocked rooms.

    Raises:
        GraderError: the salt or the sandbox is broken, or students' code could read what it must not.
    """
    salt = read_salt(salt_file)
    if jobs < 1:
        raise GraderError(f"jobs: expected a positive number, got {jobs}")
    sandbox, warnings = choose_sandbox(kind, python)
    if sandbox.kind == USER and jobs > MOST_JOBS:
        raise GraderError(f"jobs: the sandbox {USER!r} has users for {MOST_JOBS} jobs, got {jobs}")
    folder = Path(tempfile.mkdtemp(prefix="mesa-library-"))
    folder.chmod(0o755)
    secrets = (assignment.folder, salt_file, *blocked_sources(assignment.blocked), *private)
    try:
        library = copy_library(folder, assignment.blocked)
        grader = Grader(assignment, sandbox, library, salt, variant_of(assignment.public, seed), secrets)
        trial = Worker(sandbox, library, assignment.limits, assignment.names, [path.resolve() for path in secrets])
        trial.close()
        if trial.readable and sandbox.kind != LIMITS:
            raise GraderError(
                f"in the sandbox {sandbox.kind!r} students' code could read {', '.join(trial.readable[:5])}: "
                "take the rights away (chmod -R go-rwx), or install bubblewrap"
            )
        yield grader, warnings
    finally:
        shutil.rmtree(folder, ignore_errors=True)
