"""The MLP below both wings: its formula, its ensembles, and looking at each distinct input once."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from mesa_lib import MLP, LinearTasks, SineTasks, TaskBatch, batch_features, feature_batch, random_mlp, sensitivity
from mesa_lib.features import apply_start, features_once, sum_of_products

DOUBLE = torch.float64
SEEDS = [4, 0, 7]


def small(seeds=SEEDS, **kwargs):
    return random_mlp(2, 5, seeds, **{"hidden": (6,), "dtype": DOUBLE} | kwargs)


def pooled(num_tasks=4, seed=0, **kwargs):
    tasks = SineTasks(queries="pool", num_queries=7, num_context=5, **kwargs)
    return tasks.sample(num_tasks, torch.Generator().manual_seed(seed), dtype=DOUBLE)


@pytest.mark.parametrize("activation", ["tanh", "gelu", "relu"])
@pytest.mark.parametrize("hidden", [(6,), (6, 3), (4, 4, 4)])
def test_a_member_is_torchs_own_network_of_the_same_weights(activation, hidden, draw):
    mlp = small(hidden=hidden, activation=activation, input_scale=3.0)
    nonlinear = {"tanh": nn.Tanh, "gelu": nn.GELU, "relu": nn.ReLU}[activation]
    x = draw(4, 9, 2)
    for member in range(len(SEEDS)):
        steps = []
        for weight, bias in zip(mlp.weights, mlp.biases, strict=True):
            linear = nn.Linear(weight.shape[-1], weight.shape[-2], dtype=DOUBLE)
            linear.load_state_dict({"weight": weight[member].detach(), "bias": bias[member].detach()})
            steps += [linear, nonlinear()]
        expected = nn.Sequential(*steps[:-1])(x / 3.0)
        torch.testing.assert_close(mlp.member(member)(x), expected, rtol=0, atol=1e-13)
        torch.testing.assert_close(mlp(x)[member], expected, rtol=0, atol=1e-13)


def test_an_ensemble_on_inputs_of_its_own_is_member_by_member(draw):
    mlp, x = small(), draw(3, 4, 9, 2)
    expected = torch.stack([mlp.member(k)(x[k]) for k in range(3)])
    torch.testing.assert_close(mlp(x), expected, rtol=0, atol=1e-13)


def test_members_start_from_streams_of_their_own_and_not_from_their_place():
    together, alone = small(), small(seeds=[0])
    for ours, theirs in zip(together.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours[1], theirs[0], rtol=0, atol=0)
    assert (together.weights[0][0] - together.weights[0][1]).abs().max() > 0.1


def test_the_start_has_the_sizes_that_it_states():
    """Standard deviations of 3,000 numbers and more, within five of their standard errors."""
    mlp = random_mlp(4, 60, range(10), hidden=(80, 70), scale=3.0, dtype=DOUBLE)
    stated = [2 / 4**0.5, (2 / 80) ** 0.5, 3.0 / 2 / 70**0.5]
    for weight, std in zip(mlp.weights, stated, strict=True):
        assert abs(float(weight.detach().std()) / std - 1) < 5 / (2 * weight.numel()) ** 0.5
    assert abs(float(mlp.biases[0].detach().std()) - 1) < 5 / (2 * 800) ** 0.5
    assert all(float(bias.detach().abs().max()) == 0 for bias in mlp.biases[1:])


def test_the_features_of_a_pool_are_those_of_every_input_by_itself():
    batch = pooled()
    plain = replace(batch, context_index=None)
    mlp = random_mlp(1, 5, SEEDS, hidden=(6,), dtype=DOUBLE)
    context, query = batch_features(mlp, batch)
    torch.testing.assert_close(context, mlp(plain.context_x), rtol=0, atol=1e-14)
    torch.testing.assert_close(query.expand(3, 4, 7, 5), mlp(plain.query_x), rtol=0, atol=1e-14)
    stacked = TaskBatch.stack([pooled(seed=seed) for seed in (1, 2, 3)])
    context, query = batch_features(mlp, stacked)
    torch.testing.assert_close(context, mlp(stacked.context_x), rtol=0, atol=1e-14)
    torch.testing.assert_close(query.expand(3, 4, 7, 5), mlp(stacked.query_x), rtol=0, atol=1e-14)


def test_a_pool_is_looked_at_once():
    seen = []

    def counting(x):
        seen.append(x.numel())
        return torch.cat([x, x**2], dim=-1)

    batch_features(counting, pooled(num_tasks=50))
    assert seen == [7]
    seen.clear()
    batch_features(counting, replace(pooled(num_tasks=50), context_index=None))
    assert sum(seen) == 7 + 50 * 5


def test_gradients_through_a_pool_are_those_of_every_input_by_itself(draw):
    batch, mlp = pooled(), random_mlp(1, 5, SEEDS, hidden=(6,), dtype=DOUBLE)
    weights = draw(3, 4, 5, 5), draw(3, 4, 7, 5)

    def gradients(given):
        context, query = batch_features(mlp, given)
        loss = (weights[0] * context).sum() + (weights[1] * query.expand(3, 4, 7, 5)).sum()
        return torch.autograd.grad(loss, list(mlp.parameters()))

    for ours, theirs in zip(gradients(batch), gradients(replace(batch, context_index=None)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("num_tasks", [1, 3])
def test_queries_that_tasks_share_are_still_differentiated_one_by_one(num_tasks, indexed):
    """The sensitivities are those of a learner that calls the MLP on every input of every task."""
    batch, mlp = pooled(num_tasks), random_mlp(1, 5, [0], hidden=(6,), dtype=DOUBLE).member(0)

    def shortcut(given):
        context, query = batch_features(mlp, given)
        return query @ (context.mT @ given.context_y)

    def plain(given):
        return mlp(given.query_x) @ (mlp(given.context_x).mT @ given.context_y)

    given = batch if indexed else replace(batch, context_index=None)
    torch.testing.assert_close(sensitivity(shortcut, given), sensitivity(plain, given), rtol=1e-12, atol=1e-12)


def test_a_batch_seen_through_features_keeps_its_targets_and_loses_its_teachers(draw_batch):
    batch = draw_batch(4, x_dim=2)
    seen = feature_batch(small(), batch)
    assert seen.context_x.shape == (3, 4, 5, 5) and seen.query_x.shape == (3, 4, 2, 5) and seen.teacher is None
    assert torch.equal(seen.context_y[2], batch.context_y) and torch.equal(seen.query_y[0], batch.query_y)
    alone = feature_batch(small().member(1), batch)
    torch.testing.assert_close(alone.query_x, seen.query_x[1], rtol=0, atol=1e-13)


def test_sums_of_products_and_linear_starts_are_einstein_sums(draw):
    values, keys, start = draw(3, 4, 6, 2), draw(3, 4, 6, 5), draw(3, 2, 5)
    expected = torch.einsum("etny,etnf->etyf", values, keys)
    torch.testing.assert_close(sum_of_products(values, keys), expected, rtol=0, atol=1e-13)
    expected = torch.einsum("eyf,etnf->etny", start, keys)
    torch.testing.assert_close(apply_start(start, keys), expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(apply_start(start[0], keys[0]), expected[0], rtol=0, atol=1e-13)


WEIGHTS = [torch.zeros(3, 2), torch.zeros(4, 3)]
BIASES = [torch.zeros(3), torch.zeros(4)]
REFUSALS = [
    (lambda: MLP([], []), ValueError, "weights, biases: expected one bias for each of at least one matrix"),
    (lambda: MLP(WEIGHTS, BIASES[:1]), ValueError, "weights, biases: expected one bias"),
    (lambda: MLP([WEIGHTS[0], torch.zeros(4, 2)], BIASES), ValueError, "weights[1]: expected shape (4, 3)"),
    (lambda: MLP(WEIGHTS, [BIASES[0], torch.zeros(3)]), ValueError, "biases[1]: expected shape (4,), got (3,)"),
    (lambda: MLP([WEIGHTS[0], WEIGHTS[1].double()], BIASES), TypeError, "weights[1]: expected dtype torch.float32"),
    (lambda: MLP(WEIGHTS, BIASES, "sine"), ValueError, "activation: expected one of 'tanh'"),
    (lambda: MLP(WEIGHTS, BIASES, input_scale=0.0), ValueError, "input_scale: expected a number > 0"),
    (lambda: MLP(WEIGHTS, BIASES)(torch.zeros(5, 3)), ValueError, "x: expected 2 inputs on the last axis"),
    (lambda: MLP(WEIGHTS, BIASES)(torch.zeros(5, 2).double()), TypeError, "x: expected dtype torch.float32"),
    (lambda: MLP(WEIGHTS, BIASES).member(0), ValueError, "MLP: expected an ensemble axis"),
    (lambda: small()(torch.zeros(5, 2, dtype=DOUBLE)), ValueError, "x: expected shape (task, point, x) or more"),
    (lambda: small()(torch.zeros(2, 4, 5, 2, dtype=DOUBLE)), ValueError, "x: expected leading axes that broadcast"),
    (lambda: small(hidden=()), ValueError, "hidden: expected at least one hidden layer"),
    (lambda: small(hidden=(0,)), ValueError, "hidden[0]: expected a positive integer"),
    (lambda: small(seeds=[]), ValueError, "seeds: expected at least one seed"),
    (lambda: random_mlp(2, 0, [0]), ValueError, "width: expected a positive integer"),
    (lambda: small(scale=-1.0), ValueError, "scale: expected a number > 0"),
    (lambda: features_once(lambda x: x[:, 0], torch.zeros(3, 4, 2)), ValueError, "features: expected a floating-point"),
    (lambda: features_once(partial(torch.argmax, dim=-1), torch.zeros(4, 2)), ValueError, "features: expected"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_bad_arguments_are_refused_by_name(call, error, message, refused):
    refused(call, error, message)


def test_linear_batches_share_nothing_and_nothing_is_merged(seeded):
    """Tasks that happen to have different queries keep a task axis of full size."""
    batch = LinearTasks(2, 1, 5, 3).sample(4, seeded, dtype=DOUBLE)
    assert batch_features(small(), batch).query.shape == (3, 4, 3, 5)
