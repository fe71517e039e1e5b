"""The book's address has one place, and every file that repeats it repeats the same."""

import shutil

import pytest
import tomllib
import yaml

from mesa_lib.grading import repository
from tools.address import GITHUB, Address, files, main, move, other_addresses, read_address
from tools.toc import ROOT

ADDRESS = read_address()
NEW = Address("somebody/a-fork", "https://somebody.example/book/")


def test_no_file_names_another_address():
    found = {path.relative_to(ROOT): other_addresses(path.read_text(encoding="utf-8"), ADDRESS) for path in files()}
    assert {path: others for path, others in found.items() if others} == {}


def test_another_owner_and_another_site_are_seen():
    text = (
        "https://github.com/other/mesa https://colab.research.google.com/github/other/mesa/blob/main/a.ipynb "
        "https://mybinder.org/v2/gh/other/mesa/main https://other.github.io/mesa/ https://github.com/other/mesa-tools"
    )
    assert other_addresses(text, ADDRESS) == ["other/mesa"] * 3 + ["https://other.github.io/mesa/"]


def test_package_metadata_citation_and_course_work_repeat_it():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    url, branch = config["repository"]["url"], config["repository"]["branch"]
    assert (urls["Repository"], urls["Homepage"]) == (url, ADDRESS.site)
    assert urls["Changelog"] == f"{url}/blob/{branch}/CHANGELOG.md"
    assert (citation["repository-code"], citation["url"]) == (url, ADDRESS.site)
    assert (url, branch, ADDRESS.site) == (repository.URL, repository.BRANCH, repository.SITE)


def test_the_readme_leads_to_the_site_to_colab_and_to_binder():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    chapter = "book/in_context_regression.ipynb"
    assert (ROOT / chapter).is_file()
    for link in (ADDRESS.site, repository.colab_link(chapter), repository.binder_link(chapter)):
        assert f"({link})" in readme
    assert f"{GITHUB}{ADDRESS.slug}/actions/workflows/test.yml/badge.svg" in readme
    assert (ROOT / ".github" / "workflows" / "test.yml").is_file()


def test_moving_sets_every_copy(tmp_path):
    for path in files():
        if path.suffix == ".ipynb" and path.parent.name == "book":
            continue  # large, and alike
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    changed = {path.relative_to(tmp_path).as_posix() for path in move(NEW, tmp_path)}
    assert {"_config.yml", "pyproject.toml", "README.md", "CITATION.cff", "mesa_lib/grading/repository.py"} <= changed
    assert read_address(tmp_path) == NEW
    texts = [path.read_text(encoding="utf-8") for path in files(tmp_path)]
    assert [text for text in texts if ADDRESS.slug in text or ADDRESS.site in text] == []
    assert move(NEW, tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["github.com/a/b", "https://a.example/"], "repository: expected https://github.com/OWNER/NAME"),
        (["https://github.com/a/b", "https://a.example"], "site: expected an address that ends with a slash"),
    ],
)
def test_half_an_address_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err
