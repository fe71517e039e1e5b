"""What cases expect, with messages that name the likely mistake and never the right answer.

Finiteness comes first: NaN compares as neither right nor wrong, so it is refused before anything is compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from mesa_lib.assignments.cases import MistakeError

RTOL = 1e-8
"""Relative tolerance of an identity in double precision: rounding gives 1e-13 to 1e-10."""

ROUGHLY = 1e-5
"""Relative tolerance at which single precision would agree."""


def expect(condition: object, mistake: str) -> None:
    """Raise a MistakeError with this text unless the condition holds."""
    if not condition:
        raise MistakeError(mistake)


def expect_number(value: object, name: str) -> float:
    """The value as one finite real number.

    Raises:
        MistakeError: it is an array of several numbers, no number at all, complex, or not finite.
    """
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise MistakeError(f"{name} is an array of shape {value.shape}; one number was expected")
        value = value.reshape(()).item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MistakeError(f"{name} is a {type(value).__name__}; one number was expected")
    number = _as_float(value)
    if not np.isfinite(number):
        raise MistakeError(f"{name} is {number}: is something divided by zero?")
    return number


def expect_array(value: object, shape: Sequence[int | None], name: str) -> NDArray[Any]:
    """The value as an array of finite real numbers of this shape; lists of numbers are taken too.

    Args:
        value: what came back.
        shape: the sizes; None for an axis of any size.
        name: what the value is, for the message.

    Raises:
        MistakeError: it has another shape, holds something else, NaN or infinity.
    """
    if isinstance(value, (bool, str, dict)) or value is None:
        raise MistakeError(f"{name} is a {type(value).__name__}; an array was expected")
    if isinstance(value, (tuple, list)) and any(isinstance(item, np.ndarray) for item in value) and len(shape) < 2:
        raise MistakeError(f"{name} is a {type(value).__name__} of arrays; one array was expected")
    try:
        array = np.asarray(value)
    except ValueError:
        raise MistakeError(f"{name} holds rows of different lengths") from None
    if array.dtype.kind not in "iuf":
        raise MistakeError(f"{name} is an array of dtype {array.dtype}; real numbers were expected")
    if not _fits(array.shape, shape):
        guess = ": is it transposed?" if _fits(array.shape[::-1], shape) else ""
        wanted = ", ".join("any" if size is None else str(size) for size in shape) + ("," if len(shape) == 1 else "")
        raise MistakeError(f"{name} has shape {array.shape}; ({wanted}) was expected{guess}")
    if not np.isfinite(array).all():
        raise MistakeError(f"{name} holds NaN or infinity: is something divided by zero, or growing without bound?")
    return array.astype(np.float64)


def expect_close(
    value: object,
    wanted: NDArray[Any] | float | list[Any],
    name: str,
    mistakes: Mapping[str, NDArray[Any] | float | list[Any]] | None = None,
    rtol: float = RTOL,
) -> None:
    """Expect an array (or a number) close to the one that is wanted.

    The tolerance is `rtol` times the largest entry in size. If the value is wrong, the message is the first mistake
    that explains it: one of `mistakes`, else single precision, a sign, a transposition or, for more than one number, a
    constant factor.

    Args:
        value: what came back.
        wanted: what is right.
        name: what the value is, for the message: "the moved tokens".
        mistakes: a sentence -> the value to which that mistake leads. Public cases ship with the package: give numbers
            there, no formulas that show the answer.
        rtol: relative tolerance.

    Raises:
        MistakeError: wrong shape, not finite, or not close.
    """
    target = np.asarray(wanted, dtype=np.float64)
    got = expect_array(value, target.shape, name) if target.ndim else np.asarray(expect_number(value, name))
    if _close(got, target, rtol):
        return
    for sentence, wrong in (mistakes or {}).items():
        if _close(got, np.asarray(wrong, dtype=np.float64), rtol):
            raise MistakeError(sentence)
    if _close(got, target, ROUGHLY):
        raise MistakeError(f"{name}: only roughly right. Was something rounded, or computed in float32?")
    if _close(got, np.asarray(-target), rtol):
        raise MistakeError(f"{name}: the sign is the other way round")
    if target.ndim == 2 and target.shape[0] == target.shape[1] and _close(got, target.T, rtol):
        raise MistakeError(f"{name}: rows and columns are exchanged (a transposed product?)")
    if target.size == 1:
        raise MistakeError(f"{name}: not the right number")
    scale = float(np.vdot(target, got)) / max(float(np.vdot(target, target)), 1e-300)
    # With one entry that is not zero, nearly everything is a multiple, and a factor says nothing.
    if scale != 0 and np.count_nonzero(target) > 1 and _close(got, np.asarray(scale * target), rtol):
        raise MistakeError(f"{name}: off by a constant factor (a forgotten or a second 1/N, 1/2 or step size?)")
    raise MistakeError(f"{name}: the shape is right, the numbers are not")


def _fits(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    """Whether a shape is the one that is wanted, None standing for any size."""
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))


def _close(a: NDArray[Any], b: NDArray[Any], rtol: float) -> bool:
    """Whether two finite arrays agree, relative to the second's largest entry."""
    if a.shape != b.shape:
        return False
    scale = float(np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= rtol * max(scale, 1e-3))


def _as_float(value: SupportsFloat) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
