"""Goals are judged by paired differences to the best opponent."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from costscape.experiments.execute import blank
from costscape.experiments.rows import Rows
from costscape.experiments.runs import Run

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import quality


def test_the_interval_is_that_of_students_t():
    d = np.array([0.3, -0.1, 0.5, 0.2])
    mean, low, high = quality.interval(d)
    peer = ttest_1samp(d, 0).confidence_interval(0.95)
    assert (mean, low, high) == pytest.approx((d.mean(), peer.low, peer.high))
    assert quality.interval([0.3]) == (0.3, None, None)


def test_of_two_opponents_the_better_on_the_seeds_of_both_is_the_best():
    found = {
        "df2": {0: 1.0, 1: 1.0, 2: 1.0},
        "many": {0: 6.0332, 1: 9.0, 2: 9.0},
        "one": {0: 6.0330},  # the same on the seed that both have
    }
    assert quality.best_opponent(found, "df2") == "many"
    found["one"] = {0: 6.0}
    assert quality.best_opponent(found, "df2") == "one"
    found["one"], found["other"] = {0: 6.1}, {1: 9.1, 2: 8.0}
    assert quality.best_opponent(found, "df2") == "other"


def test_the_best_opponent_has_the_least_mean_over_seeds_in_common_were_it_one():
    found = {
        "df2": {0: 1.0, 1: 1.0, 2: 1.0},
        "df2-paper": {0: 0.1, 1: 0.1, 2: 0.1},  # ours
        "lucky": {0: 0.2},
        "good": {0: 2.0, 1: 2.0, 7: 0.0},  # a seed that is not ours does not count
        "bad": {0: 3.0, 1: 3.0, 2: 3.0},
    }
    assert quality.best_opponent(found, "df2") == "lucky"
    found.pop("lucky")
    assert quality.best_opponent(found, "df2") == "good"
    line = quality.against_best(found, "p", "under it", lambda mine, theirs, high: high < 0)
    assert line.met
    assert line.opponent.startswith("good: 2 (n=2)")
    assert line.difference.startswith("-1 ")


def test_items_are_the_pairs_of_the_goal_about_items():
    found = {
        f"inventory-item{i}": {"df2": {0: i - 0.5, 1: i - 0.7}, "other": {0: float(i)}}
        for i in (1, 2, 3)
    }
    line = quality.over_items(found, "items", "under it")
    assert line.met
    assert line.difference.startswith("-0.6 ")
    found["inventory-item2"]["df2"] = {0: 9.0}
    assert not quality.over_items(found, "items", "under it").met


def test_a_goal_without_rows_is_not_measured():
    assert quality.at_most({}, "wind", 59.5, "df2").met is None
    assert quality.at_most({"df2": {0: 59.0, 1: 60.1}}, "wind", 59.5, "df2").met is False


def write(folder, problem, method, seed, regret, gap=None, **changes):
    row = {
        **blank(Run(problem, method, seed, changes)),
        "regret": regret,
        "cost": regret,
        "gap": gap,
        "rows": 9,
        "standard_error": 0.1,
        "fit_seconds": 1.0,
        "decide_seconds": 1.0,
    }
    Rows(folder).write(Run(problem, method, seed, changes), row)


def test_averaged_opponents_are_paired_by_seed_and_items_by_item(tmp_path):
    ours, turns = tmp_path / "ours", tmp_path / "turns"
    for i in (1, 2, 3):
        write(ours, f"inventory-item{i}", "df2", 0, 10.0 + i)
        write(turns, f"inventory-item{i}", "egl", 0, 11.0 + i + 0.01 * i, members=5)
        write(ours, "wind", "df2", i, 60.0 + i)
        write(ours, "wind", "df2", i, 1.0, members=1)  # not the default
        write(turns, "wind", "egl", i, 60.0 + i + (-1) ** i, members=5)
        write(ours, "synthetic-convex", "df2", i, 5.0, gap=0.02)
        write(turns, "synthetic-convex", "egl", i, 6.0 + 0.1 * i, gap=0.01 + 1e-4 * i, members=5)
    write(turns, "wind", "egl", 9, 0.0, members=5)  # a seed that DF2 does not have
    write(turns, "inventory", "egl", 1, 5.0, members=5)  # nothing to be held against
    told = [line.split() for line in quality.averaged((ours,), turns).splitlines()[1:]]
    assert [(line[0], line[-1]) for line in told] == [
        ("inventory,", "better"),
        ("synthetic-convex,", "worse"),  # in its gap, which is known there
        ("wind", "tie"),
    ]
    wind = told[-1]
    assert wind[1:4] == ["3", "62", "61.67"]
