"""Runs: a folder for an experiment, its trainings, and what they have come to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor

from mesa_lib.experiments.catalogue import Experiment
from mesa_lib.experiments.files import (
    RunError,
    cannot_write,
    differences,
    git_state,
    json_bytes,
    read_json,
    read_tensors,
    versions,
    write_tensors,
    write_whole,
)
from mesa_lib.experiments.measures import predict_zero, reference_learner
from mesa_lib.experiments.parallel import each_of
from mesa_lib.experiments.running import SECONDS_BETWEEN_CHECKPOINTS, Job
from mesa_lib.experiments.settings import SettingError, Settings, as_plain
from mesa_lib.validation import one_of, positive_integer, positive_number, seed_list

DEVICES = ("cpu", "cuda", "mps")


@dataclass(frozen=True)
class Plan:
    """What a run is asked for.

    Attributes:
        experiment: which.
        scale: of its settings.
        parts: part -> settings, overrides included.
        seeds: of every part.
        folder: where its files go.
        device: where to train.
        seconds: between two checkpoints.
    """

    experiment: Experiment
    scale: str
    parts: Mapping[str, Settings]
    seeds: tuple[int, ...]
    folder: Path
    device: str = "cpu"
    seconds: float = SECONDS_BETWEEN_CHECKPOINTS

    def __post_init__(self) -> None:
        seed_list("seeds", self.seeds)
        one_of("device", self.device, DEVICES)
        positive_number("checkpoint seconds", self.seconds)
        if self.seconds > 60:
            raise ValueError(f"checkpoint seconds: expected at most 60, got {self.seconds:g}")
        if not device_is_there(self.device):
            there = ", ".join(repr(one) for one in DEVICES if device_is_there(one))
            raise SettingError(f"--device: expected one that this machine has ({there}), got {self.device!r}")
        for part, settings in self.parts.items():
            _check_ready(part, settings)

    @property
    def jobs(self) -> list[Job]:
        """The trainings: one for each part and seed, or for each part where its seeds are trained together."""
        groups = [self.seeds] if self.experiment.together else [(seed,) for seed in self.seeds]
        folder = str(self.folder.absolute())
        return [
            Job(folder, part, group, settings, self.device, self.seconds)
            for part, settings in self.parts.items()
            for group in groups
        ]

    @property
    def description(self) -> dict[str, Any]:
        """What run.json says: whatever decides the numbers, but for the seeds."""
        parts = {part: as_plain(settings) for part, settings in self.parts.items()}
        return {
            "experiment": self.experiment.name,
            "scale": self.scale,
            "device": self.device,
            "together": self.experiment.together,
            "settings": parts,
        }


def device_is_there(name: str) -> bool:
    """Whether torch can compute on a device of this machine."""
    if name == "cuda":
        return torch.cuda.is_available()
    return name == "cpu" or torch.backends.mps.is_available()


def _check_ready(part: str, settings: Settings) -> None:
    """Refuse before any work what would be refused after it, such as a reference that theory does not have."""
    try:
        settings.network.build(settings.tasks, [0])
        reference_learner(settings)
        predict_zero(settings)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise SettingError(f"{part}: these settings do not go together: {error}") from error


def prepare(plan: Plan) -> None:
    """Make the run's folder, or see that it is the same run's.

    Raises:
        RunError: the folder cannot be written, holds something else, or a run with other settings.
    """
    folder = plan.folder
    try:
        for name in (".locks", *plan.parts):
            (folder / name).mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".locks" / "run.lock")
        with lock:
            _write_description(plan)
    except OSError as error:
        raise cannot_write(folder, error) from error


def _write_description(plan: Plan) -> None:
    path, seeds = plan.folder / "run.json", set(plan.seeds)
    content: dict[str, Any] = {**plan.description, "made_by": {"versions": versions(), "git": git_state()}}
    if path.exists():
        before = read_json(path)
        remedy = "Give another --out"
        if difference := differences(before, plan.description):
            raise RunError(f"{plan.folder}: holds another run: {difference}. {remedy}")
        if plan.experiment.together and list(plan.seeds) != before["seeds"]:
            raise RunError(
                f"{plan.folder}: holds a run whose seeds are trained together, {before['seeds']}; it cannot have "
                f"others, {list(plan.seeds)}. {remedy}"
            )
        content["made_by"] = before["made_by"]
        seeds |= set(before["seeds"])
        if sorted(seeds) == before["seeds"]:
            return
    elif others := [one.name for one in plan.folder.iterdir() if one.name not in (".locks", *plan.parts)]:
        raise RunError(f"{plan.folder}: expected a new folder or one of a run, got one with {sorted(others)[0]!r}")
    write_whole(path, json_bytes({**content, "seeds": sorted(seeds)}))


def run_all(plan: Plan, workers: int = 1, scheduler: str | None = None) -> Iterator[tuple[Job, str]]:
    """Run all jobs of a plan, and put the last parameters of all into one file.

    Args:
        plan: what to run; see `prepare`.
        workers: processes on this machine.
        scheduler: the address of a Dask scheduler, tcp://..., whose workers see the run's folder under the same path.

    Yields:
        Each job as it ends, and what `run_job` says of it.

    Raises:
        RunError: see `run_job`; or a worker died, or joblib or Dask is not installed.
        TypeError, ValueError: `workers` is not a positive integer.
    """
    positive_integer("--jobs", workers)
    prepare(plan)
    yield from each_of(plan.jobs, workers, scheduler)
    if lost := [job.name for job in plan.jobs if not job.is_finished]:
        raise RunError(f"{plan.folder}: not finished: {'; '.join(lost)}. Repeat the same command to go on")
    _collect(plan)


def _collect(plan: Plan) -> None:
    """networks.safetensors: the last parameters of all parts, one slice a seed of this plan."""
    tensors: dict[str, Tensor] = {}
    seconds: dict[str, float] = {}
    for part in plan.parts:
        paths = [plan.folder / part / f"seed-{seed}.json" for seed in plan.seeds]
        states = [read_tensors(path.with_suffix(".safetensors")) for path in paths]
        tensors |= {f"{part}/{name}": torch.stack([one[name][-1] for one in states]) for name in states[0]}
        spent = [read_json(path)["made_by"]["processor_seconds"] for path in paths]
        seconds[part] = max(spent) if plan.experiment.together else sum(spent)
    header = {
        "command": f"python -m mesa_lib run {plan.experiment.name}",
        "seeds": list(plan.seeds),
        "recipes": plan.description["settings"],
        "processor_seconds": {part: round(value, 1) for part, value in seconds.items()},
        "versions": versions(),
    }
    write_tensors(plan.folder / "networks.safetensors", tensors, header)


def finished_results(folder: Path, description: Mapping[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    """The finished seeds of a run: part -> seed -> what its file says.

    Raises:
        RunError: a file is damaged, or that of other settings.
    """
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for part, settings in description["settings"].items():
        found[part] = {}
        for seed in description["seeds"]:
            path = folder / part / f"seed-{seed}.json"
            if not path.exists():
                continue
            content = read_json(path)
            if difference := differences(content, {"settings": settings, "seed": seed, "part": part}):
                raise RunError(f"{path}: is the file of another run: {difference}")
            found[part][seed] = content
    return found


def seeds_up_to(count: int) -> tuple[int, ...]:
    """The seeds 0, 1, ..., count - 1.

    Raises:
        TypeError, ValueError: `count` is not a positive integer.
    """
    return tuple(range(positive_integer("--seeds", count)))
