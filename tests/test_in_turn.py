"""Opponents, averaged as DF2's members are."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from costscape.experiments.execute import execute
from costscape.experiments.runs import Run, prepare
from costscape.methods.folds import fold, together
from costscape.report import read_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import in_turn

RUN = Run("synthetic-convex", "two-stage-gmm3", 100, {"draws": 30}, quick=True)


def test_one_member_is_the_named_method():
    row, alone = in_turn.row_of(RUN, 1, "cpu"), execute(RUN, "cpu").row
    for name in ("regret", "cost", "gap", "rows"):
        assert row[name] == pytest.approx(alone[name], rel=1e-6)
    assert row["changes"] == {"draws": 30, "members": 1}
    assert row["recipe"] != alone["recipe"]


def test_members_hold_out_stretches_in_turn_and_decide_by_all_their_outcomes():
    made = prepare(RUN, "cpu")
    train, val, x = made.problem.data.train, made.problem.data.val, made.problem.data.test.x[:7]
    found = in_turn.fitted(made.method, train, val, 3)
    pairs, parts = together(train, val), []
    for i in range(3):
        own = fold(train, val, i)
        one = replace(made.method, seed=100 + 1000 * i)
        one.fit(pairs.x[own.rows], pairs.y[own.rows], val=(own.held.x, own.held.y))
        parts.append(one.scenarios(x))
    got = found.scenarios(x)
    assert torch.equal(got.values, torch.cat([part.values for part in parts], 1))
    assert torch.allclose(got.weights, torch.cat([part.weights for part in parts], 1) / 3)
    a = found.decide(x)
    mean = [found.task.cost(part.values, a[:, None]).mean(1) for part in parts]
    assert torch.allclose(found.expected_cost(x, a), sum(mean) / 3, atol=1e-4)


def test_a_method_without_outcomes_is_refused_in_words():
    made = prepare(replace(RUN, method="policy-net", changes={}), "cpu")
    with pytest.raises(SystemExit, match="PolicyNet does not have"):
        in_turn.fitted(made.method, made.problem.data.train, made.problem.data.val, 2)


def test_rows_are_kept_and_not_made_again(tmp_path, monkeypatch, capsys):
    words = ["in_turn.py", RUN.problem, "--method", RUN.method, "--draws", "30", "--seeds", "100"]
    more = ["--members", "2", "--quick", "--device", "cpu", "--store", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words + more)
    in_turn.main()
    (row,) = read_rows(tmp_path)
    assert row["changes"] == {"draws": 30, "members": 2}
    assert f"regret {row['regret']:.5g}" in capsys.readouterr().out
    in_turn.main()
    assert capsys.readouterr().out == ""
