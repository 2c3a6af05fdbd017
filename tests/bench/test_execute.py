"""A row holds what evaluate says, whatever happens to the run."""

import gc
import json
import os
import re
import subprocess
from copy import deepcopy
from datetime import datetime

import pytest
import torch

import costscape
from costscape import Training, evaluate
from costscape.bench import METHODS, PROBLEMS, Run, execute, prepare, provenance
from costscape.bench.execution import blank, block_of, curve
from costscape.bench.memory import peak, watch
from costscape.bench.provenance import check_device, commit, device_of
from costscape.block_bootstrap import standard_error
from costscape.task import Refusal
from costscape.training import History

KEYS = {
    *("problem", "method", "seed", "changes", "regret", "cost", "gap", "standard_error"),
    *("refused", "error", "fit_seconds", "decide_seconds", "rows", "epochs", "chosen_epoch"),
    *("curve", "peak_memory", "device", "versions", "source", "recipe", "commit", "made", "quick"),
    "network",
    *("block", "test_rows", "chosen"),
}


@pytest.fixture(scope="module")
def outcome():
    """DF2 on a synthetic problem."""
    return execute(Run("synthetic-convex", "df2", 1, {"epochs": 2}, quick=True), device="cpu")


@pytest.fixture(scope="module")
def row(outcome):
    return outcome.row


def test_a_row_has_every_key_and_is_json(row):
    assert set(row) == KEYS == set(blank(Run("wind", "df2")))
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_a_row_says_what_was_run_where_and_when(row):
    said = {key: row[key] for key in ("problem", "method", "seed", "changes", "quick")}
    assert said == {
        "problem": "synthetic-convex",
        "method": "df2",
        "seed": 1,
        "changes": {"epochs": 2},
        "quick": True,
    }
    assert row["source"] == "three Gaussians, seed 1"
    assert re.fullmatch(r"cpu: \w+, \d+ cores", row["device"])
    assert row["versions"]["costscape"] == costscape.__version__
    assert row["versions"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert {"python", "numpy", "scipy", "scikit-learn"} < set(row["versions"])
    assert datetime.fromisoformat(row["made"]).tzinfo is not None
    assert row["recipe"] == prepare(Run("synthetic-convex", "df2", 1, {"epochs": 2}, True)).recipe


def test_a_row_holds_what_evaluate_says(row):
    made = prepare(Run("synthetic-convex", "df2", 1, {"epochs": 2}, True), device="cpu")
    train, val, test = made.problem.data.train, made.problem.data.val, made.problem.data.test
    method = made.method.fit(train.x, train.y, val=(val.x, val.y))
    result = evaluate(method, test.x, test.y, truth=made.problem.truth)
    for name in ("cost", "regret", "gap", "standard_error"):
        assert row[name] == pytest.approx(getattr(result, name), rel=1e-5), name
    assert row["gap"] > 0
    assert row["rows"] == len(test) == 60
    assert row["fit_seconds"] > 0
    assert row["decide_seconds"] > 0
    assert row["refused"] is row["error"] is None


def test_costs_of_each_test_row_come_beside_the_row(outcome):
    row, arrays = outcome.row, outcome.arrays
    assert set(arrays) == {"costs", "regrets", "gaps"}
    for name, values in arrays.items():
        assert values.shape == (row["rows"],)
        assert values.mean() == pytest.approx(row[name[:-1]], rel=1e-9), name
    assert row["block"] == 4
    assert row["standard_error"] == pytest.approx(standard_error(arrays["costs"], 4), rel=1e-9)
    assert len(json.dumps(row)) < 4000


def test_regrets_and_gaps_are_there_where_they_are_known():
    assert set(execute(Run("wind-farm", "constant", quick=True)).arrays) == {"costs", "regrets"}


def test_runs_on_the_same_test_rows_are_told_by_their_digest(row):
    def digest(problem, seed, **changes):
        return execute(Run(problem, "constant", seed, changes, quick=True)).row["test_rows"]

    assert digest("synthetic-convex", 1) == row["test_rows"] != digest("synthetic-convex", 2)
    assert digest("wind-farm", 1) == digest("wind-farm", 2) == digest("wind-farm", 1, share=0.5)


def test_a_block_spans_whole_dates_and_at_least_the_horizon():
    farm = PROBLEMS["wind-farm"](0)  # 3,495 hours, outcomes of 12 hours
    assert block_of(farm) == 16
    store = PROBLEMS["inventory-store"](0)  # 50 items a day, 360 days, outcomes of 7 days
    assert block_of(store) == 8 * 50
    assert block_of(PROBLEMS["synthetic-convex"](0)) == 10


def test_a_row_holds_what_the_fit_chose(monkeypatch):
    kind = type(METHODS["constant"](PROBLEMS["synthetic-convex"](0), 0))
    monkeypatch.setattr(kind, "chosen", lambda self: {"form": "anchored"}, raising=False)
    run = Run("synthetic-convex", "constant", quick=True)
    assert execute(run).row["chosen"] == {"form": "anchored"}
    monkeypatch.setattr(kind, "chosen", lambda self: {"form": object()}, raising=False)
    assert "not JSON serializable" in execute(run).row["error"]


def test_a_row_holds_the_training_curve(row):
    assert row["epochs"] == 2
    assert 0 <= row["chosen_epoch"] <= 2  # 0 is the start
    assert [point[0] for point in row["curve"]] == [1, 2]
    assert all(loss > 0 for _, loss, _ in row["curve"])


def test_the_same_run_makes_the_same_row(row):
    again = execute(Run("synthetic-convex", "df2", 1, {"epochs": 2}, quick=True), device="cpu").row
    noise = {"fit_seconds", "decide_seconds", "peak_memory", "made"}
    assert {k: v for k, v in again.items() if k not in noise} == {
        k: v for k, v in row.items() if k not in noise
    }


def test_a_method_that_trains_nothing_has_no_epochs():
    row = execute(Run("synthetic-convex", "constant", quick=True)).row
    assert row["epochs"] is row["chosen_epoch"] is None
    assert row["curve"] == []
    assert row["regret"] > 0


def test_regrets_are_paid_in_double_precision():
    row = execute(Run("vaccine", "constant", quick=True)).row
    made = prepare(Run("vaccine", "constant", quick=True))
    train, test = made.problem.data.train, made.problem.data.test
    val = made.problem.data.val
    a = made.method.fit(train.x, train.y, val=(val.x, val.y)).decide(test.x).double()
    task, y = deepcopy(made.problem.task).double(), test.y.double()
    paid = task.cost(y, a)
    assert row["cost"] == pytest.approx(float(paid.mean()), rel=1e-12)
    assert row["regret"] == pytest.approx(
        float((paid - task.cost(y, task.hindsight(y))).mean()), rel=1e-9, abs=1e-9
    )
    assert row["gap"] is None


def test_a_curve_has_few_points_with_both_ends():
    history = History(losses=[1 / (i + 1) for i in range(200)], scores=[2.0] * 200, best_epoch=9)
    points = curve(history)
    assert len(points) <= 40
    assert points[0] == [1, 1.0, 2.0]
    assert points[-1] == [200, 0.005, 2.0]
    assert [p[0] for p in points] == sorted({p[0] for p in points})
    assert curve(History(losses=[3.0])) == [[1, 3.0, None]]


def test_a_curve_leaves_out_what_is_no_number():
    assert curve(History(losses=[float("nan"), float("inf")])) == [
        [1, None, None],
        [2, None, None],
    ]


@pytest.fixture
def constant_does(monkeypatch):
    """constant_does(f): the method named constant calls f in the place of fit."""
    kind = type(METHODS["constant"](PROBLEMS["synthetic-convex"](0), 0))

    def patch(what):
        monkeypatch.setattr(kind, "fit", lambda self, x, y, val=None: what(self))

    return patch


def test_an_error_is_kept_with_its_traceback(constant_does):
    def fail(method):
        raise ZeroDivisionError("the roof fell in")

    constant_does(fail)
    row = execute(Run("synthetic-convex", "constant", quick=True)).row
    assert row["error"].startswith("Traceback")
    assert "ZeroDivisionError: the roof fell in" in row["error"]
    assert row["refused"] is row["regret"] is row["cost"] is None
    assert row["recipe"] is not None
    assert set(row) == KEYS


def test_a_refusal_is_a_sentence_and_no_error(constant_does):
    def refuse(method):
        raise Refusal("Constant cannot fly.")

    constant_does(refuse)
    row = execute(Run("synthetic-convex", "constant", quick=True)).row
    assert (row["refused"], row["error"]) == ("Constant cannot fly.", None)


def test_a_named_method_refuses_what_it_cannot_serve():
    row = execute(Run("vaccine", "two-stage-gmm3", 0, {"draws": None}, quick=True)).row
    assert row["error"] is None
    assert "closed form" in row["refused"]
    assert row["regret"] is None


def test_decisions_that_cost_no_number_are_an_error(monkeypatch):
    made = PROBLEMS["synthetic-convex"](0)
    kind = type(METHODS["constant"](made, 0))
    monkeypatch.setattr(
        kind, "decide", lambda self, x: torch.full((len(x), 2), float("nan")), raising=False
    )
    row = execute(Run("synthetic-convex", "constant", quick=True)).row
    assert "cost of the decisions is nan" in row["error"]
    json.dumps(row, allow_nan=False)


def test_ctrl_c_is_no_error_of_the_run(constant_does):
    def stop(method):
        raise KeyboardInterrupt

    constant_does(stop)
    with pytest.raises(KeyboardInterrupt):
        execute(Run("synthetic-convex", "constant", quick=True))


def test_an_unknown_name_is_an_error_of_its_row():
    row = execute(Run("synthetic-convex", "df3")).row
    assert "no method named 'df3'" in row["error"]
    assert row["recipe"] is None


def test_the_commit_is_that_of_the_source_tree(monkeypatch):
    ask = commit
    ask.cache_clear()
    asked = []
    monkeypatch.delenv("COSTSCAPE_COMMIT", raising=False)

    def answer(words, **settings):
        assert words[:3] == ["git", "-c", "core.fsmonitor=false"]
        asked.append(words[7])
        return subprocess.CompletedProcess(words, 0, stdout="0123456789ab-dirty\n")

    monkeypatch.setattr(subprocess, "run", answer)
    assert ask() == "0123456789ab-dirty"
    assert asked == ["ls-files", "describe"]
    ask.cache_clear()

    def fail(words, **settings):
        raise subprocess.CalledProcessError(1, words)

    monkeypatch.setattr(subprocess, "run", fail)
    assert ask() is None
    ask.cache_clear()
    monkeypatch.setenv("COSTSCAPE_COMMIT", "feed")
    assert ask() == "feed"
    ask.cache_clear()


def test_git_is_not_asked_of_a_tree_above_an_installed_package(monkeypatch, tmp_path):
    def fail(words, **settings):
        raise AssertionError("git was called")

    monkeypatch.delenv("COSTSCAPE_COMMIT", raising=False)
    monkeypatch.setattr(subprocess, "run", fail)
    (tmp_path / ".git").mkdir()  # of somebody else, who has no pyproject.toml beside src
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    commit.cache_clear()
    assert commit() is None
    commit.cache_clear()


def test_a_program_named_by_the_configuration_of_a_tree_is_not_run(monkeypatch, tmp_path):
    package = tmp_path / "src" / "costscape" / "bench"
    package.mkdir(parents=True)
    (package / "provenance.py").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    git = ["git", "-C", str(tmp_path)]
    own = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run([*git, "init", "-q"], check=True, env=own)
    subprocess.run([*git, "add", "-A"], check=True, env=own)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, *who, "commit", "-qm", "a"], check=True, env=own)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'planted'}\n")
    program.chmod(0o755)
    subprocess.run([*git, "config", "core.fsmonitor", str(program)], check=True, env=own)
    monkeypatch.delenv("COSTSCAPE_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setattr(provenance, "__file__", str(package / "provenance.py"))
    commit.cache_clear()
    assert commit() is not None
    commit.cache_clear()
    assert not (tmp_path / "planted").exists()
    subprocess.run([*git, "status"], check=True, env=own, capture_output=True)
    assert (tmp_path / "planted").exists()  # so it would have been run


@pytest.fixture
def _memory_is_given_back():
    """Skips where torch's allocator keeps freed memory: a peak cannot fall there."""
    blocks = [torch.ones(5_000_000) for _ in range(20)]  # 400 MB, in blocks of 20
    most = peak(on_gpu=False)
    del blocks
    watch()
    if peak(on_gpu=False) > most - 300e6:
        pytest.skip("the allocator of this machine's torch keeps freed memory")


@pytest.mark.usefixtures("_memory_is_given_back")
def test_peak_memory_is_that_since_the_watch():
    watch()
    before = peak(on_gpu=False)
    held = torch.ones(40_000_000)  # 160 MB
    most = peak(on_gpu=False)
    assert most - before > 100e6
    del held
    assert peak(on_gpu=False) == pytest.approx(most, abs=5e6)
    watch()
    assert peak(on_gpu=False) < most - 100e6


@pytest.mark.usefixtures("_memory_is_given_back")
def test_garbage_of_earlier_runs_does_not_hide_what_comes():
    loop = [torch.ones(60_000_000)]
    loop.append(loop)
    del loop
    watch()
    before = peak(on_gpu=False)
    gc.collect()  # as it may come at any time
    held = torch.ones(40_000_000)
    assert peak(on_gpu=False) - before > 100e6
    del held


@pytest.mark.usefixtures("_memory_is_given_back")
def test_memory_that_the_allocator_holds_does_not_hide_what_comes():
    blocks = [torch.ones(5_000_000) for _ in range(20)]  # 20 MB each, in one heap
    last = torch.ones(100_000)
    del blocks  # under the last one: kept for later use
    watch()
    before = peak(on_gpu=False)
    held = [torch.ones(5_000_000) for _ in range(10)]
    assert peak(on_gpu=False) - before > 100e6
    del held, last


def test_a_row_holds_the_peak_of_its_own_run(row):
    held = torch.ones(60_000_000)
    del held
    later = execute(Run("synthetic-convex", "constant", quick=True)).row
    assert later["peak_memory"] > 10e6
    watch()
    assert later["peak_memory"] < peak(on_gpu=False) + 200e6


def test_the_device_is_where_the_training_runs(monkeypatch):
    monkeypatch.setattr(Training, "where", lambda self: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a fast one")
    assert device_of(prepare(Run("synthetic-convex", "df2", quick=True)).method) == "a fast one"
    monkeypatch.setattr(Training, "where", lambda self: torch.device("cpu"))
    assert device_of(prepare(Run("synthetic-convex", "constant")).method).startswith("cpu: ")


@pytest.mark.parametrize("device", ["gpu", "cuda:x", ""])
def test_a_device_that_torch_does_not_know_is_refused(device):
    for here in (True, False):
        with pytest.raises(ValueError, match=f"name that torch knows, but got '{device}'"):
            check_device(device, here)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for device in (None, "cpu", "cuda", "cuda:0"):
        check_device(device)
    with pytest.raises(ValueError, match="cuda:1 needs a GPU that this machine does not have"):
        check_device("cuda:1")
    check_device("cuda:1", here=False)  # a cluster may have it
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ValueError, match="torch sees 0"):
        check_device("cuda")


@pytest.mark.parametrize("method", ["constant", "wsaa-knn", "wsaa-forest", "wsaa-kernel", "cme"])
def test_a_method_that_does_not_train_works_on_the_device_that_was_asked_for(method):
    run = Run("synthetic-convex", method)
    made = prepare(run, device="meta")
    assert made.method.task.feasible.bounds[0].is_meta
    assert not made.problem.task.feasible.bounds[0].is_meta  # other runs share it
    assert made.recipe == prepare(run, device="cpu").recipe


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("method", ["constant", "wsaa-knn", "wsaa-forest", "wsaa-kernel", "cme"])
def test_a_method_that_does_not_train_decides_the_same_on_a_gpu(method):
    run = Run("synthetic-convex", method, quick=True)
    here, there = (execute(run, device).row for device in ("cpu", "cuda"))
    assert there["error"] is None
    assert there["cost"] == pytest.approx(here["cost"], rel=1e-4)
    assert there["device"] == torch.cuda.get_device_name()
