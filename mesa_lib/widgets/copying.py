"""A widget for copying and induction: how sharp a softmax must be, and what follows once it has copied."""

from typing import Any

import traitlets

from mesa_lib.theory import missed_weight
from mesa_lib.validation import non_negative_number, one_of, positive_integer
from mesa_lib.widgets.base import Widget

DIRECTIONS = ("next", "previous")
MAX_CONTEXT = 12
TEXT = "the cat sat on the mat and the cat sat on the"


class CopyingByHand(Widget, front_end="copying_by_hand"):
    """The attention of a softmax layer that copies (Proposition 3), and induction on words of the reader's own.

    Left: alternating tokens x_1, y_1, ..., x_q; each reader scores k with its target and 0 with all others, as in
    `copying_construction`, so that the missed weight is 2N e^-k / (1 + 2N e^-k). Right: the same layer copies, into
    every word, the word before it; one gradient step on these pairs scores what may come next
    (`induction_construction`), beside the number of times that it has come before. The traits are named like the
    arguments and hold what is shown now.

    Args:
        sharpness: k.
        num_context: N, from 1 to 12.
        direction: "next", x copies from the y behind it, or "previous", y from the x in front of it.
        text: words; the last 24 count.

    Raises:
        TypeError, ValueError: a negative sharpness, a length out of range, an unknown direction.
    """

    sharpness = traitlets.Float().tag(sync=True)
    num_context = traitlets.Int().tag(sync=True)
    direction = traitlets.Enum(DIRECTIONS).tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        sharpness: float = 4.0,
        num_context: int = 5,
        *,
        direction: str = "next",
        text: str = TEXT,
        **kwargs: Any,
    ) -> None:
        if positive_integer("num_context", num_context) > MAX_CONTEXT:
            raise ValueError(f"num_context: expected at most {MAX_CONTEXT}, got {num_context}")
        super().__init__(
            sharpness=non_negative_number("sharpness", sharpness),
            num_context=num_context,
            direction=one_of("direction", direction, DIRECTIONS),
            text=text,
            **{"finding": _FINDING} | kwargs,
        )

    def describe(self) -> str:
        """How much of the attention misses its target."""
        missed = missed_weight(self.sharpness, 2 * self.num_context)
        return (
            f"A softmax of sharpness {self.sharpness:.1f} among {2 * self.num_context} tokens: the target gets "
            f"{1 - missed:.3f} of the attention, {missed:.1e} misses it."
        )


_FINDING = (
    "Scores of one, as in the printed proof, leave most of the attention elsewhere; from k = 10 on the copy is nearly "
    "exact. Once words are copied into their successors, one gradient step is a table of what followed what: induction."
)
