"""What readers without JavaScript see of a widget: a drawing of its first state, behind a `<noscript>`.

`python -m tools.stills` draws them with the widgets' own front ends. A still is named after the state that it shows, so
that a page never shows one of another state; `tests/site` complains of a widget that has none.
"""

import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "_stills"

_OUTPUT = re.compile(
    r'<div class="mesa-widget" data-front-end="(?P<front_end>\w+)" data-state="(?P<state>[^"]*)">.*?</div>',
    re.DOTALL,
)


def still_name(output: str) -> str:
    """The file that holds the still of a widget: its front end, and a digest of its state.

    Args:
        output: the HTML that `mesa_lib.widgets.Widget.to_html` made.

    Raises:
        ValueError: `output` is no widget's.
    """
    if (found := _OUTPUT.match(output)) is None:
        raise ValueError(f"output: expected the HTML of a widget, got {output[:40]!r}")
    return f"{found['front_end']}-{hashlib.sha256(found['state'].encode()).hexdigest()[:8]}.html"


def with_still(output: str, folder: Path = FOLDER) -> str:
    """The widget's output with its still for readers without JavaScript, or as it is if there is none for its state."""
    path = folder / still_name(output)
    if not path.is_file():
        return output
    still = f'<noscript><div class="mw-body">{path.read_text(encoding="utf-8")}</div></noscript>'
    return _OUTPUT.sub(lambda found: found[0].removesuffix("</div>") + still + "</div>", output, count=1)
