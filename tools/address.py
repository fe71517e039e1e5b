"""Give the book another address: `python -m tools.address https://github.com/OWNER/NAME https://SITE/`.

`_config.yml` says where the repository and the built site are. Some files have to repeat it: the package's metadata,
the README, the citation, links to Colab and Binder, and the first cell of every notebook. This sets all of them.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.notebooks import replace_file
from tools.toc import ROOT

GITHUB = "https://github.com/"
SUFFIXES = (".cff", ".ipynb", ".md", ".py", ".toml", ".yml")
PLACES = ("*", ".github/**/*", "assignments/**/*", "binder/*", "book/**/*", "mesa_lib/**/*")


@dataclass(frozen=True)
class Address:
    """Where the book is.

    Attributes:
        slug: the repository on GitHub, OWNER/NAME.
        site: the built pages, with a slash at the end.
    """

    slug: str
    site: str


def read_address(root: Path = ROOT) -> Address:
    """The address as `_config.yml` has it."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return Address(config["repository"]["url"].removeprefix(GITHUB), config["html"]["baseurl"])


def files(root: Path = ROOT) -> Iterator[Path]:
    """The files that may repeat the address."""
    for place in PLACES:
        for path in sorted(root.glob(place)):
            if path.is_file() and path.suffix in SUFFIXES and ".ipynb_checkpoints" not in path.parts:
                yield path


def other_addresses(text: str, address: Address) -> list[str]:
    """The addresses in a text that look like the book's and are not: its name with another owner, or another site."""
    name = re.escape(address.slug.partition("/")[2])
    slugs = re.findall(rf"(?:github\.com/|/github/|/gh/)([\w.-]+/{name})(?![\w.-]*\w)", text)
    sites = re.findall(rf"https://[\w.-]+\.github\.io/{name}/", text)
    return [found for found in slugs if found != address.slug] + [found for found in sites if found != address.site]


def move(new: Address, root: Path = ROOT) -> list[Path]:
    """Put the new address in the place of the old one, and return the files that changed."""
    old = read_address(root)
    changed = []
    for path in files(root):
        text = path.read_text(encoding="utf-8").replace(old.site, new.site)
        text = re.sub(rf"(?<=/){re.escape(old.slug)}(?![\w.-]*\w)", new.slug, text)
        if replace_file(path, text.encode()):
            changed.append(path)
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.address", description="Give the book another address.")
    parser.add_argument("repository", help="its address on GitHub, https://github.com/OWNER/NAME")
    parser.add_argument("site", help="the address of the built pages, https://.../")
    options = parser.parse_args(arguments)
    if not re.fullmatch(rf"{GITHUB}[\w.-]+/[\w.-]+", options.repository):
        parser.error(f"repository: expected {GITHUB}OWNER/NAME, got '{options.repository}'")
    if not re.fullmatch(r"https?://\S+/", options.site):
        parser.error(f"site: expected an address that ends with a slash, got '{options.site}'")
    for path in move(Address(options.repository.removeprefix(GITHUB), options.site)):
        print(path.relative_to(ROOT).as_posix())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
