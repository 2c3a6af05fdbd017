"""What happens in the test part changes no decision: no method has seen it."""

from dataclasses import replace
from importlib import import_module

import pytest
import torch

from costscape.bench import METHODS, PROBLEMS, Run, execute
from costscape.data import Dataset

OTHERWISE = {
    "another past": lambda y: y.flip(0) * 7 + 100,
    "nothing": torch.zeros_like,
    "no number": lambda y: torch.full_like(y, float("nan")),
}


@pytest.fixture(scope="module")
def known():
    """Decisions and rows with the test y as it is, by problem and method."""
    return {}


@pytest.fixture
def decided(monkeypatch, known):
    """decided(run, change): the decisions on test x, and the row, with the test y changed."""
    module = import_module("costscape.bench.execution")
    real, seen = module.evaluate, []

    def watched(method, x, y, **rest):
        seen.append((method.decide(x), y))
        return real(method, x, y, **rest)

    monkeypatch.setattr(module, "evaluate", watched)

    def run(problem, method, change=None):
        if change is None and (problem, method) in known:
            return known[problem, method]
        made, name = PROBLEMS[problem], problem
        if change is not None:
            name = f"{problem}, {change}"

            def changed(seed):
                p = made(seed)
                test = p.data.test
                other = Dataset(test.x, OTHERWISE[change](test.y), test.dates)
                return replace(p, data=replace(p.data, test=other))

            monkeypatch.setitem(PROBLEMS, name, changed)
        row = execute(Run(name, method, 1, {"epochs": 1}, quick=True), device="cpu").row
        found = *seen.pop(), row
        if change is None:
            known[problem, method] = found
        return found

    return run


@pytest.mark.parametrize(
    ("problem", "change"),
    [
        *(("synthetic-convex", change) for change in OTHERWISE),
        pytest.param("inventory", "another past", marks=pytest.mark.long),
    ],
)
def test_no_outcome_of_the_test_part_reaches_df2(decided, problem, change):
    a, y, row = decided(problem, "df2")
    b, other, changed = decided(problem, "df2", change)
    assert torch.equal(a, b)
    assert not torch.equal(y, other)
    assert row["error"] is None
    if change == "no number":  # cannot be paid
        assert "Y needs numbers that are finite" in changed["error"]
    else:
        assert changed["curve"] == row["curve"]
        assert changed["cost"] != row["cost"]


# flows are slow, and fitted by the code of the other forecasts
LEFT_OUT = {"df2", "proportional", "dfl-flow", "two-stage-flow"}


# one of each kind of method; `make long` runs all
SHORT = {"df2-quick", "two-stage-pe", "policy-net", "wsaa-knn", "residual-saa", "lancer"}


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(m, marks=() if m in SHORT else pytest.mark.long)
        for m in METHODS
        if m not in LEFT_OUT
    ],
)
def test_no_outcome_of_the_test_part_reaches_any_method(decided, method):
    a, _, row = decided("synthetic-convex", method)
    b, _, changed = decided("synthetic-convex", method, "another past")
    assert torch.equal(a, b)
    assert row["error"] is changed["error"] is None
    assert changed["cost"] != row["cost"]
