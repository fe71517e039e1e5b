"""One training loop for every learner and every ensemble."""

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mesa_lib.progress import progress_steps
from mesa_lib.tasks import TaskBatch, Tasks
from mesa_lib.training.course import Course, TrainingState
from mesa_lib.training.losses import Loss, expected_query_loss, sampled_query_loss
from mesa_lib.validation import (
    finite_numbers,
    non_negative_number,
    positive_integer,
    positive_number,
    seed_list,
    typed,
)


@dataclass(frozen=True)
class TrainingSettings:
    """How to train: Adam, a linear warm-up, a cosine decay to zero, gradients clipped for each ensemble member.

    The defaults train one layer of linear attention at d = N = 10 to within a fifth of a percent of its optimum, in
    seconds. They can be this quick because the loss is exact in the query; see `paper_settings` for the paper's own.

    Args:
        num_steps: Adam steps.
        batch_size: fresh tasks per step and member.
        learning_rate: Adam's peak rate.
        warmup_steps: steps of linear growth from zero to the peak.
        decay: whether the rate falls to zero along a cosine after the warm-up.
        clip_norm: largest norm of one member's whole gradient.
        betas: Adam's decay rates.
        loss: `expected_query_loss` or `sampled_query_loss`, or any function of the same form.
        record_every: steps between records (loss and snapshot); the first and last weights are always recorded.

    Raises:
        TypeError, ValueError: a count or a rate that is not positive, a warm-up that is no whole number of steps or
            longer than the training, betas that are not two numbers in [0, 1), a `decay` that is not a bool.

    Example:
        >>> mesa.TrainingSettings(num_steps=100).learning_rate
        0.02
    """

    num_steps: int = 400
    batch_size: int = 128
    learning_rate: float = 0.02
    warmup_steps: int = 20
    decay: bool = True
    clip_norm: float = 0.1
    betas: tuple[float, float] = (0.9, 0.99)
    loss: Loss = field(default=expected_query_loss)
    record_every: int = 20

    def __post_init__(self) -> None:
        for name in ("num_steps", "batch_size", "record_every"):
            positive_integer(f"TrainingSettings.{name}", getattr(self, name))
        for name in ("learning_rate", "clip_norm"):
            positive_number(f"TrainingSettings.{name}", getattr(self, name))
        non_negative_number("TrainingSettings.warmup_steps", self.warmup_steps)
        if self.warmup_steps != 0:
            positive_integer("TrainingSettings.warmup_steps", self.warmup_steps)
        if self.warmup_steps >= self.num_steps:
            raise ValueError(
                f"TrainingSettings.warmup_steps: expected fewer than num_steps = {self.num_steps}, "
                f"got {self.warmup_steps}"
            )
        betas = finite_numbers("TrainingSettings.betas", self.betas)
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"TrainingSettings.betas: expected two numbers in [0, 1), got {self.betas}")
        if not isinstance(self.decay, bool):
            raise TypeError(f"TrainingSettings.decay: expected True or False, got {self.decay!r}")
        if not callable(self.loss):
            raise TypeError(f"TrainingSettings.loss: expected a function, got {type(self.loss).__name__}")

    def rate_at(self, step: int) -> float:
        """The fraction of the peak learning rate at a step: the warm-up's line, then one or the cosine's half-wave."""
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        if not self.decay:
            return 1.0
        progress = (step - self.warmup_steps) / (self.num_steps - self.warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * progress))


def paper_settings(num_steps: int = 5000, record_every: int = 100) -> TrainingSettings:
    """What the paper's released code uses for one layer (its Figure 2): one sampled query a task, batches of 2048.

    Adam at 1e-3 with betas (0.9, 0.98), no schedule, gradient norm clipped at 0.001 (the text says 10), 5000 steps.

    Example:
        >>> mesa.paper_settings().batch_size
        2048
    """
    return TrainingSettings(
        num_steps=num_steps,
        batch_size=2048,
        learning_rate=1e-3,
        warmup_steps=0,
        decay=False,
        clip_norm=1e-3,
        betas=(0.9, 0.98),
        loss=sampled_query_loss,
        record_every=record_every,
    )


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """What a training leaves behind.

    Attributes:
        learner: the trained learner, a copy: the one that was handed to `train` is unchanged.
        seeds: one per ensemble member.
        steps: the recorded steps, from 0 to the last; shape (record).
        losses: the training loss (half-MSE) at the recorded weights, on a fresh batch each; shape (record, ensemble).
        snapshots: the parameters at the recorded steps, by name; each has the ensemble axis in front.
        tasks_seen: fresh tasks drawn for each member over the whole training.
        steps_without_gradient: for each member, the steps on which its gradient was not finite; see `clip_members`.

    Example:
        >>> start = mesa.FreeTransformer([mesa.random_weights(10, 1, seeds=[0], scale=0.0135)])
        >>> settings = mesa.TrainingSettings(num_steps=2, batch_size=8, warmup_steps=1, record_every=1)
        >>> run = mesa.train(start, tasks, seeds=[0], settings=settings)
        >>> len(run.steps), tuple(run.losses.shape)  # (record, ensemble)
        (3, (3, 1))
    """

    learner: nn.Module
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    losses: Float[Tensor, "record ensemble"]
    snapshots: tuple[dict[str, Tensor], ...]
    tasks_seen: int
    steps_without_gradient: tuple[int, ...]

    def learner_at(self, record: int) -> nn.Module:
        """The learner as it was at record number `record` (negative numbers count from the end).

        Raises:
            ValueError: there is no such record.
        """
        if not -len(self.steps) <= record < len(self.steps):
            raise ValueError(f"record: expected an index into {len(self.steps)} records, got {record}")
        learner = copy.deepcopy(self.learner)
        learner.load_state_dict(self.snapshots[record])
        return learner


def gradient_norms(parameters: Sequence[nn.Parameter]) -> Float[Tensor, "ensemble"]:
    """Norm of each ensemble member's whole gradient, over all parameters; the leading axis is the ensemble's."""
    gradients = torch.cat([_gradient(p).reshape(len(p), -1) for p in parameters], dim=1)
    return gradients.square().sum(dim=1).sqrt()


def clip_members(parameters: Sequence[nn.Parameter], max_norm: float) -> Bool[Tensor, "ensemble"]:
    """Scale each ensemble member's gradient down to at most `max_norm`, in place; one that is not finite becomes zero.

    One norm for the whole ensemble would couple its members: a seed's course would depend on its company. A gradient
    whose norm is not finite says nothing about where to go. (A single exploding task is enough: through it the chain
    rule multiplies infinity by zero.) As a zero, the member makes a step with what Adam remembers, and its weights and
    Adam's averages stay finite; its company notices nothing.

    Args:
        parameters: with gradients, each of shape (ensemble, ...).
        max_norm: largest norm of one member's whole gradient.

    Returns:
        Which members had a finite gradient, shape (ensemble).

    Raises:
        TypeError, ValueError: `max_norm` is not a positive number, or a parameter has no gradient.

    Example:
        >>> parameter = torch.nn.Parameter(torch.zeros(2, 3))
        >>> parameter.grad = torch.tensor([[3.0, 0.0, 4.0], [0.0, 0.0, 0.5]])
        >>> mesa.clip_members([parameter], max_norm=1.0)  # the norms before
        tensor([True, True])
        >>> parameter.grad.norm(dim=-1)
        tensor([1.0000, 0.5000])
    """
    positive_number("max_norm", max_norm)
    norms = gradient_norms(parameters)
    usable = torch.isfinite(norms)
    all_usable = bool(usable.all())
    factor = (max_norm / norms.clamp(min=torch.finfo(torch.float32).tiny)).clamp(max=1)
    for parameter in parameters:
        axes = (-1, *[1] * (parameter.dim() - 1))
        gradient = _gradient(parameter).mul_(factor.view(axes))
        if not all_usable:
            gradient.masked_fill_(~usable.view(axes), 0)
    return usable


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        shape = tuple(parameter.shape)
        raise ValueError(f"learner: expected every parameter to reach the loss, got one of shape {shape} that does not")
    return parameter.grad


def _ensemble_copy(learner: nn.Module, members: int, device: torch.device | str, dtype: torch.dtype) -> nn.Module:
    parameters = list(learner.named_parameters())
    if not parameters:
        raise ValueError("learner: expected a module with parameters, got one without any")
    for name, parameter in parameters:
        if parameter.dim() < 1 or parameter.shape[0] != members:
            raise ValueError(
                f"learner: expected parameters with a leading axis of {members}, one per seed, "
                f"got {name} of shape {tuple(parameter.shape)}"
            )
    return copy.deepcopy(learner).to(device=device, dtype=dtype)


def _check_ensemble_axis(learner: nn.Module, batch: TaskBatch, members: int) -> None:
    """Refuse a learner whose leading axis is something else than the ensemble's, such as the heads'.

    On tasks that all members share an ensemble makes one prediction a member; one learner with as many heads makes one.
    """
    with torch.no_grad():
        ensemble = learner(batch).shape[:-3]
    if ensemble != (members,):
        raise ValueError(
            f"learner: expected one prediction for each of {members} seeds on tasks that all share, got predictions "
            f"with the ensemble axes {tuple(ensemble)}"
        )


def _warn_of_divergence(seeds: Sequence[int], step: int, losses: Tensor) -> None:
    lost = [seed for seed, loss in zip(seeds, losses.tolist(), strict=True) if not math.isfinite(loss)]
    if lost:
        warnings.warn(f"step {step}: the loss of seeds {lost} is not finite", RuntimeWarning, stacklevel=3)


@typed
def train(
    learner: nn.Module,
    tasks: Tasks,
    seeds: Sequence[int],
    settings: TrainingSettings | None = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    on_record: Callable[[int, Tensor], None] | None = None,
    on_step: Callable[[int, Callable[[], TrainingState]], None] | None = None,
    state: TrainingState | None = None,
) -> TrainingRun:
    """Train an ensemble on fresh tasks, one stream of tasks per seed; member k's course is that of seed k alone.

    The members' losses are summed, their gradients clipped one by one (`clip_members`), and Adam works entry by entry,
    so that members never meet. A progress bar shows on an interactive front end (set TQDM_DISABLE=1 to hide it).

    Args:
        learner: a module whose every parameter has a leading axis with one slice per seed; it is copied.
        tasks: the distribution that fresh tasks come from.
        seeds: distinct integers from 0 to 2^32 - 1, one per member.
        settings: see `TrainingSettings`; its defaults if absent.
        device: where to train; tasks are drawn on the CPU and moved.
        dtype: the precision to draw tasks and train in.
        on_record: called with (step, losses of shape (ensemble)) at every record.
        on_step: called after every step with (steps done, a function that takes down the state they led to).
        state: where to go on; from the start if absent.

    Returns:
        A TrainingRun.

    Raises:
        TypeError, ValueError: bad seeds, settings of another type, a learner without one slice per seed, one whose
            leading axis is not the ensemble's, or a `state` of another learner, other seeds or more steps.

    Warns:
        RuntimeWarning: a member's loss is not finite; the others go on.

    Example:
        >>> start = mesa.FreeTransformer([mesa.random_weights(10, 1, seeds=[0], scale=0.0135)])
        >>> settings = mesa.TrainingSettings(num_steps=3, batch_size=8, warmup_steps=1)
        >>> run = mesa.train(start, tasks, seeds=[0], settings=settings)
        >>> run.steps, run.tasks_seen
        ((0, 3), 24)
    """
    settings = TrainingSettings() if settings is None else settings
    if not isinstance(settings, TrainingSettings):
        raise TypeError(f"settings: expected TrainingSettings, got {type(settings).__name__}")
    members = seed_list("seeds", seeds)
    learner = _ensemble_copy(learner, len(members), device, dtype)
    parameters = list(learner.parameters())
    # A fused step is one call. Only on a CPU: elsewhere it keeps its count of steps on the device, which is no gain.
    fused = torch.device(device).type == "cpu"
    optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate, betas=settings.betas, fused=fused)
    course = Course(learner, members, optimizer)
    if state is not None:
        if not 1 <= state.step <= settings.num_steps:
            raise ValueError(f"state: expected one after 1 to {settings.num_steps} steps, got one after {state.step}")
        course.restore(state)
    first = 0 if state is None else state.step
    text = f"training {len(members)} seeds" if len(members) > 1 else f"training seed {members[0]}"
    for step in progress_steps(settings.num_steps + 1, text, first, course.latest_loss):
        batches = [tasks.sample(settings.batch_size, stream, dtype=dtype) for stream in course.streams]
        if step == first:
            _check_ensemble_axis(learner, batches[0].to(device=device), len(members))
        loss = settings.loss(learner, TaskBatch.stack(batches).to(device=device), tasks)
        if step % settings.record_every == 0 or step == settings.num_steps:
            course.record(step, loss)
            _warn_of_divergence(members, step, course.losses[-1])
            if on_record is not None:
                on_record(step, course.losses[-1])
        if step == settings.num_steps:
            break
        optimizer.zero_grad()
        torch.autograd.backward(loss.sum())
        course.lost += ~clip_members(parameters, settings.clip_norm).cpu()
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * settings.rate_at(step)
        optimizer.step()
        if on_step is not None:
            on_step(step + 1, partial(course.state, step + 1))
    return TrainingRun(
        learner=learner,
        seeds=members,
        steps=tuple(course.steps),
        losses=torch.stack(course.losses),
        snapshots=tuple(course.snapshots),
        tasks_seen=settings.num_steps * settings.batch_size,
        steps_without_gradient=tuple(course.lost.tolist()),
    )
