import gzip

import numpy as np
import pytest
import torch

from costscape.bench.problem_names import problem_named
from costscape.problems.files.sources import find

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
