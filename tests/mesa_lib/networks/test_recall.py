"""What a memory recalls, and the random pairs that it is tried on."""

import math

import pytest
import torch

from mesa_lib import generator, least_squares_memory, random_pairs, recall_error, write_memory

TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def test_an_empty_memory_has_error_one(draw):
    keys, values = draw(3, 6, 4), draw(3, 6, 5)
    torch.testing.assert_close(recall_error(torch.zeros(3, 5, 4).double(), keys, values), torch.ones(3).double())


def test_recall_error_is_the_squared_error_relative_to_the_values(draw):
    keys, values, memory = draw(2, 6, 4), draw(2, 6, 5), draw(2, 5, 4)
    answers = torch.stack([torch.stack([memory[m] @ key for key in keys[m]]) for m in range(2)])
    expected = [float((answers[m] - values[m]).norm() ** 2 / values[m].norm() ** 2) for m in range(2)]
    torch.testing.assert_close(recall_error(memory, keys, values), torch.tensor(expected, dtype=torch.float64), **TIGHT)


def test_recall_error_does_not_change_when_values_and_memory_are_scaled(draw):
    keys, values, memory = draw(1, 6, 4), draw(1, 6, 5), draw(1, 5, 4)
    expected = recall_error(memory, keys, values)
    torch.testing.assert_close(recall_error(7 * memory, keys, 7 * values), expected, **TIGHT)


def test_no_memory_of_its_own_pairs_beats_least_squares(draw):
    keys, values = draw(4, 12, 5), draw(4, 12, 3)
    best = least_squares_memory(keys, values)
    least = recall_error(best, keys, values)
    for _ in range(5):
        assert bool((recall_error(best + 0.1 * draw(4, 3, 5), keys, values) > least).all())


def test_unit_keys_have_length_one_and_no_preferred_direction():
    keys, values = random_pairs(3, 4, 20_000, generator(0, "validation tasks"), value_dim=2)
    assert keys.shape == (20_000, 3, 4)
    assert values.shape == (20_000, 3, 2)
    torch.testing.assert_close(keys.norm(dim=-1), torch.ones(20_000, 3).double(), **TIGHT)
    spread = (keys[..., :, None] * keys[..., None, :]).mean((0, 1))  # E k k^T = I / d, each entry to 4 standard errors
    assert float((spread - torch.eye(4) / 4).abs().max()) < 4 * 0.25 / math.sqrt(60_000)


def test_orthonormal_keys_are_at_right_angles_and_recalled_exactly():
    keys, values = random_pairs(4, 4, 3, generator(0, "validation tasks"), keys="orthonormal")
    torch.testing.assert_close(keys @ keys.mT, torch.eye(4).double().expand(3, 4, 4), **TIGHT)
    assert float(recall_error(write_memory(keys, values), keys, values).max()) < 1e-24


def test_random_pairs_are_those_of_their_generator():
    first, again, other = (random_pairs(3, 4, 2, generator(seed, "validation tasks")) for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    assert random_pairs(3, 4, 2, generator(0, "init"), dtype=torch.float32)[0].dtype == torch.float32


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"num_pairs": 0}, ValueError, "num_pairs: expected a positive integer"),
        ({"num_memories": 1.5}, TypeError, "num_memories: expected a positive integer"),
        ({"value_dim": -1}, ValueError, "value_dim: expected a positive integer"),
        ({"keys": "sparse"}, ValueError, "keys: expected one of 'unit', 'orthonormal'"),
        ({"keys": "orthonormal", "num_pairs": 5}, ValueError, "at most 4 orthonormal keys in 4 dimensions, got 5"),
        ({"generator": 0}, TypeError, "generator: expected a torch.Generator, got int"),
        ({"dtype": torch.int64}, TypeError, "dtype: expected a floating-point dtype"),
    ],
)
def test_random_pairs_refuse(refused, seeded, changes, error, message):
    arguments = {"num_pairs": 3, "key_dim": 4, "num_memories": 2, "generator": seeded} | changes
    refused(lambda: random_pairs(**arguments), error, message)


def test_recall_error_refuses_a_memory_that_does_not_fit_and_values_that_are_zero(draw, refused):
    keys, values = draw(2, 6, 4), draw(2, 6, 5)
    refused(
        lambda: recall_error(draw(2, 4, 5), keys, values), ValueError, "memory: expected a shape that ends in (5, 4)"
    )
    refused(lambda: recall_error(draw(2, 5, 4), keys, 0 * values), ValueError, "values: expected some non-zero value")
