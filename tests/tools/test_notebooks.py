"""Notebooks as stable bytes."""

import configparser
import json
import re

from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.notebooks import WIDGET_STATE, WIDGET_VIEW, replace_file, to_bytes
from tools.toc import ROOT

A, B, C = "a" * 31 + "1", "b" * 31 + "2", "c" * 31 + "3"


def with_widgets(first: str, second: str, hidden: str):
    """A box that shows a slider, and a widget that no view reaches; ids are given, since Jupyter's are random."""
    state = {
        hidden: {"model_name": "TextModel", "state": {}},
        second: {"model_name": "IntSliderModel", "state": {"value": 3}},
        first: {"model_name": "HBoxModel", "state": {"children": [f"IPY_MODEL_{second}"]}},
    }
    view = new_output("display_data", {WIDGET_VIEW: {"model_id": first}})
    cell = new_code_cell("box", id="cell", outputs=[view])
    return new_notebook(cells=[cell], metadata={"widgets": {WIDGET_STATE: {"state": state}}})


def test_widget_ids_are_numbered_in_reading_order_whatever_they_were():
    content = to_bytes(with_widgets(A, B, C))
    assert content == to_bytes(with_widgets(C, A, B))
    state = json.loads(content)["metadata"]["widgets"][WIDGET_STATE]["state"]
    assert list(state) == [f"{0:032x}", f"{1:032x}"], "the widget that no view reaches is dropped"
    assert state[f"{0:032x}"]["state"]["children"] == [f"IPY_MODEL_{1:032x}"]


def test_a_widget_that_brings_html_is_kept_as_html_alone():
    notebook = with_widgets(A, B, C)
    notebook.cells[0].outputs[0].data["text/html"] = '<div class="mesa-widget"></div>'
    content = json.loads(to_bytes(notebook))
    assert list(content["cells"][0]["outputs"][0]["data"]) == ["text/html"]
    assert "widgets" not in content["metadata"]


def test_timings_versions_and_addresses_are_left_out():
    outputs = [
        new_output("stream", name="stdout", text="<a at 0x7f00>"),
        new_output("execute_result", {"text/plain": "<b at 0x7f01>"}),
    ]
    cell = new_code_cell("x", id="cell", outputs=outputs, metadata={"execution": {"iopub.execute_input": "now"}})
    metadata = {"language_info": {"name": "python", "version": "3.11.7"}, "jupytext": {"default_lexer": "ipython3"}}
    notebook = new_notebook(cells=[cell], metadata=metadata)
    content = to_bytes(notebook)
    for volatile in (b"0x7f", b"now", b"3.11.7", b"jupytext"):
        assert volatile not in content
    assert to_bytes(notebook) == content
    assert b"0x7f00" in json.dumps(notebook).encode(), "the notebook that is passed in is not changed"


def test_cells_without_ids_get_the_same_ones_every_time():
    notebook = new_notebook(cells=[new_code_cell("x")])
    notebook.nbformat_minor = 4
    del notebook.cells[0]["id"]
    assert json.loads(to_bytes(notebook))["cells"][0]["id"] == "cell-00"


def test_replacing_a_file_says_whether_it_changed_and_keeps_its_mode(tmp_path):
    path = tmp_path / "file"
    assert replace_file(path, b"one")
    path.chmod(0o640)
    assert not replace_file(path, b"one")
    assert replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_nbval_sanitizes_stored_and_fresh_outputs_alike():
    cfg = configparser.RawConfigParser()
    cfg.read(ROOT / "tests" / "chapters" / "nbval_sanitize.cfg")
    fresh = f"<object at 0x7f0123> {A}"
    stored = json.loads(to_bytes(new_notebook(cells=[new_code_cell("x", id="x", outputs=[printed(fresh)])])))
    (text,) = stored["cells"][0]["outputs"][0]["text"]
    for section in cfg.sections():
        fresh = re.sub(cfg[section]["regex"], cfg[section]["replace"], fresh)
        text = re.sub(cfg[section]["regex"], cfg[section]["replace"], text)
    assert text == fresh == "<object at 0xADDRESS> ID"


def printed(text: str):
    return new_output("stream", name="stdout", text=text)
