"""The words with which bad input is refused: the argument's name, what was got, what was expected."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib import LinearTasks, Schedule
from mesa_lib.validation import (
    broadcastable,
    finite_number,
    finite_numbers,
    finite_tensor,
    floating_dtype,
    floating_tensor,
    non_negative_integer,
    non_negative_number,
    one_of,
    positive_integer,
    positive_number,
    same_kind,
    schedule_numbers,
    seed_list,
    trailing_shape,
    typed,
)

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("check", "value", "error", "message"),
    [
        (positive_integer, 0, ValueError, "size: expected a positive integer, got 0"),
        (positive_integer, -3, ValueError, "size: expected a positive integer, got -3"),
        (positive_integer, 2.0, TypeError, "size: expected a positive integer, got 2.0 of type float"),
        (positive_integer, True, TypeError, "size: expected a positive integer, got True of type bool"),
        (positive_integer, "4", TypeError, "size: expected a positive integer, got '4' of type str"),
        (non_negative_integer, -1, ValueError, "size: expected an integer >= 0, got -1"),
        (non_negative_integer, 1.5, TypeError, "size: expected an integer >= 0, got 1.5 of type float"),
        (non_negative_integer, False, TypeError, "size: expected an integer >= 0, got False of type bool"),
        (positive_integer, None, TypeError, "size: expected a positive integer, got None of type NoneType"),
        (finite_number, NAN, ValueError, "size: expected a finite number, got nan"),
        (finite_number, -INF, ValueError, "size: expected a finite number, got -inf"),
        (finite_number, False, TypeError, "size: expected a finite number, got False of type bool"),
        (finite_number, "1", TypeError, "size: expected a finite number, got '1' of type str"),
        (finite_number, 1j, TypeError, "size: expected a finite number, got 1j of type complex"),
        (positive_number, 0.0, ValueError, "size: expected a number > 0, got 0.0"),
        (positive_number, -0.5, ValueError, "size: expected a number > 0, got -0.5"),
        (positive_number, INF, ValueError, "size: expected a finite number, got inf"),
        (non_negative_number, -1e-9, ValueError, "size: expected a number >= 0, got -1e-09"),
        (non_negative_number, NAN, ValueError, "size: expected a finite number, got nan"),
        (floating_dtype, torch.int64, TypeError, "size: expected a floating-point dtype, got torch.int64"),
        (floating_dtype, torch.complex64, TypeError, "size: expected a floating-point dtype, got torch.complex64"),
        (floating_dtype, "float32", TypeError, "size: expected a floating-point dtype, got 'float32'"),
        (seed_list, [], ValueError, "size: expected at least one seed, got an empty sequence"),
        (seed_list, [1, 2, 1], ValueError, "size: expected distinct seeds, got [1, 2, 1]"),
        (seed_list, [0, -1], ValueError, "size: expected integers from 0 to 2**32 - 1, got -1"),
        (seed_list, [0, 1.0], TypeError, "size: expected integers, got 1.0 of type float"),
        (seed_list, [True], TypeError, "size: expected integers, got True of type bool"),
        (seed_list, 5, TypeError, "size: expected a sequence of integers, got 5 of type int"),
        (seed_list, "012", TypeError, "size: expected a sequence of integers, got '012' of type str"),
        (floating_tensor, [1.0], TypeError, "size: expected a tensor, got list"),
        (floating_tensor, torch.ones(2, dtype=torch.int32), TypeError, "got dtype torch.int32"),
        (floating_tensor, np.ones(2), TypeError, "size: expected a tensor, got ndarray"),
        (finite_tensor, torch.tensor([1.0, NAN]), ValueError, "size: expected finite numbers, got NaN or infinity"),
        (finite_tensor, torch.tensor([[INF]]), ValueError, "in a tensor of shape (1, 1)"),
        (finite_tensor, torch.tensor([INF, -INF]), ValueError, "size: expected finite numbers"),
    ],
)
def test_a_bad_value_is_refused_by_name(check, value, error, message, refused):
    refused(lambda: check("size", value), error, message)


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (positive_integer, np.int64(3), 3),
        (non_negative_integer, np.int64(0), 0),
        (finite_number, np.float32(0.5), 0.5),
        (finite_number, -7, -7.0),
        (positive_number, 1e-300, 1e-300),
        (non_negative_number, 0, 0.0),
        (seed_list, range(3), (0, 1, 2)),
        (seed_list, (seed for seed in (4, 2)), (4, 2)),
        (seed_list, np.array([7, 5]), (7, 5)),
        (floating_dtype, torch.float16, torch.float16),
    ],
)
def test_a_good_value_comes_back_as_plain_python(check, value, expected):
    got = check("size", value)
    assert got == expected
    assert type(got) is type(expected)


def test_a_word_must_be_one_of_those_allowed(refused):
    assert one_of("kind", "b", ("a", "b")) == "b"
    refused(lambda: one_of("kind", "c", ("a", "b")), ValueError, "kind: expected one of 'a', 'b', got 'c'")
    refused(lambda: one_of("kind", 1, ("a", "b")), ValueError, "kind: expected one of 'a', 'b', got 1")


def test_finite_numbers_whose_sum_overflows_are_finite():
    huge = torch.full((4,), torch.finfo(torch.float32).max)
    assert math.isinf(huge.sum())
    assert finite_tensor("huge", huge) is huge


def test_a_tensor_with_too_few_axes_is_refused(refused):
    message = "data: expected at least 3 axes, got shape (2, 2)"
    refused(lambda: floating_tensor("data", torch.ones(2, 2), min_dims=3), ValueError, message)
    refused(lambda: finite_tensor("data", torch.ones(2, 2), min_dims=3), ValueError, message)


@pytest.mark.parametrize("shape", [(4, 2, 5), (2, 3), (3,), (2, 3, 1)])
def test_trailing_axes_must_have_the_expected_sizes(shape, refused):
    assert trailing_shape("w", torch.ones(7, 2, 3), (2, 3)).shape == (7, 2, 3)
    if shape != (2, 3):
        message = f"w: expected a shape that ends in (2, 3), got {shape}"
        refused(lambda: trailing_shape("w", torch.ones(shape), (2, 3)), ValueError, message)


def test_leading_axes_must_broadcast(refused):
    for axes, reference in [((), (4,)), ((4,), ()), ((1, 4), (3, 1)), ((2, 4), (4,)), ((4,), (4,))]:
        broadcastable("w", axes, "the batch", reference)
    message = "w: expected leading axes that broadcast with (3, 4), those of the batch, got (2, 4)"
    refused(lambda: broadcastable("w", (2, 4), "the batch", (3, 4)), ValueError, message)


def test_dtype_and_device_must_agree(refused):
    single, double = torch.ones(1), torch.ones(1, dtype=torch.float64)
    assert same_kind("a", single, "b", single) is single
    message = "a: expected dtype torch.float64, that of b, got torch.float32"
    refused(lambda: same_kind("a", single, "b", double), TypeError, message)
    message = "a: expected device cpu, that of b, got meta"
    refused(lambda: same_kind("a", torch.ones(1, device="meta"), "b", single), ValueError, message)


def test_sequences_of_numbers_become_tuples_of_floats():
    assert finite_numbers("etas", [1, 2.5]) == (1.0, 2.5)
    assert finite_numbers("etas", np.array([0.5])) == (0.5,)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([], ValueError, "etas: expected at least one number, got an empty sequence"),
        ("12", TypeError, "etas: expected a sequence of numbers, got '12' of type str"),
        (3, TypeError, "etas: expected a sequence of numbers, got 3 of type int"),
        ([1.0, NAN], ValueError, "etas[1]: expected a finite number, got nan"),
    ],
)
def test_other_sequences_are_refused(value, error, message, refused):
    refused(lambda: finite_numbers("etas", value), error, message)


def test_a_schedule_has_one_gamma_less_than_etas_and_drops_another():
    assert schedule_numbers([1.0], ()) == ((1.0,), ())
    assert schedule_numbers([1.0], []) == ((1.0,), ())
    assert schedule_numbers([1.0, 2.0], [3.0]) == schedule_numbers([1.0, 2.0], [3.0, 9.0]) == ((1.0, 2.0), (3.0,))


@pytest.mark.parametrize("gammas", [(), (1.0, 2.0, 3.0, 4.0)])
def test_a_schedule_of_other_lengths_is_refused(gammas, refused):
    refused(
        lambda: schedule_numbers((1.0, 2.0, 3.0), gammas), ValueError, "gammas: expected 2 numbers, one between any"
    )


@typed
def declared(
    schedules: Sequence[Schedule],
    tasks: LinearTasks | Schedule,
    moment: Float[Tensor, "x x"] | None = None,
    rule: Callable[[int], int] = abs,
    *,
    tied: bool = False,
    eta: float | Tensor = 1.0,
) -> int:
    """A function as any other."""
    return len(schedules)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedules": None}, "schedules: expected a sequence of Schedule, got None"),
        ({"schedules": "ab"}, "schedules: expected a sequence of Schedule, got str"),
        ({"schedules": [Schedule((1.0,), ()), 3]}, "schedules[1]: expected Schedule, got int"),
        ({"tasks": 3}, "tasks: expected LinearTasks or Schedule, got int"),
        ({"moment": [[1.0]]}, "moment: expected a tensor or None, got list"),
        ({"rule": 3}, "rule: expected a function, got int"),
        ({"tied": None}, "tied: expected True or False, got None"),
    ],
)
def test_a_typed_function_names_the_argument_of_another_kind(change, message):
    good = {"schedules": [Schedule((1.0,), ())], "tasks": LinearTasks()}
    assert declared(**good) == declared(*good.values()) == 1
    with pytest.raises(TypeError) as caught:
        declared(**(good | change))
    assert str(caught.value) == message
    in_order = good | change
    with pytest.raises(TypeError, match="expected"):
        declared(in_order.pop("schedules"), in_order.pop("tasks"), **in_order)


def test_what_a_number_must_be_a_typed_function_leaves_to_the_function():
    assert declared([], LinearTasks(), eta="one") == 0


def test_a_typed_function_keeps_its_name_its_text_and_its_signature():
    assert declared.__name__ == "declared" and declared.__doc__ == "A function as any other."
    assert "tied" in declared.__wrapped__.__annotations__
