"""What an experiment trains: frozen dataclasses that say how a network is built, from a random start for each seed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mesa_lib.algorithms import MetaLearnedMLP
from mesa_lib.features import Activation, random_mlp
from mesa_lib.networks import (
    AttentionWeights,
    AveragingTransformer,
    FreeTransformer,
    GDPlusPlusTransformer,
    LearnedStart,
    Looped,
    PositionScored,
    TokenMLP,
    Tokens,
    TokenTransformer,
    fourier_codes,
    interleaved_tokens,
    linear_attention,
    one_hot_codes,
    random_layers,
    random_residual_block,
    random_weights,
    sinusoidal_codes,
    softmax_attention,
)
from mesa_lib.tasks import LinearTasks, PromptTasks, SineTasks, TaskBatch
from mesa_lib.validation import non_negative_number, one_of, positive_integer, positive_number

AnyTasks = LinearTasks | PromptTasks | SineTasks


class SettingError(ValueError):
    """A setting that cannot be: the message names it, what was expected and what was got."""


@dataclass(frozen=True)
class AttentionNetwork:
    """Layers of attention on tokens (x, y).

    A `FreeTransformer`, `Looped`, `AveragingTransformer`, `LearnedStart`, or a `TokenTransformer`, see `on_tokens`.

    Args:
        num_layers: how many layers are applied.
        looped: whether all are one layer, with the same weights.
        num_heads: heads of a layer.
        start_scale: standard deviation of the first weights.
        attention: "linear" or "softmax".
        sink: each head's sink, for softmax attention (`softmax_attention`).
        token_clip: tokens are clipped to plus and minus this after each layer; 0 is not at all.
        averaging: whether attention divides by the length of the prompt.
        learned_start: whether the query starts from (x_q, -W_0 x_q) with a trained W_0, at first zero.

    Raises:
        TypeError, ValueError: a count or a scale that is not positive, a negative sink or clip, an unknown attention,
            or choices that do not go together.
    """

    num_layers: int = 1
    looped: bool = False
    num_heads: int = 1
    start_scale: float = 0.05
    attention: Literal["linear", "softmax"] = "linear"
    token_clip: float = 0.0
    averaging: bool = False
    sink: float = 0.0
    learned_start: bool = False

    def __post_init__(self) -> None:
        positive_integer("num_layers", self.num_layers)
        positive_integer("num_heads", self.num_heads)
        positive_number("start_scale", self.start_scale)
        one_of("attention", self.attention, ("linear", "softmax"))
        non_negative_number("token_clip", self.token_clip)
        if non_negative_number("sink", self.sink) and self.attention != "softmax":
            raise ValueError(f"sink: expected 0 for linear attention, got {self.sink}")
        for name in ("averaging", "learned_start"):
            if getattr(self, name) and self.on_tokens:
                raise ValueError(f"{name}: expected False with softmax attention or clipped tokens, got True")
        kinds = [name for name in ("looped", "averaging", "learned_start") if getattr(self, name)]
        if len(kinds) > 1:
            raise ValueError(f"{kinds[1]}: expected False for a network that is {kinds[0]}, got True")

    @property
    def on_tokens(self) -> bool:
        """Whether explicit tokens are moved; else second moments are, and implicit weights are known."""
        return self.attention == "softmax" or self.token_clip > 0

    def build(self, tasks: AnyTasks, seeds: Sequence[int]) -> nn.Module:
        """A random start, one ensemble member a seed."""
        linear, count = _linear(tasks), 1 if self.looped else self.num_layers
        size = _input_size(linear)
        layers = random_layers(count, size, linear.y_dim, seeds, self.num_heads, self.start_scale)
        if self.on_tokens:
            return self._moving_tokens(layers)
        if self.looped:
            return Looped(FreeTransformer(layers), self.num_layers)
        if self.learned_start:
            return LearnedStart(layers, torch.zeros(len(seeds), linear.y_dim, size))
        return AveragingTransformer(layers) if self.averaging else FreeTransformer(layers)

    def _moving_tokens(self, layers: Sequence[AttentionWeights]) -> TokenTransformer:
        kind = partial(softmax_attention, sink=self.sink) if self.attention == "softmax" else linear_attention
        repeated = [*layers] * (self.num_layers if self.looped else 1)
        network = TokenTransformer(repeated, [kind] * self.num_layers, token_clip=self.token_clip or None)
        for layer in range(1, self.num_layers) if self.looped else ():
            for name in ("w_k", "w_q", "w_v", "w_p"):
                # One parameter with a name in every layer: what trains one layer trains all.
                setattr(network, f"{name}_{layer}", getattr(network, f"{name}_0"))
        return network


@dataclass(frozen=True)
class CopyingNetwork:
    """Two layers on alternating tokens x_1, y_1, x_2, ... with codes of their places; the second layer is linear.

    Args:
        codes: "sinusoidal", "fourier" (orthonormal waves) or "one-hot".
        code_width: numbers in a sinusoidal code; the others have 2N + 1.
        first: attention of the first layer.
        start_scale: standard deviation of the first weights.
        by_place: whether the first layer's scores may depend on the codes only (`PositionScored`).

    Raises:
        TypeError, ValueError: unknown codes or attention, a width or a scale that is not positive.
    """

    codes: Literal["sinusoidal", "fourier", "one-hot"] = "sinusoidal"
    code_width: int = 10
    first: Literal["softmax", "linear"] = "softmax"
    start_scale: float = 0.2
    by_place: bool = False

    def __post_init__(self) -> None:
        one_of("codes", self.codes, ("sinusoidal", "fourier", "one-hot"))
        positive_integer("code_width", self.code_width)
        one_of("first", self.first, ("softmax", "linear"))
        positive_number("start_scale", self.start_scale)

    def build(self, tasks: AnyTasks, seeds: Sequence[int]) -> TokenTransformer:
        """A random start, one ensemble member a seed."""
        linear = _linear(tasks)
        places = 2 * linear.num_context + 1
        if self.codes == "sinusoidal":
            codes = sinusoidal_codes(places, self.code_width)
        else:
            codes = one_hot_codes(places) if self.codes == "one-hot" else fourier_codes(places)
        width = _input_size(linear)
        size = width + codes.shape[-1]
        layers = random_layers(2, size, linear.y_dim, seeds, scale=self.start_scale)
        first = softmax_attention if self.first == "softmax" else linear_attention
        attentions, tokens = [first, linear_attention], partial(_placed_tokens, codes=codes)
        if self.by_place:
            return PositionScored(layers, attentions, tokens, slice(width, size))
        return TokenTransformer(layers, attentions, tokens)


@dataclass(frozen=True)
class FeatureNetwork:
    """The block of Proposition 2: an MLP that sees x alone, then one layer of linear attention (`TokenMLP`).

    Args:
        width: numbers of features.
        hidden: units of the MLP's hidden layer.
        activation: of the MLP.
        start_scale: standard deviation of the attention layer's first weights.
        equal_start: whether W_Q starts as W_K.

    Raises:
        TypeError, ValueError: a size or a scale that is not positive, an unknown activation.
    """

    width: int = 39
    hidden: int = 128
    activation: Activation = "tanh"
    start_scale: float = 0.1
    equal_start: bool = False

    def __post_init__(self) -> None:
        _check_mlp(self.width, self.hidden, self.activation)
        positive_number("start_scale", self.start_scale)

    def build(self, tasks: AnyTasks, seeds: Sequence[int]) -> TokenMLP:
        """A random start, one ensemble member a seed."""
        mlp = random_mlp(1, self.width, seeds, (self.hidden,), self.activation, tasks.input_range)
        layer = random_weights(self.width, 1, seeds, scale=self.start_scale)
        return TokenMLP(mlp, [replace(layer, w_q=layer.w_k) if self.equal_start else layer])


@dataclass(frozen=True)
class FeatureStep:
    """The baseline: an MLP whose last layer takes one gradient step, both meta-learned (`MetaLearnedMLP`).

    Args:
        width: numbers of features.
        hidden: units of the MLP's hidden layer.
        activation: of the MLP.
        eta: the first step size, on the half-MSE; it is learned.

    Raises:
        TypeError, ValueError: a size or a step that is not positive, an unknown activation.
    """

    width: int = 39
    hidden: int = 128
    activation: Activation = "tanh"
    eta: float = 0.5

    def __post_init__(self) -> None:
        _check_mlp(self.width, self.hidden, self.activation)
        positive_number("eta", self.eta)

    def build(self, tasks: AnyTasks, seeds: Sequence[int]) -> MetaLearnedMLP:
        """A random start, one ensemble member a seed."""
        mlp = random_mlp(1, self.width, seeds, (self.hidden,), self.activation, tasks.input_range)
        return MetaLearnedMLP(mlp, eta=self.eta)


@dataclass(frozen=True)
class ResidualNetwork:
    """The paper's block: an embedding, a residual MLP that sees x and y, linear attention (`ResidualMLPBlock`).

    Args:
        token_dim: numbers of a token.
        hidden: units of the MLP's hidden layer.
        activation: of the MLP.

    Raises:
        TypeError, ValueError: a size that is not positive, an unknown activation.
    """

    token_dim: int = 40
    hidden: int = 160
    activation: Activation = "gelu"

    def __post_init__(self) -> None:
        _check_mlp(self.token_dim, self.hidden, self.activation)

    def build(self, tasks: AnyTasks, seeds: Sequence[int]) -> nn.Module:
        """A random start, one ensemble member a seed."""
        return random_residual_block(
            self.token_dim, seeds, hidden=self.hidden, activation=self.activation, input_scale=tasks.input_range
        )


@dataclass(frozen=True)
class GDPlusPlusNetwork:
    """GD++ and nothing else, with one step size and one gamma a layer, both trained (`GDPlusPlusTransformer`).

    All seeds start from the same numbers; they differ in the tasks that they see.

    Args:
        num_layers: how many layers are applied.
        looped: whether all layers share one step size and one gamma.
        eta: the first step size, on the half-MSE, in P = (eta / N) I.
        gamma: the first gamma, on X X^T, in H = I - gamma X X^T.

    Raises:
        TypeError, ValueError: a count or a number that is not positive.
    """

    num_layers: int = 2
    looped: bool = False
    eta: float = 1.0
    gamma: float = 0.01

    def __post_init__(self) -> None:
        positive_integer("num_layers", self.num_layers)
        positive_number("eta", self.eta)
        positive_number("gamma", self.gamma)

    def build(self, tasks: AnyTasks, seeds: Sequence[int]) -> GDPlusPlusTransformer:
        """The start, one ensemble member a seed."""
        linear = _linear(tasks)
        numbers = torch.ones(len(seeds), 1 if self.looped else self.num_layers)
        sizes = (_input_size(linear), linear.y_dim, linear.num_context)
        return GDPlusPlusTransformer(self.eta * numbers, self.gamma * numbers, *sizes, num_layers=self.num_layers)


AnyNetwork = AttentionNetwork | CopyingNetwork | FeatureNetwork | FeatureStep | GDPlusPlusNetwork | ResidualNetwork


def _check_mlp(width: int, hidden: int, activation: str) -> None:
    positive_integer("width", width)
    positive_integer("hidden", hidden)
    one_of("activation", activation, ("tanh", "gelu", "relu"))


def _linear(tasks: AnyTasks) -> LinearTasks:
    if not isinstance(tasks, LinearTasks):
        raise SettingError(f"tasks: expected LinearTasks, got {type(tasks).__name__}")
    return tasks


def _input_size(tasks: LinearTasks) -> int:
    """The length of an x, with the constant coordinate where there is one."""
    return tasks.x_dim + int(tasks.constant_input)


def _placed_tokens(batch: TaskBatch, codes: Float[Tensor, "context token"]) -> Tokens:
    """`interleaved_tokens`, with the codes where the batch is."""
    return interleaved_tokens(batch, codes.to(batch.context_x))
