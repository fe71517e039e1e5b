"""Sine waves: what is drawn, by what law, and what a pool of shared inputs keeps."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import LinearTasks, SineTasks, TaskBatch, Tasks, wave_features

DOUBLE = torch.float64


def draw_tasks(num_tasks=2000, seed=0, **kwargs):
    return SineTasks(**kwargs).sample(num_tasks, torch.Generator().manual_seed(seed), dtype=DOUBLE)


def coefficients(batch):
    """(a cos phi, a sin phi) of each task, by least squares on its queries."""
    phi = torch.cat([torch.sin(batch.query_x), torch.cos(batch.query_x)], dim=-1)
    return torch.linalg.lstsq(phi, batch.query_y).solution[..., 0]


@given(st.integers(0, 2**31), st.sampled_from(["random", "grid", "pool"]), st.booleans())
def test_context_and_queries_lie_on_one_sine_wave(seed, queries, tied):
    batch = draw_tasks(3, seed, num_queries=6, queries=queries, tied=tied)
    found = coefficients(batch)
    phi = torch.cat([torch.sin(batch.context_x), torch.cos(batch.context_x)], dim=-1)
    torch.testing.assert_close(phi @ found[..., None], batch.context_y, rtol=0, atol=1e-9)


def test_amplitude_and_phase_are_uniform_and_independent_unless_tied():
    """Means, standard deviations and the correlation of 20,000 tasks, within five standard errors."""
    sines, cosines = coefficients(draw_tasks(20_000, num_queries=5)).unbind(-1)
    height, shift = torch.hypot(sines, cosines), torch.atan2(cosines, sines)
    scaled = torch.stack([(height - 0.1) / 0.4, shift / math.pi])
    assert ((scaled.mean(-1) - 0.5).abs() < 5 * (1 / 12 / 20_000) ** 0.5).all()
    assert ((scaled.var(-1) - 1 / 12).abs() < 5 * (1 / 180 / 20_000) ** 0.5).all()
    assert torch.corrcoef(scaled)[0, 1].abs() < 5 / 20_000**0.5
    assert ((scaled > 0) & (scaled < 1)).all()


def test_tied_draws_have_one_number_for_amplitude_and_phase():
    sines, cosines = coefficients(draw_tasks(500, tied=True, num_queries=5)).unbind(-1)
    expected = 0.1 + 0.4 * torch.atan2(cosines, sines) / math.pi
    torch.testing.assert_close(torch.hypot(sines, cosines), expected, rtol=0, atol=1e-8)


def test_inputs_are_uniform_over_their_range():
    batch = draw_tasks(4000, input_range=3.0, num_queries=5)
    for x in (batch.context_x, batch.query_x):
        assert x.abs().max() < 3 and x.abs().max() > 2.99
        assert abs(float(x.mean())) < 5 * (3 / x.numel()) ** 0.5
        assert abs(float(x.square().mean()) - 3) < 5 * (7.2 / x.numel()) ** 0.5


def test_noise_is_on_the_context_alone():
    clean, noisy = draw_tasks(2000), draw_tasks(2000, noise_std=0.3)
    assert torch.equal(clean.context_x, noisy.context_x) and torch.equal(clean.query_y, noisy.query_y)
    noise = noisy.context_y - clean.context_y
    assert abs(float(noise.std()) / 0.3 - 1) < 5 / (2 * noise.numel()) ** 0.5


def test_other_waves_are_what_they_say():
    fixed = {"amplitude": (2.0, 2.0), "phase": (0.5, 0.5), "num_queries": 50}
    x = draw_tasks(3, **fixed).query_x
    two = draw_tasks(3, wave="two frequencies", **fixed).query_y
    torch.testing.assert_close(two, 2 / 2**0.5 * (torch.sin(x + 0.5) + torch.sin(2 * x + 1.0)), rtol=0, atol=1e-12)
    square = draw_tasks(3, wave="square", **fixed).query_y
    assert torch.equal(square, 2 * torch.where(torch.sin(x + 0.5) > 0, 1.0, -1.0).double())


@pytest.mark.parametrize("wave", ["sine", "two frequencies"])
def test_a_wave_is_linear_in_its_features(wave):
    tasks = SineTasks(wave=wave, num_queries=30)
    batch = tasks.sample(4, torch.Generator().manual_seed(1), dtype=DOUBLE)
    phi = wave_features(tasks)(batch.query_x)
    assert phi.shape[-1] == 2 * len(tasks.harmonics)
    rest = batch.query_y - phi @ torch.linalg.lstsq(phi, batch.query_y).solution
    assert rest.abs().max() < 1e-10


def test_a_grid_is_even_and_shared():
    batch = draw_tasks(3, queries="grid", num_queries=11)
    assert torch.equal(batch.query_x[0], batch.query_x[2])
    expected = torch.arange(-5, 6, dtype=DOUBLE)
    torch.testing.assert_close(batch.query_x[1, :, 0], expected, rtol=0, atol=1e-12)


def test_a_pool_holds_the_contexts_and_all_of_it_is_asked():
    batch = draw_tasks(40, queries="pool", num_queries=16)
    assert torch.equal(batch.query_x[0], batch.query_x[39])
    picked = batch.query_x.gather(1, batch.context_index[..., None])
    assert torch.equal(picked, batch.context_x)
    assert torch.equal(batch.query_y.gather(1, batch.context_index[..., None]), batch.context_y)
    assert batch.context_index.unique().numel() == 16  # 400 draws, with replacement, from 16


def test_a_pool_survives_stacking_expanding_shortening_and_another_dtype():
    one, two = (draw_tasks(3, seed, queries="pool", num_queries=6) for seed in (0, 1))
    stacked = TaskBatch.stack([one, two])
    assert torch.equal(stacked.context_index[1], two.context_index)
    assert stacked.to(torch.float32).context_index.dtype == torch.int64
    assert one.expand(2).context_index.shape == (2, 3, 10)
    assert torch.equal(one.first(4).context_index, one.context_index[:, :4])


def test_the_same_stream_gives_the_same_contexts_whatever_is_asked():
    few, many = draw_tasks(5, num_queries=2), draw_tasks(5, num_queries=9)
    assert torch.equal(few.context_y, many.context_y)


def test_both_distributions_are_tasks_as_training_needs_them():
    assert isinstance(SineTasks(), Tasks) and isinstance(LinearTasks(), Tasks)
    assert not isinstance(object(), Tasks)


POOL = {"queries": "pool", "num_queries": 6}
REFUSALS = [
    (lambda: SineTasks(amplitude=(0.5, 0.1)), ValueError, "SineTasks.amplitude: expected two numbers, the least first"),
    (lambda: SineTasks(amplitude=(0.0, 0.1)), ValueError, "SineTasks.amplitude[0]: expected a number > 0"),
    (lambda: SineTasks(phase=(0.0, 1.0, 2.0)), ValueError, "SineTasks.phase: expected two numbers"),
    (lambda: SineTasks(phase=3.0), TypeError, "SineTasks.phase: expected a sequence of numbers"),
    (lambda: SineTasks(input_range=0.0), ValueError, "SineTasks.input_range: expected a number > 0"),
    (lambda: SineTasks(queries="pool", num_queries=0), ValueError, "SineTasks.num_queries: expected a positive"),
    (lambda: SineTasks(num_context=0), ValueError, "SineTasks.num_context: expected a positive integer"),
    (lambda: SineTasks(wave="triangle"), ValueError, "SineTasks.wave: expected one of 'sine'"),
    (lambda: SineTasks(noise_std=-0.1), ValueError, "SineTasks.noise_std: expected a number >= 0"),
    (lambda: SineTasks(tied=1), TypeError, "SineTasks.tied: expected True or False"),
    (lambda: SineTasks(queries="all"), ValueError, "SineTasks.queries: expected one of 'random'"),
    (lambda: SineTasks(queries="grid", num_queries=1), ValueError, "SineTasks.num_queries: expected at least 2"),
    (lambda: SineTasks(wave="square").harmonics, ValueError, "SineTasks.wave: expected a wave with finitely many"),
    (lambda: SineTasks().sample(0, torch.Generator()), ValueError, "num_tasks: expected a positive integer"),
    (lambda: SineTasks().sample(2, 0), TypeError, "generator: expected a torch.Generator"),
    (lambda: SineTasks().sample(2, torch.Generator(), torch.int64), TypeError, "dtype: expected a floating-point"),
    (lambda: replace(draw_tasks(2, **POOL), query_x=torch.rand(2, 6, 1).double()), ValueError,
     "TaskBatch.context_index: expected the same queries in every task"),
    (lambda: replace(draw_tasks(2, **POOL), context_x=torch.rand(2, 10, 1).double()), ValueError,
     "TaskBatch.context_index: expected it to point at the context's inputs"),
    (lambda: replace(draw_tasks(2, **POOL), context_index=torch.full((2, 10), 6)), ValueError,
     "TaskBatch.context_index: expected integers from 0 to 5"),
    (lambda: replace(draw_tasks(2, **POOL), context_index=torch.zeros(2, 9, dtype=torch.int64)), ValueError,
     "TaskBatch.context_index: expected integers (torch.int64) of shape (2, 10)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_bad_arguments_are_refused_by_name(call, error, message, refused):
    refused(call, error, message)
