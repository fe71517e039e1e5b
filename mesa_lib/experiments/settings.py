"""What an experiment may set: frozen dataclasses in five groups, and how a command line overrides them."""

import difflib
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from mesa_lib.experiments.networks import (
    AnyNetwork,
    AnyTasks,
    AttentionNetwork,
    CopyingNetwork,
    FeatureNetwork,
    FeatureStep,
    GDPlusPlusNetwork,
    ResidualNetwork,
    SettingError,
)
from mesa_lib.tasks import LinearTasks, PromptTasks, SineTasks
from mesa_lib.training import (
    Loss,
    TrainingSettings,
    clamped_query_loss,
    expected_query_loss,
    geman_mcclure_query_loss,
    sampled_query_loss,
)
from mesa_lib.validation import non_negative_integer, one_of, positive_integer, positive_number


@dataclass(frozen=True)
class Objective:
    """The training loss, half-MSE.

    Args:
        kind: "expected": exact in the query (`expected_query_loss`). "sampled": the paper's, on sampled queries
            (`sampled_query_loss`). "clamped": exact, and no task counts more than `cap` (`clamped_query_loss`).
            "geman-mcclure": the same, and what a task counts levels off smoothly (`geman_mcclure_query_loss`).
        cap: the most that one task may count, where the kind is "clamped" or "geman-mcclure".

    Raises:
        TypeError, ValueError: an unknown kind, a cap that is not positive.
    """

    kind: Literal["expected", "sampled", "clamped", "geman-mcclure"] = "expected"
    cap: float = 1.0

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ("expected", "sampled", "clamped", "geman-mcclure"))
        positive_number("cap", self.cap)

    @property
    def loss(self) -> Loss:
        """The loss as the trainer takes it."""
        if self.kind == "clamped":
            return clamped_query_loss(self.cap)
        if self.kind == "geman-mcclure":
            return geman_mcclure_query_loss(self.cap)
        return expected_query_loss if self.kind == "expected" else sampled_query_loss


@dataclass(frozen=True)
class Evaluation:
    """How a trained network is judged, on fresh tasks that no training has seen.

    Args:
        num_tasks: fresh tasks, the same for all seeds.
        seed: their stream is (seed, "validation tasks").
        reference: what the network is compared with at every record. "one step": gradient descent at the best step
            size. "gd++": the best GD++ of as many layers, tied for a looped network, else Chebyshev's. "none": nothing.
        num_loops: how often the trained layer is applied again to its own output, only the target's slot moving; 0 is
            not at all.
        damping: factor of each update of such a roll-out.
        num_signals: tasks on which the copying signal is measured at every record; 0 is not at all.

    Raises:
        TypeError, ValueError: a count that is negative or no integer, no task, an unknown reference, a damping that is
            not positive.
    """

    num_tasks: int = 2000
    seed: int = 0
    reference: Literal["none", "one step", "gd++"] = "none"
    num_loops: int = 0
    damping: float = 0.75
    num_signals: int = 0

    def __post_init__(self) -> None:
        positive_integer("num_tasks", self.num_tasks)
        for name in ("seed", "num_loops", "num_signals"):
            non_negative_integer(name, getattr(self, name))
        one_of("reference", self.reference, ("none", "one step", "gd++"))
        positive_number("damping", self.damping)


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers of one part of an experiment, but for its seeds and the device.

    Args:
        tasks: what is trained on.
        network: what is trained.
        training: how; its `loss` is set from `objective`.
        objective: the training loss.
        evaluation: how the result is judged.

    Raises:
        SettingError: groups that do not go together.
    """

    tasks: AnyTasks
    network: AnyNetwork
    training: TrainingSettings
    objective: Objective = field(default_factory=Objective)
    evaluation: Evaluation = field(default_factory=Evaluation)

    def __post_init__(self) -> None:
        object.__setattr__(self, "training", replace(self.training, loss=self.objective.loss))
        linear, network = isinstance(self.tasks, LinearTasks), self.network
        if linear != isinstance(network, AttentionNetwork | CopyingNetwork | GDPlusPlusNetwork):
            raise SettingError(f"network: {type(self.network).__name__} does not fit {type(self.tasks).__name__}")
        if self.objective.kind != "sampled" and not self.exact:
            raise SettingError(
                f"objective.kind: expected 'sampled' for a network that is not linear in the query, "
                f"got {self.objective.kind!r}"
            )
        if self.evaluation.reference == "gd++" and isinstance(self.network, CopyingNetwork):
            raise SettingError("evaluation.reference: expected 'none' or 'one step' for a CopyingNetwork, got 'gd++'")
        if self.evaluation.reference != "none" and not linear:
            raise SettingError(
                f"evaluation.reference: expected 'none' for {type(self.tasks).__name__}, "
                f"got {self.evaluation.reference!r}"
            )
        if self.evaluation.num_loops and not _is_one_layer(network):
            raise SettingError(
                "evaluation.num_loops: expected 0 but for one layer of linear attention, "
                f"got {self.evaluation.num_loops}"
            )
        if self.evaluation.num_signals and not isinstance(self.network, CopyingNetwork):
            raise SettingError(
                f"evaluation.num_signals: expected 0 but for a CopyingNetwork, got {self.evaluation.num_signals}"
            )

    @property
    def exact(self) -> bool:
        """Whether the network is linear in the query, so that its loss can be computed without sampling queries."""
        if isinstance(self.network, AttentionNetwork):
            return not self.network.on_tokens
        return isinstance(self.network, GDPlusPlusNetwork)


GROUPS = tuple(one.name for one in fields(Settings))
_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        LinearTasks, PromptTasks, SineTasks,
        AttentionNetwork, CopyingNetwork, FeatureNetwork, FeatureStep, GDPlusPlusNetwork, ResidualNetwork,
        TrainingSettings, Objective, Evaluation,
    )
}  # fmt: skip


def as_plain(settings: Settings) -> dict[str, Any]:
    """The settings as dictionaries, lists, numbers and words, for a JSON file."""
    return {group: {"kind of group": type(value).__name__} | _values(value) for group, value in _groups(settings)}


def from_plain(plain: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings from what `as_plain` gave.

    Raises:
        SettingError: they are not such settings.
    """
    try:
        groups = {}
        for group in GROUPS:
            values = {name: tuple(v) if isinstance(v, list) else v for name, v in plain[group].items()}
            groups[group] = _KINDS[str(values.pop("kind of group"))](**values)
        return Settings(**groups)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SettingError(f"settings: expected those of this version of mesa_lib, got others ({error})") from error


def keys(settings: Settings) -> dict[str, Any]:
    """What can be overridden: "group.name" -> its value."""
    return {f"{group}.{name}": value for group, one in _groups(settings) for name, value in _values(one).items()}


def override(parts: Mapping[str, Settings], assignments: Sequence[str]) -> dict[str, Settings]:
    """The parts of an experiment with some settings changed.

    Args:
        parts: part -> its settings.
        assignments: texts "key=value". The key is "group.name", or the name alone where no two groups have it; in front
            may stand a part and a colon. Without a part every part that has such a setting changes.

    Returns:
        part -> its settings; those of `parts` are unchanged.

    Raises:
        SettingError: an unknown part or name (the message says the near ones), a value of a wrong type or out of range.
    """
    changes: dict[str, dict[str, str]] = {part: {} for part in parts}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise SettingError(f"--set {assignment}: expected key=value, as in training.num_steps=100")
        part, colon, key = name.rpartition(":")
        if colon and part not in parts:
            raise SettingError(f"--set {assignment}: there is no part {part!r}{_near(part, list(parts))}")
        chosen = [part] if colon else list(parts)
        found = {one: full for one in chosen if (full := _full_key(key, keys(parts[one]), assignment))}
        if not found:
            known = sorted({full for one in chosen for full in keys(parts[one])})
            raise SettingError(f"--set {assignment}: there is no setting {key!r}{_near(key, known)}")
        for one, full in found.items():
            changes[one][full] = text
    return {part: _changed(settings, changes[part]) for part, settings in parts.items()}


def _changed(settings: Settings, texts: Mapping[str, str]) -> Settings:
    """All changes of a part at once: what one asks of another holds for the result, whatever their order."""
    groups: dict[str, dict[str, Any]] = {}
    for full, text in texts.items():
        group, _, name = full.partition(".")
        kind = type(getattr(settings, group))
        groups.setdefault(group, {})[name] = _parsed(f"--set {full}={text}", text, typing.get_type_hints(kind)[name])
    said = " ".join(f"--set {full}={text}" for full, text in texts.items())
    try:
        return replace(settings, **{group: replace(getattr(settings, group), **new) for group, new in groups.items()})
    except (TypeError, ValueError) as error:
        raise SettingError(f"{said}: {error}") from error


def _full_key(key: str, known: Mapping[str, Any], assignment: str) -> str | None:
    found = [full for full in known if key in (full, full.partition(".")[2])]
    if len(found) > 1:
        raise SettingError(f"--set {assignment}: {key!r} may be {' or '.join(found)}; say which")
    return found[0] if found else None


def _near(word: str, known: Sequence[str]) -> str:
    """The known words that are near one, in words."""
    tails = {one.partition(".")[2]: one for one in known if "." in one}
    close = difflib.get_close_matches(word, [*known, *tails], n=6, cutoff=0.5)
    near = list(dict.fromkeys(tails.get(one, one) for one in close))[:3]
    return f"; near it: {', '.join(near)}" if near else f"; there are: {', '.join(known)}"


def _parsed(said: str, text: str, hint: Any) -> Any:
    """The value that a text means for a field of a type."""
    words = {"true": True, "yes": True, "false": False, "no": False, "none": None}
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if text not in members:
            raise SettingError(f"{said}: expected one of {', '.join(map(repr, members))}, got {text!r}")
        return text
    value = words[text.lower()] if text.lower() in words else _number_or_text(text)
    if hint is bool and not isinstance(value, bool):
        raise SettingError(f"{said}: expected true or false, got {text!r}")
    if hint is int and (isinstance(value, bool) or not isinstance(value, int)):
        raise SettingError(f"{said}: expected an integer, got {text!r}")
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SettingError(f"{said}: expected a number, got {text!r}")
        return _float(said, value)
    if origin is tuple:
        numbers = value if isinstance(value, list) else [_number_or_text(one) for one in text.split(",")]
        if len(numbers) != len(members) or not all(_is_number(one) for one in numbers):
            raise SettingError(f"{said}: expected {len(members)} numbers with a comma between them, got {text!r}")
        return tuple(_float(said, one) for one in numbers)
    if origin in (typing.Union, types.UnionType) and not (value is None or isinstance(value, list)):
        raise SettingError(f"{said}: expected a matrix such as [[1, 0], [0, 1]], or none, got {text!r}")
    return value


def _float(said: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise SettingError(f"{said}: expected a number below 1e308, got one of {len(str(value))} digits") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _groups(settings: Settings) -> list[tuple[str, Any]]:
    return [(group, getattr(settings, group)) for group in GROUPS]


def _values(group: Any) -> dict[str, Any]:
    """A group's fields, but for the trainer's loss: the objective names it."""
    return {one.name: getattr(group, one.name) for one in fields(group) if one.name != "loss"}


def _is_one_layer(network: AnyNetwork) -> bool:
    """Whether a network is one layer of linear attention and nothing else."""
    if not isinstance(network, AttentionNetwork) or network.looped or network.averaging or network.learned_start:
        return False
    return network.num_layers == 1 and not network.on_tokens
