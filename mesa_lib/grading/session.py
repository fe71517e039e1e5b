"""A worker and the conversation with it: cells in, calls in, values out, each against a clock."""

import contextlib
import json
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mesa_lib.assignments.cases import MistakeError, changed_arguments, received
from mesa_lib.assignments.values import NotWrittenError, UnreadableValueError, pack, unpack
from mesa_lib.grading.sandbox import GraderError, Sandbox
from mesa_lib.grading.source import Limits
from mesa_lib.grading.worker import LENGTHS

START_SECONDS = 60.0
"""For the sandbox and the interpreter to start, on a busy machine."""

GRACE_SECONDS = 1.0
"""Between the worker's own clock and the grader's, which ends the worker."""

MOST_ANSWER = 2 * 64 * 2**20
MOST_TIMEOUTS = 2
"""So many calls of one function may run out of time; after them it is not called again."""


class Cell(NamedTuple):
    """A cell to run: its number in the notebook, its source, and whether answers can do without it."""

    number: int
    source: str
    optional: bool = False


class CrashError(Exception):
    """The worker is gone: it ended itself, ran out of time, or was ended for its answer's size."""


class TimeIsUpError(Exception):
    """A cell or a call took too long; the worker lives."""


@dataclass
class Worker:
    """One process in a sandbox.

    Attributes:
        sandbox: how it is started.
        library: the folder that holds the copy of mesa_lib.
        limits: what it may use.
        names: the functions and variables that will be asked for.
        secrets: paths that it must not be able to read.
        job: which of the jobs at a time this is; if another grader has its user, the next free one's.
        readable: the secrets that it can read all the same; known once it has started.

    Raises:
        GraderError: it does not start, or does not answer.
        OSError: the machine has no room for it.
    """

    sandbox: Sandbox
    library: Path
    limits: Limits
    names: Sequence[str]
    secrets: Sequence[Path] = ()
    job: int = 0
    readable: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="mesa-grading-"))
        self._place.chmod(0o755)
        box = self._place / "box"
        box.mkdir(mode=0o700)
        self.job, self._user = self.sandbox.claim(self.job)
        self.sandbox.give(box, self.job)
        self.sandbox.program(self._place)
        command, program, library = self.sandbox.command(box, self.library, self.job, self.limits.file_mb)
        settings = {"limits": asdict(self.limits), "library": library, "names": list(self.names)}
        self._errors = self._place / "errors.txt"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, program, json.dumps(settings)],
                cwd=box, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests: queue.Queue[bytes | None] = queue.Queue()
        self._answers: queue.Queue[tuple[dict[str, Any], bytes, bytes] | None] = queue.Queue()
        talk = threading.Thread(
            target=_talk, args=(self._process.stdin, self._process.stdout, self._requests, self._answers), daemon=True
        )
        talk.start()
        try:
            self.readable = self._ask({"op": "probe"}, [str(path) for path in self.secrets], START_SECONDS)[1]
        except (CrashError, MistakeError, NotWrittenError, TimeIsUpError) as error:
            said = self._errors.read_text(encoding="utf-8", errors="replace").strip()[-800:]
            self.close()
            place = f"the sandbox {self.sandbox.kind!r} with {self.sandbox.python}"
            raise GraderError(f"the worker did not start in {place} ({error}): {said}") from error

    def run(self, cell: int, source: str) -> None:
        """Run a cell.

        Raises:
            MistakeError: it raised an error; the text says which.
            TimeIsUpError: it took too long.
            CrashError: the worker is gone.
        """
        self._ask({"op": "run", "cell": cell}, source, self.limits.cell_seconds)

    def call(self, name: str, arguments: Sequence[object], torch: bool, strict: bool) -> Any:
        """Call a function; errors as for `run`, and as for `Student.call`."""
        reply, value = self._ask(
            {"op": "call", "name": name, "torch": torch}, list(arguments), self.limits.call_seconds
        )
        if strict and reply.get("changed"):
            raise changed_arguments(name)
        return received(name, value)

    def get(self, name: str) -> Any:
        """The value of a variable."""
        value = self._ask({"op": "get", "name": name}, None, self.limits.call_seconds)[1]
        return received(name, value, called=False)

    def close(self) -> None:
        """End the worker, whatever it started, and its folder."""
        self.sandbox.end(self._process, self.job)
        if self._user is not None:
            self._user.close()
        self._requests.put(None)
        shutil.rmtree(self._place, ignore_errors=True)

    def _ask(self, header: dict[str, Any], value: object, seconds: float) -> tuple[dict[str, Any], Any]:
        """Send a message and return the answer: its header and its value."""
        text = json.dumps({**header, "seconds": seconds}).encode()
        tree, arrays = pack(value)
        self._requests.put(LENGTHS.pack(len(text), len(tree), len(arrays)) + text + tree + arrays)
        try:
            answer = self._answers.get(timeout=seconds + GRACE_SECONDS)
        except queue.Empty:
            raise CrashError(f"no answer within {seconds:g} seconds") from None
        if answer is None:
            raise CrashError("the process ended: a crash, too much memory or processor time, or os._exit")
        reply = answer[0]
        name = str(header.get("name", ""))
        status = reply.get("status")
        if status == "not written":
            raise NotWrittenError(name)
        if status == "time":
            raise TimeIsUpError(f"not finished within {seconds:g} seconds: does a loop never end?")
        if status != "ok":
            raise MistakeError(str(reply.get("text", "no answer"))[:400])
        try:
            return reply, unpack(*answer[1:])
        except UnreadableValueError as error:
            raise MistakeError(f"{name}: {error}") from None


@dataclass
class Session:
    """A submission's workers, one after the other: a cell or a call that kills one costs only itself.

    Optional cells, which plot what the answers compute, run only if the student's code misses a name without them.

    Attributes:
        start: starts a worker.
        cells: the code cells, in order.
        limits: what the submission may use.
        notes: what happened to the cells, for the student to read.
    """

    start: Any
    cells: Sequence[Cell]
    limits: Limits
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._worker: Worker | None = None
        self._whole = not any(cell.optional for cell in self.cells)
        self._skipped: set[Cell] = set()
        self._timeouts: dict[str, int] = {}
        self._end = time.monotonic() + self.limits.submission_seconds

    def call(self, name: str, arguments: Sequence[object], torch: bool, strict: bool) -> Any:
        """See `Student.call`; the notebook has run before."""
        if time.monotonic() > self._end:
            raise MistakeError(self._over())
        if self._timeouts.get(name, 0) >= MOST_TIMEOUTS:
            raise MistakeError(f"{name} was not called again: it did not finish {MOST_TIMEOUTS} times")
        try:
            return self._living().call(name, arguments, torch, strict)
        except MistakeError as error:
            if self._whole or "raised NameError" not in str(error):
                raise
            self._run_whole()
            return self.call(name, arguments, torch, strict)
        except TimeIsUpError as error:
            self._timeouts[name] = self._timeouts.get(name, 0) + 1
            raise MistakeError(f"{name}: {error}") from None
        except CrashError as error:
            self._timeouts[name] = self._timeouts.get(name, 0) + 1
            self._drop()
            raise MistakeError(f"{name}: {error}") from None

    def get(self, name: str) -> Any:
        """See `Student.get`."""
        try:
            return self._living().get(name)
        except CrashError as error:
            self._drop()
            raise MistakeError(f"{name}: {error}") from None

    def close(self) -> None:
        """End the worker, if there is one."""
        self._drop()

    def readable(self) -> list[str]:
        """The secrets that the worker can read."""
        return self._living().readable

    def _living(self) -> Worker:
        """A worker in which the notebook has run, without the cells that kill workers."""
        while self._worker is None:
            if time.monotonic() > self._end:
                raise MistakeError(self._over())
            worker = self.start()
            self._worker = worker
            for cell in self.cells:
                if cell in self._skipped or (cell.optional and not self._whole):
                    continue
                try:
                    worker.run(cell.number, cell.source)
                except (MistakeError, TimeIsUpError) as error:
                    if not self._whole and str(error).startswith("NameError"):
                        self._run_whole()
                        break
                    self._note(f"cell {cell.number}: {error}")
                except NotWrittenError:
                    self._note(f"cell {cell.number}: not written yet")
                except CrashError as error:
                    self._note(f"cell {cell.number}: {error}; the other cells ran without it")
                    self._skipped.add(cell)
                    self._drop()
                    break
                if time.monotonic() > self._end:
                    self._note("the time of the whole notebook is over; its last cells did not run")
                    break
        return self._worker

    def _over(self) -> str:
        return f"the time of the whole notebook, {self.limits.submission_seconds:g} seconds, is over"

    def _run_whole(self) -> None:
        """From here on run every cell, from the first one."""
        self._whole = True
        self._drop()

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _drop(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


@dataclass(frozen=True)
class RemoteStudent:
    """A student's work in a worker, as a case sees it.

    Attributes:
        session: the submission's workers.
        variant: the choices of the variant.
        strict: whether a function may not change its arguments: in public cases.
    """

    session: Session
    variant: Mapping[str, str]
    strict: bool

    def call(self, function: str, *arguments: object, torch: bool = False) -> Any:
        """See `Student.call`."""
        return self.session.call(function, arguments, torch, self.strict)

    def get(self, name: str) -> Any:
        """See `Student.get`."""
        return self.session.get(name)


def _talk(
    requests: BinaryIO,
    answers: BinaryIO,
    inbox: "queue.Queue[bytes | None]",
    outbox: "queue.Queue[tuple[dict[str, Any], bytes, bytes] | None]",
) -> None:
    """Write each message and read its answer, in a thread that may hang without anybody waiting for it."""
    with contextlib.suppress(OSError, ValueError), requests, answers:
        while (message := inbox.get()) is not None:
            requests.write(message)
            requests.flush()
            lengths = answers.read(LENGTHS.size)
            if len(lengths) < LENGTHS.size or sum(LENGTHS.unpack(lengths)) > MOST_ANSWER:
                break
            parts = [answers.read(length) for length in LENGTHS.unpack(lengths)]
            try:
                header = json.loads(parts[0])
            except (ValueError, RecursionError):
                break
            if not isinstance(header, dict):
                break
            outbox.put((header, parts[1], parts[2]))
    outbox.put(None)
