"""The wheel: small, pure Python, with what the package reads and nothing that students may not see."""

import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import tomllib

import mesa_lib
from mesa_lib.grading.repository import SITE, URL
from tools.toc import ROOT

MOST_BYTES = 1_000_000


@pytest.fixture(scope="module")
def names(wheel) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_it_is_small_and_pure(wheel):
    assert wheel.name == f"mesa_lib-{mesa_lib.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < MOST_BYTES


def test_it_holds_every_module_and_every_file_that_the_package_reads(names):
    package = [path for path in (ROOT / "mesa_lib").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.relative_to(ROOT).as_posix() for path in package} == {n for n in names if n.startswith("mesa_lib/")}
    assert any(name.startswith("mesa_lib/widgets/static/") and name.endswith(".js") for name in names)
    assert "mesa_lib/results/benchmark.json" in names and "mesa_lib/py.typed" in names


def test_it_holds_nothing_else(names):
    elsewhere = [name for name in names if not name.startswith(("mesa_lib/", "mesa_lib-"))]
    assert elsewhere == []
    assert [name for name in names if Path(name).suffix in (".ipynb", ".yml", ".bib", ".md")] == []
    assert [name for name in names if Path(name).name in ("hidden.py", "mutants.py", "rubric.md")] == []


def test_it_says_what_the_project_says(metadata):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert metadata["Version"] == mesa_lib.__version__
    assert metadata["Requires-Python"] == project["requires-python"]
    required = {line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert required == set(project["dependencies"])
    assert f"Repository, {URL}" in metadata.get_all("Project-URL")
    assert f"Homepage, {SITE}" in metadata.get_all("Project-URL")
