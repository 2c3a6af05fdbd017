"""Solvers of whole units against brute force."""

import cvxpy as cp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import (
    Auto,
    Box,
    Budget,
    Exhaustive,
    ExpectedCost,
    MixedInteger,
    Polytope,
    Refusal,
    Scenarios,
    Separable,
    SeparableTask,
    Simplex,
    Task,
    Whole,
    WholeSearch,
    WholeSeparable,
)
from costscape.checks import check_solver
from costscape.solvers.projected_adam import ProjectedAdam

B, S = 5, 7


def kinks(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


def jumps(y, a):
    return kinks(y, a) + 4 * (a > 0) + (a > y + 2) + (3 * a).sin()


def together(y, a):
    return kinks(y, a).sum(-1) + 0.2 * (a.sum(-1) - 5) ** 2


def kinks_cvxpy(y, a):
    return cp.sum(3 * cp.pos(y - a) + cp.pos(a - y), axis=1)


def surface(task, seed, shared=True):
    rng = torch.Generator().manual_seed(seed)
    weights = (2 * torch.randn(B, S, generator=rng)).softmax(-1)
    values = 6 * torch.rand(1 if shared else B, S, task.feasible.dim, generator=rng)
    return ExpectedCost(task, Scenarios(weights, values, own=not shared))


def least(g):
    points = g.task.feasible.points(10**5)
    return g(points[None]).min(1).values


def random_set(rng):
    d = int(torch.randint(1, 4, (1,), generator=rng))
    step = torch.randint(1, 5, (d,), generator=rng) * 0.5
    total = float(torch.randint(4, 9, (1,), generator=rng))
    upper = total * torch.rand(d, generator=rng)
    row = torch.randint(-1, 3, (d,), generator=rng).float()
    square = torch.cat([torch.eye(d), -torch.eye(d)])
    sides = torch.cat([upper + 1, torch.zeros(d)])
    kinds = [
        lambda: Box(0.0, upper, step=step),
        lambda: Whole(Budget(total=total, dim=d, upper=upper), step),
        lambda: Whole(Budget(total=total, dim=d)),
        lambda: Whole(Simplex(total=total, dim=d), 0.5),
        lambda: (
            Whole(Polytope(G=torch.cat([square, row[None]]), h=torch.cat([sides, sides[:1]])))
            if row.ne(0).any()
            else Box(0.0, upper, step=1.0)
        ),
    ]
    return kinds[int(torch.randint(len(kinds), (1,), generator=rng))]()


@given(st.integers(0, 2**31), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_separable_costs_are_solved_exactly(seed, shared, convex):
    feasible = random_set(torch.Generator().manual_seed(seed))
    task = SeparableTask(kinks if convex else jumps, feasible, convex=convex)
    g = surface(task, seed, shared)
    found = WholeSeparable().minimise(g, feasible, B)
    assert torch.allclose(found.cost, least(g), atol=1e-4)
    assert torch.allclose(found.cost, g(found.action[:, None])[:, 0], atol=1e-4)


@given(st.integers(0, 2**31))
@settings(deadline=None, max_examples=15)
def test_a_search_stays_within_its_bound(seed):
    feasible = random_set(torch.Generator().manual_seed(seed))
    g = surface(SeparableTask(kinks, feasible, convex=True), seed)
    found = WholeSearch().minimise(g, feasible, B)
    best = least(g)
    assert (found.cost >= best - 1e-4).all()
    assert found.gap is None or (found.cost - found.gap <= best + 1e-3).all()


TWO_ROWS = Whole(
    Polytope(G=[[1, 2], [3, 1], [-1, 0], [0, -1]], h=[7.0, 9.0, 0.0, 0.0]), [1.0, 0.5]
)
MANY = Box(0.0, 400.0, dim=4, step=1)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (SeparableTask(jumps, Box(0.0, 60.0, dim=2, step=12.0)), WholeSeparable),
        (SeparableTask(jumps, Whole(Simplex(total=4.0, dim=3))), WholeSeparable),
        (SeparableTask(kinks, TWO_ROWS, convex=True), Exhaustive),
        (Task(together, Box(0, 1, dim=6, step=1)), Exhaustive),
        (Task(together, Box(0.0, 40.0, dim=4, step=1)), WholeSearch),
        (
            Task(lambda y, a: kinks(y, a).sum(-1), MANY, convex=True, cvxpy=kinks_cvxpy),
            MixedInteger,
        ),
    ],
)
def test_auto_takes_the_strongest_that_serves_and_it_keeps_the_contract(task, kind):
    g = surface(task, 0)
    solver = Auto().pick(g, task.feasible)
    assert isinstance(solver, kind)
    check_solver(solver, g)
    assert task.feasible.contains(Auto(rough=True).minimise(g, task.feasible, B).action).all()


@pytest.mark.parametrize("shared", [True, False])
def test_integer_programs_find_the_least_cost(shared):
    task = SeparableTask(kinks, TWO_ROWS, convex=True, cvxpy=kinks_cvxpy)
    g = surface(task, 1, shared)
    found = MixedInteger().minimise(g, TWO_ROWS, B)
    assert torch.allclose(found.cost, least(g), rtol=2e-4)


def test_integer_programs_refuse_a_cost_that_is_not_piecewise_linear():
    task = Task(
        lambda y, a: ((y - a) ** 2).sum(-1),
        MANY,
        convex=True,
        cvxpy=lambda y, a: cp.sum(cp.square(y - a), axis=1),
    )
    g = surface(task, 0)
    assert "piecewise linear" in MixedInteger().refuses(g, MANY)
    with pytest.raises(Refusal, match="needs a set one can move in"):
        ProjectedAdam().minimise(g, MANY, B)


def test_a_continuous_coordinate_beside_whole_ones():
    mixed = Box([0.0, 0.0], [6.0, 6.0], step=[1.5, None])
    task = SeparableTask(lambda y, a: (y - a) ** 2, mixed, convex=True)
    g = surface(task, 2)
    found = WholeSeparable().minimise(g, mixed, B)
    whole = surface(SeparableTask(task.f_terms, Box(0.0, 6.0, dim=2, step=1.5), convex=True), 2)
    free = Separable().minimise(g, Box(0.0, 6.0, dim=2), B).action
    exact = WholeSeparable().minimise(whole, whole.task.feasible, B).action
    assert torch.equal(found.action[:, 0], exact[:, 0])
    assert torch.allclose(found.action[:, 1], free[:, 1])
    searched = WholeSearch().minimise(g, mixed, B)
    assert torch.allclose(searched.cost, found.cost, rtol=1e-4)


def test_a_search_of_coupled_costs_agrees_with_enumeration():
    rng = torch.Generator().manual_seed(3)
    off = 0
    for seed in range(5):
        feasible = random_set(rng)
        g = surface(Task(together, feasible), seed)
        off += int((WholeSearch().minimise(g, feasible, B).cost > least(g) + 1e-4).sum())
    assert off <= 1  # of 25


def test_the_gap_of_a_convex_search_is_small():
    g = surface(SeparableTask(kinks, MANY, convex=True), 0)
    found = WholeSearch().minimise(g, MANY, B)
    assert found.gap is not None
    assert torch.allclose(found.cost, WholeSeparable().minimise(g, MANY, B).cost)
    assert (found.gap <= 4 * 3).all()  # half a step in each coordinate, at a slope of at most 3
    assert WholeSearch().minimise(lambda a: a.sum(-1), MANY, B).gap is None
