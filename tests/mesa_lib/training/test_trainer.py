"""The training loop: its schedule, its records, clipping, independence of members, and refusals."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from mesa_lib import (
    FreeTransformer,
    LinearTasks,
    TaskBatch,
    TrainingSettings,
    clip_members,
    expected_query_loss,
    generator,
    paper_settings,
    random_weights,
    sampled_query_loss,
    train,
)

TASKS = LinearTasks(x_dim=3, num_context=4)
BRIEF = TrainingSettings(num_steps=7, batch_size=6, warmup_steps=2, record_every=3)


def network(seeds):
    return FreeTransformer([random_weights(3, 1, seeds, scale=0.3)])


def test_the_rate_grows_along_a_line_then_falls_along_a_cosine_to_zero():
    settings = TrainingSettings(num_steps=110, warmup_steps=10)
    assert [settings.rate_at(step) for step in (0, 4, 9)] == pytest.approx([1 / 11, 5 / 11, 10 / 11])
    assert settings.rate_at(10) == 1.0
    for step in (11, 60, 85, 110):
        assert settings.rate_at(step) == pytest.approx((1 + math.cos(math.pi * (step - 10) / 100)) / 2, abs=1e-15)
    assert settings.rate_at(110) == pytest.approx(0, abs=1e-15)


def test_without_decay_the_rate_stays_at_its_peak():
    settings = TrainingSettings(num_steps=110, warmup_steps=0, decay=False)
    assert {settings.rate_at(step) for step in (0, 50, 110)} == {1.0}


def test_the_papers_settings_are_those_of_its_released_code():
    settings = paper_settings()
    assert (settings.num_steps, settings.batch_size, settings.learning_rate) == (5000, 2048, 1e-3)
    assert (settings.clip_norm, settings.betas, settings.loss) == (1e-3, (0.9, 0.98), sampled_query_loss)
    assert {settings.rate_at(step) for step in range(5000)} == {1.0}
    assert paper_settings(num_steps=20, record_every=5) == replace(settings, num_steps=20, record_every=5)


def test_training_is_adam_on_clipped_gradients_of_fresh_tasks():
    """Three steps of a single member, redone with torch's own Adam and clipping."""
    settings = TrainingSettings(num_steps=3, batch_size=6, warmup_steps=1, clip_norm=0.05, record_every=1)
    run = train(network([5]), TASKS, [5], settings)
    learner, stream = network([5]), generator(5, "training tasks")
    optimizer = torch.optim.Adam(learner.parameters(), betas=settings.betas)
    for step, rate in enumerate([0.5, 1.0, 0.5]):  # half-way up the line, the top, half-way down the cosine
        loss = expected_query_loss(learner, TASKS.sample(6, stream), TASKS)
        torch.testing.assert_close(run.losses[step], loss.detach(), rtol=1e-5, atol=0)
        optimizer.param_groups[0]["lr"] = settings.learning_rate * rate
        optimizer.zero_grad()
        loss.sum().backward()
        norm = nn.utils.clip_grad_norm_(learner.parameters(), settings.clip_norm)
        assert norm > settings.clip_norm
        optimizer.step()
        for name, value in learner.state_dict().items():
            torch.testing.assert_close(run.snapshots[step + 1][name], value, rtol=1e-5, atol=1e-6)


def test_records_fall_on_multiples_and_on_the_last_step():
    heard = []
    run = train(network([0, 1]), TASKS, [0, 1], BRIEF, on_record=lambda step, losses: heard.append((step, losses)))
    assert run.steps == (0, 3, 6, 7)
    assert run.losses.shape == (4, 2)
    assert [step for step, _ in heard] == [0, 3, 6, 7]
    assert torch.equal(torch.stack([losses for _, losses in heard]), run.losses)
    assert run.seeds == (0, 1)
    assert run.tasks_seen == 7 * 6


def test_the_learner_handed_in_is_unchanged_and_the_first_record_is_it():
    learner = network([0])
    before = [p.clone() for p in learner.parameters()]
    run = train(learner, TASKS, [0], BRIEF)
    assert all(torch.equal(p, old) for p, old in zip(learner.parameters(), before, strict=True))
    assert all(torch.equal(p, old) for p, old in zip(run.learner_at(0).parameters(), before, strict=True))
    assert not any(torch.equal(p, old) for p, old in zip(run.learner.parameters(), before, strict=True))


def test_the_learner_at_a_record_is_that_of_its_snapshot():
    run = train(network([0, 1]), TASKS, [0, 1], BRIEF)
    batch = TASKS.sample(5, generator(0, "validation tasks"))
    assert torch.equal(run.learner_at(-1)(batch), run.learner(batch))
    assert torch.equal(run.learner_at(3)(batch), run.learner(batch))
    assert not torch.equal(run.learner_at(-2)(batch), run.learner(batch))


@pytest.mark.parametrize("record", [4, -5])
def test_a_record_that_does_not_exist_is_refused(record, refused):
    run = train(network([0]), TASKS, [0], BRIEF)
    refused(lambda: run.learner_at(record), ValueError, f"record: expected an index into 4 records, got {record}")


def test_training_is_reproducible_and_touches_no_global_random_state():
    before = torch.random.get_rng_state()
    one, two = (train(network([3]), TASKS, [3], BRIEF) for _ in range(2))
    assert torch.equal(one.losses, two.losses)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_training_draws_the_training_stream_of_each_seed():
    seen = []

    def watching(learner, batch, tasks):
        seen.append(batch)
        return expected_query_loss(learner, batch, tasks)

    train(network([4, 2]), TASKS, [4, 2], replace(BRIEF, loss=watching))
    for member, seed in enumerate([4, 2]):
        stream = generator(seed, "training tasks")
        for batch in seen:
            fresh = TASKS.sample(6, stream)
            assert torch.equal(batch.context_x[member], fresh.context_x)
            assert torch.equal(batch.context_y[member], fresh.context_y)


def test_precision_is_that_asked_for():
    run = train(network([0]), TASKS, [0], BRIEF, dtype=torch.float64)
    assert run.losses.dtype == torch.float64
    assert {p.dtype for p in run.learner.parameters()} == {torch.float64}


def test_each_member_is_clipped_by_its_own_norm(draw):
    parameters = [nn.Parameter(draw(3, 2)), nn.Parameter(draw(3, 4, 5))]
    gradients = [draw(3, 2), draw(3, 4, 5)]
    gradients = [g * torch.tensor([100.0, 0.001, 1.0]).double().view(-1, *[1] * (g.dim() - 1)) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    clip_members(parameters, 0.5)
    for member in range(3):
        solo = [nn.Parameter(p[member].detach().clone()) for p in parameters]
        for parameter, gradient in zip(solo, gradients, strict=True):
            parameter.grad = gradient[member].clone()
        nn.utils.clip_grad_norm_(solo, 0.5)
        for parameter, alone in zip(parameters, solo, strict=True):
            torch.testing.assert_close(parameter.grad[member], alone.grad, rtol=1e-5, atol=0)


def test_a_member_without_gradient_is_left_alone():
    parameter = nn.Parameter(torch.ones(2, 3))
    parameter.grad = torch.stack([torch.zeros(3), torch.ones(3)])
    clip_members([parameter], 0.1)
    assert torch.equal(parameter.grad[0], torch.zeros(3))
    assert parameter.grad[1].norm() == pytest.approx(0.1)


def test_a_member_that_diverges_is_named_and_the_others_go_on():
    learner = network([0, 1])
    with torch.no_grad():
        for parameter in learner.parameters():
            parameter[1] = float("inf")
    with pytest.warns(RuntimeWarning, match=r"step \d: the loss of seeds \[1\] is not finite"):
        run = train(learner, TASKS, [0, 1], BRIEF)
    alone = train(network([0]), TASKS, [0], BRIEF)
    torch.testing.assert_close(run.losses[:, 0], alone.losses[:, 0], rtol=1e-5, atol=1e-7)
    assert not torch.isfinite(run.losses[:, 1]).any()


def test_a_gradient_that_is_not_finite_becomes_zero_and_its_company_keeps_its_own(draw):
    parameter = nn.Parameter(draw(4, 3))
    parameter.grad = 1e-3 * draw(4, 3)
    before = parameter.grad.clone()
    parameter.grad[1, 2], parameter.grad[3, 0] = float("nan"), float("inf")
    assert clip_members([parameter], 1.0).tolist() == [True, False, True, False]
    assert torch.equal(parameter.grad[[0, 2]], before[[0, 2]])
    assert torch.equal(parameter.grad[[1, 3]], torch.zeros(2, 3).double())


def test_a_member_without_a_usable_gradient_goes_on_as_adam_does_on_zero_and_as_it_would_alone():
    """Seed 1 has an infinite loss on batch three: its course is Adam's with a gradient of zero, alone or in company."""

    def sometimes_lost(seeds):
        calls = []

        def loss(learner, batch, tasks):
            calls.append(batch)
            value = expected_query_loss(learner, batch, tasks)
            factors = [float("inf") if seed == 1 and len(calls) == 3 else 1.0 for seed in seeds]
            return value * torch.tensor(factors)

        return loss

    settings = replace(BRIEF, record_every=20)
    run = train(network([0, 1]), TASKS, [0, 1], replace(settings, loss=sometimes_lost([0, 1])))
    assert run.steps_without_gradient == (0, 1)
    for member, seed in enumerate([0, 1]):
        alone = train(network([seed]), TASKS, [seed], replace(settings, loss=sometimes_lost([seed])))
        assert alone.steps_without_gradient == (seed,)
        for name, value in run.snapshots[-1].items():
            torch.testing.assert_close(value[member], alone.snapshots[-1][name][0], rtol=1e-4, atol=1e-6)
    learner, stream = network([1]), generator(1, "training tasks")
    optimizer = torch.optim.Adam(learner.parameters(), betas=settings.betas)
    for step in range(settings.num_steps):
        loss = expected_query_loss(learner, TASKS.sample(6, stream), TASKS)
        optimizer.param_groups[0]["lr"] = settings.learning_rate * settings.rate_at(step)
        optimizer.zero_grad()
        (loss.sum() * (step != 2)).backward()
        nn.utils.clip_grad_norm_(learner.parameters(), settings.clip_norm)
        optimizer.step()
    for name, value in learner.state_dict().items():
        torch.testing.assert_close(run.snapshots[-1][name][1], value[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"num_steps": 0}, ValueError, "num_steps: expected a positive integer, got 0"),
        ({"batch_size": 1.5}, TypeError, "batch_size: expected a positive integer, got 1.5 of type float"),
        ({"record_every": -1}, ValueError, "record_every: expected a positive integer, got -1"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate: expected a number > 0, got 0.0"),
        ({"clip_norm": float("nan")}, ValueError, "clip_norm: expected a finite number, got nan"),
        ({"warmup_steps": -1}, ValueError, "warmup_steps: expected a number >= 0, got -1"),
        ({"num_steps": 9, "warmup_steps": 9}, ValueError, "warmup_steps: expected fewer than num_steps = 9, got 9"),
        ({"betas": (0.9, 1.0)}, ValueError, "betas: expected two numbers in [0, 1), got (0.9, 1.0)"),
        ({"loss": "mse"}, TypeError, "loss: expected a function, got str"),
    ],
)
def test_settings_that_cannot_train_are_refused(fields, error, message, refused):
    refused(lambda: TrainingSettings(**fields), error, f"TrainingSettings.{message}")


def test_learners_and_seeds_that_do_not_match_are_refused(refused):
    message = "learner: expected parameters with a leading axis of 3, one per seed, got w_k_0 of shape (2, 1, 4, 4)"
    refused(lambda: train(network([0, 1]), TASKS, [0, 1, 2], BRIEF), ValueError, message)
    refused(lambda: train(network([0]), TASKS, [], BRIEF), ValueError, "seeds: expected at least one seed")
    refused(lambda: train(network([0, 1]), TASKS, [1, 1], BRIEF), ValueError, "seeds: expected distinct seeds, got")
    message = "learner: expected a module with parameters, got one without any"
    refused(lambda: train(nn.Identity(), TASKS, [0], BRIEF), ValueError, message)


def test_a_parameter_that_the_loss_does_not_reach_is_refused(refused):
    learner = network([0])
    learner.spare = nn.Parameter(torch.zeros(1, 2))
    message = "learner: expected every parameter to reach the loss, got one of shape (1, 2) that does not"
    refused(lambda: train(learner, TASKS, [0], BRIEF), ValueError, message)


def test_clipping_refuses_a_norm_that_is_not_positive(refused):
    parameter = nn.Parameter(torch.ones(1, 2))
    message = "max_norm: expected a number > 0, got 0.0"
    refused(lambda: clip_members([parameter], 0.0), ValueError, message)


def test_the_batches_of_an_ensemble_are_stacked_as_they_come():
    shapes = []

    def watching(learner, batch: TaskBatch, tasks):
        shapes.append(tuple(batch.context_x.shape))
        return expected_query_loss(learner, batch, tasks)

    train(network([0, 1]), TASKS, [0, 1], replace(BRIEF, loss=watching))
    assert shapes == [(2, 6, 4, 3)] * 8


def test_heads_are_not_taken_for_an_ensemble(refused):
    two_heads = FreeTransformer([random_weights(3, 1, [0], num_heads=2).members(0)])
    refused(
        lambda: train(two_heads, LinearTasks(x_dim=3), [0, 1], TrainingSettings(num_steps=2, warmup_steps=0)),
        ValueError,
        "learner: expected one prediction for each of 2 seeds on tasks that all share, got predictions with the "
        "ensemble axes ()",
    )


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [("warmup_steps", 2.5, TypeError), ("warmup_steps", -1, ValueError), ("decay", "no", TypeError)],
)
def test_settings_of_the_wrong_kind_are_refused(refused, field, value, error):
    refused(lambda: TrainingSettings(**{field: value}), error, f"TrainingSettings.{field}: expected")


def test_settings_that_are_no_settings_are_refused(refused):
    learner = FreeTransformer([random_weights(3, 1, [0])])
    refused(
        lambda: train(learner, LinearTasks(x_dim=3), [0], {}),
        TypeError,
        "settings: expected TrainingSettings or None, got dict",
    )
