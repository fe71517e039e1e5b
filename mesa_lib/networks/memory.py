"""Three ways to write one computation: linear attention as scores, as a written matrix, as a recurrence.

With keys k_i, values v_i and a query q, linear attention returns sum_i v_i (k_i . q). Schlag, Irie and Schmidhuber
(2021) read the same sum as a memory: the matrix sum_i v_i k_i^T, written once, applied to every query.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.validation import (
    broadcastable,
    finite_tensor,
    floating_dtype,
    one_of,
    positive_integer,
    same_kind,
    trailing_shape,
)


def _check_pairs(keys: Tensor, values: Tensor) -> None:
    finite_tensor("keys", keys, min_dims=2)
    finite_tensor("values", values, min_dims=2)
    same_kind("values", values, "keys", keys)
    if keys.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"values: expected one value per key, axes {tuple(keys.shape[:-1])}, got {tuple(values.shape[:-1])}"
        )


def _check_queries(queries: Tensor, name: str, reference: Tensor) -> None:
    finite_tensor("queries", queries, min_dims=2)
    same_kind("queries", queries, name, reference)
    if queries.shape[-1] != reference.shape[-1]:
        raise ValueError(f"queries: expected {reference.shape[-1]} numbers each, as in {name}, got {queries.shape[-1]}")
    broadcastable("queries", queries.shape[:-2], name, reference.shape[:-2])


def attend_by_scores(
    keys: Float[Tensor, "*ensemble context qk"],
    values: Float[Tensor, "*ensemble context v"],
    queries: Float[Tensor, "*ensemble query qk"],
) -> Float[Tensor, "*ensemble query v"]:
    """Linear attention as a transformer writes it: score every key, then add the values, sum_i (k_i . q) v_i.

    Needs the (query, context) matrix of scores. Shapes: keys (*ensemble, context, qk), values (*ensemble, context, v),
    queries (*ensemble, query, qk); the result (*ensemble, query, v).

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, or numbers that are not finite.

    Example:
        >>> keys, values = mesa.random_pairs(5, 8, 1, mesa.generator(0, "validation tasks"), keys="orthonormal")
        >>> torch.allclose(mesa.attend_by_scores(keys, values, keys), values)
        True
    """
    _check_pairs(keys, values)
    _check_queries(queries, "keys", keys)
    scores = queries @ keys.mT
    return scores @ values


def write_memory(
    keys: Float[Tensor, "*ensemble context qk"], values: Float[Tensor, "*ensemble context v"]
) -> Float[Tensor, "*ensemble v qk"]:
    """The memory matrix sum_i v_i k_i^T: a sum of outer products, one per example.

    Shapes: keys (*ensemble, context, qk), values (*ensemble, context, v); the result (*ensemble, v, qk).

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, or numbers that are not finite.

    Example:
        >>> keys, values = mesa.random_pairs(5, 8, 1, mesa.generator(0, "validation tasks"), keys="orthonormal")
        >>> torch.allclose(mesa.write_memory(keys, values), values.mT @ keys)
        True
    """
    _check_pairs(keys, values)
    return values.mT @ keys


def read_memory(
    memory: Float[Tensor, "*ensemble v qk"], queries: Float[Tensor, "*ensemble query qk"]
) -> Float[Tensor, "*ensemble query v"]:
    """Apply a memory to queries: memory @ q for each.

    Shapes: memory (*ensemble, v, qk), queries (*ensemble, query, qk); the result (*ensemble, query, v).

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, or numbers that are not finite.

    Example:
        >>> keys, values = mesa.random_pairs(5, 8, 1, mesa.generator(0, "validation tasks"), keys="orthonormal")
        >>> memory = mesa.write_memory(keys, values)
        >>> torch.allclose(mesa.read_memory(memory, keys), values)  # orthonormal keys don't disturb each other
        True
    """
    finite_tensor("memory", memory, min_dims=2)
    _check_queries(queries, "memory", memory)
    return queries @ memory.mT


def recurrent_memory(
    keys: Float[Tensor, "*ensemble context qk"], values: Float[Tensor, "*ensemble context v"]
) -> Float[Tensor, "*ensemble context v qk"]:
    """The memory after each example, written one at a time: M_0 = 0, M_i = M_{i-1} + v_i k_i^T (the sum rule).

    Shapes: keys (*ensemble, context, qk), values (*ensemble, context, v); the result
    (*ensemble, context, v, qk), of which the last along the context axis equals `write_memory`.

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, or numbers that are not finite.

    Example:
        >>> keys, values = mesa.random_pairs(5, 8, 1, mesa.generator(0, "validation tasks"))
        >>> torch.allclose(mesa.recurrent_memory(keys, values)[:, -1], mesa.write_memory(keys, values))
        True
    """
    _check_pairs(keys, values)
    memory = keys.new_zeros(*keys.shape[:-2], values.shape[-1], keys.shape[-1])
    states = []
    for key, value in zip(keys.unbind(-2), values.unbind(-2), strict=True):
        memory = memory + value[..., :, None] * key[..., None, :]
        states.append(memory)
    return torch.stack(states, dim=-3)


def least_squares_memory(
    keys: Float[Tensor, "*ensemble context qk"], values: Float[Tensor, "*ensemble context v"]
) -> Float[Tensor, "*ensemble v qk"]:
    """The matrix M of least sum_i |M k_i - v_i|^2 (of least norm): the best that any linear memory can do.

    Shapes: keys (*ensemble, context, qk), values (*ensemble, context, v); the result (*ensemble, v, qk).

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, or numbers that are not finite.

    Example:
        >>> keys, values = mesa.random_pairs(5, 8, 1, mesa.generator(0, "validation tasks"))
        >>> memory = mesa.least_squares_memory(keys, values)
        >>> torch.allclose(mesa.read_memory(memory, keys), values)
        True
    """
    _check_pairs(keys, values)
    fitted: Tensor = torch.linalg.pinv(keys) @ values
    return fitted.mT


def recall_error(
    memory: Float[Tensor, "*ensemble v qk"],
    keys: Float[Tensor, "*ensemble context qk"],
    values: Float[Tensor, "*ensemble context v"],
) -> Float[Tensor, "*ensemble"]:
    """How wrong a memory is about its own pairs: sum_i |M k_i - v_i|^2 / sum_i |v_i|^2.

    Zero is perfect recall; one is what the empty memory M = 0 gets.

    Shapes: memory (*ensemble, v, qk), keys (*ensemble, context, qk), values (*ensemble, context, v); the result
    (*ensemble).

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, numbers that are not finite, or values that are all
            zero, for which the relative error has no meaning.

    Example:
        >>> keys, values = mesa.random_pairs(5, 8, 1, mesa.generator(0, "validation tasks"), keys="orthonormal")
        >>> float(mesa.recall_error(mesa.write_memory(keys, values), keys, values)) < 1e-20
        True
    """
    _check_pairs(keys, values)
    trailing_shape("memory", memory, (values.shape[-1], keys.shape[-1]))
    scale = values.square().sum((-1, -2))
    if bool((scale == 0).any()):
        raise ValueError("values: expected some non-zero value in every memory, got only zeros")
    return (read_memory(memory, keys) - values).square().sum((-1, -2)) / scale


def random_pairs(
    num_pairs: int,
    key_dim: int,
    num_memories: int,
    generator: torch.Generator,
    *,
    keys: Literal["unit", "orthonormal"] = "unit",
    value_dim: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> tuple[Float[Tensor, "task context qk"], Float[Tensor, "task context v"]]:
    """Keys and values for `num_memories` independent memories of `num_pairs` pairs each.

    Values have independent entries N(0, 1). Keys have length one: "unit" keys are independent and uniform on the
    sphere, "orthonormal" keys are in addition at right angles to each other, which no more than `key_dim` of them can.

    Args:
        num_pairs: n, pairs in each memory.
        key_dim: d, entries of a key.
        num_memories: how many memories to draw.
        generator: the only source of randomness, see `mesa_lib.generator`.
        keys: "unit" or "orthonormal".
        value_dim: entries of a value; `key_dim` by default.
        dtype: a floating-point dtype.

    Returns:
        keys (task, context, qk) and values (task, context, v), one memory along the task axis for each draw.

    Raises:
        TypeError, ValueError: a size that is not a positive integer, `generator` is no torch.Generator, an unknown kind
            of keys, more orthonormal keys than dimensions, or a dtype that is not floating-point.

    Example:
        >>> keys, values = mesa.random_pairs(5, 8, 3, mesa.generator(0, "validation tasks"))
        >>> tuple(keys.shape)
        (3, 5, 8)
        >>> torch.allclose(keys.norm(dim=-1), torch.ones(3, 5, dtype=torch.float64))
        True
    """
    pairs, size = positive_integer("num_pairs", num_pairs), positive_integer("key_dim", key_dim)
    count = positive_integer("num_memories", num_memories)
    width = size if value_dim is None else positive_integer("value_dim", value_dim)
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator: expected a torch.Generator, got {type(generator).__name__}")
    floating_dtype("dtype", dtype)
    if one_of("keys", keys, ("unit", "orthonormal")) == "orthonormal" and pairs > size:
        raise ValueError(f"num_pairs: expected at most {size} orthonormal keys in {size} dimensions, got {pairs}")
    directions = torch.randn(count, pairs, size, generator=generator, dtype=dtype)
    values = torch.randn(count, pairs, width, generator=generator, dtype=dtype)
    if keys == "orthonormal":
        return torch.linalg.qr(directions.mT).Q.mT, values
    return torch.nn.functional.normalize(directions, dim=-1), values
