"""A widget for Proposition 1: its matrices in numbers, and its conditions to be broken one by one."""

from typing import Any

import torch
import traitlets

from mesa_lib.algorithms import gradient_descent
from mesa_lib.networks import (
    apply_layers,
    concatenated_tokens,
    gd_construction,
    query_in_context,
    read_prediction,
)
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_number, one_of, positive_integer
from mesa_lib.widgets.base import Widget, line_task, numbers, shown_task

SLOTS = ("start", "zero")


class PropositionByHand(Widget, front_end="proposition_by_hand"):
    """The weights of Proposition 1 on a task with one input and one target: matrices, tokens before and after, answer.

    The layer (or several with the same weights) stands beside explicit gradient descent. Two conditions can be broken:
    what the query's y-slot starts with, and whether the query is among the keys and values. The traits `x`, `y` and
    `x_q` (context and query) and those named like arguments hold what is shown now.

    Args:
        batch: one task with one input, one target and one query.
        w_0: where the step starts.
        eta: step size, P = (eta/N) I.
        slot: what the query's y-slot holds at first: "start" for -W_0 x_q, "zero" for 0.
        query_inside: whether the query is among the keys and values.
        num_layers: how many layers, all with the same weights.

    Raises:
        TypeError, ValueError: more tasks or dimensions than one, a number that is not finite, an unknown slot.
    """

    x = traitlets.List(traitlets.Float()).tag(sync=True)
    y = traitlets.List(traitlets.Float()).tag(sync=True)
    x_q = traitlets.Float().tag(sync=True)
    w_0 = traitlets.Float().tag(sync=True)
    eta = traitlets.Float().tag(sync=True)
    slot = traitlets.Enum(SLOTS).tag(sync=True)
    query_inside = traitlets.Bool().tag(sync=True)
    num_layers = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        batch: TaskBatch,
        w_0: float = 0.5,
        eta: float = 1.5,
        *,
        slot: str = "start",
        query_inside: bool = False,
        num_layers: int = 1,
        **kwargs: Any,
    ) -> None:
        line_task(batch)
        super().__init__(
            x=numbers(batch.context_x),
            y=numbers(batch.context_y),
            x_q=numbers(batch.query_x)[0],
            w_0=finite_number("w_0", w_0),
            eta=finite_number("eta", eta),
            slot=one_of("slot", slot, SLOTS),
            query_inside=query_inside,
            num_layers=positive_integer("num_layers", num_layers),
            **{"finding": _FINDING} | kwargs,
        )

    def predictions(self) -> tuple[float, float]:
        """What the layers predict for the query in the present state, and what gradient descent does."""
        batch = shown_task(self.x, self.y, torch.tensor([self.x_q], dtype=torch.float64))
        w_0 = torch.tensor([[self.w_0]], dtype=torch.float64)
        tokens = concatenated_tokens(batch, w_0 if self.slot == "start" else None)
        if self.query_inside:
            tokens = query_in_context(tokens)
        layers = [gd_construction(self.eta, 1, 1, batch.num_context, w_0)] * self.num_layers
        predicted = read_prediction(apply_layers(layers, tokens), 1)
        return predicted.item(), gradient_descent(batch, self.eta, self.num_layers, w_0).item()

    def describe(self) -> str:
        """What the layers and gradient descent predict for the query."""
        layers, steps = self.predictions()
        count = "One layer" if self.num_layers == 1 else f"{self.num_layers} layers"
        return (
            f"{count} with the weights of Proposition 1, from W_0 = {self.w_0:.2f} with step size {self.eta:.2f}: the "
            f"prediction at x = {self.x_q:.2f} is {layers:.3f}, that of gradient descent {steps:.3f}."
        )


_FINDING = (
    "With the query token (x, −W₀ x), outside the keys and values, layers are gradient steps exactly. The slot 0 loses "
    "W₀ x; a query inside is harmless for one layer with W₀ = 0 only, and deeper stacks take it for an example (x, 0)."
)
