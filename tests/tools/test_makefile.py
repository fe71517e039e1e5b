"""The Makefile finds its interpreter, whatever the path is called."""

import shutil
import subprocess

import pytest

from tools.toc import ROOT

# A Python that is new enough, and whose module venv puts a copy of it into .venv.
INTERPRETER = """\
#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then mkdir -p .venv/bin && cp "$0" .venv/bin/python; fi
"""


@pytest.mark.parametrize("folder", ["plain", "with a space"])
def test_the_interpreter_that_is_named_is_the_one_used(folder, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.txt", "requirements-weights.txt"):
        (tmp_path / name).touch()
    interpreter = tmp_path / folder / "python3"
    interpreter.parent.mkdir()
    interpreter.write_text(INTERPRETER)
    interpreter.chmod(0o755)
    commands = tmp_path / "commands"  # all that the recipe calls, and no other Python
    commands.mkdir()
    for name in ("cp", "mkdir", "rm", "touch"):
        (commands / name).symlink_to(shutil.which(name))
    command = [shutil.which("make"), ".venv/.installed", f"PYTHON={interpreter}"]
    made = subprocess.run(
        command, cwd=tmp_path, env={"PATH": str(commands)}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert f"Making .venv with {interpreter} (" in made.stdout


def test_every_page_is_read_anew_and_every_warning_is_an_error(tmp_path):
    """Sphinx does not see that an extension, a docstring or much of the configuration has changed: so all, always."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.txt", "requirements-weights.txt"):
        (tmp_path / name).touch()
    told = subprocess.run(["make", "--dry-run", "html"], cwd=tmp_path, capture_output=True, text=True, check=True)
    build = told.stdout.splitlines()[-1].split()
    assert build[0].endswith("jupyter-book")
    assert {"build", "--all", "-W", "-n", "--keep-going"} <= set(build)
