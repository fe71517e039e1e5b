"""The map of the rooms on the page of the package is the contract that the linter holds."""

import re

import tomllib

from tools.toc import ROOT


def steps_of_the_contract() -> list[set[str]]:
    """The steps of the staircase, from the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (staircase,) = [contract for contract in contracts if contract["name"] == "Rooms form a staircase"]
    return [set(re.findall(r"\w+", layer)) for layer in staircase["layers"]]


def steps_of_the_map(text: str) -> list[set[str]]:
    """The rooms in each row of the table, from the top."""
    rows = re.findall(r"^\| \d+ \| (.*?) \| [^|\\]* \|$", text, re.MULTILINE)
    return [set(re.findall(r"(?<=mesa_lib\.)\w+|(?<=`)\w+(?=`)", row)) for row in rows]


def test_the_map_shows_the_contract():
    assert steps_of_the_map((ROOT / "book" / "api.md").read_text(encoding="utf-8")) == steps_of_the_contract()


def test_every_room_of_the_map_that_has_public_names_is_on_its_page():
    text = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"automodule:: mesa_lib\.(\w+)", text))
    linked = set(re.findall(r"\{py:mod\}`\w+ <mesa_lib\.(\w+)>`", text))
    assert linked <= shown


def test_rows_are_read():
    assert steps_of_the_map("| 1 | {py:mod}`a <mesa_lib.a>` \\| `b` | what |") == [{"a", "b"}]
