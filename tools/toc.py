"""The book's pages in reading order, from `_toc.yml`.

`python -m tools.toc` prints the path of every notebook among them, one a line.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = (".ipynb", ".md")


class TocError(Exception):
    """`_toc.yml` names a page that does not exist, or has no shape that is understood."""


@dataclass(frozen=True)
class Page:
    """One page of the book.

    Attributes:
        path: the source file, absolute.
        numbered: whether it stands in a numbered part, that is, whether it is a chapter.
    """

    path: Path
    numbered: bool

    @property
    def name(self) -> str:
        """The file's name without its suffix, by which the tools' command lines know it."""
        return self.path.stem

    @property
    def is_notebook(self) -> bool:
        """Whether the page is executed."""
        return self.path.suffix == ".ipynb"


def read_pages(root: Path = ROOT) -> list[Page]:
    """All pages, in reading order.

    Args:
        root: the folder that holds `_toc.yml`.

    Raises:
        TocError: the file has no `root` entry, or a page in it has no source.
    """
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    if not isinstance(toc, dict) or "root" not in toc:
        raise TocError(f"{root / '_toc.yml'}: expected a mapping with the entry 'root', got {toc!r:.80}")
    return [Page(_source(root, name), numbered) for name, numbered in _entries({**toc, "file": toc["root"]}, False)]


def notebooks(root: Path = ROOT) -> list[Path]:
    """The paths of all notebooks of the book, in reading order."""
    return [page.path for page in read_pages(root) if page.is_notebook]


def _entries(entry: dict[str, Any], numbered: bool) -> Iterator[tuple[str, bool]]:
    """Every (file, numbered) at and below one entry, depth first, which is the order of reading."""
    if "file" in entry:
        yield entry["file"], numbered
    for key in ("parts", "chapters", "sections"):
        for child in entry.get(key, ()):
            yield from _entries(child, numbered or bool(child.get("numbered", False)))


def _source(root: Path, name: str) -> Path:
    """The file behind a page's name in `_toc.yml`, which may come without its suffix."""
    candidates = [root / name] if name.endswith(SUFFIXES) else [root / f"{name}{suffix}" for suffix in SUFFIXES]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise TocError(f"_toc.yml lists '{name}', but none of these exist: {', '.join(str(c) for c in candidates)}")


def main() -> int:
    """Print the notebooks' paths, relative to the root."""
    try:
        paths = notebooks()
    except TocError as error:
        print(f"toc: {error}", file=sys.stderr)
        return 2
    for path in paths:
        print(path.relative_to(ROOT).as_posix())
    return 0


if __name__ == "__main__":
    sys.exit(main())
