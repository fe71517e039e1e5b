"""Figures as drawings: SVG that only changes when what it shows changes, and that stays small.

A figure is stored twice: as a PNG, which every front end of notebooks shows, and as an SVG, which the pages show and
readers download.
"""

import re

MIME_TYPE = "image/svg+xml"

# What stands before the drawing, when and by which program it was made, comments, and the indentation.
_NOT_DRAWN = re.compile(r"\A.*?(?=<svg\b)|<metadata>.*?</metadata>\s*|<!--.*?-->\s*|(?<=\n)[ \t]+", re.DOTALL)
# Matplotlib makes ids of parts that are used more than once from random numbers.
_RANDOM_ID = re.compile(r'(?<=\bid=")[^"]*[0-9a-f]{10}[^"]*')
_NAMED = re.compile(r'(?<=\bid=")[^"]+|(?<=")#[^"]+|(?<=url\(#)[^)]+')
# A path's lines: matplotlib breaks them after every point.
_IN_QUOTES = re.compile(r'"[^"]*"')
# Numbers of one and more: hundredths of a point cannot be seen. Smaller ones may be factors.
_LONG_NUMBER = re.compile(r"\d*[1-9]\d*\.\d{3,}")


def tidy(drawing: str) -> str:
    """An SVG by matplotlib, free of dates and random ids, with numbers to a hundredth of a point, a path a line."""
    drawing = _NOT_DRAWN.sub("", drawing)
    names = {name: f"part-{number}" for number, name in enumerate(dict.fromkeys(_RANDOM_ID.findall(drawing)))}

    def renamed(match: re.Match[str]) -> str:
        hash_sign, name = ("#", match[0][1:]) if match[0].startswith("#") else ("", match[0])
        return hash_sign + names.get(name, name)

    drawing = _NAMED.sub(renamed, drawing)
    drawing = _IN_QUOTES.sub(lambda match: " ".join(match[0].split()), drawing)
    return _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), drawing)
