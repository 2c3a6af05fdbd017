import warnings

import numpy as np
import pytest
import torch

from costscape import Exhaustive, ExpectedCost, Scenarios, evaluate
from costscape.bench import Run, execute
from costscape.bench.problem_names import problem_named
from costscape.bench.report.published import caption
from costscape.bench.runs import prepare
from costscape.checks import check_set, check_task
from costscape.methods import Constant
from costscape.problems.grid_paths.edge_costs import PathTruth, edge_costs, mean_costs
from costscape.problems.grid_paths.shortest_path import grid_edges, grid_paths, shortest_path


def least_by_dynamic_programming(y, rows, columns):
    """The cost of the cheapest way to each node, node by node."""
    cost = dict(zip(grid_edges(rows, columns), y.tolist(), strict=True))
    least = {0: 0.0}
    for node in range(1, rows * columns):
        least[node] = min(least[i] + c for (i, j), c in cost.items() if j == node)
    return least[rows * columns - 1]


def test_the_paths_are_all_unit_flows_from_corner_to_corner():
    paths, edges = grid_paths(5, 5), grid_edges(5, 5)
    assert paths.shape == (70, 40)
    assert len(paths.unique(dim=0)) == 70
    out = torch.zeros(25, 40)
    for e, (i, j) in enumerate(edges):
        out[i, e], out[j, e] = 1, -1
    ends = torch.zeros(25)
    ends[0], ends[-1] = 1, -1
    assert torch.equal(paths @ out.T, ends.expand(70, -1))
    assert grid_paths(2, 4).shape == (4, 10)
    check_set(shortest_path(3, 3).feasible)


@pytest.mark.parametrize("size", [(5, 5), (3, 4)])
def test_the_best_path_is_that_of_dynamic_programming(size):
    task = shortest_path(*size)
    y = torch.rand(20, task.feasible.dim, dtype=torch.double)
    least = torch.tensor([least_by_dynamic_programming(row, *size) for row in y])
    task = task.double()
    assert torch.allclose(task.cost(y, task.hindsight(y)), least.double())
    g = ExpectedCost(task, Scenarios(torch.ones(20, 1).double(), y[:, None], own=True))
    assert torch.allclose(Exhaustive().minimise(g, task.feasible, 20).cost, least.double())
    check_task(task, y)


def test_a_grid_too_large_to_list_is_refused():
    with pytest.raises(ValueError, match=r"155,117,520 paths"):
        grid_paths(16, 16)
    with pytest.raises(ValueError, match="at least 2 rows"):
        grid_paths(1, 3)
    with pytest.raises(ValueError, match="degree >= 1"):
        edge_costs(degree=0)


@pytest.mark.parametrize("degree", [1, 4])
def test_costs_have_the_law_of_pyepo(degree):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = pytest.importorskip("pyepo.data.shortestpath")
    x, c = data.genData(50, 5, (5, 5), deg=degree, noise_width=0, seed=3)
    table = torch.from_numpy(np.random.RandomState(3).binomial(1, 0.5, (40, 5))).double()
    assert torch.allclose(mean_costs(table, degree, torch.from_numpy(x)).float(), torch.tensor(c))
    made = edge_costs((20_000, 1, 1), degree=degree, seed=1)
    train = made.splits.train
    ratio = train.y / mean_costs(made.map, degree, train.x)
    assert 0.5 <= ratio.min() < 0.501
    assert 1.499 < ratio.max() <= 1.5001
    assert float(ratio.mean()) == pytest.approx(1, abs=1e-3)
    assert float(train.x.std()) == pytest.approx(1, abs=0.02)


def test_the_gap_is_the_mean_regret_over_many_outcomes():
    task, made = shortest_path(), edge_costs((1, 1, 1), degree=2, seed=2)
    truth = PathTruth(task.feasible, made.map, 2)
    x, a = made.splits.test.x.expand(70, -1), task.feasible.actions
    m = mean_costs(made.map, 2, x[0])
    noise = 0.5 + torch.rand(40_000, 40, generator=torch.Generator().manual_seed(0))
    cost = (m * noise) @ a.T
    gaps = truth.gap(x, a)
    assert torch.allclose(gaps.float(), cost.mean(0) - cost.mean(0).min(), atol=0.02)
    assert gaps.min() == pytest.approx(0, abs=1e-6)


def test_normalised_regret_is_the_sum_of_regrets_over_the_sum_of_least_costs():
    p = problem_named("shortest-path-deg6")(0)
    made = Constant(p.task).fit(p.data.val.x, p.data.val.y)
    found = evaluate(made, p.data.test.x, p.data.test.y, p.truth)
    y = p.data.test.y
    paid = (y * torch.as_tensor(found.decisions)).sum(-1)
    least = (y @ grid_paths(5, 5).T).amin(-1)
    assert found.normalised_regret == pytest.approx(float((paid - least).sum() / least.sum()))


@pytest.mark.long
def test_a_degree_names_a_problem_and_methods_run_on_it_or_refuse():
    rows = {
        method: execute(Run("shortest-path-deg4", method, quick=True), "cpu").row
        for method in ("df2-quick", "two-stage-pe", "policy-net", "dfl-pe")
    }
    assert all(row["error"] is None for row in rows.values())
    assert "Finite" in rows["dfl-pe"]["refused"]
    assert 0 < rows["df2-quick"]["gap"] < rows["df2-quick"]["regret"]
    one, four = (problem_named(f"shortest-path-deg{n}")(0) for n in (1, 4))
    assert torch.equal(one.data.test.x, four.data.test.x)
    assert not torch.equal(one.data.test.y, four.data.test.y)
    assert caption("shortest-path-deg4") is None


def test_linear_methods_see_the_same_rows():
    curved, linear = (problem_named(f"shortest-path-{name}6")(1) for name in ("deg", "linear-deg"))
    for part in ("train", "val", "test"):
        one, other = getattr(curved.data, part), getattr(linear.data, part)
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
    assert linear.source == "5 x 5 grid, costs of degree 6, noise 0.5, linear, seed 1"
    # a linear forecast: that of a mean of two x is the mean of the two
    run = Run("shortest-path-linear-deg6", "two-stage-pe", quick=True)
    made = prepare(run, "cpu")
    x, y = made.problem.data.train.x, made.problem.data.train.y
    made.method.fit(x, y, val=(x, y))
    forecast = made.method.scenarios(torch.stack([x[0], x[1], (x[0] + x[1]) / 2])).values[:, 0]
    assert torch.allclose(forecast[2], (forecast[0] + forecast[1]) / 2, atol=1e-4)
    assert not torch.allclose(forecast[0], forecast[1], atol=1e-2)
