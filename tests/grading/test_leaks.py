"""No line of a solution is where students can read it."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from mesa_lib.grading.build import build_notebooks, notebook_bytes
from mesa_lib.grading.cli import RELEASE
from mesa_lib.grading.leakscan import find_leaks, secret_lines
from mesa_lib.grading.library import PACKAGE
from mesa_lib.grading.source import read_assignment, read_assignments
from tools.toc import ROOT

LINE = "moved = tokens + w_p @ (w_v @ tokens) @ (w_k @ tokens).T @ (w_q @ tokens)"


def test_the_lines_to_look_for_are_those_of_solutions_cases_and_rubric(demo):
    lines = secret_lines(demo)
    assert {LINE, "tokens = tokens.T", "x = rng.normal(size=(20, 4))"} <= lines
    assert "Twice the inputs are four times the curvature and twice the gradient." in lines
    assert "The curvature grows with the square of the inputs." in lines
    # The students' notebook has these too.
    assert not {"def lsa_step(tokens, w_k, w_q, w_v, w_p):", "import numpy as np"} & lines


def html_of(line):
    """A line of code as Sphinx colours it."""
    return (
        "<html><body><pre><span></span>"
        + " ".join(f'<span class="n">{word}</span>' for word in line.split())
        + "\n</pre></body></html>"
    )


@pytest.mark.parametrize("kind", ["notebook", "page", "source", "wheel", "text", "index"])
def test_a_leak_is_found_in_every_kind_of_file(demo, tmp_path, kind):
    folder = tmp_path / "public"
    (folder / "_sources").mkdir(parents=True)
    assert find_leaks([demo], [folder]) == []
    if kind == "notebook":
        (folder / "a.ipynb").write_bytes(notebook_bytes(build_notebooks(demo)[1]))
    elif kind == "page":
        (folder / "a.html").write_text(html_of(LINE))
    elif kind == "source":
        (folder / "_sources" / "a.md.txt").write_text(demo.text_path.read_text())
    elif kind == "wheel":
        with zipfile.ZipFile(folder / "m.whl", "w") as wheel:
            wheel.writestr("assignments/hidden.py", (demo.folder / "hidden.py").read_text())
    elif kind == "text":
        (folder / "a.txt").write_text(f"   {LINE}  \n")
    else:
        (folder / "searchindex.json").write_text(json.dumps({"docs": [f"text\n    {LINE}\nmore"]}))
    leaks = find_leaks([demo], [folder])
    assert leaks != []
    assert {leak.assignment for leak in leaks} == {"a00_demo"}


@pytest.mark.parametrize(
    ("line", "says_something"),
    [
        ("for _ in range(num_layers):", False),
        ("return products", False),
        ("w_k, w_q, w_v, w_p = weights", False),
        ("for eta in range(3, best_eta):", True),
        ("return products.T", True),
        ("eta, slope = slope, eta", True),
    ],
)
def test_a_line_of_names_in_which_nothing_is_done_is_no_leak(demo, tmp_path, line, says_something):
    folder = tmp_path / demo.name
    shutil.copytree(demo.folder, folder)
    with (folder / "hidden.py").open("a") as hidden:
        hidden.write(f'\n\nTEXT = """\n{line}\n"""\n')
    assert (line in secret_lines(read_assignment(folder))) == says_something


def test_what_a_source_allows_is_no_leak(demo, tmp_path):
    from dataclasses import replace

    (tmp_path / "a.txt").write_text(LINE)
    assert find_leaks([replace(demo, leakscan_allow={LINE: "it is equation 2"})], [tmp_path]) == []


def test_nothing_leaks_in_the_releases_and_the_package():
    assert find_leaks(read_assignments().values(), [RELEASE, PACKAGE]) == []


def test_nothing_of_the_sources_is_in_the_wheel(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    unneeded = shutil.ignore_patterns("__pycache__", "*.safetensors")
    shutil.copytree(ROOT / "mesa_lib", source / "mesa_lib", ignore=unneeded)
    shutil.copytree(ROOT / "assignments", source / "assignments", ignore=unneeded)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    program = f"from setuptools.build_meta import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    environment = {**os.environ, "PYTHONPATH": ""}
    built = subprocess.run(
        [sys.executable, "-c", program], cwd=source, capture_output=True, text=True, check=False, env=environment
    )
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    private = ("hidden.py", "mutants.py", "rubric.md")
    assert not [name for name in names if name.startswith("assignments/") or name.endswith(private)]
    assert "mesa_lib/grading/pages/feedback.html" in names and "mesa_lib/assignments/checking.py" in names
    assert find_leaks(read_assignments().values(), [wheel]) == []
