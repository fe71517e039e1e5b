"""A progress bar for long work, shown only where somebody watches."""

import os
from collections.abc import Iterator

from tqdm.auto import tqdm

from mesa_lib.validation import positive_integer


def progress_steps(count: int, text: str) -> Iterator[int]:
    """Count from 0 to `count` - 1 with a progress bar, on a terminal or in an interactive notebook.

    The bar is hidden when standard error is no terminal (a log file), and wherever TQDM_DISABLE is set to anything but
    0: where notebooks are executed to store or to check their outputs, since a bar would become part of them.

    Args:
        count: how many steps.
        text: what is going on, in a few words.

    Raises:
        TypeError, ValueError: `count` is not a positive integer.
    """
    switched_off = os.environ.get("TQDM_DISABLE", "0") not in ("", "0")
    # None lets tqdm look for a terminal; its notebook bar takes None for "show". It ignores the variable by itself.
    yield from tqdm(range(positive_integer("count", count)), desc=text, leave=False, disable=switched_off or None)
