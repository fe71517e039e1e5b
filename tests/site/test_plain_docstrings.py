"""Plain docstrings become reStructuredText that shows them as they read."""

import importlib.util

import pytest

from tools.toc import ROOT


@pytest.fixture(scope="module")
def to_rst():
    spec = importlib.util.spec_from_file_location("plain_docstrings", ROOT / "book" / "_ext" / "plain_docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda text: "\n".join(module.to_rst(text.splitlines()))


@pytest.mark.parametrize(
    ("plain", "rst"),
    [
        ("shape (*ensemble, task)", r"shape (\*ensemble, task)"),
        ("1/2 |W x - y|^2", r"1/2 \|W x - y\|^2"),
        ("the factor w_, and w_k", r"the factor w\_, and w_k"),
        ("see `w_kq` and ``w_*``", "see ``w_kq`` and ``w_*``"),
        ("A sentence.\n\n    e <- e + *M* e\n\nMore.", "A sentence.\n\n::\n\n    e <- e + *M* e\n\nMore."),
        ("Args:\n    x: (*task)\n        more", "Args:\n    x: (\\*task)\n        more"),
        ("see `gd_construction`", "see :py:obj:`gd_construction <mesa_lib.networks.gd_construction>`"),
        ("`LinearTasks.sample` draws", ":py:obj:`LinearTasks.sample <mesa_lib.tasks.LinearTasks.sample>` draws"),
        ("`LinearTasks.nothing`, `sample`", "``LinearTasks.nothing``, ``sample``"),
        ("Example:\n    >>> 2 * *a\n    |x|\n\nMore *x*", "Example:\n    >>> 2 * *a\n    |x|\n\nMore \\*x\\*"),
        ("Returns:\n    Two panels: left, right.", "Returns:\n    ..\n\n    Two panels: left, right."),
    ],
)
def test_plain_text_shows_as_it_reads(to_rst, plain, rst):
    assert to_rst(plain) == rst
