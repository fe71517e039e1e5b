"""Transformers: layers of attention weights, applied one after the other.

With linear attention the tokens move linearly, E_{l+1} = (I + M_l) E_l, and so does their second moment,
S_{l+1} = (I + M_l) S_l (I + M_l)^T. Hence a network's prediction is V x_q with *implicit weights* V that cost
O(layers token^3) a task once S is formed, whatever the context's length. `Transformer` and its kind compute so. With a
softmax there is no such V: `TokenTransformer` moves the tokens themselves.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from mesa_lib.learners import FittedLinearModel, predict_linear
from mesa_lib.networks.attention import (
    Attention,
    AttentionWeights,
    check_fit,
    context_moment,
    linear_self_attention,
)
from mesa_lib.networks.constructions import gd_plus_plus_construction
from mesa_lib.networks.tokens import Tokens, concatenated_tokens, read_prediction
from mesa_lib.seeding import generators
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import (
    finite_tensor,
    floating_dtype,
    floating_tensor,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
    typed,
)


@typed
def apply_layers(layers: Sequence[AttentionWeights], tokens: Tokens) -> Tokens:
    """Linear self-attention, layer after layer, on explicit tokens.

    Args:
        layers: the weights of each layer, the first one first.
        tokens: context (*ensemble, task, context, token), query (*ensemble, task, query, token).

    Returns:
        Tokens of the same shapes.

    Raises:
        TypeError, ValueError: a layer's dtype or token size is not that of the tokens.

    Example:
        >>> tokens = mesa.apply_layers([layer, layer], mesa.concatenated_tokens(batch))
        >>> step = mesa.gradient_descent(batch, eta=1.0, num_steps=2)
        >>> torch.allclose(mesa.read_prediction(tokens, y_dim=1), step)
        True
    """
    for weights in layers:
        tokens = linear_self_attention(weights, tokens)
    return tokens


@typed
def moment_implicit_weights(
    layers: Sequence[AttentionWeights],
    moment: Float[Tensor, "... task token token"],
    query_map: Float[Tensor, "... token x"],
) -> Float[Tensor, "*ensemble task y x"]:
    """Implicit weights V of stacked linear attention, from the context's second moment alone.

    The query token is Q_0 x_q with Q_0 = [I; -W_0]. Each layer does Q <- (I + M) Q and S <- (I + M) S (I + M)^T with
    M = sum_h W_PV S W_KQ; the read-out is V = -Q_L, y rows. Only these rows are ever needed, so the product
    (I + M_L) ... (I + M_1) Q_0 is formed from its left end, where it has as many rows as y has numbers.

    Args:
        layers: at least one.
        moment: S_0 = sum_i e_i e_i^T.
        query_map: Q_0; its axes broadcast against those of `moment`.

    Returns:
        Shape (*ensemble, task, y, x).

    Raises:
        TypeError, ValueError: no layer, a layer whose dtype, token size or ensemble axes do not fit the moment's, or a
            `query_map` of another dtype.

    Example:
        >>> moment = mesa.context_moment(mesa.concatenated_tokens(batch).context)
        >>> query_map = torch.eye(11, 10).double()  # a query's token: x, and zero for y
        >>> weights = mesa.moment_implicit_weights([layer], moment, query_map)
        >>> torch.allclose(weights, mesa.gradient_descent_weights(batch, eta=1.0))
        True
    """
    if not layers:
        raise ValueError("layers: expected at least one AttentionWeights, got none")
    floating_tensor("moment", moment, min_dims=2)
    same_kind("query_map", floating_tensor("query_map", query_map, min_dims=2), "moment", moment)
    for index, weights in enumerate(layers):
        check_fit(f"layers[{index}]", weights, moment)
    token_dim, x_dim = moment.shape[-1], query_map.shape[-1]
    products = [(_padded(weights.w_pv), _padded(weights.w_kq)) for weights in layers]
    moments = [_padded(moment)]
    for w_pv, w_kq in products[:-1]:
        moments.append(_moved_moment(w_pv, w_kq, moments[-1]))
    rows = torch.eye(moments[0].shape[-1], dtype=moment.dtype, device=moment.device)[x_dim:token_dim].unsqueeze(0)
    for (w_pv, w_kq), seen in zip(reversed(products), reversed(moments), strict=True):
        rows = rows + _rows_of_fast_weights(rows, w_pv, w_kq, seen)
    return -rows[..., :token_dim] @ query_map


def _padded(matrix: Float[Tensor, "... token token"]) -> Float[Tensor, "... wide wide"]:
    """Zeros to the right and below, up to the next multiple of four.

    They change no product. Small matrices of an odd size cost the matrix routines of a CPU up to twice the time: a
    batch of products took 107 microseconds at 11 x 11 and 57 at 12 x 12.
    """
    spare = -matrix.shape[-1] % 4
    return functional.pad(matrix, (0, spare, 0, spare))


def _moved_moment(
    w_pv: Float[Tensor, "... head token token"],
    w_kq: Float[Tensor, "... head token token"],
    moment: Float[Tensor, "... task token token"],
) -> Float[Tensor, "... task token token"]:
    """(I + M) S (I + M)^T with M = sum_h W_PV S W_KQ; einsum multiplies by a weight once for all tasks of a member."""
    scored = torch.einsum("...tij,...hjk->...htik", moment, w_kq)
    fast_weights = torch.einsum("...hij,...htjk->...tik", w_pv, scored)
    moved = moment + fast_weights @ moment
    return moved + moved @ fast_weights.mT


def _rows_of_fast_weights(
    rows: Float[Tensor, "... y token"],
    w_pv: Float[Tensor, "... head token token"],
    w_kq: Float[Tensor, "... head token token"],
    moment: Float[Tensor, "... task token token"],
) -> Float[Tensor, "... task y token"]:
    """R M for a few rows R, without forming M = sum_h W_PV S W_KQ."""
    values = torch.einsum("...tyi,...hij->...htyj", rows, w_pv)
    seen = torch.einsum("...htyi,...tij->...htyj", values, moment)
    return torch.einsum("...htyi,...hij->...tyj", seen, w_kq)


class Transformer(nn.Module):
    """A stack of linear self-attention layers as an in-context learner; subclasses say where the layers come from.

    Calling it on a TaskBatch gives predictions of shape (*ensemble, task, query, y). It is linear in the query, with
    `implicit_weights`.

    Args:
        w_0: the linear model that the query token starts from, (y, x): the token is (x_q, -W_0 x_q). Without it the
            token is (x_q, 0).

    Raises:
        TypeError, ValueError: `w_0` is not one finite floating-point matrix.

    Example:
        >>> issubclass(mesa.FreeTransformer, mesa.Transformer)
        True
        >>> [type(one).__name__ for one in mesa.FreeTransformer([layer]).layers()]
        ['AttentionWeights']
    """

    w_0: Float[Tensor, "y x"] | None

    def __init__(self, w_0: Float[Tensor, "y x"] | None = None) -> None:
        super().__init__()
        if w_0 is not None:
            finite_tensor("w_0", w_0, min_dims=2)
            if w_0.dim() != 2:
                raise ValueError(f"w_0: expected one matrix (y, x), got shape {tuple(w_0.shape)}")
        self.register_buffer("w_0", w_0)

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each layer, the first one first."""
        raise NotImplementedError

    def implicit_weights(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
        """V with prediction = V x_q, computed on second moments.

        Returns:
            Shape (*ensemble, task, y, x); the ensemble axes are the weights' where the batch has none.

        Raises:
            TypeError, ValueError: the network's dtype, token size or ensemble axes do not fit the batch.
        """
        context = torch.cat([batch.context_x, batch.context_y], dim=-1)
        return moment_implicit_weights(self.layers(), context_moment(context), self._query_map(batch))

    def forward(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predictions V x_q, shape (*ensemble, task, query, y)."""
        return predict_linear(self.implicit_weights(batch), batch)

    def tokens(self, batch: TaskBatch) -> Tokens:
        """The tokens that enter the first layer."""
        return concatenated_tokens(batch, self.w_0)

    def _query_map(self, batch: TaskBatch) -> Tensor:
        identity = torch.eye(batch.x_dim, dtype=batch.context_x.dtype, device=batch.context_x.device)
        if self.w_0 is None:
            return torch.cat([identity, identity.new_zeros(batch.y_dim, batch.x_dim)])
        trailing_shape("w_0", self.w_0, (batch.y_dim, batch.x_dim))
        same_kind("w_0", self.w_0, "the batch", batch.context_x)
        return torch.cat([identity, -self.w_0])


class FreeTransformer(Transformer):
    """A transformer whose every weight is a parameter: randomly started, constructed by hand, or trained.

    Args:
        layers: the weights of each layer; they are copied.
        w_0: see `Transformer`.

    Raises:
        TypeError, ValueError: no layer, or layers of different token size or ensemble axes.

    Example:
        >>> network = mesa.FreeTransformer([layer])
        >>> torch.allclose(network(batch), mesa.gradient_descent(batch, eta=1.0))
        True
    """

    def __init__(self, layers: Sequence[AttentionWeights], w_0: Float[Tensor, "y x"] | None = None) -> None:
        super().__init__(w_0)
        self.num_layers = _register(self, layers)

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each layer; gradients flow into the parameters."""
        return _registered(self, self.num_layers)


class AveragingTransformer(FreeTransformer):
    """A free transformer whose attention divides by the context's length: P stands for P / N, whatever N is.

    The weights of Proposition 1 hold P = (eta / N) I, and so they are a step of size eta at one N only. Here 1/N is
    part of the attention, and the same weights are a step of size eta at every length; `gd_construction` with
    ``num_context=1`` is one. Trained weights for it come from tasks of many lengths (`PromptTasks`).

    Args:
        layers: the weights of each layer; they are copied.
        w_0: see `Transformer`.

    Raises:
        TypeError, ValueError: see `FreeTransformer`.

    Example:
        >>> network = mesa.AveragingTransformer([layer])
        >>> tuple(network(batch).shape)
        (4, 1, 1)
    """

    def implicit_weights(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task y x"]:
        """V with prediction = V x_q, from the mean of e_i e_i^T over the context; see `Transformer`."""
        context = torch.cat([batch.context_x, batch.context_y], dim=-1)
        moment = context_moment(context) / batch.num_context
        return moment_implicit_weights(self.layers(), moment, self._query_map(batch))

    def tokens(self, batch: TaskBatch) -> Tokens:
        """The tokens that enter the first layer: the context's divided by sqrt N, which makes its sums means."""
        tokens = super().tokens(batch)
        return Tokens(tokens.context / batch.num_context**0.5, tokens.query)


def _register(module: nn.Module, layers: Sequence[AttentionWeights]) -> int:
    """Copy the layers' weights into parameters of a module, and return how many layers there are."""
    if not isinstance(layers, Iterable):
        raise TypeError(f"layers: expected a sequence of AttentionWeights, got {type(layers).__name__}")
    stack = list(layers)
    if not stack:
        raise ValueError("layers: expected at least one AttentionWeights, got none")
    for index, weights in enumerate(stack):
        if not isinstance(weights, AttentionWeights):
            raise TypeError(f"layers[{index}]: expected AttentionWeights, got {type(weights).__name__}")
        same_kind(f"layers[{index}]", weights.w_k, "layers[0]", stack[0].w_k)
        if weights.token_dim != stack[0].token_dim or weights.w_k.shape[:-3] != stack[0].w_k.shape[:-3]:
            raise ValueError(
                f"layers[{index}]: expected the token size and ensemble axes of layers[0], "
                f"{stack[0].token_dim} and {tuple(stack[0].w_k.shape[:-3])}, got {weights.token_dim} and "
                f"{tuple(weights.w_k.shape[:-3])}"
            )
    for index, weights in enumerate(stack):
        for field in fields(weights):
            parameter = nn.Parameter(getattr(weights, field.name).detach().clone())
            module.register_parameter(f"{field.name}_{index}", parameter)
    return len(stack)


def _registered(module: nn.Module, num_layers: int) -> list[AttentionWeights]:
    """The layers that `_register` put into a module."""
    names = [field.name for field in fields(AttentionWeights)]
    return [AttentionWeights(*(getattr(module, f"{name}_{index}") for name in names)) for index in range(num_layers)]


@typed
def layer_readers(network: FreeTransformer, calibration: TaskBatch) -> list[FittedLinearModel]:
    """What can be read from the query after each layer: the y-slot there, times one number, as a learner each.

    A linear probe, as in the layer-by-layer comparisons of Fu et al. (2024): after layer l the query token says
    V_l x_q in its y-slot, on a scale that only the last layer has to get right. The probe is the multiple of it with
    the least squared error of weights, sum |c V_l - W|^2, over the calibration tasks. (A full probe could also read the
    x-slots, which hold nothing about W.)

    Args:
        network: without W_0.
        calibration: tasks with teachers, other ones than those on which the learners are judged.

    Returns:
        One learner a layer, the first layer's first; ensemble axes are the network's.

    Raises:
        ValueError: the network has a W_0, `calibration` has no teachers, or a layer writes nothing.

    Example:
        >>> readers = mesa.layer_readers(mesa.FreeTransformer([layer]), batch)
        >>> len(readers), tuple(readers[-1](batch).shape)
        (1, (4, 1, 1))
    """
    if network.w_0 is not None:
        raise ValueError("network: expected one that starts from the query token (x_q, 0), got a W_0")
    if calibration.teacher is None:
        raise ValueError(
            "calibration: expected a batch with teachers, as LinearTasks.sample draws it, got teacher=None"
        )
    readers = []
    for count in range(1, network.num_layers + 1):
        beginning = type(network)(network.layers()[:count]).requires_grad_(False)
        weights = beginning.implicit_weights(calibration)
        size = weights.square().sum((-3, -2, -1), keepdim=True)
        if not bool((size > 0).all()):
            raise ValueError(f"network: expected every layer to write to the y-slot, got zeros after layer {count}")
        scale = (weights * calibration.teacher).sum((-3, -2, -1), keepdim=True) / size
        readers.append(FittedLinearModel(partial(_scaled_weights, beginning, scale)))
    return readers


def _scaled_weights(network: Transformer, scale: Tensor, batch: TaskBatch) -> Tensor:
    return scale * network.implicit_weights(batch)


class LearnedStart(FreeTransformer):
    """A free transformer that also learns what the query token starts from: (x_q, -W_0 x_q) with a trained W_0.

    W_0 is the slow half of the paper's two time scales: training moves it, over tasks; within a task the layers move
    on from it. `Transformer.w_0`, by contrast, is a constant that somebody has to know.

    Args:
        layers: the weights of each layer, with the ensemble's axis in front; they are copied.
        start: the first W_0 of each member, (ensemble, y, x); it is copied.

    Raises:
        TypeError, ValueError: see `FreeTransformer`; or `start` is not one finite matrix for each member.

    Example:
        >>> network = mesa.LearnedStart([mesa.random_weights(10, 1, seeds=[0])], torch.zeros(1, 1, 10))
        >>> sorted(name for name, _ in network.named_parameters())[0]
        'start'
    """

    def __init__(self, layers: Sequence[AttentionWeights], start: Float[Tensor, "ensemble y x"]) -> None:
        super().__init__(layers)
        finite_tensor("start", start, min_dims=3)
        first = self.layers()[0]
        same_kind("start", start, "layers[0]", first.w_k)
        members = tuple(first.w_k.shape[:-3])
        if start.dim() != 3 or tuple(start.shape[:1]) != members or sum(start.shape[1:]) != first.token_dim:
            raise ValueError(
                f"start: expected one matrix (y, x) for each of the ensemble axes {members} with y + x = "
                f"{first.token_dim}, got shape {tuple(start.shape)}"
            )
        self.start = nn.Parameter(start.detach().clone())

    def tokens(self, batch: TaskBatch) -> Tokens:
        """The tokens that enter the first layer, one set for each member."""
        everyone = batch if batch.context_x.dim() > 3 else batch.expand(len(self.start))
        return concatenated_tokens(everyone, self.start[:, None])

    def _query_map(self, batch: TaskBatch) -> Tensor:
        trailing_shape("start", self.start, (batch.y_dim, batch.x_dim))
        identity = torch.eye(batch.x_dim, dtype=self.start.dtype, device=self.start.device)
        return torch.cat([identity.expand(len(self.start), -1, -1), -self.start], dim=-2)[:, None]


class TokenTransformer(nn.Module):
    """A transformer that moves explicit tokens, so that each of its layers may have any kind of attention.

    Every weight is a parameter. Calling it on a TaskBatch gives predictions of shape (*ensemble, task, query, y). It is
    no `LinearLearner`: train it with `sampled_query_loss` and several queries a task. For
    softmax attention with a sink, give ``partial(softmax_attention, sink=1.0)``.

    Args:
        layers: the weights of each layer; they are copied.
        attentions: the kind of attention of each layer, `linear_attention` or `softmax_attention`.
        tokens: makes the tokens that enter the first layer; e_i = (x_i, y_i) and (x_q, 0) by default.
        read: takes the predictions from the tokens that leave the last layer, given the number of targets.
        token_clip: after every layer all numbers of a token are clipped to plus and minus this, as in the paper's code
            for more than three layers (at 10); not at all if absent.

    Raises:
        TypeError, ValueError: no layer, layers that do not stack (see `FreeTransformer`), not one attention a layer, or
            a `token_clip` that is not positive.

    Example:
        >>> network = mesa.TokenTransformer([layer], [mesa.linear_attention])
        >>> torch.allclose(network(batch), mesa.gradient_descent(batch, eta=1.0))
        True
    """

    def __init__(
        self,
        layers: Sequence[AttentionWeights],
        attentions: Sequence[Attention],
        tokens: Callable[[TaskBatch], Tokens] = concatenated_tokens,
        read: Callable[[Tokens, int], Float[Tensor, "*ensemble task query y"]] = read_prediction,
        token_clip: float | None = None,
    ) -> None:
        super().__init__()
        self.token_clip = None if token_clip is None else positive_number("token_clip", token_clip)
        self.num_layers = _register(self, layers)
        self.attentions = tuple(attentions)
        if len(self.attentions) != self.num_layers:
            raise ValueError(f"attentions: expected {self.num_layers}, one a layer, got {len(self.attentions)}")
        for index, attention in enumerate(self.attentions):
            if not callable(attention):
                raise TypeError(f"attentions[{index}]: expected a function, got {type(attention).__name__}")
        self.tokens, self.read = tokens, read

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each layer; gradients flow into the parameters."""
        return _registered(self, self.num_layers)

    def forward(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predictions, shape (*ensemble, task, query, y)."""
        tokens = self.tokens(batch)
        *inner, last = zip(self.layers(), self.attentions, strict=True)
        for weights, attention in inner:
            readers = torch.cat([tokens.context, tokens.query], dim=-2)
            moved = self._clipped(readers + attention(weights, tokens.context, readers))
            length = tokens.context.shape[-2]
            tokens = Tokens(moved[..., :length, :], moved[..., length:, :])
        # The context that leaves the last layer would be read by nobody, so only the queries are moved.
        weights, attention = last
        query = self._clipped(tokens.query + attention(weights, tokens.context, tokens.query))
        return self.read(Tokens(tokens.context.expand(*query.shape[:-2], -1, -1), query), batch.y_dim)

    def _clipped(self, tokens: Tensor) -> Tensor:
        return tokens if self.token_clip is None else tokens.clamp(-self.token_clip, self.token_clip)


class GDPlusPlusTransformer(Transformer):
    """A transformer whose layers are GD++ and nothing else: two positive numbers a layer, eta and gamma, are trained.

    Layer l is ``gd_plus_plus_construction(eta_l, gamma_l, ...)`` from W_0 = 0. What is stored and trained are the
    logarithms, so that a step of the optimiser is a relative one: the numbers of a deep net span decades. Untied, only
    2L - 1 of the numbers can matter; the last layer's gamma gets no gradient and keeps its value.

    Args:
        etas: positive, shape (*ensemble, layer); with one layer and `num_layers` > 1 all layers share it (tied).
        gammas: positive, on S = sum_i x_i x_i^T, the same shape.
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: N, for eta / N.
        num_layers: L; the length of `etas` if absent.

    Raises:
        TypeError, ValueError: `etas` or `gammas` is not positive and finite, their shapes or dtypes disagree, or there
            is neither one of them nor one a layer.

    Example:
        >>> etas, gammas = torch.tensor([[0.8]], dtype=torch.float64), torch.tensor([[0.1]], dtype=torch.float64)
        >>> network = mesa.GDPlusPlusTransformer(etas, gammas, x_dim=10, y_dim=1, num_context=10)
        >>> torch.allclose(network(batch)[0], mesa.gd_plus_plus(batch, etas=[0.8], gammas=[0.1]))
        True
    """

    def __init__(
        self,
        etas: Float[Tensor, "*ensemble layer"],
        gammas: Float[Tensor, "*ensemble layer"],
        x_dim: int,
        y_dim: int,
        num_context: int,
        num_layers: int | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("etas", etas), ("gammas", gammas)):
            finite_tensor(name, value, min_dims=1)
            if not bool((value > 0).all()):
                raise ValueError(f"{name}: expected positive numbers, got {value.tolist()}")
        same_kind("gammas", gammas, "etas", etas)
        if gammas.shape != etas.shape:
            raise ValueError(f"gammas: expected the shape {tuple(etas.shape)} of etas, got {tuple(gammas.shape)}")
        stored = etas.shape[-1]
        self.num_layers = stored if num_layers is None else positive_integer("num_layers", num_layers)
        if stored not in (1, self.num_layers):
            raise ValueError(f"etas: expected one for all layers or {self.num_layers}, one a layer, got {stored}")
        self.x_dim, self.y_dim = positive_integer("x_dim", x_dim), positive_integer("y_dim", y_dim)
        self.num_context = positive_integer("num_context", num_context)
        self.log_etas = nn.Parameter(etas.detach().log())
        self.log_gammas = nn.Parameter(gammas.detach().log())

    @property
    def etas(self) -> Float[Tensor, "*ensemble layer"]:
        """The step size of each layer; tied layers have the same one. Shape (*ensemble, layer)."""
        return self.log_etas.exp().expand(*self.log_etas.shape[:-1], self.num_layers)

    @property
    def gammas(self) -> Float[Tensor, "*ensemble layer"]:
        """Each layer's gamma; the last one reaches no prediction. Shape (*ensemble, layer)."""
        return self.log_gammas.exp().expand(*self.log_gammas.shape[:-1], self.num_layers)

    def layers(self) -> Sequence[AttentionWeights]:
        """The weights of each layer; gradients flow into the parameters."""
        pairs = zip(self.etas.unbind(-1), self.gammas.unbind(-1), strict=True)
        sizes = (self.x_dim, self.y_dim, self.num_context)
        return [gd_plus_plus_construction(eta, gamma, *sizes) for eta, gamma in pairs]

    def tokens(self, batch: TaskBatch) -> Tokens:
        """The tokens that enter the first layer."""
        self._check_sizes(batch)
        return super().tokens(batch)

    def _query_map(self, batch: TaskBatch) -> Tensor:
        self._check_sizes(batch)
        return super()._query_map(batch)

    def _check_sizes(self, batch: TaskBatch) -> None:
        """Refuse tasks whose tokens have the right length, but are split elsewhere into inputs and targets."""
        if (batch.x_dim, batch.y_dim) != (self.x_dim, self.y_dim):
            raise ValueError(
                f"batch: expected x_dim = {self.x_dim} and y_dim = {self.y_dim}, those of the network, "
                f"got {batch.x_dim} and {batch.y_dim}"
            )


class Looped(Transformer):
    """A network applied several times to its own output, each update damped: e <- e + damping * update.

    The paper's recurrent transformer (its sections 3 and A.6; lambda there is the damping). Training it trains the
    network inside. Damping scales the update of every layer; for a network of one layer that is the paper's rule.

    Args:
        network: the layers to repeat; it is held, not copied.
        num_loops: how many times.
        damping: factor of each update; 1 leaves the network as it is.

    Raises:
        TypeError, ValueError: `network` is no Transformer, `num_loops` is not a positive integer, or `damping` is not
            positive.

    Example:
        >>> twice = mesa.Looped(mesa.FreeTransformer([layer]), num_loops=2)
        >>> torch.allclose(twice(batch), mesa.gradient_descent(batch, eta=1.0, num_steps=2))
        True
    """

    def __init__(self, network: Transformer, num_loops: int, damping: float = 1.0) -> None:
        if not isinstance(network, Transformer):
            raise TypeError(f"network: expected a Transformer, got {type(network).__name__}")
        super().__init__(network.w_0)
        self.network = network
        self.num_loops = positive_integer("num_loops", num_loops)
        self.damping = positive_number("damping", damping)

    def layers(self) -> Sequence[AttentionWeights]:
        """The damped layers, once for each loop; gradients flow into the network's parameters."""
        once = [replace(weights, w_p=self.damping * weights.w_p) for weights in self.network.layers()]
        return once * self.num_loops

    def tokens(self, batch: TaskBatch) -> Tokens:
        """The tokens that enter the first layer: those of the network, with what it knows of the query's slot."""
        return self.network.tokens(batch)

    def _query_map(self, batch: TaskBatch) -> Tensor:
        return self.network._query_map(batch)


def random_weights(
    x_dim: int,
    y_dim: int,
    seeds: Sequence[int],
    num_heads: int = 1,
    scale: float = 0.05,
    dtype: torch.dtype = torch.float32,
) -> AttentionWeights:
    """A random start for an ensemble: every entry of the four factors N(0, scale^2), one stream per seed.

    The paper's code starts one layer at a standard deviation of sqrt(0.002 / 11) = 0.0135. The default is larger
    because the start's only role here is to break the tie at zero, and a small one spends its first steps growing.

    Args:
        x_dim: input dimensions d.
        y_dim: target dimensions; tokens have x_dim + y_dim numbers, and so have keys, queries and values.
        seeds: one per ensemble member.
        num_heads: heads of the layer.
        scale: standard deviation of an entry.
        dtype: a floating-point dtype.

    Returns:
        AttentionWeights with factors of shape (ensemble, head, token, token).

    Raises:
        TypeError, ValueError: a size is not a positive integer, `scale` is not positive, no seeds, repeated seeds, a
            `dtype` that is not floating-point.

    Example:
        >>> mesa.random_weights(x_dim=10, y_dim=1, seeds=[0, 1, 2]).w_k.shape[0]  # one slice a seed
        3
    """
    token_dim = positive_integer("x_dim", x_dim) + positive_integer("y_dim", y_dim)
    shape = (4, positive_integer("num_heads", num_heads), token_dim, token_dim)
    std = positive_number("scale", scale)
    floating_dtype("dtype", dtype)
    streams = generators(seeds, "init")
    drawn = torch.stack([std * torch.randn(*shape, generator=stream, dtype=dtype) for stream in streams], dim=1)
    return AttentionWeights(*drawn)


def random_layers(
    num_layers: int,
    x_dim: int,
    y_dim: int,
    seeds: Sequence[int],
    num_heads: int = 1,
    scale: float = 0.05,
    dtype: torch.dtype = torch.float32,
) -> list[AttentionWeights]:
    """A random start for a deep network: `random_weights` layer after layer, all layers different.

    All layers come from one draw of each seed's stream. (Calling `random_weights` once a layer would start the stream
    anew, and give every layer the same weights.)

    Args:
        num_layers: L.
        x_dim: input dimensions d.
        y_dim: target dimensions.
        seeds: one per ensemble member.
        num_heads: heads of a layer.
        scale: standard deviation of an entry.
        dtype: a floating-point dtype.

    Returns:
        L AttentionWeights with factors of shape (ensemble, head, token, token).

    Raises:
        TypeError, ValueError: see `random_weights`; or `num_layers` is not a positive integer.

    Example:
        >>> len(mesa.random_layers(5, x_dim=10, y_dim=1, seeds=[0]))
        5
    """
    layers = positive_integer("num_layers", num_layers)
    heads = positive_integer("num_heads", num_heads)
    drawn = random_weights(x_dim, y_dim, seeds, layers * heads, scale, dtype)
    parts = [getattr(drawn, field.name).split(heads, dim=-3) for field in fields(drawn)]
    return [AttentionWeights(*(part.clone() for part in factors)) for factors in zip(*parts, strict=True)]
