"""What holds for any set, cost and rows that hypothesis makes."""

import sys
from pathlib import Path

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import costscape as cs

sys.path.insert(0, str(Path(__file__).parent))

from strategies import costs, pairs, sets


@given(c=sets(), terms=costs(), apart=st.booleans(), double=st.booleans())
@settings(deadline=None, max_examples=12)
def test_decisions_lie_in_their_set_and_cost_no_more_than_its_samples(c, terms, apart, double):
    c = c.double() if double else c
    low, high = c.bounds
    y = low + torch.rand(2, 4, c.dim).to(low) * (high - low)
    task = cs.SeparableTask(terms, c) if apart else cs.Task(lambda y, a: terms(y, a).sum(-1), c)
    g = cs.ExpectedCost(task, cs.Scenarios(torch.full((2, 4), 0.25).to(low), y, own=True))
    found = cs.Auto().minimise(g, c, 2)
    assert c.contains(found.action).all()
    some = g(c.sample(16, torch.Generator().manual_seed(1))[None])
    least, most = some.amin(1), some.amax(1)
    assert (found.cost <= least + 0.02 * (most - least) + 1e-4 * most.abs()).all()


@given(c=sets(), far=st.floats(0.0, 3.0))
@settings(deadline=None, max_examples=30)
def test_projections_lie_in_their_set_and_move_no_point_of_it(c, far):
    low, high = c.bounds
    away = low + (1 + 2 * far) * torch.rand(5, c.dim) * (high - low) - far * (high - low)
    near = c.project(away)
    assert c.contains(near).all()
    assert ((c.project(near) - near).abs() <= 4 * c.tolerances).all()


@given(rows=pairs())
@settings(deadline=None, max_examples=15)
def test_neighbours_decide_any_rows(rows):
    x, y = rows
    task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(-100.0, 100.0, dim=1), convex=True)
    a = cs.NearestNeighbours(task, k=3).fit(x, y).decide(x)
    assert np.isfinite(a).all()
    assert (np.abs(a) <= 100).all()
