"""A training that is taken down between two steps and taken up again ends with the same bits."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    FreeTransformer,
    LinearTasks,
    Looped,
    TrainingSettings,
    TrainingState,
    random_layers,
    train,
)

TASKS = LinearTasks(x_dim=3, num_context=4)
BRIEF = TrainingSettings(num_steps=9, batch_size=6, warmup_steps=2, record_every=4, clip_norm=0.05)
SEEDS = (4, 7)


def network(seeds=SEEDS, layers=2):
    return FreeTransformer(random_layers(layers, 3, 1, seeds, scale=0.3))


def states(learner, settings=BRIEF, seeds=SEEDS, **more):
    """The unbroken run, and its state after every step."""
    kept: dict[int, TrainingState] = {}
    run = train(learner, TASKS, seeds, settings, on_step=lambda step, take: kept.update({step: take()}), **more)
    return run, kept


def same(one, other):
    assert one.steps == other.steps and torch.equal(one.losses, other.losses)
    assert one.steps_without_gradient == other.steps_without_gradient
    for ours, theirs in zip(one.snapshots, other.snapshots, strict=True):
        assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_from_every_step_on_a_training_ends_with_the_same_bits():
    run, kept = states(network())
    assert list(kept) == list(range(1, 10))
    for state in kept.values():
        same(train(network(), TASKS, SEEDS, BRIEF, state=state), run)


def test_shared_weights_and_other_dtypes_are_taken_up_too():
    looped = Looped(network(layers=1), 3)
    run, kept = states(looped, dtype=torch.float64)
    again = train(looped, TASKS, SEEDS, BRIEF, dtype=torch.float64, state=kept[5])
    same(again, run)
    assert all(value.dtype == torch.float64 for value in again.snapshots[-1].values())


def test_a_state_is_a_copy_that_later_steps_do_not_change():
    _, kept = states(network())
    assert not torch.equal(kept[3].tensors["learner/w_k_0"], kept[4].tensors["learner/w_k_0"])
    before = {name: value.clone() for name, value in kept[3].tensors.items()}
    train(network(), TASKS, SEEDS, BRIEF, state=kept[3])
    assert all(torch.equal(before[name], value) for name, value in kept[3].tensors.items())


def test_steps_without_gradient_are_counted_across_the_break():
    """Adam's own check: on the third batch a member's loss has no finite gradient."""
    calls = []

    def exploding(learner, batch, tasks):
        calls.append(1)
        loss = learner(batch).square().mean((-1, -2, -3))
        # A finite loss whose gradient is not: the square root at zero.
        return loss + (loss.detach() - loss).clamp(min=0).sqrt() if len(calls) == 3 else loss

    run, kept = states(network(), replace(BRIEF, loss=exploding))
    assert run.steps_without_gradient == (1, 1)
    assert kept[2].tensors["steps_without_gradient"].tolist() == [0, 0]
    again = train(network(), TASKS, SEEDS, replace(BRIEF, loss=exploding), state=kept[5])
    assert again.steps_without_gradient == (1, 1)


@pytest.mark.parametrize(
    ("learner", "seeds", "message"),
    [
        (network((4, 8)), (4, 8), "expected the tensors of this learner and these seeds"),
        (network(layers=3), SEEDS, "got a state that lacks 'adam/w_k_2/exp_avg'"),
        (network(layers=1), SEEDS, "got a state that has 'adam/w_k_1/exp_avg'"),
        (FreeTransformer(random_layers(2, 3, 1, SEEDS, 2)), SEEDS, "expected 'learner/w_k_0' of shape (2, 2, 4, 4)"),
    ],
)
def test_the_state_of_another_training_is_refused(learner, seeds, message, refused):
    _, kept = states(network())
    refused(lambda: train(learner, TASKS, seeds, BRIEF, state=kept[4]), ValueError, message)


def test_a_state_beyond_the_last_step_is_refused(refused):
    _, kept = states(network())
    shorter = replace(BRIEF, num_steps=7)
    message = "state: expected one after 1 to 7 steps, got one after 9"
    refused(lambda: train(network(), TASKS, SEEDS, shorter, state=kept[9]), ValueError, message)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_on_a_cuda_device_the_same_data_are_seen_and_a_training_goes_on():
    seen = {"cpu": [], "cuda": []}

    def watching(learner, batch, tasks):
        seen[batch.context_x.device.type].append(batch.context_x.cpu())
        return learner(batch).square().mean((-1, -2, -3))

    settings = replace(BRIEF, loss=watching)
    on_cpu = train(network(), TASKS, SEEDS, settings)
    run, kept = states(network(), settings, device="cuda")
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(seen["cpu"], seen["cuda"], strict=True))
    torch.testing.assert_close(run.losses, on_cpu.losses, rtol=1e-3, atol=1e-5)
    again = train(network(), TASKS, SEEDS, settings, device="cuda", state=kept[5])
    torch.testing.assert_close(again.losses, run.losses, rtol=1e-5, atol=1e-7)
