"""A transformer that learns the W_0 in its query token: member by member it is a transformer from a given W_0."""

import pytest
import torch

from mesa_lib import (
    FreeTransformer,
    LearnedStart,
    LinearTasks,
    TaskBatch,
    TrainingSettings,
    apply_layers,
    random_weights,
    read_prediction,
    train,
)

DOUBLE = torch.float64


@pytest.fixture
def layers():
    return [random_weights(3, 2, [seed, seed + 10], num_heads=2, scale=0.4, dtype=DOUBLE) for seed in (0, 1)]


def test_each_member_is_the_transformer_that_starts_from_its_w_0(layers, draw, draw_batch):
    starts, batch = draw(2, 2, 3), draw_batch()
    network = LearnedStart(layers, starts)
    for member in range(2):
        alone = FreeTransformer([weights.members(member) for weights in layers], starts[member])
        torch.testing.assert_close(network(batch)[member], alone(batch), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("stacked", [False, True])
def test_its_tokens_and_its_second_moments_agree(stacked, layers, draw, draw_batch):
    network = LearnedStart(layers, draw(2, 2, 3))
    batch = TaskBatch.stack([draw_batch(), draw_batch()]) if stacked else draw_batch()
    from_tokens = read_prediction(apply_layers(network.layers(), network.tokens(batch)), 2)
    torch.testing.assert_close(network(batch), from_tokens, rtol=1e-11, atol=1e-12)


def test_training_moves_the_start_towards_the_teachers_mean():
    mean = torch.tensor([[1.0, -0.5, 0.8]])
    tasks = LinearTasks(3, 1, 8, teacher_mean=mean)
    network = LearnedStart([random_weights(3, 1, [0, 1], scale=0.1)], torch.zeros(2, 1, 3))
    run = train(network, tasks, [0, 1], TrainingSettings(num_steps=800, batch_size=64))
    assert (run.learner.start - mean).norm(dim=-1).max() < 0.2
    assert not network.start.any()


@pytest.mark.parametrize(
    "shape",
    [(2, 3), (3, 2, 3), (2, 2, 4), (1, 2, 2, 3)],
)
def test_a_start_that_does_not_fit_the_layers_is_refused(shape, layers, refused):
    message = "start: expected"
    refused(lambda: LearnedStart(layers, torch.zeros(*shape, dtype=DOUBLE)), ValueError, message)


def test_a_start_of_another_dtype_is_refused(layers, refused):
    message = "start: expected dtype torch.float64, that of layers[0], got torch.float32"
    refused(lambda: LearnedStart(layers, torch.zeros(2, 2, 3)), TypeError, message)
