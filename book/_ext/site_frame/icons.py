"""The few icons that the pages show, cut out of the theme's icon fonts.

The theme brings all of Font Awesome: a script of half a megabyte (compressed) that turns `<i class="fa-bars">` into
drawings, and fonts that do the same by style sheet. The pages use the fonts, cut down to the glyphs that are named here
or that the style sheet itself names.
"""

import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

STATIC = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
STYLE_SHEET = Path("styles", "pydata-sphinx-theme.css")
FONTS = Path("vendor", "fontawesome", "webfonts")

# What stands in the theme's templates and scripts as `fa-NAME`.
NAMES = (
    "angle-left",
    "angle-right",
    "arrow-up",
    "bars",
    "circle-half-stroke",
    "download",
    "expand",
    "file",
    "file-pdf",
    "github",
    "lightbulb",
    "list",
    "magnifying-glass",
    "moon",
    "pencil-alt",
    "rocket",
    "sun",
    "xmark",
)
# One rule gives a glyph to all names of an icon: .fa-bars:before,.fa-navicon:before{content:"..."}
_RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"([^"]*)"\}')
_VARIABLE = re.compile(r'--pst-icon-[a-z-]+:"([^"]*)"')
_FONT_FACE = re.compile(r"@font-face\{[^}]*?url\(\.\./vendor/fontawesome/webfonts/([a-z0-9-]+)\.woff2\)[^}]*\}")
_SOURCE = re.compile(r"src:[^;}]+")


def slim(style_sheet: str) -> tuple[str, set[int]]:
    """The theme's style sheet with the rules of the icons in `NAMES` only, and the code points that it shows.

    Raises:
        ExtensionError: the style sheet has no rule for one of them.
    """
    found: dict[str, str] = {}

    def kept(rule: re.Match[str]) -> str:
        names = set(re.findall(r"\.fa-([a-z0-9-]+):before", rule[1])).intersection(NAMES)
        found.update(dict.fromkeys(names, rule[2]))
        return rule[0] if names else ""

    slimmed = _RULE.sub(kept, style_sheet)
    if missing := set(NAMES) - set(found):
        raise ExtensionError(f"site_frame: the theme has no icon {', '.join(sorted(missing))}")
    glyphs = [*found.values(), *_VARIABLE.findall(style_sheet), "\\f107"]  # the last: sphinx-book-theme, over a list
    slimmed = _FONT_FACE.sub(
        lambda face: _SOURCE.sub(f'src:url(../{(FONTS / face[1]).as_posix()}.woff) format("woff")', face[0]), slimmed
    )
    return slimmed, {_code_point(glyph) for glyph in glyphs}


def _code_point(glyph: str) -> int:
    """The code point of a string of a style sheet: the character itself, or a backslash and its number."""
    return int(glyph[1:], 16) if glyph.startswith("\\") else ord(glyph)


def write(target: Path) -> None:
    """Write the slim style sheet and the fonts that go with it, under the theme's own names, into a static folder."""
    style_sheet, code_points = slim((STATIC / STYLE_SHEET).read_text(encoding="utf-8"))
    (target / STYLE_SHEET).parent.mkdir(parents=True)
    (target / STYLE_SHEET).write_text(style_sheet, encoding="utf-8")
    (target / FONTS).mkdir(parents=True)
    for path in sorted((STATIC / FONTS).glob("*.ttf")):
        with TTFont(path, recalcTimestamp=False) as font:
            subsetter = Subsetter(Options(layout_features=[], name_IDs=["*"], notdef_outline=True))
            subsetter.populate(unicodes=code_points)
            subsetter.subset(font)
            font.flavor = "woff"
            font.save(target / FONTS / f"{path.stem}.woff")


def is_left_over(path: Path) -> bool:
    """Whether a file of the built site is one of the theme's that no page asks for."""
    whole_font = path.parent.name == FONTS.name and path.suffix in {".ttf", ".woff2"}
    return whole_font or path.suffix == ".map" or path.name.startswith(("fontawesome.js", "sphinx-thebe"))
