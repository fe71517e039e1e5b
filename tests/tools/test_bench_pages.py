"""The benchmark of the pages: what it opens, what it notes, what it refuses."""

import pytest

from mesa_lib.results import benchmark
from tools import bench_pages
from tools.browser import served
from tools.toc import read_pages

PAGE = "<!doctype html><html><head><title>T</title></head><body>{}</body></html>"
WIDGET = """<div class="mesa-widget"><input type="range" min="0" max="1"></div>
<script>
  document.querySelector("input").addEventListener("input", () => requestAnimationFrame(() => {
    const end = performance.now() + 25;
    while (performance.now() < end);
  }));
  performance.mark("widgets-alive");
</script>"""


def test_a_page_with_a_widget_has_three_times_and_a_slow_frame_is_seen(chromium, tmp_path):
    (tmp_path / "page.html").write_text(PAGE.format("Words." + WIDGET))
    with served(tmp_path) as address:
        times = bench_pages.measure(chromium, address + "page.html", visits=1)
    assert set(times) == {"first_paint", "alive", "frame"}
    assert 25 <= times["frame"] < 500
    assert 0 < times["alive"] < 5000


def test_a_page_without_a_widget_has_one_time(chromium, tmp_path):
    (tmp_path / "page.html").write_text(PAGE.format("Words."))
    with served(tmp_path) as address:
        assert set(bench_pages.visit(chromium, address + "page.html")) == {"first_paint"}


def test_every_page_of_the_contents_is_opened_as_often_as_asked(monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr(bench_pages, "visit", lambda browser, address: opened.append(address) or {"first_paint": 1.0})
    record = bench_pages.measure_site(type("Browser", (), {"version": "1"}), tmp_path, visits=2)
    assert len(opened) == 3 * len(record["pages"]) == 3 * len(read_pages())
    assert record["pages"]["copying"] == {"first_paint": 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--visits", "0"], "--visits: expected a positive number, got 0"), (["--site", "/nowhere"], "no built pages")],
)
def test_what_cannot_be_measured_is_refused(capsys, arguments, message):
    with pytest.raises(SystemExit):
        bench_pages.main(arguments)
    assert message in capsys.readouterr().err


def test_the_committed_record_has_every_page_and_meets_the_aims():
    pages = benchmark()["pages"]["pages"]
    assert len(pages) == len(read_pages())
    for name, times in pages.items():
        assert all(milliseconds < bench_pages.AIMS[what] for what, milliseconds in times.items()), name
