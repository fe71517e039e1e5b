"""Checks of arguments, so that bad input is refused with a sentence before work starts.

Every message names the argument, says what was got and what was expected.
"""

import functools
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor


def positive_integer(name: str, value: object) -> int:
    """Return `value` as an int; a ValueError or TypeError names it unless it is an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}: expected a positive integer, got {value!r} of type {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name}: expected a positive integer, got {value}")
    return int(value)


def non_negative_integer(name: str, value: object) -> int:
    """Return `value` as an int; a ValueError or TypeError names it unless it is an integer >= 0."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}: expected an integer >= 0, got {value!r} of type {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name}: expected an integer >= 0, got {value}")
    return int(value)


def finite_number(name: str, value: object) -> float:
    """Return `value` as a float; a ValueError or TypeError names it unless it is a finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: expected a finite number, got {value!r} of type {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")
    return float(value)


def positive_number(name: str, value: object) -> float:
    """Return `value` as a float; a ValueError or TypeError names it unless it is finite and > 0."""
    number = finite_number(name, value)
    if number <= 0:
        raise ValueError(f"{name}: expected a number > 0, got {number}")
    return number


def non_negative_number(name: str, value: object) -> float:
    """Return `value` as a float; a ValueError or TypeError names it unless it is finite and >= 0."""
    number = finite_number(name, value)
    if number < 0:
        raise ValueError(f"{name}: expected a number >= 0, got {number}")
    return number


def finite_numbers(name: str, values: object) -> tuple[float, ...]:
    """Return `values` as a tuple of floats; the error names it unless it is a non-empty sequence of finite numbers."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a sequence of numbers, got {values!r} of type {type(values).__name__}")
    numbers = tuple(finite_number(f"{name}[{index}]", value) for index, value in enumerate(values))
    if not numbers:
        raise ValueError(f"{name}: expected at least one number, got an empty sequence")
    return numbers


def schedule_numbers(etas: object, gammas: object) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the step sizes of L layers and the L - 1 numbers gamma between them; the error names what does not fit.

    An L-th gamma may be given and is dropped: it moves data that no layer reads.
    """
    steps = finite_numbers("etas", etas)
    given = () if isinstance(gammas, (tuple, list)) and not gammas else finite_numbers("gammas", gammas)
    if len(given) not in (len(steps) - 1, len(steps)):
        raise ValueError(
            f"gammas: expected {len(steps) - 1} numbers, one between any two layers (or one a layer, the last without "
            f"effect), got {len(given)}"
        )
    return steps, given[: len(steps) - 1]


def one_of(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return `value`; a ValueError names it unless it is one of the `allowed` words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def seed_list(name: str, seeds: object) -> tuple[int, ...]:
    """Return `seeds` as a tuple of distinct ints in [0, 2^32); the error names what is wrong with it."""
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise TypeError(f"{name}: expected a sequence of integers, got {seeds!r} of type {type(seeds).__name__}")
    listed = tuple(seeds)
    if not listed:
        raise ValueError(f"{name}: expected at least one seed, got an empty sequence")
    for seed in listed:
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise TypeError(f"{name}: expected integers, got {seed!r} of type {type(seed).__name__}")
        if not 0 <= int(seed) < 2**32:
            raise ValueError(f"{name}: expected integers from 0 to 2**32 - 1, got {seed}")
    if len(set(listed)) < len(listed):
        raise ValueError(f"{name}: expected distinct seeds, got {list(listed)}")
    return tuple(int(seed) for seed in listed)


def floating_tensor(name: str, value: object, *, min_dims: int = 0) -> Tensor:
    """Return `value`; the error names it unless it is a floating-point tensor of at least `min_dims` axes."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}")
    if not value.is_floating_point():
        raise TypeError(f"{name}: expected a floating-point tensor, got dtype {value.dtype}")
    if value.dim() < min_dims:
        raise ValueError(f"{name}: expected at least {min_dims} axes, got shape {tuple(value.shape)}")
    return value


def finite_tensor(name: str, value: object, *, min_dims: int = 0) -> Tensor:
    """Return `value`; the error names it unless it is a finite floating-point tensor of at least `min_dims` axes."""
    tensor = floating_tensor(name, value, min_dims=min_dims)
    # NaN and infinity survive a sum, which is several times cheaper than looking at every entry; a sum that is not
    # finite may still come from finite entries, by overflow, and only then is the closer look needed.
    if not math.isfinite(tensor.detach().sum()) and not bool(torch.isfinite(tensor).all()):
        shape = tuple(tensor.shape)
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinity in a tensor of shape {shape}")
    return tensor


def matrix_of_numbers(name: str, value: object, shape: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    """Return a matrix, given as nested sequences or a tensor, as a tuple of tuples of floats.

    Raises:
        TypeError, ValueError: `value` is no matrix of finite numbers, or has another shape; the message names it.
    """
    try:
        matrix = torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name}: expected a matrix of numbers of shape {shape}, got {value!r}") from error
    if tuple(matrix.shape) != shape:
        raise ValueError(f"{name}: expected a matrix of shape {shape}, got {tuple(matrix.shape)}")
    finite_tensor(name, matrix)
    return tuple(tuple(row) for row in matrix.tolist())


def floating_dtype(name: str, value: object) -> torch.dtype:
    """Return `value`; a TypeError names it unless it is a floating-point dtype."""
    if not isinstance(value, torch.dtype) or not value.is_floating_point:
        raise TypeError(f"{name}: expected a floating-point dtype, got {value!r}")
    return value


def trailing_shape(name: str, value: Tensor, expected: Sequence[int]) -> Tensor:
    """Return `value`; a ValueError names it unless its last axes have the `expected` sizes."""
    sizes = tuple(expected)
    if tuple(value.shape[len(value.shape) - len(sizes) :]) != sizes or value.dim() < len(sizes):
        raise ValueError(f"{name}: expected a shape that ends in {sizes}, got {tuple(value.shape)}")
    return value


def broadcastable(name: str, axes: Sequence[int], reference_name: str, reference: Sequence[int]) -> None:
    """Raise a ValueError that names `name` unless its leading axes broadcast with those of the reference."""
    if any(a != b and 1 not in (a, b) for a, b in zip(reversed(axes), reversed(reference), strict=False)):
        raise ValueError(
            f"{name}: expected leading axes that broadcast with {tuple(reference)}, those of {reference_name}, "
            f"got {tuple(axes)}"
        )


def same_kind(name: str, value: Tensor, reference_name: str, reference: Tensor) -> Tensor:
    """Return `value`; the error names it unless it shares dtype and device with `reference`."""
    if value.dtype != reference.dtype:
        raise TypeError(f"{name}: expected dtype {reference.dtype}, that of {reference_name}, got {value.dtype}")
    if value.device != reference.device:
        raise ValueError(f"{name}: expected device {reference.device}, that of {reference_name}, got {value.device}")
    return value


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def typed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function: before it runs, a TypeError names the first argument that is not of its declared kind.

    It looks at arguments that are declared as tensors, bools, functions, generators, modules or classes of this
    library, as sequences of such, or as one of several of these. Numbers, texts and shapes the function checks itself.
    """
    signature = inspect.signature(function)
    kinds = {name: kind for name, one in signature.parameters.items() if (kind := _kind_of(one.annotation)) is not None}
    names = list(signature.parameters)

    @functools.wraps(function)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name in kinds:
                kinds[name].check(name, value)
        return function(*args, **kwargs)

    return checked


@dataclass(frozen=True)
class _Kind:
    """What an annotation allows: objects of some classes, and sequences whose items are of some class."""

    classes: tuple[type, ...] = ()
    items: tuple[type, ...] = ()

    def check(self, name: str, value: object) -> None:
        if isinstance(value, self.classes):
            return
        if not self.items or isinstance(value, str) or not isinstance(value, Sequence):
            raise TypeError(f"{name}: expected {self}, got {_called(type(value))}")
        for index, item in enumerate(value):
            _Kind(self.items).check(f"{name}[{index}]", item)

    def __str__(self) -> str:
        sequences = [f"a sequence of {_called(item)}" for item in self.items]
        return " or ".join([*(_called(one) for one in self.classes), *sequences])


def _kind_of(hint: object) -> _Kind | None:
    """What `typed` accepts for an annotation; None if the annotation is not for it to check."""
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for member in members if (kind := _kind_of(member)) is not None]
        if len(kinds) < len(members):
            return None
        return _Kind(sum((kind.classes for kind in kinds), ()), sum((kind.items for kind in kinds), ()))
    if origin is Sequence:
        kind = _kind_of(members[0])
        return None if kind is None or kind.items else _Kind(items=kind.classes)
    if origin is Callable:
        return _Kind((Callable,))
    if not isinstance(hint, type):
        return None
    if issubclass(getattr(hint, "array_type", type), Tensor):  # jaxtyping: Float[Tensor, "task x"]
        return _Kind((Tensor,))
    own = hint.__module__.partition(".")[0] == __name__.partition(".")[0]
    return _Kind((hint,)) if own or hint in (bool, types.NoneType, torch.Generator, torch.nn.Module) else None


def _called(kind: type) -> str:
    names = {
        Tensor: "a tensor",
        torch.Generator: "a torch.Generator",
        types.NoneType: "None",
        bool: "True or False",
        Callable: "a function",
    }
    return names.get(kind, kind.__name__)
