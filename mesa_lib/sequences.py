"""Sequences of symbols, and the regression task that hides in one: what follows what."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_tensor, floating_dtype, positive_integer, typed


@typed
def induction_sequence(
    num_symbols: int, num_sequences: int, generator: torch.Generator, again: int = 2
) -> Int[Tensor, "task context"]:
    """Every symbol once, in a random order, and then the same order from its start: A B C ... A B.

    What follows the last symbol but one has been shown, once. Whoever continues such a sequence correctly has found
    where its symbol stood before, and has read what came next: Olsson et al. (2022) call this induction.

    Args:
        num_symbols: symbols, numbered from 0.
        num_sequences: how many sequences, each in an order of its own.
        generator: the only source of randomness, see `mesa_lib.generator`.
        again: how many symbols are repeated, at least two: the last one is the answer, the one before it the query.

    Returns:
        Symbols, shape (task, context), num_symbols + again a sequence.

    Raises:
        TypeError, ValueError: a size that is not a positive integer, or `again` is not between 2 and num_symbols.

    Example:
        >>> tuple(mesa.induction_sequence(10, 3, mesa.generator(0, "validation tasks")).shape)
        (3, 12)
    """
    count, repeated = positive_integer("num_symbols", num_symbols), positive_integer("again", again)
    if not 2 <= repeated <= count:
        raise ValueError(f"again: expected a number from 2 to num_symbols = {count}, got {again}")
    orders = torch.rand(positive_integer("num_sequences", num_sequences), count, generator=generator).argsort(-1)
    return torch.cat([orders, orders[:, :repeated]], dim=-1)


@typed
def bigram_counts(sequence: Int[Tensor, "task context"], num_symbols: int) -> Float[Tensor, "task y x"]:
    """How often symbol b came right after symbol a: C_ba = number of places i with s_i = a and s_{i+1} = b.

    Args:
        sequence: symbols from 0 to num_symbols - 1, shape (task, context).
        num_symbols: how many there are.

    Returns:
        Shape (task, y, x) in float64: rows say what came, columns after what.

    Raises:
        TypeError, ValueError: not at least two symbols a sequence, or numbers that are no symbols.

    Example:
        >>> mesa.bigram_counts(torch.tensor([[0, 1, 0, 1]]), num_symbols=2)[0].tolist()  # after 0 came 1, twice
        [[0.0, 1.0], [2.0, 0.0]]
    """
    symbols = check_symbols(sequence, num_symbols)
    pairs = symbols[:, 1:] * num_symbols + symbols[:, :-1]
    counts = torch.zeros(len(symbols), num_symbols**2, dtype=torch.float64, device=symbols.device)
    counts.scatter_add_(1, pairs, torch.ones_like(pairs, dtype=torch.float64))
    return counts.view(-1, num_symbols, num_symbols)


@typed
def bigram_batch(
    sequence: Int[Tensor, "task context"],
    embedding: Float[Tensor, "y x"],
    dtype: torch.dtype = torch.float64,
) -> TaskBatch:
    """The regression task in a sequence: inputs are symbols, targets what came after them.

    The examples are the pairs of neighbours, x_i = embedding of s_i and y_i = one-hot s_{i+1}. The last symbol but one
    is the query, and the last symbol its answer; the pair of these two is no example.

    Args:
        sequence: at least three symbols each, shape (task, context).
        embedding: one row a symbol, shape (y, x); `torch.eye` for one-hot inputs.
        dtype: of the batch.

    Returns:
        A TaskBatch with context_x (task, context - 2, x), context_y (task, context - 2, y), query_x (task, 1, x) and
        query_y (task, 1, y).

    Raises:
        TypeError, ValueError: not at least three symbols a sequence, numbers that are no symbols, an embedding that is
            no matrix of finite numbers.

    Example:
        >>> pairs = mesa.bigram_batch(torch.tensor([[0, 1, 0, 1]]), torch.eye(2, dtype=torch.float64))
        >>> pairs.num_context
        2
    """
    finite_tensor("embedding", embedding, min_dims=2)
    symbols = check_symbols(sequence, len(embedding), at_least=3)
    inputs = embedding.to(floating_dtype("dtype", dtype))[symbols]
    targets = torch.nn.functional.one_hot(symbols, len(embedding)).to(dtype)
    return TaskBatch(inputs[:, :-2], targets[:, 1:-1], inputs[:, -2:-1], targets[:, -1:])


def check_symbols(sequence: Tensor, num_symbols: int, at_least: int = 2) -> Tensor:
    """Return the sequence; the error names it unless it is rows of at least so many symbols."""
    count = positive_integer("num_symbols", num_symbols)
    if sequence.dtype != torch.int64 or sequence.dim() != 2 or sequence.shape[-1] < at_least:
        raise ValueError(
            f"sequence: expected integers (torch.int64) of shape (task, context) with at least {at_least} symbols a "
            f"row, got {sequence.dtype} of shape {tuple(sequence.shape)}"
        )
    if sequence.numel() == 0 or not bool(((sequence >= 0) & (sequence < count)).all()):
        raise ValueError(f"sequence: expected symbols from 0 to {count - 1}, got others, or none")
    return sequence
