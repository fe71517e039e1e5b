"""Learning algorithms put together from four primitives, as in the constructions of Akyürek et al. (2023).

Their transformer keeps one column of numbers for each token and works on it with four operations (their Lemma 1), each
of which one layer can carry out: *mov* copies entries from one token to another, *mul* multiplies two matrices that a
token holds, *div* divides by an entry, *aff* applies an affine map. Here the operations are exact functions; how well a
layer with a softmax and a nonlinearity approximates each of them is not our subject.

A state is a tensor (*ensemble, task, context, token): a row for each token of the prompt, and slots of it, given as
slices of the last axis, hold what the algorithm needs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.learners import predict_linear
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    finite_number,
    positive_integer,
    positive_number,
    typed,
)

State = Float[Tensor, "*ensemble task context token"]
Primitive = Callable[[State], State]
"""One operation on a state with its slots filled in: a partial of `move`, `multiply`, `divide` or `affine`."""


def _size(slot: slice) -> int:
    return int(slot.stop - slot.start)


def _written(state: Tensor, slot: slice, value: Tensor) -> Tensor:
    result = state.clone()
    result[..., slot] = value
    return result


def move(state: State, source: int, target: int, read: slice, write: slice) -> State:
    """mov: copy the slot `read` of the token `source` into the slot `write` of the token `target`.

    Args:
        state: shape (*ensemble, task, context, token); it is not changed.
        source: index of a token.
        target: index of a token, not before `source`: the transformer is causal.
        read: where to read, a slice of the last axis with start and stop.
        write: where to write, of the same size.

    Returns:
        A state of the same shape.

    Raises:
        ValueError: `target` lies before `source`, or the slots differ in size.
    """
    if target < source:
        raise ValueError(f"target: expected a token not before source = {source}, got {target}")
    if _size(read) != _size(write):
        raise ValueError(f"write: expected a slot of {_size(read)} entries, as in read, got {_size(write)}")
    result = state.clone()
    result[..., target, write] = state[..., source, read]
    return result


def multiply(state: State, left: slice, right: slice, write: slice, sizes: tuple[int, int, int]) -> State:
    """mul: in every token, read two slots as matrices (a, b) and (b, c), row by row, and write their product.

    Args:
        state: shape (*ensemble, task, context, token); it is not changed.
        left: a slot of a b entries.
        right: a slot of b c entries.
        write: a slot of a c entries.
        sizes: (a, b, c).

    Returns:
        A state of the same shape.

    Raises:
        ValueError: a slot's size does not fit `sizes`.
    """
    a, b, c = (positive_integer("sizes", size) for size in sizes)
    for name, slot, size in (("left", left, a * b), ("right", right, b * c), ("write", write, a * c)):
        if _size(slot) != size:
            raise ValueError(f"{name}: expected a slot of {size} entries for sizes {sizes}, got {_size(slot)}")
    axes = state.shape[:-1]
    product = state[..., left].reshape(*axes, a, b) @ state[..., right].reshape(*axes, b, c)
    return _written(state, write, product.flatten(-2))


def divide(state: State, read: slice, divisor: int, write: slice) -> State:
    """div: in every token, divide a slot by the absolute value of one entry; tokens where that is zero keep theirs.

    Args:
        state: shape (*ensemble, task, context, token); it is not changed.
        read: the slot that is divided.
        divisor: index of the entry that divides.
        write: where the result goes, of the same size as `read`.

    Returns:
        A state of the same shape.

    Raises:
        ValueError: the slots differ in size.
    """
    if _size(read) != _size(write):
        raise ValueError(f"write: expected a slot of {_size(read)} entries, as in read, got {_size(write)}")
    by = state[..., divisor, None].abs()
    return _written(state, write, state[..., read] / torch.where(by == 0, 1, by))


def affine(
    state: State,
    first: slice,
    second: slice,
    write: slice,
    factors: tuple[float, float],
    bias: float = 0.0,
) -> State:
    """aff: in every token, write a h[first] + b h[second] + bias.

    The primitive of the paper multiplies the slots by any matrices; the algorithms here need multiples of the identity.

    Args:
        state: shape (*ensemble, task, context, token); it is not changed.
        first: a slot.
        second: a slot of the same size.
        write: where the result goes, of the same size.
        factors: (a, b).
        bias: added to every entry.

    Returns:
        A state of the same shape.

    Raises:
        TypeError, ValueError: the slots differ in size, or a number is not finite.
    """
    for name, slot in (("second", second), ("write", write)):
        if _size(slot) != _size(first):
            raise ValueError(f"{name}: expected a slot of {_size(first)} entries, as in first, got {_size(slot)}")
    a, b = (finite_number("factors", factor) for factor in factors)
    return _written(state, write, a * state[..., first] + b * state[..., second] + finite_number("bias", bias))


@dataclass(frozen=True)
class _Slots:
    """Where a token keeps what: input, target, then named blocks one after the other."""

    x: slice
    y: slice
    blocks: dict[str, slice]
    width: int

    def __getitem__(self, name: str) -> slice:
        return self.blocks[name]

    def joined(self, first: str, last: str) -> slice:
        """The slot from one block to another, both included."""
        return slice(self[first].start, self[last].stop)


def _slots(x_dim: int, y_dim: int, sizes: dict[str, int]) -> _Slots:
    end = x_dim + y_dim
    blocks = {}
    for name, size in sizes.items():
        blocks[name] = slice(end, end + size)
        end += size
    return _Slots(slice(0, x_dim), slice(x_dim, x_dim + y_dim), blocks, end)


def _ridge_step_slots(x_dim: int, y_dim: int) -> _Slots:
    return _slots(x_dim, y_dim, {"weights": y_dim * x_dim, "answer": y_dim, "error": y_dim, "outer": y_dim * x_dim})


def ridge_step_program(
    x_dim: int, y_dim: int, step_size: float, penalty: float, example: int = 1
) -> tuple[Primitive, ...]:
    """The primitives that make one step of gradient descent on ridge regression, for one example (their Theorem 1).

        W' = W - 2 alpha ((W x - y) x^T + lambda W),   the gradient of |W x - y|^2 + lambda |W|^2

    (their equation 11). Token number 0 holds the first weights; token number i holds example i and gets W from token
    i - 1.

    Args:
        x_dim: input dimensions d.
        y_dim: target dimensions.
        step_size: alpha, on a squared error without the factor 1/2.
        penalty: lambda, paid anew with each example.
        example: i, from 1.

    Returns:
        The operations in their order.

    Raises:
        TypeError, ValueError: a size that is not a positive integer, or a number that is not finite.

    Example:
        >>> len(mesa.ridge_step_program(x_dim=3, y_dim=1, step_size=0.1, penalty=0.1)) > 1
        True
    """
    d, m = positive_integer("x_dim", x_dim), positive_integer("y_dim", y_dim)
    alpha, shrink = finite_number("step_size", step_size), finite_number("penalty", penalty)
    i, at = positive_integer("example", example), _ridge_step_slots(d, m)
    keep = 1 - 2 * alpha * shrink
    return (
        partial(move, source=i - 1, target=i, read=at["weights"], write=at["weights"]),
        partial(multiply, left=at["weights"], right=at.x, write=at["answer"], sizes=(m, d, 1)),
        partial(affine, first=at["answer"], second=at.y, write=at["error"], factors=(1, -1)),
        partial(multiply, left=at["error"], right=at.x, write=at["outer"], sizes=(m, 1, d)),
        partial(affine, first=at["weights"], second=at["outer"], write=at["weights"], factors=(keep, -2 * alpha)),
    )


@typed
def primitive_ridge_steps_weights(
    batch: TaskBatch, step_size: float, penalty: float
) -> Float[Tensor, "*ensemble task y x"]:
    """Weights after one pass over the context, a `ridge_step_program` an example, from W = 0.

    With penalty 0 it is the delta rule of `delta_rule_weights` with eta = 2 alpha.

    Args:
        batch: its context is used, its queries are not.
        step_size: alpha, on |W x - y|^2 + lambda |W|^2.
        penalty: lambda.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: see `ridge_step_program`.

    Example:
        >>> tuple(mesa.primitive_ridge_steps_weights(batch, step_size=0.1, penalty=0.1).shape)
        (4, 1, 10)
    """
    at = _ridge_step_slots(batch.x_dim, batch.y_dim)
    state = _prompt(batch, at)
    for example in range(1, batch.num_context + 1):
        for primitive in ridge_step_program(batch.x_dim, batch.y_dim, step_size, penalty, example):
            state = primitive(state)
    return _weights(state, at, batch)


@typed
def primitive_ridge_steps(
    batch: TaskBatch, step_size: float, penalty: float
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions after one pass of ridge-regression steps by primitives; see `primitive_ridge_steps_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `ridge_step_program`.

    Example:
        >>> tuple(mesa.primitive_ridge_steps(batch, step_size=0.1, penalty=0.1).shape)
        (4, 1, 1)
    """
    return predict_linear(primitive_ridge_steps_weights(batch, step_size, penalty), batch)


def _sherman_morrison_slots(x_dim: int, y_dim: int) -> _Slots:
    d, m = x_dim, y_dim
    kept = {"inverse": d * d, "weights": m * d}
    rank_one = {"square": d * d, "product": m * d}  # in the same order, so that one div and one aff do both
    return _slots(d, m, kept | rank_one | {"pushed": d, "scale": 1, "answer": m, "error": m})


def sherman_morrison_program(x_dim: int, y_dim: int, example: int = 1) -> tuple[Primitive, ...]:
    """The primitives that solve ridge regression exactly for one example more (their Theorem 2).

    With M the inverse of lambda I plus the sum of x x^T so far, and u = M x,

        s = 1 + x^T u,   M' = M - u u^T / s,   W' = W - (W x - y) u^T / s,

    the rank-one update of Sherman and Morrison. It is no gradient step of any size: a token holds d^2 numbers of M.

    Args:
        x_dim: input dimensions d.
        y_dim: target dimensions.
        example: i, from 1: token number i gets M and W from token i - 1.

    Returns:
        The operations in their order.

    Raises:
        TypeError, ValueError: an argument that is not a positive integer.

    Example:
        >>> len(mesa.sherman_morrison_program(x_dim=3, y_dim=1)) > 1
        True
    """
    d, m = positive_integer("x_dim", x_dim), positive_integer("y_dim", y_dim)
    i, at = positive_integer("example", example), _sherman_morrison_slots(d, m)
    kept, change = at.joined("inverse", "weights"), at.joined("square", "product")
    pushed, scale, answer, error = at["pushed"], at["scale"], at["answer"], at["error"]
    return (
        partial(move, source=i - 1, target=i, read=kept, write=kept),
        partial(multiply, left=at["inverse"], right=at.x, write=pushed, sizes=(d, d, 1)),
        partial(multiply, left=at.x, right=pushed, write=scale, sizes=(1, d, 1)),
        partial(affine, first=scale, second=scale, write=scale, factors=(1, 0), bias=1),
        partial(multiply, left=at["weights"], right=at.x, write=answer, sizes=(m, d, 1)),
        partial(affine, first=answer, second=at.y, write=error, factors=(1, -1)),
        partial(multiply, left=pushed, right=pushed, write=at["square"], sizes=(d, 1, d)),
        partial(multiply, left=error, right=pushed, write=at["product"], sizes=(m, 1, d)),
        partial(divide, read=change, divisor=scale.start, write=change),
        partial(affine, first=kept, second=change, write=kept, factors=(1, -1)),
    )


@typed
def primitive_ridge_weights(batch: TaskBatch, penalty: float) -> Float[Tensor, "*ensemble task y x"]:
    """Ridge regression, exact after every example, by primitives: a `sherman_morrison_program` an example.

    Args:
        batch: its context is used, its queries are not.
        penalty: lambda, beside a sum over the context, as in `ridge_regression_weights`.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `penalty` is not a positive finite number.

    Example:
        >>> exact = mesa.ridge_regression_weights(batch, penalty=0.1)
        >>> torch.allclose(mesa.primitive_ridge_weights(batch, penalty=0.1), exact)
        True
    """
    at = _sherman_morrison_slots(batch.x_dim, batch.y_dim)
    state = _prompt(batch, at)
    first = torch.eye(batch.x_dim, dtype=state.dtype, device=state.device) / positive_number("penalty", penalty)
    state[..., 0, at["inverse"]] = first.flatten()
    for example in range(1, batch.num_context + 1):
        for primitive in sherman_morrison_program(batch.x_dim, batch.y_dim, example):
            state = primitive(state)
    return _weights(state, at, batch)


@typed
def primitive_ridge(batch: TaskBatch, penalty: float) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of ridge regression by primitives; see `primitive_ridge_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `penalty` is not a positive finite number.

    Example:
        >>> torch.allclose(mesa.primitive_ridge(batch, penalty=0.1), mesa.ridge_regression(batch, penalty=0.1))
        True
    """
    return predict_linear(primitive_ridge_weights(batch, penalty), batch)


def _prompt(batch: TaskBatch, at: _Slots) -> Tensor:
    """The first state: an empty token, then the examples, each in its own token."""
    *axes, examples, _ = batch.context_x.shape
    state = batch.context_x.new_zeros(*axes, examples + 1, at.width)
    state[..., 1:, at.x] = batch.context_x
    state[..., 1:, at.y] = batch.context_y
    return state


def _weights(state: Tensor, at: _Slots, batch: TaskBatch) -> Tensor:
    return state[..., -1, at["weights"]].reshape(*state.shape[:-2], batch.y_dim, batch.x_dim)
