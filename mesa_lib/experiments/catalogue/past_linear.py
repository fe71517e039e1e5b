"""Past the linear layer: MLPs, copying and softmax."""

from dataclasses import replace
from typing import Literal

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
from mesa_lib.experiments.networks import AttentionNetwork, CopyingNetwork, FeatureNetwork, FeatureStep, ResidualNetwork
from mesa_lib.experiments.settings import Evaluation, Settings
from mesa_lib.tasks import LinearTasks, SineTasks
from mesa_lib.training import TrainingSettings, paper_settings

_PAPER_WAVES = SineTasks(tied=True)
_PAPER_SINE = replace(paper_settings(num_steps=20_000, record_every=1000), clip_norm=100.0)
_POOL = SineTasks(queries="pool", num_queries=64)
_BOOK_SINE = TrainingSettings(num_steps=1200, batch_size=64, learning_rate=0.006, warmup_steps=100, record_every=50)

FIGURE_4 = Experiment(
    name="figure-4",
    title="sine waves: an MLP before attention beside an MLP whose last layer takes a gradient step",
    scales={
        "paper": {
            "block": Settings(_PAPER_WAVES, ResidualNetwork(), _PAPER_SINE, SAMPLED, Evaluation(2048)),
            "mlp-and-step": Settings(
                _PAPER_WAVES,
                FeatureStep(width=40, hidden=160, activation="gelu"),
                replace(_PAPER_SINE, learning_rate=3e-4, betas=(0.9, 0.999)),
                SAMPLED,
                Evaluation(2048),
            ),
        },
        "book": {
            "block": Settings(_POOL, FeatureNetwork(), _BOOK_SINE, SAMPLED),
            "mlp-and-step": Settings(_POOL, FeatureStep(), _BOOK_SINE, SAMPLED),
        },
    },
    seeds={"paper": 1, "book": 3, "smoke": 1},
    text=("tasks.amplitude=0.1,5", "tasks.tied=false", "training.betas=0.9,0.999", "training.clip_norm=10"),
    notes=(
        "the MLP with one step: in the released code its features see an embedding of (x, y), its step size is fixed "
        "at 0.1, and its last step starts from no learned model; here it is `MetaLearnedMLP`",
        "first weights as in this book's chapter, not the released code's: the block's loss falls from about 85",
    ),
    published=(
        Published("block", "loss", 0.0010, "read off the released notebook's figure, half-MSE"),
        Published("mlp-and-step", "loss", 0.0014, "read off the released notebook's figure, half-MSE"),
    ),
)

_BRIEF = replace(_BOOK_SINE, num_steps=500, warmup_steps=50, record_every=25)
_SHORTER_SINE = replace(_BOOK_SINE, num_steps=1000)
_EQUAL = FeatureNetwork(equal_start=True)

WAVES = Experiment(
    name="waves",
    title="other waves, starts and blocks, for the chapter on deep features",
    scales={
        "book": {
            name: Settings(tasks, network, training, SAMPLED)
            for name, tasks, network, training in (
                ("tied-block", replace(_POOL, tied=True), FeatureNetwork(), _SHORTER_SINE),
                ("tied-mlp-and-step", replace(_POOL, tied=True), FeatureStep(), _SHORTER_SINE),
                ("residual-block", _POOL, ResidualNetwork(), _SHORTER_SINE),
                ("tanh", _POOL, FeatureNetwork(), _BRIEF),
                ("gelu", _POOL, FeatureNetwork(activation="gelu"), _BRIEF),
                ("equal-start", _POOL, _EQUAL, _BRIEF),
                ("two-frequencies", replace(_POOL, wave="two frequencies"), _EQUAL, _BOOK_SINE),
                ("square", replace(_POOL, wave="square"), _EQUAL, _BOOK_SINE),
            )
        }
    },
    seeds={"book": 3, "smoke": 1},
    notes=("the chapter has ten seeds of tanh, gelu and equal-start: --seeds 10",),
)

_BOOK_COPYING = TrainingSettings(
    num_steps=1200, batch_size=128, learning_rate=0.01, warmup_steps=100, clip_norm=1.0, record_every=25
)
_ASKED_8 = replace(AS_RELEASED, num_queries=8)

_FIRST_LAYERS: tuple[Literal["softmax", "linear"], ...] = ("softmax", "linear")

FIGURE_5 = Experiment(
    name="figure-5",
    title="two layers on alternating tokens: first copy, then step",
    scales={
        "paper": {
            "softmax-first": Settings(
                AS_RELEASED,
                CopyingNetwork(start_scale=(0.02 / (2 * 20)) ** 0.5),
                replace(paper_settings(num_steps=10_000, record_every=500), clip_norm=10.0),
                SAMPLED,
                replace(JUDGED, num_signals=64),
            )
        },
        "book": {
            "softmax-first": Settings(
                _ASKED_8, CopyingNetwork(), _BOOK_COPYING, SAMPLED, Evaluation(2000, num_signals=16)
            ),
            "linear-first": Settings(
                _ASKED_8,
                CopyingNetwork(first="linear", start_scale=0.15),
                replace(_BOOK_COPYING, num_steps=1000),
                SAMPLED,
                Evaluation(2000, num_signals=16),
            ),
            "linear-first-one-hot": Settings(
                _ASKED_8,
                CopyingNetwork("one-hot", first="linear", start_scale=0.15),
                replace(_BOOK_COPYING, num_steps=1000),
                SAMPLED,
                Evaluation(2000, num_signals=16),
            ),
            **{
                f"{first}-first-by-place": Settings(
                    _ASKED_8,
                    CopyingNetwork("one-hot", first=first, start_scale=0.15, by_place=True),
                    replace(_BOOK_COPYING, num_steps=400),
                    SAMPLED,
                    Evaluation(2000, num_signals=16),
                )
                for first in _FIRST_LAYERS
            },
        },
    },
    seeds={"paper": 1, "book": 3, "smoke": 1},
    text=("tasks.input_range=1", "network.code_width=20", "training.betas=0.9,0.999"),
    notes=(
        "the prediction is read from a slot of its own, which starts at zero; the released code reads the code's last "
        "number, and first unlearns that",
        "scores are not divided by sqrt(20), and the signal is measured without the identity (see `copying_signal`)",
        OUR_START,
    ),
    published=(
        Published("softmax-first", "relative_loss", 0.2057 / (5 / 12), HALF_MSE + ", after 8,000 steps"),
        Published("softmax-first", "signal_next", 1.0, "read off the released notebook's figure"),
    ),
)

_SOFTMAX_NOTE = "scores are not divided by sqrt(11), as the released code does; the factor is left to W_Q"
_BOOK_SOFTMAX = TrainingSettings(
    num_steps=300, batch_size=256, clip_norm=1.0, betas=(0.9, 0.98), record_every=25
)  # fmt: skip
_ASKED_8_WIDE = LinearTasks(num_queries=8)

SOFTMAX = Experiment(
    name="softmax",
    title="softmax attention with one and two heads (appendix A.9, Figure 12)",
    scales={
        "paper": {
            name: Settings(
                AS_RELEASED,
                AttentionNetwork(num_heads=heads, start_scale=START_1, attention="softmax"),
                paper_settings(),
                SAMPLED,
                replace(JUDGED, reference="one step"),
            )
            for name, heads in {"one-head": 1, "two-heads": 2}.items()
        },
        "book": {
            name: Settings(
                _ASKED_8_WIDE,
                replace(network, start_scale=0.1),
                _BOOK_SOFTMAX,
                SAMPLED,
                Evaluation(reference="one step"),
            )
            for name, network in {
                "one-head": AttentionNetwork(attention="softmax"),
                "two-heads": AttentionNetwork(num_heads=2, attention="softmax"),
                "four-heads": AttentionNetwork(num_heads=4, attention="softmax"),
                "two-heads-with-sink": AttentionNetwork(num_heads=2, attention="softmax", sink=1.0),
                "linear": AttentionNetwork(),
            }.items()
        },
    },
    seeds={"paper": 1, "book": 3, "smoke": 1},
    text=TEXT_LINEAR,
    notes=(_SOFTMAX_NOTE, OUR_START),
)
