"""Scores, a written matrix, a recurrence: three forms of one computation (Schlag, Irie and Schmidhuber, 2021)."""

import pytest
import torch

from mesa_lib import attend_by_scores, least_squares_memory, read_memory, recurrent_memory, write_memory

TIGHT = {"rtol": 1e-12, "atol": 1e-12}
PAIRS = (attend_by_scores, write_memory, recurrent_memory, least_squares_memory)


@pytest.fixture
def pairs(draw):
    return draw(2, 6, 4), draw(2, 6, 3), draw(2, 5, 4)


def test_attention_is_the_sum_of_values_weighted_by_their_scores(pairs):
    keys, values, queries = pairs
    got = attend_by_scores(keys, values, queries)
    expected = sum(torch.dot(keys[1, i], queries[1, 2]) * values[1, i] for i in range(6))
    torch.testing.assert_close(got[1, 2], expected, **TIGHT)


def test_score_form_fast_weight_form_and_recurrent_form_agree(pairs):
    keys, values, queries = pairs
    by_scores = attend_by_scores(keys, values, queries)
    torch.testing.assert_close(read_memory(write_memory(keys, values), queries), by_scores, **TIGHT)
    torch.testing.assert_close(read_memory(recurrent_memory(keys, values)[:, -1], queries), by_scores, **TIGHT)


def test_the_recurrence_holds_the_memory_of_every_prefix(pairs):
    keys, values, _ = pairs
    states = recurrent_memory(keys, values)
    assert states.shape == (2, 6, 3, 4)
    for length in range(1, 7):
        prefix = write_memory(keys[:, :length], values[:, :length])
        torch.testing.assert_close(states[:, length - 1], prefix, **TIGHT)


def test_orthonormal_keys_recall_their_values_exactly(draw):
    keys = torch.linalg.qr(draw(7, 7)).Q[:5]
    values = draw(5, 3)
    torch.testing.assert_close(read_memory(write_memory(keys, values), keys), values, **TIGHT)


def test_a_repeated_key_recalls_the_sum_of_its_values(draw):
    key = torch.eye(4, dtype=torch.float64)[:1]
    values = draw(2, 3)
    got = read_memory(write_memory(key.expand(2, 4), values), key)
    torch.testing.assert_close(got[0], values.sum(0), **TIGHT)


@pytest.mark.parametrize("num_pairs", [3, 9])
def test_the_best_linear_memory_is_lapacks(num_pairs, draw):
    keys, values = draw(num_pairs, 5), draw(num_pairs, 2)
    oracle = torch.linalg.lstsq(keys, values, driver="gelsd").solution.mT
    torch.testing.assert_close(least_squares_memory(keys, values), oracle, rtol=1e-10, atol=1e-11)


def test_up_to_as_many_keys_as_dimensions_are_recalled_exactly(draw):
    keys, values = draw(5, 5), draw(5, 2)
    recalled = read_memory(least_squares_memory(keys, values), keys)
    torch.testing.assert_close(recalled, values, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("function", PAIRS)
@pytest.mark.parametrize(
    ("keys", "values", "error", "message"),
    [
        (torch.ones(6, 4), torch.ones(5, 3), ValueError, "values: expected one value per key, axes (6,), got (5,)"),
        (torch.ones(4), torch.ones(6, 3), ValueError, "keys: expected at least 2 axes, got shape (4,)"),
        (torch.ones(6, 4), torch.ones(6, 3).double(), TypeError, "values: expected dtype torch.float32, that of keys"),
        (torch.ones(6, 4).int(), torch.ones(6, 3), TypeError, "keys: expected a floating-point tensor, got dtype"),
        (torch.ones(6, 4) / 0, torch.ones(6, 3), ValueError, "keys: expected finite numbers, got NaN or infinity"),
        (torch.ones(6, 4), torch.ones(6, 3) / 0, ValueError, "values: expected finite numbers, got NaN or infinity"),
        (torch.ones(6, 4), [1.0], TypeError, "values: expected a tensor, got list"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(function, keys, values, error, message, refused):
    extra = (torch.ones(2, 4),) if function is attend_by_scores else ()
    refused(lambda: function(keys, values, *extra), error, message)


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        (torch.ones(2, 3), ValueError, "queries: expected 4 numbers each, as in keys, got 3"),
        (torch.ones(2, 4).double(), TypeError, "queries: expected dtype torch.float32, that of keys"),
        (torch.ones(2, 4) / 0, ValueError, "queries: expected finite numbers, got NaN or infinity"),
        (torch.ones(3, 2, 4), ValueError, "queries: expected leading axes that broadcast with (5,), those of keys"),
    ],
)
def test_queries_that_do_not_fit_are_refused(queries, error, message, refused):
    keys, values, memory = torch.ones(5, 6, 4), torch.ones(5, 6, 3), torch.ones(5, 3, 4)
    refused(lambda: attend_by_scores(keys, values, queries), error, message)
    refused(lambda: read_memory(memory, queries), error, message.replace("keys", "memory"))


def test_a_memory_that_is_not_finite_is_refused(refused):
    message = "memory: expected finite numbers, got NaN or infinity"
    refused(lambda: read_memory(torch.ones(3, 4) / 0, torch.ones(2, 4)), ValueError, message)
