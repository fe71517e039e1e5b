"""The tool that records trainings for widgets writes what the committed records are, in form."""

import json

import pytest

import mesa_lib as mesa
from tools import record


def form(value):
    """The nested shape of a record: keys, lengths and kinds of numbers."""
    if isinstance(value, dict):
        return {key: form(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [form(value[0]), len(value)] if value else []
    return type(value).__name__


@pytest.fixture
def short_training(monkeypatch):
    """Training for as many records as the tool asks for, but hardly any steps between them."""

    def train(tasks, seeds, record_every):
        start = mesa.FreeTransformer([mesa.random_weights(tasks.x_dim, 1, seeds, scale=0.1)])
        settings = mesa.TrainingSettings(num_steps=400 // record_every, batch_size=4, warmup_steps=0, record_every=1)
        return mesa.train(start, tasks, seeds, settings)

    monkeypatch.setattr(record, "train_layer", train)


def test_a_run_has_the_form_of_the_committed_one(short_training):
    # Steps 0 to 40 stand for 0 to 400: as many records as the tool keeps of a real training.
    found = record.record_run()
    committed = json.loads(record.RUN.read_text(encoding="utf-8"))
    assert found["steps"] == list(range(41)) and committed["steps"][-1] == 400
    kept = len(committed["steps"])
    for name in ("loss", "cosine", "twin_share", "w_kq", "w_pv"):
        found[name] = [member[:kept] for member in found[name]]
    found["steps"] = found["steps"][:kept]
    assert form(found) == form(committed)


def test_steps_have_the_form_of_the_committed_ones(short_training):
    found, committed = record.record_steps(), json.loads(record.STEPS.read_text(encoding="utf-8"))
    settings = ("x_dim", "num_context", "inputs", "noise_std")
    assert [[one[name] for name in settings] for one in found] == [
        [one[name] for name in settings] for one in committed
    ]
    assert all(set(one) == set(committed[0]) for one in found)


def test_writing_says_whether_a_record_is_new(tmp_path):
    path = tmp_path / "record.json"
    assert record.write(path, {"a": [1, 2.5]}) and not record.write(path, {"a": [1, 2.5]})
    assert path.read_text(encoding="utf-8") == '{"a":[1,2.5]}\n'
