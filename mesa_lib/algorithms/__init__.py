"""Explicit learning algorithms, written without any network."""

from mesa_lib.algorithms.gradient_descent import (
    context_loss,
    gradient_descent,
    gradient_descent_learner,
    gradient_descent_weights,
    loss_gradient,
    step_moved_targets,
)
from mesa_lib.algorithms.least_squares import (
    least_squares,
    least_squares_weights,
    ridge_regression,
    ridge_regression_weights,
)

__all__ = [
    "context_loss",
    "gradient_descent",
    "gradient_descent_learner",
    "gradient_descent_weights",
    "least_squares",
    "least_squares_weights",
    "loss_gradient",
    "ridge_regression",
    "ridge_regression_weights",
    "step_moved_targets",
]
