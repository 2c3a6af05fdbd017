"""From a CSV file, a frame or a query to X, Y, and to the features of tomorrow.

Data flow: source -> records (``sources``, ``csv_format``, ``dates``) -> panel, one series without
gaps for each group (``panel``, ``missing``) -> features (``features``, ``calendar``) -> X
(``encoding``). ``reading`` joins these parts, ``memory`` keeps what they learned in a file. The
files of public classes import pandas only inside functions, since it is in an extra.
"""

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
