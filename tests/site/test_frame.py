"""What frames the pages: links that lead somewhere, icons, fonts, files to take along, and one address for the site."""

import hashlib
import re
import struct
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont

from book._ext.figure_files.drawings import INK, PAPER, Drawing, recolor
from book._ext.site_frame import icons, mend_roles
from tools.drawings import MIME_TYPE
from tools.notebooks import read
from tools.toc import ROOT, notebooks, read_pages

STATIC = ROOT / "book" / "_static"
ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
PAGES = [page.path.relative_to(ROOT).with_suffix(".html").as_posix() for page in read_pages()]


@cache
def page(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(path: Path) -> set[str]:
    return {str(tag["id"]) for tag in page(path).find_all(id=True)}


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PAGES, "genindex.html", "search.html", "index.html"])
def test_every_link_inside_the_site_leads_somewhere(site, name):
    start = site / name
    broken = []
    for link in page(start).find_all("a", href=True):
        url = urlsplit(link["href"])
        if url.scheme or url.netloc:
            continue
        target = (start.parent / unquote(url.path)).resolve() if url.path else start
        if not target.is_file():
            broken.append(f"{link['href']}: no such file")
        elif url.fragment and target.suffix == ".html" and unquote(url.fragment) not in anchors(target):
            broken.append(f"{link['href']}: no such place on the page")
    assert broken == []


# --- one address ------------------------------------------------------------------------------------------------------


def test_the_sites_address_stands_in_one_file_and_its_copies():
    found = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "*.yml", "*.toml", "*.cff", "book/**/*.*", "tools/*.py", "mesa_lib/**/*.py")
        for path in ROOT.glob(pattern)
        if path.suffix not in {".woff2", ".png", ".pyc"} and ADDRESS in path.read_text(encoding="utf-8")
    ]
    # tests/tools/test_address.py holds the copies against the first.
    assert set(found) == {
        "_config.yml",
        "CITATION.cff",
        "README.md",
        "mesa_lib/grading/repository.py",
        "pyproject.toml",
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_where_it_lives_and_how_to_show_a_link_to_it(site, name):
    head = page(site / name).head
    assert head.find("link", rel="canonical")["href"] == ADDRESS + name
    assert head.find("meta", property="og:url")["content"] == ADDRESS + name
    assert head.find("meta", property="og:image")["content"] == f"{ADDRESS}_static/card.png"
    description = head.find("meta", property="og:description")["content"]
    assert description.strip() and "\\" not in description, "no raw TeX"
    icon = head.find("link", rel="icon")["href"]
    assert (site / name).parent.joinpath(icon).resolve().is_file()
    assert len(head.find_all("meta", attrs={"name": "description"})) <= 1


def test_the_sitemap_lists_every_page_and_robots_find_it(site):
    namespace = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    listed = [tag.text for tag in ElementTree.parse(site / "sitemap.xml").iter(f"{namespace}loc")]
    assert {ADDRESS + name for name in PAGES} <= set(listed)
    assert f"Sitemap: {ADDRESS}sitemap.xml" in (site / "robots.txt").read_text(encoding="utf-8")


def test_the_card_has_the_size_that_social_sites_ask_for():
    data = (STATIC / "card.png").read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1200, 630)


# --- icons and fonts --------------------------------------------------------------------------------------------------


def test_every_icon_on_the_pages_is_in_the_fonts(site):
    shown = {name for path in site.glob("**/*.html") for name in icon_names(path)}
    assert {"bars", "magnifying-glass"} <= shown
    assert sorted(shown - set(icons.NAMES)) == []
    style_sheet, code_points = icons.slim((icons.STATIC / icons.STYLE_SHEET).read_text(encoding="utf-8"))
    served = (site / "_static" / icons.STYLE_SHEET).read_text(encoding="utf-8")
    assert served == style_sheet
    fonts = list((site / "_static" / icons.FONTS).iterdir())
    glyphs = {point for path in fonts for point in TTFont(path).getBestCmap()}
    assert code_points <= glyphs
    assert sum(path.stat().st_size for path in fonts) < 20_000


def icon_names(path: Path) -> set[str]:
    classes = [" ".join(tag["class"]) for tag in page(path).find_all(["i", "span"], class_=True)]
    found = set(re.findall(r"(?<=\bfa-)[a-z-]+", " ".join(classes)))
    return found - {"solid", "brands", "regular", "lg", "fw"}


def test_the_themes_script_of_icons_is_not_served(site):
    assert [path for path in (site / "_static").rglob("*") if icons.is_left_over(path)] == []


def test_an_icon_that_the_theme_lacks_is_named(monkeypatch):
    monkeypatch.setattr(icons, "NAMES", ("bars", "unicorn"))
    with pytest.raises(Exception, match="the theme has no icon unicorn"):
        icons.slim('.fa-bars:before,.fa-navicon:before{content:"\\f0c9"}')


def test_fonts_are_the_ones_that_were_checked_in_and_come_with_their_licence():
    folder = STATIC / "fonts"
    sums = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    files = {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    assert files == set(sums)
    assert "OFL.txt" in files
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files} == sums


# --- figures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_every_figure_can_be_downloaded(site, path):
    cells = [cell for cell in read(path).cells if "figure" in cell.metadata.get("mystnb", {})]
    html = site / path.relative_to(ROOT).with_suffix(".html")
    for cell in cells:
        name = cell.metadata.mystnb.figure.name
        (link,) = page(html).find(id=name).find_all("a", class_="drawing-file")
        file = html.parent / link["href"]
        (stored,) = [output.data[MIME_TYPE] for output in cell.outputs if MIME_TYPE in output.get("data", {})]
        assert file.read_text(encoding="utf-8") == stored
        assert ElementTree.fromstring(stored).tag.endswith("svg")
        for image in page(html).find(id=name).find_all("img"):
            assert ElementTree.parse(html.parent / image["src"]).getroot().tag.endswith("svg")
            assert image["alt"] == cell.metadata.mystnb.image.alt


def test_the_gallery_shows_every_figure_and_every_widget(site):
    gallery = page(site / "book" / "gallery.html")
    links = {link["href"] for link in gallery.select(".figure-gallery-item > a")}
    cells = [(path, cell) for path in notebooks() for cell in read(path).cells if cell.cell_type == "code"]
    figures = {
        f"{path.stem}.html#{cell.metadata.mystnb.figure.name}"
        for path, cell in cells
        if "figure" in cell.metadata.get("mystnb", {})
    }
    assert links == figures
    stored = [output.get("data", {}).get("text/html", "") for _, cell in cells for output in cell.outputs]
    widgets = sum('class="mesa-widget"' in html for html in stored)
    assert len(gallery.find_all(class_="mesa-widget")) == widgets


def test_drawings_take_the_pages_colours():
    style_sheet = (STATIC / "custom.css").read_text(encoding="utf-8")
    for paper in PAPER.values():
        assert f"--pst-color-background: {paper};" in style_sheet
    assert [recolor("#ffffff", paper) for paper in PAPER] == list(PAPER.values())
    assert [recolor("#000000", paper) for paper in PAPER] == list(INK.values())
    assert recolor("#0072b2", "light") == "#0072b2" != recolor("#0072b2", "dark")
    assert recolor("#123456", "dark") == "#123456"


def test_a_drawing_without_a_size_is_named():
    with pytest.raises(ValueError, match="fig-x: the drawing has no size"):
        _ = Drawing("fig-x", "", "", "<svg/>").size


# --- roles ------------------------------------------------------------------------------------------------------------


def test_lists_without_items_lose_their_roles_and_nothing_else():
    body = (
        '<dt class="sig sig-object py" id="f"><span>f</span>(<dl>\n<dd><em>x</em></dd></dl>)</dt><dl><dd>kept</dd></dl>'
        '<div role="list" class="citation-list">\n<div class="citation" id="id1" role="doc-biblioentry">'
    )
    assert mend_roles(body) == (
        '<dt class="sig sig-object py" id="f"><span>f</span>(<span class="sig-params">\n<span class="sig-line">'
        "<em>x</em></span></span>)</dt><dl><dd>kept</dd></dl>"
        '<div class="citation-list">\n<div class="citation" id="id1">'
    )
