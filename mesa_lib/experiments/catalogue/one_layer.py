"""One layer of linear attention: the step, other tasks and sizes, and seeds that wait."""

from dataclasses import replace

from mesa_lib.experiments.catalogue.kinds import (
    AS_RELEASED,
    HALF_MSE,
    JUDGED,
    OUR_START,
    SAMPLED,
    START_1,
    TEXT_LINEAR,
    Experiment,
    Published,
)
from mesa_lib.experiments.networks import AttentionNetwork
from mesa_lib.experiments.settings import Evaluation, Settings
from mesa_lib.tasks import LinearTasks
from mesa_lib.training import TrainingSettings, paper_settings

_LAYER = AttentionNetwork(start_scale=START_1)
_BOOK_LAYER = TrainingSettings(num_steps=400, batch_size=64)
FIGURE_1 = Experiment(
    name="figure-1",
    title="one layer, trained for one step, applied again and again with damping",
    scales={
        "paper": {
            "one-layer": Settings(
                AS_RELEASED, _LAYER, paper_settings(), SAMPLED, replace(JUDGED, reference="one step", num_loops=50)
            )
        },
        "book": {
            "one-layer": Settings(
                LinearTasks(),
                AttentionNetwork(start_scale=0.0135),
                _BOOK_LAYER,
                evaluation=Evaluation(reference="one step", num_loops=50),
            )
        },
    },
    seeds={"paper": 1, "book": 3, "smoke": 1},
    text=TEXT_LINEAR,
    notes=(
        "the paper's Figure 1 also has panels that are drawings; what is run is the roll-out of its section A.6",
        "its Figure 10 changes the damping: --set damping=0.5, for instance",
        OUR_START,
    ),
    published=(
        Published("one-layer", "roll_out_mean_1", 0.217 / (5 / 12), "read off the released notebook's figure"),
        Published("one-layer", "roll_out_mean_4", 0.13 / (5 / 12), "read off the released notebook's figure"),
    ),
)

FIGURE_2 = Experiment(
    name="figure-2",
    title="one layer of linear attention beside one step of gradient descent",
    scales={
        "paper": {
            "one-layer": Settings(AS_RELEASED, _LAYER, paper_settings(), SAMPLED, replace(JUDGED, reference="one step"))
        },
        "book": {
            "one-layer": Settings(
                LinearTasks(),
                AttentionNetwork(start_scale=0.0135),
                _BOOK_LAYER,
                evaluation=Evaluation(reference="one step"),
            )
        },
    },
    seeds={"paper": 5, "book": 10, "smoke": 2},
    text=TEXT_LINEAR,
    notes=(OUR_START,),
    published=(
        Published("one-layer", "relative_loss", 0.2053 / (5 / 12), HALF_MSE),
        Published("one-layer", "sensitivity_cosine", 1.0, "read off the released notebook's figure"),
        Published("one-layer", "prediction_difference", 0.02, "read off the released notebook's figure"),
    ),
)

_PATIENT = TrainingSettings(num_steps=320, batch_size=16, learning_rate=0.01, decay=False)

PLATEAUS = Experiment(
    name="plateaus",
    title="seeds that wait: one head beside two, and a larger start (appendix A.11, Figure 15)",
    scales={
        "paper": {
            name: Settings(
                AS_RELEASED,
                AttentionNetwork(num_heads=heads, start_scale=START_1),
                paper_settings(),
                SAMPLED,
                JUDGED,
            )
            for name, heads in {"one-head": 1, "two-heads": 2}.items()
        },
        "book": {
            name: Settings(LinearTasks(), AttentionNetwork(num_heads=heads, start_scale=scale), _PATIENT)
            for name, heads, scale in (
                ("one-head", 1, 0.0135), ("two-heads", 2, 0.0135), ("larger-start", 1, 0.05)
            )
        },
    },
    seeds={"paper": 10, "book": 100, "smoke": 2},
    text=TEXT_LINEAR,
    notes=(
        "the right half of the figure, one block with an MLP on 8192 fixed tasks, has no published settings",
        OUR_START,
    ),
)  # fmt: skip


_EARLY = replace(paper_settings(num_steps=1500, record_every=50), batch_size=256)

TEXT_OR_CODE = Experiment(
    name="text-or-code",
    title="one layer, trained as the paper's text says and as its code does, for the chapter on errata",
    scales={
        "book": {
            name: Settings(
                AS_RELEASED,
                AttentionNetwork(start_scale=scale),
                replace(_EARLY, clip_norm=clip, betas=betas),
                evaluation=Evaluation(reference="one step"),
            )
            for name, scale, clip, betas in (
                ("text", 0.002, 10.0, (0.9, 0.999)),
                ("code", 0.0135, 0.001, (0.9, 0.98)),
            )
        }
    },
    seeds={"book": 3, "smoke": 1},
    notes=("both with the inputs of the code, exact in the query, on batches of 256",),
)

_TRIED = (5, 10, 20)
_SHORT = replace(_BOOK_LAYER, num_steps=250)
_OTHER_SIZES = {f"d-{d}-n-{n}": LinearTasks(d, num_context=n) for d in _TRIED for n in _TRIED}
_OTHER_SIZES |= {f"{count}-targets": LinearTasks(y_dim=count) for count in (2, 5)}

SIZES = Experiment(
    name="sizes",
    title="one layer for other numbers of inputs, examples and targets, for the chapter Off distribution",
    scales={
        "book": {
            name: Settings(tasks, AttentionNetwork(), _SHORT, evaluation=Evaluation(reference="one step"))
            for name, tasks in _OTHER_SIZES.items()
        }
    },
    seeds={"book": 3, "smoke": 1},
    notes=("the paper's Figure 2 (centre, right) goes along d = N; the released code has no settings for it",),
)

_MEAN = ((1.0, -0.5, 0.8, 0.0, 0.3, -1.2, 0.6, -0.9, 0.4, -0.7),)
# Variances that fall by ten from the first axis to the last; their sum is that of x ~ U(-1, 1).
_FALLING = [10 ** (-axis / 9) for axis in range(10)]
_SHAPE = tuple(
    tuple(round(10 / 3 * one / sum(_FALLING), 6) if row == column else 0.0 for column in range(10))
    for row, one in enumerate(_FALLING)
)
_WIDER = AttentionNetwork(start_scale=0.1)
_BIASED = LinearTasks(teacher_mean=_MEAN, constant_input=True)

OTHER_TASKS = Experiment(
    name="other-tasks",
    title="one layer on tasks with another tail, noise, a shape, a mean or biases, for the chapter Other tasks",
    scales={
        "book": {
            name: Settings(tasks, network, training)
            for name, tasks, network, training in (
                ("signs", LinearTasks(inputs="rademacher"), _WIDER, _BOOK_LAYER),
                ("three-targets", LinearTasks(y_dim=3), _WIDER, _BOOK_LAYER),
                ("normal", LinearTasks(inputs="normal"), _WIDER, _BOOK_LAYER),
                ("noise", LinearTasks(noise_std=1.0), _WIDER, _BOOK_LAYER),
                ("laplace", LinearTasks(inputs="laplace"), _WIDER, _BOOK_LAYER),
                (
                    "shape",
                    LinearTasks(inputs="normal", input_covariance=_SHAPE),
                    AttentionNetwork(start_scale=0.3),
                    replace(_BOOK_LAYER, num_steps=800, learning_rate=0.03),
                ),
                ("mean", LinearTasks(teacher_mean=_MEAN), _WIDER, _BOOK_LAYER),
                ("mean-learned", LinearTasks(teacher_mean=_MEAN), replace(_WIDER, learned_start=True), _BOOK_LAYER),
                ("biases", LinearTasks(constant_input=True), _WIDER, _BOOK_LAYER),
                ("mean-biases", _BIASED, replace(_WIDER, num_heads=2), _BOOK_LAYER),
            )
        }
    },
    seeds={"book": 5, "smoke": 1},
    notes=("the chapter's shape has turned axes, which changes nothing but the basis",),
)
