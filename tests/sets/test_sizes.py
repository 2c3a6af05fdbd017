"""Coordinates of different size, thin sets, sets far from 0, numbers too large or too small."""

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.sets.unit_row import unit_row

SQUARE = [[1, 0], [0, 1], [-1, 0], [0, -1]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: cs.Box([0.0, 0.0], [1e6, 1e-3]),
        lambda: cs.Polytope(G=SQUARE, h=[1e6, 1e-3, 0, 0]),
        lambda: cs.Budget(total=1e6, dim=2, upper=[1e6, 1e-3]),
    ],
)
def test_each_coordinate_has_its_own_tolerance(make):
    c = make()
    assert not c.contains(torch.tensor([5.0, 5.0]))
    assert c.contains(torch.tensor([5.0, 1e-3]))
    assert c.contains(c.project(torch.tensor([[5e6, 5.0], [-1.0, 2e-3]]))).all()


def test_a_set_far_from_0_has_the_tolerance_of_its_width():
    c = cs.Box(1e6, 1e6 + 1, dim=1)
    assert not c.contains(torch.tensor([1e6 + 8]))
    assert not cs.Simplex(total=1e-8, dim=2).contains(torch.tensor([5e-6, 5e-6]))


def test_a_polytope_far_from_0_keeps_its_width_in_single_precision():
    c = cs.Polytope(G=SQUARE, h=[1e6 + 1, 1e6 + 1, -1e6, -1e6])
    inside = torch.tensor([1e6 + 0.5, 1e6 + 0.25])
    assert torch.equal(c.project(inside), inside)
    assert len(c.sample(50, torch.Generator().manual_seed(0)).unique(dim=0)) > 20


@pytest.mark.parametrize("thin", [1e-6, 1e-8, 1e-9, 1e-10, 1e-12])
def test_thin_polytopes_have_points_and_projections(thin):
    G = torch.tensor([*SQUARE, [1, 1], [-1, -1]]).double()
    c = cs.Polytope(G=G, h=torch.tensor([1, 1, 0, 0, 1 + thin, -1]).double())
    a = c.sample(50, torch.Generator().manual_seed(0))
    assert a.isfinite().all()
    assert c.contains(a).all()
    near = c.project(torch.tensor([3.0, 1.0]).double())
    assert near.sum() == pytest.approx(1, abs=2 * thin + 1e-8)
    assert near[0] == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cs.Box(-3e38, 3e38, dim=1), "at most 1.8e\\+19 in torch.float32, but lower has"),
        (lambda: cs.Simplex(total=1e30, dim=2), "total has 1e\\+30"),
        (lambda: cs.Budget(total=1e-30, dim=2), "whose square is not 0"),
        (lambda: cs.Finite([[1e25]]), "actions has 1e\\+25"),
    ],
)
def test_numbers_whose_squares_are_lost_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
    cs.Box(torch.tensor([-3e38]).double(), torch.tensor([3e38]).double())


def test_a_capacity_that_rounding_leaves_below_0_is_0():
    price, size = torch.tensor([-0.6, -0.6]).double(), [5, 4]
    row = unit_row(price, 0.3 * -14.0, size, equal=False)
    cost = torch.tensor(np.random.default_rng(0).normal(size=(1, 2, 5)))
    assert row.allocate(cost).tolist() == [[4, 3]]
