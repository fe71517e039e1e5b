"""Widgets in a page without a kernel: they answer to mouse, keys and finger, with the numbers of mesa_lib."""

import json
import re
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Locator, Page

import mesa_lib as mesa
from mesa_lib import LinearTasks, TaskBatch, widgets
from mesa_lib.widgets.base import Widget, recorded
from mesa_lib.widgets.linker import front_ends, page_script, style_sheet
from tools.bench_pages import AIMS, ALIVE, FRAME_TIMES
from tools.notebooks import read
from tools.toc import ROOT, notebooks

RUNTIME = ROOT / "book" / "_ext" / "live_widgets" / "runtime.js"
EXACT = {"dtype": torch.float64}


def line_task(count: int = 4) -> TaskBatch:
    tasks = LinearTasks(x_dim=1, num_context=count, noise_std=0.2)
    return tasks.sample(1, mesa.generator(3, "validation tasks"), **EXACT)


WIDGETS: dict[str, Callable[[], Widget]] = {
    "kernel_by_hand": lambda: widgets.KernelByHand(line_task(3)),
    "step_on_data": lambda: widgets.StepOnData(line_task()),
    "proposition_by_hand": lambda: widgets.PropositionByHand(line_task()),
    "training_scrubber": lambda: widgets.TrainingScrubber(),
    "loss_landscape": lambda: widgets.LossLandscape(),
    # Tied, so that all of its sliders change what is drawn.
    "spectrum_flow": lambda: widgets.SpectrumFlow(method="tied"),
    "softmax_step": lambda: widgets.SoftmaxStep(line_task(3)),
    "copying_by_hand": lambda: widgets.CopyingByHand(),
}


# --- what the numbers should be, from mesa_lib ------------------------------------------------------------------------


def shown(value: float, digits: int = 2) -> str:
    """A number as the widgets write it."""
    text = f"{abs(value):.{digits}f}"
    return f"−{text}" if value < 0 and float(text) else text


def step_numbers(widget: widgets.StepOnData) -> list[str]:
    x, y = (torch.tensor(values, **EXACT) for values in (widget.x, widget.y))
    after = widget.w_0 - widget.eta * ((widget.w_0 * x - y) * x).mean().item()
    losses = [0.5 * (slope * x - y).square().mean().item() for slope in (widget.w_0, after)]
    moved = f"Stepped line, old targets: {shown(losses[1], 4)}. Old line, moved targets: {shown(losses[1], 4)}"
    return [f"slope {shown(widget.w_0)} → {shown(after)}", f"Loss before: {shown(losses[0], 4)}", moved]


def proposition_numbers(widget: widgets.PropositionByHand) -> list[str]:
    layers, steps = widget.predictions()
    agreement = "They agree" if abs(layers - steps) < 5e-10 else f"They differ by {shown(layers - steps, 3)}"
    return [f"predict{'' if widget.num_layers > 1 else 's'} {shown(layers, 3)}", shown(steps, 3), agreement]


def scrubber_numbers(widget: widgets.TrainingScrubber) -> list[str]:
    run = recorded("training_run")
    member = run["seeds"].index(widget.seed)
    loss, cosine = (shown(run[name][member][widget.record], 3) for name in ("loss", "cosine"))
    return [f"Seed {widget.seed}, step {run['steps'][widget.record]}", f"relative loss {loss}", f"cosine {cosine}"]


def landscape_numbers(widget: widgets.LossLandscape) -> list[str]:
    best = mesa.optimal_loss(widget.tasks) / mesa.zero_loss(widget.tasks)
    return [f"η* = {shown(mesa.optimal_eta(widget.tasks), 3)}", shown(best, 3), shown(widget.relative_loss(), 3)]


def spectrum_numbers(widget: widgets.SpectrumFlow) -> list[str]:
    worst = widget.shares(widget.method).abs().max().item()
    return [f"After {widget.num_layers} layer", f"at most {brief(worst)} is left"]


def softmax_numbers(widget: widgets.SoftmaxStep) -> list[str]:
    here = widget.predictions(torch.tensor([widget.x_q])).item()
    plain, centred = widget.distances()
    distances = f"distance {brief(plain)} to the gradient step, {brief(centred)} to the centred step"
    return [f"At x = {shown(widget.x_q)}: attention {shown(here, 3)}", distances]


def kernel_numbers(widget: widgets.KernelByHand) -> list[str]:
    found = {name: shown(values.item(), 3) for name, values in widget.predictions(torch.zeros(1)).items()}
    height = f"At x = 0: {found['layers']}, in the limit {found['limit']}, softmax {found['softmax']}"
    return [f"{widget.num_steps} layer", height]


def copying_numbers(widget: widgets.CopyingByHand) -> list[str]:
    missed = mesa.missed_weight(widget.sharpness, 2 * widget.num_context)
    return [f"N = {widget.num_context}", f"target gets {shown(1 - missed, 3)}", f"missed weight is {brief(missed)}"]


def brief(value: float) -> str:
    """A number with about two digits, as `short` of numbers.js writes it."""
    if value == 0:
        return "0"
    if 0.01 <= value < 1e4:
        return shown(value, 0 if value >= 10 else 1 if value >= 1 else 2 if value >= 0.1 else 3)
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


NUMBERS: dict[str, Callable[[Any], list[str]]] = {
    "kernel_by_hand": kernel_numbers,
    "step_on_data": step_numbers,
    "proposition_by_hand": proposition_numbers,
    "training_scrubber": scrubber_numbers,
    "loss_landscape": landscape_numbers,
    "spectrum_flow": spectrum_numbers,
    "softmax_step": softmax_numbers,
    "copying_by_hand": copying_numbers,
}


# --- pages ------------------------------------------------------------------------------------------------------------


def page_of(*shown_widgets: Widget, theme: str = "light", scripts: bool = True) -> str:
    """A page as the book makes them: outputs, style, front ends, and the runtime last."""
    colours = {"light": "background: white; color: #323232", "dark": "background: #14181e; color: #ced6dd"}[theme]
    names = sorted({widget.front_end for widget in shown_widgets})
    programs = [page_script(name) for name in names] + [RUNTIME.read_text(encoding="utf-8")]
    return (
        f'<!doctype html><html lang="en" data-theme="{theme}"><head><title>Widgets</title>'
        f'<meta name="viewport" content="width=device-width"><style>body {{ {colours}; margin: 15px }}</style>'
        f"<style>{style_sheet()}</style></head><body><main><h1>Widgets</h1>"
        + "".join(widget.to_html() for widget in shown_widgets)
        + "</main>"
        + "".join(f"<script>{program}</script>" for program in programs if scripts)
        + "</body></html>"
    )


@contextmanager
def opened(browser: Browser, content: str, **options: Any) -> Iterator[Page]:
    """A page in a window of its own; errors in its console fail the test."""
    context = browser.new_context(viewport={"width": options.pop("width", 1200), "height": 1600}, **options)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(content)
    try:
        yield page
        assert complaints == []
    finally:
        context.close()


def next_frame(page: Page) -> None:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def state(page: Page) -> dict[str, Any]:
    return page.evaluate("document.querySelector('.mesa-widget').model.state")  # type: ignore[no-any-return]


def picture(page: Page) -> str:
    """Everything that is drawn, without what a pointer or the focus highlights."""
    return page.evaluate("[...document.querySelectorAll('.mw-panels')].map((p) => p.innerHTML).join()")  # type: ignore[no-any-return]


def check_numbers(page: Page, name: str) -> None:
    """The numbers in the widget's words are those of mesa_lib for the state that it is in now."""
    widget = WIDGETS[name]()
    for trait, value in state(page).items():
        setattr(widget, trait, value)
    words = page.inner_text(".mw-reading")
    for number in NUMBERS[name](widget):
        assert number in words, f"{name}: expected {number!r} in {words!r}"


class Watched:
    """A page with one widget: what is done inside a `with` must change picture and state, with the right numbers."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name = page, name

    @contextmanager
    def changes(self, what: str) -> Iterator[None]:
        before = picture(self.page), state(self.page)
        yield
        next_frame(self.page)
        after = picture(self.page), state(self.page)
        assert after[1] != before[1], f"{self.name}: {what} leaves the state as it was"
        assert after[0] != before[0], f"{self.name}: {what} leaves the picture as it was"
        check_numbers(self.page, self.name)


def centre(shape: Locator) -> tuple[float, float]:
    shape.scroll_into_view_if_needed()
    box = shape.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def along(slider: Locator, share: float) -> tuple[float, float]:
    """A place on a slider."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


def position(slider: Locator) -> float:
    """Where a slider's thumb is, from 0 to 1."""
    return float(slider.evaluate("(s) => (s.value - s.min) / (s.max - s.min)"))


@pytest.fixture(params=WIDGETS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- the tests --------------------------------------------------------------------------------------------------------


def test_there_is_a_widget_here_for_every_front_end():
    assert sorted(WIDGETS) == front_ends()


def test_a_widget_opens_with_the_numbers_of_its_state_and_is_quick(chromium, name):
    with opened(chromium, page_of(WIDGETS[name]())) as page:
        check_numbers(page, name)
        assert page.inner_text(".mw-finding") == WIDGETS[name]().finding
        for drawing in page.locator("svg.mw-plot").all():
            assert len(drawing.get_attribute("aria-label") or "") > 20
        # Three times the aims, which the benchmark measures: a test must not fail because a machine is busy.
        assert page.evaluate(ALIVE) < 3 * AIMS["alive"]
        assert statistics.median(page.locator(".mesa-widget").evaluate(FRAME_TIMES)) < 3 * AIMS["frame"]


def test_a_widget_answers_to_the_mouse_and_to_keys(chromium, name):
    with opened(chromium, page_of(WIDGETS[name]())) as page:
        opening, watched = (picture(page), state(page)), Watched(page, name)
        for slider in page.locator("input[type=range]").all():
            move_slider(watched, slider)
        for handle in page.locator(".mw-handle").all():
            move_point(watched, handle)
        for select in page.locator("select").all():
            select.focus()
            last = select.evaluate("(s) => s.selectedIndex === s.options.length - 1")
            with watched.changes("a choice by arrow key"):
                page.keyboard.press("ArrowUp" if last else "ArrowDown")
        for box in page.locator("input[type=checkbox]").all():
            with watched.changes("a box"):
                box.press("Space")
        page.get_by_role("button", name="start again").click()
        next_frame(page)
        assert (picture(page), state(page)) == opening


def move_slider(watched: Watched, slider: Locator) -> None:
    """Drag a slider's thumb to another place, then use an arrow key; its label and its words have to be there."""
    page, here = watched.page, position(slider)
    label, words = (page.locator(f"{tag}[for={slider.get_attribute('id')}]") for tag in ("label", "output"))
    assert label.inner_text().strip(), f"{watched.name}: a slider has no label"
    with watched.changes(f"dragging {label.inner_text()}"):
        page.mouse.move(*along(slider, 0.02 + 0.96 * here))
        page.mouse.down()
        page.mouse.move(*along(slider, 0.3 if here > 0.5 else 0.7), steps=4)
        page.mouse.up()
    with watched.changes(f"an arrow key on {label.inner_text()}"):
        slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == words.inner_text()


def move_point(watched: Watched, handle: Locator) -> None:
    """Drag a point, then use an arrow key; its name and its numbers have to be there for those who do not see it."""
    page, label = watched.page, handle.get_attribute("aria-label")
    assert label, f"{watched.name}: a point has no name"
    with watched.changes(f"dragging {label}"):
        x, y = centre(handle.locator(".mw-knob"))
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 25, y + 20, steps=4)
        page.mouse.up()
    with watched.changes(f"an arrow key on {label}"):
        handle.press("ArrowUp")
    low, now, high = (float(handle.get_attribute(f"aria-value{part}") or "nan") for part in ("min", "now", "max"))
    assert low <= now <= high and handle.get_attribute("aria-valuetext")


def test_a_widget_answers_to_a_finger(chromium, name):
    with opened(chromium, page_of(WIDGETS[name]()), width=390, has_touch=True, is_mobile=True) as page:
        watched, session = Watched(page, name), page.context.new_cdp_session(page)
        for slider in page.locator("input[type=range]").all():
            with watched.changes("touching a slider"):
                page.touchscreen.tap(*along(slider, 0.3 if position(slider) > 0.5 else 0.7))
        for handle in page.locator(".mw-handle").all():
            x, y = centre(handle.locator(".mw-knob"))
            path = [{"x": x, "y": y}, {"x": x - 15, "y": y + 10}, {"x": x - 30, "y": y + 20}]
            with watched.changes("dragging a point by finger"):
                for kind, place in zip(("touchStart", "touchMove", "touchMove"), path, strict=True):
                    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [place]})
                session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert page.evaluate("scrollX") == 0, "a point that is dragged does not scroll the page"


def test_a_reader_types_words_of_their_own(chromium):
    with opened(chromium, page_of(widgets.CopyingByHand(12.0))) as page:
        page.get_by_label("your own words").fill("One fish two fish red fish blue FISH red bird One fish red")
        next_frame(page)
        words = page.inner_text(".mw-reading")
        assert "Next word: “fish” and “bird”" in words
        page.get_by_label("your own words").fill("x y x z x")
        next_frame(page)
        assert "Next word: “y” and “z”" in page.inner_text(".mw-reading")
        page.get_by_label("your own words").fill("...")
        next_frame(page)
        assert "type at least two words" in page.inner_text(".mw-reading")


def test_a_setting_with_trained_layers_shows_them(chromium):
    with opened(chromium, page_of(widgets.LossLandscape())) as page:
        page.get_by_label("setting", exact=True).select_option(index=4)
        next_frame(page)
        record = recorded("trained_steps")[3]
        assert state(page)["inputs"] == record["inputs"]
        assert f"{len(record['eta'])} trained layers (circles): η" in page.inner_text(".mw-reading")
        assert page.locator("svg.mw-plot").nth(1).locator("circle.mw-open").count() == len(record["eta"])
        page.get_by_label("noise").press("ArrowRight")
        next_frame(page)
        assert page.get_by_label("setting", exact=True).evaluate("(s) => s.selectedIndex") == 0
        assert page.locator("circle.mw-open").count() - page.locator(".mw-swatch circle.mw-open").count() == 0


def test_widgets_share_a_page_without_meeting(chromium):
    first, second = widgets.StepOnData(line_task(), eta=1.0), widgets.StepOnData(line_task(), eta=1.0)
    with opened(chromium, page_of(first, second, widgets.SpectrumFlow())) as page:
        readings = page.locator(".mw-reading").all_inner_texts()
        page.get_by_label("step size").first.press("ArrowRight")
        next_frame(page)
        after = page.locator(".mw-reading").all_inner_texts()
        assert after[0] != readings[0] and after[1:] == readings[1:]
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(chromium, theme):
    with opened(chromium, page_of(*(make() for make in WIDGETS.values()), theme=theme)) as page:
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found] == []


def test_text_and_axes_take_the_colour_of_a_dark_page(chromium):
    with opened(chromium, page_of(*(make() for make in WIDGETS.values()), theme="dark")) as page:
        colour = page.evaluate("getComputedStyle(document.body).color")
        texts = page.evaluate("[...document.querySelectorAll('svg text')].map((text) => getComputedStyle(text).fill)")
        assert texts and set(texts) == {colour}


@pytest.mark.parametrize("width", [320, 390, 1600])
def test_no_width_scrolls_sideways(chromium, width):
    with opened(chromium, page_of(*(make() for make in WIDGETS.values())), width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        smallest = page.evaluate(
            "Math.min(...[...document.querySelectorAll('svg.mw-plot text:not([font-size])')]"
            ".map((text) => text.getBoundingClientRect().height))"
        )
        assert smallest >= 9, "text in a drawing stays legible"


def test_without_javascript_sentences_stand_in(chromium):
    everyone = [make() for make in WIDGETS.values()]
    with opened(chromium, page_of(*everyone), java_script_enabled=False) as page:
        sentences = [f"{widget.describe()} {widget.finding}" for widget in everyone]
        assert page.locator(".mw-stand-in").all_inner_texts() == sentences


def test_a_front_end_that_fails_leaves_the_sentence_and_says_so(chromium):
    widget = widgets.StepOnData(line_task())
    broken = page_of(widget).replace("step_on_data = module_step_on_data", "step_on_data = {}")
    page = chromium.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.set_content(broken)
    assert page.inner_text(".mw-stand-in") == f"{widget.describe()} {widget.finding}"
    assert len(complaints) == 1 and "[live widgets] step_on_data:" in complaints[0]
    page.close()


# --- in the built book ------------------------------------------------------------------------------------------------


def pages_with_widgets(site: Path) -> dict[str, int]:
    """How many widgets each page of the built site shows, for those that show any."""
    counts = {path: path.read_text(encoding="utf-8").count('<div class="mesa-widget"') for path in site.rglob("*.html")}
    return {path.relative_to(site).as_posix(): count for path, count in counts.items() if count}


def test_every_widget_of_the_book_comes_alive_on_a_server_and_from_a_disk(reader, site):
    pages = pages_with_widgets(site)
    assert {"book/gallery.html", "book/in_context_regression.html"} <= set(pages)
    reader.waits_for_formulas = False
    addresses = {path: path for path in pages} | {(site / "book/gallery.html").as_uri(): "book/gallery.html"}
    for address, path in addresses.items():
        page = reader.open(address)
        assert page.locator(".mesa-widget .mw-reading").count() == pages[path], address
        assert page.locator(".mw-stand-in").count() == 0
    assert reader.notes == []


def test_a_page_gets_the_scripts_of_its_own_widgets_and_no_others(site):
    for path in sorted(site.glob("book/*.html")):
        text = path.read_text(encoding="utf-8")
        shown_here = set(re.findall(r'<div class="mesa-widget" data-front-end="(\w+)"', text))
        scripts = re.findall(r'<script[^>]*src="[^"]*/widgets/(\w+)\.js', text)
        assert sorted(scripts[:-1]) == sorted(shown_here), path.name
        assert scripts[-1:] == (["runtime"] if shown_here else []), "the runtime comes last"
        assert text.count("/widgets/widgets.css") == bool(shown_here)


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_stored_widgets_fit_the_front_ends_that_the_pages_bring(path):
    for cell in read(path).cells:
        for output in cell.get("outputs", []):
            for place in BeautifulSoup(output.get("data", {}).get("text/html", ""), "html.parser").select(
                ".mesa-widget"
            ):
                made = WIDGETS[place["data-front-end"]]()
                assert set(json.loads(place["data-state"])) == set(made.state), f"{path.stem}: run `make execute`"
