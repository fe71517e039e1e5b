"""Promises of the repository as a whole: pins, versions, docstrings, the notation, and no traces of one machine."""

import importlib
import inspect
import pkgutil
import re
import subprocess
from pathlib import Path

import pytest
import tomllib
import yaml

import mesa_lib
from tools.toc import ROOT

PIN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.]+(\s*;.*)?$")


def requirements(name: str) -> list[str]:
    """The requirements in a file, without comments."""
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def names(lines: list[str]) -> dict[str, str]:
    """Requirements by normalized name."""
    return {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower(): line for line in lines}


def repository_files() -> list[Path]:
    """The files that git tracks or would track; without git, nothing."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize("name", ["requirements.in", "requirements.txt", "requirements-weights.txt"])
def test_requirements_are_exact_pins(name):
    assert [line for line in requirements(name) if not PIN.match(line)] == []


def test_what_is_named_is_what_is_pinned():
    pinned = names(requirements("requirements.txt"))
    named = names(requirements("requirements.in"))
    assert {name: line for name, line in named.items() if pinned.get(name) != line} == {}


def test_the_package_keeps_loose_bounds_that_the_pins_meet():
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert [line for line in dependencies if not re.fullmatch(r"[a-z]+>=[0-9.]+", line)] == []
    pinned = names(requirements("requirements.txt"))
    for line in dependencies:
        name, _, bound = line.partition(">=")
        version = pinned[name].partition("==")[2].partition(";")[0].strip()
        assert numbers(version) >= numbers(bound), line


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


@pytest.mark.parametrize(
    "line", ["torch", "torch>=2.4", "torch==2.*", "-r other.txt", "torch @ https://x.example/t.whl"]
)
def test_anything_but_a_pin_is_seen(line):
    assert not PIN.match(line)


def test_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == mesa_lib.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## ({re.escape(mesa_lib.__version__)}\b|Unreleased$)", changelog, re.MULTILINE)


def public_objects() -> dict[str, object]:
    """Every function and class that mesa_lib exports, and their public methods and properties."""
    found: dict[str, object] = {}
    for name in mesa_lib.__all__:
        value = getattr(mesa_lib, name)
        if not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        found[name] = value
        if inspect.isclass(value):
            for member, inner in vars(value).items():
                is_documentable = inspect.isfunction(inner) or isinstance(inner, property | classmethod | staticmethod)
                if is_documentable and not member.startswith("_"):
                    found[f"{name}.{member}"] = inner
    return found


@pytest.mark.parametrize("name", public_objects())
def test_public_name_has_a_docstring(name):
    text = inspect.getdoc(public_objects()[name]) or ""
    assert text.strip()
    # A method or an exception may say all it has to say in a line; a function or a class that is exported may not.
    if "." not in name and not name.endswith("Error"):
        assert len(text.strip().splitlines()) > 1, f"{name}: expected formula, shapes and arguments, got: {text!r}"


def test_annotations_are_checked_in_tests():
    loader = type(mesa_lib.tasks.__spec__.loader)
    assert loader.__module__.partition(".")[0] == "jaxtyping", "conftest.py has lost its import hook"


def test_every_module_has_a_docstring():
    found = pkgutil.walk_packages(mesa_lib.__path__, "mesa_lib.")
    modules = ["mesa_lib", *(module.name for module in found if not module.name.endswith("__main__"))]
    assert [name for name in modules if not (importlib.import_module(name).__doc__ or "").strip()] == []


def notation_names(text: str) -> list[str]:
    """The identifiers in backticks in the columns headed "code" of a page's tables."""
    found: list[str] = []
    column: int | None = None
    for line in text.splitlines():
        row = [cell.strip() for cell in line.split("|")] if line.startswith("|") else []
        if not row:
            column = None
        elif column is None:
            column = row.index("code") if "code" in row else 0
        else:
            code = " ".join(re.findall(r"`([^`]+)`", row[column]))
            found += re.findall(r"[A-Za-z_]\w+", code)
    return found


def known_names() -> set[str]:
    """Every name that a reader of mesa_lib meets: exports, their members, and the parameters of all of them."""
    known = {"mesa_lib", *mesa_lib.__all__}
    for value in (getattr(mesa_lib, name) for name in mesa_lib.__all__):
        functions = [value] if inspect.isfunction(value) else []
        if inspect.isclass(value):
            known |= {name for name in [*vars(value), *inspect.get_annotations(value)] if not name.startswith("_")}
            functions += [member for member in vars(value).values() if inspect.isfunction(member)]
        for function in functions:
            known |= set(inspect.signature(function).parameters)
    return known


def test_every_code_name_of_the_notation_exists():
    mentioned = notation_names((ROOT / "book" / "notation.md").read_text(encoding="utf-8"))
    assert mentioned, "book/notation.md: found no table with a column 'code'"
    assert sorted(set(mentioned) - known_names()) == []


def test_names_are_read_from_the_column_of_the_code():
    tables = """
| paper | code | not |
|---|:--|---|
| `lambda` | `w_0`, `LinearTasks(input_range=1)` | `nothing` |

| paper | words |
|---|---|
| `other` | `nothing` |
"""
    assert notation_names(tables) == ["w_0", "LinearTasks", "input_range"]


def test_the_example_of_the_readme_holds():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    exec(code, {})


def test_no_file_names_a_place_on_one_machine():
    # Put together here, so that this file does not hold them.
    places = ["/" + "work/", "/" + "tmp/w", "/" + "root/", "/" + "opt/wheels"]
    found = {
        f"{path.relative_to(ROOT)}: {place}"
        for path in repository_files()
        for place in places
        if place.encode() in path.read_bytes()
    }
    assert sorted(found) == []
