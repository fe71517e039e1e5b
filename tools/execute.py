"""Execute the book's chapters in place: `python -m tools.execute [CHAPTER ...]`.

Every chapter runs on a fresh kernel with one thread, several chapters at a time. A chapter that runs through replaces
its file in one step, and executing it again changes no byte. A chapter that fails keeps its file, its error names the
cell, and the others still run. A tool that is stopped, by Ctrl-C or by SIGTERM, takes its workers and kernels with it.
"""

import argparse
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from tools.notebooks import read, replace_file, to_bytes
from tools.toc import ROOT, TocError
from tools.toc import notebooks as book_notebooks

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
# Every kernel says this when it starts; whoever looks for the reason of its death does not need it.
_TCP_WARNING = re.compile(r"^\[IPKernelApp\] WARNING \| Kernel is running over TCP.*\n?", re.MULTILINE)

# The PNG is for the front ends of notebooks, the SVG for the pages (tools/drawings.py).
FIGURE_FORMATS = "--InlineBackend.figure_formats={'png', 'svg'}"


class ChapterError(Exception):
    """A chapter did not run through; the message names the cell and the error."""


class UsageError(Exception):
    """An argument that cannot be acted on; raised before any work starts."""


class Terminated(BaseException):
    """SIGTERM arrived: stop as for Ctrl-C."""


@dataclass(frozen=True)
class Outcome:
    """What became of one chapter.

    Attributes:
        path: the notebook.
        content: its new bytes, or None if it failed.
        error: why it failed; empty if it ran through.
        seconds: wall time, the start of the kernel included.
        megabytes: peak resident memory of the kernel, in 10^6 bytes.
        processor_seconds: what the kernel kept a processor busy.
    """

    path: Path
    content: bytes | None
    error: str
    seconds: float
    megabytes: float
    processor_seconds: float = 0.0


# --- one chapter, in a process of its own ---------------------------------------------------------------------------


def kernel_environment() -> dict[str, str]:
    """The environment of every kernel: one thread, no progress bars, this checkout's mesa_lib, figures as outputs."""
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    path = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(path),
        "TQDM_DISABLE": "1",
    }


def execute(path: Path, cell_timeout: float, on_cell: Callable[[], None] = lambda: None) -> bytes:
    """Run one notebook on a fresh kernel and return the bytes of its new file. Nothing is written.

    Args:
        path: the notebook.
        cell_timeout: seconds that one cell may take.
        on_cell: called after every cell.

    Raises:
        ChapterError: a cell raised, took too long or lost its kernel.
    """
    notebook = read(path)
    notebook.metadata.pop("widgets", None)
    current = 0

    def before_cell(cell: NotebookNode, cell_index: int) -> None:
        nonlocal current
        current = cell_index

    def after_cell(cell: NotebookNode, cell_index: int, execute_reply: object) -> None:
        on_cell()

    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=cell_timeout,
        coalesce_streams=True,  # else the moment at which the kernel flushes cuts one output in two
        record_timing=False,
        extra_arguments=[FIGURE_FORMATS],
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_execute=before_cell,
        on_cell_executed=after_cell,
    )
    # The kernel's own messages are of interest only if it dies; what cells print arrives by another way.
    with tempfile.TemporaryFile("w+") as kernel_log:
        try:
            client.execute(env=kernel_environment(), stderr=kernel_log)
        except CellExecutionError as error:
            frames = _ANSI.sub("", error.traceback).rstrip()
            raise ChapterError(f"{_place(notebook, current)}\n  {error.ename}: {error.evalue}\n\n{frames}") from error
        except DeadKernelError as error:
            kernel_log.seek(0)
            message = f"the kernel died (out of memory?)\n{_TCP_WARNING.sub('', kernel_log.read())[-2000:]}"
            raise ChapterError(f"{_place(notebook, current)}\n  {message}".rstrip()) from error
        except (CellControlSignal, TimeoutError) as error:
            message = f"took longer than {cell_timeout:g} seconds (--timeout)"
            raise ChapterError(f"{_place(notebook, current)}\n  {message}") from error
    return to_bytes(notebook)


def _place(notebook: NotebookNode, index: int) -> str:
    """Name a cell as its reader knows it: by its number among the code cells, and by its first line."""
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: index + 1])
    lines = notebook.cells[index].source.strip().splitlines() or [""]
    return f"code cell {number}: {lines[0]}"


def _work(path: Path, cell_timeout: float, pipe: Connection) -> None:
    """The body of a worker process: None down the pipe for every cell, the Outcome in the end."""
    started = time.perf_counter()
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    content, error = None, ""
    try:
        content = execute(path, cell_timeout, on_cell=lambda: pipe.send(None))
    except ChapterError as failure:
        error = str(failure)
    except Exception:  # a defect of this tool or of its libraries: the other chapters still deserve to run
        error = f"the execution tool failed\n{traceback.format_exc()}"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, busy = time.perf_counter() - started, used.ru_utime + used.ru_stime
    pipe.send(Outcome(path, content, error, seconds, _peak_megabytes(), busy))


def _end_with_parent(pipe: Connection) -> None:
    """End this process once the other end of its pipe is closed: by a parent that stops, or by the parent's death.

    The kernel looks once a second whether its parent, this process, is there, and ends with it.
    """
    try:
        pipe.recv()  # nothing is ever sent this way
    except (EOFError, OSError):
        os._exit(1)


def _peak_megabytes() -> float:
    """Peak resident memory of the largest ended child process: in a worker, of its kernel."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6  # macOS counts bytes, Linux kibibytes


# --- all chapters ---------------------------------------------------------------------------------------------------


def run(paths: Sequence[Path], workers: int, cell_timeout: float, bar: tqdm) -> Iterator[Outcome]:
    """Run chapters, `workers` at a time, started in the given order; yield each outcome as soon as there is one.

    Args:
        paths: the notebooks.
        workers: how many run at a time.
        cell_timeout: seconds that one cell may take.
        bar: counts cells, and names the chapters that are running.
    """
    # spawn: the bar keeps a thread of its own, and forking a process that has threads is not safe.
    context = multiprocessing.get_context("spawn")
    waiting = list(paths)
    running: dict[Connection, tuple[Path, SpawnProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                path = waiting.pop(0)
                here, there = context.Pipe()  # both ways: each side sees the other's end
                process = context.Process(target=_work, args=(path, cell_timeout, there), daemon=True)
                process.start()
                there.close()  # so that the end of the process is the end of the pipe
                running[here] = path, process
            bar.set_postfix_str(", ".join(path.stem for path, _ in running.values()))
            for pipe in wait(list(running)):
                assert isinstance(pipe, Connection)
                path, process = running[pipe]
                outcome = _receive(pipe, path)
                if outcome is None:
                    bar.update()
                    continue
                process.join()
                pipe.close()
                del running[pipe]
                yield outcome
    finally:
        for pipe in running:
            assert isinstance(pipe, Connection)
            pipe.close()
        for _, unfinished in running.values():
            unfinished.join()


def _receive(pipe: Connection, path: Path) -> Outcome | None:
    """The worker's next message: None after a cell, an Outcome in the end, also if the worker died without a word."""
    try:
        message: Outcome | None = pipe.recv()
    except (EOFError, ConnectionResetError):
        return Outcome(path, None, "its process was ended from outside (out of memory?)", 0.0, 0.0)
    return message


def settle(outcome: Outcome, check: bool, max_seconds: float | None, max_megabytes: float | None) -> tuple[str, str]:
    """Store a chapter's new file, unless it failed or this is only a check.

    Returns:
        A word for the table, and a complaint: empty if all is well.
    """
    if outcome.content is None:
        return "failed", outcome.error
    if check:
        changed = outcome.path.read_bytes() != outcome.content
        state, complaint = ("would change", "executing it changes the file") if changed else ("unchanged", "")
    else:
        state, complaint = ("written" if replace_file(outcome.path, outcome.content) else "unchanged"), ""
    if max_seconds is not None and outcome.seconds > max_seconds:
        complaint = complaint or f"took {outcome.seconds:.1f} seconds, allowed are {max_seconds:g} (--max-seconds)"
    if max_megabytes is not None and outcome.megabytes > max_megabytes:
        complaint = complaint or f"took {outcome.megabytes:.0f} MB, allowed are {max_megabytes:g} (--max-memory)"
    return state, complaint


# --- the command line -----------------------------------------------------------------------------------------------


def select(names: Sequence[str], known: Sequence[Path]) -> list[Path]:
    """The notebooks that are meant: all of the book's, or those given as chapter names or as paths.

    Args:
        names: chapter names ("fast_weights") or paths of notebooks; empty for the whole book.
        known: the book's notebooks.

    Raises:
        UsageError: a name is no chapter and no notebook file.
    """
    by_name = {path.stem: path for path in known}
    chosen = []
    for name in names:
        path = by_name.get(name, Path(name).resolve())
        if path.suffix != ".ipynb" or not path.is_file():
            raise UsageError(f"'{name}' is no notebook and none of the chapters: {', '.join(by_name) or '(none)'}")
        chosen.append(path)
    return list(dict.fromkeys(chosen if names else known))


def count_cells(path: Path) -> int:
    """How many cells of a notebook will be executed.

    Raises:
        UsageError: the file holds no notebook.
    """
    try:
        return sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in read(path).cells)
    except (ValueError, nbformat.ValidationError) as error:
        raise UsageError(f"'{path}' holds no notebook: {error!s:.200}") from error


def default_workers() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _positive(kind: Callable[[str], float], noun: str) -> Callable[[str], float]:
    """An argparse type: a positive number of a kind."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"expected a positive {noun}, got '{text}'")
        return value

    return parse


_CHECK_HELP = "write no chapter; fail if one would change (files that a notebook itself writes are not guarded)"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.execute", description="Execute chapters in place.")
    count, number = _positive(int, "whole number"), _positive(float, "number")
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="a chapter's name or a path; default: all")
    parser.add_argument("--workers", type=count, default=default_workers(), help="chapters at a time (one a core)")
    parser.add_argument("--timeout", type=number, default=600, metavar="SECONDS", help="for one cell (%(default)s)")
    parser.add_argument("--check", action="store_true", help=_CHECK_HELP)
    parser.add_argument("--max-seconds", type=number, metavar="SECONDS", help="fail if a chapter takes longer")
    parser.add_argument("--max-memory", type=number, metavar="MB", help="fail if a chapter's kernel takes more")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0, 1 if a chapter failed, would change or went over a limit, 2 for arguments that make no sense.
    """
    options = _parse(arguments)
    try:
        paths = select(options.chapters, [] if _are_paths(options.chapters) else book_notebooks())
        cells = sum(map(count_cells, paths))
    except (TocError, UsageError) as error:
        print(f"execute: {error}", file=sys.stderr)
        return 2

    rows, complaints = {}, {}
    with tqdm(total=cells, unit="cell", dynamic_ncols=True, disable=None) as bar:
        for outcome in run(paths, int(options.workers), options.timeout, bar):
            state, complaint = settle(outcome, options.check, options.max_seconds, options.max_memory)
            rows[outcome.path] = f"{outcome.path.stem:<28}{outcome.seconds:8.1f} s{outcome.megabytes:8.0f} MB  {state}"
            if complaint:
                complaints[outcome.path] = complaint
                bar.write(f"execute: {outcome.path.stem}: {complaint}\n", file=sys.stderr)

    print("\n".join(rows[path] for path in paths if path in rows))
    if complaints:
        print(f"execute: {len(complaints)} of {len(paths)}: {', '.join(p.stem for p in complaints)}", file=sys.stderr)
    return 1 if complaints else 0


def _are_paths(names: Sequence[str]) -> bool:
    """Whether only files are named: those run whatever state the table of contents is in."""
    return bool(names) and all(name.endswith(".ipynb") for name in names)


def _terminate(number: int, frame: object) -> None:
    """What SIGTERM does; once, so that a second one does not cut the cleaning up short."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminate)
    try:
        sys.exit(main())
    except Terminated:
        print("execute: stopped by SIGTERM; chapters that had not run through keep their files", file=sys.stderr)
        sys.exit(128 + signal.SIGTERM)
    except KeyboardInterrupt:
        sys.exit(130)
