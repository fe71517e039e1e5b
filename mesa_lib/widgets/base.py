"""What all widgets of the book have in common."""

import html
import inspect
import json
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import anywidget
import torch
import traitlets
from jaxtyping import Float
from torch import Tensor

from mesa_lib.tasks import TaskBatch
from mesa_lib.widgets.linker import STATIC, es_module, style_sheet

DIGITS = 4
"""Decimals that a widget keeps of the data it is given: more than a hand can set, and alike on all processors."""


class Widget(anywidget.AnyWidget):
    """A picture that answers to a hand, with the mathematics in JavaScript, so that it lives without a kernel too.

    In a notebook it is an anywidget: what the reader changes changes the traits of this object, and the other way
    round. In the built book there is no kernel. There the output's HTML says which front end to start and in which
    state, and a reader without JavaScript sees a sentence in its place. A subclass names its front end, a module of
    `static/`,

        class StepOnData(Widget, front_end="step_on_data"): ...

    has its state as synchronised traits (numbers, words, lists of numbers: all JSON, and small), and says in `describe`
    what is to be seen.

    The trait `finding` is what there is to find, in one sentence; it stands below the picture.
    """

    front_end: ClassVar[str]
    finding = traitlets.Unicode().tag(sync=True)

    def __init_subclass__(cls, front_end: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if front_end is not None:  # ipywidgets makes subclasses of its own, which inherit the front end
            cls.front_end = front_end
            cls._esm = es_module(front_end)
            cls._css = style_sheet()
            # The arguments as readers and the documentation see them; traitlets hides them behind a __new__ of its own.
            _, *arguments = inspect.signature(cls.__init__).parameters.values()
            cls.__signature__ = inspect.Signature(arguments)

    def describe(self) -> str:
        """What the picture shows in its present state, in one sentence, with rounded numbers."""
        raise NotImplementedError

    @property
    def state(self) -> dict[str, Any]:
        """The traits that the front end draws from, by name."""
        inherited = set(anywidget.AnyWidget.class_trait_names())
        names = [name for name in sorted(self.trait_names(sync=True)) if not name.startswith("_")]
        return {name: getattr(self, name) for name in names if name not in inherited}

    def to_html(self) -> str:
        """The output for pages without a kernel: the front end's name, its state, and a sentence to stand in for it.

        The same state gives the same text, unlike Jupyter's own view of a widget, which holds a random id.
        """
        state = html.escape(json.dumps(self.state, separators=(",", ":"), ensure_ascii=False))
        stand_in = html.escape(f"{self.describe()} {self.finding}")
        return (
            f'<div class="mesa-widget" data-front-end="{self.front_end}" data-state="{state}">'
            f'<p class="mw-stand-in">{stand_in}</p></div>'
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        # Colab may prefer HTML to a live widget; everywhere else the live one goes first.
        if "google.colab" not in sys.modules:
            data["text/html"] = self.to_html()
        return data, metadata


def recorded(name: str) -> Any:
    """A record that `tools.record` has left in `static/`, the file that the front ends read too."""
    return json.loads((STATIC / f"{name}.json").read_text(encoding="utf-8"))


def numbers(tensor: Tensor) -> list[float]:
    """The entries of a tensor as rounded numbers, in one list."""
    return [round(value, DIGITS) for value in tensor.detach().double().flatten().tolist()]


def line_task(batch: TaskBatch) -> TaskBatch:
    """Return `batch`; a ValueError names it unless it is one task with one input, one target and one query."""
    shape = (1, batch.num_context, 1)
    if tuple(batch.context_x.shape) != shape or batch.y_dim != 1 or batch.num_queries != 1:
        raise ValueError(
            "batch: expected one task with x_dim = y_dim = num_queries = 1 and no ensemble axes, got context_x of "
            f"shape {tuple(batch.context_x.shape)}, y_dim = {batch.y_dim} and num_queries = {batch.num_queries}"
        )
    return batch


def shown_task(x: Sequence[float], y: Sequence[float], queries: Float[Tensor, "query"]) -> TaskBatch:
    """The task that a widget shows now, in float64: one input, one target, and queries whose targets nobody knows.

    Args:
        x: the context's inputs.
        y: its targets.
        queries: shape (query).

    Returns:
        A TaskBatch of one task; its query_y are zeros.
    """
    data = torch.tensor([[list(x)], [list(y)]], dtype=torch.float64).mT
    asked = queries.double()[None, :, None]
    return TaskBatch(data[:1], data[1:], asked, torch.zeros_like(asked))
