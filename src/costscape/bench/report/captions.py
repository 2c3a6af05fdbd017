"""The words beside a table: a legend, alike for all tables, and what is known of this one."""

from collections.abc import Sequence

from costscape.bench.report.published import caption
from costscape.bench.report.read_rows import Row
from costscape.bench.report.row_facts import quick, sources
from costscape.bench.report.summary import Cell
from costscape.bench.report.two_stage_starts import SAME, START

SOURCES = 3  # named in a caption
ONE_SPLIT = "one split"  # the column of a problem without origins, in the table of its origins


def legend(
    cells: Sequence[Cell], rows: Sequence[Row], devices: Sequence[str], marked: bool
) -> list[str]:
    """Sentences that explain columns and marks; the same words for every table that has them.

    ``marked`` is whether some interval is over seeds alone.
    """
    sentences = ["Mean (standard deviation) over seeds; less is better."]
    if any(cell.is_best_opponent for cell in cells):
        sentences.append(
            "Difference: to the best opponent, the one of the lowest mean on common seeds, in the "
            "gap where there is one, else in the regret, else in the cost; paired by seed and "
            "test row, with its 95 % interval over blocks of test rows and seeds. A tie is an "
            "interval that holds 0."
        )
    if len({cell.kind for cell in cells}) > 1:
        sentences.append(
            "Each kind of fits has its own best opponent; where it has none, the best of all "
            "takes its place."
        )
    if marked:
        sentences.append(
            "An interval marked s is Student's, paired by seed alone, which leaves out the chance "
            "in the test rows: their costs were not kept for both methods."
        )
    if rows[0].get("origin_rows"):
        sentences.append(
            "At origins with one seed, the origins take the place of seeds in the interval. "
            f"{ONE_SPLIT.capitalize()}: the mean on the test rows of the problem without origins, "
            "where the method was run there."
        )
    if any(cell.is_its_start for cell in cells):
        sentences.append(
            f'"{START}": in every run the second stage did not lower the validation cost, or the '
            f"result is within {SAME:.1%} of that of the two-stage method it starts from."
        )
    if len(devices) > 1:
        sentences.append("Compare seconds on one device only.")
    return sentences


def facts(cells: Sequence[Cell], rows: Sequence[Row], devices: Sequence[str]) -> list[str]:
    """Sentences on this table alone: quick runs, its device, its data, the paper's numbers."""
    data = list(sources(rows))
    if len(data) > SOURCES:  # the items or stores of one file differ by a number only
        data = [*data[:1], f"and {len(data) - 1} more alike"]
    sentences = (
        quick(rows),
        f"Seconds on {devices[0]}." if len(devices) == 1 else None,
        f"Data: {'; '.join(data)}." if data else None,
        caption(cells[0].problem),
    )
    return [words for words in sentences if words]
