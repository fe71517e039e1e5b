"""The committed networks are what the tool that trains them says, and the tool still trains them."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import mesa_lib as mesa
from mesa_lib.results import garg_networks
from tools.garg_networks import COMMAND, RECIPES, RESULT, SEEDS, Recipe, main, train_recipe


def test_the_file_is_small_and_says_how_it_was_made():
    assert RESULT.stat().st_size < 1_000_000
    tensors, header = garg_networks()
    assert header["command"] == COMMAND
    assert tuple(header["seeds"]) == SEEDS
    assert {name: Recipe(**recipe) for name, recipe in header["recipes"].items()} == RECIPES
    assert set(header["processor_seconds"]) == set(RECIPES)
    assert sum(header["processor_seconds"].values()) < 360
    assert {name.partition("/")[0] for name in tensors} == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_every_network_is_read_back_with_one_slice_a_seed(name):
    prompts, _, layers = name.partition("-")
    network = mesa.garg_network(int(layers), prompts)
    tensors, _ = garg_networks()
    state = {f"{name}/{key}": value for key, value in network.state_dict().items()}
    assert state.keys() == {key for key in tensors if key.startswith(f"{name}/")}
    assert all(torch.equal(value, tensors[key]) for key, value in state.items())
    assert type(network) is (mesa.AveragingTransformer if RECIPES[name].every_length else mesa.FreeTransformer)
    assert network.num_layers == RECIPES[name].num_layers
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert {len(parameter) for parameter in network.parameters()} == {len(SEEDS)}


def test_training_one_seed_again_ends_at_the_committed_network():
    """One layer, the whole recipe, seed 1: the same step size within a percent, on any machine."""
    again = train_recipe(RECIPES["frozen-1"], seeds=[1]).learner
    batch = RECIPES["frozen-1"].tasks.sample(200, mesa.generator(0, "validation tasks"))
    committed = mesa.garg_network(1)(batch)[1]
    assert (again(batch)[0] - committed).norm() < 0.01 * committed.norm()


def test_the_smoke_run_trains_every_recipe_and_writes_nothing(tmp_path: Path, capsys):
    main(["--smoke", "--out", str(tmp_path / "none.safetensors")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(RECIPES)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_written_whole(tmp_path: Path, monkeypatch, capsys):
    tiny = Recipe(1, False, num_steps=3, batch_size=4, warmup_steps=1)
    monkeypatch.setattr("tools.garg_networks.RECIPES", {"tiny": tiny})
    out = tmp_path / "networks.safetensors"
    main(["--out", str(out)])
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    with safe_open(out, framework="pt") as file:
        assert sorted(file.keys()) == ["tiny/w_k_0", "tiny/w_p_0", "tiny/w_q_0", "tiny/w_v_0"]
        assert json.loads(file.metadata()["recipes"]) == {"tiny": asdict(tiny)}


def test_there_is_no_other_network(refused):
    refused(lambda: mesa.garg_network(3), ValueError, "num_layers: expected 1, 2 or 5, got 3")
    refused(lambda: mesa.garg_network(2, "all"), ValueError, "prompts: expected one of 'frozen', 'every', got 'all'")
