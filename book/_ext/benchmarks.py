"""Show the committed benchmark (`make bench`) on a page: `:::{benchmark} PART`, one table for each part of the file.

A part that the file lacks shows as a sentence that says so.
"""

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

BOOK = Path(__file__).parents[1]
RECORD = Path("mesa_lib", "results", "benchmark.json")
Record = dict[str, Any]


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table in Markdown, numbers to the right."""
    lines: list[Sequence[object]] = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]


def _machine(record: Record) -> list[str]:
    about, versions = record["machine"], record["versions"]
    processor = about.get("processor", about["architecture"])
    return [
        f"{processor}, {about.get('cores', '?')} cores, {about['system']}; Python {versions['python']}, torch "
        f"{versions['torch']}, NumPy {versions['numpy']}; one thread; medians of {record['repetitions']} runs."
    ]


def _context(record: Record) -> list[str]:
    header = ["N", "tokens", "second moments", "moments given", "tokens / moments"]
    forms = ("tokens", "moments", "moments given")
    rows = [
        [f"{one['num_context']:,}", *(one[form] for form in forms), f"{one['tokens'] / one['moments']:.1f}"]
        for one in record["context"]
    ]
    return table(header, rows)


def _step(record: Record) -> list[str]:
    return table(["N", "milliseconds a step"], [[f"{one['num_context']:,}", one["step"]] for one in record["step"]])


def _losses(record: Record) -> list[str]:
    one = record["losses"]
    rows = [[f"{kind} query", one[f"{kind} batch"], one[kind]] for kind in ("expected", "sampled")]
    return [*table(["loss", "tasks a step", "seconds"], rows), "", f"Ratio: {one['ratio']} ({one['what']})."]


def _ensemble(record: Record) -> list[str]:
    one = record["ensemble"]
    rows = [[name, one[name]] for name in ("one", "ten at once", "ten solo")]
    ratios = (
        f"Ten at once take {one['at once over one']} times as long as one, ten solo runs {one['solo over at once']} "
        f"times as long as ten at once; {one['seed-steps a second']:,} seed-steps a second ({one['what']})."
    )
    return [*table(["seeds", "seconds"], rows), "", ratios]


def _targets(record: Record) -> list[str]:
    rows = [
        [one["what"], one["aim"], one["seconds"] or "not reached", f"{one['arrived']} of {one['seeds']}"]
        for one in record["targets"]
    ]
    return table(["goal", "aim, seconds", "seconds, median seed", "seeds that arrive"], rows)


def _chapters(record: Record) -> list[str]:
    rows = [
        [f"[](/book/{name}.ipynb)", one["seconds"], one["processor seconds"], one["megabytes"]]
        for name, one in record["chapters"].items()
    ]
    total = sum(one["seconds"] for one in record["chapters"].values())
    busy = sum(one["processor seconds"] for one in record["chapters"].values())
    return table(
        ["chapter", "seconds", "processor seconds", "MB at most"], [*rows, ["all", f"{total:.1f}", f"{busy:.1f}", ""]]
    )


def _pages(record: Record) -> list[str]:
    one = record["pages"]
    built = (
        f"On two cores `make html` takes {one['seconds']} seconds when all pages are new ({one['processor seconds']} "
        f"seconds of a processor), and {one['one chapter']['seconds']} seconds when one chapter has changed."
    )
    names = {
        "first_paint": "until a page shows something",
        "alive": "until its widgets answer",
        "frame": "a moved slider, until the page is drawn again",
    }
    rows = []
    for what, words in names.items():
        times = {name: page[what] for name, page in one["pages"].items() if what in page}
        slowest = max(times, key=lambda name: times[name])
        title = f"[](/book/{slowest}.{'ipynb' if (BOOK / f'{slowest}.ipynb').is_file() else 'md'})"
        rows.append([words, one["aims"][what], statistics.median(times.values()), f"{times[slowest]}, {title}"])
    header = ["milliseconds", "aim", "median page", "slowest page"]
    visits = (
        f"Medians of {one['visits']} visits with an empty cache, {one['browser']}, from a server on the same machine."
    )
    return [built, "", *table(header, rows), "", visits]


PARTS: dict[str, Callable[[Record], list[str]]] = {
    "machine": _machine,
    "context": _context,
    "step": _step,
    "losses": _losses,
    "ensemble": _ensemble,
    "targets": _targets,
    "chapters": _chapters,
    "pages": _pages,
}


def markdown(part: str, record: Record) -> list[str]:
    """The lines that show a part of the record."""
    if part not in record:
        return [f"Not measured yet: `.venv/bin/python -m tools.bench {part}`."]
    return PARTS[part](record)


class Benchmark(SphinxDirective):
    """`:::{benchmark} PART`: one part of the committed benchmark."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table, parsed as the page's own text."""
        part = self.arguments[0]
        if part not in PARTS:
            raise self.error(f"benchmark: expected one of {', '.join(PARTS)}, got '{part}'")
        path = Path(self.env.srcdir) / RECORD
        self.env.note_dependency(str(path))
        lines = markdown(part, json.loads(path.read_text(encoding="utf-8")))
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, str(path)), self.content_offset, holder)
        return list(holder.children)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
