"""The moving parts of a training: taken down as tensors between two steps, and put back."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mesa_lib.seeding import generators


@dataclass(frozen=True, eq=False)
class TrainingState:
    """A training between two steps: with it `train` goes on to the same numbers as if it had never stopped.

    It holds no objects, only tensors with names, so that any format for tensors can keep it.

    Attributes:
        step: the steps that are done, at least one.
        tensors: on the CPU. "learner/NAME" are the parameters, "adam/NAME/..." Adam's memory of each, "stream/SEED"
            the state of each seed's generator of tasks, "records/..." what was recorded so far, and
            "steps_without_gradient" as in `TrainingRun`.

    Example:
        >>> start = mesa.FreeTransformer([mesa.random_weights(10, 1, seeds=[0], scale=0.0135)])
        >>> settings = mesa.TrainingSettings(num_steps=3, batch_size=8, warmup_steps=1)
        >>> kept = {}
        >>> def keep(step, take_down):
        ...     kept[step] = take_down()
        >>> run = mesa.train(start, tasks, [0], settings, on_step=keep)
        >>> again = mesa.train(start, tasks, [0], settings, state=kept[2])
        >>> torch.equal(again.losses, run.losses)
        True
    """

    step: int
    tensors: Mapping[str, Tensor]


class Course:
    """What changes while a learner is trained: its weights, Adam's memory, the streams of tasks, and the records.

    Args:
        learner: trained in place; its parameters have the ensemble's axis in front.
        seeds: one per ensemble member.
        optimizer: Adam on the learner's parameters.
    """

    def __init__(self, learner: nn.Module, seeds: tuple[int, ...], optimizer: torch.optim.Adam) -> None:
        self.learner, self.seeds, self.optimizer = learner, seeds, optimizer
        self.streams = generators(seeds, "training tasks")
        self.steps: list[int] = []
        self.losses: list[Float[Tensor, "ensemble"]] = []
        self.snapshots: list[dict[str, Tensor]] = []
        self.lost = torch.zeros(len(seeds), dtype=torch.int64)

    def record(self, step: int, loss: Float[Tensor, "ensemble"]) -> None:
        """Keep the losses and the weights of a step."""
        self.steps.append(step)
        self.losses.append(loss.detach().cpu())
        self.snapshots.append({name: value.detach().clone() for name, value in self.learner.state_dict().items()})

    def latest_loss(self) -> str:
        """The mean loss at the last record, in words."""
        return f"loss {float(self.losses[-1].mean()):.4g}" if self.losses else ""

    def state(self, step: int) -> TrainingState:
        """Everything as it is after `step` steps, at least one; a copy."""
        tensors = {f"learner/{name}": value for name, value in self.learner.state_dict().items()}
        for name, parameter in self.learner.named_parameters():
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"adam/{name}/{key}"] = value
        for seed, stream in zip(self.seeds, self.streams, strict=True):
            tensors[f"stream/{seed}"] = stream.get_state()
        tensors["records/step"] = torch.tensor(self.steps)
        tensors["records/loss"] = torch.stack(self.losses)
        for name in self.snapshots[0]:
            tensors[f"records/learner/{name}"] = torch.stack([snapshot[name] for snapshot in self.snapshots])
        tensors["steps_without_gradient"] = self.lost
        # A copy: what is still on the CPU would go on to change.
        return TrainingState(step, {name: value.detach().to("cpu", copy=True) for name, value in tensors.items()})

    def restore(self, state: TrainingState) -> None:
        """Put everything back as it was in a state of the same learner and seeds.

        Raises:
            ValueError: the state is that of another learner, or of other seeds.
        """
        tensors = state.tensors
        self._check(tensors)
        names = list(self.learner.state_dict())
        self.learner.load_state_dict({name: tensors[f"learner/{name}"] for name in names})
        for name, parameter in self.learner.named_parameters():
            kept = {key: tensors[f"adam/{name}/{key}"] for key in ("exp_avg", "exp_avg_sq")}
            averages = {key: value.to(parameter.device, copy=True) for key, value in kept.items()}
            self.optimizer.state[parameter] = {"step": tensors[f"adam/{name}/step"].clone(), **averages}
        for seed, stream in zip(self.seeds, self.streams, strict=True):
            stream.set_state(tensors[f"stream/{seed}"])
        self.steps = tensors["records/step"].tolist()
        self.losses = list(tensors["records/loss"].clone())
        columns = {name: tensors[f"records/learner/{name}"].clone() for name in names}
        self.snapshots = [{name: columns[name][k] for name in names} for k in range(len(self.steps))]
        self.lost = tensors["steps_without_gradient"].clone()

    def _check(self, tensors: Mapping[str, Tensor]) -> None:
        members = (len(self.seeds),)
        expected: dict[str, tuple[int, ...] | None] = {f"stream/{seed}": None for seed in self.seeds}
        expected |= {"records/step": None, "records/loss": None, "steps_without_gradient": members}
        for name, value in self.learner.state_dict().items():
            expected |= {f"learner/{name}": tuple(value.shape), f"records/learner/{name}": None}
        for name, parameter in self.learner.named_parameters():
            averages = {f"adam/{name}/{key}": tuple(parameter.shape) for key in ("exp_avg", "exp_avg_sq")}
            expected |= {f"adam/{name}/step": (), **averages}
        if odd := sorted(expected.keys() ^ tensors.keys()):
            raise ValueError(
                "state: expected the tensors of this learner and these seeds, got a state that "
                f"{'has' if odd[0] in tensors else 'lacks'} {odd[0]!r}"
            )
        for name, shape in expected.items():
            if shape is not None and tuple(tensors[name].shape) != shape:
                raise ValueError(f"state: expected {name!r} of shape {shape}, got {tuple(tensors[name].shape)}")
