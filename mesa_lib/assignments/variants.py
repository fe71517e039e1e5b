"""Variants: an assignment with its conventions chosen anew each term, so that last term's answers do not fit.

A module of public cases may declare `VARIANTS = {"layout": ("columns", "rows"), ...}`: what can be chosen, and from
what, the default first. A variant is written as its choices that are not the default, joined by dots: "rows.yx". The
empty text is the default of everything.
"""

import hashlib
from collections.abc import Mapping
from itertools import product
from types import ModuleType

Options = Mapping[str, tuple[str, ...]]


def options_of(module: ModuleType) -> Options:
    """What can be chosen, by name; empty if the module declares nothing."""
    return getattr(module, "VARIANTS", {})


def choices_of(module: ModuleType, variant: str) -> dict[str, str]:
    """The choice for each option.

    Raises:
        LookupError: a word of the variant is none of the choices.
    """
    options = options_of(module)
    choices = {name: values[0] for name, values in options.items()}
    for word in filter(None, variant.split(".")):
        names = [name for name, values in options.items() if word in values]
        if len(names) != 1:
            known = ", ".join(value for values in options.values() for value in values[1:])
            raise LookupError(f"unknown variant {variant!r}; its words are {known or 'none'}")
        choices[names[0]] = word
    return choices


def variant_of(module: ModuleType, seed: str) -> str:
    """The variant that an instructor's seed draws; the empty seed gives the default."""
    words = []
    for name, values in options_of(module).items():
        if seed:
            digest = hashlib.sha256(f"{seed}\n{module.__name__.rpartition('.')[2]}\n{name}".encode()).digest()
            word = values[int.from_bytes(digest[:8], "big") % len(values)]
            words += [word] if word != values[0] else []
    return ".".join(words)


def spanning_variants(module: ModuleType) -> list[str]:
    """The default, each choice alone, and as many choices at once as there can be: every choice is in one of them."""
    options = options_of(module)
    alone = [word for values in options.values() for word in values[1:]]
    return list(dict.fromkeys(["", *alone, ".".join(values[-1] for values in options.values() if len(values) > 1)]))


def all_variants(module: ModuleType) -> list[str]:
    """Every variant there is, the default first."""
    options = options_of(module)
    return [
        ".".join(word for word, values in zip(words, options.values(), strict=True) if word != values[0])
        for words in product(*options.values())
    ]
