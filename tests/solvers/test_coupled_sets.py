"""Solvers for sums over coordinates on coupled sets, against projections, cvxpy and sampling."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import costscape as cs
from costscape.checks import check_solver
from costscape.solvers.slope_windows import cell_slopes, kinked_nodes

INSIDE = [[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]
BOX = [*INSIDE, *[[-v for v in row] for row in INSIDE]]
SETS = {
    "budget": cs.Budget(total=2.0, dim=4),
    "capped budget": cs.Budget(total=2.0, dim=4, upper=[0.5, 1.0, 0.0, 2.0]),
    "simplex": cs.Simplex(total=2.0, dim=4),
    "one row": cs.Polytope(G=[*BOX, [1.0, -2.0, 0.0, 3.0]], h=[2.0] * 4 + [1.0] * 4 + [0.5]),
    "one equality": cs.Polytope(A=[[1.0, 2.0, -1.0, 0.0]], b=[0.5], G=BOX, h=[2.0] * 8),
}


def ramps(dim, limit, width=3.0):
    up = torch.eye(dim)[1:] - torch.eye(dim)[:-1]
    G = torch.cat([up, -up, torch.eye(dim), -torch.eye(dim)])
    h = torch.cat([torch.full((2 * dim - 2,), limit), torch.full((2 * dim,), width)])
    return cs.Polytope(G=G.tolist(), h=h.tolist())


CHAINS = {
    "ramps": ramps(6, 0.4),
    "tight ramps": ramps(5, 0.05),
    "one equal difference": cs.Polytope(A=[[-1.0, 1.0, 0.0, 0.0]], b=[0.3], G=BOX, h=[1.0] * 8),
    "steps up only": cs.Polytope(
        G=[*BOX, [1.0, -1.0, 0, 0], [0, 2.0, -2.0, 0]], h=[1.0] * 8 + [-0.1, 0.0]
    ),
}
ROWS = {
    "two rows and an equality": cs.Polytope(
        A=[[1.0, 1.0, 0.0, -1.0]],
        b=[0.2],
        G=[*BOX, [1.0, 1.0, 0.0, 2.0], [0.0, 1.0, -2.0, 1.0]],
        h=[1.0] * 8 + [0.4, 0.3],
    ),
    "ramps and a budget": cs.Polytope(
        G=[*BOX, [-1.0, 1.0, 0, 0], [0, -1.0, 1.0, 0], [0, 0, 1.0, -1.0], [1.0] * 4],
        h=[1.0] * 4 + [0.0] * 4 + [0.1, 0.1, 0.1, 1.5],
    ),
}
COUPLED = {
    **{name: (cs.SharedCapacity(), c) for name, c in SETS.items()},
    **{name: (cs.RampLimits(), c) for name, c in CHAINS.items()},
    **{name: (cs.CoupledRows(), c) for name, c in ROWS.items()},
}


def square(y, a):
    return (y - a) ** 2


def kinked(y, a):
    return 4 * (y - a).relu() + (a - y).relu() + 0.1 * (y - a) ** 2


def expected(f, c, batch, outcomes, seed, scale=1.0, own=True, convex=True):
    rng = torch.Generator().manual_seed(seed)
    like = c.bounds[0]
    values = scale * torch.randn(batch if own else 1, outcomes, c.dim, generator=rng).to(like)
    weights = (2 * torch.randn(batch, outcomes, generator=rng)).softmax(-1).to(like)
    task = cs.SeparableTask(f, c, convex=convex)
    return cs.ExpectedCost(task, cs.Scenarios(weights, values, own=own))


@pytest.mark.parametrize("name", COUPLED)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 5.0]))
def test_squares_are_minimised_by_the_projection_of_the_mean(name, seed, scale):
    solver, c = COUPLED[name]
    g = expected(square, c, 5, 7, seed, scale)
    mean = torch.einsum("bs,bsd->bd", g.scenarios.weights, g.scenarios.values)
    found = solver.minimise(g, c, 5)
    width = (c.bounds[1] - c.bounds[0]).max()
    # the projection is where the cost is flat: compare the costs to rounding, actions roughly
    least = g(c.project(mean)[:, None])[:, 0]
    assert torch.allclose(found.cost, least, rtol=1e-5, atol=1e-6)
    assert (found.action - c.project(mean)).abs().max() <= 5e-3 * width


@pytest.mark.parametrize("name", COUPLED)
@pytest.mark.parametrize("own", [True, False])
def test_costs_with_kinks_equal_those_of_cvxpy(name, own):
    import cvxpy as cp

    solver, c = COUPLED[name]
    g = expected(kinked, c, 6, 20, seed=1, own=own)
    found = solver.minimise(g, c, 6)
    for b in range(6):
        a = cp.Variable(c.dim)
        y = g.scenarios.values[b if own else 0].double().numpy()
        gap = y - torch.ones(20, 1).numpy() @ cp.reshape(a, (1, c.dim), order="C")
        terms = 4 * cp.pos(gap) + cp.pos(-gap) + 0.1 * cp.square(gap)
        w = g.scenarios.weights[b].double().numpy()
        program = cp.Problem(cp.Minimize(w @ cp.sum(terms, axis=1)), c.describe(a))
        program.solve(solver="CLARABEL")
        single = solver.minimise(g.rows(slice(b, b + 1)), c, 1).cost[0]
        for cost in (found.cost[b], single):  # few rows are searched otherwise than many
            assert float(cost) == pytest.approx(program.value, rel=2e-5)


def test_ramps_find_the_global_minimum_of_a_cost_with_two_dips():
    def two_dips(y, a):
        return ((a - y) ** 2 - 1) ** 2 + 0.2 * a

    c = ramps(3, 0.5)
    g = expected(two_dips, c, 4, 3, seed=2, scale=0.2, convex=False)
    found = cs.RampLimits().minimise(g, c, 4)
    fine = torch.linspace(-3, 3, 121)
    every = torch.cartesian_prod(fine, fine, fine)
    every = every[c.violation(every) <= 1e-6]
    assert (found.cost <= g(every[None]).amin(1) + 1e-4).all()


@pytest.mark.parametrize("name", COUPLED)
def test_auto_takes_the_exact_solver_and_rows_do_not_depend_on_their_batch(name):
    solver, c = COUPLED[name]
    g = expected(kinked, c, 40, 30, seed=3)
    picked = cs.Auto().pick(g, c)
    assert solver.refuses(g, c) is None
    assert isinstance(picked, cs.SharedCapacity | cs.RampLimits | cs.CoupledRows)
    whole = solver.minimise(g, c, 40)
    single = solver.minimise(g.rows(slice(7, 8)), c, 1)
    assert torch.allclose(whole.cost[7:8], single.cost, rtol=1e-6)
    width = (c.bounds[1] - c.bounds[0]).max()
    off = 1e-3 if isinstance(solver, cs.RampLimits) else 1e-5  # ramps compare flat costs
    assert (whole.action[7:8] - single.action).abs().max() <= off * width


@pytest.mark.parametrize("name", [*SETS, *ROWS])
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**6), outcomes=st.sampled_from([1, 20]))
def test_the_gap_is_never_below_the_true_one_and_small(name, seed, outcomes):
    exact, c = COUPLED[name]
    c = deepcopy(c).double()

    def jagged(y, a):
        return 4 * (y - a).relu() + (a - y).relu()

    for f in (square, kinked, jagged):
        g = expected(f, c, 2, outcomes, seed)
        least = torch.tensor([least_cost(f, g.rows(slice(b, b + 1)), c) for b in range(2)])
        spread = g(c.sample(200, torch.Generator().manual_seed(0))[None]).std(1) + 0.01 * least
        for solver in (exact, type(exact)(halvings=5)):
            found = solver.minimise(g, c, 2)
            assert (found.gap >= found.cost - least - 1e-6 * spread).all()
            if solver.halvings == 17:
                assert (found.gap <= 1e-4 * spread).all()


def least_cost(f, g, c):
    """The least cost of one x, by Clarabel."""
    import cvxpy as cp

    a, y = cp.Variable(c.dim), g.scenarios.values[0].numpy()
    gap = y - torch.ones(len(y), 1).numpy() @ cp.reshape(a, (1, c.dim), order="C")
    linear, curved = {square: (0, 1.0), kinked: (1, 0.1)}.get(f, (1, 0.0))
    terms = linear * (4 * cp.pos(gap) + cp.pos(-gap)) + curved * cp.square(gap)
    cost = g.scenarios.weights[0].numpy() @ cp.sum(terms, axis=1)
    return cp.Problem(cp.Minimize(cost), c.describe(a)).solve(solver="CLARABEL")


@pytest.mark.parametrize("name", ["budget", "ramps"])
def test_double_precision_and_rough_answers(name):
    solver, c = COUPLED[name]
    c = deepcopy(c).double()
    g = expected(kinked, c, 5, 10, seed=4)
    found, rough = (s.minimise(g, c, 5) for s in (solver, solver.coarse()))
    assert found.action.dtype == torch.float64
    assert (found.cost <= rough.cost + 1e-9).all()
    assert torch.allclose(found.cost, rough.cost, rtol=0.02)


def test_each_names_what_it_cannot_solve():
    budget, chain = SETS["budget"], CHAINS["ramps"]
    bent = expected(lambda y, a: (y - a).sin(), budget, 2, 3, 0, convex=False)
    with pytest.raises(cs.Refusal, match="convex in a"):
        cs.SharedCapacity().minimise(bent, budget, 2)
    with pytest.raises(cs.Refusal, match="one row that couples coordinates, not 10"):
        cs.SharedCapacity().minimise(expected(square, chain, 2, 3, 0), chain, 2)
    with pytest.raises(cs.Refusal, match="difference of neighbouring coordinates"):
        cs.RampLimits().minimise(expected(square, budget, 2, 3, 0), budget, 2)
    box = cs.Box(0.0, 1.0, dim=3)
    with pytest.raises(cs.Refusal, match="not a Box"):
        cs.RampLimits().minimise(expected(square, box, 2, 3, 0), box, 2)
    whole = cs.Task(lambda y, a: (y - a).square().sum(-1), budget)
    g = cs.ExpectedCost(whole, expected(square, budget, 2, 3, 0).scenarios)
    with pytest.raises(cs.Refusal, match="SeparableTask"):
        cs.SharedCapacity().minimise(g, budget, 2)


@pytest.mark.parametrize("name", COUPLED)
def test_each_passes_the_check_for_solvers(name):
    solver, c = COUPLED[name]
    check_solver(solver, expected(kinked, c, 4, 10, seed=5))


TWO_ROWS = cs.Polytope(
    G=[*BOX, [1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]], h=[1.0] * 4 + [0.0] * 4 + [0.7, 1.1]
)


def waves(y, a):
    return (y - a).abs() + 0.3 * (9 * a + y).sin()


@pytest.mark.parametrize(("f", "convex"), [(waves, False), (square, True)])
@pytest.mark.parametrize("c", [TWO_ROWS, SETS["budget"]], ids=["two rows", "budget"])
def test_the_gap_of_a_relaxation_is_never_below_the_true_one(f, convex, c):
    g = expected(f, c, 12, 3, 0, scale=2.0, convex=convex)
    found = cs.BoxRelaxation().minimise(g, c, 12)
    assert found.gap is not None
    points = torch.cartesian_prod(*[torch.linspace(0, float(c.bounds[1].max()), 13)] * 4)
    best = g(points[c.contains(points)][None]).amin(1)  # all points of a grid
    assert (found.gap >= found.cost - best - 1e-5).all()
    assert (found.gap > 1e-4).any()  # the box's answer is not feasible for all


def cvxpy_square(y, a):
    import cvxpy as cp

    return cp.sum(cp.square(y - a), axis=1)


@pytest.mark.parametrize("name", ["budget", "one row", "ramps", "box"])
def test_a_cost_for_cvxpy_does_not_make_auto_leave_the_exact_separable_solver(name):
    solver, c = COUPLED.get(name, (cs.Separable(), cs.Box(0.0, 1.0, dim=4)))
    g = expected(square, c, 2, 5, 0)
    with_cvxpy = cs.SeparableTask(square, c, convex=True, cvxpy=cvxpy_square)
    both = cs.ExpectedCost(with_cvxpy, g.scenarios)
    assert type(cs.Auto().pick(both, c)) is type(solver)
    one, other = (cs.Auto().minimise(each, c, 2) for each in (g, both))
    torch.testing.assert_close(one.action, other.action, rtol=0, atol=0)


def test_auto_relaxes_two_rows_unless_the_cost_is_convex():
    g = expected(square, TWO_ROWS, 2, 5, 0)
    assert type(cs.Auto().pick(g, TWO_ROWS)) is cs.CoupledRows
    bent = expected(waves, TWO_ROWS, 2, 5, 0, convex=False)
    assert type(cs.Auto().pick(bent, TWO_ROWS)) is cs.BoxRelaxation


def test_a_jump_of_the_slope_is_placed_at_the_kink():
    t = np.linspace(0, 1, 12)[None, None]
    kink = 0.537
    g = 2 * np.maximum(t - kink, 0) - np.maximum(kink - t, 0) + 0.3 * t**2
    x, at = kinked_nodes(t, cell_slopes(t, g))
    jump = (np.diff(at) > 1)[0, 0].nonzero()[0]
    assert len(jump) == 1
    assert x[0, 0, jump[0]] == pytest.approx(kink, abs=1e-9)
    assert at[0, 0, jump[0] + 1] - at[0, 0, jump[0]] == pytest.approx(1, abs=1e-9)


def test_a_matrix_of_the_cost_in_single_precision_is_no_obstacle():
    matrix = torch.eye(4)

    def terms(y, a):
        return (y @ matrix - a) ** 2

    for name in ("budget", "ramps and a budget"):
        solver, c = COUPLED[name]
        g = expected(terms, c, 3, 5, 0)
        same = expected(square, c, 3, 5, 0)
        one, other = (solver.minimise(each, c, 3).cost for each in (g, same))
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_decisions_do_not_depend_on_the_number_of_threads():
    c = cs.Box(-1.0, 1.0, dim=4)
    g = expected(kinked, c, 300, 200, seed=6)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(cs.Separable().minimise(g, c, 300))
    torch.set_num_threads(before)
    torch.testing.assert_close(found[0].cost, found[1].cost, rtol=1e-6, atol=0)
    assert (found[0].action - found[1].action).abs().max() <= 1e-3
