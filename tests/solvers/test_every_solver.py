"""Every solver against what every solver must do."""

import pytest
import torch

from costscape import (
    Box,
    BoxRelaxation,
    Budget,
    Convex,
    CoupledRows,
    Exhaustive,
    ExpectedCost,
    Finite,
    FrankWolfe,
    MirrorDescent,
    Polytope,
    ProjectedAdam,
    Scenarios,
    Separable,
    SeparableTask,
    SharedCapacity,
    Simplex,
    Task,
)
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex
from costscape.solvers import Auto, Solution, Solver

B, S = 6, 30


def surface(task, batch=B, shared=True, seed=0, dim=2, spread=1.0):
    rng = torch.Generator().manual_seed(seed)
    weights = (2 * torch.randn(batch, S, generator=rng)).softmax(-1)
    values = spread * torch.randn(1 if shared else batch, S, dim, generator=rng)
    like = task.feasible.bounds[0]
    return ExpectedCost(task, Scenarios(weights.to(like), values.to(like)))


def bowl(y, a):
    """Not a sum over coordinates: the coordinates of a meet in the square of their sum."""
    return ((y - a) ** 2).sum(-1) + 0.5 * (y.sum(-1) - a.sum(-1)) ** 2


def bowl_cvxpy(y, a):
    import cvxpy as cp

    return cp.sum(cp.square(y - a), axis=1) + 0.5 * cp.square(y.sum(1) - cp.sum(a))


def square(y, a):
    return (y - a) ** 2


TWO_ROWS = {
    "G": [[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]],
    "h": [1.0, 0.5, 1.0, 1.0, 1.0, 1.0],
}
TRIANGLE = {"G": [[-1.0, 0.0], [0.0, -1.0], [1.0, 2.0]], "h": [0.0, 0.0, 2.0]}
CASES = {
    "separable-convex": (Separable(), synthetic_convex()),
    "separable-nonconvex": (Separable(), synthetic_nonconvex()),
    "adam-box": (ProjectedAdam(), Task(bowl, Box(-1.0, 1.0, dim=2))),
    "adam-polytope": (ProjectedAdam(), Task(bowl, Polytope(**TRIANGLE))),
    "mirror-simplex": (MirrorDescent(), Task(bowl, Simplex(total=2.0, dim=2))),
    "mirror-budget": (MirrorDescent(), Task(bowl, Budget(total=2.0, dim=2, upper=0.8))),
    "convex": (Convex(), Task(bowl, Polytope(**TRIANGLE), convex=True, cvxpy=bowl_cvxpy)),
    "frank-wolfe": (FrankWolfe(), Task(bowl, Simplex(total=2.0, dim=2), convex=True)),
    "capacity": (
        SharedCapacity(),
        SeparableTask(square, Budget(total=1.0, dim=2, upper=0.8), convex=True),
    ),
    "coupled-rows": (CoupledRows(), SeparableTask(square, Polytope(**TWO_ROWS), convex=True)),
    "exhaustive": (
        Exhaustive(),
        Task(
            bowl, Finite(torch.randn(50, 2, generator=torch.Generator().manual_seed(3)).tolist())
        ),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.mark.parametrize("shared", [True, False])
def test_no_sampled_action_is_better(case, shared):
    solver, task = case
    g = surface(task, shared=shared)
    found = solver.minimise(g, task.feasible, B)
    tried = g(task.feasible.sample(4000, torch.Generator().manual_seed(1))[None]).amin(1)
    assert task.feasible.contains(found.action).all()
    assert torch.allclose(found.cost, g(found.action[:, None])[:, 0], rtol=1e-5, atol=1e-4)
    assert (found.cost <= tried + 1e-4 * tried.abs().clamp(min=1)).all()


def test_batch_mates_do_not_change_an_answer(case):
    solver, task = case
    g = surface(task, shared=False)
    together = solver.minimise(g, task.feasible, B)
    for i in (0, B - 1):
        alone = solver.minimise(g.rows(slice(i, i + 1)), task.feasible, 1)
        assert torch.allclose(alone.action[0], together.action[i], atol=2e-3)
        assert torch.allclose(alone.cost[0], together.cost[i], rtol=1e-5, atol=1e-5)


def test_the_same_call_gives_the_same_bits(case):
    solver, task = case
    g = surface(task)
    first, second = (solver.minimise(g, task.feasible, B) for _ in range(2))
    assert torch.equal(first.action, second.action)


def test_gradients_of_the_model_are_left_alone(case):
    solver, task = case
    g = surface(task)
    values = g.scenarios.values.clone().requires_grad_()
    with torch.no_grad():
        solver.minimise(
            ExpectedCost(task, Scenarios(g.scenarios.weights, values)), task.feasible, B
        )
    assert values.grad is None


def test_the_coarse_one_is_a_solver_of_the_same_problem(case):
    solver, task = case
    g = surface(task)
    fine, rough = (s.minimise(g, task.feasible, B) for s in (solver, solver.coarse()))
    assert (rough.cost >= fine.cost - 1e-4).all()
    spread = g(task.feasible.sample(100, torch.Generator().manual_seed(0))[None]).std(1)
    assert (rough.cost - fine.cost < spread).all()


@pytest.mark.parametrize("task", [synthetic_convex(), synthetic_nonconvex()], ids=["c", "n"])
@pytest.mark.parametrize("shared", [True, False])
def test_double_precision_is_kept_and_agrees_with_a_fine_grid(task, shared):
    double = (synthetic_convex() if task.convex else synthetic_nonconvex()).double()
    g = surface(double, shared=shared)
    found = Separable().minimise(g, double.feasible, B)
    assert found.action.dtype == torch.float64
    lower, upper = double.feasible.bounds
    t = torch.linspace(0, 1, 20001, dtype=torch.float64)[None, :, None]
    least = g.terms(lower + t * (upper - lower)).amin(1).sum(-1)
    assert (found.cost <= least + 1e-9).all()
    assert (found.cost >= least - 1e-3).all()


def test_the_exact_solver_finds_the_weighted_quantile():
    # 3 (y-a)+ + 1 (a-y)+ is least at the 3/4 quantile of the outcomes
    task = SeparableTask(
        lambda y, a: 3 * (y - a).relu() + (a - y).relu(), Box(-9.0, 9.0, dim=1), convex=True
    ).double()
    g = surface(task, batch=20, dim=1)
    found = Separable().minimise(g, task.feasible, 20).action[:, 0]
    order = g.scenarios.values[0, :, 0].argsort()
    reached = g.scenarios.weights[:, order].cumsum(1) >= 0.75
    quantile = g.scenarios.values[0, order, 0][reached.to(torch.int8).argmax(1)]
    assert torch.allclose(found, quantile, atol=1e-4)


@pytest.mark.parametrize("total", [0.5, 2.0])
def test_mirror_descent_agrees_with_a_quadratic_program(total):
    task = Task(bowl, Budget(total=total, dim=3, upper=0.3), convex=True, cvxpy=bowl_cvxpy)
    g = surface(task, dim=3)
    exact = Convex().minimise(g, task.feasible, B)
    found = MirrorDescent(steps=2000).minimise(g, task.feasible, B)
    assert torch.allclose(found.cost, exact.cost, rtol=1e-3, atol=1e-3)


def test_mirror_descent_leaves_money_where_spending_does_not_pay():
    dear = MirrorDescent().minimise(lambda a: a.sum(-1), Budget(total=5.0, dim=3), 2)
    assert dear.action.sum(-1).max() < 0.05
    prices = torch.tensor([-1.0, -3.0, -2.0])
    good = MirrorDescent().minimise(lambda a: a @ prices, Budget(total=5.0, dim=3, upper=2.0), 2)
    assert torch.allclose(good.action, torch.tensor([1.0, 2.0, 2.0]).expand(2, -1), atol=0.05)


@pytest.mark.parametrize(
    "feasible",
    [
        Simplex(total=1.0, dim=3),
        Budget(total=1.0, dim=3),
        Polytope(G=[[-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 1, 1]], h=[0, 0, 0, 1]),
    ],
    ids=["simplex", "budget", "polytope"],
)
def test_adam_reaches_the_optimum_on_a_face_where_all_slopes_have_one_sign(feasible):
    # min sum_i k_i (a_i - 1)^2 with sum a = 1: a = (0, 0.2, 0.8), cost 1 + 1.28 + 0.32
    k = torch.tensor([1.0, 2.0, 8.0])
    found = ProjectedAdam().minimise(lambda a: (k * (a - 1) ** 2).sum(-1), feasible, 2)
    assert torch.allclose(found.cost, torch.full((2,), 2.6), atol=1e-3)


def test_adam_agrees_with_the_convex_program_on_a_polytope():
    task = Task(bowl, Polytope(**TRIANGLE), convex=True, cvxpy=bowl_cvxpy)
    g = surface(task)
    exact = Convex().minimise(g, task.feasible, B)
    found = ProjectedAdam().minimise(g, task.feasible, B)
    assert torch.allclose(found.action, exact.action, atol=5e-3)
    assert (found.cost >= exact.cost - 1e-4).all()


def test_the_convex_program_agrees_with_the_exact_solver():
    task = inventory(days=2)
    for shared in (True, False):
        g = surface(task, shared=shared)
        exact = Separable().minimise(g, task.feasible, B)
        found = Convex().minimise(g, task.feasible, B)
        assert torch.allclose(found.cost, exact.cost, rtol=1e-4)


def test_a_start_is_used():
    task = Task(bowl, Box(-1.0, 1.0, dim=2))
    g = surface(task)
    best = ProjectedAdam().minimise(g, task.feasible, B)
    one = ProjectedAdam(steps=1, starts=1)
    assert (one.minimise(g, task.feasible, B, best.action).cost <= best.cost + 1e-5).all()
    assert (one.minimise(g, task.feasible, B).cost > best.cost + 1e-3).any()


def test_auto_picks_the_strongest_solver_that_serves():
    def chosen(task):
        return type(Auto().pick(surface(task), task.feasible))

    assert chosen(synthetic_convex()) is Separable
    assert chosen(Task(bowl, Finite([[0.0, 1.0]]))) is Exhaustive
    assert chosen(Task(bowl, Simplex(dim=2), convex=True, cvxpy=bowl_cvxpy)) is Convex
    assert chosen(Task(bowl, Simplex(dim=2), convex=True)) is ProjectedAdam
    assert chosen(SeparableTask(lambda y, a: (y - a) ** 2, Simplex(dim=2))) is BoxRelaxation


@pytest.mark.parametrize("make", [synthetic_convex, lambda: Task(bowl, Simplex(dim=2))])
def test_auto_answers_as_the_solver_it_picks(make):
    task = make()
    g = surface(task)
    for auto in (Auto(), Auto().coarse()):
        one = auto.minimise(g, task.feasible, B)
        other = auto.pick(g, task.feasible).minimise(g, task.feasible, B)
        assert torch.equal(one.action, other.action)
        assert torch.equal(one.cost, other.cost)
    assert Auto().coarse().pick(g, task.feasible) == Auto().pick(g, task.feasible).coarse()
    assert Auto().refuses(g, task.feasible) is None


BOX, LIST = Box(0.0, 1.0, dim=2), Finite([[0.0, 1.0]])
REFUSALS = {
    "Separable needs a Box, and this feasible set is a Simplex": (
        Separable(), synthetic_convex, Simplex(dim=2)),
    "Separable needs an ExpectedCost": (Separable(), None, BOX),
    "Separable needs a SeparableTask.*this is a Task": (Separable(), lambda: Task(bowl, BOX), BOX),
    "ProjectedAdam needs a set one can move in.*Finite": (ProjectedAdam(), None, LIST),
    "MirrorDescent needs a Simplex or a Budget.*a Box": (MirrorDescent(), None, BOX),
    "Exhaustive needs a Finite list of actions, and this set is a Box": (Exhaustive(), None, BOX),
    "Convex needs a convex set.*Finite": (Convex(), None, LIST),
    "Convex needs an ExpectedCost": (Convex(), None, BOX),
    "Convex needs a convex cost.*convex=True": (Convex(), lambda: Task(bowl, BOX), BOX),
    "Convex needs the cost written for cvxpy": (
        Convex(), lambda: Task(bowl, BOX, convex=True), BOX),
}  # fmt: skip


@pytest.mark.parametrize("sentence", REFUSALS)
def test_a_refusal_says_why_and_what_to_do(sentence):
    solver, task, feasible = REFUSALS[sentence]
    g = surface(task()) if task else lambda a: a.sum(-1)
    with pytest.raises(TypeError, match=sentence + r".*solver=Auto\(\) picks one that serves"):
        solver.minimise(g, feasible, B)


@pytest.mark.parametrize("answer", [2.0, float("nan")])
def test_a_decision_outside_the_set_is_an_error(answer):
    class Wild(Solver):
        def refuses(self, objective, feasible):
            return None

        def coarse(self):
            return self

        def _minimise(self, objective, feasible, batch, start):
            a = torch.zeros(batch, feasible.dim)
            a[1, 0] = answer
            return Solution(a, torch.zeros(batch))

    with pytest.raises(RuntimeError, match=r"Wild returned a decision outside.*row 1 breaks"):
        Wild().minimise(lambda a: a.sum(-1), BOX, 3)


@pytest.mark.parametrize("make", [synthetic_convex, synthetic_nonconvex])
@pytest.mark.parametrize("shared", [True, False])
def test_five_hundred_steps_of_adam_never_beat_the_exact_solver(make, shared):
    # 250 instances in each of four kinds: a thousand in all
    task = make()
    g = surface(task, batch=250, shared=shared, seed=5)
    exact = Separable().minimise(g, task.feasible, 250).cost
    adam = ProjectedAdam(steps=500, starts=1).minimise(g, task.feasible, 250).cost
    assert (exact <= adam + 1e-5 * adam.abs().clamp(min=1)).all()
    if make is synthetic_nonconvex:
        assert (exact < adam - 0.1).any()  # one start is caught in the wrong valley
