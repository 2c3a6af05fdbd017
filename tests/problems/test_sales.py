import gzip
import hashlib
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from costscape.problems import pooled_sales, sales
from costscape.problems.stock_orders.sales import SID_STORE1

REAL = Path(os.environ.get("COSTSCAPE_DATA") or "/nowhere") / "sales" / "store_item_demand.csv.gz"
real = pytest.mark.skipif(not REAL.is_file(), reason="COSTSCAPE_DATA has no sales file")
DAYS = 400


@pytest.fixture(autouse=True)
def no_data_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("COSTSCAPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def pieces(store, item, day):
    return store * 7 + item * 10 + day % 7 + day // 50


def rows(stores=(1, 2), items=(1, 2, 10), days=DAYS):
    start = np.datetime64("2020-01-01")
    return [
        f"{start + d},{s},{i},{pieces(s, i, d)}"
        for i in items
        for s in stores
        for d in range(days)
    ]


def write(folder, lines, name="store_item_demand.csv"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["date,store,item,sales", *lines, ""]))
    return path


def parts(data):
    return (data.splits.train, data.splits.val, data.splits.test)


def test_the_embedded_file_is_the_published_one_and_names_its_licence():
    notice = SID_STORE1.with_name("NOTICE.md").read_text()
    assert hashlib.sha256(SID_STORE1.read_bytes()).hexdigest() in notice
    assert "ddop2" in notice
    assert "Apache License 2.0" in notice


def test_sizes_of_the_embedded_parts():
    # 1,826 days give 1,799 windows, cut at 1,151 and 1,439, 27 dropped before each cut
    data = sales()
    assert [len(p) for p in parts(data)] == [1124, 261, 360]
    assert data.splits.train.x.shape[1:] == (14, 1)
    assert data.splits.train.y.shape[1:] == (7,)
    assert data.splits.train.x.dtype == data.splits.train.y.dtype == torch.float32
    assert data.source == (
        "sales of item 1, store 1, 2013-01-01 to 2017-12-31, "
        "store item demand set (ddop2, Apache-2.0), embedded"
    )


@pytest.mark.parametrize("item", [1, 15, 50])
def test_every_window_is_what_the_file_says_at_its_date(item):
    data = sales(item)
    with np.load(SID_STORE1) as file:
        series = file["sales"][item - 1].astype(float)
    assert data.scale == pytest.approx(series[:1151].mean(), rel=1e-12)
    for part in parts(data):
        for i in (0, len(part) // 2, len(part) - 1):
            at = int((part.dates[i] - np.datetime64("2013-01-01")).astype(int))
            np.testing.assert_allclose(part.y[i] * data.scale, series[at : at + 7], rtol=1e-6)
            np.testing.assert_allclose(
                part.x[i, :, 0] * data.scale, series[at - 21 : at - 7], rtol=1e-6
            )


@pytest.mark.parametrize("load", [sales, pooled_sales])
def test_no_day_is_in_two_parts(load):
    day = np.timedelta64(1, "D")
    for early, late in pairwise(parts(load())):
        last_of_y, first_of_x = early.dates.max() + 6 * day, late.dates.min() - 21 * day
        assert first_of_x - last_of_y == day


def test_the_training_days_have_mean_one_and_are_exactly_those_of_the_training_windows(tmp_path):
    data = sales(path=write(tmp_path, rows()))
    train = data.splits.train
    seen = {int(d) for start in train.dates.astype(int) for d in range(start - 21, start + 7)}
    first = np.datetime64("2020-01-01").astype(int)
    expected = np.mean([pieces(1, 1, d - first) for d in seen])
    assert data.scale == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("pooled", [False, True])
def test_later_days_do_not_enter_the_scale(tmp_path, pooled):
    load = pooled_sales if pooled else sales
    lines = rows()
    before = load(path=write(tmp_path, lines))
    first_of_val = before.splits.val.dates[0] - np.timedelta64(21, "D")
    changed = [
        r.rsplit(",", 1)[0] + ",999" if np.datetime64(r[:10]) >= first_of_val else r for r in lines
    ]
    after = load(path=write(tmp_path, changed, "changed.csv"))
    assert np.array_equal(before.scale, after.scale)
    assert torch.equal(before.splits.train.x, after.splits.train.x)
    assert torch.equal(before.splits.train.y, after.splits.train.y)
    assert not torch.equal(before.splits.val.x, after.splits.val.x)
    last_of_train = first_of_val - np.timedelta64(1, "D")
    changed = [
        r.rsplit(",", 1)[0] + ",999" if r.startswith(str(last_of_train)) else r for r in lines
    ]
    assert not np.array_equal(load(path=write(tmp_path, changed)).scale, before.scale)


def test_pooled_rows_are_those_of_each_item_date_by_date():
    pool = pooled_sales(items=[3, 1])
    assert pool.items == (3, 1)
    for k, item in enumerate(pool.items):
        alone = sales(item)
        assert pool.scale[k] == alone.scale
        for name in ("train", "val", "test"):
            part, own = getattr(pool.splits, name), getattr(alone.splits, name)
            mine = slice(k, None, len(pool.items))
            assert torch.equal(part.x[mine], own.x)
            assert torch.equal(part.y[mine], own.y)
            assert np.array_equal(part.dates[mine], own.dates)
    for part in parts(pool):
        assert (np.diff(part.dates).astype(int) >= 0).all()


def test_all_items_of_a_store_are_pooled_in_numerical_order(tmp_path):
    pool = pooled_sales(store=2, path=write(tmp_path, rows()))
    assert pool.items == (1, 2, 10)
    assert pool.splits.train.x.shape[1:] == (14, 1)
    assert pool.source.startswith("sales of 3 items, store 2, pooled, 2020-01-01 to 2021-02-03")


def test_loading_twice_gives_the_same_bits():
    one, two = sales(5), sales(5)
    assert torch.equal(one.splits.train.x, two.splits.train.x)
    assert one.scale == two.scale


def test_the_embedded_store_gives_way_to_the_cache_then_the_variable_then_the_path(
    monkeypatch, tmp_path
):
    assert "embedded" in sales().source
    write(tmp_path / "cache" / "costscape" / "sales", rows(days=300))
    assert "2020-01-01 to 2020-10-26, NOT the known public file" in sales().source
    write(tmp_path / "data" / "sales", rows(days=301))
    monkeypatch.setenv("COSTSCAPE_DATA", str(tmp_path / "data"))
    assert "2020-01-01 to 2020-10-27" in sales().source
    other = write(tmp_path, rows(days=302), "other.csv")
    assert "2020-10-28, NOT the known public file: other.csv" in sales(path=other).source


def test_stores_and_items_that_are_not_there_are_named(tmp_path):
    path = write(tmp_path, rows())
    with pytest.raises(ValueError, match=r"has the stores \[1, 2\], but not 3"):
        sales(store=3, path=path)
    with pytest.raises(ValueError, match=r"items 1 to 10, but not \[5\]"):
        sales(item=5, path=path)
    with pytest.raises(ValueError, match=r"items 1 to 50, but not \[51\]"):
        pooled_sales(items=[1, 51])
    with pytest.raises(FileNotFoundError, match="Store 2 needs the public sales file"):
        sales(store=2)
    with pytest.raises(ValueError, match="each once"):
        pooled_sales(items=[1, 1])
    with pytest.raises(FileNotFoundError, match="No file at"):
        sales(path=tmp_path / "nowhere.csv")


def swap(lines):
    lines[100], lines[101] = lines[101], lines[100]
    return lines


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap, "line 102 has '2020-04-11' after '2020-04-09'"),
        (lambda s: s[:100] + s[101:], "line 102 has '2020-04-11' after '2020-04-09'"),
        (lambda s: [*s[:9], "2020-01-10,1,1,many", *s[10:]], "line 11 has 'many'"),
        (lambda s: [*s[:9], "2020-01-10,1,1,-4", *s[10:]], "sales >= 0, but line 11 has .*-4"),
        (lambda s: [*s[:9], "2020-01-10,1,x,4", *s[10:]], "column 'item' .* line 11 has 'x'"),
        (lambda s: [*s[:9], "2020-01-10,1", *s[10:]], "needs 4 fields .* line 11 has 2"),
        (lambda s: s[: 2 * DAYS + 150], "item 2 has 2020-01-01 to 2020-05-29 .*lines 802 to 951"),
        (lambda s: s[:20], "at least 28 moments, but got 20"),
        (lambda s: [r.rsplit(",", 1)[0] + ",0" for r in s], "item 1 sold nothing"),
    ],
)
def test_a_spoilt_file_is_refused_by_its_line(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        sales(path=write(tmp_path, change(rows())))


@real
@pytest.mark.long
def test_the_embedded_store_is_store_1_of_the_public_file():
    public = pooled_sales(path=REAL)
    carried = pooled_sales()
    assert public.source.endswith("the known public file")
    assert public.items == carried.items == tuple(range(1, 51))
    assert np.array_equal(public.scale, carried.scale)
    for a, b in zip(parts(public), parts(carried), strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
        assert np.array_equal(a.dates, b.dates)
    text = gzip.decompress(REAL.read_bytes()).decode().splitlines()
    assert len(text) == 1 + 10 * 50 * 1826
