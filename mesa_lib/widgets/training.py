"""A widget for the chapter on training: drag through a recorded run."""

from typing import Any

import traitlets

from mesa_lib.widgets.base import Widget, recorded


class TrainingScrubber(Widget, front_end="training_scrubber"):
    """A training of one layer, recorded for four seeds: loss, cosine with a gradient step, canonical products.

    Losses are exact, over all tasks and queries, and relative to that of predicting zero. The products are in the form
    "norm" of `canonicalize`, which exists on the plateau too. The record is made by `python -m tools.record`.
    The traits `seed` and `record` hold what is shown now.

    Args:
        seed: one of 0, 1, 2, 3; seed 2 waits on the plateau of the rank-one twin.
        record: which record to open at, from 0; the steps of the records are in `steps`.

    Raises:
        ValueError: a seed or a record that was not recorded.
    """

    seed = traitlets.Int().tag(sync=True)
    record = traitlets.Int().tag(sync=True)

    def __init__(self, seed: int = 0, record: int = 6, **kwargs: Any) -> None:
        seeds, steps = self.run["seeds"], self.run["steps"]
        if seed not in seeds:
            raise ValueError(f"seed: expected one of {', '.join(map(str, seeds))}, got {seed!r}")
        if record not in range(len(steps)):
            raise ValueError(f"record: expected a number from 0 to {len(steps) - 1}, got {record!r}")
        super().__init__(seed=seed, record=record, **{"finding": _FINDING} | kwargs)

    @property
    def run(self) -> dict[str, Any]:
        """The record, as `tools.record` writes it: arrays are (seed, record, ...)."""
        run: dict[str, Any] = recorded("training_run")
        return run

    @property
    def steps(self) -> list[int]:
        """The training step of each record."""
        return list(self.run["steps"])

    def describe(self) -> str:
        """The chosen seed's loss and cosine at the chosen step."""
        member = self.run["seeds"].index(self.seed)
        loss, cosine = (self.run[name][member][self.record] for name in ("loss", "cosine"))
        return (
            f"Training of one layer, seed {self.seed}, step {self.steps[self.record]}: relative loss {loss:.3f}, where "
            f"one gradient step has {self.run['one_step']:.3f}; cosine with that step {cosine:.3f}."
        )


_FINDING = (
    "Three seeds land on the loss of one gradient step, and their products on those of Proposition 1; seed 2 waits at "
    "the loss of the rank-one twin, whose products are others."
)
