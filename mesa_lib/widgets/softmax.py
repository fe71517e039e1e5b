"""A widget for softmax attention: heads that are, or are not, a gradient step."""

from typing import Any

import torch
import traitlets

from mesa_lib.algorithms import centred_gradient_descent, gradient_descent
from mesa_lib.networks import (
    AttentionWeights,
    concatenated_tokens,
    read_prediction,
    smoother_construction,
    softmax_self_attention,
    two_head_softmax_construction,
)
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_number, non_negative_integer, one_of, positive_number
from mesa_lib.widgets.base import Widget, line_task, numbers, shown_task

HEADS = ("one", "one-sided", "two")
QUERIES = 41


class SoftmaxStep(Widget, front_end="softmax_step"):
    """What softmax heads predict for every query, on a task with one input and one target, beside two steps.

    "two" heads score at beta and -beta (the paper's appendix A.9), "one-sided" ones at beta and 0, "one" head at beta
    alone; outputs are scaled so that for small beta the slope is that of a step of size eta. The steps are gradient
    descent from W_0 = 0 and the one on centred keys. A sink is empty tokens that take attention and give nothing.
    The traits `x`, `y` and `x_q` (context and query) and those named like arguments hold what is shown now.

    Args:
        batch: one task with one input, one target and one query.
        beta: size of the scores.
        heads: "one", "one-sided" or "two".
        num_sinks: how many empty tokens.
        eta: step size.

    Raises:
        TypeError, ValueError: more tasks or dimensions than one, a `beta` that is not positive, unknown heads, a number
            of sinks that is negative or no integer.
    """

    x = traitlets.List(traitlets.Float()).tag(sync=True)
    y = traitlets.List(traitlets.Float()).tag(sync=True)
    x_q = traitlets.Float().tag(sync=True)
    beta = traitlets.Float().tag(sync=True)
    heads = traitlets.Enum(HEADS).tag(sync=True)
    num_sinks = traitlets.Int().tag(sync=True)
    eta = traitlets.Float().tag(sync=True)

    def __init__(
        self,
        batch: TaskBatch,
        beta: float = 3.0,
        heads: str = "two",
        *,
        num_sinks: int = 0,
        eta: float = 1.5,
        **kwargs: Any,
    ) -> None:
        line_task(batch)
        super().__init__(
            x=numbers(batch.context_x),
            y=numbers(batch.context_y),
            x_q=numbers(batch.query_x)[0],
            beta=positive_number("beta", beta),
            heads=one_of("heads", heads, HEADS),
            num_sinks=non_negative_integer("num_sinks", num_sinks),
            eta=finite_number("eta", eta),
            **{"finding": _FINDING} | kwargs,
        )

    def predictions(self, queries: torch.Tensor) -> torch.Tensor:
        """What the heads predict in the present state, for float64 queries of shape (query); the same shape."""
        batch = shown_task(self.x, self.y, queries)
        tokens = softmax_self_attention(self._weights(), concatenated_tokens(batch), sink=float(self.num_sinks))
        return read_prediction(tokens, 1)[0, :, 0]

    def _weights(self) -> AttentionWeights:
        count, sink = len(self.x), float(self.num_sinks)
        if self.heads != "one":
            return two_head_softmax_construction(
                self.beta, self.eta, 1, 1, count, sink, self.heads == "one-sided", torch.float64
            )
        output = self.eta * (count + sink) / count / self.beta
        return smoother_construction([self.beta], [output], 1, 1, torch.float64)

    def distances(self) -> tuple[float, float]:
        """Root mean square distance, over queries from -1 to 1, to the gradient step and to the centred step."""
        queries = torch.linspace(-1, 1, QUERIES, dtype=torch.float64)
        answers, batch = self.predictions(queries), shown_task(self.x, self.y, queries)
        plain, centred = (
            (answers - step(batch, self.eta)[0, :, 0]).square().mean().sqrt().item()
            for step in (gradient_descent, centred_gradient_descent)
        )
        return plain, centred

    def describe(self) -> str:
        """How far the heads are from the two steps."""
        plain, centred = self.distances()
        heads = {"one": "One head", "one-sided": "Two heads at beta and 0", "two": "Two heads at plus and minus beta"}
        sinks = f" and {self.num_sinks} empty tokens" if self.num_sinks else ""
        return (
            f"{heads[self.heads]}, beta = {self.beta:.2f}{sinks}: over all queries {plain:.3f} away from the gradient "
            f"step and {centred:.3f} from the step on centred inputs."
        )


_FINDING = (
    "As β shrinks, two heads land on the step with centred inputs, not on the gradient step; one head keeps an offset "
    "that grows. A sink of empty tokens undoes the centring, the more of them the better."
)
