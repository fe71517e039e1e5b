"""Attention weights written down by hand."""

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.validation import finite_number, finite_tensor, positive_integer, trailing_shape


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
