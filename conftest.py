"""What holds for every test run: one thread a process, no progress bars, and shapes checked at run time."""

import os
import sys
from pathlib import Path

# torch reads the first when it is imported. Kernels that nbval starts inherit all of them; like the execution tool's
# they run on this checkout, show figures inline and hash strings alike.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONHASHSEED="0", TQDM_DISABLE="1")
os.environ.pop("MPLBACKEND", None)
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).resolve().parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)

import pytest
from jaxtyping import install_import_hook

import tests.typechecker
from tools.drawings import MIME_TYPE as DRAWING

# From here on every function of mesa_lib checks the shapes and dtypes in its annotations. The hook sees only imports
# that come after it; the workers of pytest-xdist each read this file, so it holds in them too.
if any(name.partition(".")[0] == "mesa_lib" for name in sys.modules):
    raise RuntimeError("conftest.py: mesa_lib was imported before its annotations could be checked; by which plugin?")
install_import_hook("mesa_lib", f"{tests.typechecker.__name__}.checked")


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Let nbval pass over stored drawings (tools/drawings.py), which its kernels don't make, as over all pictures."""
    if collector.path.suffix == ".ipynb":
        collector.skip_compare += (DRAWING,)  # type: ignore[attr-defined]
