"""From a CSV file, a frame or a query to X, Y, and to the features of tomorrow.

Data flow: source -> records (``sources``, ``csv_format``, ``dates``) -> panel, one series without
gaps for each group (``panel``, ``missing``) -> features (``features``, ``calendar``) -> X
(``encoding``). ``table`` joins these parts, ``memory`` keeps what they learned in a file.
"""

try:
    import pandas as _pandas  # noqa: F401
except ImportError as error:
    raise ImportError(
        "cs.Table needs pandas, which is not installed. Run pip install 'costscape[table]'."
    ) from error

from costscape.table.calendar import Calendar
from costscape.table.csv_format import CsvFormat
from costscape.table.dates import DateFormat
from costscape.table.missing import FillForward, FillValue, InsertDates
from costscape.table.settings import OneHot
from costscape.table.sources import Query
from costscape.table.table import Table

__all__ = [
    "Calendar",
    "CsvFormat",
    "DateFormat",
    "FillForward",
    "FillValue",
    "InsertDates",
    "OneHot",
    "Query",
    "Table",
]
