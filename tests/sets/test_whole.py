"""Whole units against lists of all their points."""

from itertools import product

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from costscape.sets import Box, Budget, Finite, Polytope, Simplex, Whole
from costscape.sets.counts import ListedCounts, RowCounts
from costscape.sets.searched_counts import SearchedCounts
from costscape.sets.unit_row import unit_row

LEVEL = 1e-5
SIGNS = [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
TWO_ROWS = {"G": [[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], *SIGNS]}
ONE_ROW = {"G": [[2.0, 3.0, -1.0], [0.0, 0.0, 1.0], *SIGNS], "h": [7.0, 4.0, 0.0, 0.0, 0.0]}

MAKE = {
    "box": lambda: Box([0.0, 1.0], [60.0, 30.0], step=12.0),
    "box with a continuous coordinate": lambda: Box([1.0, 0.0], [9.5, 1.0], step=[2, None]),
    "budget with caps": lambda: Whole(Budget(total=40.0, dim=3, upper=[30.0, 40.0, 13.0]), 12.0),
    "budget, several steps": lambda: Whole(Budget(total=10.0, dim=3), [1.0, 2.0, 1.5]),
    "simplex": lambda: Whole(Simplex(total=6.0, dim=4)),
    "simplex, several steps": lambda: Whole(Simplex(total=6.0, dim=3), [1.0, 2.0, 3.0]),
    "one row": lambda: Whole(Polytope(**ONE_ROW)),
    "two rows": lambda: Whole(Polytope(**TWO_ROWS, h=[7.0, 8.0, 0.0, 0.0, 0.0])),
}


def every_point(c):
    """By trying all multiples between the bounds of the base."""
    lower, upper = (end.double().tolist() for end in c.base.bounds)
    step, origin = c.step.double().tolist(), c.origin.double().tolist()
    values = [
        [o + s * k for k in range(-100, 101) if low - 1e-6 <= o + s * k <= high + 1e-6]
        for low, high, s, o in zip(lower, upper, step, origin, strict=True)
    ]
    grid = torch.tensor(list(product(*values)), dtype=c.step.dtype)
    return grid[c.base.contains(grid)]


@pytest.mark.parametrize("name", [n for n in MAKE if "continuous" not in n])
def test_points_bounds_samples_and_projections_are_those_of_the_list(name, rng):
    c, known = MAKE[name](), every_point(MAKE[name]())
    assert {tuple(p) for p in c.points(1000).tolist()} == {tuple(p) for p in known.tolist()}
    assert c.points(len(known) - 1) is None
    assert torch.equal(c.bounds[0], known.amin(0))
    assert torch.equal(c.bounds[1], known.amax(0))
    drawn = Finite(known)._nearest(c.sample(5000, rng()))
    counts = (drawn[:, None] == known).all(-1).sum(0)
    assert stats.chisquare(counts.numpy()).pvalue > LEVEL
    a = known.mean(0) + 2 * known.std(0) * torch.randn(200, c.dim, generator=rng())
    away = (a - c.project(a)).norm(dim=-1)
    assert torch.allclose(away, (a - Finite(known).project(a)).norm(dim=-1), atol=1e-4)


def test_the_forms_are_those_that_the_rows_allow():
    kinds = {"budget with caps": RowCounts, "one row": RowCounts, "two rows": ListedCounts}
    assert all(isinstance(MAKE[name]().counts, kind) for name, kind in kinds.items())
    uneven = Whole(Budget(total=5.0, dim=2), [1.0, 2**0.5])
    assert isinstance(uneven.counts, ListedCounts)
    assert uneven.exact


def test_a_box_with_steps_counts_from_its_lower_bound():
    box = Box([1.0, 0.0], [30.0, 1.0], step=[12.0, 0.25])
    assert isinstance(box, Whole)
    assert box.bounds[1].tolist() == [25.0, 1.0]
    assert box.project(torch.tensor([20.0, 0.4])).tolist() == [25.0, 0.5]
    assert box.violation(torch.tensor([[14.0, 0.5], [25.0, 1.5]])).tolist() == [1.0, 0.5]
    assert box.by_coordinate
    assert Whole(Box(5.0, 60.0, dim=1), 12.0).bounds[0] == 12  # multiples, from 0


def test_samples_of_a_continuous_coordinate_are_uniform(rng):
    a = Box([0.0, 2.0], [4.0, 3.0], step=[1, None]).sample(5000, rng())
    assert stats.kstest(a[:, 1].numpy(), stats.uniform(2, 1).cdf).pvalue > LEVEL
    assert stats.chisquare(torch.bincount(a[:, 0].long()).numpy()).pvalue > LEVEL


def test_too_many_points_to_list_are_searched(rng):
    c = Whole(Polytope(**TWO_ROWS, h=[300.5, 400.5, 0.0, 0.0, 0.0]))
    assert isinstance(c.counts, SearchedCounts)
    assert not c.exact
    assert c.bounds[1].tolist() == [300, 150, 133]
    a = c.sample(50, rng())
    assert c.contains(a).all()
    assert len(a.unique(dim=0)) > 40
    assert torch.equal(c.project(a), a)
    # no coordinate is farther from the projection onto the base than a rounded one can be
    far = 1000 * torch.randn(10, 3, generator=rng())
    near = c.project(far)
    assert c.contains(near).all()
    assert (near - c.base.project(far)).abs().max() <= 3


@given(st.integers(0, 2**31))
@settings(deadline=None, max_examples=40)
def test_allocations_are_the_least_of_all(seed):
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 4)), rng.integers(1, 6, 4).tolist()
    price = torch.tensor(rng.integers(-2, 4, d)).double()
    price[0] = price[0] or 1
    size, equal = size[:d], bool(rng.integers(2))
    points = torch.tensor(list(product(*map(range, size)))).double()
    used = points @ price
    capacity = float(used[rng.integers(len(used))])
    row = unit_row(0.3 * price, 0.3 * capacity, size, equal)
    cost = torch.tensor(rng.normal(size=(3, d, max(size))))
    if convex := bool(rng.integers(2)):
        cost = cost.sort(-1).values.cumsum(-1)
    k = row.allocate(cost, convex=convex)
    fits = (used - capacity).abs() < 1e-9 if equal else used <= capacity + 1e-9
    total = sum(cost[:, i][:, points[:, i].long()] for i in range(d))[:, fits]
    found = cost.gather(-1, k[..., None]).sum((1, 2))
    assert torch.allclose(found, total.min(1).values)
    taken = k.double() @ price
    assert ((taken - capacity).abs() < 1e-9 if equal else taken <= capacity + 1e-9).all()
    drawn = row.draw(row.ways(), 20, torch.Generator().manual_seed(0)).double() @ price
    assert ((drawn - capacity).abs() < 1e-9 if equal else drawn <= capacity + 1e-9).all()


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: Box(0.0, 1.0, dim=2, step=0.0), ValueError, r"step\[0\] is 0 \(2 such\)"),
        (lambda: Box(0.0, 1.0, dim=2, step=[1.0, -1.0]), ValueError, r"step\[1\] is -1"),
        (lambda: Box(2.0, 1.0, dim=2, step=1.0), ValueError, "lower 2 > upper 1"),
        (lambda: Whole(Box(13.0, 23.0, dim=1), 12.0), ValueError, "no multiple of 12 .* 13 and"),
        (lambda: Whole(Simplex(total=1.0, dim=2), 0.3), ValueError, "at least one allowed point"),
        (lambda: Whole(Budget(total=1.0, dim=2), [1.0, None]), ValueError, "Only a Box may have"),
        (lambda: Whole(Finite([[1.0]])), TypeError, "but got Finite"),
        (lambda: Whole(Box(0.0, 1.0, dim=2), [1.0] * 3), ValueError, r"got shape \(3,\)"),
    ],
)
def test_says_what_is_wrong(make, kind, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # it would speak first
    with pytest.raises(kind, match=words):
        make()
