"""The committed benchmark holds what the book quotes, and the tool that writes it writes that form."""

import json
import math
from types import SimpleNamespace

import pytest
import torch

import mesa_lib as mesa
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


def test_works_that_are_compared_take_turns(monkeypatch):
    ticks = iter([0, 1, 10, 15, 20, 22, 30, 36])
    turns = []
    monkeypatch.setattr(bench.time, "process_time", lambda: next(ticks))
    works = {name: lambda name=name: turns.append(name) for name in "ab"}
    assert bench.measure_in_turns(works, repetitions=2) == {"a": 1.5, "b": 5.5}
    assert turns == list("ababab")


def test_a_part_is_measured_anew_and_the_others_stay(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "BENCHMARKS", (bench.Benchmark("quick", "nothing", lambda: None),))
    path = tmp_path / "benchmark.json"
    path.write_text(json.dumps({"context": "as it was", "runs": "old"}))
    bench.main(["runs", "--repetitions", "1", "--output", str(path)])
    written = json.loads(path.read_text(encoding="utf-8"))
    assert set(written) == {"machine", "versions", "repetitions", "runs", "context"}
    assert written["runs"]["quick"]["what"] == "nothing" and written["context"] == "as it was"
    assert json.loads(capsys.readouterr().out) == written


def test_the_committed_benchmark_holds_no_part_that_the_tool_does_not_know():
    assert set(benchmark()) - set(bench.PARTS) == {"machine", "versions", "repetitions"}


@pytest.mark.parametrize("num_context", [10, 100])
def test_the_forms_that_are_compared_predict_the_same(num_context):
    predictions = [work() for work in bench.two_forms(num_context).values()]
    for prediction in predictions[1:]:
        torch.testing.assert_close(prediction.squeeze(0), predictions[0].squeeze(0), rtol=1e-3, atol=1e-5)


def test_the_time_to_a_loss_ends_at_the_first_record_that_has_it(monkeypatch):
    start = mesa.FreeTransformer([mesa.random_weights(3, 1, [0])])
    settings = mesa.TrainingSettings(num_steps=3, batch_size=4, warmup_steps=0, record_every=1)
    ticks = iter([100.0, 101.0, 102.0, 103.0, 104.0])
    monkeypatch.setattr(bench, "time", SimpleNamespace(process_time=lambda: next(ticks)))
    answers = iter([False, False, True])
    tasks = mesa.LinearTasks(x_dim=3, num_context=4)
    assert bench.seconds_to(start, tasks, [0], settings, lambda learner: next(answers)) == 3.0


def test_a_loss_that_is_not_reached_has_no_time():
    start = mesa.FreeTransformer([mesa.random_weights(3, 1, [0])])
    settings = mesa.TrainingSettings(num_steps=1, batch_size=4, warmup_steps=0)
    tasks = mesa.LinearTasks(x_dim=3, num_context=4)
    assert bench.seconds_to(start, tasks, [0], settings, bench.within(tasks, 1e-9)) == math.inf


def test_a_layer_at_its_optimum_is_within_every_share_of_it():
    tasks = mesa.LinearTasks(x_dim=3, num_context=4)
    best = mesa.gd_construction(mesa.optimal_eta(tasks), 3, 1, num_context=4, dtype=torch.float64)
    worse = mesa.gd_construction(mesa.optimal_eta(tasks) * 1.5, 3, 1, num_context=4, dtype=torch.float64)
    assert bench.within(tasks, 1e-9)(mesa.FreeTransformer([best]))
    assert not bench.within(tasks, 0.003)(mesa.FreeTransformer([worse]))


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        bench.main(["everything"])
    assert "got everything" in capsys.readouterr().err


def test_no_repetitions_are_refused(capsys):
    with pytest.raises(SystemExit):
        bench.main(["--repetitions", "0"])
    assert "--repetitions: expected a positive number, got 0" in capsys.readouterr().err
