"""Positional codes: one row of numbers for each place in a sequence, as plain data."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.validation import (
    finite_tensor,
    floating_dtype,
    one_of,
    positive_integer,
    positive_number,
    typed,
)

Direction = Literal["next", "previous"]
"""Where a token looks: at the one after it, or at the one before."""


def one_hot_codes(num_positions: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "context token"]:
    """A code of its own for every place: the rows of the identity, as in the paper's proof of Proposition 3.

    Args:
        num_positions: how many places.
        dtype: a floating-point dtype.

    Returns:
        Shape (context, token), orthonormal rows.

    Raises:
        TypeError, ValueError: `num_positions` is not a positive integer, or `dtype` is not floating-point.

    Example:
        >>> mesa.one_hot_codes(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return torch.eye(positive_integer("num_positions", num_positions), dtype=floating_dtype("dtype", dtype))


def sinusoidal_codes(
    num_positions: int, width: int, base: float = 1e4, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "context token"]:
    """The usual waves: place t has the pairs (sin w_m t, cos w_m t) with w_m = base^(-2m / width).

    Every code has the norm sqrt(width / 2). The first wave turns by one radian a place and the last hardly at all, so
    that far fewer directions are in use than the width suggests. The paper's code has width 10 and base 10^4 for 21
    places (the text says width 20).

    Args:
        num_positions: how many places, counted from 0.
        width: numbers in a code, an even one.
        base: the ratio of the fastest to the slowest wave, nearly.
        dtype: a floating-point dtype.

    Returns:
        Shape (context, token).

    Raises:
        TypeError, ValueError: a size that is not a positive integer, an odd width, a base that is not positive.

    Example:
        >>> mesa.sinusoidal_codes(2, 4)[0].tolist()
        [0.0, 1.0, 0.0, 1.0]
    """
    places = torch.arange(positive_integer("num_positions", num_positions), dtype=torch.float64)
    if positive_integer("width", width) % 2 == 1:
        raise ValueError(f"width: expected an even number, one sine and one cosine a wave, got {width}")
    rates = positive_number("base", base) ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = places[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).to(floating_dtype("dtype", dtype))


def fourier_codes(
    num_positions: int, width: int | None = None, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "context token"]:
    """Waves again, but of whole periods: a constant, then cos and sin of 2 pi m t / T for m = 1, 2, ...

    The columns are orthonormal, and with as many columns as places so are the rows: codes that are as good as one-hot
    ones, and still waves.

    Args:
        num_positions: T.
        width: numbers in a code, at most T; T by default.
        dtype: a floating-point dtype.

    Returns:
        Shape (context, token).

    Raises:
        TypeError, ValueError: a size that is not a positive integer, or more columns than places.

    Example:
        >>> codes = mesa.fourier_codes(6, dtype=torch.float64)
        >>> gram = codes @ codes.T
        >>> torch.allclose(gram.roll((1, 1), (0, 1)), gram)  # scores depend on the distance alone
        True
    """
    count = positive_integer("num_positions", num_positions)
    columns = count if width is None else positive_integer("width", width)
    if columns > count:
        raise ValueError(f"width: expected at most the {count} places, got {columns}")
    places = torch.arange(count, dtype=torch.float64)
    waves = [torch.full_like(places, count**-0.5)]
    for column in range(1, columns):
        period = (column + 1) // 2
        angles = 2 * math.pi * period * places / count
        wave = angles.cos() if column % 2 == 1 else angles.sin()
        waves.append(wave / wave.norm())  # the fastest cosine of an even T has another norm than the rest
    return torch.stack(waves, dim=-1).to(floating_dtype("dtype", dtype))


@typed
def neighbour_map(positions: Float[Tensor, "context token"], direction: Direction) -> Float[Tensor, "token token"]:
    """R with R p_t = p_{t+1} ("next") or R p_t = p_{t-1} ("previous"), as a least-squares fit of least norm.

    For sinusoidal codes R is a rotation, and exact; for one-hot codes it is the shifted identity of the paper's
    appendix A.5. As W_KQ it scores the key at place i with p_i . p_{t+1}, most of all the neighbour. The place at the
    end has no neighbour and is left out of the fit.

    Args:
        positions: the codes, shape (context, token).
        direction: "next" or "previous".

    Returns:
        Shape (token, token).

    Raises:
        TypeError, ValueError: fewer than two codes, codes that are not finite, or an unknown direction.

    Example:
        >>> codes = mesa.one_hot_codes(4, dtype=torch.float64)
        >>> tuple(mesa.neighbour_map(codes, "next").shape)
        (4, 4)
    """
    codes = check_positions(positions)
    here, there = codes[:-1].double(), codes[1:].double()
    if one_of("direction", direction, ("next", "previous")) == "previous":
        here, there = there, here
    fitted: Tensor = torch.linalg.lstsq(here, there, rcond=1e-8, driver="gelsd").solution
    return fitted.mT.to(codes)


@typed
def reachable_scores(
    positions: Float[Tensor, "context token"],
    wanted: Float[Tensor, "query context"],
    tolerance: float = 1e-3,
) -> Float[Tensor, "query context"]:
    """The scores nearest to the wanted ones that a bilinear form of the codes gives: A = Q wanted Q.

    Linear attention between places has the scores A_ji = p_i^T W p_j, whatever W. Q projects on the span of the codes'
    columns. A direction whose singular value is small would ask for weights of the size of one over it, so those below
    `tolerance` are not used.

    Args:
        positions: the codes, shape (context, token).
        wanted: the score of place i for the reader at place j, shape (query, context), both counting places.
        tolerance: the least singular value that counts, beside the largest.

    Returns:
        Shape (query, context).

    Raises:
        TypeError, ValueError: `wanted` is not one number for each pair of places, or `tolerance` is not positive.

    Example:
        >>> codes = mesa.one_hot_codes(3, dtype=torch.float64)
        >>> wanted = torch.eye(3).double()
        >>> torch.allclose(mesa.reachable_scores(codes, wanted), wanted, atol=1e-2)
        True
    """
    codes = check_positions(positions)
    count = len(codes)
    if tuple(wanted.shape) != (count, count):
        raise ValueError(f"wanted: expected one score for each pair of {count} places, got {tuple(wanted.shape)}")
    directions, sizes, _ = torch.linalg.svd(codes.double(), full_matrices=False)
    used = directions[:, sizes > positive_number("tolerance", tolerance) * sizes[0]]
    projector: Tensor = used @ used.mT
    nearest = projector @ wanted.double() @ projector
    return nearest.to(codes)


@typed
def dual_codes(codes: Float[Tensor, "context token"], name: str = "positions") -> Float[Tensor, "context token"]:
    """The dual basis of linearly independent codes: c_i . p_j is 1 for i = j and 0 otherwise.

    Args:
        codes: at least two rows.
        name: what an error calls them.

    Returns:
        Shape (context, token); orthonormal codes are their own duals.

    Raises:
        TypeError, ValueError: no two codes, codes that are not finite, or that are not linearly independent.

    Example:
        >>> codes = mesa.fourier_codes(6, dtype=torch.float64)
        >>> torch.allclose(codes @ mesa.dual_codes(codes).T, torch.eye(6).double(), atol=1e-12)
        True
    """
    rows = check_positions(codes, name).double()
    rank = int(torch.linalg.matrix_rank(rows, rtol=1e-6))
    if rank < len(rows):
        raise ValueError(f"{name}: expected {len(rows)} linearly independent rows, got rows of rank {rank}")
    duals: Tensor = torch.linalg.pinv(rows).mT
    return duals.to(codes)


@typed
def check_positions(positions: Tensor, name: str = "positions") -> Tensor:
    """Return the codes; the error names them unless they are at least two rows of finite numbers."""
    finite_tensor(name, positions, min_dims=2)
    if positions.dim() != 2 or len(positions) < 2:
        raise ValueError(f"{name}: expected at least two rows, one code each, got {tuple(positions.shape)}")
    return positions
