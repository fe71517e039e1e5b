"""Attention weights written down by hand."""

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.validation import (
    broadcastable,
    finite_number,
    finite_tensor,
    floating_dtype,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
)


def gd_construction(
    eta: float,
    x_dim: int,
    y_dim: int,
    num_context: int,
    w_0: Float[Tensor, "y x"] | None = None,
    dtype: torch.dtype = torch.float32,
) -> AttentionWeights:
    """The weights of Proposition 1: one layer of linear self-attention that is one gradient step.

    In blocks (x first, then y), with one head:

        W_K = W_Q = [[I, 0], [0, 0]],   W_V = [[0, 0], [W_0, -I]],   P = (eta / N) I.

    On tokens (x_j, y_j) the layer gives (x_j, y_j - Delta W x_j) with the step
    Delta W = -(eta / N) sum_i (W_0 x_i - y_i) x_i^T from W_0; read out with a minus sign from a query token
    (x_q, -W_0 x_q), see `concatenated_tokens`, it predicts (W_0 + Delta W) x_q. The weights know N: they are one
    gradient step of size eta at that context length only.

    Args:
        eta: step size on L = 1/(2N) sum_i |W x_i - y_i|^2 (half-MSE).
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: N.
        w_0: where the step starts, (y, x); zeros by default. It also gives dtype and device if present.
        dtype: of the weights when `w_0` is absent.

    Returns:
        AttentionWeights with one head and all sizes x_dim + y_dim, each factor of shape (1, token, token).

    Raises:
        TypeError, ValueError: `eta` is not finite, a size is not a positive integer, `w_0` is not (y, x).
    """
    step = finite_number("eta", eta)
    d, n_out = positive_integer("x_dim", x_dim), positive_integer("y_dim", y_dim)
    examples = positive_integer("num_context", num_context)
    if w_0 is None:
        w_0 = torch.zeros(n_out, d, dtype=dtype)
    else:
        finite_tensor("w_0", w_0, min_dims=2)
        if w_0.dim() != 2:
            raise ValueError(f"w_0: expected one matrix of shape ({n_out}, {d}), got {tuple(w_0.shape)}")
        trailing_shape("w_0", w_0, (n_out, d))
    identity = torch.eye(d + n_out, dtype=w_0.dtype, device=w_0.device)
    select_x = identity.clone()
    select_x[d:] = 0
    w_v = torch.zeros_like(identity)
    w_v[d:, :d] = w_0
    w_v[d:, d:] = -identity[d:, d:]
    return AttentionWeights(select_x[None], select_x[None].clone(), w_v[None], (step / examples * identity)[None])


def gd_plus_plus_construction(
    eta: float | Float[Tensor, "..."],
    gamma: float | Float[Tensor, "..."],
    x_dim: int,
    y_dim: int,
    num_context: int,
    w_0: Float[Tensor, "y x"] | None = None,
    dtype: torch.dtype = torch.float32,
) -> AttentionWeights:
    """The weights of GD++ (the paper's appendix A.10): a gradient step on y, and at the same time x <- (I - gamma S) x.

    In blocks (x first, then y), with one head and S = sum_i x_i x_i^T (the paper's X X^T):

        W_K = W_Q = [[I, 0], [0, 0]],   W_V = [[I, 0], [W_0, -I]],   P = diag(-gamma I, (eta / N) I).

    On tokens (x_j, y_j) the layer gives ((I - gamma S) x_j, y_j - Delta W x_j), with the step Delta W of
    `gd_construction`, taken on the x that come in. With gamma = 0 it is `gd_construction`'s layer. The gamma of a last
    layer cannot matter: no layer reads the x that it moves. A stack of such layers is GD++ for W_0 = 0; from another
    W_0 only its first layer is the step, because the later ones would need W_0 applied to the x that came in first.

    Args:
        eta: step size on L = 1/(2N) sum_i |W x_i - y_i|^2 (half-MSE); a number, or a tensor with the ensemble's axes,
            into which gradients flow.
        gamma: on S itself, not on S / N; a number or a tensor, like `eta`.
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: N.
        w_0: where the step starts, (y, x); zeros by default.
        dtype: of the weights when none of `eta`, `gamma` and `w_0` is a tensor; they must agree where they are.

    Returns:
        AttentionWeights with one head and all sizes x_dim + y_dim, factors of shape (*ensemble, 1, token, token).

    Raises:
        TypeError, ValueError: `eta` or `gamma` is not finite, their axes do not broadcast, their dtypes disagree, a
            size is not a positive integer, `w_0` is not (y, x).
    """
    tensors = {
        name: value for name, value in (("eta", eta), ("gamma", gamma), ("w_0", w_0)) if isinstance(value, Tensor)
    }
    first = next(iter(tensors), None)
    like = torch.empty((), dtype=floating_dtype("dtype", dtype)) if first is None else tensors[first]
    for name, value in tensors.items():
        same_kind(name, finite_tensor(name, value), str(first), like)
    step, curvature = _as_tensor("eta", eta, like), _as_tensor("gamma", gamma, like)
    broadcastable("gamma", curvature.shape, "eta", step.shape)
    base = gd_construction(1.0, x_dim, y_dim, num_context, w_0, dtype=like.dtype)
    axes = (step + curvature).shape
    step, curvature = (step / num_context).expand(axes), curvature.expand(axes)
    diagonal = torch.cat([
        -curvature.unsqueeze(-1).expand(*curvature.shape, x_dim),
        step.unsqueeze(-1).expand(*step.shape, y_dim),
    ], dim=-1)  # fmt: skip
    w_v = base.w_v.to(like.device).clone()
    w_v[..., :x_dim, :x_dim] = torch.eye(x_dim, dtype=like.dtype, device=like.device)
    w_p = torch.diag_embed(diagonal).unsqueeze(-3)
    w_k, w_v = base.w_k.to(like.device).expand_as(w_p), w_v.expand_as(w_p)
    return AttentionWeights(w_k=w_k, w_q=w_k, w_v=w_v, w_p=w_p)


def _as_tensor(name: str, value: float | Tensor, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return torch.tensor(finite_number(name, value), dtype=like.dtype, device=like.device)


def chebyshev_gd_plus_plus(
    g: float, num_layers: int, x_dim: int, y_dim: int, num_context: int, dtype: torch.dtype = torch.float32
) -> list[AttentionWeights]:
    """GD++ with one number for all of its layers: eta_l / N = gamma_l = g 9^l, for l = 0, ..., L - 1.

    An eigenvalue lambda of S = sum_i x_i x_i^T keeps the share rho of its error, and with u = sqrt(3 g lambda / 4)

        rho = (-1)^m T_{3^L}(u) / (3^L u),   m = (3^L - 1)/2,

    T the Chebyshev polynomial, so that |u rho| <= 3^-L wherever 3 g lambda <= 4. A larger eigenvalue diverges, doubly
    exponentially in L. The reason for the nine: lambda -> lambda (1 - g lambda)^2 is T_3^2 in u, divided by nine.

    Args:
        g: a positive number, in units of 1/x^2; best near 4 / (3 lambda_max).
        num_layers: L.
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: N.
        dtype: of the weights.

    Returns:
        One AttentionWeights a layer, the first one first; ``FreeTransformer(chebyshev_gd_plus_plus(...))`` is the
        learner.

    Raises:
        TypeError, ValueError: `g` is not a positive number, or a size is not a positive integer.
    """
    first, layers = positive_number("g", g), positive_integer("num_layers", num_layers)
    strengths = [first * 9.0**layer for layer in range(layers)]
    return [
        gd_plus_plus_construction(strength * positive_integer("num_context", num_context), strength, x_dim, y_dim,
                                  num_context, dtype=dtype)
        for strength in strengths
    ]  # fmt: skip
