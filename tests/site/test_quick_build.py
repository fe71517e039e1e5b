"""A build on many cores makes the pages of a build on one, and complains of the same."""

import importlib
import json
import queue
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tools.toc import ROOT

CONFIG = {
    "extensions": ["sphinx.ext.mathjax", "sphinx_proof", "sphinx_exercise", "sphinx_sitemap", "quick_build"],
    "html_theme": "basic",
    "html_baseurl": "https://book.example/",
    "sitemap_url_scheme": "{link}",
    "numfig": True,
    "nitpicky": True,
}
# Builds in a process of its own, as jupyter-book does: Sphinx forks, and a process of tests has threads (a browser's,
# torch's) whose locks a fork would inherit for ever.
BUILD = """\
import gc, io, json, sys, warnings
from pathlib import Path
from sphinx.application import Sphinx

extensions, source, folder, cores, config = sys.argv[1:]
sys.path.insert(0, extensions)
import quick_build
quick_build.cores = lambda: int(cores)
warnings.simplefilter("ignore")
log = io.StringIO()
app = Sphinx(source, None, Path(folder, "html"), Path(folder, "trees"), "html", json.loads(config), None, log)
app.build()
print(json.dumps({"log": log.getvalue(), "parallel": app.parallel, "collects": gc.isenabled()}))
"""
PAGE = """\
{name}
======

Terms running on {name}, see :prf:ref:`theorem-a`, :eq:`equation-{name}` and :ref:`label-f`.

.. math:: x_{name} = 1
   :label: equation-{name}

.. prf:theorem::
   :label: theorem-{name}

   A sentence.

.. _label-{name}:

A section
---------

.. exercise::
   :label: exercise-{name}

   A question.
"""
NAMES = "abcdefgh"


@pytest.fixture
def quick_build(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    return importlib.import_module("quick_build")


@pytest.fixture
def build(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in NAMES:
        (source / f"{name}.rst").write_text(PAGE.format(name=name))
    (source / "index.rst").write_text("Index\n=====\n\n.. toctree::\n\n" + "".join(f"   {name}\n" for name in NAMES))

    def built(cores):
        """The files of the site, by name, the complaints, and what else the build tells of itself."""
        folder = tmp_path / str(cores)
        arguments = [ROOT / "book" / "_ext", source, folder, cores, json.dumps(CONFIG)]
        command = [sys.executable, "-B", "-c", BUILD, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        told = json.loads(done.stdout.splitlines()[-1])
        site = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.glob("html/**/*.*")}
        return site, re.sub(r"\x1b\[[0-9;]*m", "", told["log"]), told

    return built


def test_pages_are_the_same_on_many_cores(build):
    (one, complaints_of_one, alone), (many, complaints_of_many, together) = build(1), build(3)
    assert (alone["parallel"], together["parallel"]) == (1, 4)
    assert complaints_of_one == complaints_of_many == ""
    assert alone["collects"] and together["collects"]
    assert {"html/a.html", "html/searchindex.js", "html/sitemap.xml"} <= set(one)
    assert one == many


@pytest.mark.parametrize("kind", ["theorem", "equation", "label", "exercise"])
def test_a_name_that_two_pages_define_is_complained_of(build, kind, tmp_path):
    page = tmp_path / "source" / "g.rst"
    page.write_text(re.sub(rf"{kind}-g(?=:?\n)", f"{kind}-a", page.read_text()) + f"\n.. _{kind}-g:\n\nMore\n----\n")
    _, complaints, _ = build(3)
    assert re.search(rf"duplicate .*{kind}-a\b.*other instance in", complaints), complaints


def test_the_sitemap_keeps_the_order_of_the_pages(quick_build):
    links = queue.SimpleQueue()
    for link in ("c.html", "a.html", "b.html", "search.html", "genindex.html"):
        links.put((link, None))
    app = SimpleNamespace(
        sitemap_links=links,
        builder=SimpleNamespace(get_target_uri=lambda docname: f"{docname}.html"),
        env=SimpleNamespace(found_docs={"c", "b", "a"}),
    )
    quick_build.order_sitemap(app, None)
    assert [links.get()[0] for _ in range(5)] == ["a.html", "b.html", "c.html", "search.html", "genindex.html"]


def test_an_extension_that_is_not_safe_is_built_on_one_core(quick_build, monkeypatch):
    careless = SimpleNamespace(parallel_read_safe=None, parallel_write_safe=True)
    app = SimpleNamespace(extensions={"careless": careless}, parallel=1)
    monkeypatch.setattr(quick_build, "cores", lambda: 8)
    quick_build.use_all_cores(app)
    assert app.parallel == 1
    careless.parallel_read_safe = True
    quick_build.use_all_cores(app)
    assert app.parallel == 9


def test_a_word_keeps_its_stem(quick_build):
    from sphinx.search.en import SearchEnglish

    ours, sphinxs = quick_build.RememberedEnglish({}), SearchEnglish({})
    words = ["Descending", "gradients", "descending", "Gradients", "mesa"]
    assert [ours.stem(word) for word in words * 2] == [sphinxs.stem(word) for word in words * 2]
