"""GD++ as a trainable network, and networks applied to their own output."""

import copy

import pytest
import torch

from mesa_lib import (
    FreeTransformer,
    GDPlusPlusTransformer,
    LearnedStart,
    LinearTasks,
    Looped,
    TrainingSettings,
    apply_layers,
    concatenated_tokens,
    expected_query_loss,
    fit_gd_plus_plus,
    gd_construction,
    gd_plus_plus,
    generator,
    gradient_descent,
    linear_self_attention,
    random_weights,
    read_prediction,
    train,
)

DOUBLE = torch.float64


def gd_plus_plus_network(etas=(0.3, 0.7), gammas=(0.04, 0.06), **kwargs):
    return GDPlusPlusTransformer(
        torch.tensor(etas, dtype=DOUBLE), torch.tensor(gammas, dtype=DOUBLE), 3, 2, 5, **kwargs
    )


def test_a_network_of_an_ensemble_is_gd_plus_plus_member_by_member(draw_batch):
    batch = draw_batch()
    network = gd_plus_plus_network([[0.3, 0.7], [0.5, 0.2]], [[0.04, 0.06], [0.01, 0.3]])
    assert network.etas.shape == network.gammas.shape == (2, 2)
    predictions = network(batch)
    torch.testing.assert_close(predictions[0], gd_plus_plus(batch, (0.3, 0.7), (0.04,)))
    torch.testing.assert_close(predictions[1], gd_plus_plus(batch, (0.5, 0.2), (0.01,)))


def test_the_last_gamma_gets_no_gradient(draw_batch):
    network = gd_plus_plus_network()
    network(draw_batch()).square().sum().backward()
    assert network.log_gammas.grad[0] != 0 and network.log_gammas.grad[1] == 0
    assert (network.log_etas.grad != 0).all()


def test_training_a_tied_network_lands_on_the_fit():
    """An ensemble of two seeds, on the paper's tasks; the fit on spectra is the oracle."""
    tasks = LinearTasks(input_range=0.5)
    start = GDPlusPlusTransformer(torch.full((2, 1), 8.0), torch.full((2, 1), 0.1), 10, 1, 10, num_layers=2)
    run = train(
        start, tasks, [0, 1], TrainingSettings(num_steps=200, batch_size=96, learning_rate=0.03, clip_norm=10.0)
    )
    fit = fit_gd_plus_plus(tasks, 2, tied=True, generator=generator(0, "validation tasks"), num_starts=4)
    assert run.learner.etas.detach()[:, 0].tolist() == pytest.approx([fit.etas[0]] * 2, rel=0.05)
    assert run.learner.gammas.detach()[:, 0].tolist() == pytest.approx([fit.gammas[0]] * 2, rel=0.08)


@pytest.mark.parametrize("damping", [1.0, 0.6])
def test_a_looped_layer_adds_the_damped_update_again_and_again(damping, draw_batch):
    batch = draw_batch()
    layer = random_weights(3, 2, [0, 1], 2, scale=0.3, dtype=DOUBLE)
    tokens = concatenated_tokens(batch.expand(2))
    for _ in range(3):
        after = linear_self_attention(layer, tokens)
        tokens = type(tokens)(
            tokens.context + damping * (after.context - tokens.context),
            tokens.query + damping * (after.query - tokens.query),
        )
    looped = Looped(FreeTransformer([layer]), 3, damping)
    torch.testing.assert_close(looped(batch), read_prediction(tokens, 2), rtol=1e-11, atol=1e-11)


def test_a_looped_network_of_two_layers_repeats_both_in_turn(draw_batch):
    batch, layers = draw_batch(), [random_weights(3, 2, [seed], scale=0.3, dtype=DOUBLE) for seed in (0, 1)]
    expected = read_prediction(apply_layers(layers * 2, concatenated_tokens(batch.expand(1))), 2)
    torch.testing.assert_close(Looped(FreeTransformer(layers), 2)(batch), expected, rtol=1e-11, atol=1e-11)


def test_a_looped_construction_is_damped_gradient_descent(draw_batch, draw):
    batch, w_0 = draw_batch(), draw(2, 3)
    looped = Looped(FreeTransformer([gd_construction(0.8, 3, 2, 5, w_0)], w_0), 4, 0.5)
    torch.testing.assert_close(looped(batch), gradient_descent(batch, 0.4, 4, w_0))
    assert torch.equal(looped.w_0, w_0)


def test_a_looped_learned_start_starts_from_it(draw_batch, draw):
    batch, starts = draw_batch(), draw(2, 2, 3)
    layer = random_weights(3, 2, [0, 1], scale=0.3, dtype=DOUBLE)
    looped = Looped(LearnedStart([layer], starts), 3)
    from_tokens = read_prediction(apply_layers(looped.layers(), looped.tokens(batch)), 2)
    torch.testing.assert_close(looped(batch), from_tokens, rtol=1e-11, atol=1e-11)
    for member in range(2):
        alone = Looped(FreeTransformer([layer.members(member)], starts[member]), 3)
        torch.testing.assert_close(looped(batch)[member], alone(batch), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("loops", [0, 2])
def test_tasks_whose_tokens_are_split_elsewhere_are_refused(loops, draw_batch, refused):
    """Three inputs and two targets, or four and one: the tokens have five numbers either way."""
    network, batch = gd_plus_plus_network(), draw_batch(x_dim=4, y_dim=1)
    learner = Looped(network, loops) if loops else network
    message = "batch: expected x_dim = 3 and y_dim = 2, those of the network, got 4 and 1"
    refused(lambda: learner(batch), ValueError, message)
    refused(lambda: learner.tokens(batch), ValueError, message)


def test_training_a_looped_network_trains_what_is_inside():
    tasks = LinearTasks(3, num_context=5)
    start = Looped(FreeTransformer([random_weights(3, 1, [0], scale=0.3)]), 2)
    before = copy.deepcopy(start.state_dict())
    run = train(start, tasks, [0], TrainingSettings(num_steps=60, record_every=60))
    assert all(torch.equal(value, before[name]) for name, value in start.state_dict().items())
    batch = tasks.sample(500, generator(0, "validation tasks"))
    assert expected_query_loss(run.learner, batch, tasks) < 0.8 * expected_query_loss(start, batch, tasks)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gd_plus_plus_network((0.3, -0.1)), ValueError, "etas: expected positive numbers, got [0.3, -0.1]"),
        (lambda: gd_plus_plus_network((0.3,)), ValueError, "gammas: expected the shape (1,) of etas, got (2,)"),
        (lambda: gd_plus_plus_network(num_layers=3), ValueError, "etas: expected one for all layers or 3, one a layer"),
        (lambda: gd_plus_plus_network((float("nan"), 1.0)), ValueError, "etas: expected finite numbers"),
        (lambda: Looped("network", 2), TypeError, "network: expected a Transformer, got str"),
        (lambda: Looped(gd_plus_plus_network(), 0), ValueError, "num_loops: expected a positive integer, got 0"),
        (lambda: Looped(gd_plus_plus_network(), 2, 0.0), ValueError, "damping: expected a number > 0, got 0.0"),
    ],
)
def test_a_bad_argument_is_refused(call, error, message, refused):
    refused(call, error, message)
