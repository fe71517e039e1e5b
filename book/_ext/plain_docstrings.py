"""Show mesa_lib's docstrings, which are plain text, on the page of the API.

A docstring is written for `help()`: names in single backticks, formulas as indented lines, sections in Google style.
Read as reStructuredText, `*ensemble` would open an emphasis and |W x| a substitution. This extension turns the first
into the second, before napoleon sees the sections. A public name in backticks becomes a link to where it is described;
examples stay as they are.
"""

import importlib
import inspect
import re
from functools import cache
from typing import Any

from sphinx.application import Sphinx

# An empty comment, invisible on the page. napoleon takes what stands before a colon in the first line of a property, or
# of a section "Returns", for a type; with this as the first line it leaves the sentence whole.
NO_TYPE = ("..", "")

_CODE = re.compile(r"(`+)(.+?)\1")
_LINKED = re.compile(r"([A-Za-z]\w+)(?:\.([a-z]\w+))?")
_SPECIAL = re.compile(r"[*|\\]|(?<=\w)_(?!\w)")


def to_rst(lines: list[str]) -> list[str]:
    """The reStructuredText that shows plain lines as they read.

    A block after a blank line that is indented deeper than the text before it is a formula and stays verbatim.
    """
    result: list[str] = []
    text_indent = 0  # of the last line of running text
    formula_indent: int | None = None
    previous_blank = True
    in_example = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            result.append("")
            previous_blank, in_example = True, False
            continue
        in_example = in_example or line.lstrip().startswith(">>> ")
        if in_example:
            result.append(line)
            continue
        if formula_indent is not None and indent < formula_indent:
            formula_indent = None
        if formula_indent is None and previous_blank and result and indent > text_indent:
            result += [" " * text_indent + "::", ""]
            formula_indent = indent
        if formula_indent is None:
            if result and result[-1] == "Returns:":
                result += [(" " * indent + part).rstrip() for part in NO_TYPE]
            result.append(_escape(line))
            text_indent = indent
        else:
            result.append(line)
        previous_blank = False
    return result


def _escape(line: str) -> str:
    """Double the backticks around code, and take the meaning of markup from every other character."""
    result, end = [], 0
    for code in _CODE.finditer(line):
        result += [_SPECIAL.sub(r"\\\g<0>", line[end : code.start()]), _shown(code[2])]
        end = code.end()
    return "".join([*result, _SPECIAL.sub(r"\\\g<0>", line[end:])])


def _shown(code: str) -> str:
    """Code as it is, or as a link if it is a public name, or a described method of one."""
    match = _LINKED.fullmatch(code)
    target = described().get(match[1]) if match else None
    if match is None or target is None:
        return f"``{code}``"
    place, value = target
    if match[2]:
        if not inspect.getdoc(inspect.getattr_static(value, match[2], None)):
            return f"``{code}``"
        place = f"{place}.{match[2]}"
    return f":py:obj:`{code} <{place}>`"


@cache
def described() -> dict[str, tuple[str, object]]:
    """The public functions and classes of mesa_lib, each with the full name under which the page describes it."""
    library = importlib.import_module("mesa_lib")
    found: dict[str, tuple[str, object]] = {}
    for name in library.__all__:
        value = getattr(library, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            room = ".".join(value.__module__.split(".")[:2])
            found[name] = f"{room}.{name}", value
    return found


def process_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Rewrite the docstring of one object of mesa_lib in place."""
    if name.startswith("mesa_lib"):
        first = NO_TYPE if what in {"attribute", "data", "property"} else ()
        lines[:] = [*first, *to_rst(lines)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook, before napoleon's."""
    app.connect("autodoc-process-docstring", process_docstring, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
