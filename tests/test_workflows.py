"""GitHub's workflows: well formed, with no more rights than they use, every action a commit; read without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
import yaml

from tools.toc import ROOT

FOLDER = ROOT / ".github"
WORKFLOWS = sorted((FOLDER / "workflows").glob("*.yml"))
PROGRAMS = Path(sys.executable).parent
ACTION = re.compile(r"^\s*(?:- )?uses: (\S+)(?: # (v\d+\.\d+\.\d+))?$", re.MULTILINE)


def run(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment."""
    program, *arguments = map(str, command)
    settings = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(
        [PROGRAMS / program, *arguments], cwd=ROOT, env=settings, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("schema", "files"),
    [("vendor.github-workflows", WORKFLOWS), ("vendor.dependabot", [FOLDER / "dependabot.yml"])],
    ids=["workflows", "dependabot"],
)
def test_they_have_the_form_that_github_reads(schema, files):
    checked = run("check-jsonschema", "--builtin-schema", schema, *files)
    assert checked.returncode == 0, checked.stdout


def test_a_misspelt_key_is_seen(tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "run-on:", 1))
    assert run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", broken).returncode == 1


def test_zizmor_finds_nothing_that_could_be_misused():
    checked = run("zizmor", "--offline", "--no-progress", "--persona=pedantic", FOLDER)
    assert checked.returncode == 0, checked.stdout


def test_zizmor_sees_an_action_by_its_tag(tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text(re.sub(r"checkout@\S+ #.*", "checkout@v5", WORKFLOWS[0].read_text(encoding="utf-8"), count=1))
    checked = run("zizmor", "--offline", "--no-progress", "--persona=pedantic", broken)
    assert checked.returncode != 0 and "unpinned" in checked.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_a_commit_with_its_version_beside_it(path):
    used = ACTION.findall(path.read_text(encoding="utf-8"))
    assert used
    assert [action for action, version in used if not (re.search(r"@[0-9a-f]{40}$", action) and version)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_verb_of_make_that_they_call_exists(path):
    verbs = set(re.findall(r"^(\w+):.*  ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = set(re.findall(r"\bmake (\w+)", "\n".join(_commands(path))))
    assert called and called <= verbs


def _commands(path: Path) -> list[str]:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_the_gate_runs_on_every_python_of_the_pins():
    workflow = yaml.safe_load((FOLDER / "workflows" / "test.yml").read_text(encoding="utf-8"))
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (bounds,) = re.findall(r"\((3), (\d+)\) <= sys.version_info\[:2\] <= \(3, (\d+)\)", makefile)
    assert tested == [f"3.{minor}" for minor in range(int(bounds[1]), int(bounds[2]) + 1)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.10"
