import gzip

import numpy as np
import pytest
import torch

from costscape.bench.problem_names import problem_named
from costscape.problems import bakery_sales, restaurant_sales
from costscape.problems.files.samples import EMBEDDED
from costscape.problems.files.sources import find
from costscape.problems.stock_orders.inventory_recipe import BAKERIES

needs_sales = pytest.mark.skipif(find("sales") is None, reason="the public sales file is not here")
ITEMS = 50


@needs_sales
@pytest.mark.long
def test_a_shelf_store_has_all_its_items_and_days_and_parts_that_share_no_day():
    p = problem_named("inventory-store10")(0)
    train, val, test = vars(p.data).values()
    # 1,826 days give 1,799 windows of 28 days; 27 are dropped before each cut
    assert [len(part) for part in (train, val, test)] == [1124 * ITEMS, 261 * ITEMS, 360 * ITEMS]
    assert str(train.dates[0]) == "2013-01-22"
    assert str(test.dates[-1]) == "2017-12-25"
    for before, after in ((train, val), (val, test)):
        last_of_y = before.dates[-1] + np.timedelta64(6, "D")
        first_of_x = after.dates[0] - np.timedelta64(21, "D")
        assert last_of_y < first_of_x
    assert "store 10" in p.source
    with gzip.open(find("sales")[0], "rt") as lines:  # date, store, item, sales
        pieces = np.array([float(line.split(",")[3]) for line in lines if ",10,7," in line])
    scale = pieces[: 1124 + 27].mean()
    y = test.y[6 + ITEMS * 359]  # item 7 in the last window
    assert torch.allclose(y, torch.from_numpy(pieces[-7:] / scale).float())


def test_the_shelf_has_neither_the_store_of_a_named_problem_nor_others():
    for store in (1, 11):
        with pytest.raises(ValueError, match="stores 2 to 10"):
            problem_named(f"inventory-store{store}")(0)


def sold(name):
    with np.load(EMBEDDED / f"{name}_sales.npz") as file:
        return {key: file[key] for key in file}


@pytest.mark.parametrize(
    ("name", "load", "series"),
    [
        ("bakery", lambda: bakery_sales(store=17), 3),
        ("restaurant", restaurant_sales, 7),
    ],
)
def test_pooled_sales_are_windows_of_the_embedded_numbers_over_their_training_mean(
    name, load, series
):
    pool, file = load(), sold(name)
    pieces = file["sold"] if name == "restaurant" else file["sold"][list(file["stores"]).index(17)]
    start = np.datetime64(str(file["start"]))
    train, val, test = (pool.splits.train, pool.splits.val, pool.splits.test)
    windows = pieces.shape[1] - 27  # of 28 days; 27 are dropped before each cut
    whole = windows - 2 * 27
    assert len(train) + len(val) + len(test) == series * whole
    assert len(pool.items) == series
    for k in range(series):
        scale = pieces[k, : len(train) // series + 27].astype(np.float64).mean()
        assert pool.scale[k] == pytest.approx(scale, rel=1e-12)
        for part in (train, val, test):
            for row in (k, len(part) - series + k):
                day = int((part.dates[row] - start).astype(int))  # the first day of y
                near = {"rtol": 1e-6, "atol": 0}
                y = torch.from_numpy(pieces[k, day : day + 7] / scale).float()
                x = torch.from_numpy(pieces[k, day - 21 : day - 7] / scale).float()
                assert torch.allclose(part.y[row], y, **near)
                assert torch.allclose(part.x[row, :, 0], x, **near)


def test_the_bakeries_of_the_contest_are_the_first_that_sold_on_nine_of_ten_training_days():
    file = sold("bakery")
    training = file["sold"][:, :, : int(0.64 * 1215)]
    steady = ((training > 0).mean(axis=2) >= 0.9).all(axis=1)
    assert tuple(file["stores"][steady][:10].tolist()) == BAKERIES


def test_the_notice_counts_the_numbers_that_are_no_whole_pieces():
    pieces = sold("bakery")["sold"]
    words = f"{int((pieces % 1 != 0).sum())} of {pieces.size:,} numbers are no whole pieces"
    assert words in (EMBEDDED / "NOTICE.md").read_text()


def test_a_bakery_that_is_not_there_and_one_that_opened_late_are_refused():
    with pytest.raises(ValueError, match=r"71\], but got 6"):
        problem_named("bakery6")(0)
    with pytest.raises(ValueError, match="item 101 sold nothing in them"):
        problem_named("bakery5")(0)


def test_the_shelf_has_the_task_of_inventory_and_origins_in_time():
    for name in ("bakery2", "restaurant"):
        p, paper = problem_named(name)(0), problem_named("inventory")(0)
        assert p.task.feasible.dim == 7
        y, a = torch.rand(2, 5, 7, generator=torch.Generator().manual_seed(0))
        assert torch.equal(p.task.cost(y, a), paper.task.cost(y, a))
        assert (p.schedule, p.encoder, p.points) == (paper.schedule, paper.encoder, paper.points)
        last, first = (problem_named(f"{name}@{k}of2")(0).data for k in (2, 1))
        assert last.test.dates[0] > first.test.dates[-1]
