"""The committed benchmark holds what the book quotes, and the tool that writes it writes that form."""

import json

import pytest

from mesa_lib.results import benchmark
from tools import bench


def test_the_committed_benchmark_has_every_run_of_the_tool():
    runs = benchmark()["runs"]
    assert set(runs) == {entry.name for entry in bench.BENCHMARKS}
    assert all(run["seconds"] > 0 for run in runs.values())


def test_five_seeds_train_within_the_budget_of_twenty_seconds():
    assert benchmark()["runs"]["five seeds"]["seconds"] < 20


def test_a_measurement_is_the_median_of_the_runs_that_count(monkeypatch):
    ticks = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    calls = []
    monkeypatch.setattr(bench.time, "process_time", lambda: next(ticks))
    assert bench.measure(lambda: calls.append(1), repetitions=3) == 2.0
    assert len(calls) == 4  # the first one warms up


def test_the_tool_writes_the_form_that_the_library_reads(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "BENCHMARKS", (bench.Benchmark("quick", "nothing", lambda: None),))
    bench.main(["--repetitions", "1", "--output", str(tmp_path / "benchmark.json")])
    written = json.loads((tmp_path / "benchmark.json").read_text(encoding="utf-8"))
    assert set(written) == set(benchmark())
    assert written["runs"]["quick"]["what"] == "nothing"
    assert json.loads(capsys.readouterr().out) == written


def test_no_repetitions_are_refused(capsys):
    with pytest.raises(SystemExit):
        bench.main(["--repetitions", "0"])
    assert "--repetitions: expected a positive number, got 0" in capsys.readouterr().err
