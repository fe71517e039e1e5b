"""Record the trainings that widgets replay: `python -m tools.record` writes two files of mesa_lib/widgets/static.

- training_run.json: one layer, four seeds, as the chapter on training trains it: at every recorded step the exact loss,
  the cosine with one gradient step, and the canonical products as far as a prediction depends on them.
- trained_steps.json: for some settings, the step sizes and the exact losses of trained layers.

Widgets show two decimals of a weight and three of a loss, so the files hold no more.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import mesa_lib as mesa
from mesa_lib.widgets.linker import STATIC
from tools.notebooks import replace_file

RUN = STATIC / "training_run.json"
STEPS = STATIC / "trained_steps.json"

# Seed 2 is the one that waits on the plateau of the rank-one twin.
SEEDS = (0, 1, 2, 3)
SETTINGS = (
    mesa.LinearTasks(),
    mesa.LinearTasks(num_context=30),
    mesa.LinearTasks(x_dim=3),
    mesa.LinearTasks(inputs="normal"),
    mesa.LinearTasks(inputs="rademacher"),
    mesa.LinearTasks(num_context=20, noise_std=1.0),
)


def train_layer(tasks: mesa.LinearTasks, seeds: Sequence[int], record_every: int) -> mesa.TrainingRun:
    """One layer, trained as in the chapter on training."""
    # One scale of the start for all laws: what matters is its size beside the inputs'.
    scale = 0.0135 * (tasks.second_moment * 3) ** -0.25
    start = mesa.FreeTransformer([mesa.random_weights(tasks.x_dim, 1, seeds, scale=scale)])
    settings = mesa.TrainingSettings(num_steps=400, batch_size=64, record_every=record_every)
    return mesa.train(start, tasks, seeds, settings)


def layer_at(run: mesa.TrainingRun, record: int) -> mesa.AttentionWeights:
    """The layer's weights at a record."""
    layers: list[mesa.AttentionWeights] = run.learner_at(record).layers()  # type: ignore[operator]
    return layers[0].detach()


def rounded(values: Tensor, digits: int) -> Any:
    """Numbers as nested lists, whole numbers where there are no digits after the point."""
    scaled = (values.double() * 10**digits).round()
    return scaled.to(torch.int64).tolist() if digits == 0 else (scaled / 10**digits).tolist()


def record_run() -> dict[str, Any]:
    """The run that the scrubber replays: arrays are (seed, record, ...), W_KQ in hundredths, W_PV in thousandths."""
    tasks = mesa.LinearTasks()
    run = train_layer(tasks, SEEDS, record_every=10)
    chosen = [k for k, step in enumerate(run.steps) if step <= 200 or step % 20 == 0]
    layers = [layer_at(run, k) for k in chosen]
    losses = torch.stack([mesa.population_loss(tasks, layer) for layer in layers], -1) / mesa.zero_loss(tasks)
    fresh = replace(tasks, num_queries=4).sample(500, mesa.generator(0, "validation tasks"))
    step = mesa.gradient_descent_learner(mesa.optimal_eta(tasks))
    cosines = [mesa.compare(run.learner_at(k), step, fresh).sensitivity_cosine for k in chosen]
    canonical = [mesa.canonicalize(layer, form="norm") for layer in layers]
    return {
        "seeds": list(SEEDS),
        "steps": [run.steps[k] for k in chosen],
        "loss": rounded(losses, 4),
        "cosine": rounded(torch.stack(cosines, -1), 3),
        "twin_share": rounded(torch.stack([mesa.twin_share(layer) for layer in layers], -1), 3),
        "w_kq": rounded(100 * torch.stack([layer.w_kq[:, 0, :, :10] for layer in canonical], 1), 0),
        "w_pv": rounded(1000 * torch.stack([layer.w_pv[:, 0, 10] for layer in canonical], 1), 0),
        "one_step": round(mesa.optimal_loss(tasks) / mesa.zero_loss(tasks), 4),
        "plateau": round(mesa.plateau_loss(tasks) / mesa.zero_loss(tasks), 4),
        "eta": round(mesa.optimal_eta(tasks), 4),
    }


def record_steps() -> list[dict[str, Any]]:
    """Trained layers in other settings: the steps that they take, and their exact relative losses."""
    return [_trained_step(tasks) for tasks in SETTINGS]


def _trained_step(tasks: mesa.LinearTasks) -> dict[str, Any]:
    layer = layer_at(train_layer(tasks, SEEDS, record_every=400), -1)
    canonical = mesa.canonicalize(layer, form="norm")
    # The construction's y-y entry of W_PV is -eta / N.
    etas = -tasks.num_context * canonical.w_pv[:, 0, -1, -1]
    losses = mesa.population_loss(tasks, layer) / mesa.zero_loss(tasks)
    landed = [k for k, share in enumerate(mesa.twin_share(layer).tolist()) if share < 0.5]
    return {
        "x_dim": tasks.x_dim,
        "num_context": tasks.num_context,
        "inputs": tasks.inputs,
        "noise_std": tasks.noise_std,
        "eta": rounded(etas[landed], 3),
        "loss": rounded(losses[landed], 4),
        "waiting": len(SEEDS) - len(landed),
    }


def write(path: Path, content: object) -> bool:
    """Write a record, and say whether it is new."""
    return replace_file(path, json.dumps(content, separators=(",", ":")).encode() + b"\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.record", description="Record what widgets replay.")
    parser.parse_args(arguments)
    torch.set_num_threads(1)
    for path, content in ((RUN, record_run()), (STEPS, record_steps())):
        state = "written" if write(path, content) else "unchanged"
        print(f"{path.name}: {state}, {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
