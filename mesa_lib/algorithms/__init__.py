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
from mesa_lib.algorithms.second_order import (
    NewtonStart,
    chebyshev,
    chebyshev_weights,
    conjugate_gradient,
    conjugate_gradient_weights,
    curvature_correction,
    gd_plus_plus,
    gd_plus_plus_weights,
    momentum,
    momentum_weights,
    newton,
    newton_weights,
)

__all__ = [
    "NewtonStart",
    "chebyshev",
    "chebyshev_weights",
    "conjugate_gradient",
    "conjugate_gradient_weights",
    "context_loss",
    "curvature_correction",
    "gd_plus_plus",
    "gd_plus_plus_weights",
    "gradient_descent",
    "gradient_descent_learner",
    "gradient_descent_weights",
    "least_squares",
    "least_squares_weights",
    "loss_gradient",
    "momentum",
    "momentum_weights",
    "newton",
    "newton_weights",
    "ridge_regression",
    "ridge_regression_weights",
    "step_moved_targets",
]
