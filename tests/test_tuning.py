"""Choices are made on training and validation data: the test part changes nothing."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from costscape.data import Dataset
from costscape.experiments import runs

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import tune


def told(row):
    return {k: v for k, v in row.items() if k != "fit_seconds"}


@pytest.mark.parametrize("held", [False, True], ids=["folds", "held"])
@pytest.mark.parametrize("variant", ["default", "absolute, costs", *list(tune.BESIDE)[:1]])
def test_test_outcomes_of_nan_change_no_row_of_the_tuning(monkeypatch, variant, held):
    name = "synthetic-convex"
    plain = tune.row_of(name, variant, 100, "cpu", quick=True, held=held)
    real = runs.problem_of(name, 100, True)
    test = real.data.test
    nothing = Dataset(torch.full_like(test.x, torch.nan), torch.full_like(test.y, torch.nan))
    spoilt = replace(real, data=replace(real.data, test=nothing))
    monkeypatch.setattr(tune, "problem_of", lambda *_: spoilt)
    again = tune.row_of(name, variant, 100, "cpu", quick=True, held=held)
    assert told(again) == told(plain)


def test_members_of_two_forms_take_turns():
    name, beside = "synthetic-convex", "absolute beside location-scale"
    row = tune.row_of(name, beside, 100, "cpu", quick=True, held=True)
    each = [tune.row_of(name, v, 100, "cpu", quick=True, held=True) for v in tune.BESIDE[beside]]
    assert row["forms"] == ["Absolute", "LocationScale"]
    assert row["each"] == [each[0]["each"][0], each[1]["each"][1]]
    assert row["epochs"] == [each[0]["epochs"][0], each[1]["epochs"][1]]


def test_other_validation_outcomes_do_change_it(monkeypatch):
    name = "synthetic-convex"
    plain = tune.row_of(name, "absolute", 100, "cpu", quick=True)
    real = runs.problem_of(name, 100, True)
    other = Dataset(real.data.val.x, real.data.val.y.flip(0))
    spoilt = replace(real, data=replace(real.data, val=other))
    monkeypatch.setattr(tune, "problem_of", lambda *_: spoilt)
    assert told(tune.row_of(name, "absolute", 100, "cpu", quick=True)) != told(plain)


def test_held_out_validation_outcomes_change_the_scores_and_not_the_fit(monkeypatch):
    name = "synthetic-convex"
    fitted = []
    evaluate = tune.evaluate

    def noted(method, *args, **kwargs):
        fitted[-1].append([p.detach().clone() for p in method.model_.parameters()])
        return evaluate(method, *args, **kwargs)

    monkeypatch.setattr(tune, "evaluate", noted)
    real = runs.problem_of(name, 100, True)
    other = Dataset(real.data.val.x, real.data.val.y.flip(0))
    spoilt = replace(real, data=replace(real.data, val=other))
    rows = []
    for problem in (real, spoilt):
        fitted.append([])
        monkeypatch.setattr(tune, "problem_of", lambda *_, p=problem: p)
        rows.append(tune.row_of(name, "absolute", 100, "cpu", quick=True, held=True))
    assert rows[0]["averaged"] != rows[1]["averaged"]
    weights = [[p for whole in each for p in whole] for each in fitted]
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
