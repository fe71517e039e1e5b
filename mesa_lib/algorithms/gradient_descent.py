"""Explicit gradient descent on the weights of a linear model, the algorithm that attention is compared with."""

from functools import partial

from jaxtyping import Float
from torch import Tensor

from mesa_lib.learners import FittedLinearModel, predict_linear
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


def _check_weights(name: str, weights: Tensor, batch: TaskBatch) -> None:
    finite_tensor(name, weights, min_dims=2)
    same_kind(name, weights, "the batch", batch.context_x)
    trailing_shape(name, weights, (batch.y_dim, batch.x_dim))
    broadcastable(name, weights.shape[:-2], "the batch", batch.context_x.shape[:-2])


@typed
def initial_weights(
    batch: TaskBatch, w_0: Float[Tensor, "... y x"] | None = None
) -> Float[Tensor, "*ensemble task y x"]:
    """The weights that a learner starts from: `w_0` for every task, or zeros.

    Args:
        batch: gives the shape, the dtype and the device.
        w_0: one matrix (y, x) for all tasks, or one for each, (*ensemble, task, y, x).

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `w_0` has another dtype, is not finite, or does not fit the batch.
    """
    shape = (*batch.context_x.shape[:-2], batch.y_dim, batch.x_dim)
    if w_0 is None:
        return batch.context_x.new_zeros(shape)
    _check_weights("w_0", w_0, batch)
    leading = w_0.shape[:-2]
    if leading not in ((), shape[:-2]):
        raise ValueError(f"w_0: expected one matrix for all tasks or leading axes {shape[:-2]}, got {tuple(leading)}")
    return w_0.expand(shape)


@typed
def loss_gradient(weights: Float[Tensor, "... y x"], batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
    """Gradient of the context loss L(W) = 1/(2N) sum_i |W x_i - y_i|^2 (half-MSE over the context).

    The formula is 1/N sum_i (W x_i - y_i) x_i^T, the matrix inside Delta W of the paper's equation 3.

    Args:
        weights: W, shape (*ensemble, task, y, x), or (y, x) for all tasks.
        batch: its context is used, its queries are not.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `weights` has another dtype than the batch or does not fit its dimensions.

    Example:
        >>> zero = torch.zeros(1, 10, dtype=torch.float64)
        >>> step = mesa.gradient_descent_weights(batch, eta=1.0)
        >>> torch.allclose(step, -mesa.loss_gradient(zero, batch))
        True
    """
    _check_weights("weights", weights, batch)
    return gradient(weights, batch)


def gradient(weights: Tensor, batch: TaskBatch) -> Tensor:
    """`loss_gradient` unchecked: a descent that diverges shall end in infinities, not in a complaint about weights."""
    residual = batch.context_x @ weights.mT - batch.context_y
    return residual.mT @ batch.context_x / batch.num_context


@typed
def gradient_descent_weights(
    batch: TaskBatch, eta: float, num_steps: int = 1, w_0: Float[Tensor, "... y x"] | None = None
) -> Float[Tensor, "*ensemble task y x"]:
    """Weights after `num_steps` gradient steps W <- W - eta dL/dW on each context, L = 1/(2N) sum_i |W x_i - y_i|^2.

    Args:
        batch: its context is used, its queries are not.
        eta: step size on L, so that a step multiplies sum_i (W x_i - y_i) x_i^T by eta / N.
        num_steps: how many steps, at least one.
        w_0: where to start, (y, x) or (*ensemble, task, y, x); zeros by default.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `eta` is not finite, `num_steps` is not a positive integer, or `w_0` does not fit.

    Example:
        >>> weights = mesa.gradient_descent_weights(batch, eta=1.0)
        >>> torch.allclose(mesa.predict_linear(weights, batch), mesa.gradient_descent(batch, eta=1.0))
        True
    """
    step = finite_number("eta", eta)
    weights = initial_weights(batch, w_0)
    for _ in range(positive_integer("num_steps", num_steps)):
        weights = weights - step * gradient(weights, batch)
    return weights


@typed
def gradient_descent(
    batch: TaskBatch, eta: float, num_steps: int = 1, w_0: Float[Tensor, "... y x"] | None = None
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions W x_q after `num_steps` of gradient descent on each context; see `gradient_descent_weights`.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `eta` is not finite, `num_steps` is not a positive integer, or `w_0` does not fit.

    Example:
        >>> step = mesa.gradient_descent(batch, eta=1.0)
        >>> torch.allclose(step, mesa.FreeTransformer([layer])(batch))  # Proposition 1
        True
    """
    return predict_linear(gradient_descent_weights(batch, eta, num_steps, w_0), batch)


@typed
def gradient_descent_learner(
    eta: float, num_steps: int = 1, w_0: Float[Tensor, "... y x"] | None = None
) -> FittedLinearModel:
    """Explicit gradient descent as a learner: callable on a TaskBatch, with `implicit_weights`.

    Args:
        eta: step size on L = 1/(2N) sum_i |W x_i - y_i|^2.
        num_steps: how many steps, at least one.
        w_0: where to start, see `gradient_descent_weights`; zeros by default.

    Raises:
        TypeError, ValueError: `eta` is not finite or `num_steps` is not a positive integer.

    Example:
        >>> learner = mesa.gradient_descent_learner(eta=1.0, num_steps=3)
        >>> torch.equal(learner(batch), mesa.gradient_descent(batch, eta=1.0, num_steps=3))
        True
    """
    finite_number("eta", eta)
    positive_integer("num_steps", num_steps)
    return FittedLinearModel(partial(gradient_descent_weights, eta=eta, num_steps=num_steps, w_0=w_0))


@typed
def centred_gradient_descent_weights(
    batch: TaskBatch, eta: float, centring: float = 1.0
) -> Float[Tensor, "*ensemble task y x"]:
    """Weights (eta/N) sum_i y_i (x_i - c x_bar)^T, a gradient step from W_0 = 0 on inputs less c times their mean.

    With c = 1 it is one step of W on 1/(2N) sum_i |W x_i + b - y_i|^2 (half-MSE) with the best intercept b, the mean of
    the targets: the same for any constant that is added to all targets. The intercept takes no part in the
    prediction. With c = 0 it is `gradient_descent_weights`. It is what pairs of softmax heads compute in the limit of
    small scores; with a sink of weight s, c is N / (N + s).

    Args:
        batch: its context is used, its queries are not.
        eta: step size on the half-MSE.
        centring: c, the share of the mean input x_bar that is taken away.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: `eta` or `centring` is not finite.

    Example:
        >>> plain = mesa.gradient_descent_weights(batch, eta=1.0)
        >>> torch.allclose(mesa.centred_gradient_descent_weights(batch, eta=1.0, centring=0.0), plain)
        True
    """
    step, share = finite_number("eta", eta), finite_number("centring", centring)
    keys = batch.context_x - share * batch.context_x.mean(-2, keepdim=True)
    weights: Tensor = step / batch.num_context * batch.context_y.mT @ keys
    return weights


@typed
def centred_gradient_descent(
    batch: TaskBatch, eta: float, centring: float = 1.0
) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions of one gradient step on centred inputs; see `centred_gradient_descent_weights`.

    The query is not centred. As a learner with implicit weights:
    ``FittedLinearModel(partial(centred_gradient_descent_weights, eta=1.5))``.

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError, ValueError: `eta` or `centring` is not finite.

    Example:
        >>> tuple(mesa.centred_gradient_descent(batch, eta=1.0).shape)
        (4, 1, 1)
    """
    return predict_linear(centred_gradient_descent_weights(batch, eta, centring), batch)


@typed
def step_moved_targets(
    batch: TaskBatch, weight_change: Float[Tensor, "... y x"]
) -> Float[Tensor, "*ensemble task context y"]:
    """Targets y_i - Delta W x_i that do to the loss what the step Delta W does to the weights.

    L(W + Delta W) = 1/(2N) sum_i |W x_i - (y_i - Delta W x_i)|^2, the paper's equation 4: a step on the weights is a
    step on the targets.

    Args:
        batch: its context is moved.
        weight_change: Delta W, shape (*ensemble, task, y, x).

    Returns:
        Shape (*ensemble, task, context, y).

    Raises:
        TypeError, ValueError: `weight_change` has another dtype than the batch or does not fit its dimensions.

    Example:
        >>> moved = mesa.step_moved_targets(batch, batch.teacher)
        >>> bool(moved.abs().max() < 1e-12)  # the teacher explains every target
        True
    """
    _check_weights("weight_change", weight_change, batch)
    return batch.context_y - batch.context_x @ weight_change.mT


@typed
def context_loss(weights: Float[Tensor, "... y x"], batch: TaskBatch) -> Float[Tensor, "*ensemble task"]:
    """L(W) = 1/(2N) sum_i |W x_i - y_i|^2, the half-MSE of a linear model on each task's context.

    Args:
        weights: W, shape (*ensemble, task, y, x), or (y, x) for all tasks.
        batch: its context is used, its queries are not.

    Returns:
        Shape (*ensemble, task).

    Raises:
        TypeError, ValueError: `weights` has another dtype than the batch or does not fit its dimensions.

    Example:
        >>> torch.allclose(mesa.context_loss(batch.teacher, batch), torch.zeros(4, dtype=torch.float64))
        True
    """
    _check_weights("weights", weights, batch)
    residual = batch.context_x @ weights.mT - batch.context_y
    return 0.5 * residual.square().sum(-1).mean(-1)


def _best_multiple(direction: Tensor, target: Tensor) -> float:
    return float((direction * target).sum() / direction.square().sum())


@typed
def best_one_step_eta(batch: TaskBatch) -> float:
    """The step size whose single step from W_0 = 0 has the least half-MSE on the batch's queries, in closed form.

    The prediction is eta g with g = (1/N) sum_i y_i x_i^T x_q, so the loss is a parabola in eta with its minimum at
    sum y_q g / sum g^2 (sums over tasks, queries and targets).

    Raises:
        ValueError: every prediction is zero, so that all step sizes are equally good.
    """
    gradient_step = gradient_descent(batch, 1.0)
    if not bool((gradient_step != 0).any()):
        raise ValueError("batch: expected some non-zero prediction of a gradient step, got only zeros")
    return _best_multiple(gradient_step.double(), batch.query_y.double())
