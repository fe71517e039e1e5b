"""Reading a trained network: as GD++, two numbers a layer and what they leave out, or as its gradient step alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights, canonicalize
from mesa_lib.networks.constructions import gd_plus_plus_construction
from mesa_lib.validation import (
    one_of,
    positive_integer,
    typed,
)

Reads = Literal["x", "y", "xy"]
"""A part of a token: what stands before the target slot, the slot, or both."""


@dataclass(frozen=True, eq=False)
class GDPlusPlusReading:
    """What the layers of a network look like as GD++; every field has shape (*ensemble, layer).

    The rests are relative Frobenius norms, between 0 and 1, of what a block of the canonical products has beside the
    multiple of the identity that GD++ puts there.

    Attributes:
        etas: step sizes, minus N times the mean diagonal of W_PV's y block.
        gammas: minus the mean diagonal of W_PV's x block, on S = sum_i x_i x_i^T. The last layer's is no more than
            noise: it reaches no prediction.
        score_rest: of W_KQ's x block, which should be the identity.
        value_rest: of W_PV's x block, which should be -gamma I; not identified in the last layer.
        target_scores: largest entry of W_KQ that reads a y, of a key or of a query; GD++ has none. Not a norm but
            relative to W_KQ's mean diagonal.

    Example:
        >>> reading = mesa.read_gd_plus_plus([layer], num_context=10)
        >>> round(float(reading.etas), 6), abs(float(reading.gammas)) < 1e-12
        (1.0, True)
    """

    etas: Float[Tensor, "*ensemble layer"]
    gammas: Float[Tensor, "*ensemble layer"]
    score_rest: Float[Tensor, "*ensemble layer"]
    value_rest: Float[Tensor, "*ensemble layer"]
    target_scores: Float[Tensor, "*ensemble layer"]

    def layers(self, x_dim: int, y_dim: int, num_context: int) -> list[AttentionWeights]:
        """The network that has these numbers and nothing else: one `gd_plus_plus_construction` a layer."""
        pairs = zip(self.etas.unbind(-1), self.gammas.unbind(-1), strict=True)
        return [gd_plus_plus_construction(eta, gamma, x_dim, y_dim, num_context) for eta, gamma in pairs]


@typed
def read_gd_plus_plus(layers: Sequence[AttentionWeights], num_context: int, y_dim: int = 1) -> GDPlusPlusReading:
    """Read each layer as GD++: the mean diagonals of its canonical products.

    Nothing is fitted: the numbers come from the weights alone, layer by layer. `nearest_schedule` looks at what the
    network computes instead.

    Args:
        layers: of one head each, the first one first; ensemble axes are free.
        num_context: N, for eta / N.
        y_dim: how many numbers of a token are its target slot, the last ones.

    Returns:
        A GDPlusPlusReading without gradients.

    Raises:
        TypeError, ValueError: no layer, a layer with several heads, counts that are not positive integers, or a layer
            that `canonicalize` refuses.

    Example:
        >>> wave = mesa.gd_plus_plus_construction(eta=0.8, gamma=0.1, x_dim=10, y_dim=1, num_context=10)
        >>> reading = mesa.read_gd_plus_plus([wave], num_context=10)
        >>> round(float(reading.etas), 4), round(float(reading.gammas), 4)
        (0.8, 0.1)
    """
    examples = positive_integer("num_context", num_context)
    if not layers:
        raise ValueError("layers: expected at least one AttentionWeights, got none")
    columns: list[tuple[Tensor, ...]] = []
    for index, weights in enumerate(layers):
        if weights.num_heads != 1:
            raise ValueError(f"layers[{index}]: expected one head, got {weights.num_heads}")
        canonical = canonicalize(weights.detach(), y_dim)
        w_kq, w_pv = canonical.w_kq.squeeze(-3), canonical.w_pv.squeeze(-3)
        d = weights.token_dim - y_dim
        columns.append((
            -examples * _mean_diagonal(w_pv[..., d:, d:]),
            -_mean_diagonal(w_pv[..., :d, :d]),
            _rest(w_kq[..., :d, :d]),
            _rest(w_pv[..., :d, :d]),
            torch.maximum(w_kq[..., d:, :].abs().amax((-2, -1)), w_kq[..., :, d:].abs().amax((-2, -1))),
        ))  # fmt: skip
    return GDPlusPlusReading(*(torch.stack(column, dim=-1) for column in zip(*columns, strict=True)))


@typed
def keep_reads(
    weights: AttentionWeights,
    values: Reads = "y",
    keys: Reads = "x",
    queries: Reads = "x",
    y_dim: int = 1,
) -> AttentionWeights:
    """A layer in which values, keys and queries read only a part of a token, and which writes into the y-slot alone.

    By default what is left is the layer's gradient step: values read the y-slot, keys and queries the rest, and of the
    products only [W_PV]_yy and [W_KQ]_xx remain, all that the construction of Proposition 1 from W_0 = 0 has. With keys
    that read "xy" the keys may see targets as well, and so on; three times "xy" is all that reaches a prediction.

    Args:
        weights: one layer; ensemble axes and heads are free.
        values: which part values read: "y", the target slot, "x", what stands before it, or both, "xy".
        keys: the same for keys.
        queries: the same for queries.
        y_dim: how many numbers of a token are its target slot, the last ones.

    Returns:
        AttentionWeights of the same axes with w_k = w_v = I, so that w_q = w_kq and w_p = w_pv.

    Raises:
        TypeError, ValueError: a part is none of the three, or `y_dim` is not a positive integer smaller than the token.

    Example:
        >>> kept = mesa.keep_reads(layer, values="y", keys="x", queries="x")
        >>> torch.allclose(kept.w_kq, layer.w_kq)  # the construction reads nothing else
        True
    """
    x_dim = weights.token_dim - positive_integer("y_dim", y_dim)
    if x_dim < 1:
        raise ValueError(f"y_dim: expected less than the token's {weights.token_dim} numbers, got {y_dim}")
    ends = {"x": (0, x_dim), "y": (x_dim, weights.token_dim), "xy": (0, weights.token_dim)}
    value, key, query = (
        slice(*ends[one_of(name, part, tuple(ends))])
        for name, part in (("values", values), ("keys", keys), ("queries", queries))
    )
    w_pv, w_kq = torch.zeros_like(weights.w_pv), torch.zeros_like(weights.w_kq)
    w_pv[..., x_dim:, value] = weights.w_pv[..., x_dim:, value]
    w_kq[..., key, query] = weights.w_kq[..., key, query]
    identity = torch.eye(weights.token_dim, dtype=w_kq.dtype, device=w_kq.device).expand_as(w_kq)
    return AttentionWeights(w_k=identity, w_q=w_kq, w_v=identity, w_p=w_pv)


def _mean_diagonal(block: Tensor) -> Tensor:
    return block.diagonal(dim1=-2, dim2=-1).mean(-1)


def _rest(block: Tensor) -> Tensor:
    """Share of a block's norm that no multiple of the identity explains."""
    identity = torch.eye(block.shape[-1], dtype=block.dtype, device=block.device)
    rest = block - _mean_diagonal(block)[..., None, None] * identity
    return torch.as_tensor(rest.norm(dim=(-2, -1)) / block.norm(dim=(-2, -1)))
