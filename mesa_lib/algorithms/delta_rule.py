"""Fast weights that are written example by example: the sum rule, the delta rule, and test-time training.

Everything here takes the examples in the order in which they come, and sees each of them once.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.algorithms.gradient_descent import initial_weights
from mesa_lib.learners import predict_linear
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    broadcastable,
    finite_number,
    finite_tensor,
    positive_integer,
    same_kind,
    trailing_shape,
    typed,
)


@typed
def averaging_weights(batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
    """W = (1/N) sum_i y_i x_i^T: the averaging estimator, a baseline of Garg et al. (2022).

    It is one gradient step of size eta = 1 from W = 0 on the half-MSE of the context, and unbiased where E x x^T = I.

    Args:
        batch: its context is used, its queries are not.

    Returns:
        Shape (*ensemble, task, y, x).

    Example:
        >>> torch.allclose(mesa.predict_linear(mesa.averaging_weights(batch), batch), mesa.averaging(batch))
        True
    """
    return sum_rule_weights(batch, 1 / batch.num_context)


@typed
def averaging(batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of the averaging estimator; see `averaging_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Example:
        >>> tuple(mesa.averaging(batch).shape)
        (4, 1, 1)
    """
    return predict_linear(averaging_weights(batch), batch)


@typed
def sum_rule_weights(batch: TaskBatch, beta: float = 1.0) -> Float[Tensor, "*ensemble task y x"]:
    """W = beta sum_i y_i x_i^T, the sum rule of fast weights: what linear attention writes (Schlag et al., 2021).

    It is W_i = W_{i-1} + beta y_i x_i^T from W_0 = 0, in any order. As a step of gradient descent on the half-MSE of
    the context its size is eta = beta N.

    Args:
        batch: its context is used, its queries are not.
        beta: the writing strength, on the sum over the context.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `beta` is not a finite number.

    Example:
        >>> step = mesa.gradient_descent_weights(batch, eta=1.0)
        >>> torch.allclose(mesa.sum_rule_weights(batch, beta=0.1), step)  # beta = eta / N
        True
    """
    written: Tensor = finite_number("beta", beta) * (batch.context_y.mT @ batch.context_x)
    return written


@typed
def sum_rule(batch: TaskBatch, beta: float = 1.0) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of the sum rule; see `sum_rule_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `beta` is not a finite number.

    Example:
        >>> prediction = mesa.predict_linear(batch.context_y.mT @ batch.context_x, batch)
        >>> torch.allclose(mesa.sum_rule(batch), prediction)
        True
    """
    return predict_linear(sum_rule_weights(batch, beta), batch)


@typed
def delta_rule_weights(
    batch: TaskBatch, eta: float, mini_batch: int = 1, w_0: Float[Tensor, "... y x"] | None = None
) -> Float[Tensor, "*ensemble task y x"]:
    """One pass over the context, a gradient step a mini-batch; with `mini_batch` = 1 the delta rule of fast weights.

        W <- W - (eta / b) sum_i (W x_i - y_i) x_i^T,   the sum over the next b examples

    With b = 1 this is Widrow and Hoff's rule, the update of Schlag et al. (2021) with beta = eta: one step of
    stochastic gradient descent on 1/2 |W x_i - y_i|^2. With b = N it is one step of `gradient_descent_weights`. In
    between lies the mini-batch of test-time training (Sun et al., 2024). The order of the examples matters unless
    b = N.

    Args:
        batch: its context is used, its queries are not.
        eta: step size on the half-MSE of a full mini-batch, so that each example counts eta / b.
        mini_batch: b, at least one. If it does not divide N the last mini-batch holds fewer examples, each of which
            still counts eta / b; if it exceeds N there is one step, over all.
        w_0: where to start, (y, x) or (*ensemble, task, y, x); zeros by default.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `eta` is not finite, `mini_batch` is not a positive integer, or `w_0` does not fit.

    Example:
        >>> weights = mesa.delta_rule_weights(batch, eta=0.3)
        >>> torch.allclose(mesa.predict_linear(weights, batch), mesa.delta_rule(batch, eta=0.3))
        True
    """
    size = positive_integer("mini_batch", mini_batch)
    strength = finite_number("eta", eta) / size
    weights = initial_weights(batch, w_0)
    for begin in range(0, batch.num_context, size):
        x, y = (tensor[..., begin : begin + size, :] for tensor in (batch.context_x, batch.context_y))
        weights = weights + strength * (y - x @ weights.mT).mT @ x
    return weights


@typed
def delta_rule(
    batch: TaskBatch, eta: float, mini_batch: int = 1, w_0: Float[Tensor, "... y x"] | None = None
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions after one pass of the delta rule over the context; see `delta_rule_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: see `delta_rule_weights`.

    Example:
        >>> whole = mesa.delta_rule(batch, eta=0.3, mini_batch=10)
        >>> tuple(whole.shape)
        (4, 1, 1)
    """
    return predict_linear(delta_rule_weights(batch, eta, mini_batch, w_0), batch)


@typed
def ttt_linear(
    keys: Float[Tensor, "*ensemble token qk"],
    values: Float[Tensor, "*ensemble token v"],
    queries: Float[Tensor, "*ensemble token qk"],
    eta: float = 0.5,
    mini_batch: int | None = None,
    w_0: Float[Tensor, "v qk"] | None = None,
) -> Float[Tensor, "*ensemble token v"]:
    """A layer of test-time training with a linear model inside (Sun et al., 2024): z_t = W_t q_t for every token t.

    The hidden state W is trained while the sequence is read, on the loss |W k_t - v_t|^2 of each token in turn (no
    factor 1/2: hence their eta = 1/2),

        W_t = W_{t-1} - eta grad |W' k_t - v_t|^2,

    with the gradient taken at W', the state at the end of the previous mini-batch. One mini-batch for all ("batch"
    gradient descent) takes every gradient at W_0, and with eta = 1/2 and W_0 = 0 that is causal linear attention,
    z_t = sum_{s <= t} v_s (k_s . q_t): their Theorem 1. A mini-batch of one ("online") is the delta rule with
    beta = 2 eta. Their layers also normalise what W gives and add the input; this is the bare model of the theorem.

    Args:
        keys: k_t = theta_K x_t, shape (*ensemble, token, qk).
        values: v_t = theta_V x_t, shape (*ensemble, token, v).
        queries: q_t = theta_Q x_t, shape (*ensemble, token, qk).
        eta: step size on |W k_t - v_t|^2, which is twice a half-MSE.
        mini_batch: tokens whose gradients are taken at one state; all of them by default.
        w_0: the state before the first token, (v, qk); zeros by default.

    Returns:
        The outputs z_t, shape (*ensemble, token, v).

    Raises:
        TypeError, ValueError: dtypes or shapes that do not fit, numbers that are not finite, or a `mini_batch` that is
            not a positive integer.

    Example:
        >>> keys = torch.nn.functional.normalize(batch.context_x, dim=-1)
        >>> tuple(mesa.ttt_linear(keys, batch.context_y, keys).shape)
        (4, 10, 1)
    """
    for name, tensor in (("keys", keys), ("values", values), ("queries", queries)):
        finite_tensor(name, tensor, min_dims=2)
        same_kind(name, tensor, "keys", keys)
        broadcastable(name, tensor.shape[:-2], "keys", keys.shape[:-2])
        if tensor.shape[-2] != keys.shape[-2]:
            raise ValueError(f"{name}: expected {keys.shape[-2]} tokens, as in keys, got {tensor.shape[-2]}")
    trailing_shape("queries", queries, keys.shape[-1:])
    size = keys.shape[-2] if mini_batch is None else positive_integer("mini_batch", mini_batch)
    strength = 2 * finite_number("eta", eta)
    state = keys.new_zeros(values.shape[-1], keys.shape[-1])
    if w_0 is not None:
        finite_tensor("w_0", w_0, min_dims=2)
        same_kind("w_0", w_0, "keys", keys)
        state = trailing_shape("w_0", w_0, state.shape)
    outputs = []
    for begin in range(0, keys.shape[-2], size):
        k, v, q = (tensor[..., begin : begin + size, :] for tensor in (keys, values, queries))
        errors = v - k @ state.mT
        causal = (q @ k.mT).tril()  # the score of token s for token t, s <= t, within the mini-batch
        outputs.append(q @ state.mT + strength * causal @ errors)
        state = state + strength * errors.mT @ k
    return torch.cat(outputs, dim=-2)
