"""Transformer blocks: an MLP for every token, then linear self-attention on what it made.

`TokenMLP` is the block of the paper's Proposition 2: its MLP sees x alone, and its tokens are (m(x), y - W_0 m(x)).
`ResidualMLPBlock` is what the paper trains for its Figure 4: an embedding, a residual MLP that sees x and y, attention;
with a layer norm, if wanted.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mesa_lib.features import (
    MLP,
    Activation,
    BatchFeatures,
    apply_start,
    batch_features,
    checked_start,
    features_once,
    random_mlp,
    sum_of_products,
)
from mesa_lib.networks.attention import AttentionWeights, context_moment, moment_fast_weights
from mesa_lib.networks.constructions import gd_construction
from mesa_lib.networks.tokens import Tokens
from mesa_lib.networks.transformer import FreeTransformer, random_weights
from mesa_lib.seeding import generators
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_tensor, positive_integer, same_kind, typed


class TokenMLP(nn.Module):
    """An MLP and linear self-attention on its features: the block of Proposition 2, or a stack of its attention layers.

    Every token is made by itself, a context token as (m(x_i), y_i - W_0 m(x_i)) and a query token as (m(x_q),
    -W_0 m(x_q)): a query is a token whose target is zero. Both slots start from one linear model W_0 on the features,
    which is learned with the rest. The prediction is minus the y-slot of a query token that leaves the last layer, and
    linear in its features: V m(x_q), with `feature_weights` V.

    With `gd_construction` on the features for each of L layers this is L steps of gradient descent from W_0 on
    1/(2N) sum_i |W m(x_i) - y_i|^2.

    Args:
        features: the MLP; it is held, not copied.
        layers: the attention layers, the first one first, on tokens of size feature + y; they are copied.
        start: W_0, shape (*ensemble, y, feature), which is copied; zeros for one target by default.

    Raises:
        TypeError, ValueError: the layers do not stack (see `FreeTransformer`), their token is not the features' width
            plus the number of targets, or dtypes or ensemble axes disagree.

    Example:
        >>> mlp = mesa.random_mlp(x_dim=1, width=8, seeds=[0]).member(0)
        >>> network = mesa.TokenMLP(mlp, [mesa.gd_construction(eta=0.5, x_dim=8, y_dim=1, num_context=10)])
        >>> sine = mesa.SineTasks().sample(3, mesa.generator(0, "validation tasks"))
        >>> tuple(network(sine).shape)
        (3, 1, 1)
    """

    def __init__(
        self,
        features: MLP,
        layers: Sequence[AttentionWeights],
        start: Float[Tensor, "*ensemble y feature"] | None = None,
    ) -> None:
        super().__init__()
        first = checked_start(features, start)
        self.features = features
        self.attention = FreeTransformer(layers)
        self.start = nn.Parameter(first)
        weights = self.attention.layers()[0]
        same_kind("layers[0]", weights.w_k, "features", first)
        if weights.token_dim != sum(first.shape[-2:]):
            raise ValueError(
                f"layers[0]: expected a token size of {features.width} features + {first.shape[-2]} targets, "
                f"got {weights.token_dim}"
            )
        if weights.w_k.shape[:-3] != first.shape[:-2]:
            raise ValueError(
                f"layers[0]: expected the ensemble axes {tuple(first.shape[:-2])}, those of features, "
                f"got {tuple(weights.w_k.shape[:-3])}"
            )

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each attention layer; gradients flow into the parameters."""
        return self.attention.layers()

    def tokens(self, batch: TaskBatch) -> Tokens:
        """The tokens that enter the first layer, (m(x), y - W_0 m(x)) with y = 0 for a query."""
        seen = batch_features(self.features, batch)
        context = self._context_tokens(seen, batch)
        query = seen.query.expand(*context.shape[:-2], *seen.query.shape[-2:])
        return Tokens(context, torch.cat([query, -apply_start(self.start, query)], dim=-1))

    def _context_tokens(self, seen: BatchFeatures, batch: TaskBatch) -> Tensor:
        return torch.cat([seen.context, batch.context_y - apply_start(self.start, seen.context)], dim=-1)

    def feature_weights(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task y feature"]:
        """V with prediction V m(x_q), computed on second moments. Shape (*ensemble, task, y, feature).

        Raises:
            TypeError, ValueError: the batch has another dtype, other dimensions or other ensemble axes.
        """
        return self._feature_weights(batch_features(self.features, batch), batch)

    def _feature_weights(self, seen: BatchFeatures, batch: TaskBatch) -> Tensor:
        if batch.y_dim != self.start.shape[-2]:
            raise ValueError(f"batch: expected {self.start.shape[-2]} targets, got {batch.y_dim}")
        identity = torch.eye(self.features.width, dtype=self.start.dtype, device=self.start.device)
        members = self.start.shape[:-2]
        query_map = torch.cat([identity.expand(*members, -1, -1), -self.start], dim=-2).unsqueeze(-3)
        context = self._context_tokens(seen, batch)
        *inner, last = self.layers()
        for weights in inner:
            written = moment_fast_weights(weights, context_moment(context))
            query_map = query_map + written @ query_map
            context = context + context @ written.mT
        return -query_map[..., self.features.width :, :] - _y_update(last, context, query_map, batch.y_dim)

    def forward(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predictions V m(x_q), shape (*ensemble, task, query, y)."""
        seen = batch_features(self.features, batch)
        return seen.answers(self._feature_weights(seen, batch))

    def start_function(self, x: Float[Tensor, "... x"]) -> Float[Tensor, "... y"]:
        """f_0(x) = W_0 m(x), before any layer; for an ensemble x needs a task and a point axis, see `MLP`."""
        return apply_start(self.start, self.features(x))

    def member(self, index: int) -> "TokenMLP":
        """One block of an ensemble, along the first ensemble axis; a copy.

        Raises:
            ValueError: there is no ensemble axis.
            IndexError: there is no such member.
        """
        layers = [weights.members(index) for weights in self.layers()]
        return TokenMLP(self.features.member(index), layers, self.start[index])


class ResidualMLPBlock(nn.Module):
    """A transformer block as the paper trains it on sine waves: embedding, residual MLP, linear self-attention.

        e = E (x, y),    e <- e + MLP(e),    e_q <- e_q + sum_h P_h sum_i v_i (k_i . q_q)

    with y = 0 for a query. The MLP works on every token by itself and sees x and y; so, through it, keys may see y. The
    prediction is minus the last y numbers of a query token. With `normalise`, attention reads layer-normalised tokens,
    LN(e) = (e - mean) / standard deviation over a token's numbers, without the gain that the layer's matrices could
    hold.

    Args:
        embedding: E, shape (*ensemble, token, x + y); it is copied.
        mlp: from token to token numbers; it is held, not copied.
        layer: the attention layer, on tokens of size token; it is copied.
        normalise: whether attention reads layer-normalised tokens.

    Raises:
        TypeError, ValueError: sizes, dtypes or ensemble axes that do not fit together, a `normalise` that is no bool.

    Example:
        >>> block = mesa.random_residual_block(token_dim=20, seeds=[0])
        >>> sum(parameter.numel() for parameter in block.parameters()) > 0
        True
    """

    def __init__(
        self, embedding: Float[Tensor, "*ensemble token _"], mlp: MLP, layer: AttentionWeights, normalise: bool = False
    ) -> None:
        super().__init__()
        finite_tensor("embedding", embedding, min_dims=2)
        token, members = embedding.shape[-2], embedding.shape[:-2]
        same_kind("mlp", mlp.weights[0], "embedding", embedding)
        same_kind("layer", layer.w_k, "embedding", embedding)
        for name, size in (("mlp: inputs", mlp.x_dim), ("mlp: outputs", mlp.width), ("layer: size", layer.token_dim)):
            if size != token:
                raise ValueError(f"{name}: expected {token}, the numbers of an embedded token, got {size}")
        for name, axes in (("mlp", mlp.weights[0].shape[:-2]), ("layer", layer.w_k.shape[:-3])):
            if axes != members:
                raise ValueError(f"{name}: expected the ensemble axes {tuple(members)}, got {tuple(axes)}")
        if not isinstance(normalise, bool):
            raise TypeError(f"normalise: expected True or False, got {normalise!r}")
        self.embedding = nn.Parameter(embedding.detach().clone())
        self.mlp = mlp
        self.attention = FreeTransformer([layer])
        self.normalise = normalise

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of the attention layer, the only one; gradients flow into the parameters."""
        return self.attention.layers()

    def _embedded(self, pairs: Tensor) -> Tensor:
        token = apply_start(self.embedding, pairs)
        moved: Tensor = token + self.mlp(token)
        return moved

    def _read(self, tokens: Tensor) -> Tensor:
        return nn.functional.layer_norm(tokens, tokens.shape[-1:]) if self.normalise else tokens

    def forward(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predictions, shape (*ensemble, task, query, y)."""
        size = batch.y_dim
        if batch.x_dim + size != self.embedding.shape[-1]:
            raise ValueError(
                f"batch: expected inputs and targets of {self.embedding.shape[-1]} numbers, got {batch.x_dim + size}"
            )
        context = self._read(self._embedded(torch.cat([batch.context_x, batch.context_y], dim=-1)))
        query = features_once(lambda x: self._embedded(nn.functional.pad(x, (0, size))), batch.query_x)
        seen = BatchFeatures(context, self._read(query))
        token = self.embedding.shape[-2]
        everything = torch.eye(token, dtype=context.dtype, device=context.device).expand(*context.shape[:-3], 1, -1, -1)
        return -query[..., -size:] - seen.answers(_y_update(self.layers()[0], context, everything, size))


@typed
def residual_construction(
    features: MLP, eta: float, num_context: int, start: Float[Tensor, "y feature"] | None = None
) -> ResidualMLPBlock:
    """Proposition 2 inside a residual block whose MLP sees x and y: one gradient step on the features, exactly.

    A token is (x, m(x), y - W_0 m(x)): the embedding leaves room for the features, the MLP has zero weights on y, and
    writes m(x) into the room and -W_0 m(x) into the y-slot. The attention layer is that of `gd_construction`, on the
    features' slots. The prediction is that of one step of size eta from W_0 on 1/(2N) sum_i |W m(x_i) - y_i|^2.

    Args:
        features: one MLP, without ensemble axes.
        eta: step size on the half-MSE.
        num_context: N.
        start: W_0, shape (y, feature); zeros for one target by default.

    Returns:
        A ResidualMLPBlock on tokens of x + feature + y numbers.

    Raises:
        TypeError, ValueError: `features` is an ensemble, `eta` is not finite, `num_context` is not a positive integer,
            or `start` does not fit the features.

    Example:
        >>> mlp = mesa.random_mlp(x_dim=1, width=8, seeds=[0]).member(0)
        >>> type(mesa.residual_construction(mlp, eta=0.5, num_context=10)).__name__
        'ResidualMLPBlock'
    """
    w_0 = checked_start(features, start)
    if w_0.dim() != 2:
        raise ValueError(f"features: expected one MLP without ensemble axes, got axes {tuple(w_0.shape[:-2])}")
    d, width, targets = features.x_dim, features.width, len(w_0)
    token = d + width + targets
    embedding = w_0.new_zeros(token, d + targets)
    embedding[:d, :d] = torch.eye(d, dtype=w_0.dtype)
    embedding[d + width :, d:] = torch.eye(targets, dtype=w_0.dtype)
    weights, biases = [w.detach() for w in features.weights], [b.detach() for b in features.biases]
    weights[0] = nn.functional.pad(weights[0], (0, width + targets))  # of a token it sees x alone
    writes = torch.cat([torch.zeros(d, width, dtype=w_0.dtype), torch.eye(width, dtype=w_0.dtype), -w_0])
    weights[-1], biases[-1] = writes @ weights[-1], writes @ biases[-1]
    mlp = MLP(weights, biases, features.activation, features.input_scale)
    step = gd_construction(eta, width, targets, num_context, dtype=w_0.dtype)
    # The features' numbers of a token, and its targets, stand after x.
    factors = [nn.functional.pad(w, (d, 0, d, 0)) for w in (step.w_k, step.w_q, step.w_v, step.w_p)]
    return ResidualMLPBlock(embedding, mlp, AttentionWeights(*factors))


def random_residual_block(
    token_dim: int,
    seeds: Sequence[int],
    x_dim: int = 1,
    y_dim: int = 1,
    hidden: int = 160,
    activation: Activation = "gelu",
    input_scale: float = 1.0,
    normalise: bool = False,
    dtype: torch.dtype = torch.float32,
) -> ResidualMLPBlock:
    """A random start for an ensemble of `ResidualMLPBlock`; the paper's sizes are 40 numbers a token and 160 hidden.

    The embedding's entries are N(0, 1/(x + y)), the MLP is that of `random_mlp`, and the layer that of `random_weights`
    with a standard deviation of 0.1.

    Args:
        token_dim: numbers of a token.
        seeds: one per ensemble member.
        x_dim: input dimensions d.
        y_dim: target dimensions.
        hidden: units of the MLP.
        activation: of the MLP.
        input_scale: the MLP divides tokens by it; the half-width of the inputs is a good choice.
        normalise: see `ResidualMLPBlock`.
        dtype: a floating-point dtype.

    Raises:
        TypeError, ValueError: see `random_mlp` and `random_weights`.

    Example:
        >>> block = mesa.random_residual_block(token_dim=20, seeds=[0])
        >>> sine = mesa.SineTasks().sample(3, mesa.generator(0, "validation tasks"))
        >>> tuple(block(sine).shape)
        (1, 3, 1, 1)
    """
    size, inputs = positive_integer("token_dim", token_dim), positive_integer("x_dim", x_dim)
    targets = positive_integer("y_dim", y_dim)
    if size <= targets:
        raise ValueError(f"token_dim: expected more than {targets}, the number of targets, got {size}")
    mlp = random_mlp(size, size, seeds, (hidden,), activation, input_scale, dtype=dtype)
    layer = random_weights(size - targets, targets, seeds, scale=0.1, dtype=dtype)
    streams = generators(seeds, "embedding")
    pairs = inputs + targets
    embedding = torch.stack([torch.randn(size, pairs, generator=stream, dtype=dtype) for stream in streams])
    return ResidualMLPBlock(embedding / pairs**0.5, mlp, layer, normalise)


def _y_update(weights: AttentionWeights, context: Tensor, query_map: Tensor, targets: int) -> Tensor:
    """The y rows of what a layer adds to the query map, in an order made for few targets: no second moment is formed.

    sum_h (P_h W_V,h)_y (sum_i e_i e_i^T) W_KQ,h Q: first the y-slot that every token would write, then its keys.
    """
    updates = []
    for head in range(weights.num_heads):
        values = apply_start(weights.w_p[..., head, -targets:, :] @ weights.w_v[..., head, :, :], context)
        written = sum_of_products(values, context)  # (*ensemble, task, y, token)
        scores = weights.w_k[..., head, :, :].mT @ weights.w_q[..., head, :, :]
        if query_map.shape[-3] == 1:
            updates.append(apply_start((scores @ query_map.squeeze(-3)).mT, written))
        else:
            updates.append(written @ (scores.unsqueeze(-3) @ query_map))
    return torch.stack(updates).sum(0)
