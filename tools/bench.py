"""Measure what the book says about seconds: `python -m tools.bench` writes mesa_lib/results/benchmark.json.

Every number is processor time on one thread, which other work on the machine disturbs less than the wall clock: the
median of several runs after one that does not count.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from tqdm import tqdm

import mesa_lib as mesa
from tools.toc import ROOT

RESULT = ROOT / "mesa_lib" / "results" / "benchmark.json"


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
    work: Callable[[], object]


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


def measure(work: Callable[[], object], repetitions: int) -> float:
    """Median processor time of `work` in seconds over `repetitions` runs, after one run that warms up."""
    work()
    seconds = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def run_benchmarks(repetitions: int) -> dict[str, object]:
    """All benchmarks, as the record that is committed."""
    torch.set_num_threads(1)
    runs = {
        benchmark.name: {"what": benchmark.what, "seconds": round(measure(benchmark.work, repetitions), 2)}
        for benchmark in tqdm(BENCHMARKS, desc="benchmarks", disable=None)
    }
    return {
        "machine": {"architecture": platform.machine(), "system": platform.system(), "threads": "1"},
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": numpy.__version__},
        "repetitions": repetitions,
        "runs": runs,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks and write their record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="counted runs of each (default: 5)")
    parser.add_argument("--output", type=Path, default=RESULT, help="the file to write")
    options = parser.parse_args(arguments)
    if options.repetitions < 1:
        parser.error(f"--repetitions: expected a positive number, got {options.repetitions}")
    text = json.dumps(run_benchmarks(options.repetitions), indent=2) + "\n"
    options.output.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
