"""Each problem's table as texts, the same for Markdown, LaTeX and the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from costscape.bench.report.differences import PairedDifference
from costscape.bench.report.number_format import interval, mean_sd, seconds
from costscape.bench.report.published import caption, printed
from costscape.bench.report.read_rows import Row
from costscape.bench.report.row_facts import QUICK, counted, quick, sources, title_of
from costscape.bench.report.series import Series, series
from costscape.bench.report.summary import Cell, Stat, summarise

ROWS_AND_SEEDS, SEEDS = "rows and seeds", "seeds"


@dataclass(frozen=True)
class Line:
    """A method's texts, one a column; or, where it has no number, a ``sentence`` for all."""

    cell: Cell
    texts: tuple[str, ...]
    sentence: str | None


@dataclass(frozen=True)
class Sheet:
    """One problem: ``changed`` are the lines of settings at several numbers."""

    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    changed: tuple[Line, ...]
    captions: tuple[str, ...]
    cells: tuple[Cell, ...]
    series: tuple[Series, ...]

    @property
    def anchor(self) -> str:
        """The title without spaces, for links and labels."""
        return self.title.replace(QUICK, "-quick")


def sheets(rows: Sequence[Row]) -> list[Sheet]:
    """Each problem's table as texts, the same for every format."""
    cells = summarise(rows)
    runs = series(cells)
    found = []
    for name in dict.fromkeys(cell.title for cell in cells):
        here = tuple(cell for cell in cells if cell.title == name)
        asked = [row for row in rows if title_of(row) == name]
        found.append(_sheet(here, tuple(s for s in runs if s.title == name), asked))
    return found


def _sheet(cells: tuple[Cell, ...], runs: tuple[Series, ...], rows: list[Row]) -> Sheet:
    problem, measure = cells[0].problem, cells[0].measure
    devices = list(counted(device for cell in cells for device in cell.devices))
    letters = dict(zip(devices, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", strict=False))
    marks = letters if len(devices) > 1 else {}
    columns: dict[str, Callable[[Cell], str]] = {}
    for name in ("regret", "gap", "cost"):
        other = name == "cost" and columns
        if not other and any(getattr(cell, name) for cell in cells):
            columns[f"{name}, mean (sd)"] = partial(_stat_text, name)
    if any(cell.is_best_opponent for cell in cells):
        kinds = {interval_kind(cell.difference) for cell in cells} - {None}
        columns["difference [95 %]"] = partial(_difference, "s" if len(kinds) > 1 else "")
    columns["seeds"] = lambda cell: str(len(cell.seeds))
    columns["fit s"] = lambda cell: _timed(cell.fit_seconds, cell, marks)
    columns["decide s"] = lambda cell: _timed(cell.decide_seconds, cell, marks)
    if caption(problem):
        columns["paper's regret"] = _paper

    in_series = {point.label for run in runs for _, point in run.points}
    lines = [(cell, _line(cell, columns)) for cell in cells]
    kept = [line for cell, line in lines if cell.label not in in_series or cell.is_best_opponent]
    by_label = {cell.label: line for cell, line in lines}
    moved = {point.label: by_label[point.label] for run in runs for _, point in run.points}
    return Sheet(
        title=cells[0].title,
        header=("method", *columns),
        lines=tuple(kept),
        changed=tuple(moved.values()),
        captions=tuple(_captions(cells, measure, devices, marks, rows)),
        cells=tuple(line.cell for line in kept),
        series=runs,
    )


def _line(cell: Cell, columns: Mapping[str, Callable[[Cell], str]]) -> Line:
    if cell.score is None and not any((cell.regret, cell.gap, cell.cost)):
        why = [f"refused: {cell.refused}"] if cell.refused else []
        return Line(cell, (cell.label,), "; ".join([*why, *cell.remarks]))
    texts = [column(cell) for column in columns.values()]
    refused = (f"refused: {cell.refused}",) if cell.refused else ()
    texts[0] = " ".join([texts[0], *cell.remarks, *refused])
    return Line(cell, (cell.label, *texts), None)


def _captions(
    cells: tuple[Cell, ...],
    measure: str,
    devices: list[str],
    marks: Mapping[str, str],
    rows: list[Row],
) -> list[str]:
    best = next((cell for cell in cells if cell.is_best_opponent), None)
    found = ["Mean (standard deviation) over seeds; less is better."]
    if best:
        kinds = {interval_kind(cell.difference) for cell in cells}
        rows_too = ROWS_AND_SEEDS in kinds
        found.append(
            f"Difference: the {measure} less that of {best.label}, the best opponent (lowest mean "
            f"{measure} of the methods not named df2 or blend, on common seeds), paired by seed"
            f"{' and test row' if rows_too else ''}, with its 95 % "
            f"{'interval over blocks of test rows and seeds' if rows_too else 'Student interval'};"
            f" a tie is an interval that holds 0."
        )
        if {ROWS_AND_SEEDS, SEEDS} <= kinds:
            found.append(
                "An interval marked s is Student's over seeds alone, which leaves out the chance "
                "in the test rows: their costs were not kept for both methods."
            )
    if marks:
        named = ", ".join(f"{letter} {device}" for device, letter in marks.items())
        found.append(f"Seconds on {named}: compare them on one device only.")
    elif devices:
        found.append(f"Seconds on {devices[0]}.")
    data, warning = sources(rows), quick(rows)
    if data:
        found.append(f"Data: {'; '.join(data)}.")
    if warning:
        found.insert(0, warning)
    words = caption(cells[0].problem)
    return [*found, words] if words else found


def _stat_text(name: str, cell: Cell) -> str:
    stat: Stat | None = getattr(cell, name)
    return mean_sd(stat.mean, stat.sd) if stat else ""


def interval_kind(d: PairedDifference | None) -> str | None:
    """What the interval is over; None without one."""
    if d is None or d.low is None:
        return None
    return ROWS_AND_SEEDS if d.over_rows else SEEDS


def _difference(mark: str, cell: Cell) -> str:
    """The difference with its interval and verdict; ``mark`` follows one over seeds alone."""
    if cell.is_best_opponent:
        return "best opponent"
    d = cell.difference
    if d is None:
        return ""
    if d.mean is None:
        return d.verdict
    marked = mark if interval_kind(d) == SEEDS else ""
    return f"{interval(d.mean, d.low, d.high)}{marked} {d.verdict}"


def _timed(value: float | None, cell: Cell, marks: Mapping[str, str]) -> str:
    letters = "".join(marks[device] for device in cell.devices if device in marks)
    return f"{seconds(value)} {letters}".strip() if value is not None else ""


def _paper(cell: Cell) -> str:
    return "" if cell.changes else printed(cell.problem, cell.method)
