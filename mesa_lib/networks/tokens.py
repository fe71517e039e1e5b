"""Tokens: the context and the queries as a network sees them.

The sign convention of the whole book lives here and nowhere else: the y-slot of a query token carries *minus* the
prediction. A context token's y-slot carries the residual target y_i - W x_i up to W_0 (the step moves targets), and a
query is a context token whose target is 0: moving it by -W x_q and reading it with a minus sign gives W x_q.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import broadcastable, finite_tensor, positive_integer, same_kind, trailing_shape


@dataclass(frozen=True, eq=False)
class Tokens:
    """Token vectors of a context and of its queries, kept apart so that no mask and no last index is needed.

    Shapes:
        context: (*ensemble, task, context, token); keys and values are made from these alone
        query: (*ensemble, task, query, token)

    Raises:
        TypeError: a field is no floating-point tensor, or the dtypes disagree.
        ValueError: the leading axes or the token sizes disagree.
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


def read_prediction(tokens: Tokens, y_dim: int) -> Float[Tensor, "*ensemble task query y"]:
    """The prediction is minus the y-slot, the last `y_dim` numbers, of a query token.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `y_dim` is not a positive integer smaller than the token.
    """
    size = positive_integer("y_dim", y_dim)
    if size >= tokens.query.shape[-1]:
        raise ValueError(f"y_dim: expected less than the token's {tokens.query.shape[-1]} numbers, got {size}")
    return -tokens.query[..., -size:]


def query_in_context(tokens: Tokens) -> Tokens:
    """The same tokens with the query among the keys and values, as in plain self-attention.

    The query's copy in the context is an ordinary context token from then on: it is attended to, and updated.

    Args:
        tokens: with exactly one query per task; several would attend to each other.

    Returns:
        Tokens with context (*ensemble, task, context + 1, token) and the same query.

    Raises:
        ValueError: there is more than one query per task.
    """
    if tokens.query.shape[-2] != 1:
        raise ValueError(f"tokens: expected one query per task, got {tokens.query.shape[-2]}")
    return Tokens(torch.cat([tokens.context, tokens.query], dim=-2), tokens.query)
