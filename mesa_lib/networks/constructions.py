"""Attention weights written down by hand."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.networks.positions import Direction, check_positions, dual_codes
from mesa_lib.validation import (
    broadcastable,
    finite_number,
    finite_numbers,
    finite_tensor,
    floating_dtype,
    non_negative_number,
    one_of,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
    typed,
)


@typed
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
        TypeError, ValueError: `eta` is not finite, a size is not a positive integer, `w_0` is not (y, x), or `dtype` is
            not floating-point.

    Example:
        >>> layer = mesa.gd_construction(eta=1.5, x_dim=2, y_dim=1, num_context=10)
        >>> layer.w_p[0].diagonal().tolist() == [torch.tensor(0.15).item()] * 3  # P = (eta/N) I
        True
    """
    step = finite_number("eta", eta)
    d, n_out = positive_integer("x_dim", x_dim), positive_integer("y_dim", y_dim)
    examples = positive_integer("num_context", num_context)
    floating_dtype("dtype", dtype)
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


@typed
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

    Example:
        >>> layer = mesa.gd_plus_plus_construction(0.8, 0.1, x_dim=10, y_dim=1, num_context=10, dtype=torch.float64)
        >>> prediction = mesa.FreeTransformer([layer])(batch)
        >>> torch.allclose(prediction, mesa.gd_plus_plus(batch, etas=[0.8], gammas=[0.1]))
        True
    """
    tensors = {
        name: value for name, value in (("eta", eta), ("gamma", gamma), ("w_0", w_0)) if isinstance(value, Tensor)
    }
    first = next(iter(tensors), None)
    floating_dtype("dtype", dtype)
    like = torch.empty((), dtype=dtype) if first is None else tensors[first]
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

    Example:
        >>> len(mesa.chebyshev_gd_plus_plus(2.0, num_layers=3, x_dim=10, y_dim=1, num_context=10))
        3
    """
    first, layers = positive_number("g", g), positive_integer("num_layers", num_layers)
    strengths = [first * 9.0**layer for layer in range(layers)]
    return [
        gd_plus_plus_construction(strength * positive_integer("num_context", num_context), strength, x_dim, y_dim,
                                  num_context, dtype=dtype)
        for strength in strengths
    ]  # fmt: skip


@typed
def insert_slots(weights: AttentionWeights, at: int, size: int) -> AttentionWeights:
    """The same layer on tokens with `size` more numbers, which it neither reads nor writes.

    Args:
        weights: one layer.
        at: the new numbers come before this place of the old token.
        size: how many.

    Returns:
        AttentionWeights of token size `weights.token_dim` + `size`.

    Raises:
        TypeError, ValueError: `size` is not a positive integer, or there is no such place.

    Example:
        >>> wider = mesa.insert_slots(layer, at=10, size=5)
        >>> layer.token_dim, wider.token_dim
        (11, 16)
    """
    extra = positive_integer("size", size)
    if at not in range(weights.token_dim + 1):
        raise ValueError(f"at: expected a place from 0 to {weights.token_dim}, got {at!r}")

    def widened(matrix: Tensor) -> Tensor:
        blank = matrix.new_zeros(*matrix.shape[:-1], extra)
        return torch.cat([matrix[..., :at], blank, matrix[..., at:]], dim=-1)

    return AttentionWeights(
        widened(weights.w_k), widened(weights.w_q), widened(weights.w_v), widened(weights.w_p.mT).mT
    )


@typed
def copying_construction(
    positions: Float[Tensor, "context token"],
    x_dim: int,
    y_dim: int,
    sharpness: float | None = None,
    direction: Direction = "next",
) -> AttentionWeights:
    """Proposition 3: a layer that turns `interleaved_tokens` into the tokens (x_j, y_j), with a code in the middle.

    Who reads whom is written in W_KQ, on the codes alone. With codes that are linearly independent there are dual ones,
    c_i . p_j = 1 if i = j and 0 otherwise (orthonormal codes are their own), and

        W_KQ = k sum over (reader r, target t) of c_t c_r^T   gives the score k to a reader's target, 0 to all others.

    "next": an input reads the target behind it into its empty slot, x_j <- ((x_j), p, y_j). One head.
    "previous": a target reads the input in front of it, and moves itself out of the way: one head adds x_j to the
    shared slot, another reads the token itself, takes (0, y_j) out of that slot and puts y_j into the empty one. This
    is the direction that a causal mask leaves open.

    The other tokens and the query must get nothing. In linear attention their scores are zero. A softmax always hands
    out its whole unit, so there they score -k with everybody, and a sink of weight 1, ``softmax_attention(...,
    sink=1.0)``, takes what is left. Linear copies are exact. A softmax gives the target the share 1 - m, with m of
    `missed_weight` for 2N others.

    Args:
        positions: linearly independent codes of 2N + 1 places, shape (context, token).
        x_dim: input dimensions d.
        y_dim: target dimensions, at most d.
        sharpness: k > 0, for softmax attention with a sink of weight 1; None for linear attention, with k = 1.
        direction: "next" or "previous".

    Returns:
        AttentionWeights for tokens of size x_dim + code + y_dim, with one head ("next") or two ("previous").

    Raises:
        TypeError, ValueError: sizes that are not positive integers, more targets than inputs, an even number of codes,
            codes that are not linearly independent, a sharpness that is not positive, an unknown direction.

    Example:
        >>> codes = mesa.one_hot_codes(21)
        >>> mesa.copying_construction(codes, x_dim=10, y_dim=1).token_dim
        32
    """
    d, n_out, places, width = _interleaved_sizes(positions, x_dim, y_dim)
    duals = dual_codes(positions)
    inputs, targets = range(0, places - 1, 2), range(1, places, 2)
    if one_of("direction", direction, ("next", "previous")) == "next":
        readings = [dict(zip(inputs, targets, strict=True))]
    else:
        readings = [dict(zip(targets, inputs, strict=True)), dict(zip(targets, targets, strict=True))]
    keys = range(places - 1)  # the last place is the query's
    between_codes = [_scores_between(duals, reading, keys, sharpness) for reading in readings]

    shared, empty = slice(d - n_out, d), slice(d + width, None)
    written = [positions.new_zeros(d + width + n_out, d + width + n_out) for _ in readings]
    unit = torch.eye(d, dtype=positions.dtype, device=positions.device)
    written[-1][empty, shared] = unit[:n_out, :n_out]  # y_j, into the empty slot
    if direction == "previous":
        written[0][:d, :d] = unit
        written[1][:d, :d] = -unit
    return _by_codes(between_codes, written, d)


@typed
def pointing_construction(
    positions: Float[Tensor, "context token"], eta: float, x_dim: int, y_dim: int
) -> tuple[AttentionWeights, AttentionWeights]:
    """One gradient step on `interleaved_tokens` without any copy: two layers of linear attention that use the query.

    First the query scores all inputs against its own and notes the scores in its code, at the places of these inputs.
    Then it goes through its notes, and reads the target behind each of these places:

        p_q <- p_q + sum_i (x_i . x_q) p_{x_i},    y-slot <- -(eta/N) sum_i y_i (x_i . x_q).

    No token ever holds an input and its target together. In products, with dual codes c (see `copying_construction`):
    W_KQ = I on the first slot and W_PV = sum_i p_{x_i} c_{x_i}^T on codes, then W_KQ = sum_i c_{y_i} c_{x_i}^T on codes
    and W_PV = -(eta/N) from the first slot's last numbers to the empty slot. The first layer moves the codes of the
    context's tokens too, but along the codes of inputs only, and the second reads its keys along those of targets.

    Args:
        positions: linearly independent codes of 2N + 1 places, shape (context, token).
        eta: step size on L = 1/(2N) sum_i |W x_i - y_i|^2 (half-MSE).
        x_dim: input dimensions d.
        y_dim: target dimensions, at most d.

    Returns:
        The weights of the two layers, with one head each.

    Raises:
        TypeError, ValueError: `eta` is not finite; sizes or codes that `copying_construction` refuses.

    Example:
        >>> codes = mesa.one_hot_codes(21, dtype=torch.float64)
        >>> copy, step = mesa.pointing_construction(codes, eta=1.0, x_dim=10, y_dim=1)
        >>> copy.token_dim == step.token_dim
        True
    """
    d, n_out, places, width = _interleaved_sizes(positions, x_dim, y_dim)
    duals = dual_codes(positions)
    token, code = d + width + n_out, slice(d, d + width)
    inputs, targets = slice(0, places - 1, 2), slice(1, places, 2)
    unit = torch.eye(token, dtype=positions.dtype, device=positions.device)
    noted = torch.zeros_like(unit)
    noted[code, code] = positions[inputs].mT @ duals[inputs]
    note = AttentionWeights(unit[None, :d], unit[None, :d], noted[None], unit[None])
    answer = torch.zeros_like(unit)
    answer[d + width :, d - n_out : d] = -finite_number("eta", eta) / (places // 2) * unit[:n_out, :n_out]
    return note, _by_codes([duals[targets].mT @ duals[inputs]], [answer], d)


def induction_construction(
    embedding: Float[Tensor, "y x"],
    positions: Float[Tensor, "context token"],
    sharpness: float | None = None,
) -> tuple[AttentionWeights, AttentionWeights]:
    """An induction head in two layers: copy the symbol before, then take one step of gradient descent.

    The first layer lets every token of `sequence_tokens` read the one in front of it, and write that symbol's embedding
    into its empty slot, so that it holds a pair: x = the symbol before, y = its own. The second layer, for *linear*
    attention, is the construction of Proposition 1 on these pairs, from W_0 = 0 with eta / N = 1: keys are the copies,
    values the symbols themselves, and the query asks with its own symbol. It predicts

        sum_i embedding(s_i) (c(s_{i-1}) . embedding(s_q)),    c the dual of the embedding,

    the sum of the embeddings of all that came after earlier occurrences of the query's symbol. The dual basis enters
    W_KQ; for orthonormal embeddings it is the embedding itself and W_KQ an identity.

    Args:
        embedding: one row a symbol, linearly independent, shape (y, x).
        positions: one code a place, linearly independent, shape (context, token).
        sharpness: k > 0 of the first layer, for softmax attention with a sink of weight 1; None for linear attention.

    Returns:
        The weights of the two layers.

    Raises:
        TypeError, ValueError: embeddings or codes that are not linearly independent, or of different dtypes, or a
            sharpness that is not positive.

    Example:
        >>> codes = mesa.one_hot_codes(8)
        >>> copy, match = mesa.induction_construction(torch.eye(4), codes)
        >>> copy.token_dim == match.token_dim
        True
    """
    same_kind("positions", positions, "embedding", finite_tensor("embedding", embedding, min_dims=2))
    duals, meanings = dual_codes(positions), dual_codes(embedding, "embedding")
    places, width = positions.shape
    size = embedding.shape[-1]
    token = 3 * size + width
    copied, answer = slice(size + width, 2 * size + width), slice(2 * size + width, token)
    unit = torch.eye(size, dtype=embedding.dtype, device=embedding.device)
    written = embedding.new_zeros(token, token)
    written[copied, :size] = unit
    reading = dict(zip(range(1, places), range(places - 1), strict=True))
    copy = _by_codes([_scores_between(duals, reading, range(places), sharpness)], [written], size)
    w_k, w_q, w_v = (embedding.new_zeros(1, size, token) for _ in range(3))
    w_p = embedding.new_zeros(1, token, size)
    w_k[..., copied], w_q[..., :size], w_v[..., :size] = meanings.mT @ meanings, unit, -unit
    w_p[:, answer] = unit
    return copy, AttentionWeights(w_k, w_q, w_v, w_p)


def _interleaved_sizes(positions: Tensor, x_dim: int, y_dim: int) -> tuple[int, int, int, int]:
    """Inputs, targets, places and numbers in a code of `interleaved_tokens`, checked."""
    d, n_out = positive_integer("x_dim", x_dim), positive_integer("y_dim", y_dim)
    if n_out > d:
        raise ValueError(f"y_dim: expected at most x_dim = {d}, got {n_out}")
    places, width = check_positions(positions).shape
    if places % 2 == 0:
        raise ValueError(f"positions: expected 2N + 1 codes, an odd number, got {places}")
    return d, n_out, places, width


def _scores_between(duals: Tensor, reading: dict[int, int], keys: range, sharpness: float | None) -> Tensor:
    """W_KQ on codes: each reader scores its target; for a softmax, whoever reads nobody scores -k with every key."""
    readers, targets = list(reading), list(reading.values())
    form = duals[targets].mT @ duals[readers]
    if sharpness is None:
        return form
    idle = [place for place in range(len(duals)) if place not in reading]
    shunned = torch.outer(duals[list(keys)].sum(0), duals[idle].sum(0))
    return positive_number("sharpness", sharpness) * (form - shunned)


def _by_codes(between_codes: list[Tensor], written: list[Tensor], at: int) -> AttentionWeights:
    """One head for each pair of a form on codes, which stand at place `at` of a token, and of a matrix W_PV."""
    w_pv = torch.stack(written)
    width, token = len(between_codes[0]), w_pv.shape[-1]
    w_k = w_pv.new_zeros(len(written), width, token)
    w_k[..., at : at + width] = torch.eye(width, dtype=w_pv.dtype, device=w_pv.device)
    w_q = torch.zeros_like(w_k)
    w_q[..., at : at + width] = torch.stack(between_codes)
    identity = torch.eye(token, dtype=w_pv.dtype, device=w_pv.device).expand_as(w_pv)
    return AttentionWeights(w_k, w_q, w_pv, identity)


@typed
def smoother_construction(
    betas: Sequence[float],
    outputs: Sequence[float],
    x_dim: int,
    y_dim: int,
    dtype: torch.dtype = torch.float32,
) -> AttentionWeights:
    """Heads of softmax attention that smooth the targets: each answers with a multiple of a kernel smoother.

    In blocks (x first, then y), for head h:

        W_K = [[I, 0], [0, 0]],   W_Q = beta_h W_K,   W_V = [[0, 0], [0, -I]],   P = a_h I.

    With softmax attention a query token (x_q, 0) is read out as sum_h a_h s_h(x_q), where s_h is `kernel_smoother` with
    ``exponential_kernel(beta_h)``.

    Args:
        betas: beta_h, the size of each head's scores, in units of 1/x^2.
        outputs: a_h, what each head's mean of the targets is multiplied by.
        x_dim: input dimensions d.
        y_dim: target dimensions.
        dtype: of the weights.

    Returns:
        AttentionWeights with one head for each beta and all sizes x_dim + y_dim, factors of shape (head, token, token).

    Raises:
        TypeError, ValueError: `betas` or `outputs` are not finite numbers or not equally many, a size is not a positive
            integer, a `dtype` that is not floating-point.

    Example:
        >>> mesa.smoother_construction([2.0, 1.0], [1.0, -1.0], x_dim=3, y_dim=1).num_heads
        2
    """
    scores, sizes = finite_numbers("betas", betas), finite_numbers("outputs", outputs)
    if len(sizes) != len(scores):
        raise ValueError(f"outputs: expected {len(scores)} numbers, one for each beta, got {len(sizes)}")
    base = gd_construction(1.0, x_dim, y_dim, 1, dtype=floating_dtype("dtype", dtype))
    w_q = torch.tensor(scores, dtype=dtype)[:, None, None] * base.w_q
    w_p = torch.tensor(sizes, dtype=dtype)[:, None, None] * base.w_p
    return AttentionWeights(base.w_k.expand_as(w_q), w_q, base.w_v.expand_as(w_q), w_p)


def two_head_softmax_construction(
    beta: float,
    eta: float,
    x_dim: int,
    y_dim: int,
    num_context: int,
    sink: float = 0.0,
    one_sided: bool = False,
    dtype: torch.dtype = torch.float32,
) -> AttentionWeights:
    """Two heads of softmax attention that come close to a gradient step from W_0 = 0 on centred keys (the paper's A.9).

    The heads score alike, with opposite signs, and their outputs are subtracted. In blocks (x first, then y):

        W_K = [[I, 0], [0, 0]],   W_Q = +-beta W_K,   W_V = [[0, 0], [0, -I]],   P = +-(N + s)/N eta / (2 beta) I.

    The constant parts of the two softmaxes cancel, at every beta. What is left in a query's y-slot is

        -(eta/N) sum_i y_i (x_i - N/(N + s) x_bar) . x_q + O(beta^2),

    minus the prediction of `centred_gradient_descent`, not that of gradient descent. One-sided heads (beta, 0) with
    P = +-(N + s)/N eta / beta I have the same limit and an error O(beta). Without a sink the weights do not know N: the
    softmax takes the mean over the context by itself.

    Args:
        beta: size of the scores, in units of 1/x^2; positive.
        eta: step size of the limit on L = 1/(2N) sum_i |W x_i - y_i|^2 (half-MSE).
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: N; of no effect without a sink.
        sink: s, the weight of the sink that both heads are run with: ``softmax_attention(..., sink=sink)``.
        one_sided: heads (beta, 0) in place of (beta, -beta).
        dtype: of the weights.

    Returns:
        AttentionWeights with two heads and all sizes x_dim + y_dim, each factor of shape (2, token, token).

    Raises:
        TypeError, ValueError: `beta` is not positive, `eta` is not finite, `sink` is negative, a size is not a positive
            integer, a `dtype` that is not floating-point.

    Example:
        >>> sizes = {"x_dim": 10, "y_dim": 1, "num_context": 10, "dtype": torch.float64}
        >>> layer = mesa.two_head_softmax_construction(1e-4, 1.0, **sizes)
        >>> tokens = mesa.softmax_self_attention(layer, mesa.concatenated_tokens(batch))
        >>> step = mesa.centred_gradient_descent(batch, eta=1.0)
        >>> bool((mesa.read_prediction(tokens, y_dim=1) - step).abs().max() < 1e-5)
        True
    """
    sharpness, step = positive_number("beta", beta), finite_number("eta", eta)
    examples = positive_integer("num_context", num_context)
    scale = (1 + non_negative_number("sink", sink) / examples) * step / sharpness
    if one_sided:
        return smoother_construction((sharpness, 0.0), (scale, -scale), x_dim, y_dim, dtype)
    return smoother_construction((sharpness, -sharpness), (scale / 2, -scale / 2), x_dim, y_dim, dtype)


def four_head_softmax_construction(
    beta: float,
    eta: float,
    x_dim: int,
    y_dim: int,
    num_context: int,
    sinks: tuple[float, float] = (0.0, 10.0),
    dtype: torch.dtype = torch.float32,
) -> AttentionWeights:
    """Two pairs of softmax heads with two sinks, whose limit at small scores is the gradient step itself.

    A pair with a sink of weight s centres the keys by the share N/(N + s). Two pairs with different shares, mixed so
    that the shares cancel, do not centre at all: with scores +beta, -beta, +beta, -beta and sinks s, s, s', s',

        P = -+ eta (N + s)^2 / (2 beta N (s' - s)) I,    P' = +- eta (N + s')^2 / (2 beta N (s' - s)) I,

    a query's y-slot gets -(eta/N) sum_i y_i x_i . x_q + O(beta^2). At any beta > 0 it is an approximation.

    Args:
        beta: size of the scores, in units of 1/x^2; positive.
        eta: step size of the limit on L = 1/(2N) sum_i |W x_i - y_i|^2 (half-MSE).
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: N; these weights know it.
        sinks: s and s'; run the layer with ``softmax_attention(..., sink=(s, s, s', s'))``.
        dtype: of the weights.

    Returns:
        AttentionWeights with four heads and all sizes x_dim + y_dim, each factor of shape (4, token, token).

    Raises:
        TypeError, ValueError: `beta` is not positive, `eta` is not finite, `sinks` are not two different numbers >= 0,
            a size is not a positive integer, a `dtype` that is not floating-point.

    Example:
        >>> mesa.four_head_softmax_construction(0.1, 1.0, x_dim=10, y_dim=1, num_context=10).num_heads
        4
    """
    sharpness, step = positive_number("beta", beta), finite_number("eta", eta)
    examples = positive_integer("num_context", num_context)
    first, second = (non_negative_number(f"sinks[{index}]", sink) for index, sink in enumerate(sinks))
    if first == second:
        raise ValueError(f"sinks: expected two different numbers, got {first} and {second}")
    unit = step / (2 * sharpness * examples * (second - first))
    one, other = -unit * (examples + first) ** 2, unit * (examples + second) ** 2
    scores = (sharpness, -sharpness, sharpness, -sharpness)
    return smoother_construction(scores, (one, -one, other, -other), x_dim, y_dim, dtype)
