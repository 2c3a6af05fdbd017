"""All problems in one table: a line for each method, a column for each problem."""

from collections.abc import Mapping, Sequence

from costscape.bench.report.fit_kinds import KINDS
from costscape.bench.report.number_format import number
from costscape.bench.report.read_rows import Row
from costscape.bench.report.result_tables import text_table
from costscape.bench.report.row_facts import by_number
from costscape.bench.report.summary import Cell, is_named, summarise
from costscape.bench.report.two_stage_starts import START

NOT_RUN = "-"


def overview(rows: Sequence[Row], ours: Sequence[str] = ()) -> str:
    """Means of each problem's measure, three digits, with the seeds where others have more.

    A * marks the best opponent of a kind of fits (``fit_kinds``), a + what is better than it by
    the paired 95 % interval and has a lower mean than every opponent of its kind, those of few
    seeds among them.
    """
    cells = {(cell.label, cell.title): cell for cell in summarise(rows, ours)}
    problems = list(dict.fromkeys(problem for _, problem in cells))
    least = {
        (p, kind): _least([c for c in cells.values() if c.title == p], kind)
        for p in problems
        for kind in KINDS
    }
    measures = {cell.title: cell.measure for cell in cells.values()}
    methods = {cell.label: cell.method for cell in cells.values()}
    names = sorted(methods, key=lambda name: (not is_named(methods[name], ours), *by_number(name)))
    lines = [{"method": "", **{p: measures[p] for p in problems}}]
    for name in names:
        texts = {p: _cell(cells.get((name, p)), least) for p in problems}
        lines.append({"method": name, **texts})
    return text_table(lines)


def _least(cells: list[Cell], kind: str) -> float:
    """The lowest mean of an opponent of the kind, or of any where it has none."""
    scores = [(cell.kind, cell.score.mean) for cell in cells if cell.score and not cell.is_ours]
    alike = [mean for own, mean in scores if own == kind]
    return min(alike or [mean for _, mean in scores], default=float("inf"))


def _cell(cell: Cell | None, least: Mapping[tuple[str, str], float]) -> str:
    if cell is None:
        return NOT_RUN
    if cell.score is None:
        return "refused" if cell.refused else "failed"
    if cell.is_its_start:
        return START
    fewer = f" n={cell.score.n}" if cell.score.n < cell.most else ""
    clear = cell.difference is not None and cell.difference.verdict == "better"
    better = clear and cell.score.mean < least[cell.title, cell.kind]
    mark = "*" * cell.is_best_opponent + "+" * better
    return f"{number(cell.score.mean, 3)}{mark}{fewer}"
