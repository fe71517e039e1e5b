"""Self-attention as a function of its weights; the weights are plain data.

A layer of linear self-attention (the paper's equation 2) updates every token e_j by

    e_j <- e_j + sum_h P_h V_h K_h^T q_{h,j},    k = W_K e,  q = W_Q e,  v = W_V e,

with keys and values of the context tokens. It depends on its four factors through two products only, W_KQ = W_K^T W_Q
and W_PV = P W_V, and on the context through one matrix only, its second moment S = sum_i e_i e_i^T:

    e_j <- (I + M) e_j,    M = sum_h W_PV,h S W_KQ,h.

A layer of softmax self-attention has the same weights and another reading of the scores: they become shares of one, by
a softmax over the context, before they weigh the values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mesa_lib.networks.tokens import Tokens
from mesa_lib.validation import (
    broadcastable,
    finite_number,
    floating_tensor,
    non_negative_number,
    one_of,
    positive_integer,
    same_kind,
    typed,
)


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """W_K, W_Q, W_V and P of one layer, each with a leading axis for heads and any number of ensemble axes.

    The same type is returned by the random start, by every construction, by a trained network and by interpolation.
    The factors are defined up to gauge only; compare `w_kq` and `w_pv`, after `canonicalize`, never the factors.

    Shapes:
        w_k, w_q: (*ensemble, head, qk, token)
        w_v: (*ensemble, head, v, token)
        w_p: (*ensemble, head, token, v); the paper calls it P

    Raises:
        TypeError: a field is no floating-point tensor, or the dtypes disagree.
        ValueError: the shapes do not fit together.

    Example:
        >>> layer = mesa.gd_construction(eta=1.0, x_dim=2, y_dim=1, num_context=10)
        >>> layer.w_pv.tolist() == (layer.w_p @ layer.w_v).tolist()
        True
        >>> layer.num_heads
        1
    """

    w_k: Float[Tensor, "*ensemble head qk token"]
    w_q: Float[Tensor, "*ensemble head qk token"]
    w_v: Float[Tensor, "*ensemble head v token"]
    w_p: Float[Tensor, "*ensemble head token v"]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = floating_tensor(f"AttentionWeights.{field.name}", getattr(self, field.name), min_dims=3)
            same_kind(f"AttentionWeights.{field.name}", value, "w_k", self.w_k)
            if value.shape[:-2] != self.w_k.shape[:-2]:
                raise ValueError(
                    f"AttentionWeights.{field.name}: expected leading axes {tuple(self.w_k.shape[:-2])}, those of w_k, "
                    f"got {tuple(value.shape[:-2])}"
                )
        token = self.token_dim
        wanted = {
            "w_q": tuple(self.w_k.shape[-2:]),
            "w_v": (self.w_v.shape[-2], token),
            "w_p": (token, self.w_v.shape[-2]),
        }
        for name, shape in wanted.items():
            got = tuple(getattr(self, name).shape[-2:])
            if got != shape:
                raise ValueError(f"AttentionWeights.{name}: expected a matrix of shape {shape}, got {got}")

    @property
    def token_dim(self) -> int:
        """Size of a token."""
        return self.w_k.shape[-1]

    @property
    def num_heads(self) -> int:
        """Number of heads."""
        return self.w_k.shape[-3]

    @property
    def w_kq(self) -> Float[Tensor, "*ensemble head token token"]:
        """W_K^T W_Q: the bilinear form that scores a key against a query. Shape (*ensemble, head, token, token)."""
        return self.w_k.mT @ self.w_q

    @property
    def w_pv(self) -> Float[Tensor, "*ensemble head token token"]:
        """P W_V: what an attended token adds to the reader. Shape (*ensemble, head, token, token)."""
        return self.w_p @ self.w_v

    def to(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> "AttentionWeights":
        """The same weights in another dtype or on another device."""
        return AttentionWeights(*(getattr(self, field.name).to(dtype=dtype, device=device) for field in fields(self)))

    def members(self, index: int | Sequence[int]) -> "AttentionWeights":
        """Some members of an ensemble, along the first ensemble axis: one of them without that axis, or a list of them.

        Raises:
            ValueError: there is no ensemble axis.
            IndexError: there is no such member.
        """
        if self.w_k.dim() < 4:
            raise ValueError(f"weights: expected an ensemble axis, got w_k of shape {tuple(self.w_k.shape)}")
        chosen = index if isinstance(index, int) else list(index)
        return AttentionWeights(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def detach(self) -> "AttentionWeights":
        """The same weights, cut off from autograd."""
        return AttentionWeights(*(getattr(self, field.name).detach() for field in fields(self)))


@typed
def context_moment(
    context: Float[Tensor, "*ensemble task context token"],
) -> Float[Tensor, "*ensemble task token token"]:
    """S = sum_i e_i e_i^T over a context, the only thing that linear attention keeps of it.

    Returns:
        Shape (*ensemble, task, token, token).

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> torch.allclose(mesa.context_moment(tokens.context), tokens.context.mT @ tokens.context)
        True
    """
    floating_tensor("context", context, min_dims=2)
    return context.mT @ context


def check_fit(name: str, weights: AttentionWeights, tokens: Float[Tensor, "... context token"]) -> None:
    """Raise a TypeError or ValueError that names `name` unless the layer fits these tokens, or this moment of them."""
    if tokens.shape[-1] != weights.token_dim:
        raise ValueError(f"{name}: expected a token size of {tokens.shape[-1]}, got {weights.token_dim}")
    same_kind(name, weights.w_k, "the tokens", tokens)
    broadcastable(name, weights.w_k.shape[:-3], "the tokens", tokens.shape[:-3])


@typed
def moment_fast_weights(
    weights: AttentionWeights, moment: Float[Tensor, "... task token token"]
) -> Float[Tensor, "*ensemble task token token"]:
    """M = sum_h P_h W_V,h S W_K,h^T W_Q,h, the matrix that a context of second moment S writes.

    Its cost, O(heads token^3) a task, does not depend on the context's length.

    Args:
        weights: one layer; its ensemble axes and those of `moment` broadcast.
        moment: S, shape (*ensemble, task, token, token).

    Returns:
        Shape (*ensemble, task, token, token).

    Raises:
        TypeError, ValueError: the weights' dtype, token size or ensemble axes do not fit the moment's.

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> moment = mesa.context_moment(tokens.context)
        >>> torch.allclose(mesa.moment_fast_weights(layer, moment), mesa.fast_weights(layer, tokens))
        True
    """
    floating_tensor("moment", moment, min_dims=2)
    check_fit("weights", weights, moment)
    w_pv, w_kq = weights.w_pv.unsqueeze(-4), weights.w_kq.unsqueeze(-4)  # an axis for the tasks, before the heads
    return (w_pv @ moment.unsqueeze(-3) @ w_kq).sum(-3)


@typed
def fast_weights(weights: AttentionWeights, tokens: Tokens) -> Float[Tensor, "*ensemble task token token"]:
    """The linear map that the context writes, sum_h P_h (sum_i v_i k_i^T) W_Q,h; attention adds its image to a token.

    "Fast weights" is the term of Schlag, Irie and Schmidhuber (2021): weights that change with every context, written
    by slow ones.

    Args:
        weights: one layer.
        tokens: the context is read, the queries are not.

    Returns:
        Shape (*ensemble, task, token, token).

    Raises:
        TypeError, ValueError: the weights' dtype, token size or ensemble axes do not fit the tokens.

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> change = mesa.fast_weights(layer, tokens)
        >>> torch.allclose(tokens.query @ change.mT, mesa.linear_attention(layer, tokens.context, tokens.query))
        True
    """
    return moment_fast_weights(weights, context_moment(tokens.context))


@typed
def linear_self_attention(weights: AttentionWeights, tokens: Tokens) -> Tokens:
    """One layer of linear self-attention: e_j <- e_j + sum_h P_h V_h K_h^T q_{h,j} for every token, queries too.

    Keys and values come from the context tokens only (the paper's footnote on excluding the query).

    Args:
        weights: one layer; its ensemble axes and those of the tokens broadcast.
        tokens: context (*ensemble, task, context, token), query (*ensemble, task, query, token).

    Returns:
        Tokens of the same shapes, with the weights' ensemble axes in front where the tokens had none.

    Raises:
        TypeError, ValueError: the weights' dtype, token size or ensemble axes do not fit the tokens.

    Example:
        >>> after = mesa.linear_self_attention(layer, mesa.concatenated_tokens(batch))
        >>> step = mesa.gradient_descent_weights(batch, eta=1.0)
        >>> torch.allclose(after.context[..., -1:], mesa.step_moved_targets(batch, step))
        True
    """
    written = fast_weights(weights, tokens).mT
    return Tokens(tokens.context + tokens.context @ written, tokens.query + tokens.query @ written)


Attention = Callable[
    [AttentionWeights, Float[Tensor, "... task context token"], Float[Tensor, "... task query token"]],
    Float[Tensor, "*ensemble task query token"],
]
"""(weights, context, readers) -> what a layer adds to each reader: `linear_attention`, `softmax_attention`."""


def causal_mask(num_tokens: int) -> Bool[Tensor, "query context"]:
    """Who may read whom where nobody sees the future: token j reads the tokens 1, ..., j, itself among them.

    Args:
        num_tokens: tokens in a row, which are readers and context alike.

    Returns:
        Shape (query, context), True where reading is allowed.

    Raises:
        TypeError, ValueError: `num_tokens` is not a positive integer.

    Example:
        >>> mesa.causal_mask(3).int().tolist()
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    count = positive_integer("num_tokens", num_tokens)
    return torch.ones(count, count, dtype=torch.bool).tril()


@typed
def linear_attention(
    weights: AttentionWeights,
    context: Float[Tensor, "... task context token"],
    readers: Float[Tensor, "... task query token"],
    *,
    mask: Bool[Tensor, "query context"] | None = None,
) -> Float[Tensor, "*ensemble task query token"]:
    """What linear attention adds to its readers: sum_h P_h sum_i (k_i . q) v_i, keys and values from the context.

    Args:
        weights: one layer; its ensemble axes and those of the tokens broadcast.
        context: the tokens that are read, shape (*ensemble, task, context, token).
        readers: the tokens that ask, shape (*ensemble, task, query, token).
        mask: True where a reader may read a token, see `causal_mask`; everywhere if absent.

    Returns:
        The update of each reader, shape (*ensemble, task, query, token); the readers themselves are not added.

    Raises:
        TypeError, ValueError: the weights' dtype, token size or ensemble axes do not fit the tokens, or the mask is not
            one truth value for each reader and token.

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> update = mesa.linear_attention(layer, tokens.context, tokens.query)
        >>> tuple(update.shape), float(update[..., :-1].abs().max())  # the inputs stay
        ((4, 1, 11), 0.0)
    """
    if mask is None and _matrix_is_cheaper(weights, context, readers):
        update: Tensor = readers @ fast_weights(weights, Tokens(context, readers)).mT
        return update
    scores = _scores(weights, context, readers)
    if mask is not None:
        scores = scores * _for_heads(mask, weights, context, readers)
    return _attended(weights, scores, context)


def _matrix_is_cheaper(weights: AttentionWeights, context: Tensor, readers: Tensor) -> bool:
    """Whether forming the matrix that the context writes takes fewer products than scoring every token for each reader.

    Both ways give the same numbers, but for their rounding. A short context of long tokens is better scored.
    """
    heads, token = weights.num_heads, weights.token_dim
    read, asking = context.shape[-2], readers.shape[-2]
    by_matrix = read * token**2 + 2 * heads * token**3 + asking * token**2
    by_scores = 2 * heads * asking * token * (token + read)
    return by_matrix <= by_scores


@typed
def softmax_attention(
    weights: AttentionWeights,
    context: Float[Tensor, "... task context token"],
    readers: Float[Tensor, "... task query token"],
    *,
    sink: float | Sequence[float] = 0.0,
    mask: Bool[Tensor, "query context"] | None = None,
) -> Float[Tensor, "*ensemble task query token"]:
    """What softmax attention adds to its readers: sum_h P_h sum_i a_hi v_hi, a softmax over the context.

        a_hi = exp(k_hi . q_h) / (s_h + sum_j exp(k_hj . q_h))

    The scores are not divided by sqrt(qk): such a factor is part of W_Q. A sink of weight s is what s extra context
    tokens with key 0 and value 0 would be: they take their share of the attention and give nothing for it.

    Args:
        weights: one layer; its ensemble axes and those of the tokens broadcast.
        context: the tokens that are read, shape (*ensemble, task, context, token).
        readers: the tokens that ask, shape (*ensemble, task, query, token).
        sink: s, one number >= 0 for all heads or one for each; 0 leaves plain softmax attention.
        mask: True where a reader may read a token, see `causal_mask`; everywhere if absent. What may not be read is
            left out of both sums.

    Returns:
        The update of each reader, shape (*ensemble, task, query, token); the readers themselves are not added.

    Raises:
        TypeError, ValueError: the weights' dtype, token size or ensemble axes do not fit the tokens; `sink` is no
            number >= 0, nor one for each head; the mask is not one truth value for each reader and token.

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> tuple(mesa.softmax_attention(layer, tokens.context, tokens.query).shape)
        (4, 1, 11)
    """
    return _attended(weights, _shares(weights, context, readers, sink, mask), context)


@typed
def attention_shares(
    weights: AttentionWeights,
    context: Float[Tensor, "... task context token"],
    readers: Float[Tensor, "... task query token"],
    *,
    sink: float | Sequence[float] = 0.0,
    mask: Bool[Tensor, "query context"] | None = None,
) -> Float[Tensor, "*ensemble task head query context"]:
    """The shares a_hi of one that `softmax_attention` gives to the tokens of the context, for every reader.

    Arguments and errors are those of `softmax_attention`. What a sink takes is what is missing to one.

    Returns:
        Shape (*ensemble, task, head, query, context).

    Example:
        >>> tokens = mesa.concatenated_tokens(batch)
        >>> shares = mesa.attention_shares(layer, tokens.context, tokens.query)
        >>> torch.allclose(shares.sum(-1), torch.ones(4, 1, 1, dtype=torch.float64))
        True
    """
    shares = _shares(weights, context, readers, sink, mask)
    by_head = shares.reshape(*shares.shape[:-2], readers.shape[-2], weights.num_heads, shares.shape[-1])
    return by_head.transpose(-3, -2)


def _scores(weights: AttentionWeights, context: Tensor, readers: Tensor) -> Tensor:
    """k_h . q_h for each reader and head, in this order, against each token: (*ensemble, task, query head, context)."""
    check_fit("weights", weights, context)
    check_fit("weights", weights, readers)
    task, query, token = readers.shape[-3:]
    # Few products of large matrices: the queries of all heads side by side, then (query, head) pairs as rows.
    to_queries = weights.w_kq.mT.transpose(-3, -2).flatten(-2)
    queries = readers.flatten(-3, -2) @ to_queries
    scores: Tensor = queries.reshape(*queries.shape[:-2], task, query * weights.num_heads, token) @ context.mT
    return scores


def _shares(
    weights: AttentionWeights, context: Tensor, readers: Tensor, sink: float | Sequence[float], mask: Tensor | None
) -> Tensor:
    """The softmax of `_scores`, with a sink's share taken out."""
    scores = _scores(weights, context, readers)
    if mask is not None:
        scores = scores.masked_fill(~_for_heads(mask, weights, context, readers), -torch.inf)
    sinks = _sink_of_each_head(weights, sink)
    if not bool((sinks > 0).any()):
        return scores.softmax(-1)
    extra = sinks.log().repeat(readers.shape[-2])[:, None].expand(*scores.shape[:-1], 1)
    return torch.cat([scores, extra], dim=-1).softmax(-1)[..., :-1]


def _attended(weights: AttentionWeights, shares: Tensor, context: Tensor) -> Tensor:
    """sum_h P_h W_V,h sum_i a_hi e_i for shares of the shape that `_scores` has."""
    attended = shares @ context
    task, rows, token = attended.shape[-3:]
    by_reader = attended.reshape(*attended.shape[:-3], task * rows // weights.num_heads, weights.num_heads * token)
    update: Tensor = by_reader @ weights.w_pv.mT.flatten(-3, -2)
    return update.reshape(*update.shape[:-2], task, rows // weights.num_heads, token)


def _for_heads(mask: Tensor, weights: AttentionWeights, context: Tensor, readers: Tensor) -> Tensor:
    """The mask with one row for each (reader, head)."""
    wanted = (readers.shape[-2], context.shape[-2])
    if mask.dtype != torch.bool or tuple(mask.shape) != wanted:
        raise ValueError(
            f"mask: expected truth values of shape {wanted}, got {mask.dtype} of shape {tuple(mask.shape)}"
        )
    return mask.repeat_interleave(weights.num_heads, dim=0)


def _sink_of_each_head(weights: AttentionWeights, sink: float | Sequence[float]) -> Float[Tensor, "head"]:
    given = list(sink) if isinstance(sink, (list, tuple)) else [sink] * weights.num_heads
    if len(given) != weights.num_heads:
        raise ValueError(f"sink: expected one number, or {weights.num_heads}, one a head, got {len(given)}")
    numbers = [non_negative_number("sink", number) for number in given]
    return torch.tensor(numbers, dtype=weights.w_k.dtype, device=weights.w_k.device)


@typed
def softmax_self_attention(weights: AttentionWeights, tokens: Tokens, *, sink: float | Sequence[float] = 0.0) -> Tokens:
    """One layer of softmax self-attention: e_j <- e_j + sum_h P_h sum_i softmax_i(k_i . q_j) v_i, queries too.

    Keys and values come from the context tokens only. The scores are not divided by sqrt(qk), as they are in most
    implementations (the paper's code among them): such a factor is part of W_Q.

    Args:
        weights: one layer; its ensemble axes and those of the tokens broadcast.
        tokens: context (*ensemble, task, context, token), query (*ensemble, task, query, token).
        sink: the weight of extra context tokens with key 0 and value 0, "+s" in the softmax's denominator: one number
            >= 0 for all heads or one for each; see `softmax_attention`.

    Returns:
        Tokens of the same shapes, with the weights' ensemble axes in front where the tokens had none.

    Raises:
        TypeError, ValueError: the weights' dtype, token size or ensemble axes do not fit the tokens; `sink` is no
            number >= 0, nor one for each head.

    Example:
        >>> layer = mesa.smoother_construction([2.0], [1.0], x_dim=10, y_dim=1, dtype=torch.float64)
        >>> tokens = mesa.softmax_self_attention(layer, mesa.concatenated_tokens(batch))
        >>> smoothed = mesa.kernel_smoother(batch, mesa.exponential_kernel(2.0))
        >>> torch.allclose(mesa.read_prediction(tokens, y_dim=1), smoothed)
        True
    """
    context, query = (
        readers + softmax_attention(weights, tokens.context, readers, sink=sink)
        for readers in (tokens.context, tokens.query)
    )
    return Tokens(context, query)


@typed
def canonicalize(
    weights: AttentionWeights, y_dim: int = 1, form: Literal["trace", "norm"] = "trace"
) -> AttentionWeights:
    """The same function with W_K = W_V = I and products of a fixed common scale.

    A layer depends on W_PV and W_KQ only up to W_PV -> c W_PV, W_KQ -> W_KQ / c. The canonical products are W_PV beta
    and W_KQ / beta, head by head, with one of two choices of beta:

    - "trace": the mean of the first token - y diagonal entries of W_KQ, so that its x-block has mean diagonal 1 (the
      paper's appendix A.3). The default, since the construction comes out as it is written. No such form exists where
      the trace vanishes, as at the construction's rank-one twin, and near there the products blow up.
    - "norm": the norm of W_KQ's x columns becomes sqrt(x), that of the construction, and the trace of W_PV's y block
      negative. It exists wherever a query is scored at all. Where that trace is zero, the x columns' entry of largest
      size becomes positive. Somewhere a sign must jump: (W_PV, W_KQ) and (-W_PV, -W_KQ) are the same layer, and a
      path leads from one to the other.

    Args:
        weights: one layer.
        y_dim: how many numbers of a token are its target slot, the last ones.
        form: "trace" or "norm".

    Returns:
        AttentionWeights of the same ensemble and head axes with w_k = w_v = I, so that w_q = w_kq and w_p = w_pv.

    Raises:
        TypeError, ValueError: `y_dim` is not a positive integer smaller than the token, `form` is unknown, or some
            head's beta is zero up to rounding, so that this normalisation does not exist.

    Example:
        >>> louder = mesa.gauge_transform(layer, torch.eye(11).double(), torch.eye(11).double(), scale=3.0)
        >>> torch.allclose(mesa.canonicalize(louder).w_kq, mesa.canonicalize(layer).w_kq)
        True
    """
    x_dim = weights.token_dim - positive_integer("y_dim", y_dim)
    if x_dim < 1:
        raise ValueError(f"y_dim: expected less than the token's {weights.token_dim} numbers, got {y_dim}")
    chosen = one_of("form", form, ("trace", "norm"))
    w_kq, w_pv = weights.w_kq, weights.w_pv
    beta = _mean_diagonal(w_kq, x_dim) if chosen == "trace" else _signed_norm(w_pv, w_kq, x_dim)
    scale = beta[..., None, None]
    identity = torch.eye(weights.token_dim, dtype=w_kq.dtype, device=w_kq.device).expand_as(w_kq)
    return AttentionWeights(w_k=identity, w_q=w_kq / scale, w_v=identity, w_p=w_pv * scale)


def _rounding(matrix: Tensor) -> Tensor:
    """What counts as zero beside the largest entry of a matrix."""
    return torch.finfo(matrix.dtype).eps * matrix.abs().amax((-2, -1))


def _mean_diagonal(w_kq: Tensor, x_dim: int) -> Tensor:
    diagonal = w_kq.diagonal(dim1=-2, dim2=-1)[..., :x_dim]
    beta = diagonal.mean(-1)
    if not bool((beta.abs() > _rounding(w_kq)).all()):  # so that NaN is refused as well
        raise ValueError("weights: expected a w_kq whose x-block has a non-zero trace in every head, got trace zero")
    return beta


def _signed_norm(w_pv: Tensor, w_kq: Tensor, x_dim: int) -> Tensor:
    scores = w_kq[..., :x_dim]
    size = scores.norm(dim=(-2, -1)) / x_dim**0.5
    if not bool((size > _rounding(w_kq)).all()):
        raise ValueError("weights: expected a w_kq with x columns other than zero in every head, got zero")
    written = w_pv[..., x_dim:, x_dim:].diagonal(dim1=-2, dim2=-1).sum(-1)
    entries = scores.flatten(-2)
    largest = entries.gather(-1, entries.abs().argmax(-1, keepdim=True)).squeeze(-1)
    sign = torch.where(written.abs() > _rounding(w_pv), -written, largest).sign()
    return torch.as_tensor(size * sign)


@typed
def interpolate(a: AttentionWeights, b: AttentionWeights, fraction: float, y_dim: int = 1) -> AttentionWeights:
    """(1 - fraction) a + fraction b in the space of canonical products (the paper's appendix A.3).

    The products, not the four factors, are averaged: the same function has many factors, and their average depends on
    which ones one happens to hold.

    Args:
        a: one layer.
        b: another, of the same token size and number of heads; ensemble axes broadcast.
        fraction: 0 gives `a`, 1 gives `b`; values outside [0, 1] extrapolate.
        y_dim: how many numbers of a token are its target slot.

    Returns:
        AttentionWeights with w_k = w_v = I.

    Raises:
        TypeError, ValueError: `fraction` is not finite, the layers do not fit, or one has no canonical form.

    Example:
        >>> flipped = mesa.AttentionWeights(-layer.w_k, -layer.w_q, layer.w_v, layer.w_p)  # the same function
        >>> halfway = mesa.FreeTransformer([mesa.interpolate(layer, flipped, 0.5)])
        >>> torch.allclose(halfway(batch), mesa.FreeTransformer([layer])(batch))
        True
    """
    share = finite_number("fraction", fraction)
    if a.w_k.shape[-3] != b.w_k.shape[-3] or a.token_dim != b.token_dim:
        raise ValueError(
            f"b: expected {a.num_heads} heads and a token size of {a.token_dim}, those of a, "
            f"got {b.num_heads} and {b.token_dim}"
        )
    same_kind("b", b.w_k, "a", a.w_k)
    broadcastable("b", b.w_k.shape[:-3], "a", a.w_k.shape[:-3])
    a, b = canonicalize(a, y_dim), canonicalize(b, y_dim)
    w_kq, w_pv = (1 - share) * a.w_q + share * b.w_q, (1 - share) * a.w_p + share * b.w_p
    return AttentionWeights(w_k=a.w_k.expand_as(w_kq), w_q=w_kq, w_v=a.w_v.expand_as(w_pv), w_p=w_pv)


@typed
def average_factors(a: AttentionWeights, b: AttentionWeights, fraction: float) -> AttentionWeights:
    """(1 - fraction) a + fraction b, each of the four factors by itself: what *not* to do, kept to show why.

    Raises:
        TypeError, ValueError: `fraction` is not finite, or the factors' shapes do not fit.

    Example:
        >>> flipped = mesa.AttentionWeights(-layer.w_k, -layer.w_q, layer.w_v, layer.w_p)  # the same function
        >>> float(mesa.average_factors(layer, flipped, 0.5).w_kq.abs().max())
        0.0
    """
    share = finite_number("fraction", fraction)
    same_kind("b", b.w_k, "a", a.w_k)
    broadcastable("b", b.w_k.shape[:-3], "a", a.w_k.shape[:-3])
    mixed = []
    for field in fields(AttentionWeights):
        one, other = getattr(a, field.name), getattr(b, field.name)
        if one.shape[-3:] != other.shape[-3:]:
            expected, got = tuple(one.shape[-3:]), tuple(other.shape[-3:])
            raise ValueError(f"b.{field.name}: expected a shape that ends in {expected}, as in a, got {got}")
        mixed.append((1 - share) * one + share * other)
    return AttentionWeights(*mixed)
