from dataclasses import replace

import pytest
import torch

from costscape import Constant, Exhaustive, ExpectedCost, Scenarios, evaluate
from costscape.bench import Run, execute
from costscape.bench.problem_names import problem_named
from costscape.checks import check_set, check_task
from costscape.problems.one_resource.cubic_values import cubic, cubic_values
from costscape.problems.one_resource.one_line import OneLine
from costscape.problems.one_resource.shared_encoder import SharedEncoder
from costscape.problems.one_resource.top_one import top_one


def test_the_best_resource_is_that_of_the_highest_value():
    task = top_one(6).double()
    y = torch.randn(20, 6, dtype=torch.double)
    most = y.amax(-1)
    assert torch.equal(task.cost(y, task.hindsight(y)), -most)
    g = ExpectedCost(task, Scenarios(torch.ones(20, 1).double(), y[:, None], own=True))
    assert torch.allclose(Exhaustive().minimise(g, task.feasible, 20).cost, -most)
    check_task(task, y)
    check_set(top_one(3).feasible)


def test_the_least_squares_line_falls_and_ranks_the_worst_resources_first():
    assert cubic(torch.tensor([-1.0, 0.0, 1.0])).tolist() == [-3.5, 0.0, 3.5]
    data = cubic_values((20_000, 1, 2000), resources=50, seed=3)
    x, y = data.train.x, data.train.y
    assert -1 <= x.min() < -0.999
    assert 0.999 < x.max() <= 1
    slope = float((x * y).mean() / (x * x).mean())
    assert slope == pytest.approx(-0.5, abs=0.01)
    line, best = data.test.x.argmin(-1), data.test.y.argmax(-1)
    test = data.test.y
    assert float(test.gather(1, line[:, None]).mean()) < -2
    assert float(test.gather(1, best[:, None]).mean()) > 2


def test_the_code_of_a_resource_depends_on_its_number_only_and_in_the_same_way():
    encoder = SharedEncoder(4, width=3)
    x = torch.rand(2, 4)
    codes = encoder(x).view(2, 4, 3)
    assert torch.allclose(encoder(x.flip(-1)).view(2, 4, 3), codes.flip(1))
    assert encoder.out_features == 12


def test_with_one_line_for_all_resources_all_else_of_the_problem_is_the_same():
    plain, linear = (problem_named(name)(1) for name in ("cubic-top1", "cubic-top1-linear"))
    assert linear.network is linear.encoder is OneLine
    assert torch.equal(linear.data.test.x, plain.data.test.x)
    assert torch.equal(linear.data.test.y, plain.data.test.y)
    assert linear.schedule == replace(plain.schedule, lr=0.01)
    assert linear.source != plain.source


@pytest.mark.long
def test_cubic_top1_runs_and_its_regret_is_against_the_best_resource():
    p = problem_named("cubic-top1")(0)
    made = Constant(p.task).fit(p.data.val.x, p.data.val.y)
    found = evaluate(made, p.data.test.x, p.data.test.y)
    y = p.data.test.y
    paid = (y * torch.as_tensor(found.decisions)).sum(-1)
    assert found.regret == pytest.approx(float((y.amax(-1) - paid).mean()), rel=1e-5)
    rows = [execute(Run("cubic-top1", m, quick=True), "cpu").row for m in ("df2-quick", "dfl-pe")]
    assert rows[0]["error"] is None
    assert "Finite" in rows[1]["refused"]
