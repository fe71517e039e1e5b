"""The built site: clean, complete, described, and asking nothing of any other host."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from tools.toc import ROOT, read_pages

REMOTE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
REMOTE_IN_CSS = re.compile(r"(?:@import\s+|url\()\s*['\"]?\s*(?:https?:)?//[^)'\"\s]+", re.IGNORECASE)
# A link of these kinds names a page; every other kind makes the browser fetch something.
NOT_FETCHED = {"canonical", "author", "license", "help", "index", "search", "next", "prev"}


def pages_of(site: Path) -> Iterator[tuple[str, BeautifulSoup]]:
    """Every HTML page that has a body of its own (the root only redirects to book/index.html)."""
    for path in sorted(site.rglob("*.html")):
        if "_static" not in path.parts and path != site / "index.html":
            yield path.relative_to(site).as_posix(), BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def fetched_from_elsewhere(page: BeautifulSoup) -> list[str]:
    """What a browser would ask of another host to show a page."""
    links = [tag for tag in page.find_all("link", href=True) if not NOT_FETCHED.intersection(tag.get("rel", ()))]
    found = [tag["href"] for tag in links]
    found += [tag["src"] for tag in page.find_all(src=True)]
    found += [tag["data"] for tag in page.find_all("object", data=True)]
    found += [match for style in page.find_all("style") for match in REMOTE_IN_CSS.findall(style.get_text())]
    return [value for value in found if REMOTE.match(value) or REMOTE_IN_CSS.match(value)]


def undescribed_images(page: BeautifulSoup) -> list[str]:
    """Images of the text whose alternative text is missing, or is the name of a file."""
    article = page.find("article") or page
    return [str(tag) for tag in article.find_all("img") if not is_description(tag)]


def is_description(image: Tag) -> bool:
    """Whether an image's alternative text says more than where the image lies."""
    alt = str(image.get("alt") or "").strip()
    return bool(alt) and not re.search(r"\.(png|jpe?g|svg|gif|webp)$", alt, re.IGNORECASE) and " " in alt


def test_every_page_of_the_contents_is_built(site):
    built = [site / page.path.relative_to(ROOT).with_suffix(".html") for page in read_pages()]
    assert [path for path in built if not path.is_file()] == []


def test_no_page_asks_another_host(site):
    asked = {name: fetched_from_elsewhere(page) for name, page in pages_of(site)}
    assert {name: found for name, found in asked.items() if found} == {}


def test_no_style_sheet_asks_another_host(site):
    sheets = {path.name: REMOTE_IN_CSS.findall(path.read_text(encoding="utf-8")) for path in site.rglob("*.css")}
    assert {name: found for name, found in sheets.items() if found} == {}


def test_every_image_is_described(site):
    undescribed = {name: undescribed_images(page) for name, page in pages_of(site)}
    assert {name: found for name, found in undescribed.items() if found} == {}


@pytest.mark.parametrize("path", [page.path for page in read_pages() if page.is_notebook], ids=lambda path: path.stem)
def test_what_the_cells_computed_shows(site, path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    hidden = {"remove-cell", "remove-output"}
    outputs = [o for c in cells for o in c.get("outputs", []) if not hidden.intersection(c["metadata"].get("tags", []))]
    html = site / path.relative_to(ROOT).with_suffix(".html")
    page = BeautifulSoup(html.read_text(encoding="utf-8"), "html.parser")

    images = [html.parent / tag["src"] for tag in page.find("article").find_all("img", src=True)]
    assert [str(image) for image in images if not image.is_file()] == []
    pictures = sum("image/png" in output.get("data", {}) for output in outputs)
    figures = sum("figure" in cell["metadata"].get("mystnb", {}) for cell in cells)
    assert len(images) >= max(pictures, figures)

    shown = " ".join(page.find("article").get_text().split())
    printed = ["".join(output["text"]) for output in outputs if output["output_type"] == "stream"]
    assert [text for text in printed if " ".join(text.split()) not in shown] == []


def test_mathjax_comes_with_the_book(site):
    pages = dict(pages_of(site))
    sources = [tag["src"] for tag in pages["book/index.html"].find_all("script", src=True)]
    (mathjax,) = [source for source in sources if "mathjax" in source]
    assert (site / "book" / mathjax.partition("?")[0]).resolve().is_file()


def test_every_public_name_is_on_the_page_of_the_package(site):
    import mesa_lib

    page = dict(pages_of(site))["book/api.html"]
    documented = {str(tag["id"]).rpartition(".")[2] for tag in page.find_all(id=re.compile(r"^mesa_lib\."))}
    assert sorted(set(mesa_lib.__all__) - documented - {"__version__"}) == []


def test_every_row_of_the_ledger_links_to_the_box_of_its_check(site):
    pages = dict(pages_of(site))
    rows = pages["book/claims.html"].select("table.claims-ledger tbody tr")
    assert rows
    for row in rows:
        (link,) = (a["href"] for a in row.find_all("a", class_="internal") if "#verdict-" in a["href"])
        file, _, box = link.partition("#")
        found = pages[f"book/{file or 'claims.html'}"].find(id=box)  # a check may stand on the page of the ledger
        assert found is not None, f"{row['id']}: no box {box} on {file}"
        assert found.get_text().startswith(f"Claim {row.find('th').get_text()}: ")


def test_the_ledger_can_be_downloaded(site):
    links = dict(pages_of(site))["book/claims.html"].find_all("a", class_="download")
    files = [site / "book" / link["href"] for link in links]
    assert [file.name for file in files if file.is_file()] == ["claims.csv", "claims.json"]


@pytest.mark.parametrize(
    ("html", "complaints"),
    [
        ('<script src="https://cdn.example/x.js"></script>', 1),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', 1),
        ('<img src="http://cdn.example/x.png">', 1),
        ("<style>@import url('https://cdn.example/x.css');</style>", 1),
        ('<link rel="canonical" href="https://book.example/"><a href="https://paper.example">a</a>', 0),
        ('<script src="../_static/x.js"></script><img src="data:image/png;base64,aGk=">', 0),
    ],
)
def test_requests_to_other_hosts_are_seen(html, complaints):
    assert len(fetched_from_elsewhere(BeautifulSoup(html, "html.parser"))) == complaints


@pytest.mark.parametrize(
    ("html", "complaints"),
    [
        ('<img src="x.png">', 1),
        ('<img src="x.png" alt="">', 1),
        ('<img src="x.png" alt="../_images/0123abcd.png">', 1),
        ('<img src="x.png" alt="A line that rises.">', 0),
    ],
)
def test_missing_descriptions_are_seen(html, complaints):
    assert len(undescribed_images(BeautifulSoup(html, "html.parser"))) == complaints
