"""What a run writes, what it reads again, and what it refuses."""

import errno
import json
import math
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import mesa_lib as mesa
from mesa_lib.experiments import Job, Plan, RunError, SettingError, experiment, override, run_all, run_job, running
from mesa_lib.experiments.files import json_bytes, read_checkpoint, write_checkpoint, write_whole
from mesa_lib.experiments.measures import measure
from mesa_lib.experiments.settings import as_plain
from mesa_lib.experiments.showing import read_run

FIGURE_2 = experiment("figure-2")


def plan(folder: Path, name="figure-2", *assignments, seeds=(0, 1), part=None, **more) -> Plan:
    """A smoke run, of one part where a part is named."""
    one = experiment(name)
    parts = {text: settings for text, settings in one.parts("smoke").items() if part in (None, text)}
    return Plan(one, "smoke", override(parts, assignments), seeds, folder, **more)


def ended(one: Plan) -> list[tuple[str, int, str]]:
    return [(job.part, job.seeds[0], said) for job, said in run_all(one)]


def contents(path: Path) -> dict:
    return json.loads(path.read_text())


def stopped_at(step: int, monkeypatch: pytest.MonkeyPatch):
    """A training that is interrupted after the checkpoint of a step."""
    write = running.write_checkpoint

    def writing(path, state, header):
        write(path, state, header)
        if state.step == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(running, "write_checkpoint", writing)


def test_a_run_holds_what_the_library_trains_and_measures(tmp_path):
    """The oracle calls the library's own parts one by one, as a chapter would."""
    one = plan(tmp_path / "run", "figure-2", "num_tasks=50")
    assert ended(one) == [("one-layer", 0, "trained"), ("one-layer", 1, "trained")]
    tasks = mesa.LinearTasks()
    settings = mesa.TrainingSettings(num_steps=6, batch_size=8, warmup_steps=2, record_every=3)
    fresh = tasks.sample(50, mesa.generator(0, "validation tasks"))
    step = mesa.gradient_descent_learner(mesa.optimal_eta(tasks))
    for seed in (0, 1):
        start = mesa.FreeTransformer([mesa.random_weights(10, 1, [seed], scale=0.0135)])
        trained = mesa.train(start, tasks, [seed], settings)
        results = contents(tmp_path / "run" / "one-layer" / f"seed-{seed}.json")["results"]
        assert results["steps"] == [0, 3, 6] and results["tasks_seen"] == 48
        assert results["training_loss"] == trained.losses[:, 0].tolist()
        records = [trained.learner_at(k).requires_grad_(False) for k in range(3)]
        losses = [float(mesa.expected_query_loss(learner, fresh, tasks)) for learner in records]
        assert results["curves"]["loss"] == pytest.approx(losses, rel=1e-6)
        assert results["final"]["loss"] == results["curves"]["loss"][-1]
        assert results["final"]["relative_loss"] == pytest.approx(losses[-1] / mesa.zero_loss(tasks), rel=1e-6)
        likeness = mesa.compare(trained.learner, step, fresh)
        assert results["final"]["sensitivity_cosine"] == pytest.approx(float(likeness.sensitivity_cosine), rel=1e-5)
        weights = load_file(tmp_path / "run" / "one-layer" / f"seed-{seed}.safetensors")
        for record, snapshot in enumerate(trained.snapshots):
            assert all(torch.equal(weights[name][record], value[0]) for name, value in snapshot.items())


def test_a_file_says_how_it_was_made(tmp_path):
    ended(plan(tmp_path / "run", seeds=(3,)))
    made = contents(tmp_path / "run" / "one-layer" / "seed-3.json")
    assert made["format"] == 1 and made["seed"] == 3 and made["device"] == "cpu"
    assert made["settings"] == json.loads(json.dumps(as_plain(FIGURE_2.parts("smoke")["one-layer"])))
    (session,) = made["made_by"]["sessions"]
    assert session["from_step"] == 0 and session["versions"]["torch"] == torch.__version__
    assert session["versions"]["mesa_lib"] == mesa.__version__
    assert session["git"] is None or set(session["git"]) == {"commit", "changed"}
    described = contents(tmp_path / "run" / "run.json")
    assert (described["experiment"], described["scale"], described["seeds"]) == ("figure-2", "smoke", [3])


def test_the_last_parameters_of_all_stand_in_one_file(tmp_path):
    one = plan(tmp_path / "run", "garg-networks", part="every-2")
    ended(one)
    tensors = load_file(tmp_path / "run" / "networks.safetensors")
    settings = one.parts["every-2"]
    trained = mesa.train(settings.network.build(settings.tasks, (0, 1)), settings.tasks, (0, 1), settings.training)
    state = {f"every-2/{name}": value for name, value in trained.learner.state_dict().items()}
    assert state.keys() == {name for name in tensors if name.startswith("every-2/")}
    assert all(torch.equal(value, tensors[name]) for name, value in state.items())
    with safe_open(tmp_path / "run" / "networks.safetensors", framework="pt") as file:
        header = file.metadata()
    assert header["command"] == "python -m mesa_lib run garg-networks" and json.loads(header["seeds"]) == [0, 1]
    assert json.loads(header["recipes"]).keys() == one.parts.keys()


def test_a_second_call_trains_nothing_and_more_seeds_are_added(tmp_path):
    ended(plan(tmp_path / "run"))
    before = (tmp_path / "run" / "one-layer" / "seed-0.json").read_bytes()
    assert [said for *_, said in ended(plan(tmp_path / "run", seeds=(0, 1, 2)))] == ["was finished"] * 2 + ["trained"]
    assert (tmp_path / "run" / "one-layer" / "seed-0.json").read_bytes() == before
    assert contents(tmp_path / "run" / "run.json")["seeds"] == [0, 1, 2]
    assert [said for *_, said in ended(plan(tmp_path / "run"))] == ["was finished"] * 2
    assert contents(tmp_path / "run" / "run.json")["seeds"] == [0, 1, 2]


def test_an_interrupted_run_goes_on_and_remembers_its_sessions(tmp_path, monkeypatch):
    ended(plan(tmp_path / "whole", seeds=(0,)))
    broken = plan(tmp_path / "broken", seeds=(0,), seconds=1e-9)
    with monkeypatch.context() as patched:
        stopped_at(4, patched)
        with pytest.raises(KeyboardInterrupt):
            ended(broken)
    assert ended(broken) == [("one-layer", 0, "went on from step 4")]
    whole, pieced = (contents(tmp_path / name / "one-layer" / "seed-0.json") for name in ("whole", "broken"))
    assert [one["from_step"] for one in pieced.pop("made_by")["sessions"]] == [0, 4]
    del whole["made_by"]
    assert pieced == whole
    assert [path.name for path in (tmp_path / "broken" / "one-layer").iterdir() if "checkpoint" in path.name] == []


def test_checkpoints_are_kept_by_the_clock_and_at_the_end(tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(running, "write_checkpoint", lambda path, state, header: kept.append(state.step))
    ended(plan(tmp_path / "seldom", seeds=(0,), seconds=60))
    assert kept == [6]
    now = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: now.__setitem__(0, now[0] + 7) or now[0])
    kept.clear()
    ended(plan(tmp_path / "often", seeds=(0,), seconds=20))
    assert kept[-1] == 6 and 2 <= len(kept) < 6


def test_progress_says_step_loss_speed_and_the_time_that_is_left(tmp_path, monkeypatch, capsys):
    # Each look at the clock is 6 seconds later: a line every other step.
    now = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: now.__setitem__(0, now[0] + 6) or now[0])
    ended(plan(tmp_path / "run", seeds=(0,), seconds=60))
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    trained = [line for line in lines if " measured " not in line]
    assert trained and "one-layer, seed 0: trained; measured 2 of 3 records" in lines
    for line in trained:
        words = line.split(": ", 1)[1]
        assert line.startswith("one-layer, seed 0: step ") and words.startswith("step ")
        assert all(part in words for part in (" of 6, loss ", " at step ", " steps/s, ", " s left"))


def test_a_training_that_goes_on_says_the_loss_that_was_recorded_last(tmp_path, monkeypatch, capsys):
    one = plan(tmp_path / "run", "figure-2", "record_every=2", seeds=(0,), seconds=1e-9)
    with monkeypatch.context() as patched:
        stopped_at(3, patched)
        with pytest.raises(KeyboardInterrupt):
            ended(one)
    recorded, _ = read_checkpoint(one.jobs[0].checkpoint, {})
    capsys.readouterr()
    now = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: now.__setitem__(0, now[0] + 20) or now[0])
    ended(one)
    first = capsys.readouterr().err.splitlines()[0]
    assert f"step 4 of 6, loss {float(recorded.tensors['records/loss'][-1]):.4g} at step 2, " in first


@pytest.fixture
def stopped(tmp_path, monkeypatch) -> Job:
    """A job with a checkpoint of step 4."""
    one = plan(tmp_path / "run", seeds=(0,), seconds=1e-9)
    with monkeypatch.context() as patched:
        stopped_at(4, patched)
        with pytest.raises(KeyboardInterrupt):
            ended(one)
    return one.jobs[0]


def refused_checkpoint(job: Job, message: str) -> None:
    before = job.checkpoint.read_bytes()
    try:
        said = run_job(job)
    except RunError as error:
        said = str(error)
    assert message in said and "delete it to start these seeds afresh" in said and str(job.checkpoint) in said
    assert job.checkpoint.read_bytes() == before and not job.is_finished


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.5, 0.999])
def test_a_cut_off_checkpoint_is_refused(stopped, kept):
    whole = stopped.checkpoint.read_bytes()
    stopped.checkpoint.write_bytes(whole[: int(kept * len(whole))])
    refused_checkpoint(stopped, "expected a checkpoint, got a damaged or cut-off file")


def test_a_checkpoint_with_one_flipped_bit_is_refused(stopped):
    content = bytearray(stopped.checkpoint.read_bytes())
    content[-5] ^= 1
    stopped.checkpoint.write_bytes(content)
    refused_checkpoint(stopped, "expected the numbers that were written, got others: the file is damaged")


@pytest.mark.parametrize("change", [("step", 3), ("sessions", 3), ("processor_seconds", "long"), ("step", None)])
def test_a_checkpoint_with_another_header_is_refused(stopped, change):
    """A wrong step would go on with the right numbers, and end with wrong ones."""
    with safe_open(stopped.checkpoint, framework="pt") as file:
        header = json.loads(file.metadata()["mesa checkpoint"])
    changed = json.dumps(header | dict([change]))
    save_file(load_file(stopped.checkpoint), stopped.checkpoint, metadata={"mesa checkpoint": changed})
    refused_checkpoint(stopped, "expected the numbers that were written, got others: the file is damaged")


@pytest.mark.parametrize(
    ("text", "message"), [("{", "damaged or cut-off file"), ("[1]", "of another program"), ("null", "of another")]
)
def test_a_checkpoint_whose_header_is_no_description_is_refused(stopped, text, message):
    save_file(load_file(stopped.checkpoint), stopped.checkpoint, metadata={"mesa checkpoint": text})
    refused_checkpoint(stopped, message)


def test_the_tensors_of_another_program_are_refused(stopped):
    save_file({"weight": torch.zeros(3)}, stopped.checkpoint)
    refused_checkpoint(stopped, "expected a checkpoint, got tensors of another program")


def test_the_checkpoint_of_another_seed_or_other_settings_is_refused(stopped):
    state, header = read_checkpoint(stopped.checkpoint, {})
    write_checkpoint(stopped.checkpoint, state, header | {"seeds": [5]})
    refused_checkpoint(stopped, "is the checkpoint of something else: seeds was [5], and is [0]")
    other = json.loads(json.dumps(header))
    other["settings"]["training"]["num_steps"] = 7
    write_checkpoint(stopped.checkpoint, state, other)
    refused_checkpoint(stopped, "settings.training.num_steps was 7, and is 6")


def test_the_checkpoint_of_another_format_is_refused(stopped, monkeypatch):
    state, header = read_checkpoint(stopped.checkpoint, {})
    with monkeypatch.context() as patched:
        patched.setattr("mesa_lib.experiments.files.FORMAT", 2)
        write_checkpoint(stopped.checkpoint, state, {name: header[name] for name in header if name != "format"})
    refused_checkpoint(stopped, "expected a checkpoint of format 1, got 2")


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "numbers.json"
    write_whole(path, b"old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("mesa_lib.experiments.files.os.fsync", full)
        with pytest.raises(RunError, match=r"numbers.json: cannot be written, the disk is full. What was finished"):
            write_whole(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    write_whole(path, b"new")
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_a_folder_with_another_run_or_something_else_is_refused(tmp_path):
    ended(plan(tmp_path / "run"))
    with pytest.raises(RunError, match=r"holds another run: settings.one-layer.training.num_steps was 6, and is 8"):
        ended(plan(tmp_path / "run", "figure-2", "num_steps=8"))
    with pytest.raises(RunError, match=r"holds another run: experiment was 'figure-2', and is 'figure-1'"):
        ended(plan(tmp_path / "run", "figure-1"))
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "love.txt").write_text("dear")
    with pytest.raises(RunError, match=r"expected a new folder or one of a run, got one with 'love.txt'"):
        ended(plan(tmp_path / "letters"))
    ended(plan(tmp_path / "garg", "garg-networks", part="frozen-1"))
    with pytest.raises(RunError, match=r"seeds are trained together, \[0, 1\]; it cannot have others, \[0, 1, 2\]"):
        ended(plan(tmp_path / "garg", "garg-networks", part="frozen-1", seeds=(0, 1, 2)))


def test_a_refused_folder_is_left_as_it_was(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "love.txt").write_text("dear")
    ended(plan(tmp_path / "run", seeds=(0,)))
    for folder in (tmp_path / "letters", tmp_path / "run"):
        before = sorted(folder.rglob("*"))
        with pytest.raises(RunError):
            ended(plan(folder, "figure-5", seeds=(0,)))
        assert sorted(folder.rglob("*")) == before


def refused_result(folder: Path, path: Path, message: str) -> None:
    with pytest.raises(RunError) as caught:
        ended(plan(folder, seeds=(0, 1)))
    assert f"{path}: {message}" in str(caught.value)
    assert str(caught.value).endswith("delete seed-0.json and run again to train this seed afresh")
    assert not (path.parent / "seed-1.json").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"format": 1', "[" * 100_000, "expected a JSON file of a run, got something else or a part of one"),
        ('"results"', '"others"', "expected a dict under 'results', got nothing"),
        ('"steps"', '"leaps"', "expected steps, curves and final numbers under 'results', got others"),
        ('"steps": [', '"steps": [0,', "expected one number a recorded step in each curve, got others"),
        ('"loss"', '"gain"', "expected 'loss' among the curves and the final numbers, got none"),
        ('_seconds": ', '_seconds": null, "x": ', "expected numbers, got None"),
    ],
)
def test_a_damaged_result_is_refused_before_others_are_trained(tmp_path, old, new, message):
    ended(plan(tmp_path, seeds=(0,)))
    path = tmp_path / "one-layer" / "seed-0.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    refused_result(tmp_path, path, message)


def test_damaged_parameters_are_refused_before_others_are_trained(tmp_path):
    ended(plan(tmp_path, seeds=(0,)))
    path = tmp_path / "one-layer" / "seed-0.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    refused_result(tmp_path, path, "expected tensors, got a damaged or cut-off file")
    save_file({"weight": torch.zeros(2)}, path)
    refused_result(tmp_path, path, "expected the parameters at 3 recorded steps, got others")
    path.unlink()
    refused_result(tmp_path, path, "cannot be read, No such file or directory")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"made_by": None}, "expected a dict under 'made_by', got NoneType"),
        ({"settings": []}, "expected a dict under 'settings', got list"),
        ({"seeds": [0, "1"]}, "seeds: expected integers, got '1' of type str"),
        ({"seeds": []}, "seeds: expected at least one seed"),
    ],
)
def test_a_damaged_description_of_a_run_is_refused(tmp_path, change, message):
    path = tmp_path / "run.json"
    whole = {**plan(tmp_path).description, "format": 1, "seeds": [0], "made_by": {}}
    path.write_text(json.dumps(whole | change))
    for refusing in (lambda: ended(plan(tmp_path)), lambda: read_run(tmp_path)):
        with pytest.raises(RunError) as caught:
            refusing()
        assert f"{path}: {message}" in str(caught.value)


@pytest.mark.parametrize(
    "assignment",
    ["batch_size=9999999999999", "num_tasks=9999999999999", "learning_rate=1e300", "evaluation.seed=4294967296"],
)
def test_sizes_and_numbers_without_room_are_refused_before_any_work(tmp_path, assignment):
    with pytest.raises(SettingError, match="one-layer: these settings do not go together: "):
        plan(tmp_path / "run", "figure-2", assignment)
    assert list(tmp_path.iterdir()) == []


def test_what_theory_cannot_answer_is_refused_before_any_work(tmp_path):
    with pytest.raises(SettingError, match="two-layers: these settings do not go together: "):
        plan(tmp_path / "run", "figure-3", "constant_input=true")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"seeds": ()}, "seeds: expected at least one seed"),
        ({"seconds": 61.0}, "checkpoint seconds: expected at most 60, got 61"),
        ({"seconds": 0.0}, "checkpoint seconds: expected a number > 0"),
        ({"device": "tpu"}, "device: expected one of 'cpu', 'cuda', 'mps', got 'tpu'"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path, more, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        plan(tmp_path / "run", **more)
    assert message in str(caught.value) and list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SettingError, match="--device: expected one that this machine has"):
        plan(tmp_path / "run", device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_run_on_a_cuda_device_measures_what_one_on_the_cpu_does(tmp_path):
    for device in ("cpu", "cuda"):
        ended(plan(tmp_path / device, seeds=(0,), device=device))
    ours, theirs = (contents(tmp_path / d / "one-layer" / "seed-0.json")["results"]["final"] for d in ("cuda", "cpu"))
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-4)


def test_a_roll_out_is_a_loop_that_moves_the_targets_alone(tmp_path):
    one = plan(
        tmp_path / "run", "figure-1", "num_tasks=20", "num_loops=4", "damping=0.5", "start_scale=0.3", seeds=(0,)
    )
    settings = one.parts["one-layer"]
    run = mesa.train(settings.network.build(settings.tasks, [0]), settings.tasks, [0], settings.training)
    _, last = measure(settings, run, "cpu")
    batch = settings.tasks.sample(20, mesa.generator(0, "validation tasks")).to(dtype=torch.float64)
    (layer,) = [weights.detach().members(0).to(dtype=torch.float64) for weights in run.learner.layers()]
    # The targets' slot of every token, moved four times by half of what the layer adds.
    basis = torch.eye(10, dtype=torch.float64).expand(20, -1, -1)
    context, query = batch.context_y, torch.zeros(20, 10, 1, dtype=torch.float64)
    for _ in range(4):
        tokens = mesa.Tokens(torch.cat([batch.context_x, context], -1), torch.cat([basis, query], -1))
        moved = mesa.linear_self_attention(layer, tokens)
        context = context + 0.5 * (moved.context - tokens.context)[..., -1:]
        query = query + 0.5 * (moved.query - tokens.query)[..., -1:]
    error = -query.mT - batch.teacher
    losses = 0.5 * error.square().sum((-1, -2)) * settings.tasks.second_moment
    expected = float(losses.mean()) / mesa.zero_loss(settings.tasks)
    assert last["roll_out_mean_4"] == [pytest.approx(expected, rel=1e-4)]
    assert set(last) >= {"roll_out_mean_1", "roll_out_median_4", "roll_out_lost_1"}


def test_a_diverged_number_is_written_as_a_word_and_read_as_a_number():
    written = json_bytes({"losses": [1.5, math.inf, -math.inf, math.nan], "deep": {"one": math.inf}})
    found = json.loads(written, parse_constant=lambda word: pytest.fail(f"no JSON: {word}"))
    assert found["losses"][0] == 1.5 and found["deep"]["one"] == "inf"
    assert [float(one) for one in found["losses"][1:3]] == [math.inf, -math.inf] and math.isnan(
        float(found["losses"][3])
    )
