"""Some seeds wait at the construction's rank-one twin (the paper's A.11; science.md, finding 7), and what helps.

Seeds are the fixed list 0 to 23; none is replaced after its result is seen.
"""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    FreeTransformer,
    LinearTasks,
    TrainingSettings,
    canonicalize,
    plateau_loss,
    population_loss,
    random_weights,
    signal_paths,
    train,
    twin_share,
)

TASKS, SEEDS = LinearTasks(), range(24)
SMALL_BATCHES = TrainingSettings(num_steps=320, batch_size=16, learning_rate=0.01, decay=False)


def run(scale, num_heads=1, settings=SMALL_BATCHES, seeds=SEEDS):
    start = FreeTransformer([random_weights(10, 1, seeds, num_heads=num_heads, scale=scale)])
    return start, train(start, TASKS, seeds, settings)


def waiting(training):
    return (twin_share(training.learner.layers()[0].detach()) > 0.9).nonzero()[:, 0].tolist()


@pytest.fixture(scope="module")
def one_head():
    return run(0.0135)


def test_a_part_of_the_seeds_waits_at_the_twins_loss(one_head):
    waits = waiting(one_head[1])
    assert 2 <= len(waits) <= 10
    layer = one_head[1].learner.layers()[0].detach().members(waits)
    assert float((population_loss(TASKS, layer) / plateau_loss(TASKS) - 1).abs().max()) < 0.03


def test_patience_helps(one_head):
    waits = waiting(one_head[1])
    _, longer = run(0.0135, settings=replace(SMALL_BATCHES, num_steps=1120), seeds=waits)
    assert len(waiting(longer)) < len(waits)


def test_with_the_exact_gradient_nobody_waits_for_long():
    def exact(learner, batch, tasks):
        return population_loss(tasks, learner.layers()[0])

    _, training = run(0.0135, settings=replace(SMALL_BATCHES, num_steps=120, batch_size=1, loss=exact))
    assert waiting(training) == []


def test_a_seed_of_two_heads_waits_only_if_both_take_the_twins_path():
    _, training = run(0.0135, num_heads=2, settings=replace(SMALL_BATCHES, num_steps=100))
    layer = training.learner.layers()[0].detach()
    paths = signal_paths(layer)
    by_twin = paths.twin.abs() / (paths.twin.abs() + paths.direct.abs()) > 0.9
    assert 0.05 <= float(by_twin.double().mean()) <= 0.4
    high = population_loss(TASKS, layer) > 0.9 * plateau_loss(TASKS)
    assert bool((by_twin.all(1) == high).all())
    assert int(by_twin.any(1).sum()) > int(by_twin.all(1).sum())  # so some seeds have one of each, and landed


def test_entries_that_no_query_sees_stay_where_they_started(one_head):
    """Finding 13: P's rows other than y and W_Q's column of y get exactly no gradient."""
    start, training = one_head
    before, after = start.layers()[0].detach(), training.learner.layers()[0].detach()
    assert torch.equal(after.w_p[..., :10, :], before.w_p[..., :10, :])
    assert torch.equal(after.w_q[..., 10:], before.w_q[..., 10:])
    assert not torch.equal(after.w_p[..., 10:, :], before.w_p[..., 10:, :])
    # In the products these rows nevertheless grow, since W_V does.
    assert float(after.w_pv[..., :10, :].norm() / before.w_pv[..., :10, :].norm()) > 2


def test_where_a_seed_waits_the_trace_form_blows_up_and_the_norm_form_does_not(one_head):
    layer = one_head[1].learner.layers()[0].detach()
    sizes = {form: canonicalize(layer, form=form).w_kq[..., :10].norm(dim=(-1, -2))[:, 0] for form in ("trace", "norm")}
    waits = waiting(one_head[1])
    assert float(sizes["trace"][waits].min()) > 10
    torch.testing.assert_close(sizes["norm"], torch.full((24,), 10**0.5), rtol=1e-5, atol=0)
