"""Regression tasks: a context of labelled examples, and the queries asked about it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.validation import (
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
    ride along as `teacher`: losses and tests use it, learners must not.

    Shapes:
        context_x: (*ensemble, task, context, x)
        context_y: (*ensemble, task, context, y)
        query_x: (*ensemble, task, query, x)
        query_y: (*ensemble, task, query, y)
        teacher: (*ensemble, task, y, x), or None when no linear map made the targets

    Raises:
        TypeError: a field is no floating-point tensor, or the fields' dtypes disagree.
        ValueError: the fields' shapes or devices disagree, or a number is not finite.
    """

    context_x: Float[Tensor, "*ensemble task context x"]
    context_y: Float[Tensor, "*ensemble task context y"]
    query_x: Float[Tensor, "*ensemble task query x"]
    query_y: Float[Tensor, "*ensemble task query y"]
    teacher: Float[Tensor, "*ensemble task y x"] | None = None

    def __post_init__(self) -> None:
        for name, value in self._tensors().items():
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

    def _tensors(self) -> dict[str, Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if not (name == "teacher" and value is None)}

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
            ValueError: no batch, or batches that differ in shape, in device or in having a teacher.
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

    def to(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> "TaskBatch":
        """The same tasks in another dtype or on another device."""
        return TaskBatch(**{name: value.to(dtype=dtype, device=device) for name, value in self._tensors().items()})


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
        TypeError, ValueError: a size that is not a positive integer, a scale that is not a positive finite number, a
            negative noise, an unknown input distribution, a matrix of another shape, a covariance that is not symmetric
            and positive definite, a `constant_input` that is not a bool.
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
            positive_number(f"LinearTasks.{name}", getattr(self, name))
        non_negative_number("LinearTasks.noise_std", self.noise_std)
        one_of("LinearTasks.inputs", self.inputs, tuple(_COORDINATES))
        if not isinstance(self.constant_input, bool):
            raise TypeError(f"LinearTasks.constant_input: expected True or False, got {self.constant_input!r}")
        shapes = {"input_covariance": (self.x_dim, self.x_dim), "teacher_mean": (self.y_dim, self.x_dim)}
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                numbers = matrix_of_numbers(f"LinearTasks.{name}", getattr(self, name), shape)
                object.__setattr__(self, name, numbers)  # the way for a frozen dataclass to tidy up its own fields
        if self.input_covariance is not None:
            covariance = _checked_covariance(torch.tensor(self.input_covariance, dtype=torch.float64))
            object.__setattr__(self, "input_covariance", tuple(tuple(row) for row in covariance.tolist()))

    @property
    def kurtosis(self) -> float:
        """E z^4 = kappa of one coordinate z of variance 1: 9/5 uniform, 3 normal, 6 Laplace, 1 for signs."""
        return _COORDINATES[self.inputs][1]

    @property
    def input_root(self) -> Float[Tensor, "x x"]:
        """R with x = R z, symmetric, in float64: r s I, or r Sigma^(1/2)."""
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
        count = positive_integer("num_tasks", num_tasks)
        if not isinstance(generator, torch.Generator):
            raise TypeError(f"generator: expected a torch.Generator, got {type(generator).__name__}")
        floating_dtype("dtype", dtype)
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


_COORDINATES = {"uniform": (1 / 3, 9 / 5), "normal": (1.0, 3.0), "laplace": (1.0, 6.0), "rademacher": (1.0, 1.0)}
"""The input distributions: variance of a coordinate at input_range 1, and kurtosis."""


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
