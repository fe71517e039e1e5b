"""Give every chapter its first code cell: `python -m tools.first_cell [CHAPTER ...]`.

On Colab the cell installs mesa_lib and moves nothing that is there; elsewhere it does nothing. Pages don't show it. Its
text has one place, `mesa_lib.grading.repository`, since assignments begin with the same cell.

Stored outputs stay as they are: the cells below count one further, as if the chapter had been executed again.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from mesa_lib.grading.build import new_cell
from mesa_lib.grading.repository import first_cell
from tools.execute import select
from tools.law import REMOVE_CELL
from tools.notebooks import read, replace_file, to_bytes
from tools.toc import notebooks

CELL_ID = "install-mesa-lib"


def with_first_cell(notebook: NotebookNode, chapter: str = "") -> NotebookNode:
    """The notebook with the cell before all other code; an older version of the cell gives way.

    Args:
        notebook: a notebook, which is changed in place.
        chapter: its name.
    """
    others = [cell for cell in notebook.cells if cell.get("id") != CELL_ID]
    is_new = len(others) == len(notebook.cells)
    code = [cell for cell in others if cell.cell_type == "code"]
    ran = any(cell.execution_count is not None for cell in code)
    for cell in code if is_new else ():
        for part in (cell, *cell.outputs):
            if part.get("execution_count") is not None:
                part["execution_count"] += 1
    place = others.index(code[0]) if code else len(others)
    first = new_cell("code", first_cell(chapter))
    first["id"], first.metadata["tags"], first["execution_count"] = CELL_ID, [REMOVE_CELL], 1 if ran else None
    notebook.cells = [*others[:place], first, *others[place:]]
    return notebook


def write(path: Path) -> bool:
    """Give one notebook its first cell, and say whether its file is new."""
    return replace_file(path, to_bytes(with_first_cell(read(path), path.stem)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.first_cell", description="Give chapters their first cell.")
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="a chapter's name or a path; default: all")
    for path in select(parser.parse_args(arguments).chapters, notebooks()):
        print(f"{path.stem:<28}{'written' if write(path) else 'unchanged'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
