import sqlite3
import sys

import numpy as np
import pandas as pd
import pytest

import costscape as cs
from costscape.problems.stock_orders.sales import SID_STORE1

TOLD = {"date": "date", "group": "item", "outcome": "sold", "lags": [1, 7]}


@pytest.fixture(scope="module")
def rows():
    return pd.read_csv(cs.sample_csv()).head(200)


@pytest.fixture(scope="module")
def table(rows):
    return cs.Table(rows, **TOLD)


def check_same(one, other):
    pd.testing.assert_frame_equal(one.X, other.X)
    pd.testing.assert_frame_equal(one.Y, other.Y)


def test_a_database_is_asked_through_any_db_api_connection(rows, table):
    base = sqlite3.connect(":memory:")
    rows.to_sql("sales", base, index=False)
    check_same(cs.Table(cs.Query("select * from sales", base), **TOLD), table)
    some = cs.Table(cs.Query("select * from sales where item <= ?", base, [2]), **TOLD)
    assert some.X.index.get_level_values("item").unique().tolist() == ["1", "2"]
    with pytest.raises(
        ValueError, match="the query needs the column 'sold', but has 'date', 'item'"
    ):
        cs.Table(cs.Query("select date, item from sales", base), **TOLD)
    base.close()


def test_a_database_is_asked_through_sqlalchemy(rows, table):
    engine = pytest.importorskip("sqlalchemy").create_engine("sqlite://")
    rows.to_sql("sales", engine, index=False)
    check_same(cs.Table(cs.Query("select * from sales", engine), **TOLD), table)
    engine.dispose()


def test_dates_may_be_the_index_of_a_frame(rows, table):
    dated = rows.assign(date=pd.to_datetime(rows["date"])).set_index("date")
    check_same(cs.Table(dated, **TOLD), table)
    check_same(cs.Table(dated.tz_localize("UTC"), **TOLD), table)


def test_a_table_of_another_library_is_converted(rows, table):
    class Foreign:
        def to_pandas(self):
            return rows

    check_same(cs.Table(Foreign(), **TOLD), table)


def test_parquet_files_are_read(rows, table, tmp_path):
    pytest.importorskip("pyarrow")
    rows.to_parquet(tmp_path / "sales.parquet")
    check_same(cs.Table(tmp_path / "sales.parquet", **TOLD), table)


def test_files_are_queried_by_duckdb(rows, table, tmp_path):
    pytest.importorskip("duckdb")
    rows.to_csv(tmp_path / "sales.csv", index=False)
    check_same(cs.Table(cs.Query(f"select * from '{tmp_path}/sales.csv'"), **TOLD), table)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("duckdb", lambda path: cs.Query("select 1")),
        ("pyarrow", lambda path: path),
        ("sqlalchemy", lambda path: cs.Query("select 1", object())),
    ],
)
def test_a_library_that_is_missing_is_named(monkeypatch, tmp_path, name, source):
    monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / "sales.parquet"
    path.touch()
    with pytest.raises(ImportError, match=rf"needs {name}, .*pip install 'costscape\[table\]'"):
        cs.Table(source(path), **TOLD)


def test_the_sample_is_the_embedded_store():
    wide = pd.read_csv(cs.sample_csv()).pivot(index="item", columns="date", values="sold")
    with np.load(SID_STORE1) as store:
        days = np.datetime64(str(store["start"])[:10]) + np.arange(store["sales"].shape[1])
        assert np.array_equal(wide, store["sales"][:5, days >= np.datetime64("2016-01-01")])


def test_pandas_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError, match=r"Table needs pandas, .*pip install 'costscape\[table\]'"
    ):
        cs.Table("sales.csv", **TOLD)
