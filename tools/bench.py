"""Measure what the book says about speed: `python -m tools.bench [PART ...]` writes mesa_lib/results/benchmark.json.

Seconds are processor time on one thread, which other work on the machine disturbs less than the wall clock: medians of
several runs after one that does not count. What is compared is run in turns in one process, so that a ratio means
something on a busy machine too. Chapters and pages are run in processes of their own, which are asked for the same.
"""

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from tqdm import tqdm

import mesa_lib as mesa
from tools import execute
from tools.bench_pages import measure_site
from tools.browser import chromium_or_exit, running
from tools.notebooks import replace_file
from tools.toc import ROOT, notebooks

RESULT = ROOT / "mesa_lib" / "results" / "benchmark.json"
Work = Callable[[], object]

CONTEXTS = (10, 100, 1000, 10_000)
"""Context lengths at which second moments and tokens are compared."""
SEEDS = range(5)
HALF = mesa.LinearTasks(input_range=0.5)
CHANGED = ROOT / "book" / "depth_and_gd_plus_plus.ipynb"
"""The chapter that is said to have changed, one of the longest; only its time stamp does."""
FRESH_TASKS = 100_000
"""How many tasks judge a deep network."""


@dataclass(frozen=True)
class Benchmark:
    """A named piece of work.

    Attributes:
        name: how the book asks for it.
        what: what is done, in words.
        work: does it once.
    """

    name: str
    what: str
    work: Work


def _one_layer(seeds: Sequence[int], settings: mesa.TrainingSettings) -> mesa.TrainingRun:
    start = mesa.FreeTransformer([mesa.random_weights(10, 1, seeds, scale=0.0135)])
    return mesa.train(start, mesa.LinearTasks(), seeds, settings)


BENCHMARKS = (
    Benchmark(
        "exact query, one seed",
        "one layer, 400 steps of 64 tasks, expected query loss",
        lambda: _one_layer([0], mesa.TrainingSettings(batch_size=64, record_every=400)),
    ),
    Benchmark(
        "sampled query, one seed",
        "one layer, 400 steps of 2,048 tasks, one sampled query each",
        lambda: _one_layer([0], mesa.paper_settings(num_steps=400, record_every=400)),
    ),
    Benchmark(
        "five seeds",
        "one layer, five seeds at once, the default settings",
        lambda: _one_layer(range(5), mesa.TrainingSettings()),
    ),
)


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(work: Work, repetitions: int) -> float:
    """Median processor time of `work` in seconds over `repetitions` runs, after one run that warms up."""
    return measure_in_turns({"": work}, repetitions)[""]


def measure_in_turns(works: Mapping[str, Work], repetitions: int) -> dict[str, float]:
    """Median processor time of each work in seconds; the works take turns, after a turn that warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(repetitions):
        for name, work in works.items():
            start = time.process_time()
            work()
            seconds[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def digits(value: float) -> float:
    """Three significant digits: more would change from run to run."""
    return float(f"{value:.3g}")


# --- the parts of the record ------------------------------------------------------------------------------------------


def measure_runs(repetitions: int) -> dict[str, Any]:
    """The runs that chapters quote."""
    progress = tqdm(BENCHMARKS, desc="runs", disable=None)
    return {one.name: {"what": one.what, "seconds": round(measure(one.work, repetitions), 2)} for one in progress}


def two_forms(num_context: int) -> dict[str, Work]:
    """Two layers on 64 tasks: by tokens, by second moments, and by moments that are there already."""
    network = mesa.FreeTransformer(mesa.random_layers(2, 10, 1, [0], scale=0.1)).requires_grad_(False)
    layers = network.layers()
    tasks = mesa.LinearTasks(num_context=num_context, input_range=0.5)
    batch = tasks.sample(64, mesa.generator(0, "validation tasks"))
    moment = mesa.context_moment(mesa.concatenated_tokens(batch).context)
    query_map = torch.eye(11, 10)

    def by_tokens() -> Tensor:
        return mesa.read_prediction(mesa.apply_layers(layers, mesa.concatenated_tokens(batch)), y_dim=1)

    def from_moment(moment: Tensor) -> Tensor:
        return mesa.predict_linear(mesa.moment_implicit_weights(layers, moment, query_map), batch)

    return {
        "tokens": by_tokens,
        "moments": lambda: from_moment(mesa.context_moment(mesa.concatenated_tokens(batch).context)),
        "moments given": lambda: from_moment(moment),
    }


def _often(work: Work, times: int) -> Work:
    def repeated() -> None:
        for _ in range(times):
            work()

    return repeated


def measure_context(repetitions: int) -> list[dict[str, float]]:
    """Milliseconds of a prediction in either form, by the length of the context."""
    rows = []
    for num_context in tqdm(CONTEXTS, desc="context lengths", disable=None):
        times = 100 if num_context <= 1000 else 10
        works = {name: _often(work, times) for name, work in two_forms(num_context).items()}
        seconds = measure_in_turns(works, repetitions)
        rows.append({"num_context": num_context} | {name: digits(1000 * s / times) for name, s in seconds.items()})
    return rows


def training_step(num_context: int) -> Work:
    """One step of training two layers on 128 tasks, from second moments that are there already."""
    network = mesa.FreeTransformer(mesa.random_layers(2, 10, 1, [0], scale=0.1))
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    tasks = mesa.LinearTasks(num_context=num_context, input_range=0.5)
    batch = tasks.sample(128, mesa.generator(0, "training tasks"))
    moment = mesa.context_moment(mesa.concatenated_tokens(batch).context)
    query_map = torch.eye(11, 10)
    assert batch.teacher is not None
    teacher = batch.teacher

    def step() -> None:
        error = mesa.moment_implicit_weights(network.layers(), moment, query_map) - teacher
        optimizer.zero_grad()
        torch.autograd.backward(error.square().sum((-1, -2)).mean())
        mesa.clip_members(parameters, 0.1)
        optimizer.step()

    return step


def measure_step(repetitions: int) -> list[dict[str, float]]:
    """Milliseconds of a training step, sampling and forming second moments aside, by the length of the context."""
    works = {str(num_context): _often(training_step(num_context), 50) for num_context in CONTEXTS[:3]}
    seconds = measure_in_turns(works, repetitions)
    return [{"num_context": int(name), "step": digits(1000 * s / 50)} for name, s in seconds.items()]


Goal = Callable[[torch.nn.Module], bool]


def seconds_to(
    start: torch.nn.Module,
    tasks: mesa.LinearTasks,
    seeds: Sequence[int],
    settings: mesa.TrainingSettings,
    goal: Goal,
) -> float:
    """Processor seconds of a training until the first record that has reached the goal; infinity if none has."""
    stamps: list[float] = []
    began = time.process_time()
    run = mesa.train(start, tasks, seeds, settings, on_record=lambda *_: stamps.append(time.process_time() - began))
    learners = (run.learner_at(record).requires_grad_(False) for record in range(len(stamps)))
    return next((seconds for seconds, learner in zip(stamps, learners, strict=True) if goal(learner)), math.inf)


def within(tasks: mesa.LinearTasks, share: float) -> Goal:
    """Whether one layer's exact loss is within a share of the optimum."""
    bound = (1 + share) * mesa.optimal_loss(tasks)

    def reached(learner: torch.nn.Module) -> bool:
        assert isinstance(learner, mesa.FreeTransformer)
        (layer,) = learner.double().layers()
        return bool((mesa.population_loss(tasks, layer) <= bound).all())

    return reached


def measure_losses(repetitions: int) -> dict[str, Any]:
    """Seconds until one layer is within one percent of its optimum, by either loss; the median over seeds."""
    tasks = mesa.LinearTasks()
    exact = mesa.TrainingSettings(batch_size=64, record_every=10)
    sampled = replace(exact, batch_size=2048, loss=mesa.sampled_query_loss)
    found: dict[str, Any] = {"what": "one layer to within 1 % of its optimum, same optimiser, one seed at a time"}
    for name, settings in {"expected": exact, "sampled": sampled}.items():
        times = []
        for seed in tqdm(SEEDS, desc=f"{name} loss", disable=None):
            start = mesa.FreeTransformer([mesa.random_weights(10, 1, [seed], scale=0.0135)])
            times.append(seconds_to(start, tasks, [seed], settings, within(tasks, 0.01)))
        found[name] = digits(statistics.median(times))
        found[f"{name} batch"] = settings.batch_size
    return found | {"ratio": digits(found["sampled"] / found["expected"])}


def measure_ensemble(repetitions: int) -> dict[str, Any]:
    """Ten seeds at once against one seed, and against ten one by one."""
    settings = mesa.TrainingSettings(num_steps=100, warmup_steps=20, record_every=100)
    works: dict[str, Work] = {
        "one": lambda: _one_layer([0], settings),
        "ten at once": lambda: _one_layer(range(10), settings),
        "ten solo": lambda: [_one_layer([seed], settings) for seed in range(10)],
    }
    seconds = measure_in_turns(works, repetitions)
    return {
        "what": "one layer, 100 steps of 128 tasks",
        **{name: digits(s) for name, s in seconds.items()},
        "at once over one": digits(seconds["ten at once"] / seconds["one"]),
        "solo over at once": digits(seconds["ten solo"] / seconds["ten at once"]),
        "seed-steps a second": round(10 * settings.num_steps / seconds["ten at once"]),
    }


def capped_mean(learner: torch.nn.Module, num_tasks: int = FRESH_TASKS) -> float:
    """The mean over fresh tasks of what a deep network loses on each, at most the loss of predicting zero."""
    stream = mesa.generator(0, "validation tasks")
    network = learner.double()
    losses = [
        mesa.expected_task_losses(network, HALF.sample(10_000, stream, dtype=torch.float64), HALF)
        for _ in range(num_tasks // 10_000)
    ]
    cap = mesa.zero_loss(HALF)
    summary = mesa.summarize_losses(torch.cat(losses, -1), cap, divergence_expected=True)
    return float(summary.capped_mean.max())


def at_most(bound: float) -> Goal:
    """Whether a deep network's capped mean is at most a bound; few tasks say so where it is far above."""
    return lambda network: capped_mean(network, 10_000) <= 1.5 * bound and capped_mean(network) <= bound


def measure_targets(repetitions: int) -> list[dict[str, Any]]:
    """Seconds until networks of one, two and five layers have reached stated losses; the median over five seeds."""
    tied = mesa.fit_gd_plus_plus(HALF, 2, tied=True, generator=mesa.generator(0, "validation tasks"))
    etas, gammas = (
        torch.tensor([numbers[:1] * 2], dtype=torch.float64) for numbers in (tied.schedule.etas, tied.schedule.gammas)
    )
    best_looped = capped_mean(mesa.GDPlusPlusTransformer(etas, gammas, 10, 1, 10).requires_grad_(False))
    whole, plain = mesa.LinearTasks(), mesa.TrainingSettings()
    # No longer than the aims ask for: a rate that falls to zero over the whole run makes the last steps count.
    two = replace(plain, num_steps=540, warmup_steps=30, betas=(0.9, 0.95), record_every=60)
    # Clipped tightly: a loss of at most its scale has small gradients, and a rare large one does harm.
    five = replace(two, num_steps=600, warmup_steps=200, learning_rate=0.03, betas=(0.9, 0.98), clip_norm=0.003)
    five = replace(five, loss=mesa.geman_mcclure_query_loss(0.03))
    long = replace(five, num_steps=1260, batch_size=192)

    def one_layer(seed: int) -> torch.nn.Module:
        return mesa.FreeTransformer([mesa.random_weights(10, 1, [seed], scale=0.0135)])

    def looped(seed: int) -> torch.nn.Module:
        return mesa.Looped(mesa.FreeTransformer([mesa.random_weights(10, 1, [seed], scale=0.1)]), num_loops=2)

    def five_layers(seed: int) -> torch.nn.Module:
        return mesa.FreeTransformer(mesa.random_layers(5, 10, 1, [seed], scale=0.1))

    return [
        _reach("one layer, within 0.3 % of its optimum", 1.5, one_layer, whole, plain, within(whole, 0.003)),
        _reach("two looped layers, within 1 % of tied GD++", 2.5, looped, HALF, two, at_most(1.01 * best_looped)),
        _reach("five layers, capped mean 0.019", 9.0, five_layers, HALF, five, at_most(0.019)),
        _reach("five layers, capped mean 0.0106", 12.0, five_layers, HALF, long, at_most(0.0106)),
    ]


def _reach(
    what: str,
    aim: float,
    start: Callable[[int], torch.nn.Module],
    tasks: mesa.LinearTasks,
    settings: mesa.TrainingSettings,
    goal: Goal,
) -> dict[str, Any]:
    """A goal, its aim in seconds, and the median over seeds, each trained alone."""
    times = [seconds_to(start(seed), tasks, [seed], settings, goal) for seed in tqdm(SEEDS, desc=what, disable=None)]
    median, arrived = statistics.median(times), sum(map(math.isfinite, times))
    shown = round(median, 2) if math.isfinite(median) else None
    return {"what": what, "aim": aim, "seconds": shown, "seeds": len(times), "arrived": arrived}


def measure_chapters(repetitions: int) -> dict[str, Any]:
    """Every chapter once, on a kernel of its own: wall and processor seconds, and peak memory. Nothing is written."""
    paths = notebooks()
    with tqdm(total=sum(map(execute.count_cells, paths)), unit="cell", desc="chapters", disable=None) as bar:
        found = {one.path: one for one in execute.run(paths, 1, 600, bar)}
    if failed := [f"{one.path.stem}: {one.error}" for one in found.values() if one.error]:
        raise SystemExit("bench: " + "\n".join(failed))
    return {
        path.stem: {
            "seconds": round(found[path].seconds, 1),
            "processor seconds": round(found[path].processor_seconds, 1),
            "megabytes": round(found[path].megabytes),
        }
        for path in paths
    }


def measure_pages(repetitions: int) -> dict[str, Any]:
    """What `make html` takes, and how quick the pages are that it makes (needs a Chromium)."""
    builder, chromium = str(Path(sys.executable).with_name("jupyter-book")), chromium_or_exit()
    with tempfile.TemporaryDirectory() as folder:
        command = [builder, "build", ".", "-W", "-n", "--keep-going", "-q", "--path-output", folder]
        everything = _seconds_of([*command, "--all"])
        CHANGED.touch()
        one_chapter = _seconds_of(command)
        with running(chromium) as browser:
            visits = measure_site(browser, Path(folder, "_build", "html"), repetitions)
    return {**everything, "one chapter": one_chapter, **visits}


def _seconds_of(command: Sequence[str]) -> dict[str, float]:
    """Wall and processor seconds of a command that runs in the repository."""
    used, began = _of_children(), time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    wall, busy = time.perf_counter() - began, _of_children() - used
    return {"seconds": round(wall, 1), "processor seconds": round(busy, 1)}


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


PARTS: dict[str, Callable[[int], Any]] = {
    "runs": measure_runs,
    "context": measure_context,
    "step": measure_step,
    "losses": measure_losses,
    "ensemble": measure_ensemble,
    "targets": measure_targets,
    "chapters": measure_chapters,
    "pages": measure_pages,
}


# --- the command line -------------------------------------------------------------------------------------------------


def processor() -> str:
    """The name of the processor, as far as the system tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def describe(repetitions: int) -> dict[str, object]:
    """Where and with what is measured."""
    return {
        "machine": {
            "architecture": platform.machine(),
            "system": platform.system(),
            "processor": processor(),
            "cores": str(os.cpu_count()),
            "threads": "1",
        },
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": numpy.__version__},
        "repetitions": repetitions,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks and write their record, part by part."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench", description="Measure what the book says about speed."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--repetitions", type=int, default=5, help="counted runs of each (default: 5)")
    parser.add_argument("--output", type=Path, default=RESULT, help="the file to write; other parts in it stay")
    options = parser.parse_args(arguments)
    if options.repetitions < 1:
        parser.error(f"--repetitions: expected a positive number, got {options.repetitions}")
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"expected parts among {', '.join(PARTS)}, got {', '.join(unknown)}")
    torch.set_num_threads(1)
    record = json.loads(options.output.read_text(encoding="utf-8")) if options.output.is_file() else {}
    for name in options.parts or PARTS:
        record = describe(options.repetitions) | {part: record[part] for part in PARTS if part in record}
        record[name] = PARTS[name](options.repetitions)
        replace_file(options.output, (json.dumps(record, indent=2) + "\n").encode())
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
