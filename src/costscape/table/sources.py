"""Files, frames and queries as one kind of thing: records whose places errors can name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costscape.table.csv_format import CsvFormat

MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "#NV"]


@dataclass(frozen=True)
class Query:
    """A SQL query whose rows a ``Table`` reads.

    Args:
        sql: the query. It may sort and join, but need not.
        connection: default None. A DB-API connection (sqlite3, psycopg, ...) or an engine or
            connection of SQLAlchemy. None asks DuckDB, which reads files named in the query:
            ``select * from 'sales.parquet'``.
        params: sequence, default (). Values for the placeholders of the query.

    >>> import sqlite3
    >>> base = sqlite3.connect(":memory:")
    >>> Query("select 1 as sold", base).rows()["sold"].tolist()
    [1]
    """

    sql: str
    connection: Any = None
    params: Sequence[Any] = ()

    def rows(self) -> Any:
        """The result of the query, a frame."""
        import pandas as pd

        connection = self.connection
        if connection is None:
            connection = _module("duckdb", "A Query without a connection").connect()
        if not callable(getattr(connection, "cursor", None)):
            _module("sqlalchemy", "A Query with an engine")
            return pd.read_sql_query(self.sql, connection, params=tuple(self.params) or None)
        cursor = connection.cursor()
        cursor.execute(self.sql, tuple(self.params))
        names = [column[0] for column in cursor.description]
        return pd.DataFrame.from_records(list(cursor.fetchall()), columns=names)


@dataclass(frozen=True, eq=False)
class Records:
    """Rows as they came: only the columns asked for; the index is what ``place`` takes.

    ``place(i)`` is "line 7" in a file and "row 6" elsewhere; ``csv`` is the resolved format of a
    CSV file.
    """

    frame: Any
    name: str
    place: Callable[[Any], str]
    csv: CsvFormat | None = None


def read_records(
    source: Any,
    keys: Sequence[str],
    values: Sequence[str],
    categories: Sequence[str],
    csv: CsvFormat,
) -> Records:
    """The columns of a CSV or Parquet file, a frame or a Query.

    Args:
        source: a path, a DataFrame (or what has ``to_pandas``), or a Query.
        keys: dates and groups; they are read as text.
        values: all other columns.
        categories: those of them that are read as text, so that 007 is not 7.
        csv: how a CSV file is written.
    """
    import pandas as pd

    columns = [*keys, *values]
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(
                f"Table needs a file, but there is none at {path}. Pass the path of a CSV or "
                f"Parquet file, a frame or a Query."
            )
        if path.suffix in (".xlsx", ".xls", ".ods"):
            raise ValueError(
                f"Table needs a CSV or Parquet file, but {path} is a spreadsheet. Save it as CSV, "
                f"or pass the frame pandas.read_excel({path.name!r})."
            )
        if path.suffix in (".parquet", ".pq"):
            _module("pyarrow", f"Reading {path}")
            frame = _selected(pd.read_parquet(path), columns, str(path))
            return Records(frame, str(path), lambda i: f"row {i}")
        return _read_csv(path, keys, values, [*keys, *categories], csv)
    if isinstance(source, Query):
        frame = _selected(source.rows(), columns, "the query")
        return Records(frame, "the query", lambda i: f"row {i}")
    if hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if not isinstance(source, pd.DataFrame):
        raise TypeError(
            f"Table needs a path, a frame or a Query, but got {type(source).__name__}. Put arrays "
            f"into a pandas DataFrame first."
        )
    if missing := [c for c in columns if c not in source.columns]:
        source = source.reset_index() if missing[0] in source.index.names else source
    return Records(_selected(source, columns, "the frame"), "the frame", lambda i: f"row {i}")


def _read_csv(
    path: Path, keys: Sequence[str], values: Sequence[str], text: Sequence[str], csv: CsvFormat
) -> Records:
    import pandas as pd

    columns = [*keys, *values]
    file = csv.detect(path, columns, [c for c in values if c not in text])
    format = file.format
    frame = pd.read_csv(
        path,
        sep=format.separator,
        decimal=format.decimal or ".",
        thousands=format.thousands,
        encoding=format.encoding,
        skiprows=file.skip,
        header=0,
        names=list(file.header),
        usecols=columns,
        dtype=dict.fromkeys(text, "str"),
        na_values={c: [""] if c in keys else MISSING for c in columns},
        keep_default_na=False,
        skip_blank_lines=False,  # so that records and lines can be counted
        index_col=False,
        skipinitialspace=True,
        low_memory=False,
    )
    frame = frame[columns].dropna(how="all")  # blank lines
    return Records(frame, str(path), lambda i: f"line {file.line(int(i))}", format)


def _selected(frame: Any, columns: Sequence[str], name: str) -> Any:
    if missing := [c for c in columns if c not in frame.columns]:
        raise ValueError(
            f"{name} needs the column {missing[0]!r}, but has "
            f"{', '.join(map(repr, list(frame.columns)[:20]))}. Correct the name."
        )
    if not frame.columns.is_unique:
        frame = frame.loc[:, ~frame.columns.duplicated()]
    return frame[list(columns)].reset_index(drop=True)


def _module(name: str, what: str) -> Any:
    """An optional library, or one sentence on how to install it."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{what} needs {name}, which is not installed. Run pip install 'costscape[table]'."
        ) from error
