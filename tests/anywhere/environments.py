"""Environments that have the wheel of mesa_lib and not this checkout, and notebooks run in them.

An environment is a fresh `venv` with the wheel and with what a test asks for. What is missing there, torch above all,
it finds in the environment that runs the tests, which stands behind it in the path: a second torch is some 200 MB.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomllib

from tools.toc import ROOT

PACKED = ("mesa_lib", "pyproject.toml", "README.md", "LICENSE")
"""What a build of the wheel reads."""

# The first releases with wheels for this Python, where those of the bounds in pyproject.toml came before it.
FIRST_RELEASES = {
    (3, 12): {"numpy": "1.26.0", "safetensors": "0.4.0", "scipy": "1.11.2", "torch": "2.4.0"},
    (3, 13): {"matplotlib": "3.9.2", "numpy": "2.1.0", "safetensors": "0.4.4", "scipy": "1.14.1", "torch": "2.5.0"},
}

# Runs one notebook and writes it, with its outputs, to a second path. A student's notebook may raise.
RUN_NOTEBOOK = """\
import sys
import nbformat
from nbclient import NotebookClient

source, target, allow_errors = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
client = NotebookClient(notebook, kernel_name="python3", timeout=600, allow_errors=allow_errors == "True")
try:
    client.execute()
finally:
    nbformat.write(notebook, target)
"""

# What a kernel on Colab has before a notebook starts; %pip writes its line down instead of installing.
LIKE_COLAB = """\
import os
import sys
import types
from pathlib import Path

colab, output = types.ModuleType("google.colab"), types.ModuleType("google.colab.output")
output.enable_custom_widget_manager = lambda: None
colab.output = output
sys.modules.setdefault("google", types.ModuleType("google")).colab = colab
sys.modules.update({"google.colab": colab, "google.colab.output": output})

def pip(line):
    with Path(os.environ["MESA_RECORDED_PIP"]).open("a") as record:
        record.write(f"%pip {line}\\n")

get_ipython().register_magic_function(pip, "line")
"""


def build_wheel(folder: Path) -> Path:
    """Build the wheel as `pip wheel .` does, from a copy, offline, and return its path."""
    source = folder / "source"
    source.mkdir(parents=True)
    for name in PACKED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    # The rest of the checkout, as far as a build could pick it up by mistake.
    for name in ("book", "assignments", "binder", "tools"):
        (source / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "."]
    built = subprocess.run(
        [*command, "--wheel-dir", str(folder)], cwd=source, capture_output=True, text=True, check=False, env=bare()
    )
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = folder.glob("*.whl")
    return wheel


def bare() -> dict[str, str]:
    """This process's environment variables, without what would lead back to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def oldest() -> dict[str, str]:
    """For each dependency the oldest version that pyproject.toml allows and that runs on this Python."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    bounds = dict(line.split(">=") for line in dependencies)
    return bounds | FIRST_RELEASES.get(sys.version_info[:2], {})


@dataclass(frozen=True)
class Environment:
    """A venv and the place where notebooks run.

    Attributes:
        folder: holds the venv and all that runs leave behind; no checkout is above it.
    """

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Its own packages."""
        return Path(sysconfig.get_path("purelib", "posix_prefix", {"base": str(self.folder / "venv")}))

    @classmethod
    def make(cls, folder: Path, wheel: Path) -> "Environment":
        """A venv that holds the wheel, with this process's packages behind it."""
        one = cls(folder)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(one.packages)  # all that installing a pure wheel does
        # A path that a .pth file adds has its own .pth files unread: an editable install there stays out of sight.
        (one.packages / "behind.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        return one

    def install(self, requirements: Sequence[str], *options: str) -> str:
        """Install from the registry; returns why that did not work, or nothing."""
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary=:all:",
        ]
        command += ["--target", str(self.packages), "--upgrade", *options, *requirements]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare())
        return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]

    def run(self, program: str, *arguments: str, **variables: str) -> str:
        """Run a program far from the checkout, and return what it prints."""
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        settings = {**bare(), "IPYTHONDIR": str(self.folder / "ipython"), "MPLBACKEND": "agg", "TQDM_DISABLE": "1"}
        settings |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} | variables
        command = [str(self.python), "-c", program, *arguments]
        done = subprocess.run(command, cwd=elsewhere, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def run_notebook(self, path: Path, allow_errors: bool = False, **variables: str) -> list[str]:
        """Run a copy of a notebook, in a folder that has nothing to do with the checkout.

        Returns:
            What each code cell printed or showed as text.
        """
        place = self.folder / "elsewhere" / path.stem
        place.mkdir(parents=True, exist_ok=True)
        source = Path(shutil.copy(path, place))
        self.run(RUN_NOTEBOOK, str(source), str(place / "ran.ipynb"), str(allow_errors), **variables)
        cells = json.loads((place / "ran.ipynb").read_text(encoding="utf-8"))["cells"]
        return ["".join(map(_text, cell["outputs"])) for cell in cells if cell["cell_type"] == "code"]

    def run_on_colab(self, path: Path, allow_errors: bool = False) -> tuple[list[str], list[str]]:
        """Run a notebook in a kernel that looks like Colab's.

        Returns:
            What the cells printed, and the %pip lines that were called, none of which installed anything.
        """
        startup = self.folder / "colab" / "profile_default" / "startup"
        startup.mkdir(parents=True, exist_ok=True)
        (startup / "00-colab.py").write_text(LIKE_COLAB)
        record = self.folder / f"{path.stem}-pip.txt"
        record.unlink(missing_ok=True)
        colab = {"IPYTHONDIR": str(self.folder / "colab"), "MESA_RECORDED_PIP": str(record)}
        texts = self.run_notebook(path, allow_errors, **colab)
        return texts, record.read_text().splitlines() if record.exists() else []


def _text(output: dict) -> str:
    """An output as text."""
    data = output.get("data", {}).get("text/plain", output.get("text", output.get("traceback", [])))
    return data if isinstance(data, str) else "".join(data)
