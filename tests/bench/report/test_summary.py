import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from costscape.bench.report import read_landscapes, read_rows
from costscape.bench.report import summarise as summarise_any
from costscape.bench.report.fit_kinds import KINDS
from costscape.bench.report.problem_tables import series_of
from costscape.bench.report.row_facts import troubles
from costscape.bench.store_files import write_lines


def summarise(rows):
    return summarise_any(rows, ("df2", "blend"))


def cell_of(rows, name):
    return next(cell for cell in summarise(rows) if cell.label == name)


def test_mean_and_sd_are_over_seeds(run):
    cell = cell_of([run(seed=i, regret=r) for i, r in enumerate((1.0, 2.0, 6.0))], "df2")
    assert (cell.regret.mean, cell.regret.sd) == (3.0, statistics.stdev((1.0, 2.0, 6.0)))
    assert cell.seeds == (0, 1, 2)
    assert cell.fit_seconds == 2.0
    assert cell.gap is None


def test_the_interval_is_that_of_a_paired_t_test(run):
    ours, theirs = [3.1, 2.9, 3.3, 2.7], [3.4, 3.6, 3.2, 3.1]
    rows = [run(method="df2", seed=i, regret=r) for i, r in enumerate(ours)]
    rows += [run(method="cme", seed=i, regret=r) for i, r in enumerate(theirs)]
    found = cell_of(rows, "df2").difference
    expected = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.mean == pytest.approx(-0.325)
    assert found.opponent == "cme"


@given(
    st.lists(
        st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=12
    ).filter(lambda pairs: statistics.stdev([a - b for a, b in pairs]) > 1e-6)
)
def test_the_verdict_is_a_tie_just_when_the_interval_holds_nought(pairs):
    blank = dict.fromkeys(("gap", "cost", "refused", "error", "fit_seconds", "decide_seconds"))
    blank |= {"problem": "p", "changes": {}, "device": None}
    rows = [
        {**blank, "method": method, "seed": seed, "regret": pair[k]}
        for seed, pair in enumerate(pairs)
        for k, method in enumerate(("df2", "cme"))
    ]
    found = cell_of(rows, "df2").difference
    expected = ttest_rel(*zip(*pairs, strict=True)).confidence_interval(0.95)
    assert found.low == pytest.approx(expected.low, rel=1e-6, abs=1e-6)
    holds = found.low <= 0 <= found.high
    assert found.verdict == ("tie" if holds else "better" if found.high < 0 else "worse")


def test_a_blend_is_no_opponent(run):
    rows = [run(method="df2", seed=i, regret=3.0) for i in (0, 1)]
    rows += [run(method="blend", seed=i, regret=1.0) for i in (0, 1)]
    rows += [run(method="cme+crossfit", seed=i, regret=2.0) for i in (0, 1)]
    assert cell_of(rows, "df2").difference.opponent == "cme+crossfit"
    assert cell_of(rows, "blend").difference.mean == -1.0


def test_each_kind_of_fits_has_its_own_best_opponent(run):
    scores = {"df2": 1.0, "df2-quick": 2.0, "egl+crossfit": 3.0, "cme+crossfit": 4.0}
    scores |= {"egl": 5.0, "cme": 6.0, "df2-quick+tuned": 7.0}
    rows = [run(method=m, seed=s, regret=r + s) for m, r in scores.items() for s in (0, 1)]
    cells = {cell.label: cell for cell in summarise(rows)}
    assert {name for name, cell in cells.items() if cell.is_best_opponent} == {
        "egl+crossfit",
        "egl",
    }
    opponents = {
        name: cell.difference and cell.difference.opponent for name, cell in cells.items()
    }
    assert opponents == {
        "df2": "egl+crossfit",
        "cme+crossfit": "egl+crossfit",
        "egl+crossfit": None,
        "df2-quick": "egl",
        "cme": "egl",
        "egl": None,
        "df2-quick+tuned": "egl+crossfit",  # no other is tuned: the best of all
    }
    kinds = [cell.kind for cell in summarise(rows)]
    assert kinds == sorted(kinds, key=KINDS.index)


def test_only_common_seeds_are_paired(run):
    rows = [run(method="df2", seed=i, regret=r) for i, r in ((0, 9.0), (1, 1.0), (2, 2.0))]
    rows += [run(method="cme", seed=i, regret=r) for i, r in ((1, 3.0), (2, 5.0), (7, 0.0))]
    found = cell_of(rows, "df2").difference
    assert (found.n, found.mean) == (2, -2.5)


def test_the_best_opponent_is_the_lowest_mean_that_is_not_named_df2(run):
    rows = [
        run(method=method, seed=seed, regret=regret + seed)
        for method, regret in (("df2", 1.0), ("df2-paper", 2.0), ("cme", 4.0), ("egl", 5.0))
        for seed in (0, 1)
    ]
    cells = {cell.label: cell for cell in summarise(rows)}
    assert [name for name, cell in cells.items() if cell.is_best_opponent] == ["cme"]
    assert cells["cme"].difference is None
    assert {cells[n].difference.opponent for n in ("df2", "df2-paper", "egl")} == {"cme"}


def test_a_fit_of_fewer_rows_is_no_best_opponent(run):
    rows = [run(method="cme", seed=i, regret=3.0 + i) for i in (0, 1)]
    rows += [run(method="egl", seed=i, regret=1.0, changes={"share": 0.1}) for i in (0, 1)]
    rows += [run(method="df2", seed=i, regret=2.0) for i in (0, 1)]
    assert cell_of(rows, "cme").is_best_opponent
    assert cell_of(rows, "egl share=0.1").difference.mean == -2.5


def test_the_caller_names_the_methods_whose_opponents_are_wanted(run):
    scores = {"df2": 1.0, "df2-paper": 3.0, "cme": 4.0, "egl": 2.0}
    rows = [run(method=m, seed=s, regret=r + s) for m, r in scores.items() for s in (0, 1)]
    roles = {cell.label: cell.role for cell in summarise_any(rows, ("cme", "df2-paper"))}
    assert roles == {"cme": "main", "df2-paper": "ours", "df2": "best", "egl": "best"}
    without = {cell.label: cell.role for cell in summarise_any(rows)}
    assert without == {"df2": "best", "df2-paper": "other", "cme": "other", "egl": "best"}


def test_a_lucky_single_seed_is_no_best_opponent_beside_several(run):
    rows = [run(method="lucky", seed=0, regret=0.1)]
    rows += [run(method="cme", seed=seed, regret=1.0 + seed) for seed in (0, 1)]
    assert cell_of(rows, "cme").is_best_opponent
    assert cell_of(rows[:1], "lucky").is_best_opponent


def test_opponents_are_held_against_each_other_on_the_seeds_of_both(run):
    rows = [run(method="df2", seed=seed, regret=1.0) for seed in range(4)]
    rows += [run(method="many", seed=s, regret=r) for s, r in enumerate((2.0, 2.0, 9.0, 9.0))]
    rows += [run(method="few", seed=seed, regret=3.0) for seed in (0, 1)]
    assert cell_of(rows, "many").is_best_opponent  # whose mean is larger
    rows += [run(method="lucky", seed=seed, regret=r) for seed, r in ((2, 8.0), (3, 8.0))]
    assert cell_of(rows, "lucky").is_best_opponent
    rows[-2:] = [run(method="same", seed=seed, regret=9.0001) for seed in (2, 3)]
    assert cell_of(rows, "many").is_best_opponent


def test_the_measure_is_the_gap_where_every_served_run_has_one_else_the_regret(run):
    rows = [
        run(method="df2", seed=0, regret=5.0, gap=0.1),
        run(method="cme", seed=0, regret=4.0, gap=0.2),
        run(method="egl", seed=0, regret=3.0, gap=0.3),
    ]
    assert cell_of(rows, "cme").is_best_opponent
    refused = [*rows, run(method="lancer", regret=None, refused="no.")]
    assert cell_of(refused, "df2").measure == "gap"
    without = [*rows, run(method="taskmet", seed=0, regret=6.0)]
    assert cell_of(without, "df2").measure == "regret"
    assert cell_of(without, "egl").is_best_opponent


def test_the_cost_is_the_measure_where_no_hindsight_is_known(run):
    rows = [run(seed=seed, regret=None, cost=2.0 + seed, fit_seconds=1.0) for seed in (0, 1)]
    cell = cell_of(rows, "df2")
    assert (cell.measure, cell.score.mean, cell.failed) == ("cost", 2.5, 0)


@pytest.mark.parametrize(
    ("seeds", "verdict"), [((0,), "one common seed, no interval"), ((5,), "no common seed")]
)
def test_fewer_than_two_common_seeds_have_no_interval_and_say_so(run, seeds, verdict):
    rows = [run(method="cme", seed=seed) for seed in (0, 1)]
    rows += [run(method="df2", seed=seed, regret=3.0) for seed in seeds]
    found = cell_of(rows, "df2").difference
    assert (found.low, found.high, found.verdict) == (None, None, verdict)


def test_fewer_seeds_than_others_and_failures_are_remarked(run):
    rows = [run(method="cme", seed=seed) for seed in range(4)]
    rows += [run(method="egl", seed=seed) for seed in range(2)]
    rows += [run(method="egl", seed=2, regret=None, error="Traceback\nValueError: lost.")]
    rows += [run(method="lancer", seed=0, regret=float("nan"))]
    assert cell_of(rows, "cme").remarks == ()
    assert cell_of(rows, "egl").remarks == ("(2 seeds)", "failed (1 of 3)")
    assert cell_of(rows, "lancer").remarks == ("failed (1 of 1)",)


def test_every_run_without_a_number_is_told_with_its_sentence(run):
    rows = [
        run(method="a", seed=0, regret=None, error="Traceback\n  f\nValueError: lost.\n\n"),
        run(method="a", seed=1, regret=None, error="Traceback\n  g\nValueError: lost.\n"),
        run(method="b", regret=None, refused="B needs a box."),
        run(method="c", regret=float("inf")),
        run(method="d", regret=None),
        run(method="e"),
    ]
    assert [(t.label, t.kind, t.seeds, t.sentence) for t in troubles(rows)] == [
        ("a", "failed", (0, 1), "ValueError: lost."),
        ("b", "refused", (0,), "B needs a box."),
        ("c", "failed", (0,), "the regret is inf"),
        ("d", "failed", (0,), "no regret, gap or cost was kept"),
    ]


def test_methods_with_changes_are_cells_of_their_own(run):
    rows = [run(), run(changes={"draws": 1000}, regret=2.0), run(changes={"draws": 10})]
    names = {cell.label: cell.regret.mean for cell in summarise(rows)}
    assert names == {"df2": 1.0, "df2 draws=1000": 2.0, "df2 draws=10": 1.0}


def test_problems_stand_in_a_fixed_order_and_df2_before_others(run):
    rows = [run(p, m) for p in ("zebra", "wind", "synthetic-convex") for m in ("cme", "df2")]
    assert [(c.problem, c.method) for c in summarise(rows)] == [
        (p, m) for p in ("synthetic-convex", "wind", "zebra") for m in ("df2", "cme")
    ]


def test_the_same_seed_twice_is_an_error(run):
    with pytest.raises(ValueError, match=r"df2 on wind has seed 3 more than once"):
        summarise([run(seed=3), run(seed=3, regret=2.0)])


def test_a_setting_at_several_numbers_is_a_series_in_their_order(run):
    rows = [run(changes={"points": n}, regret=n) for n in (500, 50, 200)]
    rows += [run(changes={"learn": flag}) for flag in (True, False)]
    rows += [run(method="cme", changes={"points": 5})]
    (one,) = series_of(summarise(rows))
    assert (one.setting, one.label) == ("points", "df2")
    assert [(x, cell.regret.mean) for x, cell in one.points] == [(50, 50), (200, 200), (500, 500)]


# ---- reading a store


def write_rows(folder, *rows):
    write_lines(folder / "wind.jsonl", rows)


def test_rows_are_read_in_order(run, tmp_path):
    write_rows(tmp_path, run(seed=1), run(seed=0))
    assert read_rows(tmp_path) == [run(seed=0), run(seed=1)]


def test_a_row_may_lack_what_only_pictures_need(run, tmp_path):
    row = run()
    for key in ("curve", "versions", "commit", "made", "source", "chosen_epoch", "recipe"):
        del row[key]
    write_rows(tmp_path, row)
    (found,) = read_rows(tmp_path)
    assert (found["curve"], found["versions"], found["made"]) == ([], {}, None)


def test_a_missing_folder_and_an_empty_one_are_errors_that_name_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere is no folder\. Name the store"):
        read_rows(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"holds none\. Run a method"):
        read_rows(tmp_path)


@pytest.mark.parametrize(("key", "value"), [("regret", "1.0"), ("device", True), ("refused", [])])
def test_a_value_of_the_wrong_kind_is_an_error_that_names_it(run, tmp_path, key, value):
    write_rows(tmp_path, {**run(), key: value})
    with pytest.raises(ValueError, match=rf"needs {key} to be .*wind\.jsonl, df2 with seed 0"):
        read_rows(tmp_path)


def test_landscapes_are_read_and_incomplete_ones_refused(landscape, tmp_path):
    assert read_landscapes(tmp_path) == []
    write_lines(tmp_path / "landscapes.jsonl", [landscape])
    assert read_landscapes(tmp_path) == [landscape]
    del landscape["surfaces"]["true"], landscape["x"]
    write_lines(tmp_path / "landscapes.jsonl", [landscape])
    with pytest.raises(ValueError, match=r"needs x, true, but .*landscapes\.jsonl"):
        read_landscapes(tmp_path)
