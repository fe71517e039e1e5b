"""Committed results of runs that a chapter quotes but does not repeat; so far, seconds from `make bench`."""

import json
from importlib.resources import files
from typing import Any


def benchmark() -> dict[str, Any]:
    """The committed result of `make bench`: how long named runs took, on which machine.

    Returns:
        "machine" and "versions" as dictionaries of strings, "repetitions", and "runs": name -> {"seconds", "what"},
        where the seconds are processor time on one thread, the median of the repetitions.
    """
    result: dict[str, Any] = json.loads(files(__name__).joinpath("benchmark.json").read_text(encoding="utf-8"))
    return result
