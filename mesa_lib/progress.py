"""A progress bar for long work, shown only where somebody watches."""

import os
from collections.abc import Callable, Iterator

from tqdm.auto import tqdm

from mesa_lib.validation import non_negative_integer, positive_integer


def progress_steps(count: int, text: str, start: int = 0, note: Callable[[], str] | None = None) -> Iterator[int]:
    """Count from `start` to `count` - 1 with a progress bar, on a terminal or in an interactive notebook.

    The bar is hidden when standard error is no terminal (a log file), and wherever TQDM_DISABLE is set to anything but
    0: where notebooks are executed to store or to check their outputs, since a bar would become part of them.

    Args:
        count: how many steps.
        text: what is going on, in a few words.
        start: steps that were done before, when work goes on that had stopped.
        note: asked before each step for a few words to show behind the bar, such as the loss.

    Raises:
        TypeError, ValueError: `count` is not a positive integer, or `start` is not an integer >= 0.
    """
    switched_off = os.environ.get("TQDM_DISABLE", "0") not in ("", "0")
    steps = range(non_negative_integer("start", start), positive_integer("count", count))
    # None lets tqdm look for a terminal; its notebook bar takes None for "show". It ignores the variable by itself.
    bar = tqdm(steps, desc=text, total=count, initial=start, leave=False, disable=switched_off or None)
    for step in bar:
        if note is not None and not bar.disable:
            bar.set_postfix_str(note(), refresh=False)
        yield step
