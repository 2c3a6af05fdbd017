"""One set for each row, against the single sets."""

import numpy as np
import pandas as pd
import pytest
import torch

from costscape.checks import check_set
from costscape.sets import Box, Budget, Polytope, RowSets, Simplex, Whole
from costscape.sets.row_sets import ListedRows, ScaledRows

SQUARE = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]
CAPS = [[1.0, 2.0], [3.0, 0.0], [0.5, 0.5]]
TOTALS = [1.0, 4.0, 0.25]
SIDES = [[1.0, 1.0, 0.0, 0.0, 1.5], [2.0, 1.0, 0.0, 0.0, 9.0], [1.0, 1.0, 0.0, 0.0, 1.5]]
# sets of three rows, and the set of each row made by itself
MADE = {
    "boxes": (Box(0.0, CAPS), [Box(0.0, c) for c in CAPS]),
    "lower": (Box([[-1.0] * 2, [0.0] * 2, [0.2] * 2], 4.0),
              [Box(low, 4.0, dim=2) for low in (-1.0, 0.0, 0.2)]),
    "whole": (Box(0.0, CAPS, step=0.5), [Box(0.0, c, step=0.5) for c in CAPS]),
    "simplexes": (Simplex(total=TOTALS, dim=2), [Simplex(total=t, dim=2) for t in TOTALS]),
    "budgets": (Budget(total=TOTALS, dim=2), [Budget(total=t, dim=2) for t in TOTALS]),
    "capped": (Budget(total=TOTALS, dim=2, upper=0.8),
               [Budget(total=t, dim=2, upper=0.8) for t in TOTALS]),
    "caps": (Budget(total=2.0, dim=2, upper=CAPS),
             [Budget(total=2.0, dim=2, upper=c) for c in CAPS]),
    "polytopes": (Polytope(G=SQUARE, h=SIDES), [Polytope(G=SQUARE, h=h) for h in SIDES]),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_each_row_is_the_set_made_by_itself(name):
    rows, single = MADE[name]
    assert isinstance(rows, RowSets)
    assert len(rows) == 3
    a = 3 * torch.randn(3, 40, 2, generator=torch.Generator().manual_seed(0))
    near = torch.stack([c.project(part) for c, part in zip(single, a, strict=True)])
    assert torch.allclose(rows.project(a), near, atol=1e-5)
    assert torch.allclose(rows.project(a[:, 0]), near[:, 0], atol=1e-5)
    far = torch.stack([c.violation(part) for c, part in zip(single, a, strict=True)])
    assert torch.allclose(rows.violation(a), far, atol=1e-5)
    assert rows.contains(near).all()
    lower, upper = rows.ends()
    for i, c in enumerate(single):
        for end, bound in ((lower, c.bounds[0]), (upper, c.bounds[1])):
            assert torch.allclose(end[i], bound, atol=1e-6)
        assert type(rows.row(i)) is type(c)
        assert rows.hull.contains(c.sample(50, torch.Generator().manual_seed(i))).all()
    index = torch.cat([index for index, _ in rows.groups()])
    assert sorted(index.tolist()) == [0, 1, 2]


def test_rows_with_equal_sets_share_one():
    polytopes, _ = MADE["polytopes"]
    assert isinstance(polytopes, ListedRows)
    assert len(polytopes.sets) == 2
    assert {tuple(index.tolist()) for index, _ in polytopes.groups()} == {(0, 2), (1,)}


def test_the_set_that_holds_all_is_a_set():
    check_set(Box(0.0, CAPS).hull)
    check_set(Budget(total=TOTALS, dim=2, upper=0.8).hull)


def test_points_of_the_base_become_actions_and_back():
    rows = Box([[1.0, 2.0], [0.0, 5.0]], [[2.0, 2.0], [9.0, 6.0]])
    assert isinstance(rows, ScaledRows)
    u = torch.rand(2, 6, 2, generator=torch.Generator().manual_seed(0))
    a = rows.actions(u)
    assert rows.contains(a).all()
    free = rows.scale[:, None] > 0
    assert torch.allclose(rows.shares(a), torch.where(free, u, 0.0), atol=1e-6)


def test_frames_and_precision():
    caps = pd.DataFrame(CAPS, columns=["bread", "milk"])
    assert Box(0.0, caps).row(1).upper.tolist() == [3.0, 0.0]
    exact = Budget(total=np.array(TOTALS), dim=2).double()
    assert exact.row(0).total.dtype == torch.float64
    assert isinstance(Box(0.0, CAPS, step=1.0).row(0), Whole)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Box([[0.0, 0.0]], CAPS), "same number of rows.*1 in lower and 3 in upper"),
        (lambda: Box(1.0, CAPS), r"row 1 has lower 1 > upper 0 in coordinate 1 \(3 such\)"),
        (lambda: Box([0.0] * 3, CAPS), r"lower of shape \(3,\) and upper of shape \(3, 2\)"),
        (lambda: Box(0.0, [[float("nan"), 1.0]]), "finite numbers"),
        (lambda: Budget(total=[1.0, -2.0], dim=2), "positive totals, but that of row 1 is -2"),
        (lambda: Budget(total=[1.0, 2.0], dim=2, upper=CAPS), "2 in total and 3 in upper"),
        (lambda: Budget(total=[1.0, 2.0], dim=3, upper=CAPS), r"caps \(n, 3\)"),
        (lambda: Simplex(total=[1.0, 0.0], dim=2), "positive totals, but that of row 1 is 0"),
        (lambda: Polytope(G=SQUARE, h=[[1.0] * 4]), "row 0 cannot be made|vector of 5"),
    ],
)
def test_wrong_rows_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
