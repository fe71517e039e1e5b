"""The book's pictures: each function takes results, draws one figure and returns it."""

from mesa_lib.figures.construction import block_weights, frozen_length, token_moves
from mesa_lib.figures.memory import recall_against_pairs, recall_against_steps, written_memory
from mesa_lib.figures.regression import (
    loss_against_eta,
    moving_bowl,
    one_dimensional_tasks,
    step_beside_moved_targets,
)
from mesa_lib.figures.style import COLORS, DIVERGING, LINES, STYLE, look, panel_label, styled
from mesa_lib.figures.training import agreement_curves, interpolation_curves, loss_curves, products

__all__ = [
    "COLORS",
    "DIVERGING",
    "LINES",
    "STYLE",
    "agreement_curves",
    "block_weights",
    "frozen_length",
    "interpolation_curves",
    "look",
    "loss_against_eta",
    "loss_curves",
    "moving_bowl",
    "one_dimensional_tasks",
    "panel_label",
    "products",
    "recall_against_pairs",
    "recall_against_steps",
    "step_beside_moved_targets",
    "styled",
    "token_moves",
    "written_memory",
]
