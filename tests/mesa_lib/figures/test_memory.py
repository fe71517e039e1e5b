"""The pictures of linear memories draw the numbers that they were given."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from mesa_lib import attend_by_scores, least_squares_recall_error, sum_rule_recall_error, write_memory
from mesa_lib.figures import recall_against_pairs, recall_against_steps, written_memory


def exact(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def labelled(axes):
    return bool(axes.get_xlabel()) and bool(axes.get_ylabel())


def drawn(container):
    """Means and whole lengths of the bars of one errorbar container, as rows (x, mean, length)."""
    lengths = [high[1] - low[1] for low, high in container[2][0].get_segments()]
    return np.column_stack([container[0].get_xydata(), lengths])


def test_the_written_memory_adds_up_column_by_column(draw):
    keys, values, query = draw(3, 4), draw(3, 2), draw(4)
    panels = written_memory(keys, values, query).axes
    above, below = panels[:4], panels[4:]
    assert all(labelled(row[0]) for row in (above, below))
    matrices = [axes.images[0].get_array() for axes in above]
    np.testing.assert_allclose(matrices[1], np.outer(values[1], keys[1]))
    np.testing.assert_allclose(sum(matrices[:3]), matrices[3])
    np.testing.assert_allclose(matrices[3], write_memory(keys, values))
    answers = [[bar.get_width() for bar in axes.patches] for axes in below]
    np.testing.assert_allclose(np.sum(answers[:3], axis=0), answers[3])
    np.testing.assert_allclose(answers[3], attend_by_scores(keys, values, query[None])[0])


def test_all_matrices_share_one_scale_of_colours(draw):
    panels = written_memory(draw(2, 3), draw(2, 3), draw(3)).axes[:3]
    limits = {axes.images[0].get_clim() for axes in panels}
    assert len(limits) == 1
    ((low, high),) = limits
    assert low == -high


def test_recall_is_drawn_beside_its_theory():
    errors = {2: exact(0.1, 0.3), 8: exact(1.0, 1.4)}
    (axes,) = recall_against_pairs(4, errors, {8: exact(0.5, 0.5)}, {2: exact(0.0, 0.0)}).axes
    assert labelled(axes)
    for line, theory in zip(axes.lines, (sum_rule_recall_error, least_squares_recall_error), strict=False):
        pairs, curve = line.get_data()
        np.testing.assert_allclose(curve, [theory(int(n), 4) for n in pairs])
    sum_rule, orthonormal, best = axes.containers
    # The standard error of two draws is half their distance; bars reach two of them up and down.
    np.testing.assert_allclose(drawn(sum_rule), [[2, 0.2, 0.4], [8, 1.2, 0.8]])
    np.testing.assert_allclose(drawn(orthonormal), [[2, 0, 0]])
    np.testing.assert_allclose(drawn(best), [[8, 0.5, 0]])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["sum rule, random keys", "sum rule, orthonormal keys", "best linear memory, random keys"]


def test_descents_are_drawn_beside_the_best_memory():
    descents = {2: {1: exact(0.4, 0.6), 4: exact(0.1, 0.1)}, 8: {1: exact(0.8, 0.8), 4: exact(0.5, 0.7)}}
    (axes,) = recall_against_steps(4, descents).axes
    assert labelled(axes)
    assert axes.get_xscale() == "log"
    few, many = axes.containers
    np.testing.assert_allclose(drawn(few), [[1, 0.5, 0.4], [4, 0.1, 0]])
    np.testing.assert_allclose(drawn(many), [[1, 0.8, 0], [4, 0.6, 0.4]])
    curves = [tuple(line.get_ydata()) for line in axes.lines]
    assert (0.0, 0.0) in curves
    assert (0.5, 0.5) in curves


def test_a_written_memory_of_bad_pairs_is_refused(draw, refused):
    keys, values, query = draw(3, 4), draw(3, 2), draw(4)
    refused(lambda: written_memory(draw(5, 4), draw(5, 2), query), ValueError, "keys: expected the keys of at most 4")
    refused(lambda: written_memory(keys, draw(2, 2), query), ValueError, "values: expected one value per key")
    refused(lambda: written_memory(keys, values, draw(3)), ValueError, "queries: expected 4 numbers each")
    refused(lambda: written_memory(keys, values, query * math.nan), ValueError, "query: expected finite numbers")


GOOD = {2: exact(0.0, 0.1)}


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ({}, "expected recall errors of at least one number, got none"),
        ({2: exact(0.1)}, "expected at least two draws"),
        ({0: exact(0.1, 0.2)}, "expected a positive integer, got 0"),
        ({2: exact(0.1, math.inf)}, "expected finite numbers"),
    ],
)
def test_bad_recall_errors_are_refused_by_name(refused, errors, message):
    refused(lambda: recall_against_pairs(4, errors, GOOD, GOOD), ValueError, message)
    refused(lambda: recall_against_pairs(4, GOOD, GOOD, errors), ValueError, "orthonormal")
    opened = plt.get_fignums()
    refused(lambda: recall_against_steps(4, {2: errors}), ValueError, "descents[2]")
    assert plt.get_fignums() == opened, "a refused figure was left open"


def test_too_many_descents_are_refused(refused):
    refused(lambda: recall_against_steps(4, {}), ValueError, "descents: expected one to 3")
    refused(
        lambda: recall_against_steps(4, dict.fromkeys((2, 3, 4, 5), GOOD)), ValueError, "descents: expected one to 3"
    )
    refused(lambda: recall_against_steps(0, {2: GOOD}), ValueError, "key_dim: expected a positive integer")
