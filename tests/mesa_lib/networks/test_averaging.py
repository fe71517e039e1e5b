"""Attention that divides by the context's length, tasks with prompts of every length, and readers of every layer."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    AveragingTransformer,
    FreeTransformer,
    LinearTasks,
    PromptTasks,
    apply_layers,
    gd_construction,
    gd_plus_plus_construction,
    generator,
    gradient_descent,
    gradient_descent_weights,
    layer_readers,
    random_layers,
    read_prediction,
)

EXACT = {"rtol": 0, "atol": 1e-12}
DOUBLE = torch.float64


@pytest.mark.parametrize("num_context", [1, 4, 9])
def test_the_construction_for_one_example_is_a_gradient_step_at_every_length(num_context, draw_batch, draw):
    batch, w_0 = draw_batch(num_context=num_context), draw(2, 3)
    network = AveragingTransformer([gd_construction(0.7, 3, 2, 1, w_0)], w_0)
    torch.testing.assert_close(network(batch), gradient_descent(batch, 0.7, w_0=w_0), **EXACT)


def test_on_tokens_it_computes_the_same(draw_batch):
    batch = draw_batch()
    layers = [weights.to(dtype=DOUBLE) for weights in random_layers(3, 3, 2, [0], scale=0.5)]
    network = AveragingTransformer(layers)
    by_tokens = read_prediction(apply_layers(layers, network.tokens(batch.expand(1))), 2)
    torch.testing.assert_close(network(batch), by_tokens, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("num_context", [1, 3, 5])
def test_at_one_length_it_is_a_free_transformer_whose_p_is_divided(num_context, draw_batch):
    batch = draw_batch(num_context=num_context)
    layers = [weights.to(dtype=DOUBLE) for weights in random_layers(2, 3, 2, [0], scale=0.5)]
    divided = [replace(weights, w_p=weights.w_p / num_context) for weights in layers]
    torch.testing.assert_close(AveragingTransformer(layers)(batch), FreeTransformer(divided)(batch), **EXACT)


def test_prompts_of_every_length_are_answered_like_the_prompts_alone():
    tasks = PromptTasks(x_dim=3, num_context=5, noise_std=0.2, inputs="normal")
    batch = tasks.sample(10, generator(3, "training tasks"), DOUBLE)
    whole = LinearTasks(x_dim=3, num_context=5, noise_std=0.2, inputs="normal").sample(
        10, generator(3, "training tasks"), DOUBLE
    )
    network = AveragingTransformer([weights.to(dtype=DOUBLE) for weights in random_layers(2, 3, 1, [0], scale=0.5)])
    for count in range(1, 6):
        own = [count - 1, count + 4]  # the tasks with `count` examples
        alone = whole.first(count)
        torch.testing.assert_close(network(batch)[:, own], network(alone)[:, own], **EXACT)
        got, expected = (gradient_descent_weights(given, 0.4, 3)[own] for given in (batch, alone))
        torch.testing.assert_close(got, expected, **EXACT)
        assert (batch.context_x[own, count:] == 0).all()


def test_the_first_examples_of_a_batch_are_the_same_tasks_shown_for_less_long(draw_batch):
    batch = draw_batch()
    shorter = batch.first(2)
    assert torch.equal(shorter.context_x, batch.context_x[:, :2])
    assert torch.equal(shorter.context_y, batch.context_y[:, :2])
    assert torch.equal(shorter.query_x, batch.query_x)
    assert torch.equal(shorter.teacher, batch.teacher)


def test_a_layer_of_a_construction_reads_as_so_many_steps_on_the_best_scale(draw_batch):
    batch, calibration = draw_batch(), draw_batch(50)
    network = FreeTransformer([gd_construction(0.4, 3, 2, 5, dtype=DOUBLE)] * 3)
    for steps, reader in enumerate(layer_readers(network, calibration), start=1):
        descent = gradient_descent_weights(calibration, 0.4, steps)
        scale = torch.linalg.lstsq(descent.flatten()[:, None], calibration.teacher.flatten()[:, None]).solution
        expected = float(scale) * gradient_descent_weights(batch, 0.4, steps)
        torch.testing.assert_close(reader.implicit_weights(batch), expected, **EXACT)


def test_each_member_of_an_ensemble_has_a_scale_of_its_own(draw_batch):
    batch, calibration = draw_batch(), draw_batch(20)
    etas = torch.tensor([0.2, 0.9], dtype=DOUBLE)
    weights = gd_plus_plus_construction(etas, torch.zeros(2, dtype=DOUBLE), 3, 2, 5)
    (reader,) = layer_readers(AveragingTransformer([weights]), calibration)
    found = reader.implicit_weights(batch)
    assert found.shape == (2, 4, 2, 3)
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-14)  # one step is one step, on the best scale


def test_bad_arguments_are_refused_by_name(refused, draw_batch, draw):
    batch = draw_batch()
    network = FreeTransformer([gd_construction(0.4, 3, 2, 5, dtype=DOUBLE)])
    refused(lambda: batch.first(6), ValueError, "num_context: expected at most 5 examples, got 6")
    refused(lambda: batch.first(0), ValueError, "num_context: expected a positive integer")
    refused(lambda: layer_readers(network, replace(batch, teacher=None)), ValueError, "calibration: expected a batch")
    started = FreeTransformer(network.layers(), draw(2, 3))
    refused(lambda: layer_readers(started, batch), ValueError, "network: expected one that starts from")
    silent = FreeTransformer([gd_construction(0.0, 3, 2, 5, dtype=DOUBLE)])
    refused(lambda: layer_readers(silent, batch), ValueError, "network: expected every layer to write")
