"""What all inline pictures share: scales, ticks, text. Colours are the page's CSS classes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Number = int | float

WIDTH = 400  # of a picture in its own units: near a phone's, so that its text stays readable


@dataclass(frozen=True)
class Scale:
    """Numbers low..high to places start..end; with ``log`` by their logarithms."""

    low: Number
    high: Number
    start: Number
    end: Number
    log: bool = False

    def __call__(self, value: Number) -> float:
        low, high, v = (
            (math.log(self.low), math.log(self.high), math.log(max(value, 1e-300)))
            if self.log
            else (self.low, self.high, value)
        )
        share = 0.5 if high == low else (v - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        return log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high, count)


def ticks(low: Number, high: Number, count: int = 5) -> list[float]:
    """Round numbers from low to high, at most ``count`` + 1.

    >>> ticks(0.0, 93.0, 5)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    if high <= low:
        return [low]
    rough = (high - low) / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def log_ticks(low: Number, high: Number) -> list[float]:
    """Powers of ten; with 2 and 5 times them where there are fewer than three.

    >>> log_ticks(0.5, 2000.0), log_ticks(15.0, 120.0)
    ([1.0, 10.0, 100.0, 1000.0], [20.0, 50.0, 100.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5)):
        found = [
            step * 10.0**power
            for power in powers
            for step in steps
            if low * (1 - 1e-9) <= step * 10.0**power <= high * (1 + 1e-9)
        ]
        if len(found) > 2:
            break
    return found[:: math.ceil(len(found) / 6)] if found else [low]


def tick_text(value: Number) -> str:
    """
    >>> [tick_text(v) for v in (0.0, 0.25, 60.0, 15000.0, 2e-6, 0.30000000000000004)]
    ['0', '0.25', '60', '15,000', '2e-06', '0.3']
    """
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.6g}"


def picture(title: str, height: Number, parts: Sequence[str], width: Number = WIDTH) -> str:
    """An svg with the title that a screen reader says."""
    return (
        f'<svg viewBox="0 0 {at(width)} {at(height)}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>"
    )


def text(x: Number, y: Number, words: str, kind: str = "", anchor: str = "start") -> str:
    classes = f' class="{kind}"' if kind else ""
    ends = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{at(x)}" y="{at(y)}"{classes}{ends}>{escape(words, quote=False)}</text>'


def line(x1: Number, y1: Number, x2: Number, y2: Number, kind: str) -> str:
    return f'<path class="{kind}" d="M{at(x1)} {at(y1)}L{at(x2)} {at(y2)}"/>'


def path(points: Sequence[tuple[Number, Number]], kind: str, tip: str = "") -> str:
    way = "L".join(f"{at(x)} {at(y)}" for x, y in points)
    return f'<path class="{kind}" d="M{way}">{tooltip(tip)}</path>'


def dot(x: Number, y: Number, radius: Number, kind: str, tip: str = "") -> str:
    place = f'cx="{at(x)}" cy="{at(y)}" r="{at(radius)}"'
    return f'<circle class="{kind}" {place}>{tooltip(tip)}</circle>'


def box(x: Number, y: Number, width: Number, height: Number, kind: str, tip: str = "") -> str:
    return (
        f'<rect class="{kind}" x="{at(x)}" y="{at(y)}" width="{at(max(width, 0))}" '
        f'height="{at(height)}">{tooltip(tip)}</rect>'
    )


def tooltip(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""


def bottom_axis(scale: Scale, top: Number, bottom: Number, words: str) -> list[str]:
    """Grid lines, their numbers, and the axis' words under them."""
    parts = []
    for value in scale.ticks():
        x = scale(value)
        parts.append(line(x, top, x, bottom, "grid"))
        words_at = min(x, WIDTH - 3.1 * len(tick_text(value)) - 2)  # not over the edge
        parts.append(text(words_at, bottom + 14, tick_text(value), "tick", "middle"))
    parts.append(text((scale.start + scale.end) / 2, bottom + 30, words, "axis", "middle"))
    return parts


def left_axis(scale: Scale, left: Number, right: Number, words: str) -> list[str]:
    """The same upwards; the words stand over the axis, so that nothing is turned."""
    parts = []
    for value in scale.ticks():
        y = scale(value)
        parts.append(line(left, y, right, y, "grid"))
        parts.append(text(left - 5, y + 3.5, tick_text(value), "tick", "end"))
    parts.append(text(2, scale.end - 12, words, "axis"))
    return parts


def cut(values: Sequence[Number]) -> float:
    """Where an axis ends, so that a few enormous values do not hide the others.

    It is the largest of those up to three times the median; the largest of all where none is
    above.
    """
    positive = sorted(v for v in values if v > 0)
    if not positive:
        return max(values)
    median = positive[len(positive) // 2]
    return max(v for v in positive if v <= 3 * median)


def at(value: Number) -> str:
    """A place in a tenth of a unit, without an idle .0."""
    return f"{value:.1f}".removesuffix(".0")
