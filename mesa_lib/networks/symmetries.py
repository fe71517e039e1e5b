"""Which weights are the same layer: the gauge group, the exchange of rank-one heads, and what a layer's function fixes.

A head acts on tokens through the map G -> W_PV G W_KQ of the context's second moment G. Hence

- the four factors are free up to gauge, (P, W_V, W_Q, W_K) -> (c P g^-1, g W_V, h W_Q, h^-T W_K / c) with invertible g
  and h and c != 0;
- the map fixes the products up to W_PV -> c W_PV, W_KQ -> W_KQ / c, unless both have rank one: a b^T and p q^T may then
  be exchanged for a p^T and b q^T, since a (b^T G p) q^T = a (p^T G b) q^T.

The book's chapter on symmetries and plateaus proves both.
"""

from dataclasses import dataclass, fields
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.validation import (
    broadcastable,
    finite_number,
    finite_tensor,
    one_of,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
    typed,
)


@typed
def gauge_transform(
    weights: AttentionWeights,
    on_values: Float[Tensor, "... v v"],
    on_keys: Float[Tensor, "... qk qk"],
    scale: float = 1.0,
) -> AttentionWeights:
    """Other factors of the same layer: (P, W_V, W_Q, W_K) -> (c P g^-1, g W_V, h W_Q, h^-T W_K / c).

    W_PV becomes c W_PV, W_KQ becomes W_KQ / c, and no token is updated differently.

    Args:
        weights: one layer.
        on_values: g, an invertible matrix (v, v); leading axes broadcast with the ensemble's and the heads'.
        on_keys: h, an invertible matrix (qk, qk), likewise.
        scale: c, not zero.

    Returns:
        AttentionWeights of the same shapes, ensemble axes of g and h in front where the weights had none.

    Raises:
        TypeError, ValueError: a matrix has another dtype or size than the weights', or is singular; `scale` is zero.

    Example:
        >>> same = mesa.gauge_transform(layer, 2 * torch.eye(11).double(), 3 * torch.eye(11).double())
        >>> torch.allclose(same.w_kq, layer.w_kq) and torch.allclose(same.w_pv, layer.w_pv)
        True
    """
    c = finite_number("scale", scale)
    if c == 0:
        raise ValueError("scale: expected a number other than 0, got 0.0")
    _gauge("on_values", on_values, weights, weights.w_v.shape[-2])
    _gauge("on_keys", on_keys, weights, weights.w_k.shape[-2])
    w_k, w_q = torch.linalg.solve(on_keys.mT, weights.w_k) / c, on_keys @ weights.w_q
    w_v, w_p = on_values @ weights.w_v, c * torch.linalg.solve(on_values, weights.w_p, left=False)
    leading = (w_k[..., 0, 0] + w_v[..., 0, 0]).shape
    return AttentionWeights(*(factor.expand(*leading, -1, -1) for factor in (w_k, w_q, w_v, w_p)))


def _gauge(name: str, matrix: Tensor, weights: AttentionWeights, size: int) -> None:
    finite_tensor(name, matrix, min_dims=2)
    same_kind(name, matrix, "the weights", weights.w_k)
    trailing_shape(name, matrix, (size, size))
    broadcastable(name, matrix.shape[:-2], "the weights", weights.w_k.shape[:-2])
    if bool((torch.linalg.matrix_rank(matrix) < size).any()):
        raise ValueError(f"{name}: expected an invertible matrix, got a singular one")


@typed
def change_token_basis(weights: AttentionWeights, basis: Float[Tensor, "token token"]) -> AttentionWeights:
    """The same layer for tokens written in another basis, e -> R e.

        W_K, W_Q, W_V -> W_K R^-1, W_Q R^-1, W_V R^-1,    P -> R P

    The new layer does to R e what the old one does to e, followed by R. This is no gauge: the tokens change, too. It
    matters where nothing fixes the basis, as in a network that learns its own embedding.

    Args:
        weights: one layer.
        basis: R, an invertible matrix.

    Returns:
        AttentionWeights of the same shapes.

    Raises:
        TypeError, ValueError: `basis` has another dtype or size than a token, or is singular.

    Example:
        >>> same = mesa.change_token_basis(layer, torch.eye(11).double())
        >>> torch.allclose(same.w_kq, layer.w_kq)
        True
    """
    _gauge("basis", basis, weights, weights.token_dim)
    w_k, w_q, w_v = (torch.linalg.solve(basis, w, left=False) for w in (weights.w_k, weights.w_q, weights.w_v))
    return AttentionWeights(w_k, w_q, w_v, basis @ weights.w_p)


@typed
def rank_one_twin(weights: AttentionWeights, rtol: float = 1e-6) -> AttentionWeights:
    """The same function with keys and values exchanged, head by head: a b^T, p q^T -> a p^T, b q^T.

    What the values read (b) becomes what the keys read (p), and the other way round. The two layers update every token
    alike, for every context, though no gauge leads from one to the other unless b and p are parallel.

    Args:
        weights: a layer whose heads all have a W_PV and a W_KQ of rank one.
        rtol: how small a second singular value must be, relative to the first, to count as zero.

    Returns:
        AttentionWeights with w_k = w_v = I, so that w_q = w_kq and w_p = w_pv; each product keeps its norm. Signs are
        free: the products are defined up to a common one.

    Raises:
        TypeError, ValueError: `rtol` is not a positive number, or some product does not have rank one.

    Example:
        >>> layer = mesa.gd_construction(eta=1.0, x_dim=1, y_dim=1, num_context=10)
        >>> mesa.rank_one_twin(layer).token_dim
        2
    """
    cutoff = positive_number("rtol", rtol)
    if weights.token_dim < 2:
        raise ValueError("weights: expected tokens of at least two numbers, got one")
    a, size_pv, b = _rank_one("w_pv", weights.w_pv, cutoff)
    p, size_kq, q = _rank_one("w_kq", weights.w_kq, cutoff)
    w_pv = size_pv * a[..., :, None] * p[..., None, :]
    w_kq = size_kq * b[..., :, None] * q[..., None, :]
    identity = torch.eye(weights.token_dim, dtype=w_kq.dtype, device=w_kq.device).expand_as(w_kq)
    return AttentionWeights(w_k=identity, w_q=w_kq, w_v=identity, w_p=w_pv)


def _rank_one(name: str, product: Tensor, rtol: float) -> tuple[Tensor, Tensor, Tensor]:
    """Left vector, singular value (..., 1, 1) and right vector of matrices of rank one."""
    left, values, right = torch.linalg.svd(product)
    if bool((values[..., 0] == 0).any()) or bool((values[..., 1] > rtol * values[..., 0]).any()):
        raise ValueError(
            f"weights: expected a {name} of rank one in every head, got singular values "
            f"{[float(f'{value:.3g}') for value in values.reshape(-1, values.shape[-1])[0]]} in the first"
        )
    return left[..., :, 0], values[..., 0, None, None], right[..., 0, :]


@dataclass(frozen=True, eq=False)
class SignalPaths:
    """How much of the teacher each head's two paths carry into the prediction.

    For inputs with E x x^T = m2 I and N examples, V has the covariance N m2 s |W|^2 with the teacher W, on average over
    W, where s is the sum of all entries here. For the construction of Proposition 1 it is eta / N, all of it direct.

    Attributes:
        direct: x through the keys, y through the values, as in the construction.
        twin: y through the keys, x through the values.

    Example:
        >>> paths = mesa.signal_paths(layer)
        >>> round(float(paths.direct), 6), abs(float(paths.twin)) < 1e-12
        (0.1, True)
    """

    direct: Float[Tensor, "*ensemble head"]
    twin: Float[Tensor, "*ensemble head"]


@typed
def signal_paths(weights: AttentionWeights, y_dim: int = 1) -> SignalPaths:
    """The signal of each path, head by head, of a layer that reads the query token (x_q, 0).

        direct = -tr(B_yy) tr(C_xx) / (d y_dim),    twin = -<B_yx, C_yx> / (d y_dim)

    with B = W_PV and C = W_KQ in blocks. Both are gauge invariant. The other two ways of pairing what keys and values
    read, x with x and y with y, are even in the teacher and carry no signal. `twin_share` is the share of the twin in
    the sums over heads, |twin| / (|direct| + |twin|).

    Args:
        weights: one layer.
        y_dim: how many numbers of a token are its target slot, the last ones.

    Returns:
        SignalPaths, in float64.

    Raises:
        TypeError, ValueError: `y_dim` is not a positive integer smaller than the token.

    Example:
        >>> tuple(mesa.signal_paths(mesa.random_weights(10, 1, seeds=[0, 1])).direct.shape)  # (ensemble, head)
        (2, 1)
    """
    d = _x_dim(weights, y_dim)
    exact = weights.to(dtype=torch.float64)
    b, c = exact.w_pv[..., d:, :], exact.w_kq[..., :d]
    direct = b[..., d:].diagonal(dim1=-2, dim2=-1).sum(-1) * c[..., :d, :].diagonal(dim1=-2, dim2=-1).sum(-1)
    twin = (b[..., :d] * c[..., d:, :]).sum((-1, -2))
    return SignalPaths(-direct / (d * y_dim), -twin / (d * y_dim))


def _x_dim(weights: AttentionWeights, y_dim: int) -> int:
    d = weights.token_dim - positive_integer("y_dim", y_dim)
    if d < 1:
        raise ValueError(f"y_dim: expected less than the token's {weights.token_dim} numbers, got {y_dim}")
    return d


@typed
def identifiable_dimensions(
    weights: AttentionWeights, readout: Literal["tokens", "query"] = "tokens", y_dim: int = 1, rtol: float = 1e-9
) -> int:
    """How many independent directions of the factors change the layer's function: the rank of its Jacobian.

    The function is the tensor of coefficients of G -> sum_h W_PV,h G W_KQ,h on symmetric G; contexts of a single token
    already determine it, noiseless ones included. Its Jacobian in all entries of the four factors is computed in
    float64, and its singular values above `rtol` times the largest are counted.

    For one head with generic factors of full size D = token: 2 D^2 - 1 for all tokens, the two products less their
    common scale; (x + 1)^2 - 1 for the query's read-out at y_dim = 1, where only the y row of W_PV and the x columns of
    W_KQ take part. Special weights can have fewer.

    Args:
        weights: one layer, without ensemble axes.
        readout: "tokens": the update of every number of any token; "query": the y-slot of a query token (x_q, 0).
        y_dim: how many numbers of a token are its target slot; of use for "query" only.
        rtol: which singular values count as zero, relative to the largest.

    Returns:
        The numerical rank.

    Raises:
        TypeError, ValueError: `readout` is unknown, there are ensemble axes, `y_dim` or `rtol` is out of range.

    Example:
        >>> small = mesa.gd_construction(eta=1.0, x_dim=2, y_dim=1, num_context=10, dtype=torch.float64)
        >>> mesa.identifiable_dimensions(small) <= 2 * 3 * 3
        True
    """
    one_of("readout", readout, ("tokens", "query"))
    cutoff = positive_number("rtol", rtol)
    if weights.w_k.dim() != 3:
        shape = tuple(weights.w_k.shape)
        raise ValueError(f"weights: expected a layer without ensemble axes, got w_k of shape {shape}")
    d = _x_dim(weights, y_dim)
    rows, columns = (slice(None), slice(None)) if readout == "tokens" else (slice(d, None), slice(0, d))
    upper = torch.triu_indices(weights.token_dim, weights.token_dim)

    def function(factors: dict[str, Tensor]) -> Tensor:
        w_pv, w_kq = factors["w_p"] @ factors["w_v"], factors["w_k"].mT @ factors["w_q"]
        coefficients = torch.einsum("...hai,...hjb->...abij", w_pv[..., rows, :], w_kq[..., columns])
        return (coefficients + coefficients.mT)[..., upper[0], upper[1]].flatten(-3)

    exact = weights.to(dtype=torch.float64, device="cpu").detach()
    factors = {field.name: getattr(exact, field.name) for field in fields(exact)}
    # Linear in each factor: the derivative along an entry is the function with that entry's unit matrix in its place.
    jacobian = torch.cat([function({**factors, name: _units(factor)}) for name, factor in factors.items()])
    values = torch.linalg.svdvals(jacobian)
    return int((values > cutoff * values[0]).sum())


def _units(matrices: Tensor) -> Tensor:
    """One copy per entry, with a one there and zeros elsewhere: shape (entries, *matrices.shape)."""
    count = matrices.numel()
    return torch.eye(count, dtype=matrices.dtype).view(count, *matrices.shape)
