"""The named experiments: the paper's figures and the book's own, each at several scales."""

import difflib
from collections.abc import Mapping

from mesa_lib.experiments.catalogue.depth import FIGURE_3, FIGURE_7, GARG, GD_PLUS_PLUS
from mesa_lib.experiments.catalogue.kinds import SCALES, Experiment, Published, smoke
from mesa_lib.experiments.catalogue.one_layer import FIGURE_1, FIGURE_2, OTHER_TASKS, PLATEAUS, SIZES, TEXT_OR_CODE
from mesa_lib.experiments.catalogue.past_linear import FIGURE_4, FIGURE_5, SOFTMAX, WAVES
from mesa_lib.experiments.networks import SettingError

__all__ = ["EXPERIMENTS", "SCALES", "Experiment", "Published", "experiment", "smoke"]

EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        FIGURE_1, FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_7, SOFTMAX, PLATEAUS,
        GD_PLUS_PLUS, TEXT_OR_CODE, SIZES, OTHER_TASKS, WAVES, GARG,
    )
}  # fmt: skip


def experiment(name: str) -> Experiment:
    """The experiment of a name.

    Raises:
        SettingError: there is none; the message says the near ones.
    """
    if name not in EXPERIMENTS:
        close = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.5)
        near = f"near it: {', '.join(close)}" if close else f"there are: {', '.join(EXPERIMENTS)}"
        raise SettingError(f"experiment: there is no {name!r}; {near}")
    return EXPERIMENTS[name]
