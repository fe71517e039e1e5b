"""Drawings as stable text."""

import io
import re
import xml.etree.ElementTree as ElementTree

import matplotlib.pyplot as plt
import numpy as np
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import drawings
from tools.notebooks import to_bytes


def drawn():
    """A figure with everything that gets a random id: markers, clipped lines, collections, hatches and images."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(3, 1.5))
    left.plot([0.123456, 2, 1], marker="o", label="-0.5")
    left.scatter([0, 1, 2], [1, 0, 1], s=[1, 5, 9])
    left.fill_between([0, 1], [0, 1], hatch="/")
    left.set_title("title")
    right.imshow(np.eye(3))
    file = io.StringIO()
    figure.savefig(file, format="svg")
    plt.close(figure)
    return file.getvalue()


def test_two_drawings_of_one_figure_are_one_text():
    first, second = drawn(), drawn()
    assert first != second, "matplotlib's ids are random, or this test would test nothing"
    assert drawings.tidy(first) == drawings.tidy(second)


def test_a_tidied_drawing_is_smaller_and_whole():
    before, after = drawn(), drawings.tidy(drawn())
    assert len(after) < 0.9 * len(before)
    root = ElementTree.fromstring(after)
    assert root.tag.endswith("svg")
    ids = {element.get("id") for element in root.iter()}
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', after))
    assert used and {one or other for one, other in used} <= ids
    assert any(name and name.startswith("part-") for name in ids)


def test_a_tidied_drawing_keeps_its_numbers_to_a_hundredth():
    before, after = drawn(), drawings.tidy(drawn())
    number = re.compile(r"-?\d+\.\d+|-?\d+")
    paths = [
        [float(n) for d in re.findall(r'\bd="([^"]*)"', text) for n in number.findall(d)] for text in (before, after)
    ]
    assert len(paths[0]) == len(paths[1]) > 100
    np.testing.assert_allclose(paths[1], paths[0], atol=0.0051)
    assert "scale(0.015625)" in before and "scale(0.015625)" in after


def test_tidying_twice_changes_nothing():
    once = drawings.tidy(drawn())
    assert drawings.tidy(once) == once


def test_drawings_in_notebooks_are_tidied():
    outputs = [new_output("display_data", {drawings.MIME_TYPE: drawn()}) for _ in range(2)]
    first, second = (to_bytes(new_notebook(cells=[new_code_cell("x", id="x", outputs=[one])])) for one in outputs)
    assert first == second
