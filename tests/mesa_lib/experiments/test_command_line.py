"""The command line: what it prints, draws and refuses."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

import mesa_lib as mesa
from mesa_lib.experiments import EXPERIMENTS, parallel
from mesa_lib.experiments.cli import main
from mesa_lib.experiments.plans import seeds_up_to
from mesa_lib.experiments.showing import draw, read_run

# One of each kind of figure.
SHOWN = ("figure-1", "figure-3", "figure-5")


def run(folder: Path, name: str, *more: str) -> int:
    return main(["run", name, "--scale", "smoke", "--out", str(folder), *more])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_at_the_smallest_scale_and_shows_itself(name, tmp_path, capsys):
    folder = tmp_path / name
    assert run(folder, name, "--seeds", "1") == 0
    printed = capsys.readouterr().out
    assert EXPERIMENTS[name].title in printed
    for part in EXPERIMENTS[name].parts("smoke"):
        assert f"{part}: 1 of 1 seeds finished" in printed
        final = json.loads((folder / part / "seed-0.json").read_text())["results"]["final"]
        assert f"  {'loss':24} {float(final['loss']):10.4g}" in printed
    for number in EXPERIMENTS[name].published:
        assert f"published, for the paper's scale: {number.value:.4g}, {number.source}" in printed
    if name in SHOWN:
        assert main(["show", str(folder)]) == 0
        assert f"figure: {folder / 'figure.png'}" in capsys.readouterr().out
        assert (folder / "figure.png").stat().st_size > 5000


def test_the_figure_of_a_run_draws_the_numbers_of_its_files(tmp_path):
    run(tmp_path / "run", "figure-2")
    files = [tmp_path / "run" / "one-layer" / f"seed-{seed}.json" for seed in (0, 1)]
    losses = [json.loads(path.read_text())["results"]["curves"]["loss"] for path in files]
    (axes,) = draw(read_run(tmp_path / "run")[1], {"one-layer": 0.5}).axes
    curves = [line for line in axes.lines if list(line.get_xdata()) == [0, 3, 6]]
    assert [list(line.get_ydata()) for line in curves] == losses
    one_step, zero, published = (line.get_ydata()[0] for line in axes.lines if line not in curves)
    tasks = mesa.LinearTasks()
    assert (one_step, zero) == (mesa.optimal_loss(tasks), mesa.zero_loss(tasks)) and published == zero / 2
    assert [note.get_text() for note in axes.texts] == ["one gradient step", "predicting zero", "published"]


def test_the_table_gives_mean_and_range_over_seeds(tmp_path, capsys):
    run(tmp_path / "run", "figure-2")
    files = [tmp_path / "run" / "one-layer" / f"seed-{seed}.json" for seed in (0, 1)]
    finals = [json.loads(path.read_text())["results"]["final"]["sensitivity_cosine"] for path in files]
    row = f"{sum(finals) / 2:10.4g}  ({min(finals):.4g} to {max(finals):.4g})"
    assert row in capsys.readouterr().out


def test_an_unfinished_run_shows_what_it_has(tmp_path, capsys):
    run(tmp_path / "run", "figure-4")
    for path in (tmp_path / "run" / "block").glob("seed-0.json"):
        path.unlink()
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "block: no seed finished" in printed and "mlp-and-step: 1 of 1 seeds finished" in printed


def test_list_names_all_and_says_what_can_be_set(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[: len(EXPERIMENTS)]] == list(EXPERIMENTS)
    assert main(["list", "figure-3", "--scale", "paper"]) == 0
    printed = capsys.readouterr().out
    assert "two-layers: 5000, five-layers: 50000" in printed and "  training.batch_size        2048" in printed
    assert "run figure-3 --scale paper --set tasks.input_range=1 training.clip_norm=10" in printed


def test_the_page_on_running_names_every_experiment_and_its_scales():
    page = (Path(__file__).parents[3] / "book" / "running.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    named = {row[0].strip("|` "): row[-1].strip("| ") for row in rows if len(row) == 3}
    assert named == {name: ", ".join(one.scales) for name, one in EXPERIMENTS.items()}


def test_overrides_reach_the_run_and_its_description(tmp_path):
    assert run(tmp_path / "run", "plateaus", "--seeds", "1", "--set", "num_steps=4", "two-heads:num_heads=3") == 0
    described = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert {part: one["training"]["num_steps"] for part, one in described.items()} == dict.fromkeys(described, 4)
    heads = {part: one["network"]["num_heads"] for part, one in described.items()}
    assert heads == {"one-head": 1, "two-heads": 3, "larger-start": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure-9"], "mesa: experiment: there is no 'figure-9'; near it: figure-"),
        (["figure-2", "--scale", "huge"], "mesa: --scale: expected one of 'paper', 'book', 'smoke' for figure-2, got"),
        (["figure-2", "--scale", ""], "mesa: --scale: expected one of 'paper', 'book', 'smoke' for figure-2, got ''"),
        (["figure-2", "--seeds", "99999999999"], "mesa: --seeds: expected at most 10000, got 99999999999"),
        (["figure-2", "--set", f"clip_norm={10**400}"], "mesa: --set training.clip_norm=1000"),
        (["figure-2", "--set", "num_step=3"], "mesa: --set num_step=3: there is no setting 'num_step'; near it: train"),
        (["figure-2", "--set", "num_steps=few"], "mesa: --set training.num_steps=few: expected an integer, got 'few'"),
        (["figure-2", "--checkpoint-seconds", "90"], "mesa: checkpoint seconds: expected at most 60, got 90"),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_refused_before_any_file(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(message) and said.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "figure-2", "--seeds", "0"], "argument --seeds: expected a positive integer, got '0'"),
        (["run", "figure-2", "--jobs", "two"], "argument --jobs: expected a positive integer, got 'two'"),
        (["run", "figure-2", "--device", "tpu"], "argument --device: invalid choice: 'tpu'"),
        (["run", "figure-2", "--out", ""], "argument --out: expected the path of a folder, got ''"),
        ([], "the following arguments are required: VERB"),
    ],
)
def test_a_command_that_cannot_be_read_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and message in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    assert main(["show", str(tmp_path / "nowhere")]) == 1
    assert "nowhere: expected the folder of a run, got no folder" in capsys.readouterr().err
    assert main(["show", str(tmp_path / ("long" * 100))]) == 1
    assert "mesa: [Errno " in capsys.readouterr().err
    assert main(["show", str(tmp_path)]) == 1
    assert "expected the folder of a run, got one without run.json" in capsys.readouterr().err
    (tmp_path / "run.json").write_text('{"format": 7}')
    assert main(["show", str(tmp_path)]) == 1
    assert "run.json: expected a file of format 1, got 7" in capsys.readouterr().err
    (tmp_path / "run.json").write_text('{"format": ')
    assert main(["show", str(tmp_path)]) == 1
    assert "run.json: expected a JSON file of a run, got something else or a part of one" in capsys.readouterr().err


def test_a_result_of_other_settings_is_not_shown(tmp_path, capsys):
    run(tmp_path / "run", "figure-2", "--seeds", "1")
    path = tmp_path / "run" / "one-layer" / "seed-0.json"
    content = json.loads(path.read_text())
    content["settings"]["tasks"]["x_dim"] = 4
    path.write_text(json.dumps(content))
    assert main(["show", str(tmp_path / "run")]) == 1
    assert "seed-0.json: is the file of another run: settings.tasks.x_dim was 4, and is 10" in capsys.readouterr().err


def test_an_interrupt_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mesa_lib.experiments.parallel.run_job", interrupted)
    assert run(tmp_path / "run", "figure-2") == 130
    assert "mesa: stopped; the same command goes on from the last checkpoint" in capsys.readouterr().err


def unread(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of the program where nobody reads what it prints."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as file, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", file)
        return main(arguments)


def test_an_output_that_nobody_reads_ends_the_program_without_a_traceback(tmp_path, capsys, monkeypatch):
    assert unread(monkeypatch, "list") == 141
    assert capsys.readouterr().err == ""
    folder = str(tmp_path / "run")
    assert unread(monkeypatch, "run", "figure-2", "--scale", "smoke", "--out", folder) == 141
    assert capsys.readouterr().err.startswith("mesa: stopped, as nobody reads what is printed; the same command goes")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_is_full_is_said_in_words(capsys, monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["list"]) == 1
    assert "mesa: [Errno 28]" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_is_said_in_words(tmp_path, capsys):
    run(tmp_path / "run", "figure-2", "--seeds", "1")
    (tmp_path / "run" / "figure.png").mkdir()
    assert main(["show", str(tmp_path / "run")]) == 1
    assert "figure.png: cannot be written, a folder has this name" in capsys.readouterr().err


def test_no_more_processes_are_started_than_there_are_trainings(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("joblib.parallel_config", lambda **given: asked.append(given["n_jobs"]) or nullcontext())
    monkeypatch.setattr("joblib.Parallel", lambda **_: lambda calls: ())
    assert run(tmp_path / "run", "figure-2", "--jobs", "100000") == 1
    assert asked == [2]


def test_without_joblib_or_dask_their_options_say_what_to_install(tmp_path, capsys, monkeypatch):
    for name, option in (("joblib", ["--jobs", "2"]), ("distributed", ["--dask", "tcp://127.0.0.1:1"])):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, name, None)
            assert run(tmp_path / name, "figure-2", *option) == 1
        assert f"{option[0]}: needs the package {name}; it comes with `pip install 'mesa-lib[experiments]'`" in (
            capsys.readouterr().err
        )


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://127.0.0.1:1", "ConnectionRefusedError"),
        ("127.0.0.1:1", "ConnectionRefusedError"),
        ("nowhere", "expected a host and a port, as in tcp://HOST:8786"),
        ("tcp://127.0.0.1", "expected a host and a port, as in tcp://HOST:8786"),
        ("tcp://127.0.0.1:99999", "Port out of range"),
        ("tcp://[::1", "Invalid IPv6 URL"),
        ("", "expected a host and a port"),
    ],
)
def test_an_address_where_nobody_listens_is_refused_at_once_and_before_any_file(address, reason, tmp_path, capsys):
    began = time.monotonic()
    assert run(tmp_path / "run", "figure-2", "--dask", address) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"mesa: --dask: expected the address of a scheduler that answers, got '{address}'")
    assert reason in said and not (tmp_path / "run").exists()
    assert time.monotonic() - began < parallel.SECONDS_TO_ANSWER


def test_a_program_that_is_no_scheduler_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(parallel, "SECONDS_TO_ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert run(tmp_path / "run", "figure-2", "--dask", address) == 1
    said = capsys.readouterr().err
    assert f"--dask: expected the address of a scheduler that answers, got '{address}'" in said
    assert run(tmp_path / "run", "figure-2", "--dask", "http://127.0.0.1:1") == 1
    assert "unknown address scheme" in capsys.readouterr().err


def test_the_package_is_a_program_that_needs_neither_joblib_nor_dask():
    program = (
        "import runpy, sys\n"
        "sys.argv = ['mesa_lib', 'list', 'softmax']\n"
        "try:\n    runpy.run_module('mesa_lib', run_name='__main__')\n"
        "except SystemExit as ended:\n"
        "    print(ended.code, sorted({'joblib', 'dask', 'distributed'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "softmax attention with one and two heads" in done.stdout and done.stdout.splitlines()[-1] == "0 []"


def test_seeds_count_from_zero():
    assert seeds_up_to(3) == (0, 1, 2)
    assert torch.get_num_threads() == 1
