"""Training: losses on the query, and one loop for every learner."""

from mesa_lib.training.course import TrainingState
from mesa_lib.training.losses import (
    Loss,
    clamped_query_loss,
    expected_query_loss,
    expected_task_losses,
    geman_mcclure_query_loss,
    sampled_query_loss,
)
from mesa_lib.training.trainer import TrainingRun, TrainingSettings, clip_members, paper_settings, train

__all__ = [
    "Loss",
    "TrainingRun",
    "TrainingSettings",
    "TrainingState",
    "clamped_query_loss",
    "clip_members",
    "expected_query_loss",
    "expected_task_losses",
    "geman_mcclure_query_loss",
    "paper_settings",
    "sampled_query_loss",
    "train",
]
