"""The Makefile finds its interpreter, whatever the path is called, and reads the pages that it must."""

import os
import shutil
import subprocess
import time

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


# Prints its arguments, and fails where a file asks for it.
BUILDER = """\
#!/bin/sh
echo "$@" >> builds
test ! -e broken
"""


@pytest.fixture
def book(tmp_path):
    """A checkout as far as `make html` looks at it, whose jupyter-book writes down how it is called."""
    for name in ("book/_ext", "assignments", "mesa_lib", ".venv/bin", "_build"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    files = ("_config.yml", "_toc.yml", "CHANGELOG.md", "requirements.txt", "requirements-weights.txt")
    for name in (*files, "book/a.ipynb", "book/b.md", "book/claims.yml", "book/_ext/one.py", "mesa_lib/tasks.py"):
        (tmp_path / name).touch()
    (tmp_path / ".venv/.installed").touch()
    builder = tmp_path / ".venv/bin/jupyter-book"
    builder.write_text(BUILDER)
    builder.chmod(0o755)
    return tmp_path


def make_html(book):
    """Run `make html`; returns its exit status and the last call of jupyter-book."""
    made = subprocess.run(["make", "html"], cwd=book, capture_output=True, text=True, check=False)
    return made.returncode, (book / "builds").read_text().splitlines()[-1].split()


def change(path):
    """Change a file, a second later than whatever was built."""
    later = time.time() + 1
    path.touch()
    os.utime(path, (later, later))


ALWAYS = ["build", ".", "-W", "-n", "--keep-going"]
ALL = ["build", ".", "--all", "-W", "-n", "--keep-going"]


def test_a_first_build_reads_every_page_and_a_second_one_what_has_changed(book):
    assert make_html(book) == (0, ALL)
    assert make_html(book) == (0, ALWAYS)
    for page in ("a.ipynb", "b.md", "new.md"):
        change(book / "book" / page)
    assert make_html(book) == (0, ALWAYS)


@pytest.mark.parametrize(
    "name", ["_config.yml", "_toc.yml", "book/claims.yml", "book/_ext/one.py", "mesa_lib/tasks.py", "mesa_lib/new.py"]
)
def test_every_page_is_read_anew_when_something_has_changed_that_sphinx_does_not_see(name, book):
    make_html(book)
    change(book / name)
    assert make_html(book) == (0, ALL)


def test_every_page_is_read_anew_when_an_extension_is_gone(book):
    make_html(book)
    (book / "book/_ext/one.py").unlink()
    change(book / "book/_ext")  # as removing a file does, a second later
    assert make_html(book) == (0, ALL)


def test_a_build_with_a_warning_fails_and_the_next_one_reads_every_page(book):
    make_html(book)
    (book / "broken").touch()
    assert make_html(book) == (2, ALWAYS)
    assert make_html(book) == (2, ALL)
    (book / "broken").unlink()
    assert make_html(book) == (0, ALL)
    assert make_html(book) == (0, ALWAYS)
