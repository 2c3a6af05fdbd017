"""Differences over test rows and seeds, from the store to the table."""

import csv as reader
import io
import json
from functools import partial

import numpy as np
import pytest
from scipy.stats import ttest_rel

from costscape.bench import Rows, Run, report
from costscape.bench.report import page, read_rows
from costscape.block_bootstrap import difference_over_seeds

SEEDS = 4
OURS = ("df2", "blend")
csv, latex, markdown, overview, summarise = (
    partial(make, ours=OURS)
    for make in (report.csv, report.latex, report.markdown, report.overview, report.summarise)
)
render = partial(page.render, ours=OURS)


@pytest.fixture
def kept(run, tmp_path):
    """kept(method, costs (seeds, n)): writes rows with the costs of each test row."""

    def write(method, costs, shared=True, block=5, files=True, problem="wind", **facts):
        for seed, values in enumerate(np.asarray(costs, dtype=np.float32)):
            test = {"test_rows": "one" if shared else f"of {seed}", "block": block}
            row = run(problem, method, seed, float(values.mean()), **{**test, **facts})
            del row["by_test_row"]
            one = Run(problem, method, seed, quick=row["quick"])
            Rows(tmp_path).write(one, row, {"regrets": values} if files else None)
        return tmp_path

    return write


@pytest.fixture
def costs():
    """Of df2 and of cme, which costs more on most rows."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=60)
    ours = 10 + shared + rng.normal(size=(SEEDS, 60))
    return ours.astype(np.float32), (ours + 0.5 + rng.normal(size=(SEEDS, 60))).astype(np.float32)


def difference(folder, name="df2"):
    return next(cell.difference for cell in summarise(read_rows(folder)) if cell.label == name)


@pytest.mark.parametrize("shared", [True, False])
def test_the_interval_is_over_blocks_of_rows_and_seeds(kept, costs, shared):
    ours, theirs = costs
    kept("df2", ours, shared)
    found = difference(kept("cme", theirs, shared))
    d = ours.astype(float) - theirs
    expected = difference_over_seeds(d, 5, shared)
    assert found.over_rows
    assert (found.n, found.opponent) == (SEEDS, "cme")
    assert found.mean == pytest.approx(d.mean(), rel=1e-5)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-5)


def test_one_seed_at_several_origins_has_an_interval_over_rows_and_origins(kept, costs):
    ours, theirs = costs
    for i in range(SEEDS):
        for method, values in (("df2", ours), ("cme", theirs)):
            cut = values[i : i + 1, : 60 - i]  # later origins have fewer rows
            folder = kept(method, cut, problem=f"wind@{i + 1}of{SEEDS}", test_rows=f"of {i}")
    found = difference(folder)
    d = [(ours[i] - theirs[i])[: 60 - i].astype(float) for i in range(SEEDS)]
    expected = difference_over_seeds(np.stack([part[:57] for part in d]), 5, shared_rows=False)
    half = expected.high - expected.mean
    assert (found.n, found.over_rows) == (1, True)
    assert found.mean == pytest.approx(np.concatenate(d).mean(), rel=1e-5)
    assert (found.low, found.high) == pytest.approx(
        (found.mean - half, found.mean + half), rel=1e-5
    )


def test_the_longer_block_of_two_methods_counts(kept, costs):
    ours, theirs = costs
    kept("df2", ours, block=3)
    found = difference(kept("cme", theirs, block=12))
    expected = difference_over_seeds(ours.astype(float) - theirs, 12, True)
    assert found.high - found.low == pytest.approx(expected.high - expected.low, rel=1e-5)


def test_rows_alone_can_turn_a_sure_difference_into_a_tie(kept):
    """Both methods have no chance in their seeds: all of it is in one series of test rows."""
    rng = np.random.default_rng(1)
    d = np.repeat(rng.normal(size=(1, 12)), 5, axis=1)  # twelve weeks of five equal rows
    d -= d.mean() + 0.1
    ours = 5 + d + 1e-3 * rng.normal(size=(SEEDS, 1))
    kept("df2", ours, block=10)
    store = kept("cme", np.full((SEEDS, 60), 5.0), block=10)
    assert difference(store).verdict == "tie"
    for path in store.glob("pending/*.npz"):
        path.unlink()
    assert difference(store).verdict == "better"  # Student over seeds is far too sure


def test_without_the_files_of_every_common_seed_it_is_student_over_seeds(kept, costs):
    ours, theirs = costs
    kept("df2", ours)
    store = kept("cme", theirs)
    (store / "pending" / "wind--cme--2.npz").unlink()
    found = difference(store)
    student = ttest_rel(ours.mean(1), theirs.mean(1)).confidence_interval(0.95)
    assert not found.over_rows
    assert (found.low, found.high) == pytest.approx((student.low, student.high), rel=1e-3)


@pytest.mark.parametrize(
    "facts",
    [{"test_rows": "other"}, {"test_rows": None}],
    ids=["other test rows", "unknown test rows"],
)
def test_runs_on_different_test_rows_are_paired_by_seed_alone(kept, costs, facts):
    kept("df2", costs[0])
    assert not difference(kept("cme", costs[1], **facts)).over_rows


def test_costs_of_another_recipe_are_not_those_of_the_row(kept, costs):
    kept("df2", costs[0])
    store = kept("cme", costs[1])
    path = store / "pending" / "wind--cme--0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"recipe": "another"}))
    assert not difference(store).over_rows


def test_a_broken_file_of_costs_is_named(kept, costs):
    kept("df2", costs[0])
    store = kept("cme", costs[1])
    (store / "pending" / "wind--cme--1.npz").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"wind--cme--1\.npz should hold the costs"):
        read_rows(store)


def test_a_merge_changes_no_difference(kept, costs):
    kept("df2", costs[0])
    store = kept("cme", costs[1])
    before = difference(store)
    assert Rows(store).merge() == 2 * SEEDS
    assert difference(store) == before
    assert before.over_rows


def test_a_row_cannot_bring_its_costs_along(kept, costs):
    store = kept("df2", costs[0], files=False)
    path = store / "pending" / "wind--df2--0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"by_test_row": {"costs": [1.0]}}))
    assert read_rows(store)[0]["by_test_row"] == {}


def test_regrets_of_rounding_are_nought(kept):
    optimal = np.full((SEEDS, 60), 1e-6)
    kept("df2", optimal, cost=2e4)
    store = kept("cme", -optimal, cost=2e4)
    assert {row["regret"] for row in read_rows(store)} == {0.0}
    assert difference(store).verdict == "tie"
    assert difference(kept("cme", optimal - 1e-4, cost=2e4)).verdict == "worse"


# ---- tables


def test_tables_say_what_an_interval_is_over(kept, costs):
    ours, theirs = costs
    kept("df2", ours)
    text = markdown(read_rows(kept("cme", theirs)))
    assert "95 % interval over blocks of test rows and seeds. A tie" in text
    assert "marked s" not in text
    assert "]s " not in text


def test_intervals_over_seeds_alone_are_marked_beside_others(kept, costs):
    ours, theirs = costs
    kept("df2", ours)
    kept("egl", theirs + 1, files=False)
    rows = read_rows(kept("cme", theirs))
    lines = {line.split(" | ")[0][2:]: line for line in markdown(rows).splitlines()}
    assert "]s worse |" in lines["egl"]
    assert "] better |" in lines["df2"]
    assert "An interval marked s is Student's, paired by seed alone" in markdown(rows)
    assert "An interval marked s" in latex(rows)
    assert "An interval marked s" in render(rows, [])
    kinds = {row["method"]: row["interval"] for row in reader.DictReader(io.StringIO(csv(rows)))}
    assert kinds == {"df2": "rows and seeds", "cme": "", "egl": "seeds"}


def test_where_no_costs_are_kept_all_intervals_are_marked(kept, costs):
    kept("df2", costs[0], files=False)
    text = markdown(read_rows(kept("cme", costs[1], files=False)))
    assert "An interval marked s is Student's, paired by seed alone" in text
    assert "]s better |" in text


# ---- quick runs and failures


def test_quick_runs_are_a_problem_of_their_own(kept, costs):
    kept("df2", costs[0])
    kept("cme", costs[1])
    kept("cme", costs[1] - 9, quick=True)
    rows = read_rows(kept("df2", costs[0], quick=True))
    assert len(rows) == 4 * SEEDS
    cells = {(cell.title, cell.label): cell for cell in summarise(rows)}
    assert list(dict.fromkeys(title for title, _ in cells)) == ["wind", "wind (quick)"]
    assert cells["wind", "df2"].difference.verdict == "better"
    assert cells["wind (quick)", "df2"].difference.verdict == "worse"
    assert overview(rows).splitlines()[0].split() == ["method", "wind", "wind", "(quick)"]
    assert markdown(rows).count("8 of 8 runs are quick ones") == 1
    text = render(rows, [])
    assert 'id="wind-quick"' in text
    assert "costscape run wind --method df2 --quick --seeds 4" in text
    assert "costscape run wind --method df2 --seeds 4" in text


def test_a_failure_is_read_only_where_there_is_no_row(run, tmp_path):
    store = Rows(tmp_path)
    error = {"regret": None, "error": "Traceback\nValueError: lost."}
    store.write(Run("wind", "cme", 0), run(method="cme", seed=0, regret=2.0))
    for seed in (0, 1):
        store.write(Run("wind", "cme", seed), run(method="cme", seed=seed, **error))
    found = read_rows(tmp_path)
    assert [(row["seed"], row["error"] is None) for row in found] == [(0, True), (1, False)]
    (cell,) = summarise(found)
    assert (cell.regret.mean, cell.remarks) == (2.0, ("failed (1 of 2)",))
    assert "ValueError: lost." in render(found, [])
