"""A store as one HTML page: everything inline, nothing loaded, no script.

Numbers come from ``summary``, pictures from ``charts`` and ``heatmap``, words and looks from
``page.html`` beside this file.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from costscape.bench.report.charts import bars, curves_of, kind, scatter, settings, tones, training
from costscape.bench.report.heatmap import heatmaps, minimum
from costscape.bench.report.number_format import interval, mean_sd, number
from costscape.bench.report.problem_tables import Sheet, sheets
from costscape.bench.report.read_rows import Row
from costscape.bench.report.row_facts import counted, quick, sources, title_of, troubles
from costscape.bench.report.summary import Cell, grouped, summarise


@dataclass(frozen=True)
class Figure:
    """An inline picture, what one sees in it, and the names of its colours."""

    svg: str
    caption: str
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Card:
    """A problem at a glance."""

    title: str
    anchor: str
    measure: str
    ours: str
    score: str
    opponent: str
    against: str
    verdict: str
    difference: str


def write_page(
    rows: Sequence[Row],
    landscapes: Sequence[Mapping[str, Any]],
    path: Path | str,
    commands: Sequence[str] = (),
) -> Path:
    """The page of a store's rows, as ``read_rows`` gives them; its folder is made.

    ``commands`` are printed before those that made the rows.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(rows, landscapes, commands), encoding="utf-8")
    return path


def render(
    rows: Sequence[Row], landscapes: Sequence[Mapping[str, Any]], commands: Sequence[str] = ()
) -> str:
    """The page's text."""
    from jinja2 import Environment, StrictUndefined

    if not rows:
        raise ValueError("A page needs at least one run, but got none. Read a store with runs.")
    source = files("costscape.bench.report").joinpath("page.html").read_text(encoding="utf-8")
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(source)
    cells = summarise(rows)
    found, groups = sheets(rows), grouped(rows)
    return page.render(
        cards=[card for sheet in found if (card := _card(sheet)) is not None],
        sheets=[(sheet, _figures(sheet, rows, landscapes)) for sheet in found],
        kind=kind,
        together=_together,
        runs=len(rows),
        methods=len({cell.label for cell in cells}),
        sources=sources(rows),
        warning=quick(rows),
        newest=max((row["made"] for row in rows if row.get("made")), default="")[:10],
        troubles=troubles(rows),
        commands=[*commands, *(command(cell, groups[cell.title, cell.label]) for cell in cells)],
        devices=counted(row["device"] for row in rows),
        versions=counted(
            f"{name} {version}"
            for row in rows
            for name, version in row.get("versions", {}).items()
        ),
        commits=counted(row.get("commit") for row in rows),
    )


def command(cell: Cell, runs: Sequence[Row]) -> str:
    """The line that makes a cell's rows again."""
    seeds = [row["seed"] for row in runs]
    words = ["costscape", "run", cell.problem, "--method", cell.method]
    for key, value in sorted(cell.changes.items()):
        words += ["--set", f"{key}={value}"]
    if all(row.get("quick") for row in runs):
        words.append("--quick")
    if seeds == list(range(len(seeds))):
        words += ["--seeds", str(len(seeds))]
    else:
        words += [word for seed in seeds for word in ("--seed", str(seed))]
    return shlex.join(words)


def _card(sheet: Sheet) -> Card | None:
    """Our method as it is named, or the best of its kin, against the best opponent."""
    ours = [cell for cell in sheet.cells if cell.is_ours and cell.score]
    if not ours:
        return None
    cell = next((cell for cell in ours if cell.label == "df2"), ours[0])
    best = next((cell for cell in sheet.cells if cell.is_best_opponent), None)
    d = cell.difference
    return Card(
        title=sheet.title,
        anchor=sheet.anchor,
        measure=cell.measure,
        ours=cell.label,
        score=_score(cell),
        opponent=best.label if best else "",
        against=_score(best) if best else "",
        verdict=d.verdict if d else "no opponent yet",
        difference=interval(d.mean, d.low, d.high) if d and d.mean is not None else "",
    )


def _together(words: str) -> str:
    """Lines break between a number and its remarks, not inside them.

    >>> _together("71.6 (1.2) (8 seeds)").replace(chr(160), "_")
    '71.6_(1.2) (8_seeds)'
    """
    for part in (" (", " seed", " of ", " ["):
        words = words.replace(part, part.replace(" ", "\u00a0"))
    return words.replace(")\u00a0(", ") (")


def _score(cell: Cell) -> str:
    stat = cell.score
    return " ".join([mean_sd(stat.mean, stat.sd), *cell.remarks]) if stat else ""


def _figures(
    sheet: Sheet, rows: Sequence[Row], landscapes: Sequence[Mapping[str, Any]]
) -> list[Figure]:
    best = next((cell for cell in sheet.cells if cell.is_best_opponent), None)
    measure = sheet.cells[0].measure if sheet.cells else "regret"
    colours = _colours(sheet.cells)
    found: list[Figure] = []
    svg = bars(sheet.cells, sheet.title)
    if svg:
        torn = " A torn bar goes on beyond the picture; its number stands beside it."
        words = (
            f"Mean {measure} over seeds, whiskers of one standard deviation. Shorter is better."
        )
        found.append(Figure(svg, words + torn * ('class="torn"' in svg), colours))
    svg = scatter(sheet.cells, sheet.title)
    if svg:
        edge = " A triangle at the upper edge stands for a larger value."
        words = (
            f"Time to fit against mean {measure}: down and to the left is better. Points without "
            f"room for a name show it on hovering; the table has them all."
        )
        several = len({device for cell in sheet.cells for device in cell.devices}) > 1
        mixed = " Times are of several devices; the table says which." * several
        found.append(Figure(svg, words + edge * ('<path class="dot' in svg) + mixed, colours))
    curves = curves_of(sheet.cells, rows)
    svg = training(curves, sheet.title)
    if svg:
        words = (
            "Training of each method, the run with the lowest seed: its validation score by "
            "epoch, or its loss where it has none. Units differ, so each line has its own range: "
            "0 is its least value, 1 what nine tenths of its epochs stay under. Compare shapes, "
            "not heights. A dot is the epoch that was kept."
        )
        found.append(Figure(svg, words, _colours([curve.cell for curve in curves])))
    for name in dict.fromkeys(run.setting for run in sheet.series):
        runs = sorted(
            (run for run in sheet.series if run.setting == name),
            key=lambda run: (not run.label.startswith("df2"), run.label),
        )
        svg = settings(runs, best)
        if svg:
            words = f"The setting {name}: mean {measure} with a band of one standard deviation"
            below = ", and below it the mean seconds to fit" * ("seconds to fit" in svg)
            dashed = f" Dashed: {best.label}, the best opponent." if best else ""
            keys = tuple(zip(tones(runs), (run.label for run in runs), strict=True))
            found.append(Figure(svg, f"{words}{below}.{dashed}", keys))
    for one in landscapes:
        if title_of(one) == sheet.title:
            found.append(Figure(heatmaps(one), _landscape(one)))
    return found


def _landscape(one: Mapping[str, Any]) -> str:
    x = ", ".join(f"{value:.3g}" for value in one["x"])
    learned, true = minimum(one, "learned"), minimum(one, "true")
    return (
        f"Expected cost of two actions at x = ({x}): before training, as {one['method']} learned "
        f"it (seed {one['seed']}), and true. A ring marks the least: learned at "
        f"({learned[0]:.3g}, {learned[1]:.3g}) with {number(learned[2])}, true at "
        f"({true[0]:.3g}, {true[1]:.3g}) with {number(true[2])}. One scale of colours for "
        f"all, finer near the least."
    )


def _colours(cells: Sequence[Cell]) -> tuple[tuple[str, str], ...]:
    names = {
        "ours": "DF2",
        "kin": "DF2, other settings",
        "best": "best opponent",
        "other": "other methods",
    }
    kinds = {kind(cell) for cell in cells if cell.score}
    return tuple((key, name) for key, name in names.items() if key in kinds)
