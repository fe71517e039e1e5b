"""What a named experiment is, and what several of them share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mesa_lib.experiments.networks import SettingError
from mesa_lib.experiments.settings import Evaluation, Objective, Settings
from mesa_lib.tasks import LinearTasks

SCALES = ("paper", "book", "smoke")


@dataclass(frozen=True)
class Published:
    """A number to hold ours against.

    Attributes:
        part: of the experiment.
        measure: a name among the results of a seed.
        value: the number.
        source: where it is from.
    """

    part: str
    measure: str
    value: float
    source: str


@dataclass(frozen=True)
class Experiment:
    """A figure's worth of trainings.

    Attributes:
        name: what the command line calls it.
        title: one line of what is trained.
        scales: scale -> part -> its settings. "paper" is as the released code has it, "book" as this book's chapters
            have it. ("smoke" is made from the others.)
        seeds: scale -> how many seeds, from 0 on.
        together: whether all seeds are trained as one ensemble. The numbers of one seed alone differ from those in
            company by rounding, which long trainings of deep networks do not forget.
        text: overrides that turn the paper's scale from what the released code does to what the paper's text says.
        notes: where the paper's scale is not what the released code does, and what could not be checked.
        published: numbers to hold ours against.
    """

    name: str
    title: str
    scales: Mapping[str, Mapping[str, Settings]]
    seeds: Mapping[str, int]
    together: bool = False
    text: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    published: tuple[Published, ...] = field(default=())

    def parts(self, scale: str) -> Mapping[str, Settings]:
        """The settings at a scale.

        Raises:
            SettingError: the experiment has no such scale.
        """
        if scale == "smoke":
            return {part: smoke(settings) for part, settings in self.scales[self.largest].items()}
        if scale not in self.scales:
            known = ", ".join(repr(one) for one in SCALES if one == "smoke" or one in self.scales)
            raise SettingError(f"--scale: expected one of {known} for {self.name}, got {scale!r}")
        return self.scales[scale]

    @property
    def largest(self) -> str:
        """The scale that is the default: the book's where there is one."""
        return "book" if "book" in self.scales else "paper"


def smoke(settings: Settings) -> Settings:
    """The same part in some steps and on some tasks: whether it runs, in a second or two."""
    training = replace(settings.training, num_steps=6, batch_size=8, warmup_steps=2, record_every=3)
    judged = replace(
        settings.evaluation,
        num_tasks=32,
        num_loops=min(settings.evaluation.num_loops, 4),
        num_signals=min(settings.evaluation.num_signals, 2),
    )
    return replace(settings, training=training, evaluation=judged)


# What the released code does: x ~ U(-1/2, 1/2), one sampled query a task, batches of 2048, judged on 10^4 tasks.
AS_RELEASED = LinearTasks(input_range=0.5)
SAMPLED = Objective("sampled")
JUDGED = Evaluation(num_tasks=10_000)
HALF_MSE = "the released code, run once for this book"
OUR_START = "first weights are normal here, in the released code they are cut off at two standard deviations"
# The code's variance scaling: variance 0.002 / L over the fan-in 11.
START_1, START_2, START_5, START_10 = ((0.002 / (layers * 11)) ** 0.5 for layers in (1, 2, 5, 10))

TEXT_LINEAR = ("tasks.input_range=1", "training.clip_norm=10", "training.betas=0.9,0.999")
