"""Features: an MLP m that replaces the inputs x of a task by m(x), for networks and for explicit algorithms alike.

What is linear in m(x) need not be linear in x: with features, everything that this library does for straight lines
works for curves. The room lies below `networks` and `algorithms`, so that both can stand on the same features.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mesa_lib.seeding import generators
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    broadcastable,
    finite_tensor,
    floating_dtype,
    one_of,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
    typed,
)

Features = Callable[[Float[Tensor, "... x"]], Float[Tensor, "... feature"]]
"""x -> m(x), on the last axis: an `MLP`, or any other function."""

Activation = Literal["tanh", "gelu", "relu"]

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "relu": torch.relu,
}


class MLP(nn.Module):
    """A multi-layer perceptron, m(x) = W_L s(... s(W_1 x / r + b_1) ...) + b_L, whose weights are parameters.

    As `Features` it is called on x of shape (..., x). An ensemble of MLPs is called on x of shape (task, point, x), the
    same for every member, or (*ensemble, task, point, x), and gives (*ensemble, task, point, feature).

    Args:
        weights: W_1, ..., W_L, each of shape (*ensemble, out, in); they are copied.
        biases: b_1, ..., b_L, each of shape (*ensemble, out).
        activation: s, "tanh", "gelu" or "relu".
        input_scale: r, a constant that brings inputs to order one, so that one learning rate suits all weights.

    Raises:
        TypeError, ValueError: no layer, not one bias for each matrix, shapes or dtypes that do not fit together, an
            unknown activation, an `input_scale` that is not positive.

    Example:
        >>> mlp = mesa.random_mlp(x_dim=1, width=8, seeds=[0]).member(0)
        >>> tuple(mlp(torch.linspace(-1, 1, 5)[:, None]).shape)
        (5, 8)
    """

    def __init__(
        self,
        weights: Sequence[Float[Tensor, "*ensemble _ _"]],
        biases: Sequence[Float[Tensor, "*ensemble _"]],
        activation: Activation = "tanh",
        input_scale: float = 1.0,
    ) -> None:
        super().__init__()
        if not weights or len(weights) != len(biases):
            raise ValueError(
                f"weights, biases: expected one bias for each of at least one matrix, got {len(weights)} and "
                f"{len(biases)}"
            )
        for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            finite_tensor(f"weights[{index}]", weight, min_dims=2)
            finite_tensor(f"biases[{index}]", bias, min_dims=1)
            same_kind(f"weights[{index}]", weight, "weights[0]", weights[0])
            same_kind(f"biases[{index}]", bias, "weights[0]", weights[0])
            inputs = weight.shape[-1] if index == 0 else weights[index - 1].shape[-2]
            expected = (*weights[0].shape[:-2], weight.shape[-2], inputs)
            if tuple(weight.shape) != expected:
                raise ValueError(f"weights[{index}]: expected shape {expected}, got {tuple(weight.shape)}")
            if bias.shape != weight.shape[:-1]:
                raise ValueError(f"biases[{index}]: expected shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}")
        self.weights = nn.ParameterList([nn.Parameter(weight.detach().clone()) for weight in weights])
        self.biases = nn.ParameterList([nn.Parameter(bias.detach().clone()) for bias in biases])
        one_of("activation", activation, tuple(_ACTIVATIONS))
        self.activation: Activation = activation
        self.input_scale = positive_number("input_scale", input_scale)

    @property
    def x_dim(self) -> int:
        """Number of inputs."""
        return int(self.weights[0].shape[-1])

    @property
    def width(self) -> int:
        """Number of features, the outputs."""
        return int(self.weights[-1].shape[-2])

    def forward(self, x: Float[Tensor, "... x"]) -> Float[Tensor, "... feature"]:
        """m(x), on the last axis of x.

        Raises:
            TypeError, ValueError: x has another dtype or another number of inputs than the MLP, or too few axes for an
                ensemble.
        """
        same_kind("x", x, "the MLP", self.weights[0])
        if x.shape[-1] != self.x_dim:
            raise ValueError(f"x: expected {self.x_dim} inputs on the last axis, got shape {tuple(x.shape)}")
        members = self.weights[0].shape[:-2]
        if members:
            if x.dim() < 3:
                raise ValueError(
                    f"x: expected shape (task, point, x) or more for an ensemble of MLPs, got {tuple(x.shape)}; "
                    "see MLP.member"
                )
            broadcastable("x", x.shape[:-3], "the MLP", members)
            hidden = x.flatten(-3, -2)  # one product with a long matrix for each member, not one a task
        else:
            hidden = x
        hidden = hidden / self.input_scale
        last = len(self.weights) - 1
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = hidden @ weight.mT + (bias.unsqueeze(-2) if members else bias)
            if index < last:
                hidden = _ACTIVATIONS[self.activation](hidden)
        return hidden.view(*hidden.shape[:-2], *x.shape[-3:-1], self.width) if members else hidden

    def member(self, index: int) -> "MLP":
        """One MLP of an ensemble, along the first ensemble axis; a copy without gradients.

        Raises:
            ValueError: there is no ensemble axis.
            IndexError: there is no such member.
        """
        if self.weights[0].dim() < 3:
            raise ValueError(f"MLP: expected an ensemble axis, got weights of shape {tuple(self.weights[0].shape)}")
        weights, biases = [w[index] for w in self.weights], [b[index] for b in self.biases]
        return MLP(weights, biases, self.activation, self.input_scale)


@typed
def random_mlp(
    x_dim: int,
    width: int,
    seeds: Sequence[int],
    hidden: Sequence[int] = (128,),
    activation: Activation = "tanh",
    input_scale: float = 1.0,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> MLP:
    """A random start for an ensemble of MLPs, one stream of random numbers for each seed.

    The first layer's weights are N(0, 4/x_dim) and its biases N(0, 1), so that over inputs of order one the units bend
    in different places. A later layer with n inputs has weights N(0, 2/n), the last one N(0, scale^2 / (4n)), and no
    biases.

    Args:
        x_dim: number of inputs.
        width: number of features.
        seeds: one per ensemble member.
        hidden: widths of the hidden layers, at least one.
        activation: "tanh", "gelu" or "relu".
        input_scale: inputs are divided by it; the half-width of their range is a good choice.
        scale: of the features; at 1 each has a size of about one half.
        dtype: a floating-point dtype.

    Returns:
        An MLP whose parameters have the ensemble's axis in front.

    Raises:
        TypeError, ValueError: a size is not a positive integer, a scale is not positive, no hidden layer, no seeds or
            repeated ones, an unknown activation, a `dtype` that is not floating-point.

    Example:
        >>> two = mesa.random_mlp(x_dim=1, width=8, seeds=[0, 1])
        >>> tuple(two(torch.zeros(2, 5, 1)).shape)  # one slice a seed
        (2, 2, 5, 8)
    """
    if not hidden:
        raise ValueError("hidden: expected at least one hidden layer, got none")
    inner = [positive_integer(f"hidden[{index}]", size) for index, size in enumerate(hidden)]
    sizes = [positive_integer("x_dim", x_dim), *inner, positive_integer("width", width)]
    size = positive_number("scale", scale)
    floating_dtype("dtype", dtype)
    streams = generators(seeds, "features")

    def normal(std: float, *shape: int) -> Tensor:
        return std * torch.stack([torch.randn(*shape, generator=stream, dtype=dtype) for stream in streams])

    weights = [normal(2 / sizes[0] ** 0.5, sizes[1], sizes[0])]
    biases = [normal(1.0, sizes[1])]
    for index, (before, after) in enumerate(pairwise(sizes[1:])):
        gain = size / 2 if index == len(inner) - 1 else 2**0.5
        weights.append(normal(gain / before**0.5, after, before))
        biases.append(torch.zeros(len(streams), after, dtype=dtype))
    return MLP(weights, biases, activation, input_scale)


class BatchFeatures(NamedTuple):
    """The features of a batch's inputs; the queries' task axis has size one where all tasks ask the same queries.

    Shapes:
        context: (*ensemble, task, context, feature)
        query: (*ensemble, task or 1, query, feature)
    """

    context: Float[Tensor, "*ensemble task context feature"]
    query: Float[Tensor, "*ensemble _ query feature"]

    def answers(self, weights: Float[Tensor, "*ensemble task y feature"]) -> Float[Tensor, "*ensemble task query y"]:
        """V m(x_q) for linear models V on the features, shape (*ensemble, task, query, y)."""
        if self.query.shape[-3] == weights.shape[-3]:
            answers: Tensor = self.query @ weights.mT
        else:  # one product of two matrices: a broadcast one would copy the features for every task
            stacked = weights.flatten(-3, -2) @ self.query.squeeze(-3).mT
            answers = stacked.view(*stacked.shape[:-2], *weights.shape[-3:-1], stacked.shape[-1]).mT
        return answers


@typed
def features_once(features: Features, x: Float[Tensor, "... x"]) -> Float[Tensor, "... feature"]:
    """m(x), looked at once where all tasks have the same inputs: the task axis of the result then has size one.

    Under automatic differentiation in x every task keeps its own.

    Args:
        features: x -> m(x).
        x: inputs, shape (*ensemble, task, point, x), or with fewer axes, which have no tasks.

    Returns:
        Shape (*ensemble, task or 1, point, feature).

    Raises:
        ValueError: `features` gives something else than one row of floating-point features for each input.
    """
    if x.dim() > 2 and not x.requires_grad and bool((x == x[..., :1, :, :]).all()):
        x = x[..., :1, :, :]
    seen: object = features(x)
    if not isinstance(seen, Tensor) or not seen.is_floating_point() or seen.shape[-3:-1] != x.shape[-3:-1]:
        got = tuple(seen.shape) if isinstance(seen, Tensor) else type(seen).__name__
        raise ValueError(
            f"features: expected a floating-point tensor with one row of features for each input, axes "
            f"{tuple(x.shape[-3:-1])} before the last one, got {got}"
        )
    return seen


@typed
def batch_features(features: Features, batch: TaskBatch) -> BatchFeatures:
    """Features of every input of a batch, each distinct input looked at once where that is known to be possible.

    Queries that are the same in every task are computed for one of them (`features_once`), and a context that was drawn
    from among the queries (`TaskBatch.context_index`) is looked up.

    Args:
        features: x -> m(x).
        batch: its inputs are used.

    Returns:
        BatchFeatures.

    Raises:
        ValueError: `features` gives something else than one row of floating-point features for each input.

    Example:
        >>> mlp = mesa.random_mlp(x_dim=10, width=6, seeds=[0], dtype=torch.float64)
        >>> tuple(mesa.batch_features(mlp, batch).context.shape)
        (1, 4, 10, 6)
    """
    query = features_once(features, batch.query_x)
    differentiated = batch.query_x.requires_grad or batch.context_x.requires_grad
    if batch.context_index is not None and not differentiated:
        return BatchFeatures(_looked_up(query.squeeze(-3), batch.context_index), query)
    context = features_once(features, batch.context_x)
    return BatchFeatures(context.expand(*context.shape[:-3], batch.num_tasks, *context.shape[-2:]), query)


def _looked_up(pool: Tensor, index: Tensor) -> Tensor:
    """Rows of (*ensemble, query, feature) by (*axes, task, context), as (*ensemble, task, context, feature)."""
    members = pool.shape[:-2]
    offsets = pool.shape[-2] * torch.arange(members.numel(), device=pool.device).view(*members, 1, 1)
    return nn.functional.embedding(index + offsets, pool.flatten(0, -2))  # faster than `gather`, forth and back


@typed
def sum_of_products(
    values: Float[Tensor, "*axes context y"], keys: Float[Tensor, "*axes context feature"]
) -> Float[Tensor, "*axes y feature"]:
    """sum_i v_i k_i^T over a context, for few numbers a value: several times faster than a product of small matrices.

    Args:
        values: v_i, shape (*axes, context, y).
        keys: k_i, shape (*axes, context, feature).

    Returns:
        Shape (*axes, y, feature).
    """
    total: Tensor = (values.unsqueeze(-1) * keys.unsqueeze(-2)).sum(-3)
    return total


@typed
def checked_start(
    features: MLP, start: Float[Tensor, "*ensemble y feature"] | None
) -> Float[Tensor, "*ensemble y feature"]:
    """A copy of W_0, a linear model on the features that a learner starts from; zeros for one target if it is None.

    Raises:
        TypeError, ValueError: `start` has another dtype, other ensemble axes or another width than the features.
    """
    first = features.weights[0]
    members = first.shape[:-2]
    if start is None:
        return torch.zeros(*members, 1, features.width, dtype=first.dtype, device=first.device)
    finite_tensor("start", start, min_dims=2)
    same_kind("start", start, "features", first)
    if start.shape[:-2] != members:
        raise ValueError(
            f"start: expected the ensemble axes {tuple(members)}, those of features, got {tuple(start.shape[:-2])}"
        )
    trailing_shape("start", start, (start.shape[-2], features.width))
    return start.detach().clone()


@typed
def apply_start(
    start: Float[Tensor, "*ensemble y feature"], seen: Float[Tensor, "... feature"]
) -> Float[Tensor, "... y"]:
    """W_0 m(x) for features of shape (..., feature), or (*ensemble, task, point, feature) for an ensemble of W_0.

    Returns:
        The same axes, with y for feature.
    """
    if start.dim() == 2:
        moved: Tensor = seen @ start.mT
        return moved
    flat: Tensor = seen.flatten(-3, -2) @ start.mT
    return flat.view(*flat.shape[:-2], *seen.shape[-3:-1], flat.shape[-1])


@typed
def feature_batch(features: Features, batch: TaskBatch) -> TaskBatch:
    """The same tasks with m(x) in the place of x: what is linear on the new batch is linear in the features.

    Everything in this library that takes a `TaskBatch` can be used on it: explicit gradient descent becomes gradient
    descent on 1/(2N) sum_i |W m(x_i) - y_i|^2, and a constructed layer a step of it.

    Args:
        features: x -> m(x).
        batch: the tasks.

    Returns:
        A TaskBatch with context_x (*ensemble, task, context, feature) and query_x (*ensemble, task, query, feature).
        There is no teacher: the targets need not be linear in the features.

    Raises:
        TypeError, ValueError: see `batch_features`.

    Example:
        >>> mlp = mesa.random_mlp(x_dim=10, width=6, seeds=[0], dtype=torch.float64)
        >>> mesa.feature_batch(mlp, batch).x_dim
        6
    """
    context, query = batch_features(features, batch)
    tasks = context.shape[:-2]
    return replace(
        batch,
        context_x=context,
        context_y=batch.context_y.expand(*tasks, *batch.context_y.shape[-2:]),
        query_x=query.expand(*tasks, *query.shape[-2:]),
        query_y=batch.query_y.expand(*tasks, *batch.query_y.shape[-2:]),
        teacher=None,
        context_index=None,
    )
