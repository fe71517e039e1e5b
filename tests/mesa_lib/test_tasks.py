"""Tasks: the fields of a batch fit together, and a distribution is what its fields say."""

import itertools
import math
from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from mesa_lib import (
    LinearTasks,
    TaskBatch,
    gd_construction,
    generator,
    optimal_eta,
    optimal_loss,
    plateau_loss,
    population_loss,
    zero_loss,
)

SHAPE = ((2.0, -0.6), (-0.6, 0.5))
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


@pytest.mark.parametrize("covariance", [None, SHAPE])
@pytest.mark.parametrize("inputs", ["uniform", "normal", "laplace", "rademacher"])
def test_a_distribution_has_the_moments_that_it_states(inputs, covariance, seeded):
    tasks = LinearTasks(2, 3, 4, 5, 0.7, inputs, 1.3, 0.4, input_covariance=covariance)
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
        assert abs(numbers.mean() - expected) < 4 * standard_error + 1e-12  # signs have no spread, only rounding


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
        ({"input_range": 1e200}, ValueError, "input_range: expected a number from 1e-20 to 1e+20, got 1e+200"),
        ({"teacher_scale": 1e-200}, ValueError, "teacher_scale: expected a number from 1e-20 to 1e+20, got 1e-200"),
        ({"noise_std": 1e30}, ValueError, "noise_std: expected a number from 1e-20 to 1e+20, got 1e+30"),
        ({"x_dim": 1, "teacher_mean": [[1e30]]}, ValueError, "teacher_mean: expected a number from 1e-20 to 1e+20"),
        (
            {"x_dim": 1, "input_covariance": [[1e60]]},
            ValueError,
            "input_covariance: expected input_range * eigenvalue^(1/2) from",
        ),
        ({"teacher_scale": -1.0}, ValueError, "teacher_scale: expected a number > 0, got -1.0"),
        ({"teacher_scale": "1"}, TypeError, "teacher_scale: expected a finite number, got '1' of type str"),
        ({"noise_std": -0.1}, ValueError, "noise_std: expected a number >= 0, got -0.1"),
        ({"noise_std": float("nan")}, ValueError, "noise_std: expected a finite number, got nan"),
        ({"inputs": "cauchy"}, ValueError, "inputs: expected one of 'uniform', 'normal', 'laplace', 'rademacher', got"),
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


def test_all_kinds_of_inputs_have_the_kurtosis_that_they_state():
    """m4 / m2^2 of a coordinate: 9/5, 3, 6 (Laplace: 24 b^4 / (2 b^2)^2) and 1."""
    for inputs, kurtosis in [("uniform", 9 / 5), ("normal", 3.0), ("laplace", 6.0), ("rademacher", 1.0)]:
        tasks = LinearTasks(input_range=1.7, inputs=inputs)
        assert tasks.kurtosis == kurtosis
        assert tasks.fourth_moment == pytest.approx(kurtosis * tasks.second_moment**2, rel=1e-14)


def test_the_draws_of_uniform_and_normal_tasks_are_those_of_the_first_edition():
    """Stored chapters depend on every bit: teacher, context, query, noise, each by one call."""
    for inputs in ("uniform", "normal"):
        batch = LinearTasks(3, 2, 4, 5, 0.7, inputs, 1.3, 0.4).sample(6, generator(3, "init"))
        stream = generator(3, "init")

        def numbers(*shape, kind=inputs, stream=stream):
            if kind == "normal":
                return 0.7 * torch.randn(*shape, generator=stream)
            return 0.7 * (2 * torch.rand(*shape, generator=stream) - 1)

        teacher = torch.randn(6, 2, 3, generator=stream) * 1.3
        context_x, query_x = numbers(6, 4, 3), numbers(6, 5, 3)
        context_y = context_x @ teacher.mT + 0.4 * torch.randn(6, 4, 2, generator=stream)
        for got, expected in [
            (batch.teacher, teacher),
            (batch.context_x, context_x),
            (batch.query_x, query_x),
            (batch.context_y, context_y),
        ]:
            assert torch.equal(got, expected)


@pytest.mark.parametrize("inputs", ["uniform", "normal", "laplace", "rademacher"])
def test_a_covariance_is_that_of_the_inputs_at_range_one_and_the_range_scales_it(inputs, seeded):
    tasks = LinearTasks(2, 1, 50, inputs=inputs, input_covariance=SHAPE)
    torch.testing.assert_close(tasks.query_moment, torch.tensor(SHAPE, dtype=torch.float64), rtol=1e-14, atol=1e-15)
    wide = replace(tasks, input_range=3.0)
    torch.testing.assert_close(wide.query_moment, 9 * tasks.query_moment, rtol=1e-14, atol=1e-15)
    x = wide.sample(2000, seeded, dtype=torch.float64).context_x.flatten(0, 1)
    products = x[:, :, None] * x[:, None, :]
    error = products.std(0) / len(x) ** 0.5
    assert ((products.mean(0) - wide.query_moment).abs() < 4 * error).all()


def test_the_root_of_a_covariance_is_symmetric_and_mixes_independent_coordinates(seeded):
    tasks = LinearTasks(2, 1, 5, inputs="rademacher", input_range=1.5, input_covariance=SHAPE)
    assert torch.equal(tasks.input_root, tasks.input_root.mT)
    x = tasks.sample(20, seeded, dtype=torch.float64).context_x
    z = x @ torch.linalg.inv(tasks.input_root)
    torch.testing.assert_close(z.abs(), torch.ones_like(z), rtol=1e-12, atol=0)


def test_rademacher_inputs_are_signs_and_laplace_inputs_finite_even_where_the_uniform_number_is_zero(monkeypatch):
    signs = LinearTasks(input_range=0.7, inputs="rademacher").sample(50, generator(0, "init")).context_x
    assert set(signs.unique().tolist()) == {torch.tensor(-0.7).item(), torch.tensor(0.7).item()}
    for number in (0.0, 1 - 2**-24):
        monkeypatch.setattr(torch, "rand", lambda *shape, number=number, **kwargs: torch.full(shape, number))
        assert torch.isfinite(LinearTasks(inputs="laplace").sample(2, generator(0, "init")).context_x).all()


def test_a_teachers_mean_moves_the_teachers_and_nothing_else():
    mean = ((1.0, -2.0, 0.5), (0.0, 3.0, 1.0))
    tasks = LinearTasks(3, 2, 4)
    plain = tasks.sample(9, generator(0, "init"), dtype=torch.float64)
    moved = replace(tasks, teacher_mean=mean).sample(9, generator(0, "init"), dtype=torch.float64)
    shift = torch.tensor(mean, dtype=torch.float64)
    torch.testing.assert_close(moved.teacher, plain.teacher + shift, rtol=0, atol=1e-15)
    torch.testing.assert_close(moved.context_y, plain.context_y + plain.context_x @ shift.T, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(moved.query_y, moved.query_x @ moved.teacher.mT, rtol=1e-12, atol=1e-14)
    assert torch.equal(moved.context_x, plain.context_x)
    assert torch.equal(replace(tasks, teacher_mean=mean).teacher_center, shift)
    assert not tasks.teacher_center.any()


def test_a_constant_input_is_one_more_coordinate_that_no_teacher_uses():
    tasks = LinearTasks(3, 2, 4, 5, noise_std=0.2, input_covariance=torch.eye(3) / 2)
    plain = tasks.sample(9, generator(0, "init"))
    lifted = replace(tasks, constant_input=True).sample(9, generator(0, "init"))
    for name in ("context_x", "query_x"):
        assert torch.equal(getattr(lifted, name)[..., :3], getattr(plain, name))
        assert (getattr(lifted, name)[..., 3] == 1).all()
    assert torch.equal(lifted.teacher[..., :3], plain.teacher)
    assert not lifted.teacher[..., 3].any()
    assert torch.equal(lifted.context_y, plain.context_y)
    assert torch.equal(lifted.query_y, plain.query_y)
    moment = replace(tasks, constant_input=True).query_moment
    assert torch.equal(moment[:3, :3], tasks.query_moment)
    assert moment[3].tolist() == moment[:, 3].tolist() == [0, 0, 0, 1]


def test_tasks_with_matrices_compare_and_hash_by_value_whatever_the_matrix_was_given_as():
    given = [SHAPE, [list(row) for row in SHAPE], torch.tensor(SHAPE, dtype=torch.float64)]
    tasks = [LinearTasks(2, input_covariance=shape, teacher_mean=[[1.0, 2.0]]) for shape in given]
    assert len(set(tasks)) == 1
    assert replace(tasks[0], num_context=3).input_covariance == SHAPE
    assert tasks[0] != replace(tasks[0], teacher_mean=None)


def test_a_covariance_may_be_asymmetric_by_rounding_and_is_made_symmetric():
    u = torch.linalg.qr(torch.randn(5, 5, generator=generator(0, "init"))).Q
    rounded = u @ torch.diag(torch.arange(1.0, 6.0)) @ u.T
    kept = torch.tensor(LinearTasks(5, input_covariance=rounded).input_covariance, dtype=torch.float64)
    assert torch.equal(kept, kept.T)
    torch.testing.assert_close(kept, rounded.double(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (
            {"input_covariance": ((1.0, 0.0),)},
            ValueError,
            "input_covariance: expected a matrix of shape (2, 2), got (1,",
        ),
        ({"input_covariance": ((1.0, 0.5), (0.0, 1.0))}, ValueError, "input_covariance: expected a symmetric matrix"),
        ({"input_covariance": ((1.0, 1.0), (1.0, 1.0))}, ValueError, "input_covariance: expected a positive definite"),
        ({"input_covariance": "round"}, TypeError, "input_covariance: expected a matrix of numbers of shape (2, 2)"),
        ({"teacher_mean": ((1.0, float("nan")),)}, ValueError, "teacher_mean: expected finite numbers"),
        ({"teacher_mean": ((1.0,), (2.0,))}, ValueError, "teacher_mean: expected a matrix of shape (1, 2), got (2, 1)"),
        ({"constant_input": 1}, TypeError, "constant_input: expected True or False, got 1"),
    ],
)
def test_a_matrix_that_does_not_fit_the_tasks_is_refused(fields, error, message, refused):
    refused(lambda: LinearTasks(2, **fields), error, f"LinearTasks.{message}")


@pytest.mark.parametrize("size", [1e-20, 1e20])
def test_the_largest_and_smallest_sizes_leave_every_expected_loss_finite(size):
    for teacher, noise in itertools.product((1e-20, 1e20), (0.0, 1e-20, 1e20)):
        tasks = LinearTasks(input_range=size, teacher_scale=teacher, noise_std=noise)
        layer = gd_construction(optimal_eta(tasks), 10, 1, 10, dtype=torch.float64)
        losses = zero_loss(tasks), optimal_loss(tasks), plateau_loss(tasks), float(population_loss(tasks, layer))
        assert all(0 < loss < math.inf for loss in losses)
        assert losses[1] == pytest.approx(losses[3], rel=1e-9)


def test_the_root_of_the_covariance_is_computed_once_and_cannot_be_changed_from_outside(monkeypatch):
    tasks = LinearTasks(2, 1, 5, input_covariance=SHAPE)
    first = tasks.input_root
    monkeypatch.setattr(torch.linalg, "eigh", None)
    first.zero_()
    assert tasks.input_root.abs().max() > 0.1 and tasks.query_moment == pytest.approx(torch.tensor(SHAPE).double())
    assert tasks == LinearTasks(2, 1, 5, input_covariance=SHAPE) and hash(tasks) == hash(replace(tasks))


def test_a_batch_that_is_in_place_already_is_not_copied(draw_batch):
    batch = draw_batch()
    assert batch.to(dtype=torch.float64, device="cpu") is batch
    assert batch.to() is batch
    assert batch.to(dtype=torch.float32).context_x.dtype == torch.float32
