"""One training: from its last checkpoint on, to the same numbers however often it is interrupted."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from mesa_lib.experiments.files import (
    cannot_write,
    git_state,
    json_bytes,
    read_checkpoint,
    versions,
    write_checkpoint,
    write_tensors,
    write_whole,
)
from mesa_lib.experiments.measures import measure, plain_measures
from mesa_lib.experiments.settings import Settings, as_plain
from mesa_lib.training import TrainingRun, TrainingState, train

SECONDS_BETWEEN_CHECKPOINTS = 30.0
SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True)
class Job:
    """One training: a part of an experiment, from one seed, or from several that are trained together.

    Attributes:
        folder: of the run; where it runs on several machines, all see it under this path.
        part: of the experiment.
        seeds: of the training.
        settings: of the part.
        device: where to train.
        seconds: between two checkpoints.
    """

    folder: str
    part: str
    seeds: tuple[int, ...]
    settings: Settings
    device: str = "cpu"
    seconds: float = SECONDS_BETWEEN_CHECKPOINTS

    @property
    def name(self) -> str:
        """The part and its seeds, in words."""
        return f"{self.part}, {self._seeds.replace('-', ' ')}"

    @property
    def _seeds(self) -> str:
        if len(self.seeds) == 1:
            return f"seed-{self.seeds[0]}"
        return f"seeds-{self.seeds[0]}-to-{self.seeds[-1]}"

    @property
    def checkpoint(self) -> Path:
        """Where its state is kept."""
        return Path(self.folder, self.part, f"{self._seeds}.checkpoint")

    @property
    def lock(self) -> Path:
        """The lock that says that somebody is at it."""
        return Path(self.folder, ".locks", f"{self.part}-{self._seeds}.lock")

    def result(self, seed: int) -> Path:
        """Where the numbers of a seed are, once it is finished."""
        return Path(self.folder, self.part, f"seed-{seed}.json")

    @property
    def is_finished(self) -> bool:
        """Whether all its seeds have their numbers."""
        return all(self.result(seed).exists() for seed in self.seeds)

    @property
    def header(self) -> dict[str, Any]:
        """What its checkpoint must say of itself."""
        return {
            "part": self.part,
            "seeds": list(self.seeds),
            "device": self.device,
            "settings": as_plain(self.settings),
        }


def run_job(job: Job) -> str:
    """Train what a job says, from its last checkpoint on, and write its numbers; nothing, where that is done.

    One lock a job: whoever comes second waits, and then finds the numbers, or goes on where the first one died. The
    lock is the operating system's (flock) and ends with the process that holds it.

    Returns:
        What happened: "trained", "went on from step K", or "was finished".

    Raises:
        RunError: a file cannot be written, or a checkpoint is damaged or another's.
    """
    lock = FileLock(job.lock)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _say(f"{job.name}: another process is at it; waiting")
            lock.acquire()
    except OSError as error:
        raise cannot_write(job.lock, error) from error
    try:
        return "was finished" if job.is_finished else _train_and_write(job)
    finally:
        lock.release()


def _train_and_write(job: Job) -> str:
    kept = read_checkpoint(job.checkpoint, job.header)
    state, before = (None, {}) if kept is None else kept
    start, sessions = time.process_time(), before.get("sessions", [])
    seconds_before = before.get("processor_seconds", 0.0)
    session = {"from_step": 0 if state is None else state.step, "versions": versions(), "git": git_state()}

    def made_by() -> dict[str, Any]:
        spent = seconds_before + time.process_time() - start
        return {"sessions": [*sessions, session], "processor_seconds": round(spent, 3)}

    def keep(state: TrainingState) -> None:
        write_checkpoint(job.checkpoint, state, job.header | made_by())

    clock = _Clock(job, state)
    run = _trained(job, state, keep, clock)
    through, last = measure(job.settings, run, job.device, lambda count: clock.measured(count, len(run.steps)))
    for member, seed in enumerate(run.seeds):
        tensors = {name: torch.stack([one[name][member] for one in run.snapshots]).cpu() for name in run.snapshots[0]}
        # One entry: of several, safetensors would choose the order by chance.
        write_tensors(job.result(seed).with_suffix(".safetensors"), tensors, {"mesa": f"{job.part}, seed {seed}"})
        numbers = {
            "steps": list(run.steps),
            "training_loss": run.losses[:, member].double().tolist(),
            "tasks_seen": run.tasks_seen,
            "steps_without_gradient": run.steps_without_gradient[member],
            **plain_measures(through, last, member),
        }
        identity = job.header | {"seed": seed}
        write_whole(job.result(seed), json_bytes({**identity, "results": numbers, "made_by": made_by()}))
    job.checkpoint.unlink(missing_ok=True)
    job.checkpoint.with_name(job.checkpoint.name + ".new").unlink(missing_ok=True)
    return "trained" if state is None else f"went on from step {state.step}"


def _trained(
    job: Job, state: TrainingState | None, keep: Callable[[TrainingState], None], clock: "_Clock"
) -> TrainingRun:
    """The training, with checkpoints and lines of progress."""
    settings = job.settings
    kept_at = time.monotonic()

    def on_step(step: int, take_down: Callable[[], TrainingState]) -> None:
        nonlocal kept_at
        if step == settings.training.num_steps or time.monotonic() - kept_at >= job.seconds:
            keep(take_down())
            kept_at = time.monotonic()
        clock.tick(step)

    network = settings.network.build(settings.tasks, job.seeds)
    return train(
        network,
        settings.tasks,
        job.seeds,
        settings.training,
        device=job.device,
        on_record=clock.note,
        on_step=on_step,
        state=state,
    )


class _Clock:
    """A line of progress now and then, where no progress bar shows: step, loss, speed, time left."""

    def __init__(self, job: Job, state: TrainingState | None) -> None:
        self.job, self.first = job, 0 if state is None else state.step
        self.loss, self.loss_step = float("nan"), 0
        if state is not None:
            self.note(int(state.tensors["records/step"][-1]), state.tensors["records/loss"][-1])
        self.began = self.said = time.monotonic()
        self.silent = sys.stderr.isatty() and os.environ.get("TQDM_DISABLE", "0") in ("", "0")

    def note(self, step: int, losses: Tensor) -> None:
        self.loss, self.loss_step = float(losses.mean()), step

    def tick(self, step: int) -> None:
        if self.silent or not self._due():
            return
        total = self.job.settings.training.num_steps
        speed = (step - self.first) / (self.said - self.began)
        left = (total - step) / speed
        loss = f"loss {self.loss:.4g} at step {self.loss_step}"
        _say(f"{self.job.name}: step {step} of {total}, {loss}, {speed:.3g} steps/s, {left:.0f} s left")

    def measured(self, count: int, total: int) -> None:
        """What comes after the last step takes minutes where there are many records, and has no progress bar."""
        if self._due():
            _say(f"{self.job.name}: trained; measured {count} of {total} records")

    def _due(self) -> bool:
        now = time.monotonic()
        due = now - self.said >= SECONDS_BETWEEN_LINES
        self.said = now if due else self.said
        return due


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
