"""A program: trainings that are killed, starved, watched by two, and sent to other processes and to a Dask cluster.

Called as `python ordeals.py FOLDER`; prints what happened as JSON, which test_ordeals.py judges. It is a process of its
own, since it forks, and since clusters leave threads behind.
"""

import asyncio
import json
import os
import random
import resource
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import torch
from distributed import Client, LocalCluster, Worker

from mesa_lib.experiments import Job, Plan, RunError, experiment, override, run_all, run_job

Arm = Callable[[], None]

SEEDS = (0, 1, 2, 3)
SETTINGS = ["num_steps=60", "batch_size=16", "record_every=20", "num_tasks=200"]
PARTS = override(experiment("figure-2").parts("smoke"), SETTINGS)


def plan(folder: Path) -> Plan:
    return Plan(experiment("figure-2"), "smoke", PARTS, SEEDS, folder, seconds=0.001)


def job(folder: Path, seed: int = 0) -> Job:
    for name in (".locks", "one-layer"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Job(str(folder), "one-layer", (seed,), PARTS["one-layer"], seconds=0.001)


def numbers(folder: Path) -> dict[str, str]:
    """What the finished seeds say, but for how they were made, and the bytes of their weights."""
    found = {path.name: path.read_bytes().hex() for path in folder.glob("*/seed-*.safetensors")}
    for path in folder.glob("*/seed-*.json"):
        content = json.loads(path.read_text())
        del content["made_by"]
        found[path.name] = json.dumps(content)
    return found


def start(work: Callable[[], str], arm: Arm | None = None, told: Path | None = None) -> int:
    """Fork a process that does some work, with a trap set; it says in a file how the work ended."""
    pid = os.fork()
    if pid:
        return pid
    said, code = "", 1
    try:
        with (told or Path(os.devnull)).open("w") as file:  # opened before the trap may take the right to do so
            if arm is not None:
                arm()
            try:
                said, code = work(), 0
            except RunError as error:
                said, code = str(error), 3
            except BaseException as error:
                said = repr(error)
            file.write(said)
    finally:
        os._exit(code)  # whatever happens, a child does not go on with its parent's work


def end(pid: int) -> int:
    """How a process ended: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kills_at_random_moments(top: Path, reference: dict[str, str], duration: float) -> dict[str, object]:
    """Kill 20 times, going on each time; a training that ends before it can be killed is compared, and begun again."""
    chance = random.Random(10)
    killed, kept, wrong, lives = 0, 0, 0, 0
    while killed < 20:
        folder = top / f"life-{lives}"
        lives += 1
        while killed < 20:
            pid = start(lambda folder=folder: run_job(job(folder)))
            time.sleep(chance.uniform(0, duration / 2))
            os.kill(pid, signal.SIGKILL)
            if end(pid) == 0:
                break
            killed += 1
            kept += (folder / "one-layer" / "seed-0.checkpoint").exists()
        end(start(lambda folder=folder: run_job(job(folder))))
        wrong += {name: numbers(folder).get(name) for name in reference} != reference
    return {"killed": killed, "with a checkpoint": kept, "lives": lives, "wrong": wrong}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before_rename(count: int) -> Arm:
    """Die between the write and the rename of the count-th file."""

    def arm() -> None:
        seen = [0]
        rename = Path.replace

        def replaced(self: Path, target: Path) -> Path:
            seen[0] += 1
            if seen[0] == count:
                die()
            return rename(self, target)

        Path.replace = replaced

    return arm


def half_written(count: int) -> Arm:
    """Die when half of the bytes of the count-th file are written."""

    def arm() -> None:
        seen = [0]
        force = os.fsync

        def forced(handle: int) -> None:
            seen[0] += stat.S_ISREG(os.fstat(handle).st_mode)
            if seen[0] == count:
                os.ftruncate(handle, os.fstat(handle).st_size // 2)
                die()
            force(handle)

        os.fsync = forced

    return arm


def traps(top: Path, reference: dict[str, str]) -> dict[str, object]:
    """Die at chosen places between the bytes, go on, and compare: "died there, left a new file, ended alike"."""
    found = {}
    # Of 60 checkpoints and two results: an early one, a late one, the weights, the numbers.
    for name, trap in (("rename", before_rename), ("half", half_written)):
        for count in (1, 30, 61, 62):
            folder = top / f"{name}-{count}"
            died = end(start(lambda folder=folder: run_job(job(folder)), trap(count))) == -signal.SIGKILL
            left = len(list(folder.glob("*/*.new")))
            again = end(start(lambda folder=folder: run_job(job(folder))))
            left_over = len([p for p in folder.glob("*/*") if p.suffix in (".new", ".checkpoint")])
            alike = numbers(folder) == {key: reference[key] for key in numbers(folder)} and len(numbers(folder)) == 2
            found[f"{name} {count}"] = [died, left, again, left_over, alike]
    return found


def starved(top: Path, reference: dict[str, str]) -> dict[str, object]:
    """A file that may not grow, then a device that is full, then room: what is said, and what comes out."""
    folder, told = top / "starved", top / "starved.txt"
    first = end(start(lambda: run_job(job(folder)), before_rename(20)))

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))

    codes, words = [], []
    checkpoint = folder / "one-layer" / "seed-0.checkpoint"
    before = checkpoint.read_bytes()
    codes.append(end(start(lambda: run_job(job(folder)), no_room, told)))
    words.append(told.read_text() if told.stat().st_size else "nothing, no room for words")
    checkpoint.with_name("seed-0.checkpoint.new").unlink(missing_ok=True)
    checkpoint.with_name("seed-0.checkpoint.new").symlink_to("/dev/full")
    codes.append(end(start(lambda: run_job(job(folder)), None, told)))
    words.append(told.read_text())
    untouched = checkpoint.read_bytes() == before
    codes.append(end(start(lambda: run_job(job(folder)))))
    alike = all(numbers(folder)[key] == reference[key] for key in ("seed-0.json", "seed-0.safetensors"))
    return {"first": first, "codes": codes, "words": words, "untouched": untouched, "alike": alike}


def forbidden(top: Path) -> dict[str, object]:
    """A folder that may be read and not written."""
    told = top / "forbidden.txt"

    def nobody() -> None:
        if os.getuid() == 0:
            os.setuid(65534)

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o555)
        code = end(start(lambda: str(list(run_all(plan(folder / "run")))), nobody, told))
        left = [path.name for path in folder.iterdir()]
        folder.chmod(0o755)
    return {"code": code, "words": told.read_text(), "left": left}


def two_at_once(top: Path, reference: dict[str, str]) -> dict[str, object]:
    """Two processes with the same training: one trains, the other waits and finds it done."""
    folder = top / "at-once"
    pids = [start(lambda: run_job(job(folder)), None, top / f"told-{number}") for number in (0, 1)]
    codes = [end(pid) for pid in pids]
    alike = all(numbers(folder)[key] == reference[key] for key in ("seed-0.json", "seed-0.safetensors"))
    return {"codes": codes, "said": sorted((top / f"told-{k}").read_text() for k in (0, 1)), "alike": alike}


def kill_when_busy(folder: Path, workers: list[int], killed: list[int]) -> None:
    """Kill one worker as soon as two trainings have kept a checkpoint."""
    for _ in range(20000):
        if len(list(folder.glob("*/*.checkpoint"))) >= 2:
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])
            return
        time.sleep(0.001)


def serve(address: Path) -> str:
    """Be a worker of the scheduler whose address will stand in a file."""
    while not address.exists():
        time.sleep(0.01)

    async def work() -> None:
        place = {"local_directory": str(address.parent), "dashboard": False}
        async with Worker(address.read_text(), nthreads=1, **place) as worker:
            await worker.finished()

    asyncio.run(work())
    return "served"


def on_a_cluster(top: Path, reference: dict[str, str]) -> dict[str, object]:
    """A scheduler and two workers, which are processes that know everything already; one of them is killed."""
    folder, address, killed = top / "dask", top / "address", []
    workers = [start(lambda: serve(address)) for _ in range(2)]
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        unfinished = address.with_name("address.new")
        unfinished.write_text(cluster.scheduler_address)
        unfinished.rename(address)
        with Client(cluster, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        killer = threading.Thread(target=kill_when_busy, args=(folder, workers, killed))
        killer.start()
        ended = [(one.seeds[0], said) for one, said in run_all(plan(folder), scheduler=cluster.scheduler_address)]
        killer.join()
    for pid in workers:
        if pid not in killed:
            os.kill(pid, signal.SIGKILL)
        end(pid)
    results = [json.loads(path.read_text())["made_by"] for path in sorted(folder.glob("*/seed-*.json"))]
    left = [path.name for path in folder.glob("*/*") if path.suffix in (".checkpoint", ".new")]
    return {
        "ended": sorted(ended),
        "killed": len(killed),
        "sessions": sum(len(one["sessions"]) for one in results),
        "alike": numbers(folder) == reference,
        "left": left,
    }


def loky_workers() -> list[psutil.Process]:
    """The processes that train for `--jobs`."""
    return [one for one in psutil.Process().children(recursive=True) if "popen_loky" in " ".join(one.cmdline())]


def kill_process_when_busy(folder: Path, killed: list[int]) -> None:
    """`kill_when_busy`, of processes that are known only once they are there."""
    for _ in range(20000):
        if len(list(folder.glob("*/*.checkpoint"))) >= 2:
            kill_when_busy(folder, [one.pid for one in loky_workers()], killed)
            return
        time.sleep(0.001)


def with_a_lost_process(top: Path, reference: dict[str, str]) -> dict[str, object]:
    """Two processes, one of which is killed: what is said, what is still at work then, and what a second call does."""
    folder, killed, first, words = top / "lost", [], [], ""
    killer = threading.Thread(target=kill_process_when_busy, args=(folder, killed))
    killer.start()
    try:
        first += [said for _, said in run_all(plan(folder), workers=2)]
    except RunError as error:
        words = str(error)
    killer.join()
    _, alive = psutil.wait_procs(loky_workers(), timeout=20)
    finished = len(list(folder.glob("*/seed-*.json")))
    again = [said for _, said in run_all(plan(folder))]
    results = [json.loads(path.read_text())["made_by"] for path in sorted(folder.glob("*/seed-*.json"))]
    return {
        "killed": len(killed),
        "first": first,
        "words": words,
        "finished": finished,
        "alive": len(alive),
        "again": again,
        "sessions": sum(len(one["sessions"]) for one in results),
        "alike": numbers(folder) == reference,
        "left": [path.name for path in folder.glob("*/*") if path.suffix in (".checkpoint", ".new")],
    }


def main(top: Path) -> None:
    torch.set_num_threads(1)
    list(run_all(plan(top / "alone")))
    reference = numbers(top / "alone")
    began = time.monotonic()
    end(start(lambda: run_job(job(top / "timed"))))
    duration = time.monotonic() - began
    report = {
        "moments": kills_at_random_moments(top, {k: v for k, v in reference.items() if "seed-0" in k}, duration),
        "traps": traps(top, reference),
        "starved": starved(top, reference),
        "forbidden": forbidden(top),
        "two at once": two_at_once(top, reference),
        "cluster": on_a_cluster(top, reference),  # the last that forks: from here on there are threads
    }
    said = [(one.seeds[0], words) for one, words in run_all(plan(top / "two"), workers=2)]
    report["two processes"] = {"ended": sorted(said), "alike": numbers(top / "two") == reference}
    report["a lost process"] = with_a_lost_process(top, reference)
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
