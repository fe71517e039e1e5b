"""Does a layer copy? Networks whose first layer may copy, what it copies, and what they lose without it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import Attention, AttentionWeights
from mesa_lib.networks.tokens import Tokens
from mesa_lib.networks.transformer import TokenTransformer
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import typed


class PositionScored(TokenTransformer):
    """A token transformer whose first layer may score by some entries of the tokens only: by the codes of their places.

    The other columns of its W_K and W_Q are masked: they stay what they are, and nobody sees them. What such a layer
    moves is the same in every task, whatever the numbers in it.

    Args:
        layers: the weights of each layer; they are copied.
        attentions: the kind of attention of each layer.
        tokens: makes the tokens that enter the first layer.
        scored: the entries of a token that the first layer's scores may depend on, as a slice.

    Raises:
        TypeError, ValueError: see `TokenTransformer`; or the slice is empty.

    Example:
        >>> issubclass(mesa.PositionScored, mesa.TokenTransformer)
        True
    """

    def __init__(
        self,
        layers: Sequence[AttentionWeights],
        attentions: Sequence[Attention],
        tokens: Callable[[TaskBatch], Tokens],
        scored: slice,
    ) -> None:
        super().__init__(layers, attentions, tokens)
        size = layers[0].token_dim
        if not range(size)[scored]:
            raise ValueError(f"scored: expected some of the {size} entries of a token, got {scored}")
        self.scored = scored

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each layer as they work, masked; gradients flow into what is not masked."""
        first, *rest = super().layers()
        seen = torch.zeros(first.token_dim, dtype=first.w_k.dtype, device=first.w_k.device)
        seen[self.scored] = 1
        return [replace(first, w_k=first.w_k * seen, w_q=first.w_q * seen), *rest]


@dataclass(frozen=True, eq=False)
class CopyingSignal:
    """How much the first layer's update of a token depends on the tokens around it; fields have shape (*ensemble).

    Each is a mean, over tasks and pairs of tokens, of the Frobenius norm of d update_j / d (x numbers of token k).
    The update is what attention adds: the residual connection would put an identity, of norm sqrt(d), into `own`.

    Attributes:
        own: k = j.
        next: j an input x_i, k its target y_i, the token behind it.
        previous: j a target y_i, k its input x_i, the token in front of it.
        other: j and k at least two places apart. (Neighbours from different pairs, y_i and x_{i+1}, count nowhere.)

    Example:
        >>> zero, one = torch.zeros(1), torch.ones(1)
        >>> signal = mesa.CopyingSignal(own=zero, next=one, previous=zero, other=zero)
        >>> float(signal.next)
        1.0
    """

    own: Float[Tensor, "*ensemble"]
    next: Float[Tensor, "*ensemble"]
    previous: Float[Tensor, "*ensemble"]
    other: Float[Tensor, "*ensemble"]


@typed
def copying_signal(network: TokenTransformer, batch: TaskBatch) -> CopyingSignal:
    """The derivative statistic of the paper's Figure 5, for both directions of copying.

    It differs from the figure's in three ways: the identity of the residual connection is left out; both directions are
    measured; `other` does not count the neighbours. (The figure shows "own" with the identity, the next token only, and
    in the released code the derivative of the sum of all outputs, averaged over tasks before its norm is taken, and
    "other" with the next token in it.)

    Args:
        network: on `interleaved_tokens`; its first layer is looked at.
        batch: tasks without ensemble axes; a handful will do.

    Returns:
        A CopyingSignal.

    Raises:
        ValueError: the tokens are not an even number, two for each example.

    Example:
        >>> codes = mesa.one_hot_codes(21, dtype=torch.float64)
        >>> copy, step = mesa.pointing_construction(codes, eta=1.0, x_dim=10, y_dim=1)
        >>> tokens = lambda batch: mesa.interleaved_tokens(batch, codes)
        >>> network = mesa.TokenTransformer([copy, step], [mesa.linear_attention] * 2, tokens)
        >>> tuple(mesa.copying_signal(network, batch).next.shape)
        ()
    """
    weights, attention = network.layers()[0].detach(), network.attentions[0]
    context = network.tokens(batch).context
    places = context.shape[-2]
    if places != 2 * batch.num_context:
        raise ValueError(f"network: expected two tokens for each of {batch.num_context} examples, got {places}")
    ensemble = weights.w_k.shape[: weights.w_k.dim() - 3]
    context = context.expand(*ensemble, *context.shape[-3:]).detach().clone().requires_grad_()
    update = attention(weights, context, context)
    # One reader after the other, which keeps the memory small.
    readers = [_slope_norms(output, context, batch.x_dim) for output in update.unbind(-2)]
    mean = torch.stack(readers, dim=-2).mean(-3)
    place = torch.arange(places)
    inputs, targets = place[::2], place[1::2]
    apart = (place[:, None] - place).abs() >= 2
    return CopyingSignal(
        own=mean.diagonal(dim1=-2, dim2=-1).mean(-1),
        next=mean[..., inputs, targets].mean(-1),
        previous=mean[..., targets, inputs].mean(-1),
        other=mean[..., apart].mean(-1),
    )


def _slope_norms(output: Tensor, context: Tensor, x_dim: int) -> Tensor:
    """|d output / d (x numbers of token k)| for every token k, (*ensemble, task, context), from outputs of one token.

    Tasks and members do not see each other, so the derivatives of a sum over them are those of each.
    """
    token = output.shape[-1]
    units = torch.eye(token, dtype=output.dtype).view(token, *[1] * (output.dim() - 1), token).expand(-1, *output.shape)
    (slopes,) = torch.autograd.grad(output, context, units, retain_graph=True, is_grads_batched=True)
    norms: Tensor = slopes[..., :x_dim].square().sum((0, -1)).sqrt()
    return norms


@typed
def scale_first_update(
    network: TokenTransformer,
    context: float | Float[Tensor, "token"] = 1.0,
    query: float | Float[Tensor, "token"] = 1.0,
) -> TokenTransformer:
    """The same network with its first layer's update scaled, entry by entry, for the context and for the queries.

    A knock-out is a factor of zero: ``query=0.0`` leaves the queries as they came, ``context=0.0`` the context.

    Args:
        network: at least two layers.
        context: a factor for every entry of a context token's update, one number or one for each entry.
        query: the same for a query token.

    Returns:
        A TokenTransformer of one layer less; its tokens have been through the first.

    Raises:
        TypeError, ValueError: the network has one layer, or the factors are no numbers for a token's entries.

    Example:
        >>> network = mesa.TokenTransformer([layer, layer], [mesa.linear_attention, mesa.linear_attention])
        >>> silent = mesa.scale_first_update(network, context=0.0, query=0.0)
        >>> torch.allclose(silent(batch), mesa.gradient_descent(batch, eta=1.0))  # the second layer's step is left
        True
    """
    weights, attention = network.layers()[0].detach(), network.attentions[0]
    if network.num_layers < 2:
        raise ValueError("network: expected at least two layers, got one")
    factors = [_factors("context", context, weights), _factors("query", query, weights)]

    def moved(batch: TaskBatch) -> Tokens:
        tokens = network.tokens(batch)
        pairs = zip((tokens.context, tokens.query), factors, strict=True)
        return Tokens(*(reader + factor * attention(weights, tokens.context, reader) for reader, factor in pairs))

    return TokenTransformer(network.layers()[1:], network.attentions[1:], moved, network.read)


def _factors(name: str, value: float | Tensor, weights: AttentionWeights) -> Tensor:
    given = torch.as_tensor(value, dtype=weights.w_k.dtype)
    if given.dim() > 1 or (given.dim() == 1 and len(given) != weights.token_dim):
        raise ValueError(f"{name}: expected one number or {weights.token_dim}, got shape {tuple(given.shape)}")
    return given
