"""The copy of mesa_lib that students' code sees while it is graded: without the rooms that hold an answer.

Its sources are not on the disk of the sandbox. A name of a blocked room can be imported, so that `import mesa_lib`
works and so does every room that imports from it; using it raises. `mesa_lib` itself loads its rooms only when they are
used, which saves each submission the seconds that torch takes.
"""

import ast
import shutil
from collections.abc import Sequence
from pathlib import Path

import mesa_lib

PACKAGE = Path(mesa_lib.__file__).resolve().parent
UNSEEN = ("grading", "__pycache__")

_STUB = '''"""Not available while this assignment is graded: this room holds an answer."""


class NotAvailableError(RuntimeError, AttributeError):
    """For whoever asks for an attribute it is an AttributeError: it is not there."""


class _Blocked(type):
    """The type of names that may be imported, and not used."""

    def __call__(cls, *arguments, **named):
        raise NotAvailableError(f"{cls.__module__}.{cls.__name__} is not available while this assignment is graded")

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls()

    def __getitem__(cls, key):
        return cls()

    def __iter__(cls):
        return cls()


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Blocked(name, (), {"__module__": __name__})
'''

_LAZY = '''"""mesa_lib, with rooms that are loaded when they are used."""

import importlib

_ROOMS = {rooms!r}

__version__ = {version!r}
__all__ = list(_ROOMS)


def __getattr__(name):
    if name in _ROOMS:
        return getattr(importlib.import_module(_ROOMS[name]), name)
    raise AttributeError(f"module 'mesa_lib' has no attribute {{name!r}}")
'''


def copy_library(target: Path, blocked: Sequence[str]) -> Path:
    """Write the copy of mesa_lib into a folder.

    Args:
        target: a folder, which gets a folder `mesa_lib`; everybody may read both.
        blocked: modules or packages, such as "mesa_lib.networks.constructions".

    Returns:
        `target`.

    Raises:
        ValueError: a blocked room does not exist.
    """
    copy = target / "mesa_lib"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns(*UNSEEN))
    for room in blocked:
        place = copy.joinpath(*room.split(".")[1:])
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        if not room.startswith("mesa_lib.") or not all(file.is_file() for file in files):
            raise ValueError(f"blocked: expected a module of mesa_lib, got {room!r}")
        for file in files:
            file.write_text(_STUB, encoding="utf-8")
    rooms = _exports((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    init = _LAZY.format(rooms=rooms, version=mesa_lib.__version__)
    (copy / "__init__.py").write_text(init, encoding="utf-8")
    for path in [target, copy, *copy.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def blocked_sources(blocked: Sequence[str]) -> list[Path]:
    """The files of blocked rooms, as they are outside the sandbox."""
    places = [PACKAGE.joinpath(*room.split(".")[1:]) for room in blocked]
    return [file for place in places for file in (sorted(place.rglob("*.py")) or [place.with_suffix(".py")])]


def _exports(init: str) -> dict[str, str]:
    """The public names of mesa_lib and the room of each, from the source of its `__init__`."""
    imports = [node for node in ast.parse(init).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}
