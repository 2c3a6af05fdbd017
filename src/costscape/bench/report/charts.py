"""Cells -> inline SVG: bars, time against result, training curves, settings.

Every picture shows DF2 in one colour, the best opponent in another and all others muted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from costscape.bench.report.number_format import mean_sd, seconds
from costscape.bench.report.read_rows import Row
from costscape.bench.report.series import Series
from costscape.bench.report.summary import OURS, Cell, grouped
from costscape.bench.report.svg import (
    WIDTH,
    Number,
    Scale,
    bottom_axis,
    box,
    cut,
    dot,
    left_axis,
    line,
    path,
    picture,
    text,
    tick_text,
)

LETTER = 6.3  # width of one in the scatter's text, in a wide font
LEFT, RIGHT = 46.0, WIDTH - 10.0


def kind(cell: Cell) -> str:
    """The class of a cell's colour."""
    if cell.is_ours:
        return "ours" if cell.method == "df2" and not cell.changes else "kin"
    return "best" if cell.is_best_opponent else "other"


def bars(cells: Sequence[Cell], problem: str) -> str | None:
    """The measure of each cell from 0, whiskers of one sd; None where no cell has it."""
    shown = [(cell, cell.score) for cell in cells if cell.score]
    if not shown:
        return None
    measure = shown[0][0].measure
    ends = [stat.mean + (stat.sd or 0) for _, stat in shown]
    limit = max(cut([stat.mean for _, stat in shown]), 0.0)
    high = max((end for end in ends if end <= 1.2 * limit), default=limit)
    scale = Scale(min(0.0, *ends, 0.0), max(high, limit) or 1.0, 4, WIDTH - 12)
    row, top = 29, 4
    bottom = top + row * len(shown)
    parts = bottom_axis(scale, top, bottom, measure)
    for i, (cell, stat) in enumerate(shown):
        y = top + row * i
        parts.append(text(4, y + 12, cell.label, "name " + kind(cell)))
        parts.append(text(WIDTH - 8, y + 12, mean_sd(stat.mean, stat.sd), "value", "end"))
        left, right = sorted((scale(0), min(scale(stat.mean), scale.end)))
        parts.append(box(left, y + 16, right - left, 7, "bar " + kind(cell)))
        if stat.mean > scale.high:  # torn: the bar goes on beyond the picture
            for x in (scale.end - 26, scale.end - 20):
                parts.append(line(x + 4, y + 13, x - 2, y + 26, "torn"))
        elif stat.sd:
            low, end = scale(stat.mean - stat.sd), min(scale(stat.mean + stat.sd), scale.end)
            parts.append(line(max(low, scale.start), y + 19.5, end, y + 19.5, "whisker"))
            parts += [line(x, y + 16.5, x, y + 22.5, "whisker") for x in (low, end)]
    return picture(f"{problem}: {measure} of each method", bottom + 38, parts)


def scatter(cells: Sequence[Cell], problem: str) -> str | None:
    """Mean seconds to fit, on a log axis, against the measure; None with fewer than two."""
    shown = [
        (cell, max(cell.fit_seconds, 1e-3), cell.score)
        for cell in cells
        if cell.score and cell.fit_seconds is not None
    ]
    if len(shown) < 2:
        return None
    measure = shown[0][0].measure
    means = [stat.mean for _, _, stat in shown]
    limit, least = cut(means), min(means)
    room = 0.08 * (limit - least) or abs(limit) * 0.1 or 1.0
    times = [time for _, time, _ in shown]
    x_scale = Scale(min(times) / 1.6, max(times) * 1.6, LEFT, RIGHT, log=True)
    y_scale = Scale(least - room, limit + room, 270, 30)
    parts = bottom_axis(x_scale, 30, 270, "seconds to fit, log scale")
    parts += left_axis(y_scale, LEFT, RIGHT, f"{measure}, mean over seeds")
    spots, names = [], []
    for cell, time, stat in shown:
        x, y = x_scale(time), max(y_scale(stat.mean), y_scale.end)
        tip = f"{cell.label}: {mean_sd(stat.mean, stat.sd)}, {seconds(cell.fit_seconds)} s"
        spots.append((x - 4, y - 4, x + 4, y + 4))
        names.append((cell, x, y))
        if stat.mean > y_scale.high:
            parts.append(
                path(
                    [(x - 4, y + 4), (x + 4, y + 4), (x, y - 4), (x - 4, y + 4)],
                    "dot " + kind(cell),
                    tip,
                )
            )
        else:
            parts.append(dot(x, y, 5 if cell.is_ours else 4, "dot " + kind(cell), tip))
    first = sorted(names, key=lambda name: (not name[0].is_ours, not name[0].is_best_opponent))
    for cell, x, y in first:
        spot = _room(
            cell.label, kind(cell) in ("ours", "best"), x, y, spots, y_scale.end - 8, y_scale.start
        )
        if spot is not None:
            spots.append(spot)
            parts.append(text(spot[0], spot[3] - 3, cell.label, "spot " + kind(cell)))
    return picture(f"{problem}: seconds to fit against {measure}", 310, parts)


@dataclass(frozen=True)
class Curve:
    """A fit's score by epoch, or its loss where it has no score; ``chosen``: the kept epoch."""

    cell: Cell
    epochs: tuple[int, ...]
    values: tuple[Number, ...]
    chosen: int | None


def curves_of(cells: Sequence[Cell], rows: Sequence[Row]) -> list[Curve]:
    """Of each cell the run with the lowest seed among those that kept a curve."""
    found = []
    groups = grouped(rows)
    for cell in cells:
        runs = groups.get((cell.title, cell.label), [])
        row = next((row for row in runs if len(row["curve"]) > 1), None)
        if row is not None:
            at = 2 if all(point[2] is not None for point in row["curve"]) else 1
            epochs, values = zip(*((point[0], point[at]) for point in row["curve"]), strict=True)
            found.append(Curve(cell, epochs, values, row["chosen_epoch"]))
    return found


def training(found: Sequence[Curve], problem: str) -> str | None:
    """A line a fit, each scaled to its own range since their units differ; None without any.

    0 is a line's least value, 1 the one that nine tenths of its epochs stay under.
    """
    if not found:
        return None
    last = max(max(curve.epochs) for curve in found)
    x_scale, y_scale = Scale(0, last or 1, LEFT, RIGHT), Scale(0, 1, 200, 30)
    parts = bottom_axis(x_scale, 30, 200, "epoch")
    parts += left_axis(
        y_scale, LEFT, RIGHT, "validation score or loss, each line in its own range"
    )
    loudest = ("other", "best", "kin", "ours")
    for curve in sorted(found, key=lambda curve: loudest.index(kind(curve.cell))):
        low, ordered = min(curve.values), sorted(curve.values)
        high = ordered[(9 * (len(ordered) - 1)) // 10]
        span = high - low or 1.0
        points = [
            (x_scale(epoch), y_scale(min((value - low) / span, 1.0)))
            for epoch, value in zip(curve.epochs, curve.values, strict=True)
        ]
        parts.append(path(points, "curve " + kind(curve.cell), curve.cell.label))
        if curve.chosen is not None and kind(curve.cell) != "other":
            far = [abs(epoch - curve.chosen) for epoch in curve.epochs]
            parts.append(
                dot(*points[far.index(min(far))], 3.5, "dot " + kind(curve.cell), "kept epoch")
            )
    return picture(f"{problem}: training curves", 240, parts)


def tones(found: Sequence[Series]) -> list[str]:
    """A colour for each: DF2 keeps its own."""
    others = iter(range(len(found)))
    return [
        ("ours" if run.label == "df2" else "kin")
        if run.label.startswith(OURS)
        else f"s{next(others) % 4 + 1}"
        for run in found
    ]


def settings(found: Sequence[Series], best: Cell | None) -> str | None:
    """One setting of one or more methods: the measure with a band of one sd, below it seconds."""
    if not found:
        return None
    xs = [x for run in found for x, _ in run.points]
    log = min(xs) > 0 and max(xs) / min(xs) > 15
    x_scale = Scale(min(xs), max(xs), LEFT + 6, RIGHT - 6, log)
    cells = [cell for run in found for _, cell in run.points]
    stats = [cell.score for cell in cells if cell.score]
    marks = [best.score.mean] if best and best.score else []
    lows = [stat.mean - (stat.sd or 0) for stat in stats] + marks
    highs = [stat.mean + (stat.sd or 0) for stat in stats] + marks
    room = 0.05 * (max(highs) - min(lows)) or 1.0
    y_scale = Scale(min(lows) - room, max(highs) + room, 190, 30)
    name, problem, measure = found[0].setting, found[0].title, cells[0].measure
    parts = left_axis(y_scale, LEFT, RIGHT, f"{measure}, mean and sd")
    parts += bottom_axis(x_scale, 30, 190, "")
    for mark in marks:
        parts.append(line(LEFT, y_scale(mark), RIGHT, y_scale(mark), "mark"))
    for tone, run in zip(tones(found), found, strict=True):
        known = [(x, cell.score) for x, cell in run.points if cell.score]
        upper = [(x_scale(x), y_scale(stat.mean + (stat.sd or 0))) for x, stat in known]
        lower = [(x_scale(x), y_scale(stat.mean - (stat.sd or 0))) for x, stat in known]
        parts.append(path([*upper, *reversed(lower)], f"band {tone}"))
        parts.append(path([(x_scale(x), y_scale(s.mean)) for x, s in known], f"curve {tone}"))
        parts += [
            dot(
                x_scale(x),
                y_scale(s.mean),
                3.5,
                f"dot {tone}",
                f"{run.label} {name}={tick_text(x)}: {mean_sd(s.mean, s.sd)}",
            )
            for x, s in known
        ]
    height = 235.0
    times = [cell.fit_seconds for cell in cells if cell.fit_seconds]
    if len(times) > 1:
        slow = max(times) / min(times) > 15
        top = max(times) * (1.3 if slow else 1.05)
        t_scale = Scale(min(times) / 1.3 if slow else 0.0, top, 320, 250, slow)
        parts += left_axis(t_scale, LEFT, RIGHT, "seconds to fit")
        parts += bottom_axis(x_scale, 250, 320, "")
        for tone, run in zip(tones(found), found, strict=True):
            timed = [(x, c.fit_seconds) for x, c in run.points if c.fit_seconds]
            points = [(x_scale(x), t_scale(t)) for x, t in timed]
            parts.append(path(points, f"curve {tone}"))
            parts += [
                dot(
                    *point,
                    3,
                    f"dot {tone}",
                    f"{run.label} {name}={tick_text(x)}: {seconds(t)} s",
                )
                for point, (x, t) in zip(points, timed, strict=True)
            ]
        height = 362.0
    parts.append(text((LEFT + RIGHT) / 2, height - 8, name, "axis", "middle"))
    return picture(f"{problem}: {measure} and seconds by {name}", height, parts)


Spot = tuple[Number, Number, Number, Number]


def _room(
    words: str,
    loud: bool,
    x: Number,
    y: Number,
    taken: Sequence[Spot],
    top: Number,
    bottom: Number,
) -> Spot | None:
    """A place for a point's name beside, over or under it that meets nothing; None if none is."""
    wide, high = LETTER * len(words) * (1.1 if loud else 1.0) + 2, 12
    places = (
        (x + 7, y - 6),
        (x - 7 - wide, y - 6),
        (x - wide / 2, y - 18),
        (x - wide / 2, y + 6),
        (x + 5, y - 15),
        (x + 5, y + 3),
        (x - 5 - wide, y - 15),
        (x - 5 - wide, y + 3),
    )
    for left, over in places:
        spot = (left, over, left + wide, over + high)
        inside = left >= LEFT and spot[2] <= RIGHT + 8 and over >= top and spot[3] <= bottom
        if inside and not any(_meet(spot, other) for other in taken):
            return spot
    return None


def _meet(a: Spot, b: Spot) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
