"""Tokens: the context and the queries as a network sees them.

The sign convention of the whole book lives here and nowhere else: the y-slot of a query token carries *minus* the
prediction. A context token's y-slot carries the residual target y_i - W x_i up to W_0 (the step moves targets), and a
query is a context token whose target is 0: moving it by -W x_q and reading it with a minus sign gives W x_q.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    broadcastable,
    finite_tensor,
    positive_integer,
    same_kind,
    trailing_shape,
    typed,
)


@dataclass(frozen=True, eq=False)
class Tokens:
    """Token vectors of a context and of its queries, kept apart so that no mask and no last index is needed.

    Shapes:
        context: (*ensemble, task, context, token); keys and values are made from these alone
        query: (*ensemble, task, query, token)

    Raises:
        TypeError: a field is no floating-point tensor, or the dtypes disagree.
        ValueError: the leading axes or the token sizes disagree.

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> tuple(tokens.context.shape), tuple(tokens.query.shape)
        ((4, 10, 11), (4, 1, 11))
    """

    context: Float[Tensor, "*ensemble task context token"]
    query: Float[Tensor, "*ensemble task query token"]

    def __post_init__(self) -> None:
        for name in ("context", "query"):
            value = getattr(self, name)
            if not isinstance(value, Tensor) or not value.is_floating_point():
                raise TypeError(f"Tokens.{name}: expected a floating-point tensor, got {type(value).__name__}")
        same_kind("Tokens.query", self.query, "context", self.context)
        if self.context.dim() < 3 or self.context.shape[:-2] != self.query.shape[:-2]:
            raise ValueError(
                f"Tokens: expected equal leading axes and at least one for the tasks, got context "
                f"{tuple(self.context.shape)} and query {tuple(self.query.shape)}"
            )
        if self.context.shape[-1] != self.query.shape[-1]:
            raise ValueError(
                f"Tokens.query: expected {self.context.shape[-1]} numbers a token, those of context, "
                f"got {self.query.shape[-1]}"
            )


def _constant_for_tasks(w_0: Tensor, batch: TaskBatch) -> Tensor:
    finite_tensor("w_0", w_0, min_dims=2)
    same_kind("w_0", w_0, "the batch", batch.context_x)
    broadcastable("w_0", w_0.shape[:-2], "the batch", batch.context_x.shape[:-2])
    return trailing_shape("w_0", w_0, (batch.y_dim, batch.x_dim))


@typed
def concatenated_tokens(batch: TaskBatch, w_0: Float[Tensor, "... y x"] | None = None) -> Tokens:
    """Context tokens e_i = (x_i, y_i) and query tokens (x_q, -W_0 x_q), section 2 and appendix A.1 of the paper.

    Without `w_0` the query token is (x_q, 0). The two agree when W_0 = 0 only: a layer that steps from another W_0
    changes the y-slot by -Delta W x_q, so a slot that starts at 0 never gets to hear of W_0 x_q.

    Args:
        batch: the tasks.
        w_0: the linear model that the layers start from, (y, x) or (*ensemble, task, y, x).

    Returns:
        Tokens with context (*ensemble, task, context, x + y) and query (*ensemble, task, query, x + y).

    Raises:
        TypeError, ValueError: `w_0` has another dtype than the batch or does not fit its dimensions.

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> torch.equal(tokens.context[..., -1:], batch.context_y), float(tokens.query[..., -1].abs().max())
        (True, 0.0)
    """
    if w_0 is None:
        slot = torch.zeros_like(batch.query_y)
    else:
        slot = -(batch.query_x @ _constant_for_tasks(w_0, batch).mT)
    # A W_0 of every ensemble member gives the queries an ensemble axis that the tasks need not have.
    leading = slot.shape[:-2]
    context = torch.cat([batch.context_x, batch.context_y], dim=-1)
    return Tokens(
        context.expand(*leading, *context.shape[-2:]),
        torch.cat([batch.query_x.expand(*leading, *batch.query_x.shape[-2:]), slot], dim=-1),
    )


@typed
def interleaved_tokens(batch: TaskBatch, positions: Float[Tensor, "context token"]) -> Tokens:
    """Alternating tokens x_1, y_1, ..., x_N, y_N, x_q, each with the code of its place; section 4 of the paper.

    In slots (x numbers, the code, y numbers):

        x_j -> (x_j, p_{2j-1}, 0),    y_j -> ((0, y_j), p_{2j}, 0),    x_q -> (x_q, p_{2N+1}, 0).

    Inputs and targets share the first slot, a target fills its last numbers: only the code tells them apart. The last
    slot is empty in all tokens. A layer that copies y_j there, into x_j's token, makes the tokens of
    `concatenated_tokens`, but for the code in the middle; and `read_prediction` reads the query's. (The paper's proof
    puts the copy in the place of the code; its released code reads the prediction from the code's last number, so that
    an untrained network predicts about -1 instead of 0.)

    Args:
        batch: the tasks; every query stands at the last place, and sees the context only.
        positions: the codes of 2N + 1 places, one-hot or sinusoidal or other; shape (context, token).

    Returns:
        Tokens with context (*ensemble, task, 2 context, x + code + y) and query (*ensemble, task, query, x + code + y).

    Raises:
        TypeError, ValueError: not 2N + 1 codes, codes of another dtype than the batch, or more targets than inputs.

    Example:
        >>> tokens = mesa.interleaved_tokens(batch, mesa.one_hot_codes(21, dtype=torch.float64))
        >>> tuple(tokens.context.shape)  # x_1, y_1, x_2, y_2, ...
        (4, 20, 32)
    """
    finite_tensor("positions", positions, min_dims=2)
    same_kind("positions", positions, "the batch", batch.context_x)
    places = 2 * batch.num_context + 1
    if positions.dim() != 2 or len(positions) != places:
        raise ValueError(f"positions: expected {places} codes, 2N + 1, got shape {tuple(positions.shape)}")
    d, n_out, width = batch.x_dim, batch.y_dim, positions.shape[-1]
    if n_out > d:
        raise ValueError(f"batch: expected at most {d} targets, as many as inputs, got {n_out}")
    leading = batch.context_x.shape[:-2]
    context = batch.context_x.new_zeros(*leading, places - 1, d + width + n_out)
    context[..., ::2, :d] = batch.context_x
    context[..., 1::2, d - n_out : d] = batch.context_y
    context[..., d : d + width] = positions[:-1]
    codes = positions[-1].expand(*leading, batch.num_queries, width)
    return Tokens(context, torch.cat([batch.query_x, codes, torch.zeros_like(batch.query_y)], dim=-1))


@typed
def sequence_tokens(
    symbols: Int[Tensor, "task context"],
    embedding: Float[Tensor, "y x"],
    positions: Float[Tensor, "context token"],
) -> Tokens:
    """Tokens of a sequence of symbols, in slots (embedding, code of the place, empty, empty).

    The first empty slot is for a copy of the symbol before, the second for what a network writes about the symbol to
    come. The last token is the query as well: it stands among the keys, and it asks.

    Args:
        symbols: shape (task, context).
        embedding: one row a symbol, shape (y, x).
        positions: one code a place, shape (context, token).

    Returns:
        Tokens with context (task, context, x + code + 2 x) and query (task, 1, x + code + 2 x).

    Raises:
        TypeError, ValueError: an embedding or codes that are no matrix, codes of another dtype, not one code a place.

    Example:
        >>> symbols = torch.tensor([[0, 2, 1, 2]])
        >>> tuple(mesa.sequence_tokens(symbols, torch.eye(3), mesa.one_hot_codes(4)).context.shape)
        (1, 4, 13)
    """
    finite_tensor("embedding", embedding, min_dims=2)
    finite_tensor("positions", positions, min_dims=2)
    same_kind("positions", positions, "embedding", embedding)
    if len(positions) != symbols.shape[-1]:
        raise ValueError(f"positions: expected one code for each of {symbols.shape[-1]} places, got {len(positions)}")
    embedded = embedding[symbols]
    empty = embedded.new_zeros(*embedded.shape[:-1], 2 * embedded.shape[-1])
    context = torch.cat([embedded, positions.expand(*embedded.shape[:-1], -1), empty], dim=-1)
    return Tokens(context, context[:, -1:])


@typed
def read_prediction(tokens: Tokens, y_dim: int) -> Float[Tensor, "*ensemble task query y"]:
    """The prediction is minus the y-slot, the last `y_dim` numbers, of a query token.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `y_dim` is not a positive integer smaller than the token.

    Example:
        >>> tokens = mesa.linear_self_attention(layer, mesa.concatenated_tokens(batch))
        >>> torch.allclose(mesa.read_prediction(tokens, y_dim=1), mesa.gradient_descent(batch, eta=1.0))
        True
    """
    size = positive_integer("y_dim", y_dim)
    if size >= tokens.query.shape[-1]:
        raise ValueError(f"y_dim: expected less than the token's {tokens.query.shape[-1]} numbers, got {size}")
    return -tokens.query[..., -size:]


@typed
def query_in_context(tokens: Tokens) -> Tokens:
    """The same tokens with the query among the keys and values, as in plain self-attention.

    The query's copy in the context is an ordinary context token from then on: it is attended to, and updated.

    Args:
        tokens: with exactly one query per task; several would attend to each other.

    Returns:
        Tokens with context (*ensemble, task, context + 1, token) and the same query.

    Raises:
        ValueError: there is more than one query per task.

    Example:
        >>> tokens = mesa.query_in_context(mesa.concatenated_tokens(batch))
        >>> tuple(tokens.context.shape)
        (4, 11, 11)
    """
    if tokens.query.shape[-2] != 1:
        raise ValueError(f"tokens: expected one query per task, got {tokens.query.shape[-2]}")
    return Tokens(torch.cat([tokens.context, tokens.query], dim=-2), tokens.query)
