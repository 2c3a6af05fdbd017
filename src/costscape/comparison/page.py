"""A comparison as one HTML page: everything inline, nothing loaded, no script."""

import io
import re
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from costscape.comparison.picture import draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from costscape.comparison.result import Comparison


def render(result: "Comparison") -> str:
    """The page's text; words and looks come from ``page.html`` beside this file."""
    source = files("costscape.comparison").joinpath("page.html").read_text(encoding="utf-8")
    cells = result.cells()
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in cells[0])
    return Template(source).substitute(
        recommended=escape(result.recommended),
        advice=escape(result.advice),
        about=escape(result.about),
        reference=escape(result.reference),
        picture=svg(
            draw(result), f"Costs of each method less those of {result.reference}, summed up"
        ),
        head=head,
        body="\n".join(_line(row, row["method"] == result.recommended) for row in cells),
        absent="".join(f"<li>{escape(words)}</li>" for words in result.absent),
    )


def _line(row: dict[str, str], chosen: bool) -> str:
    name, *rest = (escape(text) for text in row.values())
    mark = ' class="chosen"' if chosen else ""
    return f'<tr{mark}><th scope="row">{name}</th>{"".join(f"<td>{t}</td>" for t in rest)}</tr>'


def svg(figure: "Figure", words: str) -> str:
    """A picture as one element, with the words that a screen reader says."""
    from matplotlib import rc_context

    out, nothing = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "costscape"}):
        figure.savefig(out, format="svg", metadata=nothing)
    text = out.getvalue()
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    body = text[text.index(">", text.index("<svg")) + 1 :].strip()
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg {names} {box[0]} role="img"><title>{escape(words)}</title>{body}'
