import gzip

import numpy as np
import pytest

from costscape.problems import read_table

HOUR = np.timedelta64(1, "h")
GOOD = ["time,kwh", "2020-01-01 00:00:00+00:00,1.5", "2020-01-01 01:00:00+00:00,2", ""]


def write(tmp_path, lines, name="file.csv"):
    path = tmp_path / name
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("name", ["file.csv", "file.csv.gz"])
def test_reads_numbers_and_times_plain_or_gzipped(tmp_path, name):
    table = read_table(write(tmp_path, GOOD, name), ["kwh", "time"])
    assert len(table) == 2
    assert table.numbers("kwh").tolist() == [1.5, 2.0]
    assert table.times("time", HOUR).astype(str).tolist() == [
        "2020-01-01T00:00:00",
        "2020-01-01T01:00:00",
    ]


def test_skips_a_byte_order_mark_and_columns_nobody_asked_for(tmp_path):
    path = write(tmp_path, ["\ufefftime,kwh", "x,3"])
    assert list(read_table(path, ["time"]).columns) == ["time"]
    assert read_table(path, ["kwh"]).numbers("kwh").tolist() == [3.0]


def test_offsets_become_utc(tmp_path):
    lines = ["time", "2020-01-01 01:00:00+01:00", "2020-01-01 01:00:00+00:00"]
    times = read_table(write(tmp_path, lines), ["time"]).times("time", HOUR)
    assert times.astype(str).tolist() == ["2020-01-01T00:00:00", "2020-01-01T01:00:00"]


def test_times_in_another_format(tmp_path):
    table = read_table(write(tmp_path, ["Date", "31/12/2019", "01/01/2020"]), ["Date"])
    times = table.times("Date", np.timedelta64(1, "D"), format="%d/%m/%Y")
    assert times.astype("datetime64[D]").astype(str).tolist() == ["2019-12-31", "2020-01-01"]


@pytest.mark.parametrize("bad", ["", "nan", "inf", "-inf", "5x", "n/a"])
def test_what_is_no_number_is_refused_by_its_line(tmp_path, bad):
    # the blank line counts: the message names the line an editor shows
    table = read_table(write(tmp_path, ["id,kwh", "0,1", "", f"1,{bad}"]), ["kwh"])
    with pytest.raises(ValueError, match=f"column 'kwh' .* line 4 has '{bad}'"):
        table.numbers("kwh")


def test_what_is_no_time_is_refused_by_its_line(tmp_path):
    table = read_table(write(tmp_path, ["time", "2020-01-01", "soon"]), ["time"])
    with pytest.raises(ValueError, match="line 3 has 'soon'"):
        table.times("time", HOUR)


@pytest.mark.parametrize("hours", [[0, 1, 3], [0, 1, 1], [0, 1, 0]])
def test_missing_doubled_and_reordered_hours_are_refused_by_their_line(tmp_path, hours):
    lines = ["time", *(f"2020-01-01 {h:02}:00:00" for h in hours)]
    table = read_table(write(tmp_path, lines), ["time"])
    with pytest.raises(ValueError, match=f"line 4 has '2020-01-01 {hours[2]:02}:00:00' after"):
        table.times("time", HOUR)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file at .*nowhere\.csv.*\['kwh'\]"):
        read_table(tmp_path / "nowhere.csv", ["kwh"])


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="No file at"):
        read_table(tmp_path, ["kwh"])


def test_missing_columns_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"\['power'\] are missing from its first row \['time'"):
        read_table(write(tmp_path, GOOD), ["time", "power"])


def test_a_row_with_a_field_too_few_is_named(tmp_path):
    with pytest.raises(ValueError, match="needs 2 fields in every row, but line 3 has 1"):
        read_table(write(tmp_path, ["time,kwh", "a,1", "b"]), ["kwh"])


@pytest.mark.parametrize("lines", [[], ["kwh"], ["kwh", "", ""]])
def test_a_file_without_rows_is_refused(tmp_path, lines):
    with pytest.raises(ValueError, match=r"has a header alone|\['kwh'\] are missing"):
        read_table(write(tmp_path, lines), ["kwh"])


def spoil_checksum(data):
    return data[:-8] + bytes([data[-8] ^ 255]) + data[-7:]


def spoil_stream(data):
    return data[:12] + bytes([b ^ 255 for b in data[12:40]]) + data[40:]


@pytest.mark.parametrize(
    "spoil", [lambda d: b"time,kwh\n", lambda d: d[: len(d) // 2], spoil_checksum, spoil_stream]
)
def test_a_corrupt_gzip_is_refused(tmp_path, spoil):
    path = tmp_path / "file.csv.gz"
    path.write_bytes(spoil(gzip.compress("\n".join(GOOD * 50).encode())))
    with pytest.raises(ValueError, match="not a whole CSV file"):
        read_table(path, ["kwh"])


def test_a_gzip_without_its_suffix_is_refused(tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes(gzip.compress("\n".join(GOOD).encode()))
    with pytest.raises(ValueError, match=r"not a whole CSV file in UTF-8 .* name it \.gz"):
        read_table(path, ["kwh"])
