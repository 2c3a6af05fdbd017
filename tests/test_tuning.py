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


@pytest.mark.parametrize("variant", ["default", "absolute, costs"])
def test_test_outcomes_of_nan_change_no_row_of_the_tuning(monkeypatch, variant):
    name = "synthetic-convex"
    plain = tune.row_of(name, variant, 100, "cpu", quick=True)
    real = runs.problem_of(name, 100, True)
    test = real.data.test
    nothing = Dataset(torch.full_like(test.x, torch.nan), torch.full_like(test.y, torch.nan))
    spoilt = replace(real, data=replace(real.data, test=nothing))
    monkeypatch.setattr(tune, "problem_of", lambda *_: spoilt)
    assert told(tune.row_of(name, variant, 100, "cpu", quick=True)) == told(plain)


def test_other_validation_outcomes_do_change_it(monkeypatch):
    name = "synthetic-convex"
    plain = tune.row_of(name, "absolute", 100, "cpu", quick=True)
    real = runs.problem_of(name, 100, True)
    other = Dataset(real.data.val.x, real.data.val.y.flip(0))
    spoilt = replace(real, data=replace(real.data, val=other))
    monkeypatch.setattr(tune, "problem_of", lambda *_: spoilt)
    assert told(tune.row_of(name, "absolute", 100, "cpu", quick=True)) != told(plain)
