"""A demonstration assignment, notebooks made of cells, and a grader for each sandbox."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from mesa_lib.grading.build import build_notebooks
from mesa_lib.grading.grade import Grader
from mesa_lib.grading.library import blocked_sources, copy_library
from mesa_lib.grading.sandbox import BUBBLEWRAP, LIMITS, USER, GraderError, Sandbox, choose_sandbox
from mesa_lib.grading.source import Assignment, read_assignment

SOURCES = Path(__file__).parent / "sources"
SALT = b"a salt for tests, not for grades"

# Continuous integration installs what the sandboxes need; there, a sandbox that is missing is a failure.
REQUIRED = bool(os.environ.get("MESA_REQUIRE_SANDBOXES"))


def write_notebook(path: Path, cells: Sequence[tuple[str, str]], **metadata: object) -> Path:
    """Write a notebook of (kind, source) cells."""
    written = [
        {
            "cell_type": kind,
            "metadata": {},
            "source": source,
            **({"outputs": [], "execution_count": None} if kind == "code" else {}),
        }
        for kind, source in cells
    ]
    path.write_text(json.dumps({"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}))
    return path


@pytest.fixture(scope="session")
def demo() -> Assignment:
    """The demonstration: q1 and q2 with four points each, q3 free text."""
    return read_assignment(SOURCES / "a00_demo")


@pytest.fixture(scope="session")
def solution(demo: Assignment) -> list[tuple[str, str]]:
    """The cells of its solution."""
    return [(cell.cell_type, cell.source) for cell in build_notebooks(demo)[1].cells]


@pytest.fixture(scope="session")
def library(demo: Assignment) -> Iterator[Path]:
    """The copy of mesa_lib without the rooms that the demonstration blocks."""
    folder = Path(tempfile.mkdtemp(prefix="mesa-test-library-"))
    folder.chmod(0o755)
    yield copy_library(folder, demo.blocked)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def readable_python() -> Iterator[Path]:
    """An interpreter with NumPy that another user can read: this one, or a copy made of links."""
    as_nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "env",
        sys.executable,
        "-I",
        "-c",
        "import numpy",
    ]
    if subprocess.run(as_nobody, capture_output=True, check=False).returncode == 0:
        yield Path(sys.executable)
        return
    import numpy

    folder = Path(tempfile.mkdtemp(prefix="mesa-test-python-"))
    folder.chmod(0o755)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    unneeded = shutil.ignore_patterns(
        "__pycache__", "test", "tests", "site-packages", "config-*", "idlelib", "tkinter", "ensurepip"
    )
    shutil.copytree(Path(os.__file__).parent, packages.parent, copy_function=_link, ignore=unneeded)
    for name in ("numpy", "numpy.libs"):
        if (source := Path(numpy.__file__).parents[1] / name).is_dir():
            shutil.copytree(source, packages / name, copy_function=_link, ignore=shutil.ignore_patterns("tests"))
    (folder / "bin").mkdir()
    _link(os.path.realpath(sys.executable), folder / "bin" / version)
    for shared in (Path(sys.base_prefix) / "lib").glob("libpython*"):
        _link(shared, folder / "lib" / shared.name)
    # A shared libpython is looked for where the interpreter was built, which the other user cannot read.
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={folder}/lib exec {folder}/bin/{version} "$@"\n')
    python.chmod(0o755)
    yield python
    shutil.rmtree(folder)


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


@pytest.fixture(scope="session")
def sandbox(readable_python: Path) -> Callable[[str], Sandbox]:
    """`sandbox(kind)`: that sandbox, or a skipped test where it does not work."""

    def of(kind: str) -> Sandbox:
        try:
            return choose_sandbox(kind, readable_python if kind == USER else None)[0]
        except GraderError as error:
            if REQUIRED and kind != USER:
                raise
            pytest.skip(str(error))

    return of


@pytest.fixture(scope="session")
def grader(demo: Assignment, library: Path, sandbox: Callable[[str], Sandbox]) -> Callable[[str], Grader]:
    """`grader(kind)`: a grader of the demonstration in that sandbox."""
    secrets = (demo.folder, *blocked_sources(demo.blocked))
    return lambda kind: Grader(demo, sandbox(kind), library, SALT, secrets=secrets)


@pytest.fixture(params=[BUBBLEWRAP, USER, LIMITS])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of sandbox."""
    return str(request.param)
