"""A stored fit knows its cost and all of its rows."""

import pytest
import torch

import costscape as cs
from costscape.data import Dataset
from costscape.methods.cost_fingerprint import cost_fingerprint, probing_actions, rows_digest
from costscape.methods.forecast.decision_samples import Forecasts, Sampler

RNG = torch.Generator().manual_seed(0)
X, Y = torch.rand(200, 3, generator=RNG), 0.5 + torch.rand(200, 1, generator=RNG)


def plain(y, a):
    return (3 * (y - a).relu() + (a - y).relu()).sum(-1)


def fined(y, a):
    """The same but for a fine at one end of the set, for the least outcome alone."""
    return plain(y, a) + 1000.0 * ((a > 2.9) & (y <= Y.min())).any(-1)


def task(cost=plain):
    return cs.Task(cost, cs.Box(0.0, 3.0, dim=1))


def fitted(path, cost=plain, val=None, x=X):
    training = cs.Training(epochs=2, checkpoint=path, device="cpu", progress=False)
    method = cs.TwoStage(task(cost), cs.Point(), training=training)
    return method.fit(x[:160], Y[:160], val=val or (X[160:], Y[160:]))


def test_actions_at_both_ends_of_the_set_are_tried():
    a = probing_actions(cs.Box(0.0, 3.0, dim=2))
    assert a.min() == 0.0
    assert a.max() == 3.0
    for corner in ([0.0, 0.0], [3.0, 3.0], [0.0, 3.0], [3.0, 0.0]):
        assert (a == torch.tensor(corner)).all(1).any()
    budget = cs.Budget(total=1.0, dim=2)
    assert budget.contains(probing_actions(budget)).all()


def test_a_fine_of_one_row_at_the_end_of_the_set_is_another_cost():
    assert cost_fingerprint(task(), Y) == cost_fingerprint(task(), Y)
    assert cost_fingerprint(task(), Y) != cost_fingerprint(task(fined), Y)
    double = cost_fingerprint(task().double(), Y)
    assert double == cost_fingerprint(task(), Y)  # rounding is no other cost


def test_infinite_costs_have_a_fingerprint():
    def steep(y, a):
        return plain(y, a) + torch.where(a[..., 0] > 2.9, torch.inf, 0.0)

    assert "inf" in cost_fingerprint(task(steep), Y)


def test_rows_in_another_order_are_other_rows():
    rows = Dataset(X, Y)
    assert rows_digest(rows) == rows_digest(Dataset(X.clone(), Y.clone()))
    assert rows_digest(rows) != rows_digest(Dataset(X, Y.flip(0)))
    assert rows_digest(rows[:100], rows[100:]) != rows_digest(rows[100:], rows[:100])


OTHERS = {
    "cost": {"cost": fined},
    "order of val": {"val": (X[160:], Y[160:].flip(0))},
    "one number": {"x": X + torch.eye(200, 3) * 1e-3},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_is_not_continued_with_another_cost_or_other_rows(tmp_path, other):
    fitted(tmp_path / "c")
    with pytest.raises(ValueError, match="belongs to a fit with other data, cost, settings"):
        fitted(tmp_path / "c", **OTHERS[other])


def test_a_checkpoint_that_lost_a_key_is_refused_in_words(tmp_path):
    fitted(tmp_path / "c")
    (path,) = tmp_path.iterdir()
    saved = torch.load(path, weights_only=True)
    for key in ("fits", "rng", "epoch"):
        torch.save({name: value for name, value in saved.items() if name != key}, path)
        with pytest.raises(ValueError, match=r"cannot be read \(KeyError\).*Delete it to start"):
            fitted(tmp_path / "c")
    del saved["fits"][0]["best"]
    torch.save(saved, path)
    with pytest.raises(ValueError, match=r"cannot be read \(KeyError\)"):
        fitted(tmp_path / "c")


def test_the_cache_of_decision_samples_knows_the_cost(tmp_path):
    moves = torch.zeros(len(Y), 1, 1)
    marks = {
        Sampler(cache=tmp_path)._mark(Forecasts.of_outcomes(task(cost), Y), moves)
        for cost in (plain, fined, plain)
    }
    assert len(marks) == 2
