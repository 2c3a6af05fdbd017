"""CSV files as other programs write them, and errors that name file, line and column."""

import gzip

import numpy as np
import pandas as pd
import pytest

import costscape as cs

TOLD = {
    "date": "Datum", "group": "Straße", "outcome": "Stück", "known": "Preis",
    "lags": [1], "calendar": None,
}  # fmt: skip
PLAIN = ["Datum,Straße,Stück,Preis"] + [
    f"2024-01-{d:02},{s},{10 * d + len(s)},{d + 0.5}"
    for d in range(12, 16)
    for s in ("Au", "Ring")
]


def write(tmp_path, lines, encoding="utf-8", name="sales.csv", end="\n"):
    path = tmp_path / name
    data = (end.join(lines) + end).encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def german(lines):
    """Semicolons, decimal commas and dates with the day first."""
    for line in lines:
        d, *rest = line.split(",")
        d = ".".join(reversed(d.split("-")))
        yield ";".join([d, *(r.replace(".", ",") for r in rest)])


WAYS = {
    "plain": (PLAIN, {}),
    "unsorted": ([PLAIN[0], *PLAIN[:0:-1]], {}),
    "mark": (PLAIN, {"encoding": "utf-8-sig"}),
    "utf-16": (PLAIN, {"encoding": "utf-16"}),
    "latin-1": (PLAIN, {"encoding": "latin-1"}),
    "gzip": (PLAIN, {"name": "sales.csv.gz"}),
    "windows": (PLAIN, {"end": "\r\n"}),
    "blank lines": (["", *PLAIN[:4], "", "  ", *PLAIN[4:], ""], {}),
    "german": (list(german(PLAIN)), {"encoding": "cp1252"}),
    "spreadsheet": (["sep=;", *german(PLAIN)], {}),
    "tabs": ([line.replace(",", "\t") for line in PLAIN], {}),
    "spaces": ([line.replace(",", ", ") for line in PLAIN], {}),
    "quotes": (['"' + line.replace(",", '","') + '"' for line in PLAIN], {}),
    "compact": ([PLAIN[0], *(line.replace("-", "", 2) for line in PLAIN[1:])], {}),
    "american": ([PLAIN[0], *(f"1/{x[8:10]}/2024{x[10:]}" for x in PLAIN[1:])], {}),
    "trailing signs": ([PLAIN[0], *(f"{line},," for line in PLAIN[1:])], {}),
    "more columns": ([f"x y,{line},z" for line in PLAIN], {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_table_written_in_other_ways_is_read_the_same(tmp_path, way):
    lines, how = WAYS[way]
    wanted = cs.Table(write(tmp_path, PLAIN, name="plain.csv"), **TOLD)
    table = cs.Table(write(tmp_path, lines, **how), **TOLD)
    pd.testing.assert_frame_equal(table.X, wanted.X)
    pd.testing.assert_frame_equal(table.Y, wanted.Y)
    assert wanted.X.iloc[0].to_dict() == {
        "Preis": 13.5, "Stück_lag1": 122.0, "Straße_Au": 1.0, "Straße_Ring": 0.0,
    }  # fmt: skip


def change(line, old, new):
    """The plain file with a change in one line, counted from 1."""
    lines = list(PLAIN)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    return lines


BAD = {
    "no number": (change(5, "134", "many"), "column 'Stück', but line 5 has 'many'"),
    "infinite": (change(5, "134", "inf"), "column 'Stück', but line 5 has 'inf'"),
    "missing": (change(7, ",144,", ",,"), "column 'Stück' is empty in line 7"),
    "missing price": (change(7, "14.5", "NA"), "column 'Preis' is empty in line 7"),
    "missing group": (change(3, "Ring", ""), "column 'Straße' is empty in line 3"),
    "no date": (change(4, "2024-01-13", "soon"), "column 'Datum' .* line 4 has 'soon'"),
    "no such day": (change(4, "2024-01-13", "2024-02-30"), "line 4 has '2024-02-30'"),
    "missing date": (change(4, "2024-01-13", ""), "line 4 has none"),
    "doubled": ([*PLAIN, PLAIN[3]], r"'Au', 2024-01-13 is in line 4 and in line 10 \(1 such\)"),
    "gap": (PLAIN[:5] + PLAIN[6:], r"'Au', 2024-01-15 \(line 7\) follows 2024-01-13 \(1 such"),
    "blank lines": (["", *PLAIN[:3], "", *change(5, "134", "x")[3:]], "line 7 has 'x'"),
    "too many fields": (change(5, "134", "13,4"), "needs 4 fields in every row.*line 5 has 5"),
    "too few fields": (change(5, ",134", ""), "line 5 has 3"),
    "no column": ([x.replace("Stück", "Menge") for x in PLAIN], "'Stück', but line 1 has 'Datum'"),
    "column twice": ([PLAIN[0] + ",Preis", *(x + ",1" for x in PLAIN[1:])], "'Preis' 2 times"),
    "empty": ([""], "the file is empty"),
    "header only": (PLAIN[:1], "at least one row"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_errors_name_the_file_the_line_and_the_column(tmp_path, bad):
    lines, message = BAD[bad]
    path = write(tmp_path, lines)
    with pytest.raises(ValueError, match=message) as error:
        cs.Table(path, **TOLD)
    assert str(error.value).startswith(str(path))


def test_a_quoted_line_break_counts_as_a_line(tmp_path):
    lines = ["Note," + PLAIN[0], *(f'"a\nb",{line}' for line in change(5, "134", "many")[1:])]
    with pytest.raises(ValueError, match="line 8 has 'many'"):
        cs.Table(write(tmp_path, lines), **TOLD)


def test_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError, match=r"none at nowhere\.csv"):
        cs.Table("nowhere.csv", **TOLD)
    with pytest.raises(TypeError, match="a path, a frame or a Query, but got ndarray"):
        cs.Table(np.zeros((3, 2)), **TOLD)


def test_files_that_are_no_csv_are_refused(tmp_path):
    path = write(tmp_path, PLAIN, name="sales.csv.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"whole CSV file in one encoding, but cannot be read"):
        cs.Table(path, **TOLD)
    path = write(tmp_path, PLAIN, encoding="latin-1")
    with pytest.raises(ValueError, match=r"cannot be read \('utf-8' codec"):
        cs.Table(path, **TOLD, csv=cs.CsvFormat(encoding="utf-8"))
    path = write(tmp_path, PLAIN, name="sales.xlsx")
    with pytest.raises(ValueError, match=r"is a spreadsheet.*read_excel\('sales\.xlsx'\)"):
        cs.Table(path, **TOLD)


def test_codes_keep_their_zeros(tmp_path):
    lines = ["day,sold,code", "2024-01-01,1,007", "2024-01-02,2,12", "2024-01-03,3,007"]
    told = {"date": "day", "outcome": "sold", "known": "code", "calendar": None}
    table = cs.Table(write(tmp_path, lines), **told, category="code")
    assert list(table.X) == ["code_007", "code_12"]
    new = table.read(write(tmp_path, [lines[0], lines[1]], name="new.csv"))
    assert new.X["code_007"].tolist() == [1]


# ---- what can be read in two ways is refused, or stated


def test_the_order_of_day_and_month_is_stated_where_it_is_not_evident(tmp_path):
    lines = [PLAIN[0], *(f"0{d}/02/2024,Au,{d},1.5" for d in range(1, 6))]
    path = write(tmp_path, lines)
    with pytest.raises(ValueError, match=r"column 'Datum': .*'01/02/2024'.* can be read in two"):
        cs.Table(path, **TOLD)
    days = cs.Table(path, **TOLD, dates=cs.DateFormat(day_first=True)).X.index
    assert days[0][0] == pd.Timestamp("2024-02-02")
    with pytest.raises(ValueError, match="every '31D', but line 4 has 2024-03-02"):
        cs.Table(path, **TOLD, dates=cs.DateFormat(day_first=False))


def test_both_orders_in_one_file_are_refused(tmp_path):
    lines = [PLAIN[0], "13/02/2024,Au,1,1.5", "02/14/2024,Au,2,1.5"]
    with pytest.raises(ValueError, match="both '13/02/2024' and '02/14/2024'"):
        cs.Table(write(tmp_path, lines), **TOLD)


def test_other_ways_to_write_dates_are_stated(tmp_path):
    lines = [PLAIN[0], *(f"{d} Feb 2024,Au,{d},1.5" for d in range(1, 6))]
    path = write(tmp_path, lines)
    with pytest.raises(ValueError, match=r"line 2 has '1 Feb 2024'"):
        cs.Table(path, **TOLD)
    table = cs.Table(path, **TOLD, dates=cs.DateFormat(pattern="%d %b %Y"))
    assert table.X.index[-1][0] == pd.Timestamp("2024-02-05")


def test_times_with_an_offset_are_in_utc():
    texts = pd.Series(["2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00", None])
    times, _ = cs.DateFormat().read(texts)
    assert times[:2].astype(str).tolist() == ["2024-03-31 00:30:00", "2024-03-31 01:30:00"]
    assert times.isna()[2]
    times, _ = cs.DateFormat().read(pd.Series(["31.12.2024 7:05", "31.12.2024 17:05:30"]))
    assert times.astype(str).tolist() == ["2024-12-31 07:05:00", "2024-12-31 17:05:30"]


@pytest.mark.parametrize("number", ["1.234", "1,234"])
def test_a_sign_that_may_part_thousands_is_stated(tmp_path, number):
    lines = [x.replace(",", ";") for x in ("Datum,Straße,Stück,Preis", "2024-01-01,Au,5,P")]
    lines += ["2024-01-02;Au;6;P"]
    path = write(tmp_path, [x.replace("P", number) if "202" in x else x for x in lines])
    with pytest.raises(ValueError, match=f"'{number}' can be read in two ways"):
        cs.Table(path, **TOLD)
    other = {".": ",", ",": "."}
    for decimal in ".,":
        format = cs.CsvFormat(decimal=decimal, thousands=other[decimal])
        table = cs.Table(path, **TOLD, csv=format)
        assert table.X["Preis"].tolist() == [1.234 if decimal in number else 1234.0]


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["1.234,5", "7"], [1234.5, 7.0]),
        (["1,234.5", "7"], [1234.5, 7.0]),
        (["1.234", "0.5"], [1.234, 0.5]),
        (["1.234.567,5", "1.234"], [1234567.5, 1234.0]),
        (["-0,5", ",25"], [-0.5, 0.25]),
    ],
)
def test_one_number_that_is_evident_decides_for_all(tmp_path, texts, wanted):
    lines = ["Datum;Straße;Stück;Preis", "2024-01-01;Au;1;0"]
    lines += [f"2024-01-0{i + 2};Au;1;{text}" for i, text in enumerate(texts)]
    assert cs.Table(write(tmp_path, lines), **TOLD).X["Preis"].tolist() == wanted


def test_new_files_are_read_as_the_first(tmp_path):
    """A short file whose dates and numbers are ambiguous by themselves."""
    first = cs.Table(write(tmp_path, list(german(PLAIN)), encoding="cp1252"), **TOLD)
    lines = ["Datum;Straße;Stück;Preis", "01.02.2024;Au;1;1,234", "02.02.2024;Au;2;2,345"]
    new = first.read(write(tmp_path, lines, name="new.csv"))
    assert new.X.index[0] == (pd.Timestamp("2024-02-02"), "Au")
    assert new.X["Preis"].tolist() == [2.345]
    assert list(new.X) == list(first.X)
    with pytest.raises(ValueError, match=r"column 'Preis'.*line 2 has 'cheap'"):
        first.read(write(tmp_path, [lines[0], lines[1].replace("1,234", "cheap"), lines[2]]))
    with pytest.raises(ValueError, match="column 'Straße' has 'Graben'"):
        first.read(write(tmp_path, [x.replace("Au", "Graben") for x in lines]))
    tomorrow = ["Datum;Straße;Preis", "16.01.2024;Ring;3,141"]
    X = first.next(write(tmp_path, tomorrow, name="tomorrow.csv"))
    assert X.iloc[0].to_dict() == {
        "Preis": 3.141, "Stück_lag1": 154.0, "Straße_Au": 0.0, "Straße_Ring": 1.0,
    }  # fmt: skip
