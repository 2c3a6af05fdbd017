import numpy as np
import pandas as pd
import pytest

import costscape as cs

DAYS = pd.date_range("2024-01-01", periods=8)
TOLD = {
    "date": "day",
    "outcome": "sold",
    "known": ["price", "kind"],
    "lags": [1],
    "calendar": None,
}


def frame(**holes):
    """Eight days; ``holes`` are places where a column is missing."""
    made = pd.DataFrame({"day": DAYS, "sold": np.arange(8.0), "price": np.arange(10.0, 18)})
    made["kind"] = list("abababab")
    for column, places in holes.items():
        made[column] = made[column].astype(object).where(~made.index.isin(places), None)
    return made


def test_values_are_filled_from_before_and_flagged():
    table = cs.Table(frame(sold=[3], price=[5, 6], kind=[2]), **TOLD, missing=cs.FillForward())
    assert list(table.X) == [
        "price", "sold_lag1",
        "price_missing", "kind_missing", "sold_lag1_missing", "kind_a", "kind_b",
    ]  # fmt: skip
    # the row of day 3 has no outcome, that of day 4 no lag
    assert table.X.index.equals(DAYS[[1, 2, 4, 5, 6, 7]])
    assert table.X["price"].tolist() == [11, 12, 14, 14, 14, 17]
    assert table.X["price_missing"].tolist() == [0, 0, 0, 1, 1, 0]
    assert table.X["sold_lag1"].tolist() == [0, 1, 2, 4, 5, 6]
    assert table.X["sold_lag1_missing"].tolist() == [0, 0, 1, 0, 0, 0]
    assert table.X["kind_b"].tolist() == [1, 1, 0, 1, 0, 1]
    assert table.next(price=None, kind="a").iloc[0].tolist() == [17, 7, 1, 0, 0, 1, 0]


def test_values_are_filled_with_a_constant_and_flagged():
    fill = cs.FillValue(-1.0, "none")
    table = cs.Table(frame(sold=[3], price=[0, 5], kind=[2]), **TOLD, missing=fill)
    assert table.X["price"].tolist() == [11, 12, 14, -1, 16, 17]
    assert table.X["sold_lag1"].tolist() == [0, 1, -1, 4, 5, 6]
    assert table.X["kind_none"].tolist() == table.X["kind_missing"].tolist() == [0, 1, 0, 0, 0, 0]


def test_a_group_begins_with_its_first_value():
    table = cs.Table(frame(price=[0, 1, 2]), **TOLD, missing=cs.FillForward())
    assert table.X.index[0] == DAYS[3]
    assert "price_missing" not in table.X


def test_groups_are_not_filled_from_each_other():
    two = pd.concat([frame().assign(store="a"), frame(price=[0, 1]).assign(store="b")])
    table = cs.Table(two, **TOLD, group="store", missing=cs.FillForward())
    assert table.X.loc[(slice(None), "b"), :].index[0][0] == DAYS[2]


def test_a_value_that_is_missing_where_the_first_file_had_none_is_refused():
    table = cs.Table(frame(price=[5]), **TOLD, missing=cs.FillForward())
    message = "a value for the feature 'sold_lag1' of 2024-01-05, but it is missing"
    with pytest.raises(ValueError, match=message):
        table.read(frame(sold=[3]))
    assert table.read(frame(price=[4])).X["price_missing"].tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_missing_dates_are_inserted():
    some = frame().drop(index=[2, 3])
    with pytest.raises(
        ValueError, match=r"2024-01-05 \(row 2\) follows 2024-01-02 \(1 such gaps\)"
    ):
        cs.Table(some, **TOLD)
    told = {"date": "day", "outcome": "sold", "lags": [1], "calendar": None}
    table = cs.Table(some, **told, gaps=cs.InsertDates(outcome=0.0))
    assert table.Y["sold"].tolist() == [1, 0, 0, 4, 5, 6, 7]
    assert table.X["sold_lag1"].tolist() == [0, 1, 0, 0, 4, 5, 6]
    with pytest.raises(
        ValueError, match=r"column 'price' is empty in an inserted row \(2024-01-03"
    ):
        cs.Table(some, **TOLD, gaps=cs.InsertDates(outcome=0.0))
    both = {"gaps": cs.InsertDates(), "missing": cs.FillForward()}
    table = cs.Table(some, **TOLD, **both)
    assert table.X.index.equals(DAYS[[1, 4, 5, 6, 7]])
    assert table.X["sold_lag1"].tolist() == [0, 1, 4, 5, 6]
    assert table.X["sold_lag1_missing"].tolist() == [0, 1, 0, 0, 0]


def test_numbers_may_be_nullable_integers_booleans_or_objects():
    told = {"date": "day", "outcome": "sold", "known": ["open", "price"], "calendar": None}
    made = frame(price=[3]).assign(open=[True, False] * 4)
    made["sold"] = made["sold"].astype("Int64")
    made["price"] = made["price"].astype("Float64")
    table = cs.Table(made, **told, missing=cs.FillForward())
    assert table.X["open"].tolist() == [1, 0] * 4
    assert table.X["price"].tolist() == [10, 11, 12, 12, 14, 15, 16, 17]
    assert table.Y["sold"].tolist() == list(range(8))
