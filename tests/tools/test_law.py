"""The chapter law bites: a chapter that keeps it, and one small break for every law."""

import base64
import itertools
import struct
import zlib

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import law
from tools.notebooks import WIDGET_VIEW
from tools.toc import Page

# The end of a chapter: Markdown, with the code cells of the solutions between lines of `%%`.
SOLVED = """\
:::{{exercise}} {kind}
:label: ex-{n}

How many?
:::

:::{{solution-start}} ex-{n}
:label: sol-{n}
:class: dropdown
:::

Ten.
%%
assert count == 10
%%
:::{{solution-end}}
:::"""
KINDS = ("Predict", "Derive", "Change an argument")
EXERCISES = "\n\n".join(["## Exercises", *(SOLVED.format(n=n, kind=kind) for n, kind in enumerate(KINDS))])
FIGURE = {"mystnb": {"figure": {"caption": "A line.", "name": "fig-line"}, "image": {"alt": "A line that rises."}}}


def png(width=2, height=1, damage=lambda data: data, drawing="<svg/>"):
    """A grey PNG and its drawing as an output; the PNG is put together from its format's definition."""
    rows = zlib.compress(height * (b"\0" + width * b"\x80"))
    parts = [(b"IHDR", struct.pack(">II5B", width, height, 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b"")]
    body = [struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in parts]
    data = damage(b"\x89PNG\r\n\x1a\n" + b"".join(body))
    more = {"image/svg+xml": drawing} if drawing else {}
    return new_output("display_data", {"image/png": base64.b64encode(data).decode()} | more)


PICTURE = png()
SVG = new_output("display_data", {"image/svg+xml": "<svg/>"})


def figure(*outputs):
    """A cell that says it shows a figure."""
    return "plt.show()", {"outputs": list(outputs), "metadata": FIGURE}


def chapter(*code, text=EXERCISES, numbered=True, last="assert error < 1"):
    """A chapter of the given code cells (a source, or a source and keywords), ending as chapters do."""
    cells = [new_markdown_cell("# Title\n\nWords.\n\n:::{prf:theorem}\nTrue.\n:::")]
    end, *after = text.split("\n%%\n")
    counts = itertools.count(1)
    for item in filter(None, [*code, last]):
        source, keywords = item if isinstance(item, tuple) else (item, {})
        cells.append(new_code_cell(source, **({"execution_count": next(counts)} | keywords)))
    cells.append(new_markdown_cell(end))
    for place, part in enumerate(after):
        cells.append(new_markdown_cell(part) if place % 2 else new_code_cell(part, execution_count=next(counts)))
    return law.chapter_from(new_notebook(cells=cells), "chapter", numbered)


def lines(count):
    return "\n".join(f"x_{n} = {n}" for n in range(count))


def test_a_chapter_that_keeps_the_law_has_no_complaints():
    good = chapter(
        "%pip install -q mesa-lib\n" + lines(11),
        "def f(x):\n    a = x\n\n    b = a\n    return b",
        figure(PICTURE),
        "(g,) = torch.autograd.grad(f, w)\nfor n in a:\n    h = torch.autograd.grad(f(n), w)\n    total = total + n",
        "x = torch.randn(3, generator=source, **exact)\nw = mesa.random_weights(2, 1)\nx.normal_(generator=source)",
        last='import mesa_lib\n\nmesa_lib.verdict("claim", True)',
    )
    assert [complaint for one in law.LAWS for complaint in one(good)] == []


BREAKS = [
    (law.logic_lives_in_the_package, chapter("class A:\n    pass"), "class A"),
    (law.logic_lives_in_the_package, chapter("if True:\n    def f():\n" + 5 * "        x = 1\n"), "def f has 6 lines"),
    (law.logic_lives_in_the_package, chapter("loss.backward()"), "a training loop"),
    (law.logic_lives_in_the_package, chapter("adam = torch.optim.Adam(p)"), "a training loop"),
    *(
        (law.logic_lives_in_the_package, chapter(source), f"a training loop ('{shown}")
        for source, shown in [
            ("from torch.optim import Adam", "optim"),
            ("import torch.optim as o", "optim"),
            ("from torch import optim", "optim"),
            ("while True:\n    adam.step()", "adam.step()"),
            ("for _ in a:\n    (g,) = torch.autograd.grad(f(w), w)\n    w = w - g", "w = w - g"),
            ("for _ in a:\n    g = torch.autograd.grad(f(w), [w])[0]\n    w -= g", "w -= g"),
            ("for _ in a:\n    g = torch.autograd.grad(f(w), inputs=w)\n    w.data.sub_(g[0])", "w.data.sub_"),
        ]
    ),
    *(
        (law.randomness_is_handed_in, chapter(source), f"hidden randomness ('{shown}")
        for source, shown in [
            ("np.random.RandomState(0)", "np.random.RandomState(0)"),
            ("x = np.random.randn(3)", "np.random.randn(3)"),
            ("from numpy.random import normal as draw\ndraw(3)", "draw(3)"),
            ("random.Random(0)", "random.Random(0)"),
            ("from random import choice\nchoice(names)", "choice(names)"),
            ("torch.randn(3, 1)", "torch.randn(3, 1)"),
            ("torch.rand(3)", "torch.rand(3)"),
            ("torch.randint(0, 3, (2,))", "torch.randint"),
            ("torch.randperm(3)", "torch.randperm"),
            ("torch.randn(\n    3, generator=None\n)", "torch.randn(3, generator=None)"),
            ("from torch import randn\nrandn(3)", "randn(3)"),
            ("import torch as t\nt.randn_like(x)", "t.randn_like(x)"),
            ("torch.empty(3).normal_()", "torch.empty(3).normal_()"),
        ]
    ),
    (law.cells_are_python, chapter("x = (1"), "code cell 1 (x = (1): not Python: "),
    (law.cells_are_python, chapter("x = 1", "%pip install a\ny = 1 +"), "code cell 2"),
    (law.logic_lives_in_the_package, chapter("torch.manual_seed(0)"), "a seed set by hand"),
    (law.logic_lives_in_the_package, chapter("np.random.seed(0)"), "a seed set by hand"),
    (law.cells_are_short, chapter(lines(13)), "13 lines, allowed are 12"),
    (
        law.figures_are_described,
        chapter(("plt.show()", {"outputs": [PICTURE]})),
        "lacks figure.caption, figure.name, image.alt",
    ),
    (
        law.figures_are_described,
        chapter(("x", {"outputs": [PICTURE], "metadata": {"mystnb": FIGURE["mystnb"] | {"image": {"alt": " "}}}})),
        "lacks image.alt",
    ),
    (law.figures_are_described, chapter(("x", {"outputs": [SVG]})), "lacks figure.caption, figure.name, image.alt"),
    (law.figures_are_described, chapter(figure()), "describes one image/png, but its outputs hold 0"),
    (law.figures_are_described, chapter(figure(SVG)), "describes one image/png, but its outputs hold 0"),
    (law.figures_are_described, chapter(figure(PICTURE, PICTURE)), "outputs hold 2"),
    (law.figures_are_described, chapter(figure(png(drawing=""))), "without a whole image/svg+xml"),
    (law.figures_are_described, chapter(figure(png(drawing="<div/>"))), "without a whole image/svg+xml"),
    (law.figures_are_described, chapter(figure(PICTURE, SVG)), "without a whole image/svg+xml"),
    *(
        (law.figures_are_described, chapter(figure(broken)), "its image/png is broken")
        for broken in [
            new_output("display_data", {"image/png": "aGk="}),
            new_output("display_data", {"image/png": ""}),
            new_output("display_data", {"image/png": "no base64"}),
            png(width=0),
            png(height=0),
            png(damage=lambda data: data[1:]),
            png(damage=lambda data: data[:-12]),
            png(damage=lambda data: data[:-5]),
            png(damage=lambda data: data.replace(b"IDAT", b"IDAX")),
        ]
    ),
    (law.cells_ran_in_order, chapter(("x = 1", {"execution_count": None})), "execution count None, expected 1"),
    (law.cells_ran_in_order, chapter(("x = 1", {"execution_count": 7})), "execution count 7, expected 1"),
    (
        law.widgets_need_no_kernel,
        chapter(("x", {"outputs": [new_output("display_data", {WIDGET_VIEW: {"model_id": "1"}})]})),
        "code cell 1 (x): shows a widget that is dead without a kernel",
    ),
    (
        law.outputs_are_clean,
        chapter(("x", {"outputs": [new_output("stream", name="stderr", text="UserWarning: beware")]})),
        "output on stderr: UserWarning: beware",
    ),
    (
        law.outputs_are_clean,
        chapter(("x", {"outputs": [new_output("error", ename="ValueError", evalue="no", traceback=[])]})),
        "ValueError",
    ),
    (
        law.outputs_are_clean,
        chapter(("x", {"outputs": [new_output("display_data", {"text/plain": "  0%|          | 0/3"})]})),
        "a progress bar",
    ),
    (
        law.directives_read_everywhere,
        chapter(text="```{note}\nhidden\n```\n\n" + EXERCISES),
        "'```{note}' opens with a code fence",
    ),
    (law.ends_with_exercises, chapter(text=EXERCISES + "\n\n## Afterword"), "the last section is 'Afterword'"),
    (law.ends_with_exercises, chapter(text=EXERCISES.replace(":::{exercise}", ":::{note}", 1)), "holds 2 exercises"),
    (law.ends_with_exercises, chapter(text=EXERCISES.replace("Derive", "Guess")), "ex-1 is called 'Guess', expected"),
    (law.ends_with_exercises, chapter(text=EXERCISES.replace(" Derive", "")), "ex-1 is called '', expected 'Derive'"),
    *(
        (law.solutions_follow_exercises, chapter(text=EXERCISES.replace(old, new, 1)), complaint)
        for old, new, complaint in [
            (":::{solution-start} ex-0", ":::{note}", "exercise ex-0: no solution follows"),
            ("How many?\n:::", "How many?\n:::\n%%\nassert count\n%%", "exercise ex-0: no solution follows"),
            ("solution-start} ex-1", "solution-start} ex-2", "exercise ex-1: what follows is the solution of 'ex-2'"),
            (":class: dropdown\n", "", "lacks ':class: dropdown'"),
            (":label: sol-0\n", "", "or a ':label:'"),
            (":::{solution-end}", ":::{note}", "is not closed once"),
            (":::{solution-end}\n:::", ":::{solution-end}\n:::\n%%\nx = 1\n%%", "is not closed once"),
            ("assert count == 10", "print(count)", "exercise ex-0: no code cell of its solution has an assert"),
            ("assert count == 10", "assert True", "exercise ex-0: no code cell of its solution has an assert"),
        ]
    ),
    (law.last_cell_asserts, chapter(last=""), "no code cell before the exercises"),
    (law.ends_with_exercises, chapter(text=""), "the last section is '(none)'"),
    *(
        (law.last_cell_asserts, chapter(last=last), "neither an assert that can fail nor a call of verdict")
        for last in [
            "print(True)",
            "assert True",
            "assert 1 < 2, message",
            "assert (error < 1, 'always true')",
            "def check(error):\n    assert error < 1",
            "def check(ok):\n    mesa.verdict(ok)\n\nprint(ok)",
            "check = lambda: mesa.verdict(ok)",
        ]
    ),
]


@pytest.mark.parametrize(("one", "broken", "complaint"), BREAKS, ids=[f"{b[0].__name__}: {b[2]:.30}" for b in BREAKS])
def test_a_break_is_complained_about_once_and_by_its_law_alone(one, broken, complaint):
    complaints = list(one(broken))
    assert len(complaints) == 1
    assert complaint in complaints[0]
    others = [c for other in law.LAWS if other is not one for c in other(broken)]
    assert others == []


@pytest.mark.parametrize(
    "last",
    [
        "def check(e):\n    assert e < 1\n\ncheck(error)",
        "def check(e):\n    assert e < 1\n\nlist(map(check, errors))",
        "for error in errors:\n    assert error < 1",
    ],
)
def test_an_assert_that_runs_and_can_fail_counts(last):
    assert list(law.last_cell_asserts(chapter(last=last))) == []


def test_a_directive_in_a_code_block_is_no_exercise():
    assert list(law.solutions_follow_exercises(chapter(text="````md\n:::{exercise}\n:::\n````\n\n" + EXERCISES))) == []


def test_exercises_are_due_in_numbered_parts_only():
    assert list(law.ends_with_exercises(chapter(text="", numbered=False))) == []


def test_an_expected_error_is_no_complaint():
    error = new_output("error", ename="ValueError", evalue="no", traceback=[])
    tagged = chapter(("x", {"outputs": [error], "metadata": {"tags": ["raises-exception"]}}))
    assert list(law.outputs_are_clean(tagged)) == []


def test_a_notebook_outside_the_table_of_contents_is_found(tmp_path):
    (tmp_path / "book" / ".ipynb_checkpoints").mkdir(parents=True)
    paths = [tmp_path / "book" / name for name in ("listed.ipynb", "orphan.ipynb", ".ipynb_checkpoints/listed.ipynb")]
    for path in paths:
        path.touch()
    assert law.orphans(tmp_path, [Page(paths[0], numbered=True)]) == [paths[1]]
