"""The chapter law (CONTRIBUTING.md): what every notebook of the book keeps to, read from its cells.

Each law takes a chapter and returns its complaints, one sentence each; none means that the chapter keeps it.
"""

import ast
import base64
import itertools
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from mesa_lib.grading.repository import first_cell
from tools.notebooks import WIDGET_VIEW, read
from tools.toc import Page

MAX_CELL_LINES = 12
MAX_DEF_LINES = 5
EXERCISES = 3
EXERCISE_KINDS = ("Predict", "Derive", "Change an argument")
REMOVE_CELL = "remove-cell"

# What these stand for has one place, mesa_lib: training is `train`, and seeds enter as arguments.
FORBIDDEN = {
    "a training loop": re.compile(r"\.backward\(|\boptim\b"),
    "a seed set by hand": re.compile(r"\bmanual_seed\(|\brandom\.seed\(|\bdefault_rng\("),
}
SEEDS = {"seed", "manual_seed", "default_rng"}
# What draws from torch's global state unless it is handed a generator: functions, and methods of tensors.
DRAWS = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson"}
DRAWS |= {"rand_like", "randn_like", "randint_like"}
DRAWS_IN_PLACE = {
    "normal_",
    "uniform_",
    "random_",
    "bernoulli_",
    "exponential_",
    "cauchy_",
    "log_normal_",
    "geometric_",
}
PICTURES = ("image/png", "image/svg+xml")
_PNG = b"\x89PNG\r\n\x1a\n"
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\{", re.MULTILINE)
_HEADING = re.compile(r"^##[ \t]+(.+?)\s*$", re.MULTILINE)
# An exercise, and the two ends of a solution: the name, what stands beside it, and the options below.
_DIRECTIVE = re.compile(
    r"^:{3,}\{(?P<name>exercise|solution-start|solution-end)\}[ \t]*(?P<argument>.*?)[ \t]*$"
    r"(?P<options>(?:\n:[\w-]+:.*$)*)",
    re.MULTILINE,
)
_OPTION = re.compile(r"^:([\w-]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
_PROGRESS_BAR = re.compile(r"\d+%\|")


@dataclass(frozen=True)
class Cell:
    """A code cell as the laws see it.

    Attributes:
        number: its place among the chapter's code cells, from 1.
        source: the code.
        metadata: the cell's metadata.
        outputs: the stored outputs.
        execution_count: as stored; None if it was never executed.
    """

    number: int
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    execution_count: int | None = None

    @property
    def tags(self) -> list[str]:
        """The cell's tags."""
        return list(self.metadata.get("tags", []))

    @property
    def first_line(self) -> str:
        """The first line of code, by which files and messages name the cell."""
        return self.source.strip().partition("\n")[0]

    def __str__(self) -> str:
        return f"code cell {self.number} ({self.first_line})"

    def parse(self) -> ast.Module:
        """The syntax tree, with magics such as %pip turned into calls.

        Raises:
            SyntaxError: the source is no Python.
        """
        return ast.parse(TransformerManager().transform_cell(self.source))  # type: ignore[no-untyped-call]

    def tree(self) -> ast.Module:
        """The syntax tree; an empty one if the source is no Python, which `cells_are_python` complains about."""
        try:
            return self.parse()
        except SyntaxError:
            return ast.Module([], [])

    def shown(self, kind: str) -> list[Any]:
        """The data of a MIME type among the outputs."""
        return [output["data"][kind] for output in self.outputs if kind in output.get("data", {})]


@dataclass(frozen=True)
class Directive:
    """An exercise, or one end of its solution.

    Attributes:
        name: `exercise`, `solution-start` or `solution-end`.
        argument: what stands beside the name: an exercise's title, or the label of the exercise that is solved.
        options: what the lines below say, such as `label`.
    """

    name: str
    argument: str
    options: dict[str, str]

    def __str__(self) -> str:
        return self.options.get("label") or self.argument or "(without a label)"


# What `_outline` makes of a chapter: headings as text, exercises with the ends of their solutions, and code cells.
Part = str | Directive | Cell


@dataclass(frozen=True)
class Chapter:
    """A notebook as the laws see it.

    Attributes:
        name: the file's name without its suffix.
        numbered: whether it stands in a numbered part; only there exercises are due.
        cells: its Markdown and its code cells that hold code, in order.
    """

    name: str
    numbered: bool
    cells: list[str | Cell]

    @property
    def code(self) -> list[Cell]:
        """Its code cells, in order."""
        return [cell for cell in self.cells if isinstance(cell, Cell)]

    @property
    def text(self) -> str:
        """All its Markdown, in order."""
        return "\n\n".join(cell for cell in self.cells if isinstance(cell, str))


def read_chapter(page: Page) -> Chapter:
    """Read a notebook of the book."""
    return chapter_from(read(page.path), page.name, page.numbered)


def chapter_from(notebook: Any, name: str, numbered: bool = True) -> Chapter:
    """See a notebook as a chapter."""
    cells: list[str | Cell] = []
    number = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cells.append(cell.source)
        elif cell.cell_type == "code" and cell.source.strip():
            number += 1
            cells.append(Cell(number, cell.source, dict(cell.metadata), list(cell.outputs), cell.execution_count))
    return Chapter(name, numbered, cells)


# --- the laws ---------------------------------------------------------------------------------------------------------


def cells_are_python(chapter: Chapter) -> Iterator[str]:
    """Every code cell can be parsed; the other laws see nothing in one that cannot."""
    for cell in chapter.code:
        try:
            cell.parse()
        except SyntaxError as error:
            yield f"{cell}: not Python: {error.msg} (line {error.lineno})"


def logic_lives_in_the_package(chapter: Chapter) -> Iterator[str]:
    """No class, no function over five lines, no training loop, no seed set by hand."""
    for cell in chapter.code:
        for node in ast.walk(cell.tree()):
            if isinstance(node, ast.ClassDef):
                yield f"{cell}: class {node.name}; classes belong into mesa_lib"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_DEF_LINES:
                    yield f"{cell}: def {node.name} has {length} lines, allowed are {MAX_DEF_LINES}"
            if isinstance(node, ast.For | ast.While) and (update := _update(node)):
                yield f"{cell}: a training loop ('{update}')"
        for name, pattern in FORBIDDEN.items():
            if found := pattern.search(cell.source):
                yield f"{cell}: {name} ('{found[0]}')"


def _update(loop: ast.For | ast.While) -> str:
    """What a loop does to train: an optimizer's step, or new values for what it differentiates by; empty if neither.

    Differentiating in a loop is no training: the book checks formulas against autograd.
    """
    nodes = list(ast.walk(loop))
    parameters: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and _dotted(node.func).endswith("autograd.grad"):
            arguments = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "inputs")]
            parameters |= {name for argument in arguments for name in _names(argument)}
    for node in nodes:
        match node:
            # Its value is thrown away, so it is called for what it changes.
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="step"))):
                return ast.unparse(node)
            case ast.AugAssign(target=target) if parameters & _names(target):
                return ast.unparse(node)
            case ast.Assign(targets=targets, value=value):
                old_and_new = _names(value) & {name for target in targets for name in _names(target)}
                if parameters & old_and_new:
                    return ast.unparse(node)
            case ast.Call(func=ast.Attribute(attr="add_" | "sub_" | "copy_", value=changed)):
                if parameters & _names(changed):
                    return ast.unparse(node)
    return ""


def _names(tree: ast.AST) -> set[str]:
    """Every name in an expression."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _dotted(node: ast.expr) -> str:
    """A name such as `torch.randn` as text; for any other expression, what follows its last attribute's dot."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def randomness_is_handed_in(chapter: Chapter) -> Iterator[str]:
    """Nothing is drawn from a global state or from numpy: torch draws with `generator=`, from mesa_lib's generators."""
    trees = [(cell, cell.tree()) for cell in chapter.code]
    full_names = {"np": "numpy"}
    for _, tree in trees:
        full_names |= _imported(tree)
    for cell, tree in trees:
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            first, _, rest = _dotted(call.func).partition(".")
            module, _, name = f"{full_names.get(first, first)}.{rest}".strip(".").rpartition(".")
            has_state = module in {"random", "numpy.random"} and name not in SEEDS
            draws = (module == "torch" and name in DRAWS) or name in DRAWS_IN_PLACE
            if has_state or (draws and not _has_generator(call)):
                yield f"{cell}: hidden randomness ('{ast.unparse(call):.60}'); use mesa_lib's generator"


def _imported(tree: ast.Module) -> dict[str, str]:
    """The names that imports bind, and what they stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _has_generator(call: ast.Call) -> bool:
    """Whether a call is handed a generator other than None."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "generator"]
    return bool(given) and not (isinstance(given[0], ast.Constant) and given[0].value is None)


def cells_are_short(chapter: Chapter) -> Iterator[str]:
    """At most twelve lines of code in a cell, blank lines not counted."""
    for cell in chapter.code:
        length = sum(bool(line.strip()) for line in cell.source.splitlines())
        if length > MAX_CELL_LINES:
            yield f"{cell}: {length} lines, allowed are {MAX_CELL_LINES}"


def figures_are_described(chapter: Chapter) -> Iterator[str]:
    """A figure is one whole picture, and has a caption, a name to refer to, and a text for those who do not see it."""
    for cell in chapter.code:
        mystnb = cell.metadata.get("mystnb", {})
        if "figure" in mystnb:
            images = cell.shown("image/png")
            if len(images) != 1:
                yield f"{cell}: 'mystnb.figure' describes one image/png, but its outputs hold {len(images)}"
            elif not _is_whole_png(images[0]):
                yield f"{cell}: its image/png is broken; run `make execute`"
            elif len(drawings := cell.shown("image/svg+xml")) != 1 or not drawings[0].startswith("<svg"):
                yield f"{cell}: its image/png comes without a whole image/svg+xml; run `make execute`"
        elif not any(cell.shown(kind) for kind in PICTURES):
            continue
        figure, image = mystnb.get("figure", {}), mystnb.get("image", {})
        wanted = {
            "figure.caption": figure.get("caption"),
            "figure.name": figure.get("name"),
            "image.alt": image.get("alt"),
        }
        missing = [key for key, value in wanted.items() if not str(value or "").strip()]
        if missing:
            yield f"{cell}: shows a picture, but its metadata 'mystnb' lacks {', '.join(missing)}"


def _is_whole_png(encoded: str) -> bool:
    """Whether base64 text is a PNG of positive size whose parts are all there, each with its checksum."""
    try:
        data = base64.b64decode(encoded)
        kinds, place = [], len(_PNG)
        while place < len(data):
            (length,) = struct.unpack_from(">I", data, place)
            part = data[place + 4 : place + 8 + length]
            (checksum,) = struct.unpack_from(">I", data, place + 8 + length)
            if zlib.crc32(part) != checksum:
                return False
            kinds.append(part[:4])
            place += 12 + length
        size = struct.unpack_from(">II", data, len(_PNG) + 8)
    except (ValueError, struct.error):
        return False
    return data.startswith(_PNG) and kinds[0] == b"IHDR" and b"IDAT" in kinds and kinds[-1] == b"IEND" and min(size) > 0


def cells_ran_in_order(chapter: Chapter) -> Iterator[str]:
    """Every code cell was executed, from top to bottom on a fresh kernel: counts 1, 2, ..., n."""
    ran = [cell for cell in chapter.code if "skip-execution" not in cell.tags]
    for expected, cell in enumerate(ran, start=1):
        if cell.execution_count != expected:
            yield f"{cell}: execution count {cell.execution_count}, expected {expected}; run `make execute`"


def outputs_are_clean(chapter: Chapter) -> Iterator[str]:
    """No warnings, no unexpected errors and no progress bars among the outputs."""
    for cell in chapter.code:
        for output in cell.outputs:
            if output["output_type"] == "stream" and output["name"] == "stderr":
                yield f"{cell}: output on stderr: {output['text']:.80}"
            if output["output_type"] == "error" and "raises-exception" not in cell.tags:
                yield f"{cell}: {output['ename']}"
            text = output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
            if _PROGRESS_BAR.search(text):
                yield f"{cell}: a progress bar among the outputs"


def widgets_need_no_kernel(chapter: Chapter) -> Iterator[str]:
    """A widget lives in the page as well: its output is HTML, as those of mesa_lib.widgets are, not only a view."""
    for cell in chapter.code:
        if cell.shown(WIDGET_VIEW):
            yield f"{cell}: shows a widget that is dead without a kernel; use one of mesa_lib.widgets"


def directives_read_everywhere(chapter: Chapter) -> Iterator[str]:
    """Directives open with colons: Colab and GitHub show a fenced one as code."""
    for found in _FENCE.finditer(chapter.text):
        line = chapter.text[found.start() :].strip().partition("\n")[0]
        yield f"the directive '{line}' opens with a code fence; write :::{{...}}"


def ends_with_exercises(chapter: Chapter) -> Iterator[str]:
    """A numbered chapter ends with a section 'Exercises' that holds three: predict, derive, change an argument."""
    if not chapter.numbered:
        return
    headings = [part for part in _outline(chapter) if isinstance(part, str)]
    last = headings[-1] if headings else "(none)"
    if last != "Exercises":
        yield f"the last section is '{last}', expected 'Exercises'"
        return
    exercises = [found for found in _directives(around_exercises(chapter)[1]) if _is_exercise(found)]
    if len(exercises) != EXERCISES:
        yield f"the section 'Exercises' holds {len(exercises)} exercises (:::{{exercise}}), expected {EXERCISES}"
        return
    for exercise, kind in zip(exercises, EXERCISE_KINDS, strict=True):
        if exercise.argument != kind:
            yield f"the exercise {exercise} is called '{exercise.argument}', expected '{kind}'"


def solutions_follow_exercises(chapter: Chapter) -> Iterator[str]:
    """Every exercise is followed by its solution, folded away and labelled, with a cell that asserts what it says."""
    parts = _outline(chapter)
    starts = [k for k, part in enumerate(parts) if isinstance(part, str) or _is_exercise(part)]
    for start, end in itertools.pairwise([*starts, len(parts)]):
        exercise, after = parts[start], parts[start + 1 : end]
        if _is_exercise(exercise) and (complaint := _wrong_with_solution(exercise, after)):
            yield f"the exercise {exercise}: {complaint}"


def _wrong_with_solution(exercise: Part, parts: list[Part]) -> str:
    """What is wrong with the parts between an exercise and the next, or a heading; empty if nothing is."""
    first, last = (parts[0], parts[-1]) if parts else ("", "")
    if not isinstance(first, Directive) or first.name != "solution-start":
        return "no solution follows (:::{solution-start} LABEL)"
    if first.argument != str(exercise):
        return f"what follows is the solution of '{first.argument}'"
    if first.options.get("class") != "dropdown" or "label" not in first.options:
        return "its solution lacks ':class: dropdown' or a ':label:'"
    if not isinstance(last, Directive) or last.name != "solution-end" or len(_directives(parts)) != 2:
        return "its solution is not closed once, at its end (:::{solution-end})"
    if not any(isinstance(part, Cell) and asserts(part) for part in parts):
        return "no code cell of its solution has an assert that can fail"
    return ""


def _outline(chapter: Chapter) -> list[Part]:
    """A chapter's headings, exercises with the ends of their solutions, and code cells, in order."""
    found: list[Part] = []
    for cell in chapter.cells:
        if isinstance(cell, Cell):
            found.append(cell)
            continue
        text = _CODE_BLOCK.sub("", cell)
        marks = sorted([*_HEADING.finditer(text), *_DIRECTIVE.finditer(text)], key=lambda mark: mark.start())
        found += [_directive(mark) if mark.re is _DIRECTIVE else mark[1] for mark in marks]
    return found


def _directive(mark: re.Match[str]) -> Directive:
    """The directive that a match of `_DIRECTIVE` found."""
    return Directive(mark["name"], mark["argument"], dict(_OPTION.findall(mark["options"])))


def _directives(parts: list[Part]) -> list[Directive]:
    """The directives among parts of a chapter."""
    return [part for part in parts if isinstance(part, Directive)]


def _is_exercise(part: Part) -> bool:
    """Whether a part of a chapter is an exercise."""
    return isinstance(part, Directive) and part.name == "exercise"


def around_exercises(chapter: Chapter) -> tuple[list[Part], list[Part]]:
    """What comes before the heading 'Exercises', which is everything if there is none, and what comes after it."""
    parts = _outline(chapter)
    place = parts.index("Exercises") if "Exercises" in parts else len(parts)
    return parts[:place], parts[place + 1 :]


def last_cell_asserts(chapter: Chapter) -> Iterator[str]:
    """The last code cell before the exercises asserts the chapter's sentence, so that a false one fails the build."""
    cells = [part for part in around_exercises(chapter)[0] if isinstance(part, Cell)]
    if not cells:
        yield "no code cell before the exercises, so nothing is asserted"
    elif not asserts(cells[-1]):
        yield f"{cells[-1]}: the last code cell has neither an assert that can fail nor a call of verdict"


def asserts(cell: Cell) -> bool:
    """Whether a cell holds an assert that runs and can fail, or calls `verdict`."""
    nodes = _what_runs(cell.tree())
    called = {_dotted(node.func).rpartition(".")[2] for node in nodes if isinstance(node, ast.Call)}
    # A test without a name is a constant, and a tuple is always true.
    tests = [node.test for node in nodes if isinstance(node, ast.Assert)]
    return "verdict" in called or any(_names(test) and not isinstance(test, ast.Tuple) for test in tests)


def _what_runs(tree: ast.Module) -> list[ast.AST]:
    """The nodes of a cell, without the bodies of functions that it defines and does not call."""
    defs = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Call):
            used = [one.id for one in (node.func, *node.args) if isinstance(one, ast.Name)]
            waiting += [line for name in used if name in defs for line in defs.pop(name).body]
    return found


def starts_with_the_first_cell(chapter: Chapter) -> Iterator[str]:
    """The first code cell is the one that installs mesa_lib on Colab: its text to the letter, hidden from the page."""
    first = chapter.code[0] if chapter.code else None
    if first is None or (first.source, first.tags, first.outputs) != (first_cell(chapter.name), [REMOVE_CELL], []):
        yield f"{first or 'no code cell'}: not the cell that installs mesa_lib; run `python -m tools.first_cell`"


LAWS: tuple[Callable[[Chapter], Iterator[str]], ...] = (
    cells_are_python,
    logic_lives_in_the_package,
    randomness_is_handed_in,
    cells_are_short,
    figures_are_described,
    cells_ran_in_order,
    outputs_are_clean,
    widgets_need_no_kernel,
    directives_read_everywhere,
    ends_with_exercises,
    solutions_follow_exercises,
    last_cell_asserts,
)


def orphans(root: Path, pages: list[Page]) -> list[Path]:
    """Notebooks in the book's folder that the table of contents does not list: nobody would read or test them."""
    listed = {page.path for page in pages}
    found = (path for path in (root / "book").glob("**/*.ipynb") if path.parent.name != ".ipynb_checkpoints")
    return sorted(path for path in found if path not in listed)
