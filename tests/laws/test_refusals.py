"""The law of refusals: a public function that is given nothing says which argument it misses, before it starts work."""

import inspect
import re

import jaxtyping
import pytest

import mesa_lib
from mesa_lib import figures

FUNCTIONS = {name: getattr(mesa_lib, name) for name in mesa_lib.__all__ if inspect.isfunction(getattr(mesa_lib, name))}


@pytest.fixture
def without_annotation_checks():
    """As users run the library: what speaks are its own checks."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_none_for_every_argument_is_refused_and_an_argument_is_named(name, without_annotation_checks):
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    required = [one.name for one in parameters if one.default is inspect.Parameter.empty]
    if not required:
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        FUNCTIONS[name](**dict.fromkeys(required))
    assert re.match(rf"({'|'.join(required)})\b.*: expected ", str(caught.value)), str(caught.value)


def test_figures_are_no_part_of_this_law():
    """They refuse bad input, too; their own tests say how."""
    assert not set(FUNCTIONS) & set(figures.__all__)
