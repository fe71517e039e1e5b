"""Notebooks as bytes that only change when what they say changes.

Jupyter writes down when a cell ran, which Python ran it and a random id for every widget, drawing and animation. None
of it is the book's. `to_bytes` leaves it out or numbers it by order of appearance: executing a chapter twice gives one
file.
"""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tools import drawings

WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# All chapters run on the kernel of the environment that runs the tools; Colab and Binder know it by the same name.
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# `ipython3` makes the page colour magics such as %pip; the version of Python is left out.
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python", "pygments_lexer": "ipython3"}

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-f]+")
# Widgets that no view shows, and that work on those that are shown: the two ends of jslink.
_LINKS = ("LinkModel", "DirectionalLinkModel")


def read(path: Path) -> NotebookNode:
    """The notebook in a file, in the current format; its outputs and widget state are as stored."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-any-return, no-untyped-call]


def to_bytes(notebook: NotebookNode) -> bytes:
    """The file of an executed notebook, free of everything that differs from run to run."""
    notebook = nbformat.from_dict(json.loads(json.dumps(notebook)))  # type: ignore[no-untyped-call]
    notebook.metadata["kernelspec"] = KERNEL
    notebook.metadata["language_info"] = LANGUAGE
    notebook.metadata.pop("jupytext", None)  # left behind when a chapter was edited as text
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            _settle_output(output)
    _name_unnamed_cells(notebook)
    order = _keep_shown_widgets(notebook)
    return _number_ids(nbformat.writes(notebook), order).encode() + b"\n"  # type: ignore[no-untyped-call]


def replace_file(path: Path, content: bytes) -> bool:
    """Give a file new content in one step: whoever looks sees the old file or the new one, never a part.

    Returns:
        Whether the content was new. If not, the file is not touched, its date included.
    """
    if path.is_file() and path.read_bytes() == content:
        return False
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content)
        if path.exists():
            draft.chmod(path.stat().st_mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _settle_output(output: NotebookNode) -> None:
    """Take addresses out of printed objects, and the paths and line numbers out of an expected error."""
    if output.output_type == "stream":
        output.text = _ADDRESS.sub("0xADDRESS", output.text)
    elif output.output_type == "error":
        # The frames are files on one machine, coloured for one terminal; readers need the last line.
        output.traceback = [f"{output.ename}: {output.evalue}"]
    else:
        for kind in ("text/plain", "text/html"):
            if kind in output.data:
                output.data[kind] = _ADDRESS.sub("0xADDRESS", output.data[kind])
        if drawings.MIME_TYPE in output.data:
            output.data[drawings.MIME_TYPE] = drawings.tidy(output.data[drawings.MIME_TYPE])
        if "text/html" in output.data:  # what a front end without the kernel that made the widget can show
            output.data.pop(WIDGET_VIEW, None)
        output.metadata.pop("execution", None)


def _name_unnamed_cells(notebook: NotebookNode) -> None:
    """Give ids to cells of older formats, which have none (nbformat would invent random ones)."""
    if (notebook.nbformat, notebook.nbformat_minor) >= (4, 5):
        return
    notebook.nbformat_minor = 5
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index:02d}"


def _keep_shown_widgets(notebook: NotebookNode) -> list[str]:
    """Drop the state of widgets that no view reaches; return the ids of the others, in reading order."""
    saved = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {})
    state: dict[str, Any] = saved.get("state", {})
    order: dict[str, None] = {}

    def visit(key: str) -> None:
        if key in state and key not in order:
            order[key] = None
            for reference in _references(state[key]["state"]):
                visit(reference)

    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if WIDGET_VIEW in output.get("data", {}):
                visit(output.data[WIDGET_VIEW]["model_id"])
    for key, model in state.items():
        if model["model_name"] in _LINKS:
            visit(key)
    if order:
        saved["state"] = {key: state[key] for key in order}
    else:
        notebook.metadata.pop("widgets", None)
    return list(order)


def _references(value: Any) -> Iterable[str]:
    """The widget ids that a widget's state mentions, in an order that does not depend on the run."""
    if isinstance(value, str):
        if value.startswith("IPY_MODEL_"):
            yield value.removeprefix("IPY_MODEL_")
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from _references(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _number_ids(text: str, first: Iterable[str]) -> str:
    """Replace each random id of 32 hexadecimal digits: those in `first`, then the others by first appearance.

    The text is sorted by key before and after, since the ids of widgets are keys.
    """
    names = {key: f"{number:032x}" for number, key in enumerate(first)}
    renamed = _ID.sub(lambda match: names.setdefault(match[0], f"{len(names):032x}"), text)
    return nbformat.writes(nbformat.from_dict(json.loads(renamed)))  # type: ignore[no-untyped-call, no-any-return]
