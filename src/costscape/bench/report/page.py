"""A store as one HTML page: everything inline, nothing loaded, no script.

Numbers come from ``problem_tables``, pictures from ``figures``, words and looks from ``page.html``
beside this file.
"""

import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from costscape.bench.report import figures
from costscape.bench.report.number_format import interval, mean_sd
from costscape.bench.report.problem_tables import ProblemTable, problem_tables, shared_legend
from costscape.bench.report.read_rows import Row
from costscape.bench.report.row_facts import counted, quick, sources, title_of, troubles
from costscape.bench.report.summary import MAIN, Cell, grouped

Landscapes = Sequence[Mapping[str, Any]]


def write_page(
    rows: Sequence[Row],
    landscapes: Landscapes,
    path: Path | str,
    ours: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> Path:
    """Write the page of a store; its folder is made.

    - ``rows``, ``landscapes``: as ``read_rows`` and ``read_landscapes`` return them.
    - ``ours``: the methods whose opponents are wanted, as for ``summarise``.
    - ``commands``: printed before those that made the rows.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(rows, landscapes, ours, commands), encoding="utf-8")
    return path


def render(
    rows: Sequence[Row],
    landscapes: Landscapes,
    ours: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> str:
    """The page's text."""
    from jinja2 import Environment, StrictUndefined

    if not rows:
        raise ValueError("A page needs at least one run, but got none. Read a store with runs.")
    source = files("costscape.bench.report").joinpath("page.html").read_text(encoding="utf-8")
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(source)
    tables, groups = problem_tables(rows, ours), grouped(rows)
    lines = [line for table in tables for line in (*table.lines, *table.changed)]
    cells = {(line.cell.title, line.cell.label): line.cell for line in lines}
    return page.render(
        cards=[card for table in tables if (card := _card(table)) is not None],
        legend=shared_legend(tables),
        tables=[(table, _figures(table, landscapes)) for table in tables],
        together=_together,
        runs=len(rows),
        methods=len({label for _, label in cells}),
        sources=sources(rows),
        warning=quick(rows),
        newest=max((row["made"] for row in rows if row.get("made")), default="")[:10],
        troubles=troubles(rows),
        commands=[*commands, *(command(cell, groups[key]) for key, cell in cells.items())],
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
    words += ["--quick"] * cell.quick
    if seeds == list(range(len(seeds))):
        words += ["--seeds", str(len(seeds))]
    else:
        words += [word for seed in seeds for word in ("--seed", str(seed))]
    return shlex.join(words)


def _card(table: ProblemTable) -> dict[str, str] | None:
    """The main method, or the best of ours, against the best opponent; None without ours."""
    ours = [cell for cell in table.cells if cell.is_ours and cell.score]
    if not ours:
        return None
    cell = next((cell for cell in ours if cell.role == MAIN), ours[0])
    d = cell.difference
    best = next((other for other in table.cells if d and other.label == d.opponent), None)
    return dict(
        title=table.title,
        anchor=table.anchor,
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


def _figures(table: ProblemTable, landscapes: Landscapes) -> list[figures.Figure]:
    cells, title = table.cells, table.title
    best = {cell.kind: cell for cell in cells if cell.is_best_opponent}
    pictures = [figures.bars(cells, title), figures.scatter(cells, title)]
    for name in dict.fromkeys(one.setting for one in table.series):
        series = [one for one in table.series if one.setting == name]
        kind = series[0].points[0][1].kind
        pictures.append(figures.settings(series, best.get(kind), title))
    pictures += [figures.landscape(one) for one in landscapes if title_of(one) == title]
    return [figure for figure in pictures if figure is not None]
