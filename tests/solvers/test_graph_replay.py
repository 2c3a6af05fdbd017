import pytest
import torch

from costscape import Box, Budget, ExpectedCost, Scenarios, Task
from costscape.solvers import FrankWolfe
from costscape.solvers.graph_replay import Replayed, value_and_slope

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def quadratic(a):
    return (a - 0.3).square().sum(-1) * torch.arange(1, 1 + len(a), device=a.device)[:, None]


def test_value_and_slope_of_a_quadratic():
    value, slope = value_and_slope(quadratic, torch.ones(2, 3))
    assert torch.allclose(value, torch.tensor([3 * 0.49, 6 * 0.49]))
    assert torch.allclose(slope, torch.tensor([[1.4] * 3, [2.8] * 3]))


def test_on_a_cpu_every_call_is_carried_out():
    evaluate = Replayed(quadratic)
    for start in (0.0, 0.5, 0.7, 0.9):
        a = torch.full((2, 3), start)
        for got, wanted in zip(evaluate(a), value_and_slope(quadratic, a), strict=True):
            assert torch.equal(got, wanted)
    assert evaluate.graph is None


@needs_gpu
def test_a_replayed_evaluation_equals_one_that_is_carried_out():
    evaluate = Replayed(quadratic)
    for start in (0.0, 0.5, 0.7, 0.9, 0.1):
        a = torch.full((2, 3), start, device="cuda")
        for got, wanted in zip(evaluate(a), value_and_slope(quadratic, a), strict=True):
            assert torch.equal(got, wanted)
    assert evaluate.graph is not None


@needs_gpu
def test_an_objective_that_waits_for_its_numbers_is_not_recorded():
    def waits(a):
        return quadratic(a) * (1.0 if float(a.detach().sum()) > 0 else 2.0)

    evaluate = Replayed(waits)
    for start in (-1.0, 1.0, -1.0, 1.0):
        a = torch.full((2, 3), start, device="cuda")
        for got, wanted in zip(evaluate(a), value_and_slope(waits, a), strict=True):
            assert torch.equal(got, wanted)
    assert evaluate.graph is None


@needs_gpu
@pytest.mark.parametrize(
    "feasible", [Box(0.0, 1.0, dim=3), Budget(total=1.0, dim=3)], ids=["box", "budget"]
)
def test_frank_wolfe_finds_the_same_on_both_devices(feasible):
    task = Task(lambda y, a: ((y - a) ** 2).sum(-1) + (y * a).sum(-1).exp(), feasible, convex=True)
    rng = torch.Generator().manual_seed(0)
    y = torch.randn(5, 4, 3, generator=rng)
    w = torch.rand(5, 4, generator=rng).softmax(-1)
    here = FrankWolfe().minimise(ExpectedCost(task, Scenarios(w, y)), task.feasible, 5)
    task = task.to("cuda")
    g = ExpectedCost(task, Scenarios(w.cuda(), y.cuda()))
    there = FrankWolfe().minimise(g, task.feasible, 5)
    assert torch.allclose(here.cost, there.cost.cpu(), rtol=1e-5, atol=1e-5)
