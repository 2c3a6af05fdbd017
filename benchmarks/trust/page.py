"""Tables of docs/reliability.md, between marks, written row by row."""

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def with_rows(text, mark, head, rows, order):
    """The text with new rows in the table ``mark``, in place of those with the same first cell.

    Args:
        text: str. The page.
        mark: str. The table is between ``<!-- mark: begin -->`` and ``<!-- mark: end -->``.
        head: str. The two lines above the rows.
        rows: dict of str. First cell to whole row.
        order: iterable of str. All first cells; rows with another one are dropped.
    """
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->\n"
    before, rest = text.split(begin)
    table, after = rest.split(end)
    known = {row.split(" | ")[0].strip("| "): row for row in table.splitlines()[3:] if row}
    known |= rows
    body = "\n".join(known[name] for name in order if name in known)
    return f"{before}{begin}\n{head}{body}\n\n{end}{after}"


def write_rows(mark, head, rows, order):
    PAGE.write_text(with_rows(PAGE.read_text(), mark, head, rows, order))
