"""Without JavaScript a reader sees what a widget draws when it opens."""

import pytest

from book._ext.live_widgets import stored_widgets
from book._ext.live_widgets.stills import FOLDER, still_name, with_still
from tools.stills import draw, main, still
from tools.toc import notebooks

OUTPUT = '<div class="mesa-widget" data-front-end="step_on_data" data-state="{&quot;eta&quot;:1}"><p>A line.</p></div>'
OUTPUTS = {still_name(text): text for path in notebooks() for text in stored_widgets(path)}


def test_every_widget_of_the_book_has_a_still_and_no_still_is_left_over():
    assert {path.name for path in FOLDER.glob("*")} == set(OUTPUTS), "run `make stills`"


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_still_is_what_the_front_end_draws(chromium, name):
    assert draw(chromium, OUTPUTS[name]) == (FOLDER / name).read_text(encoding="utf-8"), "run `make stills`"


def test_a_still_belongs_to_one_state():
    other = OUTPUT.replace(":1}", ":2}")
    assert still_name(OUTPUT) == still_name(OUTPUT.replace("A line", "Another line"))
    assert still_name(OUTPUT) != still_name(other)
    assert still_name(other).startswith("step_on_data-")


def test_what_is_no_widget_has_no_still():
    with pytest.raises(ValueError, match="output: expected the HTML of a widget, got '<p>A line"):
        still_name("<p>A line.</p>")


def test_a_still_goes_behind_the_sentence_and_only_where_there_are_no_scripts(tmp_path):
    (tmp_path / still_name(OUTPUT)).write_text("<svg></svg>")
    stands = '<p>A line.</p><noscript><div class="mw-body"><svg></svg></div></noscript></div>'
    assert with_still(OUTPUT, tmp_path) == OUTPUT.replace("<p>A line.</p></div>", stands)


def test_a_widget_in_another_state_gets_no_still(tmp_path):
    (tmp_path / still_name(OUTPUT)).write_text("<svg></svg>")
    other = OUTPUT.replace(":1}", ":2}")
    assert with_still(other, tmp_path) == other


def test_a_still_asks_for_no_hand():
    panels = (
        '<div><svg><g class="mw-handle mw-gd" tabindex="0" role="slider" aria-label="point 1" aria-valuenow="3">'
        '<circle class="mw-grip" r="16"></circle><circle class="mw-knob" r="6"></circle></g></svg>'
        '<button>start</button><input type="range"><select></select><details tabindex="0">kept</details></div>'
    )
    knob = '<g class="mw-handle mw-gd"><circle class="mw-knob" r="6"></circle></g>'
    assert still(panels) == f"<div><svg>{knob}</svg><details>kept</details></div>\n"


def test_a_front_end_that_does_not_start_has_no_still(chromium):
    with pytest.raises(ValueError, match=r"step_on_data-\w+\.html: the front end did not start"):
        draw(chromium, OUTPUT)  # its state lacks the points


def test_a_machine_without_a_browser_is_told_so(monkeypatch):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="no Chromium found; install one"):
        main([])


def test_without_javascript_the_pages_show_the_stills(chromium, site):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "book/gallery.html").as_uri())
    shown = page.locator(".mesa-widget:has(> noscript)")
    assert shown.count() == page.locator(".mesa-widget").count() == len(OUTPUTS)
    for widget in shown.all():
        assert widget.locator(".mw-stand-in").is_visible()
        drawing = widget.locator("svg.mw-plot").first.bounding_box()
        assert drawing is not None
        assert drawing["width"] > 200 and drawing["height"] > 100
    context.close()
