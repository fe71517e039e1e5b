"""Experiments: named runs with the paper's settings and ours, resumable, on one machine or many.

`python -m mesa_lib list` names them, `run` trains, `show` prints and draws; the files of a run are described in
`mesa_lib.experiments.files`.
"""

from mesa_lib.experiments.catalogue import EXPERIMENTS, SCALES, Experiment, Published, experiment
from mesa_lib.experiments.files import RunError
from mesa_lib.experiments.networks import (
    AttentionNetwork,
    CopyingNetwork,
    FeatureNetwork,
    FeatureStep,
    GDPlusPlusNetwork,
    ResidualNetwork,
    SettingError,
)
from mesa_lib.experiments.plans import Plan, run_all
from mesa_lib.experiments.running import Job, run_job
from mesa_lib.experiments.settings import Evaluation, Objective, Settings, override
from mesa_lib.experiments.showing import show, table

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "AttentionNetwork",
    "CopyingNetwork",
    "Evaluation",
    "Experiment",
    "FeatureNetwork",
    "FeatureStep",
    "GDPlusPlusNetwork",
    "Job",
    "Objective",
    "Plan",
    "Published",
    "ResidualNetwork",
    "RunError",
    "SettingError",
    "Settings",
    "experiment",
    "override",
    "run_all",
    "run_job",
    "show",
    "table",
]
