"""Sets for each row: solvers against closed forms, cvxpy and one row at a time."""

import cvxpy as cp
import numpy as np
import pytest
import torch

import costscape as cs
from costscape.solvers.row_problems import Scaled

B, S, D = 6, 41, 3
RNG = torch.Generator().manual_seed(0)
Y = 4 * torch.rand(B, S, D, generator=RNG)
CAPS = 0.5 + 3 * torch.rand(B, D, generator=RNG)
TOTALS = 1 + 6 * torch.rand(B, generator=RNG)
OUTCOMES = cs.Scenarios(torch.full((B, S), 1 / S), Y)
BOX = cs.Box(0.0, 4.0, dim=D)


def lost(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


def bumps(y, a):
    return (y - a).abs() + (6 * (a - y)).sin()


SETS = {
    "box": cs.Box(0.0, CAPS),
    "budget": cs.Budget(total=TOTALS, dim=D),
    "capped": cs.Budget(total=TOTALS, dim=D, upper=CAPS),
    "simplex": cs.Simplex(total=TOTALS, dim=D),
    "whole": cs.Box(0.0, CAPS, step=0.25),
}


CONVEX = [(name, lost, True) for name in SETS]


@pytest.mark.parametrize(
    ("name", "terms", "convex"), [*CONVEX, ("box", bumps, False), ("whole", bumps, False)]
)
def test_rows_are_solved_as_if_each_were_alone(name, terms, convex):
    C = SETS[name]
    g = cs.ExpectedCost(cs.SeparableTask(terms, BOX, convex=convex), OUTCOMES)
    found = cs.Auto().minimise(g, C, B)
    assert C.contains(found.action).all()
    assert torch.allclose(g(found.action[:, None])[:, 0], found.cost, atol=1e-5)
    for i in range(B):
        alone = cs.Auto().minimise(g.rows(slice(i, i + 1)), C.row(i), 1)
        assert abs(float(found.cost[i] - alone.cost[0])) < 1e-3


def test_capacities_cut_the_quantile():
    g = cs.ExpectedCost(cs.SeparableTask(lost, BOX, convex=True), OUTCOMES)
    a = cs.Auto().minimise(g, SETS["box"], B).action
    quantile = Y.sort(1).values[:, int(0.75 * S)]  # 3 / (3 + 1), between two outcomes never
    assert torch.allclose(a, torch.minimum(quantile, CAPS), atol=1e-4)


@pytest.mark.parametrize("name", ["budget", "capped"])
def test_budgets_by_row_cost_as_little_as_cvxpy_finds(name):
    C = SETS[name]
    g = cs.ExpectedCost(cs.SeparableTask(lost, BOX, convex=True), OUTCOMES)
    found = cs.Auto().minimise(g, C, B)
    for i in range(B):
        a, y = cp.Variable((1, D)), Y[i].numpy()
        cost = cp.sum(3 * cp.pos(y - a) + cp.pos(a - y)) / S
        caps = CAPS[i].numpy() if name == "capped" else np.inf
        limits = [a >= 0, cp.sum(a) <= float(TOTALS[i])]
        limits += [a <= caps[None]] if name == "capped" else []
        least = cp.Problem(cp.Minimize(cost), limits).solve()
        assert abs(float(found.cost[i]) - least) < 1e-3


def test_quadratic_costs_on_budgets_have_a_closed_form():
    """min |y - a|^2 on a budget is the projection of the mean."""
    square = cs.SeparableTask(lambda y, a: (y - a) ** 2, BOX, convex=True)
    g = cs.ExpectedCost(square, OUTCOMES)
    for C in (SETS["budget"], SETS["capped"], SETS["simplex"]):
        a = cs.Auto().minimise(g, C, B).action
        assert torch.allclose(a, C.project(Y.mean(1)), atol=2e-3)


@pytest.mark.parametrize(
    "solver", [cs.ProjectedAdam(), cs.MirrorDescent(), cs.FrankWolfe(), cs.Convex()]
)
def test_every_solver_serves_rows(solver):
    program = lambda y, a: cp.sum(cp.square(y - a), axis=1)  # noqa: E731
    smooth = lambda y, a: ((y - a) ** 2).sum(-1)  # noqa: E731
    task = cs.Task(smooth, BOX, convex=True, cvxpy=program)
    g, C = cs.ExpectedCost(task, OUTCOMES), SETS["budget"]
    a = solver.minimise(g, C, B, start=C.project(torch.ones(B, D))).action
    assert torch.allclose(a, C.project(Y.mean(1)), atol=0.02)


def test_an_objective_that_knows_no_rows_is_solved_too():
    target = torch.tensor([[0.2, 0.9, 3.0]] * B)
    C = SETS["capped"]
    a = cs.Auto().minimise(lambda a: ((a - target[:, None]) ** 2).sum(-1), C, B).action
    assert torch.allclose(a, C.project(target), atol=0.02)


def test_the_scaled_objective_is_the_objective_at_the_scaled_action():
    g = cs.ExpectedCost(cs.SeparableTask(lost, BOX, convex=True), OUTCOMES)
    h = Scaled(g, torch.ones(B, D), CAPS)
    u = torch.rand(1, 4, D, generator=torch.Generator().manual_seed(1))
    assert torch.equal(h(u), g(1 + CAPS[:, None] * u))
    assert torch.equal(h.rows(slice(2, 4)).terms(u), h.terms(u)[2:4])


def test_too_few_rows_are_named():
    g = cs.ExpectedCost(cs.SeparableTask(lost, BOX, convex=True), OUTCOMES)
    with pytest.raises(ValueError, match="one row for each x, 6 in all, but have 2"):
        cs.Auto().minimise(g, cs.Box(0.0, CAPS[:2]), B)
