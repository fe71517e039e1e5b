"""Where students' code runs: three ways to keep it from everything but the values that it is sent.

- `bubblewrap`: its own file system (the interpreter, the copy of mesa_lib, an empty folder), no network, its own
  processes.
- `user`: another user, without any rights, for a container in which bubblewrap cannot run; the grader must be root. The
  network is not cut.
- `limits`: nothing but the limits on time, memory and processes. Code can read what the grader can read.

The limits hold in all three; the program that runs the code sets them on itself before the first cell.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

BUBBLEWRAP, USER, LIMITS = "bubblewrap", "user", "limits"
KINDS = (BUBBLEWRAP, USER, LIMITS)

FIRST_USER, MOST_JOBS = 65520, 14
"""Numbers between those that systemd hands out and `nobody`; each job has its own, so no job can end another's. Graders
at work on one machine at the same time share the row of them, and take turns (`claim_user`)."""

WORKER = Path(__file__).with_name("worker.py")
ENVIRONMENT = {
    "HOME": "/box",
    "LANG": "C.UTF-8",
    "LOGNAME": "student",
    "MESA_LIB_GRADING": "1",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/bin:/bin",
    "TQDM_DISABLE": "1",
    "USER": "student",
}
_SETPRIV = ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]


class GraderError(RuntimeError):
    """Something of the grader's is broken. Nobody loses points for it."""


@dataclass(frozen=True)
class Sandbox:
    """One way to run students' code.

    Attributes:
        kind: one of `KINDS`.
        python: the interpreter; the user `nobody` must be able to read it in the kind "user".
    """

    kind: str
    python: Path = Path(sys.executable)

    def command(self, box: Path, library: Path, job: int, file_mb: int) -> tuple[list[str], str, str]:
        """The command that starts the worker, and where it finds its program and its library.

        Args:
            box: an empty folder of the worker's own; bubblewrap gives it one inside.
            library: the folder that holds the copy of mesa_lib.
            job: 0, 1, ...: which of the jobs at a time this is.
            file_mb: size of the folder it may write into.

        Returns:
            The command, the path of the worker's program and that of its library, as the worker sees them.
        """
        python = [str(self.python), "-I"]
        user = [f"--reuid={FIRST_USER + job}", f"--regid={FIRST_USER + job}", *_SETPRIV]
        if self.kind == BUBBLEWRAP:
            inside = ["setpriv", *user] if os.geteuid() == 0 else []
            return [*self._bubblewrap(library, file_mb), "--", *inside, *python], "/mesa/worker.py", "/mesa/library"
        environment = [f"{name}={value}" for name, value in ENVIRONMENT.items() if name != "HOME"]
        clean = ["env", "-i", f"HOME={box}", *environment]
        start = ["setpriv", *user] if self.kind == USER else []
        return [*start, *clean, *python], str(box.parent / WORKER.name), str(library)

    def claim(self, job: int) -> tuple[int, IO[bytes] | None]:
        """The place in the row of users that a job shall have, and what to close when it is over; see `claim_user`."""
        takes_user = self.kind == USER or (self.kind == BUBBLEWRAP and os.geteuid() == 0)
        return claim_user(job) if takes_user else (job, None)

    def program(self, place: Path) -> None:
        """Put the worker's program where it can read it; bubblewrap lays it into its own file system."""
        if self.kind != BUBBLEWRAP:
            (place / WORKER.name).write_bytes(WORKER.read_bytes())
            (place / WORKER.name).chmod(0o644)

    def give(self, box: Path, job: int) -> None:
        """Make the worker's folder the worker's own."""
        if self.kind == USER:
            os.chown(box, FIRST_USER + job, FIRST_USER + job)

    def end(self, process: "subprocess.Popen[bytes]", job: int) -> None:
        """End the worker and whatever it started."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
        if self.kind == USER:
            # Whatever left the worker's group is the only thing that this user runs.
            user = [f"--reuid={FIRST_USER + job}", f"--regid={FIRST_USER + job}", "--clear-groups"]
            subprocess.run(["setpriv", *user, "sh", "-c", "kill -9 -1"], check=False, stderr=subprocess.DEVNULL)
        process.wait()

    def _bubblewrap(self, library: Path, file_mb: int) -> list[str]:
        """Bubblewrap's part of the command."""
        # A user of its own would need the namespace that only bubblewrap's unprivileged mode has; root drops its rights
        # with setpriv instead, so that the limit on processes counts.
        root = os.geteuid() == 0
        names = ["ipc", "pid", "net", "uts"] if root else ["user", "ipc", "pid", "net", "uts"]
        command = ["bwrap", *(f"--unshare-{name}" for name in names), "--unshare-cgroup-try"]
        command += ["--die-with-parent", "--new-session", "--clearenv"]
        command += [word for pair in ENVIRONMENT.items() for word in ("--setenv", *pair)]
        if root:
            command += [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
        command += [*_system_mounts(), "--proc", "/proc", "--dev", "/dev"]
        for folder in ("/tmp", "/box", "/dev/shm"):
            command += ["--perms", "1777", *(["--size", str(file_mb * 2**20)] if _knows("--size") else [])]
            command += ["--tmpfs", folder]
        # After the empty /tmp: an interpreter may lie below it.
        command += [word for path in readable_paths(self.python) for word in _bind(path, path)]
        # An installed mesa_lib would be a second, whole copy.
        for installed in _installed_copies(self.python):
            command += ["--ro-bind", str(library / "mesa_lib"), str(installed)]
        command += ["--perms", "0755", "--dir", "/mesa"]
        command += ["--ro-bind", str(WORKER), "/mesa/worker.py", "--ro-bind", str(library), "/mesa/library"]
        return [*command, "--chdir", "/box"]


def claim_user(job: int) -> tuple[int, IO[bytes]]:
    """Take one of the users for a while: the job's own, or the next that no other grader on this machine has taken.

    Whoever cleans up after a user ends all that runs as it, another grader's students among them.

    Args:
        job: 0, 1, ...: which of the jobs at a time this is.

    Returns:
        The user's place in the row, and a file whose closing gives it back. So does the end of this process.

    Raises:
        GraderError: all users are taken.
    """
    import fcntl  # not on Windows, where nothing is graded

    for place in (job, *(other for other in range(MOST_JOBS) if other != job)):
        name = f"mesa-grading-user-{FIRST_USER + place}.lock"
        lock = Path(tempfile.gettempdir(), name).open("wb")  # noqa: SIM115, open while the user is taken
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return place, lock
    raise GraderError(f"all {MOST_JOBS} users of the sandboxes are taken: is another grader at work on this machine?")


def choose_sandbox(kind: str | None = None, python: Path | None = None) -> tuple[Sandbox, list[str]]:
    """The strongest sandbox that this machine has, or the one that is asked for.

    Args:
        kind: one of `KINDS`; None chooses.
        python: the interpreter; by default the one that runs this.

    Returns:
        The sandbox, and warnings: what it does not keep out.

    Raises:
        GraderError: the kind that is asked for does not work here.
    """
    if os.name == "nt":
        raise GraderError("grading needs Linux or macOS; on Windows use WSL, or Gradescope")
    interpreter = Path(sys.executable) if python is None else python
    reasons = {BUBBLEWRAP: _why_no_bubblewrap(), USER: _why_no_user()}
    if kind is not None:
        if reasons.get(kind):
            raise GraderError(f"the sandbox {kind!r} does not work here: {reasons[kind]}")
        chosen = kind
    else:
        chosen = next((name for name in (BUBBLEWRAP, USER) if not reasons[name]), LIMITS)
    warnings = []
    if chosen == USER:
        warnings.append(f"no bubblewrap ({reasons[BUBBLEWRAP] or 'not asked for'}): students' code can use the network")
    if chosen == LIMITS:
        warnings.append(
            "NO SANDBOX: students' code runs as you, and can read and change every file that you can, the hidden cases "
            f"and the grades among them. bubblewrap: {reasons[BUBBLEWRAP] or 'not asked for'}; "
            f"another user: {reasons[USER] or 'not asked for'}. Grade in a machine made for it, or use Linux."
        )
    return Sandbox(chosen, interpreter), warnings


def readable_paths(python: Path) -> list[Path]:
    """What an interpreter needs of the file system: its environment and the installation behind it."""
    prefix, base, real = _prefixes(python)
    paths = [path for path in dict.fromkeys([base, prefix, real]) if not path.is_relative_to("/usr")]
    return [path for path in paths if not any(path != other and path.is_relative_to(other) for other in paths)]


@functools.cache
def _prefixes(python: Path) -> tuple[Path, Path, Path]:
    """`sys.prefix` and `sys.base_prefix` of an interpreter, and the installation that its link leads to."""
    program = "import sys; print(sys.prefix, sys.base_prefix, sep='\\n')"
    answer = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise GraderError(f"{python} does not run: {answer.stderr[-300:]}")
    prefix, base = answer.stdout.split("\n")[:2]
    return Path(prefix), Path(base), python.resolve().parent.parent


@functools.cache
def _installed_copies(python: Path) -> list[Path]:
    """Where an interpreter would find an installed mesa_lib."""
    program = "import site, sys; print(*site.getsitepackages(), sep='\\n')"
    answer = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True)
    return [copy for line in answer.stdout.splitlines() if (copy := Path(line) / "mesa_lib").is_dir()]


def _system_mounts() -> list[str]:
    """The read-only system: /usr, what links into it, and the loader's and the alternatives' tables."""
    mounts = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib32", "lib64", "sbin"):
        path = Path("/") / name
        if path.is_symlink():
            mounts += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            mounts += ["--ro-bind", str(path), str(path)]
    mounts += ["--perms", "0755", "--dir", "/etc"]
    for name in ("ld.so.cache", "alternatives", "localtime"):
        mounts += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return mounts


def _bind(source: Path, target: Path) -> list[str]:
    """A read-only folder, with parents that everybody may pass."""
    parents = [word for parent in reversed(target.parents[:-1]) for word in ("--perms", "0755", "--dir", str(parent))]
    return [*parents, "--ro-bind", str(source), str(target)]


@functools.cache
def _why_no_bubblewrap() -> str:
    """Why bubblewrap cannot be used, or nothing."""
    if shutil.which("bwrap") is None:
        return "not installed (Debian, Ubuntu: apt-get install bubblewrap)"
    trial = Sandbox(BUBBLEWRAP).command(Path("/"), WORKER.parent, 0, 1)[0]
    trial = [*trial[: trial.index("--") + 1], "/bin/true"]
    # The trial has no copy of mesa_lib to lay over an installed one.
    done = subprocess.run(_without_overlays(trial), capture_output=True, text=True, check=False)
    return f"it fails: {done.stderr.strip()[-200:]}" if done.returncode else ""


def _without_overlays(command: Sequence[str]) -> list[str]:
    words = list(command)
    while str(WORKER.parent / "mesa_lib") in words:
        at = words.index(str(WORKER.parent / "mesa_lib"))
        del words[at - 1 : at + 2]
    return words


def _why_no_user() -> str:
    """Why another user cannot be used, or nothing."""
    if not sys.platform.startswith("linux"):
        return "only on Linux"
    if os.geteuid() != 0:
        return "the grader is not root"
    return "" if shutil.which("setpriv") else "setpriv is not installed (util-linux)"


@functools.cache
def _knows(option: str) -> bool:
    """Whether this bubblewrap knows an option."""
    return option in subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout
