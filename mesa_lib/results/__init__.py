"""Committed results of runs that a chapter quotes but does not repeat: seconds from `make bench`, trained networks."""

import json
from importlib.resources import as_file, files
from typing import Any

from safetensors import safe_open
from torch import Tensor


def benchmark() -> dict[str, Any]:
    """The committed result of `make bench`: how long named runs took, on which machine.

    Returns:
        "machine" and "versions" as dictionaries of strings, "repetitions", and "runs": name -> {"seconds", "what"},
        where the seconds are processor time on one thread, the median of the repetitions. Beside them the other parts
        of `tools.bench`, as far as they were measured; the page on running the book shows them.
    """
    result: dict[str, Any] = json.loads(files(__name__).joinpath("benchmark.json").read_text(encoding="utf-8"))
    return result


def garg_networks() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The committed result of `python -m mesa_lib run garg-networks`: networks trained in Garg et al.'s setting.

    Returns:
        The parameters, by "network/parameter", each with one slice per seed in front; and what the file says of its
        making: "command", "seeds", "recipes" by network, "processor_seconds" by network, and "versions".
    """
    with (
        as_file(files(__name__).joinpath("garg_networks.safetensors")) as path,
        safe_open(path, framework="pt") as file,
    ):
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
        header = file.metadata()
    texts = {"command": header.pop("command")}
    return tensors, texts | {name: json.loads(value) for name, value in header.items()}
