"""Runs tests in a copy of the project, in a process of its own."""

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copy_project(target: Path) -> None:
    """Copy what the tests of the library need: the package, the tests, the tools and their settings."""
    unneeded = shutil.ignore_patterns("__pycache__")
    for name in ("mesa_lib", "tests", "tools"):
        shutil.copytree(ROOT / name, target / name, ignore=unneeded)
    for name in ("conftest.py", "pyproject.toml", "requirements-weights.txt"):
        shutil.copy(ROOT / name, target / name)


def break_library(project: Path, file: str, old: str, new: str) -> None:
    """Make `old`, which must occur once in a file of the copied mesa_lib, `new`."""
    source = project / "mesa_lib" / file
    text = source.read_text(encoding="utf-8")
    found = text.count(old)
    assert found == 1, f"mesa_lib/{file}: expected exactly one {old!r}, got {found}; the list of breaks needs an update"
    source.write_text(text.replace(old, new), encoding="utf-8")


def run_tests(project: str, tests: list[str]) -> None:
    """In a fresh process: become a pytest run in `project`; its output and JUnit report are files there."""
    os.chdir(project)
    with Path("output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    # Nothing may come from the project that this is a copy of.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("conftest", "mesa_lib", "tests", "tools")]:
        del sys.modules[name]
    for variable in [name for name in os.environ if name.startswith("PYTEST_") or name == "PYTHONPATH"]:
        del os.environ[variable]
    # No plugin is needed, and without plugins pytest rewrites no package of theirs.
    os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", HYPOTHESIS_PROFILE="unshrunk")
    import pytest

    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml", *tests]))
