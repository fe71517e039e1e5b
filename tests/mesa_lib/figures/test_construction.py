"""The pictures of the chapter on Proposition 1 draw the numbers that they are given, with labels, and refuse others."""

import numpy as np
import pytest
import torch

import mesa_lib as mesa
from mesa_lib import figures


@pytest.fixture
def moved():
    """One-dimensional tokens before and behind a layer, with the step and the weights that it starts from."""
    batch = mesa.LinearTasks(x_dim=1).sample(1, mesa.generator(0, "validation tasks"), dtype=torch.float64)
    w_0 = torch.tensor([[0.5]], dtype=torch.float64)
    before = mesa.concatenated_tokens(batch, w_0)
    after = mesa.linear_self_attention(mesa.gd_construction(1.5, 1, 1, 10, w_0), before)
    return before, after, -1.5 * mesa.loss_gradient(w_0, batch)[0], w_0


def test_block_weights_shows_the_four_factors_with_their_entries():
    layer = mesa.gd_construction(1.5, 2, 1, 10, torch.tensor([[0.8, -0.5]]))
    panels = figures.block_weights(layer, x_dim=2).axes
    assert [axes.get_title() for axes in panels] == ["$W_K$", "$W_Q$", "$W_V$", "$P$"]
    assert np.allclose(panels[2].images[0].get_array(), layer.w_v[0])
    assert [text.get_text() for text in panels[2].texts] == ["0.8", "-0.5", "-1"]


def test_block_weights_refuses_an_ensemble_and_an_x_block_as_long_as_the_token():
    ensemble = mesa.random_weights(2, 1, [0, 1])
    with pytest.raises(ValueError, match=r"weights: expected one layer .* got w_k of shape \(2, 1, 3, 3\)"):
        figures.block_weights(ensemble, x_dim=2)
    with pytest.raises(ValueError, match="tokens longer than 3"):
        figures.block_weights(mesa.gd_construction(1.5, 2, 1, 10), x_dim=3)


def test_token_moves_draws_every_movement_on_the_line_of_the_gradient_step(moved):
    before, after, step, w_0 = moved
    right = figures.token_moves(before, after, step, w_0).axes[1]
    line, context, query = right.lines
    slope = np.diff(line.get_ydata()) / np.diff(line.get_xdata())
    assert np.allclose(slope, -step.item())
    assert len(context.get_xdata()) == 10 and len(query.get_xdata()) == 1
    for dots in (context, query):
        assert np.allclose(dots.get_ydata(), -step.item() * dots.get_xdata(), atol=1e-12)
    assert right.get_xlabel() and right.get_ylabel()


def test_token_moves_refuses_tokens_of_more_than_one_input(moved):
    _, _, step, w_0 = moved
    batch = mesa.LinearTasks(x_dim=2).sample(1, mesa.generator(0, "validation tasks"))
    tokens = mesa.concatenated_tokens(batch)
    with pytest.raises(ValueError, match=r"before, after: expected context tokens of shape \(1, context, 2\)"):
        figures.token_moves(tokens, tokens, step, w_0)


def test_frozen_length_draws_exact_curves_and_two_standard_errors():
    lengths, frozen, matched = [1, 2, 4], torch.tensor([0.9, 0.7, 2.0]), torch.tensor([0.9, 0.7, 0.5])
    figure = figures.frozen_length(lengths, frozen, matched, {1: (0.91, 0.01), 4: (1.9, 0.1)}, made_for=2)
    (axes,) = figure.axes
    assert np.allclose(axes.lines[0].get_ydata(), frozen)
    assert np.allclose(axes.lines[1].get_ydata(), matched)
    (bars,) = axes.containers
    segments = bars[2][0].get_segments()
    assert np.allclose([np.ptp(segment[:, 1]) for segment in segments], [0.04, 0.4])
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_frozen_length_refuses_curves_of_another_length(refused):
    def draw():
        return figures.frozen_length([1, 2, 4], torch.ones(3), torch.ones(2), {1: (1.0, 0.1)}, made_for=2)

    refused(draw, ValueError, "matched: expected one loss for each of 3 lengths, got (2,)")
