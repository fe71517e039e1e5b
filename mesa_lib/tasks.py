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

    Each task draws its own teacher W with independent entries N(0, teacher_scale^2). The coordinates of x are
    independent, symmetric, with standard moments m2 = E x^2 and m4 = E x^4 (`second_moment`, `fourth_moment`).

    Defaults are the paper's setting as its text has it (section 3): d = N = 10, one target, x ~ U(-1, 1), W ~ N(0, I),
    no noise. The released code draws x ~ U(-1/2, 1/2) instead, which is ``input_range=0.5`` here.

    Args:
        x_dim: input dimensions d.
        y_dim: target dimensions.
        num_context: examples N per context.
        num_queries: queries per task.
        input_range: for "uniform" the half-width r of U(-r, r); for "normal" the standard deviation.
        inputs: "uniform" or "normal".
        teacher_scale: standard deviation of W's entries.
        noise_std: standard deviation of the noise on the context's targets; query targets are clean.

    Raises:
        TypeError, ValueError: a size that is not a positive integer, a scale that is not a positive finite number, a
            negative noise, an unknown input distribution.
    """

    x_dim: int = 10
    y_dim: int = 1
    num_context: int = 10
    num_queries: int = 1
    input_range: float = 1.0
    inputs: Literal["uniform", "normal"] = "uniform"
    teacher_scale: float = 1.0
    noise_std: float = 0.0

    def __post_init__(self) -> None:
        for name in ("x_dim", "y_dim", "num_context", "num_queries"):
            positive_integer(f"LinearTasks.{name}", getattr(self, name))
        for name in ("input_range", "teacher_scale"):
            positive_number(f"LinearTasks.{name}", getattr(self, name))
        non_negative_number("LinearTasks.noise_std", self.noise_std)
        one_of("LinearTasks.inputs", self.inputs, ("uniform", "normal"))

    @property
    def second_moment(self) -> float:
        """m2 = E x^2 of one coordinate: r^2/3 for U(-r, r), s^2 for N(0, s^2)."""
        return self.input_range**2 / (3 if self.inputs == "uniform" else 1)

    @property
    def fourth_moment(self) -> float:
        """m4 = E x^4 of one coordinate: r^4/5 for U(-r, r), 3 s^4 for N(0, s^2)."""
        return self.input_range**4 * (1 / 5 if self.inputs == "uniform" else 3)

    @property
    def query_moment(self) -> Float[Tensor, "x x"]:
        """E[x_q x_q^T] = m2 I, in float64: what an expected loss needs to know about the queries."""
        return self.second_moment * torch.eye(self.x_dim, dtype=torch.float64)

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
            query_y (task, query, y) and teacher (task, y, x).

        Raises:
            TypeError, ValueError: `num_tasks` is not a positive integer, `generator` is no torch.Generator, `dtype` is
                not floating-point.
        """
        count = positive_integer("num_tasks", num_tasks)
        if not isinstance(generator, torch.Generator):
            raise TypeError(f"generator: expected a torch.Generator, got {type(generator).__name__}")
        floating_dtype("dtype", dtype)
        teacher = self._normal((count, self.y_dim, self.x_dim), generator, dtype) * self.teacher_scale
        context_x = self._inputs((count, self.num_context, self.x_dim), generator, dtype)
        query_x = self._inputs((count, self.num_queries, self.x_dim), generator, dtype)
        context_y = context_x @ teacher.mT
        if self.noise_std > 0:
            context_y = context_y + self.noise_std * self._normal(context_y.shape, generator, dtype)
        batch = TaskBatch(context_x, context_y, query_x, query_x @ teacher.mT, teacher)
        return batch if torch.device(device) == generator.device else batch.to(device=device)

    @staticmethod
    def _normal(shape: Sequence[int], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype, device=generator.device)

    def _inputs(self, shape: Sequence[int], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        if self.inputs == "normal":
            return self.input_range * self._normal(shape, generator, dtype)
        uniform = torch.rand(*shape, generator=generator, dtype=dtype, device=generator.device)
        return self.input_range * (2 * uniform - 1)
