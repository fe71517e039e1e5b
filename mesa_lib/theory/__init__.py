"""Exact theory: what a trained number should be, before anything is trained."""

from mesa_lib.theory.memory import least_squares_recall_error, sum_rule_recall_error
from mesa_lib.theory.one_layer import (
    effective_examples,
    optimal_eta,
    optimal_loss,
    plateau_loss,
    population_loss,
    twin_share,
    zero_loss,
)
from mesa_lib.theory.step_size import tune_eta

__all__ = [
    "effective_examples",
    "least_squares_recall_error",
    "optimal_eta",
    "optimal_loss",
    "plateau_loss",
    "population_loss",
    "sum_rule_recall_error",
    "tune_eta",
    "twin_share",
    "zero_loss",
]
