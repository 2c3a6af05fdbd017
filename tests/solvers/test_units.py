"""Units of actions and costs change no decision: millions of pieces are decided as single ones."""

import pytest
import torch

import costscape as cs

EYE = torch.eye(3).double()
SQUARE, ONES = torch.cat([EYE, -EYE]), torch.ones(6).double()
UP = torch.tensor([[-1.0, 1, 0], [0, -1, 1], [1, -1, 0], [0, 1, -1]]).double()
TWO = torch.tensor([[1.0, 1, 0], [0, 1, 2]]).double()


def chain(u):
    h = torch.cat([3 * ONES[:3], 0 * ONES[:3], 0.3 * ONES[:4]])
    return cs.Polytope(G=torch.cat([SQUARE, UP]), h=u * h)


def two_rows(u):
    h = torch.cat([3 * ONES[:3], 0 * ONES[:3], torch.tensor([1.5, 3.0]).double()])
    return cs.Polytope(G=torch.cat([SQUARE, TWO]), h=u * h)


def points(u):
    rng = torch.Generator().manual_seed(1)
    return cs.Finite(u * 3 * torch.rand(40, 3, generator=rng).double())


SETS = {
    "box": lambda u: cs.Box(torch.zeros(3).double(), 3 * u, dim=3),
    "budget": lambda u: cs.Budget(total=torch.tensor(2.5 * u).double(), dim=3),
    "capped": lambda u: cs.Budget(total=torch.tensor(2.5 * u).double(), dim=3, upper=u),
    "simplex": lambda u: cs.Simplex(total=torch.tensor(2.5 * u).double(), dim=3),
    "ramps": chain,
    "two rows": two_rows,
    "finite": points,
    "whole": lambda u: cs.Whole(SETS["budget"](u), step=torch.tensor(0.25 * u).double()),
}
UNITS = [1e-8, 1e8]


def problem(c, u, money, joint=False, program=False, single=False):
    def terms(y, a):
        return money * (20 * (y - a).relu() + 5 * (a - y).relu() + (y - a) ** 2 / u)

    def cost(y, a):
        return terms(y, a).sum(-1) + money * (a.sum(-1) - u) ** 2 / u

    def written(y, a):
        import cvxpy as cp

        gap = y - torch.ones(len(y), 1).numpy() @ a
        apart = cp.sum(20 * cp.pos(gap) + 5 * cp.pos(-gap) + cp.square(gap) / u, axis=1)
        return money * (apart + cp.square(cp.sum(a) - u) / u)

    rng = torch.Generator().manual_seed(0)
    y = 3 * torch.rand(2, 12, 3, generator=rng).double()
    w = torch.randn(2, 12, generator=rng).double().softmax(-1)
    if joint:
        task = cs.Task(cost, c, convex=True, cvxpy=written if program else None)
    else:
        task = cs.SeparableTask(terms, c, convex=True)
    if single:
        task, y, w = task.float(), y.float(), w.float()
    return cs.ExpectedCost(task, cs.Scenarios(w, u * y, own=True))


def decided(name, u, money, **kind):
    g = problem(SETS[name](u), u, money, **kind)
    return cs.Auto().minimise(g, g.task.feasible, 2).action.double() / u


@pytest.mark.parametrize(
    ("name", "single"),
    [*((name, False) for name in SETS), *((name, True) for name in ("box", "budget", "ramps"))],
)
def test_separable_costs(name, single):
    expected = decided(name, 1.0, 1.0)
    # costs are flat near their least one, and Adam's last steps are of this length
    off = 5e-3 if name == "two rows" else 2e-3 if single else 1e-4
    for u, money in [(1e-8, 1.0), (1e8, 1e-8)]:
        found = decided(name, u, money, single=single)
        assert (found - expected).abs().max() <= 3 * off, (u, money)


@pytest.mark.parametrize("name", ["box", "budget", "finite", "whole"])
def test_joint_costs(name):
    expected = decided(name, 1.0, 1.0, joint=True)
    for u, money in [(1e-8, 1.0), (1e8, 1e-8)]:
        found = decided(name, u, money, joint=True)
        assert (found - expected).abs().max() <= 1e-3, (u, money)


@pytest.mark.parametrize("name", ["budget", "two rows"])
def test_convex_programs(name):
    expected = decided(name, 1.0, 1.0, joint=True, program=True)
    for u, money in [*((u, 1.0) for u in UNITS), (1e8, 1e8), (1e-8, 1e8)]:
        found = decided(name, u, money, joint=True, program=True)
        assert (found - expected).abs().max() <= 1e-5, (u, money)
