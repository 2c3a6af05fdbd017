"""Exported decisions against those of torch."""

from copy import copy, deepcopy

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.methods.export.distil import onto_budget


def in_double(model, X):
    """What torch decides in double precision, and the expected costs."""
    exact = copy(model)
    exact.task_, exact.model_ = deepcopy(model.task_).double(), deepcopy(model.model_).double()
    found = exact.solution(torch.tensor(np.asarray(X)).float().double())
    return found.action.numpy(), found.cost.numpy()


def width(model):
    lower, upper = model.task.feasible.bounds
    return (upper - lower).numpy()


@pytest.mark.parametrize(
    "name", [pytest.param("inventory", marks=pytest.mark.long), "wind", "synthetic", "packs"]
)
def test_decisions_are_those_of_torch_to_a_ten_thousandth_of_the_interval(exported, name):
    model, X, made, loaded = exported(name)
    a, cost = loaded.decisions(np.asarray(X, dtype=float))
    exact, least = in_double(model, X)
    assert made.kind == loaded.facts.kind == "exact"
    off = (np.abs(a - exact) / width(model)).max(1)
    tied = np.abs(cost - least) <= 1e-6 * np.abs(least).max()
    assert (off[~tied] <= 1e-4).all()
    assert (off <= 1e-4).mean() > (0.9 if name == "packs" else 0.97)
    np.testing.assert_allclose(cost, least, rtol=1e-5, atol=1e-5 * np.abs(least).max())
    # single precision costs as much, to its rounding
    ours = model.expected_cost(X, a[:, 0] if model.flat_ else a)
    theirs = model.expected_cost(X, model.decide(X))
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6 * np.abs(theirs).max())
    assert loaded.facts.difference <= loaded.facts.reference.tolerance == 1e-4


def test_one_row_and_a_batch_are_decided_alike(exported):
    _, X, _, loaded = exported("wind")
    rows = X.to_numpy()
    alone = np.concatenate([loaded.decisions(rows[i : i + 1])[0] for i in range(5)])
    np.testing.assert_allclose(alone, loaded.decisions(rows[:5])[0], atol=4e-4)


def test_whole_units_stay_whole(exported):
    _, X, _, loaded = exported("packs")
    packs = loaded.decide(X) / 0.75
    assert packs.shape == (len(X),)
    np.testing.assert_allclose(packs, packs.round(), atol=1e-5)


def test_a_coupled_set_is_distilled_and_its_loss_is_measured(exported):
    model, X, made, loaded = exported("budget")
    assert made.kind == "distilled"
    assert "the set is a Budget and no Box" in str(made)
    a, cost = loaded.decisions(X)
    assert cost is None
    assert (a.sum(1) <= 5 + 1e-4).all()
    # the loss by hand, on the latest fifth of the kept rows
    kept, rows = model.rows_, round(0.8 * len(X))
    held = kept.x[rows:].numpy()
    costs = [
        float(model.task.cost(kept.y[rows:], torch.tensor(d).float()).mean())
        for d in (model.decide(held), loaded.decide(held))
    ]
    loss = loaded.facts.loss
    np.testing.assert_allclose([loss["model_cost"], loss["policy_cost"]], costs, rtol=1e-4)
    # near the model: a constant decision would cost far more
    constant = cs.Constant(model.task).fit(kept.x.numpy(), kept.y.numpy())
    worse = float(
        model.task.cost(kept.y[rows:], torch.tensor(constant.decide(held)).float()).mean()
    )
    assert costs[1] - costs[0] < 0.2 * (worse - costs[0])


def test_the_output_layer_of_a_capped_budget_is_its_projection():
    for total in (3.0, 9.0):  # the caps have a sum of 4
        C = cs.Budget(total=total, dim=2, upper=[1.0, 3.0])
        z = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
        centre = C.upper * (C.total / C.upper.sum()).clamp(max=1) / 2
        torch.testing.assert_close(onto_budget(z, C), C.project(centre + C.upper * z))


def test_what_neither_can_do_is_refused_in_a_sentence(exported, tmp_path):
    model, _, _, _ = exported("budget")
    with pytest.raises(cs.Refusal, match=r"cannot be exported exactly: the set is a Budget"):
        model.export(tmp_path / "m.onnx", distil=False)
    rng = np.random.default_rng(0)
    X, Y = rng.random((60, 2)), rng.random((60, 2))
    corners = cs.Finite([[0.0, 0.0], [1.0, 1.0]])
    listed = cs.NearestNeighbours(cs.Task(lambda y, a: (y - a).abs().sum(-1), corners), k=5)
    with pytest.raises(cs.Refusal, match="no output layer for a Finite"):
        listed.fit(X, Y).export(tmp_path / "m.onnx")
    caps = cs.SeparableTask(
        lambda y, a: (y - a).abs(), lambda x: cs.Box(0.0, x[:, :2]), convex=True
    )
    with pytest.raises(cs.Refusal, match="its set is a function of x"):
        cs.NearestNeighbours(caps, k=5).fit(X, Y).export(tmp_path / "m.onnx")
    plain = copy(model)
    plain.rows_ = None
    with pytest.raises(ValueError, match=r"Pass rows of X: model\.export\(path, X\)"):
        plain.export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_a_decision_outside_the_set_is_an_error(exported):
    feasible = exported("budget")[3].facts.feasible
    feasible.check(np.array([[1.0, 4.0]]))
    for a in ([3.0, 3.0], [-0.1, 1.0], [5.5, 0.0], [np.nan, 1.0]):
        with pytest.raises(RuntimeError, match="outside its Budget: row 0"):
            feasible.check(np.array([a]))
    packs = exported("packs")[3].facts.feasible
    with pytest.raises(RuntimeError, match=r"by 0\.1"):
        packs.check(np.array([[0.85]]))
