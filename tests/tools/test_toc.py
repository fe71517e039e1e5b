"""The table of contents as the tools read it."""

import pytest

from tools.toc import TocError, read_pages

TOC = """\
format: jb-book
root: book/index
parts:
  - caption: Part
    numbered: true
    chapters:
      - file: book/one
        sections:
          - file: book/two
  - chapters:
      - file: book/api.md
"""


def test_pages_come_in_reading_order_and_know_whether_they_are_chapters(tmp_path):
    (tmp_path / "_toc.yml").write_text(TOC)
    (tmp_path / "book").mkdir()
    for name in ("index.md", "one.ipynb", "two.ipynb", "api.md"):
        (tmp_path / "book" / name).touch()
    pages = read_pages(tmp_path)
    assert [page.name for page in pages] == ["index", "one", "two", "api"]
    assert [page.is_notebook for page in pages] == [False, True, True, False]
    assert [page.numbered for page in pages] == [False, True, True, False]


def test_a_page_without_a_source_is_named(tmp_path):
    (tmp_path / "_toc.yml").write_text("root: book/index")
    with pytest.raises(TocError, match=r"lists 'book/index', but none of these exist: .*index\.ipynb, .*index\.md"):
        read_pages(tmp_path)


def test_a_file_of_another_shape_is_refused(tmp_path):
    (tmp_path / "_toc.yml").write_text("- book/index")
    with pytest.raises(TocError, match="expected a mapping with the entry 'root'"):
        read_pages(tmp_path)
