"""Tools for all tests: deterministic property tests, ways to make tasks, and a way to check a refusal."""

import os
from collections.abc import Callable, Iterator

import jaxtyping
import pytest
import torch
from hypothesis import Phase, settings
from playwright.sync_api import Browser
from torch import Tensor

from mesa_lib import LinearTasks, TaskBatch
from tests.browser import open_chromium

settings.register_profile(
    "mesa", max_examples=25, derandomize=True, deadline=None, database=None, report_multiple_bugs=False
)
# For runs that want to know only whether a test fails: no time goes into a small counterexample.
settings.register_profile("unshrunk", settings.get_profile("mesa"), phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "mesa"))


@pytest.fixture
def seeded() -> torch.Generator:
    """One generator per test, always in the same state, and none of the streams of mesa_lib."""
    return torch.Generator().manual_seed(20230724)


@pytest.fixture
def draw(seeded: torch.Generator) -> Callable[..., Tensor]:
    """Standard normal float64 numbers of a shape."""
    return lambda *shape: torch.randn(*shape, generator=seeded, dtype=torch.float64)


@pytest.fixture
def draw_batch(seeded: torch.Generator) -> Callable[..., TaskBatch]:
    """`draw_batch(num_tasks, **settings of LinearTasks)`: a batch in float64; small and noisy unless told otherwise."""

    def drawn(num_tasks: int = 4, **kwargs: object) -> TaskBatch:
        small = {"x_dim": 3, "y_dim": 2, "num_context": 5, "num_queries": 2, "noise_std": 0.3}
        return LinearTasks(**(small | kwargs)).sample(num_tasks, seeded, dtype=torch.float64)

    return drawn


@pytest.fixture
def refused() -> Callable[..., None]:
    """`refused(call, error, message)`: the call raises that error with that message, the checks of annotations aside.

    The message is plain text that must occur in the error's. Users run without checks of annotations; with them (they
    are on in tests) the call must be refused too, though jaxtyping may speak first, with a TypeError of its own.
    """

    def check(call: Callable[[], object], error: type[Exception], message: str) -> None:
        before = jaxtyping.config.jaxtyping_disable
        jaxtyping.config.update("jaxtyping_disable", True)
        try:
            with pytest.raises(error) as caught:
                call()
        finally:
            jaxtyping.config.update("jaxtyping_disable", before)
        assert message in str(caught.value)
        with pytest.raises((TypeError, ValueError)):
            call()

    return check


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One Chromium for all tests of a process; see tests/browser.py for what happens where there is none."""
    with open_chromium() as browser:
        yield browser
