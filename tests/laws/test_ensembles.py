"""design.md 3.3, law 5: member k of an ensemble is the solo run of seed k."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    FreeTransformer,
    LinearTasks,
    MetaLearnedMLP,
    SineTasks,
    TokenMLP,
    TrainingSettings,
    expected_query_loss,
    random_mlp,
    random_residual_block,
    random_weights,
    sampled_query_loss,
    train,
)

TASKS = LinearTasks(x_dim=4, num_context=6, num_queries=3, noise_std=0.1)
SETTINGS = TrainingSettings(num_steps=40, batch_size=16, warmup_steps=5, clip_norm=0.05, record_every=10)


def trained(seeds, settings):
    layers = [random_weights(4, 1, seeds, num_heads, scale=0.3, dtype=torch.float64) for num_heads in (2, 1)]
    return train(FreeTransformer(layers), TASKS, seeds, settings, dtype=torch.float64)


@pytest.mark.parametrize("loss", [expected_query_loss, sampled_query_loss])
def test_member_k_of_an_ensemble_is_the_solo_run_of_seed_k(loss):
    seeds = [7, 0, 3]
    settings = replace(SETTINGS, loss=loss)
    together = trained(seeds, settings)
    for k, seed in enumerate(seeds):
        alone = trained([seed], settings)
        torch.testing.assert_close(together.losses[:, k], alone.losses[:, 0], rtol=1e-9, atol=0)
        for ours, theirs in zip(together.snapshots, alone.snapshots, strict=True):
            for name, value in ours.items():
                torch.testing.assert_close(value[k], theirs[name][0], rtol=1e-8, atol=1e-10)


def test_seeds_differ_in_start_and_in_tasks():
    run = trained([0, 1], SETTINGS)
    assert (run.losses[0, 0] - run.losses[0, 1]).abs() > 1e-3
    same_start = [random_weights(4, 1, [0], scale=0.3, dtype=torch.float64)]
    one, two = (train(FreeTransformer(same_start), TASKS, [seed], SETTINGS, dtype=torch.float64) for seed in (0, 1))
    assert (one.losses[0] - two.losses[0]).abs() > 1e-3


def test_the_expected_loss_and_its_gradient_are_the_means_of_sampled_ones(seeded):
    """On the same contexts, over 40,000 draws of one query a task; each mean within 4 of its standard errors."""
    network = FreeTransformer([random_weights(4, 1, [0], scale=0.4, dtype=torch.float64)])
    parameters = list(network.parameters())
    context = TASKS.sample(8, seeded, dtype=torch.float64)
    blocks = 200
    losses, gradients = [], []
    for _ in range(blocks):
        queries = LinearTasks(x_dim=4, num_context=1, num_queries=200).sample(8, seeded, dtype=torch.float64).query_x
        batch = replace(context, query_x=queries, query_y=queries @ context.teacher.mT)
        loss = sampled_query_loss(network, batch)
        losses.append(loss.detach())
        gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss.sum(), parameters)]))
    exact = expected_query_loss(network, context, TASKS)
    exact_gradient = torch.cat([g.flatten() for g in torch.autograd.grad(exact.sum(), parameters)])
    for sample, expected in [(torch.stack(losses), exact.detach()), (torch.stack(gradients), exact_gradient)]:
        standard_error = sample.std(0) / blocks**0.5
        assert bool(((sample.mean(0) - expected).abs() <= 4 * standard_error + 1e-14).all())
    assert float(torch.stack(losses).std(0) / blocks**0.5 / exact.detach()) < 0.003


def block_of(seeds):
    layers = [random_weights(6, 1, seeds, scale=0.3, dtype=torch.float64)]
    return TokenMLP(random_mlp(1, 6, seeds, hidden=(8,), input_scale=5.0, dtype=torch.float64), layers)


def baseline_of(seeds):
    return MetaLearnedMLP(random_mlp(1, 6, seeds, hidden=(8,), input_scale=5.0, dtype=torch.float64))


def residual_of(seeds):
    return random_residual_block(6, seeds, hidden=8, input_scale=5.0, normalise=True, dtype=torch.float64)


@pytest.mark.parametrize("learner_of", [block_of, baseline_of, residual_of])
@pytest.mark.parametrize("queries", ["pool", "random"])
def test_blocks_with_an_mlp_keep_the_law_on_waves_too(learner_of, queries):
    waves = SineTasks(num_context=4, num_queries=8, queries=queries)
    settings = replace(SETTINGS, num_steps=20, loss=sampled_query_loss)
    seeds = [7, 0]
    together = train(learner_of(seeds), waves, seeds, settings, dtype=torch.float64)
    for k, seed in enumerate(seeds):
        alone = train(learner_of([seed]), waves, [seed], settings, dtype=torch.float64)
        torch.testing.assert_close(together.losses[:, k], alone.losses[:, 0], rtol=1e-9, atol=0)
        for name, value in together.learner.state_dict().items():
            torch.testing.assert_close(value[k], alone.learner.state_dict()[name][0], rtol=1e-7, atol=1e-9)
