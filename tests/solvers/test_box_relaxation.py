import pytest
import torch

from costscape import (
    Box,
    Convex,
    ExpectedCost,
    Finite,
    Polytope,
    Scenarios,
    SeparableTask,
    Task,
)
from costscape.checks import check_solver
from costscape.problems import inventory
from costscape.solvers import Auto, BoxRelaxation, Separable
from costscape.task import Refusal

SQUARE = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
CORNER_CUT = {"G": [*SQUARE, [1.0, 1.0]], "h": [1.0, 1.0, 0.0, 0.0, 1.0]}


def squares(y, a):
    return (y - a) ** 2


def squares_cvxpy(y, a):
    import cvxpy as cp

    return cp.sum(cp.square(y - a), axis=1)


@pytest.fixture(scope="module")
def task():
    return SeparableTask(squares, Polytope(**CORNER_CUT), convex=True, cvxpy=squares_cvxpy)


def at(task, *y):
    values = torch.tensor(y)[:, None]
    return ExpectedCost(task, Scenarios(torch.ones(len(y), 1), values))


def test_rows_inside_are_those_of_the_box_and_rows_outside_those_of_convex(task):
    g = at(task, (0.25, 0.5), (0.75, 0.75), (2.0, 0.5), (-1.0, 0.5))
    found = BoxRelaxation().minimise(g, task.feasible, 4)
    # by hand: the square's projections, and the nearest points of a_1 + a_2 = 1
    expected = torch.tensor([[0.25, 0.5], [0.5, 0.5], [1.0, 0.0], [0.0, 0.5]])
    assert torch.allclose(found.action, expected, atol=1e-3)
    box = Separable().minimise(g, Box(0.0, 1.0, dim=2), 4).action
    assert torch.equal(found.action[[0, 3]], box[[0, 3]])
    exact = Convex().minimise(g, task.feasible, 4)
    assert torch.equal(found.action[[1, 2]], exact.action[[1, 2]])


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("rough", [False, True])
def test_it_keeps_the_contract_of_a_solver(task, shared, rough):
    rng = torch.Generator().manual_seed(0)
    weights = torch.randn(6, 30, generator=rng).softmax(-1)
    values = 0.5 + torch.randn(1 if shared else 6, 30, 2, generator=rng)
    g = ExpectedCost(task, Scenarios(weights, values))
    check_solver(BoxRelaxation(rough), g, tolerance=5e-2 if rough else 1e-3)


def waves(y, a):
    """Many local minima; for y = 0.2 the lowest in [0, 1] is near 0.18."""
    return (a - y) ** 2 - 0.1 * torch.cos(25 * (a - y + 0.02))


def test_a_cost_that_is_not_convex_is_solved_globally_where_the_box_holds_it():
    task = SeparableTask(waves, Polytope(**CORNER_CUT))
    g = at(task, (0.2, 0.2), (0.1, 0.6))
    found = BoxRelaxation().minimise(g, task.feasible, 2)
    grid = torch.linspace(0, 1, 2001)
    every = torch.cartesian_prod(grid[::4], grid[::4])
    least = g(every[every.sum(1) <= 1][None]).amin(1)
    assert (found.cost <= least + 1e-4).all()


def test_without_a_program_for_cvxpy_adam_takes_the_rows_outside():
    task = SeparableTask(squares, Polytope(**CORNER_CUT), convex=True)
    g = at(task, (0.25, 0.5), (0.75, 0.75))
    found = BoxRelaxation().minimise(g, task.feasible, 2).action
    assert torch.allclose(found, torch.tensor([[0.25, 0.5], [0.5, 0.5]]), atol=1e-2)


def test_a_cost_that_is_no_sum_is_refused():
    task = Task(lambda y, a: (y.sum(-1) - a.sum(-1)) ** 2, Polytope(**CORNER_CUT))
    with pytest.raises(Refusal, match="needs a SeparableTask"):
        BoxRelaxation().minimise(at(task, (0.25, 0.5)), task.feasible, 1)


def test_auto_takes_it_where_several_rows_couple_coordinates_of_a_cost_that_is_not_convex():
    cut = Polytope(G=[*CORNER_CUT["G"], [2.0, 1.0]], h=[*CORNER_CUT["h"], 1.5])
    task = SeparableTask(waves, cut)
    assert Auto().pick(at(task, (0.0, 0.0)), cut) == BoxRelaxation()


def test_on_a_box_it_is_the_box_search():
    task = inventory()
    y = torch.rand(4, 20, 7, generator=torch.Generator().manual_seed(0))
    g = ExpectedCost(task, Scenarios(torch.full((4, 20), 0.05), y))
    one, two = (s.minimise(g, task.feasible, 4) for s in (BoxRelaxation(), Separable()))
    assert torch.equal(one.action, two.action)


def test_a_list_of_actions_is_refused():
    finite = Finite([[0.0, 1.0], [1.0, 0.0]])
    task = SeparableTask(squares, finite)
    assert "Finite list" in BoxRelaxation().refuses(at(task, (0.0, 0.0)), finite)
