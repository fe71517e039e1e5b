"""A decoder of the Llama family, as a function of its weights: enough of it to watch its heads read.

Every block adds two updates to the residual stream, each of a normalised copy of it,

    e_j <- e_j + sum_h P_h sum_{i <= j} softmax_i(k_i . q_j / sqrt(qk)) v_i
    e_j <- e_j + W_down (silu(W_gate n(e_j)) * (W_up n(e_j)))

with k_i = R_i W_K n(e_i), q_j = R_j W_Q n(e_j), v_i = W_V n(e_i) and n(e) = gain * e / rms(e). R_t turns the pairs
(0, 1), (2, 3), ... of a key or a query by t times an angle of their own (Su et al., 2021): so scores know of positions
only how far two of them are apart.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.validation import floating_tensor, non_negative_integer, positive_number, trailing_shape, typed


@typed
def rotate_pairs(
    vectors: Float[Tensor, "... context qk"], base: float, start: int = 0
) -> Float[Tensor, "... context qk"]:
    """Turn the pair (2i, 2i + 1) of the vector at position t by the angle t base^(-2i / qk): rotary positions.

    The product of a turned key and a turned query depends on their positions through the difference alone.

    Args:
        vectors: keys or queries, one a position, of an even size; shape (..., context, qk).
        base: what the angles shrink by from the first pair to the last.
        start: the position of the first vector.

    Returns:
        The same shape.

    Raises:
        TypeError, ValueError: `vectors` are not floating-point with an even size, `base` is not positive, or `start` no
            integer >= 0.

    Example:
        >>> keys = torch.ones(3, 2)
        >>> turned = mesa.rotate_pairs(keys, base=1e4)
        >>> torch.allclose(turned[1] @ turned[0], turned[2] @ turned[1])
        True
    """
    floating_tensor("vectors", vectors, min_dims=2)
    non_negative_integer("start", start)
    length, size = vectors.shape[-2:]
    if size % 2:
        raise ValueError(f"vectors: expected an even number of entries, got {size}")
    positions, pairs = torch.arange(start, start + length).double(), torch.arange(0, size, 2).double()
    angles = positions[:, None] * positive_number("base", base) ** (-pairs / size)
    cosine, sine = angles.cos().to(vectors), angles.sin().to(vectors)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)


@dataclass(frozen=True, eq=False)
class HeadReading:
    """What the heads of one layer compare and read in some prompts.

    Shapes:
        queries, keys: (task, head, context, qk), turned by their positions, the queries divided by sqrt(qk)
        values: (task, head, context, v)

    Raises:
        TypeError, ValueError: they are not three tensors whose shapes fit together.

    Example:
        >>> reading = mesa.HeadReading(torch.zeros(1, 1, 4, 2), torch.zeros(1, 1, 4, 2), torch.ones(1, 1, 4, 3))
        >>> reading.shares()[0, 0, 3]
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    queries: Float[Tensor, "task head context qk"]
    keys: Float[Tensor, "task head context qk"]
    values: Float[Tensor, "task head context v"]

    def __post_init__(self) -> None:
        shape = floating_tensor("HeadReading.queries", self.queries, min_dims=4).shape
        wanted = {"keys": shape, "values": (*shape[:-1], self.values.shape[-1])}
        for name, expected in wanted.items():
            trailing_shape(f"HeadReading.{name}", getattr(self, name), expected)

    def shares(self) -> Float[Tensor, "task head context context"]:
        """The softmax of the scores, over each position and those before it; rows are readers."""
        scores = self.queries @ self.keys.mT
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1)

    def double(self) -> "HeadReading":
        """The same numbers in float64."""
        return HeadReading(self.queries.double(), self.keys.double(), self.values.double())


@dataclass(frozen=True, eq=False)
class AttentionSplit:
    """What the last position of a prompt reads, split at a set of tokens: whole = mass * chosen + (1 - mass) * rest.

    Shapes:
        whole, chosen, rest: (task, head, v)
        mass: (task, head)

    Attributes:
        whole: the mean of all values, weighted by the head's shares.
        mass: the share of the chosen tokens together.
        chosen: the mean over the chosen tokens, had the softmax seen only these.
        rest: the mean over the other tokens, had it seen only those.

    Example:
        >>> reading = mesa.HeadReading(torch.zeros(1, 1, 4, 2), torch.zeros(1, 1, 4, 2), torch.ones(1, 1, 4, 3))
        >>> mesa.split_attention(reading, torch.tensor([True, False, False, False])).rest
        tensor([[[1., 1., 1.]]])
    """

    whole: Float[Tensor, "task head v"]
    mass: Float[Tensor, "task head"]
    chosen: Float[Tensor, "task head v"]
    rest: Float[Tensor, "task head v"]


@typed
def split_attention(reading: HeadReading, chosen: Bool[Tensor, "context"]) -> AttentionSplit:
    """Softmax attention over all tokens is a convex combination of attention over some and attention over the others.

        F(all) = m F(chosen) + (1 - m) F(rest),    m = the chosen tokens' share

    In linear attention the two parts would be added, each as it is (Dai et al., 2023).

    Args:
        reading: queries, keys and values of a layer; the last position asks.
        chosen: True for the chosen tokens; some, and not all.

    Returns:
        AttentionSplit, its four parts computed each by a softmax of its own.

    Raises:
        TypeError, ValueError: `chosen` is not one truth value for each token, or all are alike.

    Example:
        >>> reading = mesa.HeadReading(torch.zeros(1, 1, 4, 2), torch.zeros(1, 1, 4, 2), torch.ones(1, 1, 4, 3))
        >>> mesa.split_attention(reading, torch.tensor([True, False, False, False])).mass
        tensor([[0.2500]])
    """
    length = reading.keys.shape[-2]
    if chosen.dtype != torch.bool or tuple(chosen.shape) != (length,):
        raise ValueError(f"chosen: expected {length} truth values, got {chosen.dtype} of shape {tuple(chosen.shape)}")
    if bool(chosen.all()) or not bool(chosen.any()):
        raise ValueError("chosen: expected some of the tokens, and not all of them")
    scores = (reading.queries[..., -1:, :] @ reading.keys.mT).squeeze(-2)

    def read(members: Tensor) -> Tensor:
        shares = scores[..., members].softmax(-1)
        return (shares.unsqueeze(-2) @ reading.values[..., members, :]).squeeze(-2)

    everything = torch.ones_like(chosen)
    mass = scores.softmax(-1)[..., chosen].sum(-1)
    return AttentionSplit(read(everything), mass, read(chosen), read(~chosen))


@dataclass(frozen=True, eq=False)
class DecoderBlock:
    """The weights of one block, as they are stored; heads that share keys and values hold copies of them.

    Shapes:
        attention: w_k, w_q (head, qk, token), w_v (head, v, token), w_p (head, token, v)
        attention_gain, mlp_gain: (token,)
        w_gate, w_up: (feature, token)
        w_down: (token, feature)

    Raises:
        TypeError, ValueError: the shapes do not fit together.

    Example:
        >>> attention = mesa.random_weights(3, 1, seeds=[0]).members(0)
        >>> ones = torch.ones(8, 4)
        >>> gain = torch.tensor([2.0, 1.0, 1.0, 1.0])
        >>> block = mesa.DecoderBlock(attention, gain, ones, ones, ones.mT, torch.ones(4))
        >>> torch.equal(block.folded().w_k[..., 0], 2 * attention.w_k[..., 0])
        True
    """

    attention: AttentionWeights
    attention_gain: Float[Tensor, "token"]
    w_gate: Float[Tensor, "feature token"]
    w_up: Float[Tensor, "feature token"]
    w_down: Float[Tensor, "token feature"]
    mlp_gain: Float[Tensor, "token"]

    def __post_init__(self) -> None:
        token, feature = self.attention.token_dim, self.w_gate.shape[0]
        wanted = {"attention_gain": (token,), "mlp_gain": (token,), "w_gate": (feature, token)}
        for name, shape in (wanted | {"w_up": (feature, token), "w_down": (token, feature)}).items():
            trailing_shape(f"DecoderBlock.{name}", getattr(self, name), shape)

    def folded(self) -> AttentionWeights:
        """The attention weights with the gain of the norm in front of them in W_K, W_Q and W_V, where it acts."""
        kept, gain = self.attention, self.attention_gain
        return AttentionWeights(kept.w_k * gain, kept.w_q * gain, kept.w_v * gain, kept.w_p)


@dataclass(frozen=True, eq=False)
class Decoder:
    """A language model: symbols to a score for each symbol that may come next.

    The embedding is also the read-out, as in SmolLM2.

    Attributes:
        embedding: one row a symbol, (y, token).
        blocks: the blocks, in order.
        final_gain: the gain of the norm before the read-out, (token,).
        rotation_base: see `rotate_pairs`.
        epsilon: what is added to a mean square before its root is taken.

    Example:
        >>> attention = mesa.random_weights(3, 1, seeds=[0]).members(0)
        >>> ones = torch.ones(8, 4)
        >>> gain = torch.tensor([2.0, 1.0, 1.0, 1.0])
        >>> block = mesa.DecoderBlock(attention, gain, ones, ones, ones.mT, torch.ones(4))
        >>> model = mesa.Decoder(torch.eye(4), (block,), torch.ones(4), rotation_base=10_000.0, epsilon=1e-5)
        >>> prompt = torch.tensor([[0, 1, 2]])
        >>> tuple(model.logits(prompt).shape)  # (task, y)
        (1, 4)
    """

    embedding: Float[Tensor, "y token"]
    blocks: tuple[DecoderBlock, ...]
    final_gain: Float[Tensor, "token"]
    rotation_base: float
    epsilon: float

    def logits(self, symbols: Int[Tensor, "task context"]) -> Float[Tensor, "task y"]:
        """The score of every symbol to come next; a softmax of it is the model's prediction.

        Args:
            symbols: prompts of one length, shape (task, context).

        Returns:
            Shape (task, y).

        Raises:
            TypeError, ValueError: `symbols` are not at least one integer a prompt, each the number of a symbol.
        """
        stream = self._embedded(symbols)
        for block in self.blocks:
            stream = self._through(block, stream, self._reading(block, stream))
        return self._normalised(stream[:, -1], self.final_gain) @ self.embedding.mT

    def predict(self, symbols: Int[Tensor, "task context"]) -> Float[Tensor, "task y"]:
        """The probability of every symbol to come next: the softmax of `logits`, in float64. Shape (task, y)."""
        return self.logits(symbols).double().softmax(-1)

    def readings(self, symbols: Int[Tensor, "task context"]) -> list[HeadReading]:
        """Queries, keys and values of every layer while it reads some prompts; arguments and errors as for `logits`."""
        stream, found = self._embedded(symbols), []
        for block in self.blocks:
            found.append(self._reading(block, stream))
            stream = self._through(block, stream, found[-1])
        return found

    def _embedded(self, symbols: Tensor) -> Tensor:
        if not isinstance(symbols, Tensor):
            raise TypeError(f"symbols: expected a tensor, got {type(symbols).__name__}")
        if symbols.dim() != 2 or symbols.shape[-1] < 1:
            raise ValueError(f"symbols: expected shape (task, context), got {tuple(symbols.shape)}")
        if symbols.is_floating_point() or symbols.dtype == torch.bool:
            raise TypeError(f"symbols: expected integers, got dtype {symbols.dtype}")
        numbers = symbols.long()  # a short integer type cannot be compared with a number that it cannot hold
        if bool((numbers < 0).any()) or bool((numbers >= len(self.embedding)).any()):
            raise ValueError(f"symbols: expected numbers from 0 to {len(self.embedding) - 1}")
        return self.embedding[numbers]

    def _normalised(self, stream: Tensor, gain: Tensor) -> Tensor:
        return rms_norm(stream, gain.shape, gain, self.epsilon)

    def _reading(self, block: DecoderBlock, stream: Tensor) -> HeadReading:
        given, weights = self._normalised(stream, block.attention_gain), block.attention
        queries, keys, values = (_by_head(w, given) for w in (weights.w_q, weights.w_k, weights.w_v))
        return HeadReading(
            rotate_pairs(queries, self.rotation_base) / queries.shape[-1] ** 0.5,
            rotate_pairs(keys, self.rotation_base),
            values,
        )

    def _through(self, block: DecoderBlock, stream: Tensor, reading: HeadReading) -> Tensor:
        attended = (reading.shares() @ reading.values).transpose(1, 2).flatten(2)
        outputs = block.attention.w_p.transpose(0, 1).flatten(1)  # heads side by side, for one large product
        stream = stream + attended @ outputs.mT
        given = self._normalised(stream, block.mlp_gain)
        return stream + (silu(given @ block.w_gate.mT) * (given @ block.w_up.mT)) @ block.w_down.mT


def _by_head(factor: Tensor, given: Tensor) -> Tensor:
    """What a factor of each head makes of each position: (task, head, context, qk)."""
    side_by_side = given @ factor.flatten(0, 1).mT
    return side_by_side.reshape(*given.shape[:2], *factor.shape[:2]).transpose(1, 2)
