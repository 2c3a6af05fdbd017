"""A small CSV file that comes with the package."""

from pathlib import Path

EMBEDDED = Path(__file__).parents[1] / "embedded"


def sample_csv() -> Path:
    """Return the path of daily sales of five items, 2016 and 2017: date, item, sold.

    The items are 1 to 5 of store 1 of the store item demand set, without a gap, 3,655 rows. The
    licence is in ``NOTICE.md`` beside the file.

    >>> import costscape as cs
    >>> cs.sample_csv().read_text().splitlines()[:2]
    ['date,item,sold', '2016-01-01,1,21']
    """
    return EMBEDDED / "sales.csv"
