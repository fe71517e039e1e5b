"""What readers do with the site: search, choose light or dark, walk by keyboard, unfold, print, read it from a disk."""

import re

import pytest

CHAPTER = "book/in_context_regression.html"


def test_search_finds_a_theorem(reader):
    reader.waits_for_formulas = False
    page = reader.open("book/index.html")
    page.keyboard.press("Control+K")
    page.locator("#pst-search-dialog input[type=search]").fill("one gradient step linear self-attention proposition")
    page.keyboard.press("Enter")
    page.wait_for_selector("ul.search li a")
    found = page.locator("ul.search li a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert any("one_layer_one_step" in link for link in found), found
    page.locator('ul.search li a[href*="one_layer_one_step"]').first.click()
    page.wait_for_url("**/one_layer_one_step.html*")
    assert reader.notes == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_opens_in_the_colours_of_the_readers_system(reader, scheme):
    reader.waits_for_formulas = False
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    reader.page.emulate_media(color_scheme=scheme)
    page = reader.open(CHAPTER)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    picture = page.locator(f"img.drawing.on-{scheme}").first
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    other = {"light": "dark", "dark": "light"}[scheme]
    assert page.locator(f"img.drawing.on-{other}:visible").count() == 0
    assert [file for file in asked if file.endswith(f"-{other}.svg")] == []


@pytest.mark.parametrize("path", [CHAPTER, "book/index.html", "book/claims.html", "book/api.html", "search.html"])
def test_dark_pages_have_enough_contrast(reader, path):
    reader.page.emulate_media(color_scheme="dark")
    reader.waits_for_formulas = False
    reader.open(path)
    assert reader.grave_findings(["color-contrast"]) == []


def test_the_readers_choice_of_colours_is_kept(reader):
    reader.waits_for_formulas = False
    page = reader.open(CHAPTER)
    seen = set()
    for _ in range(3):  # light, dark, and as the system has it
        page.locator(".theme-switch-button:visible").click()
        seen.add(page.evaluate("document.documentElement.dataset.mode"))
    assert seen == {"light", "dark", "auto"}
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        page.locator(".theme-switch-button:visible").click()
    reader.open("book/notation.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_everything_can_be_reached_by_keyboard_and_shows_where_one_is(reader):
    reader.waits_for_formulas = False
    page = reader.open(CHAPTER)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to main content"
    focus = """() => { const e = document.activeElement, s = getComputedStyle(e);
        return [e.outerHTML.slice(0, 80), s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1] }"""
    stops = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        name, is_marked = page.evaluate(focus)
        stops[name] = is_marked
    assert [name for name, is_marked in stops.items() if not is_marked] == []
    for wanted in ("search-button", "fast_weights.html", "theme-switch-button"):
        assert any(wanted in name for name in stops), wanted


def test_wide_code_and_formulas_scroll_in_place_by_keyboard(reader):
    page = reader.open("book/one_layer_one_step.html")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_selector("[data-scrolls]")
    kinds = set(page.locator("[data-scrolls]").evaluate_all("boxes => boxes.map(box => box.dataset.scrolls)"))
    assert {"code", "formula"} <= kinds
    box = page.locator("pre[data-scrolls]").first
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    page.set_viewport_size({"width": 1600, "height": 800})
    page.wait_for_function("document.querySelectorAll('pre[data-scrolls]').length === 0")


def test_a_proof_unfolds_by_keyboard(reader):
    reader.waits_for_formulas = False
    page = reader.open(CHAPTER)
    box = page.locator("div.admonition.dropdown").first
    body = box.locator(":scope > :not(.admonition-title)").first
    assert not body.is_visible()
    box.locator("button.toggle-button").press("Enter")
    assert body.is_visible()
    assert box.locator("button.toggle-button").get_attribute("aria-expanded") == "true"


def test_a_chapter_prints(reader):
    reader.page.emulate_media(color_scheme="dark")
    page = reader.open(CHAPTER)
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 4
    page.emulate_media(media="print")
    for hidden in (".bd-sidebar-primary", ".bd-header-article", ".drawing-file", ".prev-next-footer"):
        assert page.locator(f"{hidden}:visible").count() == 0, hidden
    assert page.locator("img.drawing.on-light:visible").count() == page.locator("img.drawing.on-light").count() > 0
    assert page.locator("img.drawing.on-dark:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_a_chapter_reads_from_a_disk(reader, site):
    page = reader.open((site / CHAPTER).as_uri())
    assert reader.unset_formulas() == []
    page.locator("img.drawing.on-light").first.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('img.drawing.on-light').naturalWidth > 100")
    assert reader.notes == []
