"""Figure 4 of von Oswald et al. (2023) in short: a block of MLP and attention beside one step of a meta-learned MLP.

One seed, a third of the chapter's training; bands that a run of this length keeps with room.
"""

from functools import cache

import pytest
import torch

from mesa_lib import (
    MetaLearnedMLP,
    SineTasks,
    TokenMLP,
    TrainingSettings,
    best_wave_step,
    kernel_rank,
    kernel_symmetry,
    learned_kernel,
    prediction_cosine,
    random_mlp,
    random_weights,
    sampled_query_loss,
    train,
)

SEEDS = (0,)
SETTINGS = TrainingSettings(
    num_steps=400, batch_size=128, learning_rate=6e-3, warmup_steps=100, loss=sampled_query_loss, record_every=400
)


@cache
def trained(kind):
    features = random_mlp(1, 39, SEEDS, input_scale=5.0)
    block = TokenMLP(features, [random_weights(39, 1, SEEDS, scale=0.1)]) if kind == "block" else None
    return train(block or MetaLearnedMLP(features), SineTasks(queries="pool", num_queries=128), SEEDS, SETTINGS).learner


@cache
def held_out():
    return SineTasks(queries="grid", num_queries=101).sample(1000, torch.Generator().manual_seed(8))


@torch.no_grad()
def loss(learner):
    return sampled_query_loss(learner, held_out())


def test_the_block_and_the_baseline_have_one_loss_near_that_of_the_best_step():
    block, baseline = loss(trained("block")), loss(trained("baseline"))
    assert ((block / baseline - 1).abs() < 0.08).all()
    best = best_wave_step(SineTasks()).loss
    assert ((block / best > 0.95) & (block / best < 1.35)).all()
    assert (prediction_cosine(trained("block"), trained("baseline"), held_out()) > 0.995).all()


def test_the_learned_kernel_is_symmetric_and_of_rank_two():
    block = trained("block")
    grid = torch.linspace(-5, 5, 101).view(1, 101, 1)
    with torch.no_grad():
        matrix = learned_kernel(block.layers()[0], block.features, 10)(grid, grid).squeeze(1)
    assert (kernel_rank(matrix) == 2).all() and (kernel_symmetry(matrix) > 0.99).all()


@pytest.mark.parametrize("kind", ["block", "baseline"])
def test_training_reaches_every_parameter(kind):
    start = random_mlp(1, 39, SEEDS, input_scale=5.0)
    for before, after in zip(start.parameters(), trained(kind).features.parameters(), strict=True):
        assert (before != after).any()
