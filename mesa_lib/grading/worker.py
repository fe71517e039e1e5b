"""The program inside the sandbox: runs a notebook's cells one by one, then answers calls with values.

It is started as a file of its own, knows no case and reads nothing but its standard input. A message is three lengths,
a JSON header, and a value as `mesa_lib.assignments.values` packs it; so is an answer.
"""

import json
import os
import signal
import struct
import sys
import types
from collections.abc import Callable
from typing import Any, BinaryIO

LENGTHS = struct.Struct("<III")
CELL_MAGICS_THAT_RUN = ("capture", "prun", "time", "timeit")


class TimeIsUp(BaseException):
    """Raised in students' code when its time is over; no `except Exception` catches it."""


class Notebook:
    """The state that cells leave behind.

    Attributes:
        namespace: what the cells see as their globals.
        versions: every object that a graded name has stood for, the newest last.
    """

    def __init__(self, names: list[str]) -> None:
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.namespace: dict[str, Any] = vars(module)
        self.namespace.update(get_ipython=lambda: Shell(self.namespace), display=lambda *things, **named: None)
        self.versions: dict[str, list[Any]] = {name: [] for name in names}

    def run(self, source: str, label: str) -> None:
        """Run a cell, magics and all; remember what the graded names stand for after it."""
        try:
            exec(_compiled(source, label), self.namespace)
        finally:
            for name, known in self.versions.items():
                value = self.namespace.get(name, ...)
                if value is not ... and (not known or known[-1] is not value):
                    known.append(value)

    def call(self, name: str, arguments: list[Any]) -> Any:
        """What the newest version of a function that is written returns.

        A copied cell may leave an unwritten version below the written one.
        """
        for function in reversed(self._written(name)):
            if not callable(function):
                raise TypeError(f"{name} is a value of type {type(function).__name__}, not a function")
            try:
                return function(*arguments)
            except NotImplementedError:
                continue
        raise NotImplementedError(name)

    def get(self, name: str) -> Any:
        """The newest value of a variable."""
        return self._written(name)[-1]

    def _written(self, name: str) -> list[Any]:
        versions = self.versions.get(name, [])
        if not versions:
            raise NotImplementedError(name)
        return versions


class Shell:
    """What stands for IPython's shell: magics do nothing, and whoever patches it patches nothing."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        """Run the body of a cell whose magic only watches it."""
        if name in CELL_MAGICS_THAT_RUN:
            exec(_compiled(body, "<cell>"), self._namespace)

    def __getattr__(self, name: str) -> "Shell":
        """Itself, under every name."""
        return self

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Do nothing."""


def main() -> None:
    """Serve until the grader closes the channel."""
    settings = json.loads(sys.argv[1])
    requests, answers = _private_channel()
    _limit(settings["limits"])
    sys.path.insert(0, settings["library"])
    # Imported here: before this line nothing of mesa_lib can be found.
    from mesa_lib.assignments import cases, values

    notebook = Notebook(settings["names"])
    while (message := _receive(requests)) is not None:
        header, tree, arrays = message
        try:
            reply, value = _serve(notebook, header, values.unpack(tree, arrays), cases)
            packed = values.pack(value)
        except (NotImplementedError, values.NotWrittenError):
            reply, packed = {"status": "not written"}, values.pack(None)
        except values.UnreadableValueError as error:
            reply, packed = {"status": "raised", "text": f"{header.get('name')} gave {error}"}, values.pack(None)
        except TimeIsUp:
            reply, packed = {"status": "time"}, values.pack(None)
        except BaseException as error:
            reply, packed = {"status": "raised", "text": _in_words(header, error, cases)}, values.pack(None)
        _send(answers, reply, *packed)


def _serve(notebook: Notebook, header: dict[str, Any], value: Any, cases: Any) -> tuple[dict[str, Any], Any]:
    """The reply to one message, and its value."""
    if header["op"] == "probe":
        os.dup2(os.open(os.devnull, os.O_RDWR), 2)  # whatever starts, has started: from here on errors lead nowhere too
        return {"status": "ok"}, [path for path in value if _can_read(path)]
    with_time = _timed(header["seconds"])
    if header["op"] == "run":
        with_time(lambda: notebook.run(value, f"<cell {header['cell']}>"))
        return {"status": "ok"}, None
    if header["op"] == "get":
        return {"status": "ok"}, notebook.get(header["name"])
    from mesa_lib.assignments import values

    given = cases.as_tensors(value) if header["torch"] else value
    before = values.pack(value)
    result = with_time(lambda: notebook.call(header["name"], given))
    try:
        changed = not values.same(values.unpack(*before), values.copied(given))
    except values.UnreadableValueError:
        changed = True
    return {"status": "ok", "changed": changed}, result


def _timed(seconds: float) -> Callable[[Callable[[], Any]], Any]:
    """A caller that raises TimeIsUp in what it calls, after so many seconds; the grader has a harder clock."""

    def stop(signal_number: int, frame: Any) -> None:
        raise TimeIsUp

    def call(work: Callable[[], Any]) -> Any:
        if not hasattr(signal, "setitimer"):
            return work()
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    return call


def _compiled(source: str, label: str) -> Any:
    """The code of a cell; what is no Python goes through IPython first."""
    try:
        return compile(source, label, "exec")
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        plain = TransformerManager().transform_cell(source)  # type: ignore[no-untyped-call]
        return compile(plain, label, "exec")


def _in_words(header: dict[str, Any], error: BaseException, cases: Any) -> str:
    """A student's error in a line."""
    if header["op"] == "call":
        return str(cases.error_in(header["name"], error, lambda file: file.startswith("<cell")))
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}{': ' + lines[0][:200] if lines else ''}"


def _can_read(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            file.read(1)
    except IsADirectoryError:
        return os.access(path, os.R_OK)
    except OSError:
        return False
    return True


def _limit(limits: dict[str, float]) -> None:
    """Limit this process and all that it starts, for good."""
    try:
        import resource
    except ImportError:  # Windows
        return
    wanted = {
        "RLIMIT_AS": int(limits["memory_mb"] * 2**20),
        "RLIMIT_CPU": int(limits["submission_seconds"]) + 5,
        "RLIMIT_FSIZE": int(limits["file_mb"] * 2**20),
        "RLIMIT_NPROC": int(limits["processes"]),
        "RLIMIT_CORE": 0,
    }
    for name, most in wanted.items():
        kind = getattr(resource, name, None)
        if kind is not None:
            hard = resource.getrlimit(kind)[1]
            lowest = most if hard == resource.RLIM_INFINITY else min(most, hard)
            try:
                resource.setrlimit(kind, (lowest, lowest))
            except (OSError, ValueError):  # macOS refuses some
                continue
    try:  # Should memory run out all the same, the kernel ends this process first.
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        pass


def _private_channel() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the grader, moved off standard input and output, which lead nowhere from here on."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    return requests, answers


def _receive(file: BinaryIO) -> tuple[dict[str, Any], bytes, bytes] | None:
    lengths = file.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    header, tree, arrays = (file.read(length) for length in LENGTHS.unpack(lengths))
    return json.loads(header), tree, arrays


def _send(file: BinaryIO, header: dict[str, Any], tree: bytes, arrays: bytes) -> None:
    text = json.dumps(header).encode()
    file.write(LENGTHS.pack(len(text), len(tree), len(arrays)) + text + tree + arrays)
    file.flush()


if __name__ == "__main__":
    main()
