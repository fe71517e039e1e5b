"""What the tests of running elsewhere share: the wheel, and environments that hold it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.anywhere.environments import Environment, build_wheel, oldest

# Older than the bound in pyproject.toml: the first cell leaves it as it is.
COLABS_IPYWIDGETS = "7.7.1"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of mesa_lib."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel, with everything else as in the environment that runs the tests."""
    return Environment.make(tmp_path_factory.mktemp("pinned"), wheel)


@pytest.fixture(scope="session")
def oldest_numpy(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel with the last release of the oldest numpy that is allowed; all else as in the tests' environment."""
    one = Environment.make(tmp_path_factory.mktemp("numpy"), wheel)
    # The newest scipy is built for the last 1.26.
    if reason := one.install([f"numpy~={oldest()['numpy']}"], "--no-deps"):
        pytest.skip(f"no numpy {oldest()['numpy']} to be had: {reason}")
    return one


@pytest.fixture(scope="session")
def environments(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """`environments("oldest")`: every dependency but torch as old as is allowed; "newest": as new as there is.

    "oldest torch": the oldest torch as well, as a CPU wheel; "Colab": the oldest, with the ipywidgets that Colab has.
    """
    made: dict[str, Environment | str] = {}

    def make(kind: str) -> Environment | str:
        one = Environment.make(tmp_path_factory.mktemp(kind.replace(" ", "_")), wheel)
        versions = oldest()
        torch = versions.pop("torch")
        if kind == "newest":
            return one.install(list(versions)) or one
        reason = one.install([f"{name}=={version}" for name, version in versions.items()])
        if kind == "Colab" and not reason:
            reason = one.install([f"ipywidgets=={COLABS_IPYWIDGETS}", "ipython-genutils"], "--no-deps")
        if kind == "oldest torch" and not reason:
            index = ["--index-url", "https://download.pytorch.org/whl/cpu"]
            reason = one.install([f"torch=={torch}"], "--no-deps", *index)
        return reason or one

    def get(kind: str) -> Environment:
        if kind not in made:
            made[kind] = make(kind)
        one = made[kind]
        if isinstance(one, str):
            pytest.skip(f"{kind}: not to be had: {one}")
        return one

    return get
