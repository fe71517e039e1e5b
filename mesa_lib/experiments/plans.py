"""Runs: a folder for an experiment, its trainings, and what they have come to."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
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
from mesa_lib.experiments.measures import measure
from mesa_lib.experiments.networks import SettingError
from mesa_lib.experiments.parallel import check_backend, each_of
from mesa_lib.experiments.running import SECONDS_BETWEEN_CHECKPOINTS, Job
from mesa_lib.experiments.settings import Settings, as_plain
from mesa_lib.training import train
from mesa_lib.validation import one_of, positive_integer, positive_number, seed_list

DEVICES = ("cpu", "cuda", "mps")
MOST_SEEDS = 10_000
_RUN = {"experiment": str, "scale": str, "device": str, "settings": dict, "seeds": list, "made_by": dict}
_RESULT = {"settings": dict, "results": dict, "made_by": dict}


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
    """Refuse before any work what would be refused in its course or after it, by one step of training and its measures.

    Such as a reference that theory does not have, or sizes and numbers that torch has no room for (RuntimeError).
    """
    try:
        judged = replace(settings.evaluation, num_loops=min(settings.evaluation.num_loops, 1))  # a thousand take long
        short = replace(settings, training=replace(settings.training, num_steps=1, warmup_steps=0), evaluation=judged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the training itself will warn
            run = train(short.network.build(short.tasks, [0]), short.tasks, [0], short.training)
            if not all(bool(value.isfinite().all()) for value in run.snapshots[-1].values()):
                raise ValueError("expected finite weights after one step, got others")
            measure(short, run, "cpu")
    except (TypeError, ValueError, ArithmeticError, RuntimeError, MemoryError) as error:
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise SettingError(f"{part}: these settings do not go together: {said}") from error


def prepare(plan: Plan) -> None:
    """Make the run's folder, or see that it is the same run's, and that what is finished there is whole.

    Raises:
        RunError: the folder cannot be written, holds something else, a run with other settings, or damaged results.
    """
    folder = plan.folder
    try:
        _new_description(plan)  # before anything is made in a folder of somebody else's
        for name in (".locks", *plan.parts):
            (folder / name).mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".locks" / "run.lock")
        with lock:
            if content := _new_description(plan):
                write_whole(folder / "run.json", json_bytes(content))
    except OSError as error:
        raise cannot_write(folder, error) from error
    for part, results in finished_results(folder, {**plan.description, "seeds": list(plan.seeds)}).items():
        for seed in results:
            _last_parameters(plan.folder / part / f"seed-{seed}.json")


def _new_description(plan: Plan) -> dict[str, Any] | None:
    """What run.json must say; None where it says so already.

    Raises:
        RunError: the folder holds something else, or a run with other settings.
    """
    path, seeds = plan.folder / "run.json", set(plan.seeds)
    content: dict[str, Any] = {**plan.description, "made_by": {"versions": versions(), "git": git_state()}}
    if path.exists():
        before = read_description(plan.folder)
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
            return None
    elif others := [one.name for one in _entries(plan.folder) if one.name not in (".locks", *plan.parts)]:
        raise RunError(f"{plan.folder}: expected a new folder or one of a run, got one with {sorted(others)[0]!r}")
    return {**content, "seeds": sorted(seeds)}


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def read_description(folder: Path) -> dict[str, Any]:
    """What run.json says.

    Raises:
        RunError: it is damaged.
    """
    path, remedy = folder / "run.json", "take it from a copy, or give another folder"
    description = read_json(path, _RUN, remedy)
    try:
        seed_list("seeds", description["seeds"])
    except (TypeError, ValueError) as error:
        raise RunError(f"{path}: {error}; {remedy}") from error
    return description


def run_all(plan: Plan, workers: int = 1, scheduler: str | None = None) -> Iterator[tuple[Job, str]]:
    """Run all jobs of a plan, and put the last parameters of all into one file.

    Args:
        plan: what to run; see `prepare`.
        workers: processes on this machine.
        scheduler: the address of a Dask scheduler, tcp://..., whose workers see the run's folder under the same path.

    Yields:
        Each job as it ends, and what `run_job` says of it.

    Raises:
        RunError: see `run_job`; or a worker died, joblib or Dask is not installed, or no scheduler answers.
        TypeError, ValueError: `workers` is not a positive integer.
    """
    check_backend(positive_integer("--jobs", workers), scheduler)
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
        states = [_last_parameters(path) for path in paths]
        tensors |= {f"{part}/{name}": torch.stack([one[name] for one in states]) for name in states[0]}
        spent = [_read_result(path)["made_by"]["processor_seconds"] for path in paths]
        seconds[part] = max(spent) if plan.experiment.together else sum(spent)
    header = {
        "command": f"python -m mesa_lib run {plan.experiment.name}",
        "seeds": list(plan.seeds),
        "recipes": plan.description["settings"],
        "processor_seconds": {part: round(value, 1) for part, value in seconds.items()},
        "versions": versions(),
    }
    write_tensors(plan.folder / "networks.safetensors", tensors, header)


def _read_result(path: Path) -> dict[str, Any]:
    """What the file of a finished seed says, whole and with a number wherever one belongs."""
    remedy = _afresh(path)
    content = read_json(path, _RESULT, remedy)
    results = content["results"]
    steps, curves, final = (results.get(name) for name in ("steps", "curves", "final"))
    if not (isinstance(steps, list) and isinstance(curves, dict) and isinstance(final, dict)):
        raise RunError(f"{path}: expected steps, curves and final numbers under 'results', got others; {remedy}")
    if not all(isinstance(curve, list) and len(curve) == len(steps) > 0 for curve in (steps, *curves.values())):
        raise RunError(f"{path}: expected one number a recorded step in each curve, got others; {remedy}")
    spent = content["made_by"].get("processor_seconds")
    for value in chain(steps, *curves.values(), final.values(), [spent]):
        if not isinstance(value, int | float) and value not in ("nan", "inf", "-inf"):
            raise RunError(f"{path}: expected numbers, got {value!r}; {remedy}")
    if missing := {"loss"} - (curves.keys() & final.keys()):
        raise RunError(f"{path}: expected {missing.pop()!r} among the curves and the final numbers, got none; {remedy}")
    return content


def _last_parameters(result: Path) -> dict[str, Tensor]:
    """The last parameters of a finished seed, whose numbers are in `result`."""
    path, remedy = result.with_suffix(".safetensors"), _afresh(result)
    records = len(_read_result(result)["results"]["steps"])
    tensors = read_tensors(path, remedy)
    if not tensors or not all(len(value.shape) > 0 and len(value) == records for value in tensors.values()):
        raise RunError(f"{path}: expected the parameters at {records} recorded steps, got others; {remedy}")
    return {name: value[-1] for name, value in tensors.items()}


def _afresh(result: Path) -> str:
    return f"delete {result.name} and run again to train this seed afresh"


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
            content = _read_result(path)
            if difference := differences(content, {"settings": settings, "seed": seed, "part": part}):
                raise RunError(f"{path}: is the file of another run: {difference}; {_afresh(path)}")
            found[part][seed] = content
    return found


def seeds_up_to(count: int) -> tuple[int, ...]:
    """The seeds 0, 1, ..., count - 1.

    Raises:
        TypeError, ValueError: `count` is not a positive integer, or more than 10 000.
    """
    if positive_integer("--seeds", count) > MOST_SEEDS:
        raise ValueError(f"--seeds: expected at most {MOST_SEEDS}, got {count}")
    return tuple(range(count))
