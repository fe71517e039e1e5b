"""Tasks: the fields of a batch fit together, and a distribution is what its fields say."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from mesa_lib import LinearTasks, TaskBatch, generator

GOOD = {
    "context_x": torch.ones(4, 5, 3),
    "context_y": torch.ones(4, 5, 2),
    "query_x": torch.ones(4, 1, 3),
    "query_y": torch.ones(4, 1, 2),
    "teacher": torch.ones(4, 2, 3),
}


def changed(**fields: object) -> TaskBatch:
    return TaskBatch(**(GOOD | fields))


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"context_y": torch.ones(4, 6, 2)}, ValueError, "context_y: expected a shape that ends in (5, 2), got"),
        ({"query_x": torch.ones(4, 1, 4)}, ValueError, "query_x: expected a shape that ends in (1, 3), got (4, 1, 4)"),
        ({"query_y": torch.ones(4, 1, 1)}, ValueError, "query_y: expected a shape that ends in (1, 2), got (4, 1, 1)"),
        ({"query_y": torch.ones(4, 2, 2)}, ValueError, "query_y: expected a shape that ends in (1, 2), got (4, 2, 2)"),
        ({"teacher": torch.ones(4, 3, 2)}, ValueError, "teacher: expected a shape that ends in (2, 3), got (4, 3, 2)"),
        ({"query_x": torch.ones(3, 1, 3)}, ValueError, "query_x: expected leading axes (4,), those of context_x, got"),
        ({"teacher": torch.ones(2, 4, 2, 3)}, ValueError, "teacher: expected leading axes (4,), those of context_x"),
        ({"query_x": torch.ones(1, 3)}, ValueError, "query_x: expected at least 3 axes, got shape (1, 3)"),
        ({"context_x": torch.ones(4, 0, 3)}, ValueError, "context_x: expected no empty axis, got shape (4, 0, 3)"),
        ({"context_y": torch.ones(4, 5, 2).double()}, TypeError, "context_y: expected dtype torch.float32, that of"),
        ({"query_x": torch.ones(4, 1, 3).long()}, TypeError, "query_x: expected a floating-point tensor, got dtype"),
        ({"query_y": [[[1.0, 1.0]]]}, TypeError, "query_y: expected a tensor, got list"),
        ({"query_y": None}, TypeError, "query_y: expected a tensor, got NoneType"),
        ({"context_x": torch.full((4, 5, 3), float("nan"))}, ValueError, "context_x: expected finite numbers, got NaN"),
        ({"teacher": torch.full((4, 2, 3), float("inf"))}, ValueError, "teacher: expected finite numbers"),
    ],
)
def test_a_batch_whose_fields_disagree_is_refused(fields, error, message, refused):
    refused(lambda: changed(**fields), error, f"TaskBatch.{message}")


def test_a_batch_names_its_sizes_and_is_frozen():
    batch = changed(query_x=torch.ones(4, 7, 3), query_y=torch.ones(4, 7, 2))
    sizes = (batch.num_tasks, batch.num_context, batch.num_queries, batch.x_dim, batch.y_dim)
    assert sizes == (4, 5, 7, 3, 2)
    with pytest.raises(FrozenInstanceError):
        batch.teacher = None


def test_stacking_puts_each_member_on_a_leading_axis(draw_batch):
    one, two = draw_batch(), draw_batch()
    both = TaskBatch.stack([one, two])
    for name in GOOD:
        assert torch.equal(getattr(both, name), torch.stack([getattr(one, name), getattr(two, name)]))
    assert TaskBatch.stack([replace(one, teacher=None)] * 2).teacher is None


@pytest.mark.parametrize(
    ("batches", "error", "message"),
    [
        (lambda: [], ValueError, "batches: expected at least one TaskBatch, got none"),
        (lambda: [changed(), changed(teacher=None)], ValueError, "batches: expected equal shapes, got"),
        (lambda: [changed(), changed().expand(1)], ValueError, "batches: expected equal shapes, got"),
        (lambda: [changed(), changed().to(dtype=torch.float64)], TypeError, "batches[1]: expected dtype torch.float32"),
    ],
)
def test_batches_that_do_not_stack_are_refused(batches, error, message, refused):
    refused(lambda: TaskBatch.stack(batches()), error, message)


def test_expanding_shows_every_member_the_same_tasks(draw_batch):
    batch = draw_batch()
    seen = batch.expand(3, 2)
    assert seen.context_x.shape == (3, 2, *batch.context_x.shape)
    assert seen.context_x.data_ptr() == batch.context_x.data_ptr()
    assert all(torch.equal(seen.query_y[i, j], batch.query_y) for i in range(3) for j in range(2))


def test_a_batch_changes_its_dtype_as_a_whole(draw_batch):
    single = draw_batch().to(dtype=torch.float32)
    assert {getattr(single, name).dtype for name in GOOD} == {torch.float32}


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
def test_a_distribution_has_the_moments_that_it_states(inputs, seeded):
    tasks = LinearTasks(2, 3, 4, 5, input_range=0.7, inputs=inputs, teacher_scale=1.3, noise_std=0.4)
    batch = tasks.sample(40_000, seeded, dtype=torch.float64)
    noise = batch.context_y - batch.context_x @ batch.teacher.mT
    for sample, power, expected in [
        (batch.context_x, 1, 0.0),
        (batch.context_x, 2, tasks.second_moment),
        (batch.context_x, 4, tasks.fourth_moment),
        (batch.query_x, 2, tasks.second_moment),
        (batch.query_x, 4, tasks.fourth_moment),
        (batch.teacher, 2, 1.3**2),
        (batch.teacher, 4, 3 * 1.3**4),
        (noise, 1, 0.0),
        (noise, 2, 0.4**2),
        (noise, 4, 3 * 0.4**4),
    ]:
        numbers = sample.flatten() ** power
        standard_error = numbers.std() / len(numbers) ** 0.5
        assert abs(numbers.mean() - expected) < 4 * standard_error


def test_uniform_inputs_fill_the_range_and_no_more(seeded):
    x = LinearTasks(input_range=0.5).sample(2000, seeded).context_x
    assert 0.4999 < x.max() <= 0.5
    assert -0.5 <= x.min() < -0.4999


def test_moments_of_the_two_input_distributions_are_exact():
    uniform, normal = LinearTasks(input_range=0.5), LinearTasks(input_range=2.0, inputs="normal")
    assert uniform.second_moment == pytest.approx(1 / 12, rel=1e-15)
    assert uniform.fourth_moment == pytest.approx(1 / 80, rel=1e-15)
    assert (normal.second_moment, normal.fourth_moment) == (4.0, 48.0)
    assert torch.equal(normal.query_moment, 4.0 * torch.eye(10, dtype=torch.float64))


def test_query_targets_are_clean_and_context_targets_are_noisy(seeded):
    batch = LinearTasks(num_queries=3, noise_std=0.5).sample(50, seeded, dtype=torch.float64)
    torch.testing.assert_close(batch.query_y, batch.query_x @ batch.teacher.mT, rtol=1e-12, atol=1e-14)
    assert (batch.context_y - batch.context_x @ batch.teacher.mT).std() == pytest.approx(0.5, rel=0.15)


def test_noise_falls_on_targets_and_leaves_the_rest_of_the_draw_alone():
    clean = LinearTasks().sample(9, generator(0, "init"))
    noisy = LinearTasks(noise_std=0.5).sample(9, generator(0, "init"))
    for name in ("context_x", "query_x", "query_y", "teacher"):
        assert torch.equal(getattr(clean, name), getattr(noisy, name))
    assert not torch.equal(clean.context_y, noisy.context_y)


def test_the_number_of_queries_does_not_change_the_contexts():
    one = LinearTasks().sample(9, generator(3, "init"))
    many = LinearTasks(num_queries=17).sample(9, generator(3, "init"))
    assert torch.equal(one.context_x, many.context_x)
    assert torch.equal(one.context_y, many.context_y)


def test_sampling_touches_no_global_random_state():
    before = torch.random.get_rng_state()
    LinearTasks(noise_std=0.1).sample(5, generator(0, "init"))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("name", ["x_dim", "y_dim", "num_context", "num_queries"])
def test_a_size_must_be_a_positive_integer(name, refused):
    message = f"LinearTasks.{name}: expected a positive integer, got"
    refused(lambda: LinearTasks(**{name: 0}), ValueError, f"{message} 0")
    refused(lambda: LinearTasks(**{name: 2.5}), TypeError, f"{message} 2.5 of type float")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"input_range": 0.0}, ValueError, "input_range: expected a number > 0, got 0.0"),
        ({"input_range": float("inf")}, ValueError, "input_range: expected a finite number, got inf"),
        ({"teacher_scale": -1.0}, ValueError, "teacher_scale: expected a number > 0, got -1.0"),
        ({"teacher_scale": "1"}, TypeError, "teacher_scale: expected a finite number, got '1' of type str"),
        ({"noise_std": -0.1}, ValueError, "noise_std: expected a number >= 0, got -0.1"),
        ({"noise_std": float("nan")}, ValueError, "noise_std: expected a finite number, got nan"),
        ({"inputs": "cauchy"}, ValueError, "inputs: expected one of 'uniform', 'normal', got 'cauchy'"),
    ],
)
def test_a_distribution_that_does_not_exist_is_refused(fields, error, message, refused):
    refused(lambda: LinearTasks(**fields), error, f"LinearTasks.{message}")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: LinearTasks().sample(0, g), ValueError, "num_tasks: expected a positive integer, got 0"),
        (lambda _: LinearTasks().sample(3, 0), TypeError, "generator: expected a torch.Generator, got int"),
        (lambda g: LinearTasks().sample(3, g, dtype=torch.int64), TypeError, "dtype: expected a floating-point dtype"),
    ],
)
def test_a_bad_draw_is_refused(call, error, message, refused, seeded):
    refused(lambda: call(seeded), error, message)
