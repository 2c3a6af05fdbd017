import json

import pandas as pd
import pytest

import costscape as cs

TOLD = {
    "date": "day",
    "group": ["store"],
    "outcome": "sold",
    "known": ["kind", "price"],
    "lags": {"sold": [1, 3], "kind": [2]},
    "calendar": cs.Calendar(month=True, holidays=["2024-01-06"]),
    "encode": cs.OneHot(most=2),
    "missing": cs.FillValue(0.5),
    "gaps": cs.InsertDates(0.0),
    "dates": cs.DateFormat(day_first=True),
    "csv": cs.CsvFormat(separator=";"),
}


@pytest.fixture
def table():
    n = 12
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=n), "store": "Süd"})
    frame["sold"] = [0.1 * i for i in range(n)]
    frame["kind"] = list("aabbccaabbcd")
    frame["price"] = [1.0, None] * (n // 2)
    return cs.Table(frame, **TOLD)


def test_what_is_loaded_is_what_was_saved(table, tmp_path):
    table.save(tmp_path / "orders.table")
    again = cs.Table.load(tmp_path / "orders.table")
    assert len(again.X) == 0
    assert list(again.X) == list(table.X)
    for name in ("settings", "csv", "dates", "freq", "kinds", "encoding"):
        assert getattr(again.memory, name) == getattr(table.memory, name), name
    pd.testing.assert_frame_equal(again.memory.tail, table.memory.tail)
    values = {"kind": "e", "price": None}
    pd.testing.assert_frame_equal(again.next(**values), table.next(**values))
    again.save(tmp_path / "second.table")
    first, second = ((tmp_path / f"{n}.table").read_text() for n in ("orders", "second"))
    assert first == second
    assert not list(tmp_path.glob("*.part"))


def test_the_file_is_plain_json_with_the_last_rows_only(table, tmp_path):
    table.save(tmp_path / "orders.table")
    made = json.loads((tmp_path / "orders.table").read_text())
    assert made["costscape_table"] == 1
    assert len(made["tail"]["day"]) == 4  # three for the lag, one to fill from
    assert made["tail"]["store"] == ["Süd"] * 4


def test_other_files_are_refused(table, tmp_path):
    path = tmp_path / "orders.table"
    with pytest.raises(FileNotFoundError, match="No table at"):
        cs.Table.load(path)
    table.save(path)
    text = path.read_text()
    path.write_text(text[:-20])
    with pytest.raises(ValueError, match="is not, or is cut off"):
        cs.Table.load(path)
    path.write_text("[1]")
    with pytest.raises(ValueError, match="is not, or is cut off"):
        cs.Table.load(path)
    path.write_text(text.replace('"costscape_table": 1', '"costscape_table": 9'))
    with pytest.raises(ValueError, match="needs the format 1, but has 9"):
        cs.Table.load(path)
    path.write_text(text.replace('"kind": "OneHot"', '"kind": "Popen"'))
    with pytest.raises(ValueError, match="is not, or is cut off"):
        cs.Table.load(path)
