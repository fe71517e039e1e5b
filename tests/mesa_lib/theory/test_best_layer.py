"""The best layer, found by descent on the exact loss, against closed forms where there are any."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    FreeTransformer,
    LinearTasks,
    best_layer,
    expected_query_loss,
    optimal_loss,
    optimal_preconditioner,
    population_loss,
)

TASKS = LinearTasks(4, 1, 6)
MEANING = replace(TASKS, teacher_mean=[[1.0, -0.5, 0.8, 1.2]])
SHAPE = torch.diag(torch.tensor([2.0, 1.0, 0.5, 0.2])) + 0.1


@pytest.mark.parametrize(
    "tasks",
    [TASKS, replace(TASKS, y_dim=2, noise_std=0.5), replace(TASKS, inputs="laplace", input_covariance=SHAPE)],
)
def test_on_tasks_without_a_mean_it_is_the_best_preconditioned_step(tasks):
    """The least of three starts; a start may end on a saddle."""
    found = population_loss(tasks, best_layer(tasks, range(3)))
    expected = population_loss(tasks, optimal_preconditioner(tasks))
    torch.testing.assert_close(found.min(), expected, rtol=1e-8, atol=0)


def test_from_the_mean_it_is_the_best_step_of_the_mean_free_tasks():
    mean = MEANING.teacher_center
    found = population_loss(MEANING, best_layer(MEANING, [0], w_0=mean), mean)
    assert float(found) == pytest.approx(optimal_loss(TASKS), rel=1e-8)


def test_with_the_slot_at_zero_it_lies_between_the_mean_free_step_and_the_step_from_zero(seeded):
    """Three starts, one loss; it is what sampled tasks show, within 4 standard errors."""
    layer = best_layer(MEANING, range(3))
    losses = population_loss(MEANING, layer)
    assert float(losses.max() / losses.min()) < 1 + 1e-6
    assert 1.05 * optimal_loss(TASKS) < float(losses[0]) < 0.9 * optimal_loss(MEANING)
    network = FreeTransformer([layer.members([0])])
    batches = (MEANING.sample(2500, seeded, dtype=torch.float64) for _ in range(40))
    sampled = torch.stack([expected_query_loss(network, batch, MEANING).detach() for batch in batches])
    assert abs(float(sampled.mean() - losses[0])) < 4 * float(sampled.std()) / 40**0.5


def test_more_heads_and_biases_do_not_raise_the_least_loss():
    one = population_loss(MEANING, best_layer(MEANING, [0]))
    two = population_loss(MEANING, best_layer(MEANING, [0], num_heads=2))
    assert float(two) < 0.98 * float(one)
    biased = replace(TASKS, constant_input=True)  # for inputs and teachers of mean zero they do not lower it either
    assert float(population_loss(biased, best_layer(biased, [0]))) == pytest.approx(optimal_loss(TASKS), rel=1e-8)


def test_no_seeds_and_no_heads_are_refused(refused):
    refused(lambda: best_layer(TASKS, []), ValueError, "seeds: expected at least one seed")
    refused(lambda: best_layer(TASKS, [0], num_heads=0), ValueError, "num_heads: expected a positive integer, got 0")
