"""What is measured on a trained network: losses on fresh tasks, likeness to explicit steps, roll-outs, copying."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from mesa_lib.algorithms import gd_plus_plus, gradient_descent_learner
from mesa_lib.comparison import compare
from mesa_lib.experiments.networks import AnyTasks, AttentionNetwork, CopyingNetwork, GDPlusPlusNetwork
from mesa_lib.experiments.settings import Settings
from mesa_lib.learners import Learner
from mesa_lib.networks import FreeTransformer, Looped, copying_signal
from mesa_lib.seeding import generator
from mesa_lib.tasks import LinearTasks, PromptTasks, SineTasks, TaskBatch
from mesa_lib.theory import (
    Schedule,
    best_chebyshev,
    fit_gd_plus_plus,
    optimal_eta,
    optimal_loss,
    optimal_preconditioner,
    population_loss,
    sample_spectra,
    spectral_losses,
    zero_loss,
)
from mesa_lib.training import TrainingRun, expected_task_losses

Numbers = dict[str, list[float]]
"""A measure of every ensemble member, by name."""

Curves = dict[str, list[list[float]]]
"""A measure of every ensemble member at every record, by name."""


def evaluation_tasks(settings: Settings) -> AnyTasks:
    """What a network is judged on: waves on a grid of queries, everything else as it was trained."""
    if isinstance(settings.tasks, SineTasks):
        return replace(settings.tasks, queries="grid", num_queries=101)
    return settings.tasks


def evaluation_batch(settings: Settings) -> TaskBatch:
    """The fresh tasks of an evaluation: the same for every seed, at every record, on every device."""
    judged = settings.evaluation
    return evaluation_tasks(settings).sample(judged.num_tasks, generator(judged.seed, "validation tasks"))


def reference_schedule(settings: Settings) -> Schedule:
    """The GD++ that a network is compared with: tied for a looped network, else Chebyshev's."""
    tasks, network = settings.tasks, settings.network
    assert isinstance(tasks, LinearTasks) and isinstance(network, AttentionNetwork | GDPlusPlusNetwork)
    return _best_schedule(tasks, network.num_layers, network.looped, settings.evaluation.seed)


@cache  # a fit takes a second, and every seed of a part asks for the same one
def _best_schedule(tasks: LinearTasks, num_layers: int, tied: bool, seed: int) -> Schedule:
    stream = generator(seed, "validation tasks")
    if tied:
        return fit_gd_plus_plus(tasks, num_layers, tied=True, generator=stream, num_spectra=4000).schedule
    return best_chebyshev(tasks, num_layers, sample_spectra(tasks, 4000, stream))


def reference_learner(settings: Settings) -> Learner | None:
    """What a network is compared with at every record, if anything."""
    if settings.evaluation.reference == "none":
        return None
    tasks = settings.tasks
    assert isinstance(tasks, LinearTasks)
    if settings.evaluation.reference == "one step":
        return gradient_descent_learner(optimal_eta(tasks))
    schedule = reference_schedule(settings)
    return partial(gd_plus_plus, etas=schedule.etas, gammas=schedule.gammas)


def predict_zero(settings: Settings) -> float:
    """The half-MSE of predicting zero: exact for linear tasks, else that on the evaluation's tasks."""
    if isinstance(settings.tasks, LinearTasks):
        return zero_loss(settings.tasks)
    return float(0.5 * evaluation_batch(settings).query_y.double().square().sum(-1).mean())


def task_losses(settings: Settings, learner: nn.Module, batch: TaskBatch) -> Tensor:
    """Half-MSE of every task, shape (ensemble, task): over all queries where that can be computed, else on its own."""
    with torch.no_grad():
        if settings.exact:
            return expected_task_losses(learner, batch, settings.tasks)
        losses: Tensor = 0.5 * (learner(batch) - batch.query_y).square().sum(-1).mean(-1)
    return losses


def measure(
    settings: Settings, run: TrainingRun, device: str, on_record: Callable[[int], None] | None = None
) -> tuple[Curves, Numbers]:
    """Everything that an experiment reports of a trained ensemble.

    Args:
        settings: of the part.
        run: the training.
        device: where it ran.
        on_record: called after each record with the number of records that are measured.

    Returns:
        Through training, name -> member -> one number a record: "loss" (mean over tasks), "median_loss", the three
        measures of `compare` where there is a reference, and "signal_..." of copying. And at the end, name -> member:
        "relative_loss" (mean / loss of predicting zero), "capped_loss" (no task above predicting zero), and
        "roll_out_mean_K", "roll_out_median_K" (relative too) and "roll_out_lost_K" (share of tasks above ten times
        predicting zero) after K applications.
    """
    batch = evaluation_batch(settings).to(device=device)
    reference, zero = reference_learner(settings), predict_zero(settings)
    members = len(run.seeds)
    through: Curves = {}

    def note(values: Mapping[str, Tensor], member: int) -> None:
        for name, value in values.items():
            through.setdefault(name, [[] for _ in range(members)])[member].append(float(value))

    losses = torch.empty(0)
    for record in range(len(run.steps)):
        learner = run.learner_at(record)
        losses = task_losses(settings, learner, batch).double()
        found = {"loss": losses.mean(-1), "median_loss": losses.median(-1).values}
        if reference is not None:
            likeness = compare(learner, reference, batch)
            found |= {name: value.double() for name, value in vars(likeness).items()}
        found |= _signals(settings, learner, batch)
        for member in range(members):
            note({name: value[member] for name, value in found.items()}, member)
        if on_record is not None:
            on_record(record + 1)
    last: Numbers = {
        "relative_loss": (losses.mean(-1) / zero).tolist(),
        "capped_loss": losses.nan_to_num(nan=zero).clamp(max=zero).mean(-1).tolist(),
    }
    return through, last | _roll_outs(settings, run.learner, batch, zero)


def _signals(settings: Settings, learner: nn.Module, batch: TaskBatch) -> dict[str, Tensor]:
    count = settings.evaluation.num_signals
    if not count or not isinstance(settings.network, CopyingNetwork):
        return {}
    few = TaskBatch(*(getattr(batch, name)[:count] for name in ("context_x", "context_y", "query_x", "query_y")))
    signal = copying_signal(learner, few)  # type: ignore[arg-type]
    return {f"signal_{name}": value for name, value in vars(signal).items()}


def _roll_outs(settings: Settings, learner: nn.Module, batch: TaskBatch, zero: float) -> Numbers:
    """Losses after 1, 4, 7, ... applications of a layer, of which only the target's slot moves (the paper's A.6)."""
    found: Numbers = {}
    if not settings.evaluation.num_loops:
        return found
    assert isinstance(learner, FreeTransformer)
    (layer,) = [one.detach() for one in learner.layers()]
    only_y = torch.zeros_like(layer.w_p)
    only_y[..., -batch.y_dim :, :] = layer.w_p[..., -batch.y_dim :, :]
    once = FreeTransformer([replace(layer, w_p=only_y)])
    for count in range(1, settings.evaluation.num_loops + 1, 3):
        repeated = Looped(once, count, settings.evaluation.damping)
        losses = task_losses(settings, repeated, batch).double()
        kept = losses.nan_to_num(nan=float("inf"))
        found[f"roll_out_mean_{count}"] = (kept.mean(-1) / zero).tolist()
        found[f"roll_out_median_{count}"] = (kept.median(-1).values / zero).tolist()
        found[f"roll_out_lost_{count}"] = (kept > 10 * zero).double().mean(-1).tolist()
    return found


def levels(settings: Settings) -> dict[str, float]:
    """Half-MSE that theory gives for a part: text -> level."""
    # For prompts of every length there is no one step size.
    if not isinstance(settings.tasks, LinearTasks) or isinstance(settings.tasks, PromptTasks):
        return {}
    tasks = replace(settings.tasks, constant_input=False)  # a step makes no use of the constant
    found = {"one gradient step": optimal_loss(tasks)}
    if tasks.input_covariance is not None:
        found["one step, times the best matrix"] = float(population_loss(tasks, optimal_preconditioner(tasks)))
    if settings.evaluation.reference == "gd++":
        assert isinstance(settings.network, AttentionNetwork | GDPlusPlusNetwork)
        spectra = sample_spectra(settings.tasks, 4000, generator(settings.evaluation.seed, "validation tasks"))
        losses = spectral_losses(spectra, reference_schedule(settings), settings.tasks)
        text = f"GD++, {settings.network.num_layers} layers{', tied' if settings.network.looped else ''}, capped"
        # As "capped_loss": the plain mean of a deep schedule is that of its worst context.
        zero = zero_loss(settings.tasks)
        found[text] = float(losses.nan_to_num(nan=zero).clamp(max=zero).mean())
    return found


def plain_measures(through: Curves, last: Numbers, member: int) -> dict[str, Any]:
    """The numbers of one member: what ends a curve stands beside it under the curve's name."""
    curves = {name: values[member] for name, values in through.items()}
    return {"curves": curves, "final": {name: curve[-1] for name, curve in curves.items()}
            | {name: values[member] for name, values in last.items()}}  # fmt: skip
