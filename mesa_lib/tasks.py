"""Regression tasks: a context of labelled examples, and the queries asked about it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mesa_lib.validation import (
    finite_numbers,
    finite_tensor,
    floating_dtype,
    matrix_of_numbers,
    non_negative_number,
    one_of,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
)


@dataclass(frozen=True, eq=False)
class TaskBatch:
    """Tasks side by side: what each shows (the context) and what each asks (the queries).

    A learner sees `context_x`, `context_y` and `query_x` and predicts `query_y`. The matrix W behind the targets may
    ride along as `teacher`: losses and tests use it, learners must not. Where all tasks ask the same queries, and the
    contexts were drawn from among them, `context_index` may say which query each example's input is; it tells nothing
    new, but a learner may use it to look at each input once.

    Shapes:
        context_x: (*ensemble, task, context, x)
        context_y: (*ensemble, task, context, y)
        query_x: (*ensemble, task, query, x)
        query_y: (*ensemble, task, query, y)
        teacher: (*ensemble, task, y, x), or None when no linear map made the targets
        context_index: (*ensemble, task, context), integers, or None

    Raises:
        TypeError: a field is no floating-point tensor, or the fields' dtypes disagree.
        ValueError: the fields' shapes or devices disagree, a number is not finite, or `context_index` points at inputs
            other than the context's.

    Example:
        >>> batch.x_dim, batch.y_dim, batch.num_context, batch.num_queries
        (10, 1, 10, 1)
    """

    context_x: Float[Tensor, "*ensemble task context x"]
    context_y: Float[Tensor, "*ensemble task context y"]
    query_x: Float[Tensor, "*ensemble task query x"]
    query_y: Float[Tensor, "*ensemble task query y"]
    teacher: Float[Tensor, "*ensemble task y x"] | None = None
    context_index: Int[Tensor, "*ensemble task context"] | None = None

    def __post_init__(self) -> None:
        for name, value in self._tensors().items():
            if name == "context_index":
                continue
            finite_tensor(f"TaskBatch.{name}", value, min_dims=3)
            same_kind(f"TaskBatch.{name}", value, "context_x", self.context_x)
            if value.shape[:-2] != self.context_x.shape[:-2]:
                raise ValueError(
                    f"TaskBatch.{name}: expected leading axes {tuple(self.context_x.shape[:-2])}, those of context_x, "
                    f"got {tuple(value.shape[:-2])}"
                )
            if 0 in value.shape:
                raise ValueError(f"TaskBatch.{name}: expected no empty axis, got shape {tuple(value.shape)}")
        trailing_shape("TaskBatch.context_y", self.context_y, (self.num_context, self.y_dim))
        trailing_shape("TaskBatch.query_x", self.query_x, (self.num_queries, self.x_dim))
        trailing_shape("TaskBatch.query_y", self.query_y, (self.num_queries, self.y_dim))
        if self.teacher is not None:
            trailing_shape("TaskBatch.teacher", self.teacher, (self.y_dim, self.x_dim))
        if self.context_index is not None:
            self._check_index(self.context_index)

    def _check_index(self, index: Tensor) -> None:
        if index.dtype != torch.int64 or index.shape != self.context_x.shape[:-1]:
            raise ValueError(
                f"TaskBatch.context_index: expected integers (torch.int64) of shape {tuple(self.context_x.shape[:-1])},"
                f" got {index.dtype} of shape {tuple(index.shape)}"
            )
        pool = self.query_x[..., 0, :, :]
        if not bool((self.query_x == pool.unsqueeze(-3)).all()):
            raise ValueError("TaskBatch.context_index: expected the same queries in every task, got different ones")
        if not bool(((index >= 0) & (index < self.num_queries)).all()):
            raise ValueError(f"TaskBatch.context_index: expected integers from 0 to {self.num_queries - 1}, got others")
        rows = index.flatten(-2).unsqueeze(-1).expand(*index.shape[:-2], -1, self.x_dim)
        if not torch.equal(pool.gather(-2, rows).view_as(self.context_x), self.context_x):
            raise ValueError("TaskBatch.context_index: expected it to point at the context's inputs, got other inputs")

    def _tensors(self) -> dict[str, Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        optional = ("teacher", "context_index")
        return {name: value for name, value in values.items() if not (name in optional and value is None)}

    @property
    def x_dim(self) -> int:
        """Number of input dimensions d."""
        return self.context_x.shape[-1]

    @property
    def y_dim(self) -> int:
        """Number of target dimensions."""
        return self.context_y.shape[-1]

    @property
    def num_context(self) -> int:
        """Number N of examples in a context."""
        return self.context_x.shape[-2]

    @property
    def num_queries(self) -> int:
        """Number of queries per task."""
        return self.query_x.shape[-2]

    @property
    def num_tasks(self) -> int:
        """Number of tasks (of each ensemble member)."""
        return self.context_x.shape[-3]

    @staticmethod
    def stack(batches: Sequence["TaskBatch"]) -> "TaskBatch":
        """Put one batch per ensemble member along a new leading axis; shapes (...) become (ensemble, ...).

        Raises:
            TypeError: batches of different dtypes.
            ValueError: no batch, or batches that differ in shape, in device, in having a teacher or a context_index.
        """
        if not batches:
            raise ValueError("batches: expected at least one TaskBatch, got none")
        tensors = [batch._tensors() for batch in batches]
        shapes = [{name: tuple(value.shape) for name, value in one.items()} for one in tensors]
        if any(shape != shapes[0] for shape in shapes):
            raise ValueError(f"batches: expected equal shapes, got {shapes}")
        for index, batch in enumerate(batches):
            same_kind(f"batches[{index}]", batch.context_x, "batches[0]", batches[0].context_x)
        return TaskBatch(**{name: torch.stack([one[name] for one in tensors]) for name in tensors[0]})

    def expand(self, *ensemble: int) -> "TaskBatch":
        """The same tasks seen by every member of an ensemble: views of shape (*ensemble, ...), no copies."""
        return TaskBatch(**{name: value.expand(*ensemble, *value.shape) for name, value in self._tensors().items()})

    def first(self, num_context: int) -> "TaskBatch":
        """The same tasks with only the first `num_context` examples of each context: a prompt, broken off earlier.

        Raises:
            TypeError, ValueError: `num_context` is not a positive integer, or the contexts are shorter.
        """
        count = positive_integer("num_context", num_context)
        if count > self.num_context:
            raise ValueError(f"num_context: expected at most {self.num_context} examples, got {count}")
        index = None if self.context_index is None else self.context_index[..., :count]
        shorter = {"context_x": self.context_x[..., :count, :], "context_y": self.context_y[..., :count, :]}
        return replace(self, **shorter, context_index=index)

    def to(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> "TaskBatch":
        """The same tasks in another dtype or on another device; this very batch if nothing has to move."""
        tensors = self._tensors()
        moved = {
            name: value.to(dtype=dtype if value.is_floating_point() else None, device=device)
            for name, value in tensors.items()
        }
        # Checking a batch anew takes a training longer than moving it.
        return self if all(moved[name] is value for name, value in tensors.items()) else TaskBatch(**moved)


@runtime_checkable
class Tasks(Protocol):
    """A distribution over tasks, as training needs it: something that draws fresh ones.

    `LinearTasks` and `SineTasks` are two; any object with such a method will do. What it draws is a `TaskBatch` with
    contexts (task, context, x) and (task, context, y) and queries (task, query, x) and (task, query, y).

    Example:
        >>> isinstance(mesa.LinearTasks(), mesa.Tasks)
        True
    """

    def sample(
        self,
        num_tasks: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> TaskBatch:
        """Draw `num_tasks` tasks; the generator is the only source of randomness."""
        ...


@dataclass(frozen=True)
class LinearTasks:
    """The distribution of noisy linear regression tasks: y_i = W x_i + noise, and clean queries W x_q.

    Each task draws its own teacher W, with independent entries N(teacher_mean, teacher_scale^2). The inputs are

        x = R z,   z with independent, symmetric coordinates of variance 1 and of one kurtosis kappa = E z^4,

    with R = r s I by default (r is `input_range`, and s the standard deviation of the unscaled coordinate), and with
    R = r Sigma^(1/2), the symmetric root, for an `input_covariance` Sigma. So Sigma is the covariance of x where r = 1,
    whatever `inputs`, and r rescales the inputs in both cases.

    Defaults are the paper's setting as its text has it (section 3): d = N = 10, one target, x ~ U(-1, 1), W ~ N(0, I),
    no noise. The released code draws x ~ U(-1/2, 1/2) instead, which is ``input_range=0.5`` here.

    Args:
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: examples N per context.
        num_queries: queries per task.
        input_range: r, the scale of the inputs: without a covariance the half-width of U(-r, r), the standard deviation
            of normal or Laplace coordinates, or the size of coordinates +-r.
        inputs: the shape of z's coordinates: "uniform" (kappa 9/5), "normal" (3), "laplace" (6) or "rademacher" (1).
        teacher_scale: standard deviation of W's entries.
        noise_std: standard deviation of the noise on the context's targets; query targets are clean.
        input_covariance: Sigma, a symmetric positive definite (x, x) matrix: nested sequences or a tensor, kept as a
            tuple of tuples, so that tasks compare and hash by value. None leaves the coordinates independent.
        teacher_mean: the mean of W over tasks, a (y, x) matrix in the same forms. None is zero.
        constant_input: whether every x of a batch ends with an extra coordinate 1, for which the teacher has weight 0.
            A layer on such tokens is a layer with biases on its keys, queries and values.

    Raises:
        TypeError, ValueError: a size that is not a positive integer, a scale that is not a number from 1e-20 to 1e20, a
            negative noise, an unknown input distribution, a matrix of another shape, a covariance that is not symmetric
            and positive definite, a `constant_input` that is not a bool.

    Example:
        >>> tasks = mesa.LinearTasks(x_dim=3, num_context=5)
        >>> tuple(tasks.sample(100, mesa.generator(0, "training tasks")).context_x.shape)
        (100, 5, 3)
    """

    x_dim: int = 10
    y_dim: int = 1
    num_context: int = 10
    num_queries: int = 1
    input_range: float = 1.0
    inputs: Literal["uniform", "normal", "laplace", "rademacher"] = "uniform"
    teacher_scale: float = 1.0
    noise_std: float = 0.0
    input_covariance: Sequence[Sequence[float]] | Float[Tensor, "x x"] | None = None
    teacher_mean: Sequence[Sequence[float]] | Float[Tensor, "y x"] | None = None
    constant_input: bool = False

    def __post_init__(self) -> None:
        for name in ("x_dim", "y_dim", "num_context", "num_queries"):
            positive_integer(f"LinearTasks.{name}", getattr(self, name))
        for name in ("input_range", "teacher_scale"):
            _within_reach(f"LinearTasks.{name}", positive_number(f"LinearTasks.{name}", getattr(self, name)))
        if non_negative_number("LinearTasks.noise_std", self.noise_std) > 0:
            _within_reach("LinearTasks.noise_std", self.noise_std)
        one_of("LinearTasks.inputs", self.inputs, tuple(_COORDINATES))
        if not isinstance(self.constant_input, bool):
            raise TypeError(f"LinearTasks.constant_input: expected True or False, got {self.constant_input!r}")
        shapes = {"input_covariance": (self.x_dim, self.x_dim), "teacher_mean": (self.y_dim, self.x_dim)}
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                numbers = matrix_of_numbers(f"LinearTasks.{name}", getattr(self, name), shape)
                object.__setattr__(self, name, numbers)  # the way for a frozen dataclass to tidy up its own fields
        if self.teacher_mean is not None and self.teacher_center.any():
            _within_reach("LinearTasks.teacher_mean", float(self.teacher_center.norm()))
        if self.input_covariance is not None:
            covariance = _checked_covariance(torch.tensor(self.input_covariance, dtype=torch.float64))
            object.__setattr__(self, "input_covariance", tuple(tuple(row) for row in covariance.tolist()))
            for size in torch.linalg.eigvalsh(covariance)[[0, -1]].sqrt().tolist():
                _within_reach("LinearTasks.input_covariance", self.input_range * size, "input_range * eigenvalue^(1/2)")

    @property
    def kurtosis(self) -> float:
        """E z^4 = kappa of one coordinate z of variance 1: 9/5 uniform, 3 normal, 6 Laplace, 1 for signs."""
        return _COORDINATES[self.inputs][1]

    @property
    def input_root(self) -> Float[Tensor, "x x"]:
        """R with x = R z, symmetric, in float64: r s I, or r Sigma^(1/2)."""
        return self._root.clone()

    @cached_property
    def _root(self) -> Tensor:
        """`input_root`, decomposed once: training draws inputs, and asks for their moments, in every step."""
        if self.input_covariance is None:
            scale: float = self.input_range * _COORDINATES[self.inputs][0] ** 0.5
            return scale * torch.eye(self.x_dim, dtype=torch.float64)
        eigenvalues, basis = torch.linalg.eigh(torch.tensor(self.input_covariance, dtype=torch.float64))
        root: Tensor = self.input_range * (basis * eigenvalues.sqrt()) @ basis.mT
        return root

    @property
    def second_moment(self) -> float:
        """m2 = E x^2 of one coordinate: r^2/3 for U(-r, r), r^2 for the others; with a covariance r^2 tr Sigma / d."""
        if self.input_covariance is None:
            return self.input_range**2 * _COORDINATES[self.inputs][0]
        return float(self.input_root.square().sum()) / self.x_dim

    @property
    def fourth_moment(self) -> float:
        """m4 = E x^4 of one coordinate: r^4/5 for U(-r, r), 3 r^4 normal; with a covariance its mean over coordinates.

        For x = R z it is E x_a^4 = 3 (sum_k R_ak^2)^2 + (kappa - 3) sum_k R_ak^4.
        """
        if self.input_covariance is None:
            return self.kurtosis * self.second_moment**2
        squares = self.input_root.square()
        return float((3 * squares.sum(-1).square() + (self.kurtosis - 3) * squares.square().sum(-1)).mean())

    @property
    def query_moment(self) -> Float[Tensor, "x x"]:
        """E[x_q x_q^T] = R R^T, in float64: what an expected loss needs to know about the queries.

        It is m2 I without a covariance. With `constant_input` it has one more row and column, for the coordinate 1.
        """
        moment = self.input_root @ self.input_root
        if not self.constant_input:
            return moment
        with_constant = torch.eye(self.x_dim + 1, dtype=torch.float64)
        with_constant[: self.x_dim, : self.x_dim] = moment
        return with_constant

    @property
    def teacher_center(self) -> Float[Tensor, "y x"]:
        """The mean of W over tasks, in float64; zeros by default."""
        if self.teacher_mean is None:
            return torch.zeros(self.y_dim, self.x_dim, dtype=torch.float64)
        return torch.tensor(self.teacher_mean, dtype=torch.float64)

    def sample(
        self,
        num_tasks: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> TaskBatch:
        """Draw `num_tasks` fresh tasks, with their teachers.

        The numbers are drawn on the generator's device in `dtype`, in the order teacher, context, query, noise, and
        then moved to `device`: the same generator state gives the same contexts whatever the number of queries.

        Args:
            num_tasks: how many tasks.
            generator: the only source of randomness, see `mesa_lib.generator`.
            dtype: a floating-point dtype.
            device: where the batch shall live.

        Returns:
            A TaskBatch with context_x (task, context, x), context_y (task, context, y), query_x (task, query, x),
            query_y (task, query, y) and teacher (task, y, x); x counts the constant coordinate if there is one.

        Raises:
            TypeError, ValueError: `num_tasks` is not a positive integer, `generator` is no torch.Generator, `dtype` is
                not floating-point.
        """
        count = _checked_draw(num_tasks, generator, dtype)
        teacher = self._normal((count, self.y_dim, self.x_dim), generator, dtype) * self.teacher_scale
        if self.teacher_mean is not None:
            teacher = teacher + self.teacher_center.to(teacher)
        context_x = self._inputs((count, self.num_context, self.x_dim), generator, dtype)
        query_x = self._inputs((count, self.num_queries, self.x_dim), generator, dtype)
        context_y = context_x @ teacher.mT
        if self.noise_std > 0:
            context_y = context_y + self.noise_std * self._normal(context_y.shape, generator, dtype)
        query_y = query_x @ teacher.mT
        if self.constant_input:
            context_x, query_x = _with_last(context_x, 1.0), _with_last(query_x, 1.0)
            teacher = _with_last(teacher, 0.0)
        batch = TaskBatch(context_x, context_y, query_x, query_y, teacher)
        return batch if torch.device(device) == generator.device else batch.to(device=device)

    @staticmethod
    def _normal(shape: Sequence[int], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype, device=generator.device)

    def _inputs(self, shape: Sequence[int], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        coordinates = self._coordinates(shape, generator, dtype)
        if self.input_covariance is None:
            return self.input_range * coordinates
        to_unit_variance = _COORDINATES[self.inputs][0] ** -0.5
        mixed: Tensor = coordinates @ (to_unit_variance * self.input_root).to(coordinates)
        return mixed

    def _coordinates(self, shape: Sequence[int], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        """Independent coordinates at input_range 1, their variance as in `_COORDINATES`."""
        if self.inputs == "normal":
            return self._normal(shape, generator, dtype)
        doubled = (2, *shape) if self.inputs == "laplace" else shape
        uniform = torch.rand(*doubled, generator=generator, dtype=dtype, device=generator.device)
        if self.inputs == "uniform":
            return 2 * uniform - 1
        if self.inputs == "rademacher":
            return 1 - 2 * (uniform < 0.5).to(dtype)
        # The difference of two exponential numbers of mean 1 is a Laplace number of variance 2. As `uniform` is less
        # than 1, no logarithm is infinite.
        exponential = -torch.log1p(-uniform)
        difference: Tensor = exponential[0] - exponential[1]
        return difference / 2**0.5


@dataclass(frozen=True)
class PromptTasks(LinearTasks):
    """Linear regression tasks with prompts of every length from 1 to `num_context`, equally often.

    Garg et al. (2022) train on every beginning of a prompt. Here task number k of a batch has n = 1 + (k mod N)
    examples. So that one batch holds them all, a shorter context is filled up to N with examples (0, 0), and its own
    examples are multiplied by sqrt(N / n). A learner that sees a context only through the *mean* of e e^T, as gradient
    descent on the half-MSE does, and attention that divides by the context's length, then answers exactly as it would
    to the n examples alone. For other learners the tasks mean something else; for them use `TaskBatch.first`.

    Example:
        >>> batch = mesa.PromptTasks(num_context=5).sample(2, mesa.generator(0, "training tasks"))
        >>> batch.context_x.ndim
        3
    """

    def sample(
        self,
        num_tasks: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> TaskBatch:
        """Draw `num_tasks` fresh tasks with their teachers; arguments, result and errors as for `LinearTasks`."""
        batch = super().sample(num_tasks, generator, dtype, device)
        total = self.num_context
        lengths = (torch.arange(num_tasks) % total + 1)[:, None].to(batch.context_x)
        shown = torch.arange(total, device=lengths.device) < lengths
        factor = (shown * (total / lengths).sqrt())[..., None]
        return replace(batch, context_x=factor * batch.context_x, context_y=factor * batch.context_y)


def _checked_draw(num_tasks: int, generator: torch.Generator, dtype: torch.dtype) -> int:
    count = positive_integer("num_tasks", num_tasks)
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator: expected a torch.Generator, got {type(generator).__name__}")
    floating_dtype("dtype", dtype)
    return count


_COORDINATES = {"uniform": (1 / 3, 9 / 5), "normal": (1.0, 3.0), "laplace": (1.0, 6.0), "rademacher": (1.0, 1.0)}
"""The input distributions: variance of a coordinate at input_range 1, and kurtosis."""


def _within_reach(name: str, size: float, what: str = "a number") -> None:
    """Refuse sizes of which the twelve that a formula of an expected loss multiplies could leave float64."""
    if not _REACH[0] <= size <= _REACH[1]:
        raise ValueError(f"{name}: expected {what} from {_REACH[0]:g} to {_REACH[1]:g}, got {size:g}")


_REACH = (1e-20, 1e20)


def _with_last(values: Tensor, number: float) -> Tensor:
    """The same rows, each with one more number at its end."""
    return torch.nn.functional.pad(values, (0, 1), value=number)


def _checked_covariance(covariance: Float[Tensor, "x x"]) -> Float[Tensor, "x x"]:
    """The matrix, freed from rounding errors in its symmetry."""
    size = float(covariance.abs().max())
    skewness = float((covariance - covariance.mT).abs().max())
    if skewness > 1e-6 * size:
        raise ValueError(
            "LinearTasks.input_covariance: expected a symmetric matrix, got entries that differ from their mirror "
            f"images by up to {skewness:.1e}"
        )
    symmetric = (covariance + covariance.mT) / 2
    least = float(torch.linalg.eigvalsh(symmetric)[0])
    if least <= len(symmetric) * torch.finfo(torch.float64).eps * size:
        raise ValueError(
            f"LinearTasks.input_covariance: expected a positive definite matrix, got a least eigenvalue of {least:.1e}"
        )
    return symmetric


_HARMONICS: dict[str, tuple[tuple[int, float], ...] | None] = {
    "sine": ((1, 1.0),),
    "two frequencies": ((1, 0.5**0.5), (2, 0.5**0.5)),
    "square": None,
}
"""The waves: their harmonics as (multiple of the frequency, weight), or None where there are infinitely many."""


@dataclass(frozen=True)
class SineTasks:
    """The distribution of sine-wave regression tasks: y_i = a w(x_i + phi) + noise, with an amplitude and a phase each.

    x ~ U(-r, r) has one dimension, a ~ U(amplitude), phi ~ U(phase), and w is a wave of period 2 pi. The defaults are
    the setting of the paper's section 4 (Figure 4), except for the amplitudes: the text has U(0.1, 5), the released
    code U(0.1, 0.5), which is used here. The text draws a and phi independently; the released code draws both with one
    random key, so that they are one number: a = 0.1 + 0.4 phi / pi. That is `tied`.

    Args:
        amplitude: the least and the greatest a, positive.
        phase: the least and the greatest phi.
        input_range: r.
        num_context: examples N per context.
        num_queries: queries per task.
        wave: w(u) is sin u ("sine"), its sign ("square") or (sin u + sin 2u) / sqrt 2 ("two frequencies").
        noise_std: standard deviation of the noise on the context's targets; query targets are clean.
        tied: whether amplitude and phase are one number, as in the released code.
        queries: "random": each task has its own. "grid": evenly spaced over [-r, r] with both ends, the same for all
            tasks; for pictures and for test losses. "pool": random, the same for all tasks of a batch, and the contexts
            are drawn from among them, with replacement (`TaskBatch.context_index`); features of x are then computed
            once a batch, and every input is a query.

    Raises:
        TypeError, ValueError: a range that is not two finite numbers in order, an amplitude not positive, a size
            that is not a positive integer (an empty pool of queries, say), a negative noise, an unknown wave or kind of
            queries, a grid of less than two points, `tied` not a bool.

    Example:
        >>> batch = mesa.SineTasks().sample(7, mesa.generator(0, "training tasks"))
        >>> tuple(batch.context_x.shape), bool(batch.context_y.abs().max() <= 0.5)
        ((7, 10, 1), True)
    """

    amplitude: tuple[float, float] = (0.1, 0.5)
    phase: tuple[float, float] = (0.0, math.pi)
    input_range: float = 5.0
    num_context: int = 10
    num_queries: int = 1
    wave: Literal["sine", "square", "two frequencies"] = "sine"
    noise_std: float = 0.0
    tied: bool = False
    queries: Literal["random", "grid", "pool"] = "random"

    def __post_init__(self) -> None:
        for name in ("amplitude", "phase"):
            limits = finite_numbers(f"SineTasks.{name}", getattr(self, name))
            if len(limits) != 2 or limits[0] > limits[1]:
                raise ValueError(f"SineTasks.{name}: expected two numbers, the least first, got {getattr(self, name)}")
            object.__setattr__(self, name, limits)
        positive_number("SineTasks.amplitude[0]", self.amplitude[0])
        positive_number("SineTasks.input_range", self.input_range)
        for name in ("num_context", "num_queries"):
            positive_integer(f"SineTasks.{name}", getattr(self, name))
        one_of("SineTasks.wave", self.wave, tuple(_HARMONICS))
        non_negative_number("SineTasks.noise_std", self.noise_std)
        if not isinstance(self.tied, bool):
            raise TypeError(f"SineTasks.tied: expected True or False, got {self.tied!r}")
        one_of("SineTasks.queries", self.queries, ("random", "grid", "pool"))
        if self.queries == "grid" and self.num_queries < 2:
            raise ValueError(f"SineTasks.num_queries: expected at least 2 for a grid, got {self.num_queries}")

    @property
    def harmonics(self) -> tuple[tuple[int, float], ...]:
        """The wave as a finite sum, w(u) = sum of weight sin(multiple u), as pairs (multiple, weight).

        Raises:
            ValueError: the wave has infinitely many harmonics.
        """
        found = _HARMONICS[self.wave]
        if found is None:
            raise ValueError(f"SineTasks.wave: expected a wave with finitely many harmonics, got {self.wave!r}")
        return found

    def sample(
        self,
        num_tasks: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> TaskBatch:
        """Draw `num_tasks` fresh tasks.

        The numbers are drawn on the generator's device in `dtype`, in the order amplitude, phase (unless tied), inputs
        of the context, queries, noise; for a pool the queries come before the contexts' choice among them.

        Args:
            num_tasks: how many tasks.
            generator: the only source of randomness, see `mesa_lib.generator`.
            dtype: a floating-point dtype.
            device: where the batch shall live.

        Returns:
            A TaskBatch with context_x (task, context, 1), context_y (task, context, 1), query_x (task, query, 1) and
            query_y (task, query, 1), without teachers.

        Raises:
            TypeError, ValueError: `num_tasks` is not a positive integer, `generator` is no torch.Generator, `dtype` is
                not floating-point.
        """
        count = _checked_draw(num_tasks, generator, dtype)

        def uniform(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=generator, dtype=dtype, device=generator.device)

        first = uniform(count, 1, 1)
        second = first if self.tied else uniform(count, 1, 1)
        height, shift = _between(self.amplitude, first), _between(self.phase, second)
        ends, index = (-self.input_range, self.input_range), None
        if self.queries == "pool":
            query_x = _between(ends, uniform(self.num_queries, 1)).expand(count, -1, -1)
            shape = (count, self.num_context)
            index = torch.randint(self.num_queries, shape, generator=generator, device=generator.device)
            context_x = query_x[0][index]
        else:
            context_x = _between(ends, uniform(count, self.num_context, 1))
            if self.queries == "grid":
                query_x = torch.linspace(*ends, self.num_queries, dtype=dtype, device=generator.device)[:, None]
                query_x = query_x.expand(count, -1, -1)
            else:
                query_x = _between(ends, uniform(count, self.num_queries, 1))
        context_y, query_y = (height * self._wave(x + shift) for x in (context_x, query_x))
        if self.noise_std > 0:
            noise = torch.randn(context_y.shape, generator=generator, dtype=dtype, device=generator.device)
            context_y = context_y + self.noise_std * noise
        batch = TaskBatch(context_x, context_y, query_x, query_y, context_index=index)
        return batch if torch.device(device) == generator.device else batch.to(device=device)

    def _wave(self, angle: Tensor) -> Tensor:
        if self.wave == "square":
            return torch.sign(torch.sin(angle))
        terms = [weight * torch.sin(multiple * angle) for multiple, weight in self.harmonics]
        return torch.stack(terms).sum(0)


def _between(limits: tuple[float, float], fraction: Tensor) -> Tensor:
    return limits[0] + (limits[1] - limits[0]) * fraction
