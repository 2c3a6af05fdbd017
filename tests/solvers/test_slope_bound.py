"""The bound that ProjectedAdam states, against exact answers for the same costs."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import costscape as cs
from costscape.solvers.slope_bound import SlopeBound, least_on_line, lowest_vertex

D = torch.float64
SETS = {
    "box": cs.Box(0.0, 1.0, dim=3).double(),
    "simplex": cs.Simplex(total=1.5, dim=3).double(),
    "budget": cs.Budget(total=1.2, dim=3).double(),
    "capped": cs.Budget(total=1.2, dim=3, upper=0.5).double(),
    # the same as "capped", which an exact solver answers
    "polytope": cs.Polytope(
        G=[[1.0, 1.0, 1.0], *torch.eye(3).tolist(), *(-torch.eye(3)).tolist()],
        h=[1.2, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0],
    ).double(),
}
EXACT = {"polytope": "capped"}


def kinks(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


def squares(y, a):
    return (y - a) ** 2


def objective(terms, C, separable, **facts):
    rng = torch.Generator().manual_seed(4)
    y = 2 * torch.rand(20, 6, 3, generator=rng, dtype=D) - 0.5
    w = torch.rand(20, 6, generator=rng, dtype=D)
    task = (
        cs.SeparableTask(terms, C, convex=True)
        if separable
        else cs.Task(lambda y, a: terms(y, a).sum(-1), C, **facts)
    )
    return cs.ExpectedCost(task, cs.Scenarios(w / w.sum(1, keepdim=True), y, own=True))


@pytest.mark.parametrize("name", ["box", "simplex", "capped", "polytope"])
@pytest.mark.parametrize(("terms", "most"), [(kinks, 0.02), (squares, 1e-4)])
def test_the_best_cost_lies_within_the_stated_gap(name, terms, most):
    C = SETS[name]
    found = cs.ProjectedAdam().minimise(objective(terms, C, False, convex=True), C, 20)
    same = SETS[EXACT.get(name, name)]
    exact = cs.Auto().minimise(objective(terms, same, True), same, 20)
    miss = found.cost - exact.cost
    assert (miss <= found.gap + 1e-9).all()
    assert (found.gap <= most * found.cost).all()


def test_actions_that_are_not_the_best_have_a_gap():
    C = SETS["budget"]
    hasty = cs.ProjectedAdam(steps=3, starts=1)
    found = hasty.minimise(objective(squares, C, False, convex=True), C, 20)
    miss = found.cost - cs.Auto().minimise(objective(squares, C, True), C, 20).cost
    assert miss.max() > 1e-3
    assert (found.gap >= miss - 1e-9).all()


def test_no_bound_is_stated_without_a_promise():
    brief, C = cs.ProjectedAdam(steps=2), SETS["box"]
    assert brief.minimise(objective(squares, C, False), C, 20).gap is None


@settings(max_examples=25)  # each makes a set by 2 d + 2 linear programs
@given(st.integers(2, 8), st.integers(1, 8), st.integers(-6, 6), st.integers(0, 10**6))
def test_the_least_of_a_line_on_a_polytope_is_that_of_a_linear_program(d, m, power, seed):
    rng = np.random.default_rng(seed)
    G, inner, size = rng.normal(size=(m, d)), rng.uniform(size=d), 10.0**power
    h = np.concatenate([G @ inner + rng.uniform(size=m), np.ones(d), np.zeros(d)])
    G = np.concatenate([G, np.eye(d), -np.eye(d)])
    slope = rng.normal(size=d)
    C = cs.Polytope(G=torch.from_numpy(G), h=torch.from_numpy(size * h))
    found = float(least_on_line(C, torch.from_numpy(slope)[None])) / size
    exact = linprog(slope, A_ub=G, b_ub=h, bounds=(None, None)).fun
    assert exact - 1e-6 <= found <= exact + 1e-9


def test_a_flat_line_has_the_value_nought_on_a_polytope():
    assert least_on_line(SETS["polytope"], torch.zeros(2, 3, dtype=D)).tolist() == [0.0, 0.0]


def test_the_bound_of_a_linear_cost_is_its_least_value_and_nan_gives_none():
    C, slope = SETS["capped"], torch.tensor([[[-3.0, -1.0, 2.0]], [[1.0, 2.0, 3.0]]], dtype=D)
    bound, spoilt = SlopeBound(4), SlopeBound(4)
    for k in range(4):
        a = C.sample(2, torch.Generator().manual_seed(k))[:, None]
        bound.add(a, (slope * a).sum(-1), slope, 1.0)
        spoilt.add(a, (slope * a).sum(-1), slope / (slope < 3), 1.0)
    assert torch.allclose(bound.least(C), torch.tensor([-2.0, 0.0], dtype=D))
    assert spoilt.least(C).tolist() == [pytest.approx(-2.0), -torch.inf]
    some = C.sample(200, torch.Generator().manual_seed(9))
    vertex = lowest_vertex(C, slope[:, 0])
    assert ((slope[:, 0] @ some.T).amin(1) >= (slope[:, 0] * vertex).sum(-1) - 1e-9).all()
