"""From the small JavaScript modules in `static/` to one script for each widget.

A notebook hands a widget's whole front end to the browser as one text, and a page opened from a disk (`file://`) may
not import modules at all. So the modules are joined here. Each becomes a function that runs once and returns what it
exports, which leaves every other name private, as in a module:

    const module_numbers = (() => { ... return { fixed }; })();

Of JavaScript's forms of `import` and `export` the modules use two, each on a line of its own, and nothing else passes:

    import { fixed, short as brief } from "./numbers.js";     (or a .json file, which exports `data`)
    export function fixed(...) {
"""

import json
import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"

_IMPORT = re.compile(r'^import \{([^{}]+)\} from "\./([a-z_]+\.(?:js|json))";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function\*? (\w+)\()", re.MULTILINE)
_LEFT_OVER = re.compile(r"^\s*(?:import|export)\b.*$|\bimport\(", re.MULTILINE)


def modules() -> list[str]:
    """The names of all JavaScript modules, without their suffix."""
    return sorted(path.stem for path in STATIC.glob("*.js"))


def front_ends() -> list[str]:
    """The modules that draw a widget: those that export `render`."""
    return [name for name in modules() if "render" in _EXPORT.findall(_source(f"{name}.js"))]


def style_sheet() -> str:
    """The style that all widgets share."""
    return (STATIC / "widgets.css").read_text(encoding="utf-8")


@cache
def link(name: str) -> str:
    """One script with a module and all that it imports, each before its first use; `module_NAME` holds its exports.

    Args:
        name: a module in `static/`, without its suffix.

    Returns:
        JavaScript statements, to be put inside a function or a module of their own.

    Raises:
        ValueError: a module that is not there, imports in a circle, imports what is not exported, or has an `import` or
            `export` of a form that this linker does not read; the message names the module.
    """
    parts: dict[str, str] = {}
    exported: dict[str, list[str]] = {}
    _collect(f"{name}.js", (), parts, exported)
    return "\n".join(parts.values())


def es_module(name: str) -> str:
    """A widget's front end as one ES module, for anywidget: its default export has the module's `render`."""
    return f"{link(name)}\nexport default {{ render: {_constant(name)}.render }};\n"


def page_script(name: str) -> str:
    """A widget's front end as a classic script, for pages without a kernel: it joins `window.mesaWidgets`."""
    registered = f"(window.mesaWidgets ??= {{}}).{name} = {_constant(name)};"
    return f'(() => {{\n"use strict";\n{link(name)}\n{registered}\n}})();\n'


def _constant(name: str) -> str:
    return f"module_{name}"


def _collect(file: str, path: tuple[str, ...], parts: dict[str, str], exported: dict[str, list[str]]) -> None:
    """Add a file and its imports to `parts`, in the order in which they must run."""
    if file in path:
        raise ValueError(f"{file}: imports itself, by way of {' > '.join(path)}")
    if file in parts:
        return
    source = _source(file)
    name = Path(file).stem
    if file.endswith(".json"):
        parts[file], exported[file] = f"const {_constant(name)} = {{ data: {source} }};", ["data"]
        return
    for names, imported in _IMPORT.findall(source):
        _collect(imported, (*path, file), parts, exported)
        wanted = {part.split(" as ")[0].strip() for part in names.split(",") if part.strip()}
        if missing := wanted - set(exported[imported]):
            raise ValueError(f"{file}: expected {imported} to export {', '.join(sorted(missing))}")
    exported[file] = _EXPORT.findall(source)
    body = _EXPORT.sub("", _IMPORT.sub(_destructured, source))
    if left := _LEFT_OVER.search(body):
        raise ValueError(f"{file}: expected imports and exports of functions on lines of their own, got {left[0]!r}")
    names = ", ".join(exported[file])
    parts[file] = f"const {_constant(name)} = (() => {{\n{body.strip()}\nreturn {{ {names} }};\n}})();"


def _source(file: str) -> str:
    path = STATIC / file
    if not path.is_file():
        raise ValueError(f"name: expected one of the modules {', '.join(modules())}, got {Path(file).stem!r}")
    text = path.read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":")) if file.endswith(".json") else text


def _destructured(match: re.Match[str]) -> str:
    """An import as the statement that takes its names out of the module's exports."""
    names = ", ".join(part.strip().replace(" as ", ": ") for part in match[1].split(",") if part.strip())
    return f"const {{ {names} }} = {_constant(Path(match[2]).stem)};"
