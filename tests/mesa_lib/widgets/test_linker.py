"""Modules become one script: in order, each once, and nothing but what they export gets out."""

import re

import pytest

from mesa_lib.widgets import linker


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """`modules(a="...", d_json="...")`: a folder of modules in place of the package's, a.js and d.json."""
    monkeypatch.setattr(linker, "STATIC", tmp_path)

    def write(**sources: str) -> None:
        linker.link.cache_clear()
        for name, source in sources.items():
            file = f"{name.removesuffix('_json')}.json" if name.endswith("_json") else f"{name}.js"
            (tmp_path / file).write_text(source, encoding="utf-8")

    yield write
    linker.link.cache_clear()


def run(chromium, script: str, expression: str):
    page = chromium.new_page()
    try:
        return page.evaluate(f"() => {{ {script}\nreturn {expression}; }}")
    finally:
        page.close()


def test_what_is_imported_runs_first_and_once(modules, chromium):
    modules(
        a='import { two } from "./b.js";\nimport { three } from "./c.js";\n'
        "export function sum() { return two() + three(); }",
        b='import { three } from "./c.js";\nexport function two() { return three() - 1; }',
        c="export function three() { return 3; }",
    )
    script = linker.link("a")
    assert script.count("const module_c =") == 1
    assert script.index("const module_c") < script.index("const module_b") < script.index("const module_a")
    assert run(chromium, script, "module_a.sum()") == 5


def test_names_that_are_not_exported_stay_private(modules, chromium):
    modules(
        a='import { f } from "./b.js";\nconst secret = 1;\nexport function g() { return [f(), secret]; }',
        b="const secret = 2;\nexport function f() { return secret; }",
    )
    assert run(chromium, linker.link("a"), "[module_a.g(), Object.keys(module_b)]") == [[2, 1], ["f"]]


def test_imports_may_span_lines_rename_and_read_data(modules, chromium):
    modules(
        a='import {\n  one as uno,\n  two,\n} from "./b.js";\nimport { data } from "./d.json";\n'
        "export function all() { return [uno(), two(), data.x]; }",
        b="export function one() { return 1; }\nexport function two() { return 2; }",
        d_json='{"x": [3,\n 4]}',
    )
    assert run(chromium, linker.link("a"), "module_a.all()") == [1, 2, [3, 4]]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"a": 'import { f } from "./a.js";'}, "a.js: imports itself"),
        ({"a": 'import { f } from "./b.js";', "b": 'import { g } from "./a.js";'}, "by way of a.js > b.js"),
        ({"a": 'import { f } from "./b.js";', "b": "function f() {}"}, "a.js: expected b.js to export f"),
        ({"a": 'import f from "./b.js";', "b": ""}, "a.js: expected imports and exports of functions"),
        ({"a": "export const x = 1;"}, "got 'export const x = 1;'"),
        ({"a": 'const f = await import("./b.js");'}, "got 'import('"),
        ({"b": ""}, "expected one of the modules b, got 'a'"),
    ],
)
def test_what_cannot_be_linked_is_refused_by_name(modules, sources, message):
    modules(**sources)
    with pytest.raises(ValueError, match=re.escape(message)):
        linker.link("a")


def test_every_front_end_is_linked_in_both_forms():
    assert len(linker.front_ends()) >= 7
    for name in linker.front_ends():
        assert linker.es_module(name).rstrip().endswith(f"export default {{ render: module_{name}.render }};")
        assert f"(window.mesaWidgets ??= {{}}).{name} = module_{name};" in linker.page_script(name)


def test_both_forms_run_in_a_browser(chromium):
    page = chromium.new_page()
    for name in linker.front_ends():
        page.add_script_tag(content=linker.page_script(name))
        kind = page.evaluate(
            "async (source) => typeof (await import(URL.createObjectURL(new Blob([source], "
            "{ type: 'text/javascript' })))).default.render",
            linker.es_module(name),
        )
        assert kind == "function", name
    shared = page.evaluate("Object.keys(window).filter((name) => name.startsWith('module_') || name === 'mesaWidgets')")
    assert shared == ["mesaWidgets"], "a page's script leaves one name behind"
    assert sorted(page.evaluate("Object.keys(window.mesaWidgets)")) == linker.front_ends()
    page.close()


def test_a_script_cannot_end_the_element_that_holds_it():
    assert [name for name in linker.modules() if "</script" in linker.link(name)] == []
