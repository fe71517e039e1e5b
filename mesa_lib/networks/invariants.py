"""Numbers of a head that no gauge and no rotation changes, and that are extreme for the gradient-descent construction.

A head acts through its two products, W_KQ = W_K^T W_Q and W_PV = P W_V. Entries of the factors, and how many of them
are zero, depend on the gauge and on the basis of the token space. The numbers here see neither the gauge nor a rotation
of the token space.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.validation import typed


@dataclass(frozen=True, eq=False)
class HeadInvariants:
    """Five numbers for each head; for the construction of Proposition 1 see `head_invariants`.

    Shapes:
        all: (*ensemble, head)

    Attributes:
        symmetry: |W_KQ + W_KQ^T| / (2 |W_KQ|), in Frobenius norms; from 0 (antisymmetric) to 1 (symmetric).
        positivity: the positive eigenvalues' share of the sum of all |eigenvalues| of the symmetric part of W_KQ.
        flatness: (sum of the singular values of W_KQ)^2 / (their number times the sum of their squares), over those
            that are not zero; 1 if all are equal. It does not see a rotation of what the keys read alone, either.
        alignment: |W_KQ W_PV| / (|W_KQ| |W_PV|): whether what the head writes is what its queries read. 0 if what it
            writes is invisible to its own scores.
        identity: tr W_KQ / (sqrt(rank) |W_KQ|), from -1 to 1: the cosine between W_KQ and the identity, in units of
            the most that a matrix of its rank can reach. 1 if W_KQ is an orthogonal projection times a number > 0.

    Example:
        >>> found = mesa.head_invariants(mesa.gd_construction(eta=1.0, x_dim=10, y_dim=1, num_context=10))
        >>> [round(float(number), 4) for number in (found.positivity, found.alignment)]
        [1.0, 0.0]
    """

    symmetry: Float[Tensor, "*ensemble head"]
    positivity: Float[Tensor, "*ensemble head"]
    flatness: Float[Tensor, "*ensemble head"]
    alignment: Float[Tensor, "*ensemble head"]
    identity: Float[Tensor, "*ensemble head"]


@typed
def head_invariants(weights: AttentionWeights) -> HeadInvariants:
    """Symmetry, positivity, flatness, alignment and likeness to the identity of each head.

    For the construction of Proposition 1, W_KQ = diag(I, 0) and W_PV writes targets only: symmetry, positivity,
    flatness and identity are 1, alignment is 0. If the factors have independent normal entries, and tokens many more
    numbers than keys, symmetry is 1 / sqrt(2), positivity 1/2, flatness near 1, and the other two near 0.

    Matrices of the token's size are never formed: with qk numbers a key, the work is that of matrices of size 2 qk.

    Args:
        weights: one layer, none of whose heads has W_KQ = 0 or W_PV = 0.

    Returns:
        HeadInvariants in the weights' dtype.

    Raises:
        TypeError, ValueError: `weights` are none, or some head has a product that is zero, or a W_KQ that is exactly
            antisymmetric, so that shares do not exist.

    Example:
        >>> heads = mesa.random_weights(10, 1, seeds=[0], num_heads=4)
        >>> mesa.head_invariants(heads).symmetry.shape
        torch.Size([1, 4])
    """
    keys, queries, values, outputs = weights.w_k.mT, weights.w_q.mT, weights.w_v.mT, weights.w_p
    # An orthonormal basis of all that keys and queries read: in it W_KQ keeps its norm, trace, spectrum and symmetry.
    basis = torch.linalg.qr(torch.cat([keys, queries], dim=-1)).Q
    scores = (basis.mT @ keys) @ (queries.mT @ basis)
    size, written = _norm(scores), _norm(_triangle(outputs) @ _triangle(values).mT)
    if not bool(((size > 0) & (written > 0)).all()):
        raise ValueError("weights: expected a W_KQ and a W_PV other than zero in every head")
    symmetric = (scores + scores.mT) / 2
    if not bool((_norm(symmetric) > 0).all()):
        raise ValueError("weights: expected a W_KQ that is not antisymmetric in every head")
    eigenvalues, kept = torch.linalg.eigvalsh(symmetric), _nonzero(torch.linalg.svdvals(scores))
    rank = (kept > 0).sum(-1).to(scores.dtype)
    read_back = _norm(_triangle(keys) @ (queries.mT @ outputs) @ _triangle(values).mT)
    return HeadInvariants(
        symmetry=_norm(symmetric) / size,
        positivity=eigenvalues.clamp(min=0).sum(-1) / eigenvalues.abs().sum(-1),
        flatness=kept.sum(-1).square() / (rank * size.square()),
        alignment=read_back / (size * written),
        identity=scores.diagonal(dim1=-2, dim2=-1).sum(-1) / (rank.sqrt() * size),
    )


def _norm(matrix: Tensor) -> Tensor:
    return torch.as_tensor(torch.linalg.matrix_norm(matrix))


def _triangle(matrix: Tensor) -> Tensor:
    """R of matrix = Q R with orthonormal Q: what is left of a tall matrix for norms of its products."""
    return torch.as_tensor(torch.linalg.qr(matrix, mode="r").R)


def _nonzero(singular_values: Tensor) -> Tensor:
    """The singular values with exact zeros for those that are zero up to rounding."""
    cutoff = singular_values[..., :1] * singular_values.shape[-1] * torch.finfo(singular_values.dtype).eps
    return torch.where(singular_values > cutoff, singular_values, 0)
