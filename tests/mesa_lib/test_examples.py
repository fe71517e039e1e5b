"""Every public name has an example in its docstring that runs and prints what it says."""

import doctest
import inspect
import re
import warnings
from functools import cache

import pytest

import mesa_lib as mesa
from tools.toc import ROOT

API = ROOT / "book" / "api.md"


def described() -> list[str]:
    """The public functions and classes; an error is raised, not called."""
    public = {name: getattr(mesa, name) for name in mesa.__all__}
    return [
        name
        for name, value in public.items()
        if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, Exception))
    ]


def example(name: str) -> doctest.DocTest:
    """The examples in the docstring of a public name."""
    return doctest.DocTestParser().get_doctest(inspect.getdoc(getattr(mesa, name)), {}, name, None, 0)


@cache
def preamble() -> str:
    """What all examples know, as the page of the API says."""
    (code,) = re.findall(r"^```python\n(.*?)^```", API.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return code


@pytest.mark.parametrize("name", described())
def test_the_example_prints_what_it_says(name):
    test = example(name)
    assert test.examples, f"{name}: its docstring has no example (>>>)"
    test.globs = {}
    exec(preamble(), test.globs)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test, out=said.append, clear_globs=False)
    assert "".join(said) == ""


def test_the_last_line_of_an_example_prints_something():
    silent = [name for name in described() if (lines := example(name).examples) and not any(e.want for e in lines)]
    assert silent == []
