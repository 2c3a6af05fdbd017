"""Each problem's table as texts, the same for Markdown, LaTeX and the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from costscape.bench.report.captions import ONE_SPLIT, facts, legend
from costscape.bench.report.differences import PairedDifference
from costscape.bench.report.number_format import interval, mean_sd, number, seconds
from costscape.bench.report.pooled_origins import whole_of
from costscape.bench.report.published import caption, printed
from costscape.bench.report.read_rows import Row, label
from costscape.bench.report.row_facts import QUICK, counted, title_of
from costscape.bench.report.summary import Cell, Stat, summarise
from costscape.bench.report.two_stage_starts import START

ROWS_AND_SEEDS, SEEDS = "rows and seeds", "seeds"
MARK = "s"  # after an interval over seeds alone


@dataclass(frozen=True)
class Line:
    """A method's texts, one a column; or, where it has no number, a ``sentence`` for all."""

    cell: Cell
    texts: tuple[str, ...]
    sentence: str | None = None


@dataclass(frozen=True)
class Series:
    """A method with one setting at several numbers, all else alike."""

    setting: str
    label: str
    points: tuple[tuple[float, Cell], ...]


@dataclass(frozen=True)
class ProblemTable:
    """One problem.

    ``changed`` are the lines of settings at several numbers. ``legend`` has the sentences that
    tables share, ``captions`` those on this one.
    """

    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    changed: tuple[Line, ...]
    legend: tuple[str, ...]
    captions: tuple[str, ...]
    series: tuple[Series, ...]

    @property
    def cells(self) -> list[Cell]:
        return [line.cell for line in self.lines]

    @property
    def anchor(self) -> str:
        """The title without spaces, for links and labels."""
        return self.title.replace(QUICK, "-quick")


def problem_tables(rows: Sequence[Row], ours: Sequence[str] = ()) -> list[ProblemTable]:
    """The table of each problem; ``rows`` and ``ours`` as for ``summarise``."""
    titles: dict[str, list[Cell]] = {}
    for cell in summarise(rows, ours):
        titles.setdefault(cell.title, []).append(cell)
    return [
        _table(
            cells,
            [row for row in rows if title_of(row) == title],
            {cell.label: cell for cell in titles.get(whole_of(title) or "", [])},
        )
        for title, cells in titles.items()
    ]


def shared_legend(tables: Sequence[ProblemTable]) -> str:
    """The sentences of the legends of several tables, each once."""
    return " ".join(dict.fromkeys(words for table in tables for words in table.legend))


def series_of(cells: Sequence[Cell]) -> list[Series]:
    """The settings that some method of a problem has at two numbers or more, with results."""
    groups: dict[tuple[str, str], list[tuple[float, Cell]]] = {}
    for cell in cells:
        for key, value in cell.changes.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and cell.score:
                rest = {name: other for name, other in cell.changes.items() if name != key}
                groups.setdefault((key, label(cell.method, rest)), []).append((float(value), cell))
    return [
        Series(setting, name, tuple(sorted(points, key=lambda point: point[0])))
        for (setting, name), points in groups.items()
        if len(points) > 1
    ]


def interval_kind(d: PairedDifference | None) -> str | None:
    """What the interval is over; None without one."""
    if d is None or d.low is None:
        return None
    return ROWS_AND_SEEDS if d.over_rows else SEEDS


def _table(cells: list[Cell], rows: list[Row], whole: Mapping[str, Cell]) -> ProblemTable:
    """The table of ``cells``; ``whole`` has the cells of the same problem without origins."""
    devices = list(counted(device for cell in cells for device in cell.devices))
    marked = any(interval_kind(cell.difference) == SEEDS for cell in cells)
    columns = _columns(cells, devices, whole)
    series = series_of(cells)
    lines = {cell.label: _line(cell, columns) for cell in cells}
    changed = {point.label: lines[point.label] for one in series for _, point in one.points}
    return ProblemTable(
        title=cells[0].title,
        header=("method", *columns),
        lines=tuple(
            line
            for name, line in lines.items()
            if name not in changed or line.cell.is_best_opponent
        ),
        changed=tuple(changed.values()),
        legend=tuple(legend(cells, rows, devices, marked)),
        captions=tuple(facts(cells, rows, devices)),
        series=tuple(series),
    )


def _columns(
    cells: list[Cell], devices: list[str], whole: Mapping[str, Cell]
) -> dict[str, Callable[[Cell], str]]:
    """The text of each column."""

    def stat(name: str) -> Callable[[Cell], str]:
        def text(cell: Cell) -> str:
            value: Stat | None = getattr(cell, name)
            if cell.is_its_start:
                return START if value and name == known[0] else ""
            return mean_sd(value.mean, value.sd) if value else ""

        return text

    def difference(cell: Cell) -> str:
        d = cell.difference
        if cell.is_best_opponent or d is None or d.mean is None:
            return "best opponent" if cell.is_best_opponent else d.verdict if d else ""
        marked = MARK if interval_kind(d) == SEEDS else ""
        return f"{interval(d.mean, d.low, d.high)}{marked} {d.verdict}"

    known = [name for name in ("regret", "gap") if any(getattr(c, name) for c in cells)]
    if not known and any(cell.cost for cell in cells):
        known = ["cost"]
    columns = {f"{name}, mean (sd)": stat(name) for name in known}
    if any(cell.is_best_opponent for cell in cells):
        columns["difference [95 %]"] = difference
    for i in range(max(len(cell.by_origin) for cell in cells)):
        columns[f"origin {i + 1}"] = partial(_at_origin, i)
    if any(cell.by_origin and cell.label in whole for cell in cells):
        columns[ONE_SPLIT] = lambda cell: _at_one_split(whole.get(cell.label), cell.measure)
    if len({cell.kind for cell in cells}) > 1:
        columns["kind"] = lambda cell: cell.kind
    columns["seeds"] = lambda cell: str(len(cell.seeds))
    columns["fit s"] = lambda cell: seconds(cell.fit_seconds)
    columns["decide s"] = lambda cell: seconds(cell.decide_seconds)
    if len(devices) > 1:
        columns["device"] = lambda cell: "; ".join(cell.devices)
    if caption(cells[0].problem):
        columns["paper's regret"] = lambda cell: (
            "" if cell.changes else printed(cell.problem, cell.method)
        )
    return columns


def _at_origin(index: int, cell: Cell) -> str:
    known = index < len(cell.by_origin) and not cell.is_its_start
    return number(cell.by_origin[index]) if known else ""


def _at_one_split(cell: Cell | None, measure: str) -> str:
    if cell is None or cell.is_its_start:
        return START if cell else ""
    stat: Stat | None = getattr(cell, measure)
    return number(stat.mean) if stat else ""


def _line(cell: Cell, columns: Mapping[str, Callable[[Cell], str]]) -> Line:
    remarks = [f"refused: {cell.refused}"] if cell.refused else []
    if cell.score is None and not any((cell.regret, cell.gap, cell.cost)):
        return Line(cell, (cell.label,), "; ".join([*remarks, *cell.remarks]))
    first, *rest = (text(cell) for text in columns.values())
    return Line(cell, (cell.label, " ".join([first, *cell.remarks, *remarks]), *rest))
