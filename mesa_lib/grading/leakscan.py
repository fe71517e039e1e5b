"""Whether anything of the solutions is where students can read it: in releases, in the package, in the built site."""

import html
import inspect
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from mesa_lib.assignments import checking
from mesa_lib.assignments.variants import all_variants
from mesa_lib.grading.build import source_lines
from mesa_lib.grading.source import Assignment

SHORTEST = 15
"""Lines of fewer characters say too little to be a leak."""

_BINARY = {
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".webp",
    ".ico",
    ".woff",
    ".woff2",
    ".ttf",
    ".otf",
    ".eot",
    ".pdf",
    ".doctrees",
    ".pickle",
}
_ARCHIVES = {".whl", ".zip"}


@dataclass(frozen=True)
class Leak:
    """A line of a solution or of a hidden text in a public file.

    Attributes:
        assignment: whose.
        file: where.
        line: the line.
    """

    assignment: str
    file: str
    line: str


def secret_lines(assignment: Assignment) -> set[str]:
    """Every line, of 15 characters or more, that only instructors may have.

    That is what stands between the markers in any variant, the hidden cases, the mutants and the rubric, except for
    lines that the students' notebook has anyway, in its own text, and those that the source allows.
    """
    sources = [source_lines(assignment, variant) for variant in all_variants(assignment.public)]
    lines = {line for _, solution in sources for line in solution}
    # Hidden and public cases, of any assignment, may set questions up in the same words; an answer must be in neither.
    modules = [assignment.public, *checking.assignments().values()]
    public = {line.strip() for module in modules for line in inspect.getsource(module).splitlines()}
    for name in ("hidden.py", "mutants.py", "rubric.md"):
        text = (assignment.folder / name).read_text(encoding="utf-8")
        lines |= {line.strip() for line in text.splitlines()} - public
    shown = {_plain(line) for given, _ in sources for line in given}
    allowed = {_plain(line) for line in assignment.leakscan_allow}
    secret = {_plain(line) for line in lines}
    return {line for line in secret if len(line) >= SHORTEST and not _is_common(line)} - shown - allowed


def find_leaks(assignments: Iterable[Assignment], places: Sequence[Path]) -> list[Leak]:
    """Every secret line in any file of some places: folders, notebooks, pages, wheels."""
    secrets = {assignment.name: secret_lines(assignment) for assignment in assignments}
    every = {line: name for name, lines in secrets.items() for line in lines}
    return [
        Leak(every[line], file, line)
        for place in places
        for file, text in _texts(place)
        for line in sorted(every.keys() & {_plain(line) for line in text.splitlines()})
    ]


def _texts(place: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of every file, also of those inside wheels."""
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if not path.is_file() or path.suffix in _BINARY:
            continue
        if path.suffix in _ARCHIVES:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if Path(name).suffix not in _BINARY:
                        yield f"{path}: {name}", _text(name, archive.read(name))
        else:
            yield str(path), _text(path.name, path.read_bytes())


def _text(name: str, content: bytes) -> str:
    """What a reader of a file would see, line by line."""
    text = content.decode("utf-8", errors="replace")
    if name.endswith(".ipynb"):
        try:
            return "\n".join(_strings(json.loads(text)))
        except ValueError:
            return text
    if name.endswith((".html", ".htm")):
        page = _Page()
        page.feed(text)
        return "".join(page.pieces)
    if name.endswith((".js", ".json")):
        return text.replace("\\n", "\n").replace('\\"', '"')
    return html.unescape(text) if name.endswith((".xml", ".svg")) else text


def _strings(value: object) -> Iterator[str]:
    """Every text in a JSON value; the lines of a cell are one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield (
            "".join(value)
            if all(isinstance(item, str) for item in value)
            else "\n".join(text for item in value for text in _strings(item))
        )
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


class _Page(HTMLParser):
    """The text of a page; the tags that colour a line of code do not break it."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.pieces.append(data)


def _plain(line: str) -> str:
    return " ".join(line.split())


def _is_common(line: str) -> bool:
    """Whether a line is one that any program has: an import, a bracket, and names without anything that is done."""
    names = r"for \w+ in range\(\w+\):|return \w+|(\w+, )+\w+ = \w+"
    return re.fullmatch(rf"(import \S+( as \S+)?|from \S+ import .*|[\W\d_]+|{names})", line) is not None
