"""The chapter law bites: a chapter that keeps it, and one small break for every law."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import law
from tools.toc import Page

EXERCISES = "## Exercises\n\n" + "\n\n".join(f":::{{exercise}}\n:label: ex-{n}\n\nPredict.\n:::" for n in range(3))
FIGURE = {"mystnb": {"figure": {"caption": "A line.", "name": "fig-line"}, "image": {"alt": "A line that rises."}}}
PICTURE = new_output("display_data", {"image/png": "aGk="})


def chapter(*code, text=EXERCISES, numbered=True, last="assert True"):
    """A chapter of the given code cells (a source, or a source and keywords), ending as chapters do."""
    cells = [new_markdown_cell("# Title\n\nWords.\n\n:::{prf:theorem}\nTrue.\n:::")]
    for count, item in enumerate([*code, last], start=1):
        source, keywords = item if isinstance(item, tuple) else (item, {})
        cells.append(new_code_cell(source, **({"execution_count": count} | keywords)))
    return law.chapter_from(new_notebook(cells=[*cells, new_markdown_cell(text)]), "chapter", numbered)


def lines(count):
    return "\n".join(f"x_{n} = {n}" for n in range(count))


def test_a_chapter_that_keeps_the_law_has_no_complaints():
    good = chapter(
        "%pip install -q mesa-lib\n" + lines(11),
        "def f(x):\n    a = x\n\n    b = a\n    return b",
        ("plt.show()", {"outputs": [PICTURE], "metadata": FIGURE}),
        last='import mesa_lib\n\nmesa_lib.verdict("claim", True)',
    )
    assert [complaint for one in law.LAWS for complaint in one(good)] == []


BREAKS = [
    (law.logic_lives_in_the_package, chapter("class A:\n    pass"), "class A"),
    (law.logic_lives_in_the_package, chapter("if True:\n    def f():\n" + 5 * "        x = 1\n"), "def f has 6 lines"),
    (law.logic_lives_in_the_package, chapter("loss.backward()"), "a training loop"),
    (law.logic_lives_in_the_package, chapter("adam = torch.optim.Adam(p)"), "a training loop"),
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
    (law.cells_ran_in_order, chapter(("x = 1", {"execution_count": None})), "execution count None, expected 1"),
    (law.cells_ran_in_order, chapter(("x = 1", {"execution_count": 7})), "execution count 7, expected 1"),
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
    (law.ends_with_exercises, chapter(text=""), "the last section is '(none)'"),
    (law.last_cell_asserts, chapter(last="print(True)"), "neither an assert nor a call of verdict"),
]


@pytest.mark.parametrize(("one", "broken", "complaint"), BREAKS, ids=[f"{b[0].__name__}: {b[2]:.30}" for b in BREAKS])
def test_a_break_is_complained_about_once_and_by_its_law_alone(one, broken, complaint):
    complaints = list(one(broken))
    assert len(complaints) == 1
    assert complaint in complaints[0]
    others = [c for other in law.LAWS if other is not one for c in other(broken)]
    assert others == []


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
