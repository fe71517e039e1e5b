"""The page on running shows the committed benchmark, number by number."""

import pytest

from book._ext.benchmarks import PARTS, markdown
from mesa_lib.results import benchmark
from tools import bench
from tools.toc import ROOT

RECORD = {
    "context": [{"num_context": 1000, "tokens": 9.0, "moments": 3.0, "moments given": 1.0}],
    "targets": [{"what": "one layer", "aim": 1.5, "seconds": None, "seeds": 5, "arrived": 2}],
}


def test_every_part_of_the_benchmark_has_its_place_on_the_page():
    text = (ROOT / "book" / "running.md").read_text(encoding="utf-8")
    assert [part for part in PARTS if f":::{{benchmark}} {part}\n" not in text] == []
    assert set(bench.PARTS) - {"runs"} == set(PARTS) - {"machine"}  # the runs are quoted by a chapter


def test_ratios_and_goals_show_as_they_were_measured():
    assert markdown("context", RECORD)[-1] == "| 1,000 | 9.0 | 3.0 | 1.0 | 3.0 |"
    assert markdown("targets", RECORD)[-1] == "| one layer | 1.5 | not reached | 2 of 5 |"


@pytest.mark.parametrize("part", PARTS)
def test_the_committed_numbers_can_be_shown(part):
    assert all(isinstance(line, str) for line in markdown(part, benchmark()))


def test_a_part_that_was_not_measured_says_how_to_measure_it():
    assert markdown("pages", {}) == ["Not measured yet: `.venv/bin/python -m tools.bench pages`."]


def test_the_slowest_page_is_named_beside_the_aim():
    pages = {"softmax": {"first_paint": 400.0, "alive": 900.0, "frame": 7.0}, "references": {"first_paint": 500.0}}
    aims = {"first_paint": 1000, "alive": 1500, "frame": 16}
    one = {
        "seconds": 12.0,
        "processor seconds": 11.0,
        "one chapter": {"seconds": 4.0, "processor seconds": 3.0},
        "browser": "Chromium 1",
        "visits": 5,
        "aims": aims,
        "pages": pages,
    }
    lines = markdown("pages", {"pages": one})
    assert "12.0 seconds when all pages are new" in lines[0] and "4.0 seconds when one chapter has changed" in lines[0]
    assert "| until a page shows something | 1000 | 450.0 | 500.0, [](/book/references.md) |" in lines
    assert "| until its widgets answer | 1500 | 900.0 | 900.0, [](/book/softmax.ipynb) |" in lines
