"""Risk measures against their definitions, and decisions by them against linear programs."""

import cvxpy as cp
import jaxtyping
import numpy as np
import pytest
import torch

import costscape as cs

MEASURES = [cs.CVaR(0.8), cs.Entropic(0.7), cs.MeanDeviation(0.6), cs.WorstCase()]


def costs_and_weights(B=3, J=4, S=30):
    rng = np.random.default_rng(0)
    costs = torch.tensor(rng.gamma(2.0, size=(B, J, S)))
    return costs, torch.tensor(rng.dirichlet(np.ones(S), B))


def definition(risk, c, w):
    """The risk of one action in numpy, written another way."""
    mean = w @ c
    if isinstance(risk, cs.CVaR):  # Rockafellar and Uryasev: the best t is one of the costs
        return min(t + w @ np.maximum(c - t, 0) / (1 - risk.level) for t in c)
    if isinstance(risk, cs.Entropic):
        return np.log(w @ np.exp(risk.theta * c)) / risk.theta
    if isinstance(risk, cs.MeanDeviation):
        return mean + risk.weight * (w @ np.abs(c - mean)) / 2
    return c.max()


@pytest.mark.parametrize("risk", MEASURES, ids=repr)
def test_a_risk_is_what_its_definition_says(risk):
    costs, weights = costs_and_weights()
    found = risk(costs, weights)
    for b in range(3):
        for j in range(4):
            wanted = definition(risk, costs[b, j].numpy(), weights[b].numpy())
            assert float(found[b, j]) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("risk", MEASURES, ids=repr)
def test_the_gradient_of_a_risk_is_that_of_finite_differences(risk):
    costs, weights = costs_and_weights(2, 2, 8)
    assert torch.autograd.gradcheck(lambda c: risk(c, weights), costs.requires_grad_())


@pytest.mark.parametrize("risk", MEASURES, ids=repr)
def test_shared_costs_are_those_of_each_row(risk):
    costs, weights = costs_and_weights()
    expanded = risk(costs[:1].expand(3, -1, -1), weights)
    assert torch.allclose(risk(costs[:1], weights), expanded)


def test_limits_of_the_measures_are_the_mean_and_the_worst():
    costs, weights = costs_and_weights()
    mean, worst = (weights[:, None] * costs).sum(-1), costs.amax(-1)
    assert torch.allclose(cs.CVaR(0.0)(costs, weights), mean)
    assert torch.allclose(cs.CVaR(1 - 1e-9)(costs, weights), worst)
    assert torch.allclose(cs.Entropic(1e-6)(costs, weights), mean, atol=1e-4)
    assert torch.allclose(cs.Entropic(200.0)(costs, weights), worst, atol=0.1)
    assert torch.allclose(cs.MeanDeviation(0.0)(costs, weights), mean)


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: cs.CVaR(1.0), "below 1"),
        (lambda: cs.Entropic(0.0), "theta to be a number above 0"),
        (lambda: cs.MeanDeviation(-1.0), "weight to be a number of at least 0"),
        (lambda: cs.WorstCase(2.0), "least"),
        (lambda: cs.Chance(3.0), "function"),
        (lambda: cs.Chance(lambda y, a: y, 95), "between 0 and 1"),
    ],
)
def test_bad_settings_are_named(build, word, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # it would speak first
    with pytest.raises((ValueError, TypeError), match=word):
        build()


def test_parts_that_fit_memory_give_the_same_risk_and_slope():
    rng = torch.Generator().manual_seed(0)
    task = cs.Task(lambda y, a: (y - a).abs().sum(-1), cs.Box(0.0, 1.0, dim=3))
    w = torch.rand(5, 40, generator=rng).softmax(1)
    values = torch.rand(5, 40, 3, generator=rng)
    a = torch.rand(5, 7, 3, generator=rng)
    found = []
    for memory in (None, 2_000, 20_000):
        at = a.clone().requires_grad_()
        g = cs.RiskCost(task, cs.Scenarios(w, values), cs.CVaR(0.7), memory)(at)
        (slope,) = torch.autograd.grad(g.sum(), at)
        found.append((g.detach(), slope))
    for g, slope in found[1:]:
        assert torch.allclose(g, found[0][0])
        assert torch.allclose(slope, found[0][1])


SETS = {
    "box": cs.Box(0.0, 3.0, dim=5),
    "budget": cs.Budget(total=4.0, dim=5),
    "simplex": cs.Simplex(total=4.0, dim=5),
    "polytope": cs.Polytope(
        G=np.concatenate([np.eye(5), -np.eye(5), [[1.0, 2.0, 1.0, 0.0, 0.0]]]),
        h=[3.0] * 5 + [0.0] * 5 + [3.0],
    ),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("risk", [cs.CVaR(0.9), cs.WorstCase()], ids=repr)
def test_decisions_by_risk_are_those_of_a_linear_program(name, risk):
    feasible, rng = SETS[name], np.random.default_rng(1)
    y, w = rng.gamma(4, 0.25, (3, 40, 5)), rng.dirichlet(np.ones(40), 3)
    task = cs.SeparableTask(lambda y, a: 20 * (y - a).relu() + 5 * (a - y).relu(), feasible)
    scenarios = cs.Scenarios(torch.tensor(w).float(), torch.tensor(y).float())
    g = cs.RiskCost(task, scenarios, risk)
    found = cs.Auto().minimise(g, feasible, 3)
    for b in range(3):
        a, t, over = cp.Variable(5), cp.Variable(), cp.Variable(40, nonneg=True)
        short = cp.pos(y[b] - cp.reshape(a, (1, 5), "C"))
        cost = cp.sum(25 * short + 5 * (cp.reshape(a, (1, 5), "C") - y[b]), axis=1)
        tail = w[b] @ over / (1 - risk.level) if isinstance(risk, cs.CVaR) else 1e4 * cp.sum(over)
        limits = [over >= cost - t, *feasible.describe(a)]
        best = cp.Problem(cp.Minimize(t + tail), limits).solve(solver="CLARABEL")
        assert float(found.cost[b]) == pytest.approx(best, rel=1e-3)
