"""Expected recall errors of a linear memory, against Monte Carlo."""

import pytest
import torch

from mesa_lib import (
    least_squares_memory,
    least_squares_recall_error,
    read_memory,
    sum_rule_recall_error,
    write_memory,
)


@pytest.mark.parametrize("num_pairs", [1, 4, 8, 20])
@pytest.mark.parametrize(
    ("memory", "predicted"),
    [(write_memory, sum_rule_recall_error), (least_squares_memory, least_squares_recall_error)],
)
def test_recall_errors_are_those_of_random_keys_and_values(memory, predicted, num_pairs, draw):
    keys = torch.nn.functional.normalize(draw(4000, num_pairs, 8), dim=-1)
    values = draw(4000, num_pairs, 2)
    error = (read_memory(memory(keys, values), keys) - values).square().sum((-1, -2)) / (2 * num_pairs)
    standard_error = float(error.std()) / 4000**0.5
    assert float(error.mean()) == pytest.approx(predicted(num_pairs, 8), abs=4 * standard_error + 1e-12)


@pytest.mark.parametrize("function", [sum_rule_recall_error, least_squares_recall_error])
def test_sizes_must_be_positive_integers(function, refused):
    refused(lambda: function(0, 4), ValueError, "num_pairs: expected a positive integer, got 0")
    refused(lambda: function(4, 2.0), TypeError, "key_dim: expected a positive integer, got 2.0 of type float")
