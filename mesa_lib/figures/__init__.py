"""The book's pictures: each function takes results, draws one figure and returns it."""

from mesa_lib.figures.construction import block_weights, frozen_length, token_moves
from mesa_lib.figures.depth import agreement_ladder, layer_numbers, layer_products, loss_ladders, network_interpolation
from mesa_lib.figures.memory import recall_against_pairs, recall_against_steps, written_memory
from mesa_lib.figures.off_distribution import Sweep, divergence, evaluation_sets, loss_by_size, roll_outs, sweeps
from mesa_lib.figures.other_tasks import (
    longer_tests,
    loss_rows,
    preconditioner_against_variance,
    steps_on_one_curve,
    stored_start,
)
from mesa_lib.figures.plateaus import gauges, twin_landscapes, waiting_seeds
from mesa_lib.figures.regression import (
    loss_against_eta,
    moving_bowl,
    one_dimensional_tasks,
    step_beside_moved_targets,
)
from mesa_lib.figures.spectral import eigenvalue_moves, method_curves
from mesa_lib.figures.style import COLORS, DIVERGING, LINES, STYLE, look, panel_label, styled
from mesa_lib.figures.training import agreement_curves, interpolation_curves, loss_curves, products

__all__ = [
    "COLORS",
    "DIVERGING",
    "LINES",
    "STYLE",
    "Sweep",
    "agreement_curves",
    "agreement_ladder",
    "block_weights",
    "divergence",
    "eigenvalue_moves",
    "evaluation_sets",
    "frozen_length",
    "gauges",
    "interpolation_curves",
    "layer_numbers",
    "layer_products",
    "longer_tests",
    "look",
    "loss_against_eta",
    "loss_by_size",
    "loss_curves",
    "loss_ladders",
    "loss_rows",
    "method_curves",
    "moving_bowl",
    "network_interpolation",
    "one_dimensional_tasks",
    "panel_label",
    "preconditioner_against_variance",
    "products",
    "recall_against_pairs",
    "recall_against_steps",
    "roll_outs",
    "step_beside_moved_targets",
    "steps_on_one_curve",
    "stored_start",
    "styled",
    "sweeps",
    "token_moves",
    "twin_landscapes",
    "waiting_seeds",
    "written_memory",
]
