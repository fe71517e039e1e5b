"""What every in-context learner has in common, whatever it is inside.

A hand construction, a trained transformer, explicit gradient descent and least squares are all *learners*: they take a
`TaskBatch` and predict its query targets. Those whose prediction is linear in the query also have *implicit weights* V,
with prediction = V x_q.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import broadcastable, floating_tensor, same_kind, typed

Learner = Callable[[TaskBatch], Float[Tensor, "*ensemble task query y"]]
"""TaskBatch -> predictions of shape (*ensemble, task, query, y)."""


@runtime_checkable
class LinearLearner(Protocol):
    """A learner whose prediction is linear in the query: prediction = V x_q with V = `implicit_weights`.

    Shapes:
        implicit_weights(batch): (*ensemble, task, y, x)
        prediction, by calling the learner on a batch: (*ensemble, task, query, y)

    Example:
        >>> isinstance(mesa.gradient_descent_learner(eta=1.0), mesa.LinearLearner)
        True
    """

    def __call__(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predict the query targets, shape (*ensemble, task, query, y)."""
        ...

    def implicit_weights(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
        """The matrix V of the linear map from a query to its prediction, shape (*ensemble, task, y, x)."""
        ...


@typed
def predict_linear(weights: Float[Tensor, "... task y x"], batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
    """Predictions V x_q of a linear model, for every query of every task.

    Args:
        weights: V, shape (*ensemble, task, y, x).
        batch: its query_x has shape (*ensemble, task, query, x).

    Returns:
        Shape (*ensemble, task, query, y).

    Raises:
        TypeError: `weights` has another dtype than the batch.
        ValueError: the last axis of `weights` is not that of query_x, or the leading axes do not broadcast.

    Example:
        >>> prediction = mesa.predict_linear(batch.teacher, batch)
        >>> torch.allclose(prediction, batch.query_y)  # the tasks are without noise
        True
    """
    floating_tensor("weights", weights, min_dims=2)
    same_kind("weights", weights, "the batch", batch.query_x)
    if weights.shape[-1] != batch.x_dim:
        raise ValueError(f"weights: expected {batch.x_dim} input dimensions, got shape {tuple(weights.shape)}")
    broadcastable("weights", weights.shape[:-2], "query_x", batch.query_x.shape[:-2])
    return batch.query_x @ weights.mT


@dataclass(frozen=True)
class FittedLinearModel:
    """The learner that fits a linear model to each context and applies it to the queries.

    ``FittedLinearModel(partial(gradient_descent_weights, eta=1.5))`` is explicit gradient descent as a learner.

    Args:
        fit: TaskBatch -> weights of shape (*ensemble, task, y, x); it must not look at the queries or the teacher.

    Example:
        >>> learner = mesa.FittedLinearModel(mesa.least_squares_weights)
        >>> torch.equal(learner(batch), mesa.least_squares(batch))
        True
    """

    fit: Callable[[TaskBatch], Float[Tensor, "*ensemble task y x"]]

    def implicit_weights(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
        """The fitted weights, shape (*ensemble, task, y, x)."""
        return self.fit(batch)

    def __call__(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predictions of the fitted weights, shape (*ensemble, task, query, y)."""
        return predict_linear(self.fit(batch), batch)
