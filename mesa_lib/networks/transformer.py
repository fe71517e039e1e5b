"""Transformers: layers of attention weights, applied one after the other.

With linear attention the tokens move linearly, E_{l+1} = (I + M_l) E_l, and so does their second moment,
S_{l+1} = (I + M_l) S_l (I + M_l)^T. Hence a network's prediction is V x_q with *implicit weights* V that cost
O(layers token^3) a task once S is formed, whatever the context's length.
"""

from collections.abc import Sequence
from dataclasses import fields

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mesa_lib.learners import predict_linear
from mesa_lib.networks.attention import (
    AttentionWeights,
    check_fit,
    context_moment,
    linear_self_attention,
    moment_fast_weights,
)
from mesa_lib.networks.tokens import Tokens, concatenated_tokens
from mesa_lib.seeding import generators
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    finite_tensor,
    floating_dtype,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
)


def apply_layers(layers: Sequence[AttentionWeights], tokens: Tokens) -> Tokens:
    """Linear self-attention, layer after layer, on explicit tokens.

    Args:
        layers: the weights of each layer, the first one first.
        tokens: context (*ensemble, task, context, token), query (*ensemble, task, query, token).

    Returns:
        Tokens of the same shapes.

    Raises:
        TypeError, ValueError: a layer's dtype or token size is not that of the tokens.
    """
    for weights in layers:
        tokens = linear_self_attention(weights, tokens)
    return tokens


def moment_implicit_weights(
    layers: Sequence[AttentionWeights],
    moment: Float[Tensor, "... task token token"],
    query_map: Float[Tensor, "... token x"],
) -> Float[Tensor, "*ensemble task y x"]:
    """Implicit weights V of stacked linear attention, from the context's second moment alone.

    The query token is Q_0 x_q with Q_0 = [I; -W_0]. Each layer does Q <- (I + M) Q and S <- (I + M) S (I + M)^T with
    M = sum_h W_PV S W_KQ; the read-out is V = -Q_L, y rows. The last layer needs only the y rows of M.

    Args:
        layers: at least one.
        moment: S_0 = sum_i e_i e_i^T.
        query_map: Q_0; its axes broadcast against those of `moment`.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: no layer, or a layer whose dtype, token size or ensemble axes do not fit the moment's.
    """
    if not layers:
        raise ValueError("layers: expected at least one AttentionWeights, got none")
    for index, weights in enumerate(layers):
        check_fit(f"layers[{index}]", weights, moment)
    x_dim = query_map.shape[-1]
    identity = torch.eye(moment.shape[-1], dtype=moment.dtype, device=moment.device)
    for weights in layers[:-1]:
        move = identity + moment_fast_weights(weights, moment)
        query_map = move @ query_map
        moment = move @ moment @ move.mT
    return -query_map[..., x_dim:, :] - _y_update(layers[-1], moment, query_map)


def _y_update(weights: AttentionWeights, moment: Tensor, query_map: Tensor) -> Tensor:
    """The y rows of M Q: values that reach the y-slot times scores of the query, without forming M."""
    x_dim = query_map.shape[-1]
    to_y = (weights.w_p[..., x_dim:, :] @ weights.w_v).unsqueeze(-4)  # (*ensemble, 1, head, y, token)
    scored = weights.w_kq.unsqueeze(-4) @ query_map.unsqueeze(-3)  # (*ensemble, task or 1, head, token, x)
    return (to_y @ moment.unsqueeze(-3) @ scored).sum(-3)


class Transformer(nn.Module):
    """A stack of linear self-attention layers as an in-context learner; subclasses say where the layers come from.

    Calling it on a TaskBatch gives predictions of shape (*ensemble, task, query, y). It is linear in the query, with
    `implicit_weights`.

    Args:
        w_0: the linear model that the query token starts from, (y, x): the token is (x_q, -W_0 x_q). Without it the
            token is (x_q, 0).

    Raises:
        TypeError, ValueError: `w_0` is not one finite floating-point matrix.
    """

    w_0: Float[Tensor, "y x"] | None

    def __init__(self, w_0: Float[Tensor, "y x"] | None = None) -> None:
        super().__init__()
        if w_0 is not None:
            finite_tensor("w_0", w_0, min_dims=2)
            if w_0.dim() != 2:
                raise ValueError(f"w_0: expected one matrix (y, x), got shape {tuple(w_0.shape)}")
        self.register_buffer("w_0", w_0)

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each layer, the first one first."""
        raise NotImplementedError

    def implicit_weights(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
        """V with prediction = V x_q, computed on second moments.

        Returns:
            Shape (*ensemble, task, y, x); the ensemble axes are the weights' where the batch has none.

        Raises:
            TypeError, ValueError: the network's dtype, token size or ensemble axes do not fit the batch.
        """
        context = torch.cat([batch.context_x, batch.context_y], dim=-1)
        return moment_implicit_weights(self.layers(), context_moment(context), self._query_map(batch))

    def forward(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predictions V x_q, shape (*ensemble, task, query, y)."""
        return predict_linear(self.implicit_weights(batch), batch)

    def tokens(self, batch: TaskBatch) -> Tokens:
        """The tokens that enter the first layer."""
        return concatenated_tokens(batch, self.w_0)

    def _query_map(self, batch: TaskBatch) -> Tensor:
        identity = torch.eye(batch.x_dim, dtype=batch.context_x.dtype, device=batch.context_x.device)
        if self.w_0 is None:
            return torch.cat([identity, identity.new_zeros(batch.y_dim, batch.x_dim)])
        trailing_shape("w_0", self.w_0, (batch.y_dim, batch.x_dim))
        same_kind("w_0", self.w_0, "the batch", batch.context_x)
        return torch.cat([identity, -self.w_0])


class FreeTransformer(Transformer):
    """A transformer whose every weight is a parameter: randomly started, constructed by hand, or trained.

    Args:
        layers: the weights of each layer; they are copied.
        w_0: see `Transformer`.

    Raises:
        TypeError, ValueError: no layer, or layers of different token size or ensemble axes.
    """

    def __init__(self, layers: Sequence[AttentionWeights], w_0: Float[Tensor, "y x"] | None = None) -> None:
        super().__init__(w_0)
        stack = list(layers)
        if not stack:
            raise ValueError("layers: expected at least one AttentionWeights, got none")
        for index, weights in enumerate(stack):
            if not isinstance(weights, AttentionWeights):
                raise TypeError(f"layers[{index}]: expected AttentionWeights, got {type(weights).__name__}")
            same_kind(f"layers[{index}]", weights.w_k, "layers[0]", stack[0].w_k)
            if weights.token_dim != stack[0].token_dim or weights.w_k.shape[:-3] != stack[0].w_k.shape[:-3]:
                raise ValueError(
                    f"layers[{index}]: expected the token size and ensemble axes of layers[0], "
                    f"{stack[0].token_dim} and {tuple(stack[0].w_k.shape[:-3])}, got {weights.token_dim} and "
                    f"{tuple(weights.w_k.shape[:-3])}"
                )
        for index, weights in enumerate(stack):
            for field in fields(weights):
                parameter = nn.Parameter(getattr(weights, field.name).detach().clone())
                self.register_parameter(f"{field.name}_{index}", parameter)
        self.num_layers = len(stack)

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each layer; gradients flow into the parameters."""
        names = [field.name for field in fields(AttentionWeights)]
        return [
            AttentionWeights(*(getattr(self, f"{name}_{index}") for name in names)) for index in range(self.num_layers)
        ]


def random_weights(
    x_dim: int,
    y_dim: int,
    seeds: Sequence[int],
    num_heads: int = 1,
    scale: float = 0.05,
    dtype: torch.dtype = torch.float32,
) -> AttentionWeights:
    """A random start for an ensemble: every entry of the four factors N(0, scale^2), one stream per seed.

    The paper's code starts one layer at a standard deviation of sqrt(0.002 / 11) = 0.0135. The default is larger
    because the start's only role here is to break the tie at zero, and a small one spends its first steps growing.

    Args:
        x_dim: input dimensions d.
        y_dim: target dimensions; tokens have x_dim + y_dim numbers, and so have keys, queries and values.
        seeds: one per ensemble member.
        num_heads: heads of the layer.
        scale: standard deviation of an entry.
        dtype: a floating-point dtype.

    Returns:
        AttentionWeights with factors of shape (ensemble, head, token, token).

    Raises:
        TypeError, ValueError: a size is not a positive integer, `scale` is not positive, no seeds, repeated seeds, a
            `dtype` that is not floating-point.
    """
    token_dim = positive_integer("x_dim", x_dim) + positive_integer("y_dim", y_dim)
    shape = (4, positive_integer("num_heads", num_heads), token_dim, token_dim)
    std = positive_number("scale", scale)
    floating_dtype("dtype", dtype)
    streams = generators(seeds, "init")
    drawn = torch.stack([std * torch.randn(*shape, generator=stream, dtype=dtype) for stream in streams], dim=1)
    return AttentionWeights(*drawn)
