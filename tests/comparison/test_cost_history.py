"""The file of a comparison: the same costs again, and a sentence where it is spoiled."""

import json

import numpy as np
import pandas as pd
import pytest

import costscape as cs
from costscape.comparison import CostHistory
from costscape.comparison.cost_history import read_history


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=50)
    X = pd.DataFrame(rng.random((50, 2)), days)
    task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=1))
    methods = {"constant": cs.Constant(task), "near": cs.NearestNeighbours(task, k=3)}
    return cs.compare(task, X, X[[0]], methods=methods, progress=False)


def test_a_file_has_the_costs_of_methods_and_rules_by_date(result, tmp_path):
    rule = {"today's rule": np.full(10, 2.0)}
    path = CostHistory.of(result, rule, "today's rule").write(tmp_path / "new" / "comparison.json")
    again = read_history(path)
    assert again.labels == tuple(f"2024-02-{day:02d}" for day in range(10, 20))
    assert np.array_equal(again.costs["near"], result.costs["near"])
    assert (again.recommended, again.reference) == ("near", "today's rule")
    assert again.saved("near") == pytest.approx((2 - result.costs["near"]).sum())
    assert CostHistory.of(result).reference == result.reference
    assert [entry.name for entry in path.parent.iterdir()] == ["comparison.json"]


SPOILED = {
    "cut off": lambda text: text[:-9],
    "a list": lambda text: "[]",
    "a cost too few": lambda text: text.replace("[1.0, 2.0]", "[1.0]"),
    "no number": lambda text: text.replace("1.0", '"many"'),
    "not finite": lambda text: text.replace("1.0", "NaN"),
    "no reference": lambda text: text.replace('"reference": "B"', '"reference": "C"'),
}


@pytest.mark.parametrize("case", SPOILED)
def test_a_spoiled_file_is_refused_in_a_sentence(case, tmp_path):
    path = CostHistory(("a", "b"), {"A": (1.0, 2.0), "B": (3.0, 3.0)}, "A", "B", "").write(
        tmp_path / "comparison.json"
    )
    assert json.loads(path.read_text())["costs"]["A"] == [1.0, 2.0]
    path.write_text(SPOILED[case](path.read_text()))
    with pytest.raises(ValueError, match=r"is no comparison .* Write it again"):
        read_history(path)
