"""The committed networks are what the command line trains, and it still trains them."""

import json

import pytest
import torch

import mesa_lib as mesa
from mesa_lib.experiments import experiment
from mesa_lib.experiments.settings import as_plain, from_plain
from mesa_lib.results import garg_networks
from tools.toc import ROOT

GARG = experiment("garg-networks")
PARTS = GARG.parts("book")


def test_the_file_is_small_and_says_how_it_was_made():
    assert (ROOT / "mesa_lib" / "results" / "garg_networks.safetensors").stat().st_size < 1_000_000
    tensors, header = garg_networks()
    assert header["command"] == "python -m mesa_lib run garg-networks"
    assert header["seeds"] == list(range(GARG.seeds["book"]))
    # The settings may have grown since, but what trained these networks is what the experiment has.
    made_with = {part: as_plain(from_plain(plain)) for part, plain in header["recipes"].items()}
    assert json.dumps(made_with) == json.dumps({part: as_plain(settings) for part, settings in PARTS.items()})
    assert set(header["processor_seconds"]) == set(PARTS)
    assert sum(header["processor_seconds"].values()) < 360
    assert {name.partition("/")[0] for name in tensors} == set(PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_every_network_is_read_back_with_one_slice_a_seed(name):
    prompts, _, layers = name.partition("-")
    network = mesa.garg_network(int(layers), prompts)
    tensors, _ = garg_networks()
    state = {f"{name}/{key}": value for key, value in network.state_dict().items()}
    assert state.keys() == {key for key in tensors if key.startswith(f"{name}/")}
    assert all(torch.equal(value, tensors[key]) for key, value in state.items())
    assert type(network) is (mesa.AveragingTransformer if PARTS[name].network.averaging else mesa.FreeTransformer)
    assert network.num_layers == PARTS[name].network.num_layers
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert {len(parameter) for parameter in network.parameters()} == {GARG.seeds["book"]}


def test_training_one_seed_again_ends_at_the_committed_network():
    """One layer, the whole recipe, seed 1: the same step size within a percent, on any machine."""
    settings = PARTS["frozen-1"]
    start = settings.network.build(settings.tasks, [1])
    again = mesa.train(start, settings.tasks, [1], settings.training).learner
    batch = settings.tasks.sample(200, mesa.generator(0, "validation tasks"))
    committed = mesa.garg_network(1)(batch)[1]
    assert (again(batch)[0] - committed).norm() < 0.01 * committed.norm()


def test_there_is_no_other_network(refused):
    refused(lambda: mesa.garg_network(3), ValueError, "num_layers: expected 1, 2 or 5, got 3")
    refused(lambda: mesa.garg_network(2, "all"), ValueError, "prompts: expected one of 'frozen', 'every', got 'all'")
