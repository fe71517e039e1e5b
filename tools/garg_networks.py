"""Train the networks that the chapter on rival accounts reads: `python -m tools.garg_networks`.

The tasks are those of Garg et al. (2022): d = 20, x and w normal, up to 40 examples. Networks of linear attention with
1, 2 and 5 layers are trained in two ways: on prompts of exactly 40 examples ("frozen": P = (eta/40) I, whatever the
length later), and on prompts of every length from 1 to 40 with attention that divides by the length ("every"). The
result is one file, mesa_lib/results/garg_networks.safetensors, with the recipes, seeds and versions in its header.
"""

import argparse
import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

import mesa_lib as mesa
from tools.toc import ROOT

RESULT = ROOT / "mesa_lib" / "results" / "garg_networks.safetensors"
COMMAND = "python -m tools.garg_networks"
SEEDS = (0, 1, 2)
X_DIM, NUM_CONTEXT = 20, 40


@dataclass(frozen=True)
class Recipe:
    """How one network is trained; what is not here is as in `mesa_lib.TrainingSettings`.

    Attributes:
        num_layers: layers of one head each.
        every_length: whether prompts have every length and attention divides by it; else always 40 examples.
        num_steps: Adam steps.
        batch_size: fresh tasks per step and seed.
        learning_rate: Adam's peak rate.
        warmup_steps: steps of linear growth to it.
        clip_norm: largest norm of one seed's gradient.
        cap: the most that one task may count in the loss, in multiples of predicting zero; none if absent.
        start_scale: standard deviation of the first weights.
    """

    num_layers: int
    every_length: bool
    num_steps: int
    batch_size: int
    learning_rate: float = 0.01
    warmup_steps: int = 60
    clip_norm: float = 0.1
    cap: float | None = 2.0
    start_scale: float = 0.05

    @property
    def tasks(self) -> mesa.LinearTasks:
        """What it is trained on."""
        kind = mesa.PromptTasks if self.every_length else mesa.LinearTasks
        return kind(x_dim=X_DIM, num_context=NUM_CONTEXT, inputs="normal")

    def settings(self, num_steps: int | None = None) -> mesa.TrainingSettings:
        """The trainer's settings, with fewer steps for a smoke test."""
        steps = self.num_steps if num_steps is None else num_steps
        loss: mesa.Loss = mesa.expected_query_loss
        if self.cap is not None:
            loss = mesa.clamped_query_loss(self.cap * mesa.zero_loss(self.tasks))
        return mesa.TrainingSettings(
            num_steps=steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            warmup_steps=min(self.warmup_steps, steps - 1),
            clip_norm=self.clip_norm,
            betas=(0.9, 0.98),
            loss=loss,
            record_every=steps,
        )


RECIPES = {
    "frozen-1": Recipe(1, False, num_steps=400, batch_size=128, cap=None),
    "frozen-2": Recipe(2, False, num_steps=800, batch_size=128),
    "frozen-5": Recipe(5, False, num_steps=800, batch_size=128, clip_norm=0.03),
    "every-1": Recipe(1, True, num_steps=600, batch_size=160, cap=None),
    "every-2": Recipe(2, True, num_steps=800, batch_size=160),
    "every-5": Recipe(
        5, True, num_steps=1200, batch_size=160, learning_rate=0.003, warmup_steps=120, clip_norm=0.01
    ),
}  # fmt: skip


def train_recipe(recipe: Recipe, seeds: Sequence[int] = SEEDS, num_steps: int | None = None) -> mesa.TrainingRun:
    """Train one network from several seeds, each of which is trained as it would be alone."""
    layers = mesa.random_layers(recipe.num_layers, X_DIM, 1, seeds, scale=recipe.start_scale)
    start = mesa.AveragingTransformer(layers) if recipe.every_length else mesa.FreeTransformer(layers)
    return mesa.train(start, recipe.tasks, seeds, recipe.settings(num_steps))


def header(seconds: Mapping[str, float]) -> dict[str, str]:
    """What the file says of itself: texts, the structured ones as JSON."""
    return {
        "command": COMMAND,
        "seeds": json.dumps(SEEDS),
        "recipes": json.dumps({name: asdict(recipe) for name, recipe in RECIPES.items()}),
        "processor_seconds": json.dumps({name: round(value, 1) for name, value in seconds.items()}),
        "versions": json.dumps({"python": platform.python_version(), "torch": torch.__version__}),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train every recipe and write the file; with --smoke a few steps each, and no file."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--smoke", action="store_true", help="five steps of each recipe, nothing is written")
    parser.add_argument("--out", type=Path, default=RESULT, help="the file to write")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tensors: dict[str, Tensor] = {}
    seconds: dict[str, float] = {}
    for name, recipe in RECIPES.items():
        start = time.process_time()
        run = train_recipe(recipe, num_steps=5 if options.smoke else None)
        seconds[name] = time.process_time() - start
        state = run.learner.state_dict()
        tensors |= {f"{name}/{key}": value.contiguous() for key, value in state.items()}
        relative = run.losses[-1] / mesa.zero_loss(recipe.tasks)
        shown = " ".join(f"{float(loss):.3g}" for loss in relative)
        print(f"{name}: training loss / L0 {shown}, {seconds[name]:.0f} s of processor time")
    if not options.smoke:
        unfinished = options.out.with_suffix(".new")
        save_file(tensors, unfinished, metadata=header(seconds))
        unfinished.replace(options.out)
        print(f"{options.out.name}: {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
