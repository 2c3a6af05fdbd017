"""The two tables of decision quality, from rows written by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from costscape.bench.execution import blank
from costscape.bench.row_store import Rows
from costscape.bench.runs import Run
from costscape.block_bootstrap import difference_over_seeds

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import quality
from quality import CROSSFITTED, MANY, SINGLE

ITEMS = MANY["inventory-item"]


def write(folder, problem, method, seed, regrets, gaps=None, by_row=True, block=1, **changes):
    """A row of a store with regrets of each test row, or their mean only."""
    run = Run(problem, method, seed, changes)
    regrets = np.atleast_1d(np.asarray(regrets, dtype=np.float32))
    means = {"regret": float(regrets.mean()), "cost": float(regrets.mean())}
    means["gap"] = None if gaps is None else float(np.mean(gaps))
    times = {"fit_seconds": 1.0, "decide_seconds": 1.0, "rows": len(regrets)}
    stored = {"recipe": run.name, "test_rows": problem, "block": block} if by_row else {}
    arrays = {"regrets": regrets} if by_row else None
    Rows(folder).write(run, {**blank(run), **means, **times, **stored}, arrays)


def line(folder, problem, ours):
    found = quality.lines(quality.read(folder), ours)
    return next(each for each in found if each.problem == problem)


def texts(folder, problem, ours):
    return line(folder, problem, ours).texts()


def test_single_and_cross_fitted_methods_are_never_mixed(tmp_path):
    for seed in (0, 1):
        write(tmp_path, "wind", "df2-quick", seed, 60.0 + seed)
        write(tmp_path, "wind", "df2-paper", seed, 61.0)
        write(tmp_path, "wind", "egl", seed, 65.0)
        write(tmp_path, "wind", "df2", seed, 58.0)
        write(tmp_path, "wind", "df2", seed, 1.0, folds=1)  # a single fit, and not a default
        write(tmp_path, "wind", "blend", seed, 57.0)
        write(tmp_path, "wind", "egl+crossfit", seed, 63.0)
    single, crossfitted = (texts(tmp_path, "wind", ours) for ours in (SINGLE, CROSSFITTED))
    assert single["df2-quick"] == "60.50 (n=2)"
    assert single["df2-paper"] == "61.00 (n=2)"
    assert single["best opponent"] == "65.00 (n=2) egl"
    assert single["difference [95 %]"] == "-4.5 [-10.9, +1.9]"
    assert crossfitted["df2"] == "58.00 (n=2)"
    assert crossfitted["blend"] == "57.00 (n=2)"  # ours, and no opponent
    assert crossfitted["best opponent"] == "63.00 (n=2) egl+crossfit"
    assert crossfitted["difference [95 %]"].startswith("-5.00 ")
    assert crossfitted[""] == "better"


def test_without_costs_of_each_row_the_interval_is_students_over_seeds(tmp_path):
    ours, theirs = [60.1, 59.0, 61.2], [62.0, 61.5, 60.9]
    for seed, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        write(tmp_path, "wind", "df2", seed, a, by_row=False)
        write(tmp_path, "wind", "egl+crossfit", seed, b, by_row=False)
    found = line(tmp_path, "wind", CROSSFITTED).first.difference
    peer = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((peer.low, peer.high), rel=1e-5)
    shown = texts(tmp_path, "wind", CROSSFITTED)
    assert (shown["interval over"], shown[""]) == ("seeds", "tie")


def test_with_costs_of_each_row_the_interval_is_over_blocks_and_seeds(tmp_path):
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(10, 1, (3, 40)), rng.normal(10.2, 1, (3, 40))
    for seed in range(3):
        write(tmp_path, "wind", "df2-quick", seed, ours[seed], block=4)
        write(tmp_path, "wind", "egl", seed, theirs[seed], block=4)
    found = line(tmp_path, "wind", SINGLE).first.difference
    peer = difference_over_seeds(ours - theirs, 4, shared_rows=True)
    assert (found.mean, found.low, found.high) == pytest.approx(
        (peer.mean, peer.low, peer.high), rel=1e-4
    )
    assert texts(tmp_path, "wind", SINGLE)["interval over"] == "rows and seeds"


def test_where_seeds_agree_the_interval_is_that_of_the_rows(tmp_path):
    d = np.array([0.5, -0.2, 0.4, 0.9, -0.6, 0.8, 0.1, 0.3, -0.1, 0.7])
    for seed in (0, 1):
        write(tmp_path, "wind", "df2", seed, 5 + d)
        write(tmp_path, "wind", "egl+crossfit", seed, np.full(10, 5.0))
    found = line(tmp_path, "wind", CROSSFITTED).first.difference
    half = t.ppf(0.975, 9) * d.std() / 10**0.5  # independent rows, blocks of 1
    assert found.high - found.mean == pytest.approx(half, rel=1e-4)


def test_synthetic_problems_are_judged_by_their_gap(tmp_path):
    for seed in (0, 1):
        write(tmp_path, "synthetic-convex", "df2", seed, 9.0, gaps=0.02, by_row=False)
        write(tmp_path, "synthetic-convex", "egl+crossfit", seed, 5.0, gaps=0.03, by_row=False)
    shown = texts(tmp_path, "synthetic-convex", CROSSFITTED)
    assert shown["df2"] == "0.02000 (n=2)"
    assert shown["difference [95 %]"].startswith("-0.0100 ")


def test_ten_items_are_one_problem_and_its_pairs(tmp_path):
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(10, 1, (3, 30)), rng.normal(11, 1, (3, 30))
    for i in range(3):
        problem = f"inventory-item{i + 8}"
        for seed, more in enumerate((-3, 1, 2)):  # the mean over seeds counts
            write(tmp_path, problem, "df2", seed, ours[i] + more, block=3)
        write(tmp_path, problem, "egl+crossfit", 0, theirs[i], block=3)
    found = line(tmp_path, ITEMS, CROSSFITTED)
    assert found.first.score.n == 3
    assert found.first.score.mean == pytest.approx(ours.mean(), rel=1e-5)
    peer = difference_over_seeds(ours - theirs, 3, shared_rows=True)  # on the same dates
    d = found.first.difference
    assert (d.low, d.high) == pytest.approx((peer.low, peer.high), rel=1e-4)
    # another test set of one method cannot be paired row by row
    rows = quality.read(tmp_path)
    plain = [row for row in rows if row["problem"] != ITEMS and row["seed"] == 0]
    plain[0]["test_rows"] = "others"
    assert quality.as_pair(plain[0], plain)["test_rows"] is None
    assert quality.as_pair(plain[-1], plain)["test_rows"] == "dates"


def test_the_seeds_of_an_item_are_averaged():
    def run(seed, regret, **more):
        run = Run("inventory-item1", "lancer", seed)
        by_row = {"regrets": np.full(2, regret)}
        return {**blank(run), "regret": regret, "test_rows": "t", "by_test_row": by_row, **more}

    left, kept = ({"chosen": {"epoch": epoch}} for epoch in (3, 0))
    found = quality.mean_over_seeds([run(0, 1.0, **kept), run(1, 4.0, **left)])
    assert found["regret"] == found["by_test_row"]["regrets"].mean() == 2.5
    assert found["gap"] is None  # missing, not 0
    assert found["chosen"] == {"fits": [{"epoch": 0}, {"epoch": 3}]}
    failed = run(2, None, error="no memory", by_test_row={})
    assert quality.mean_over_seeds([run(0, 1.0), run(1, 4.0), failed])["regret"] == 2.5
    assert quality.mean_over_seeds([failed])["error"] == "no memory"
    # means over different test rows are kept, their costs by row are not
    found = quality.mean_over_seeds([run(0, 1.0), run(1, 4.0, test_rows="others")])
    assert (found["regret"], found["by_test_row"]) == (2.5, {})


def test_the_origins_of_items_have_a_line_of_their_own(tmp_path):
    for item in (1, 2):
        for origin in (1, 2):
            problem = f"inventory-item{item}@{origin}of2"
            write(tmp_path, problem, "df2", 0, np.full(4, 10.0 * item + origin))
            write(tmp_path, problem, "egl+crossfit", 0, np.full(4, 20.0))
    found = line(tmp_path, f"{ITEMS}, 2 origins", CROSSFITTED)
    assert found.first.score.n == 2
    assert found.first.score.mean == pytest.approx(16.5)
    names = [each.problem for each in quality.lines(quality.read(tmp_path), CROSSFITTED)]
    assert names.index(found.problem) == names.index(ITEMS) + 1


def test_an_opponent_with_one_seed_is_named_where_it_is_lower(tmp_path):
    for seed in (0, 1):
        write(tmp_path, "wind", "df2-quick", seed, 60.0)
        write(tmp_path, "wind", "egl", seed, 65.0)
    write(tmp_path, "wind", "cme", 0, 59.0)
    write(tmp_path, "wind", "lancer", 0, 66.0)
    shown = texts(tmp_path, "wind", SINGLE)
    assert shown["best opponent"] == "65.00 (n=2) egl"
    assert shown["lower with fewer seeds"] == "cme"
    assert "lower with fewer seeds" in quality.tables(tmp_path)["Single fits"]
    assert "lower with fewer seeds" not in quality.tables(tmp_path)["Cross-fitted"]


def test_what_is_missing_was_not_run(tmp_path):
    write(tmp_path, "wind", "egl", 0, 65.0)
    shown = texts(tmp_path, "wind", SINGLE)
    assert shown["df2-quick"] == shown["df2-paper"] == "not run"
    assert shown["best opponent"] == "65.00 (n=1) egl"
    assert shown["difference [95 %]"] == shown[""] == ""
    both = quality.tables(tmp_path)
    assert list(both) == ["Single fits", "Tuned single fits", "Cross-fitted"]
    assert both.pop("Tuned single fits") == "not run"
    for text in both.values():
        assert len(text.splitlines()) == 1 + len(quality.PROBLEMS)
    write(tmp_path, "wind", "df2-quick", 0, 60.0)
    assert texts(tmp_path, "wind", SINGLE)[""] == "one common seed, no interval"


def test_the_tables_of_the_stored_rows_can_be_made():
    for title, text in quality.tables().items():
        shown = [line.split("  ")[0] for line in text.splitlines()[1:]]
        if title == "Tuned single fits":
            assert shown == [name for name in quality.PROBLEMS if name in shown] != []
        else:
            assert [name for name in shown if "origins" not in name] == list(quality.PROBLEMS)


def test_tuned_methods_are_compared_with_tuned_ones_only(tmp_path):
    for seed in (0, 1):
        write(tmp_path, "wind", "df2-quick+tuned", seed, 60.0)
        write(tmp_path, "wind", "egl+tuned", seed, 65.0)
        write(tmp_path, "wind", "cme", seed, 50.0)
    shown = texts(tmp_path, "wind", quality.TUNED)
    assert shown["best opponent"] == "65.00 (n=2) egl+tuned"
    assert len(quality.tables(tmp_path)["Tuned single fits"].splitlines()) == 2
