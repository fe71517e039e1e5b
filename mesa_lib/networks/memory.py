"""Three ways to write one computation: linear attention as scores, as a written matrix, as a recurrence.

With keys k_i, values v_i and a query q, linear attention returns sum_i v_i (k_i . q). Schlag, Irie and Schmidhuber
(2021) read the same sum as a memory: the matrix sum_i v_i k_i^T, written once, applied to every query.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.validation import finite_tensor, same_kind


def _check_pairs(keys: Tensor, values: Tensor) -> None:
    finite_tensor("keys", keys, min_dims=2)
    finite_tensor("values", values, min_dims=2)
    same_kind("values", values, "keys", keys)
    if keys.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"values: expected one value per key, axes {tuple(keys.shape[:-1])}, got {tuple(values.shape[:-1])}"
        )


def _check_queries(queries: Tensor, keys: Tensor) -> None:
    finite_tensor("queries", queries, min_dims=2)
    same_kind("queries", queries, "keys", keys)
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"queries: expected {keys.shape[-1]} numbers each, as in keys, got {queries.shape[-1]}")


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
    """
    _check_pairs(keys, values)
    _check_queries(queries, keys)
    scores = queries @ keys.mT
    return scores @ values


def write_memory(
    keys: Float[Tensor, "*ensemble context qk"], values: Float[Tensor, "*ensemble context v"]
) -> Float[Tensor, "*ensemble v qk"]:
    """The memory matrix sum_i v_i k_i^T: a sum of outer products, one per example.

    Shapes: keys (*ensemble, context, qk), values (*ensemble, context, v); the result (*ensemble, v, qk).

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, or numbers that are not finite.
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
    """
    finite_tensor("memory", memory, min_dims=2)
    _check_queries(queries, memory)
    return queries @ memory.mT


def recurrent_memory(
    keys: Float[Tensor, "*ensemble context qk"], values: Float[Tensor, "*ensemble context v"]
) -> Float[Tensor, "*ensemble context v qk"]:
    """The memory after each example, written one at a time: M_0 = 0, M_i = M_{i-1} + v_i k_i^T (the sum rule).

    Shapes: keys (*ensemble, context, qk), values (*ensemble, context, v); the result
    (*ensemble, context, v, qk), of which the last along the context axis equals `write_memory`.

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, or numbers that are not finite.
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
    """
    _check_pairs(keys, values)
    fitted: Tensor = torch.linalg.pinv(keys) @ values
    return fitted.mT
