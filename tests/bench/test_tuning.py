"""Searches: one budget and one space for all, no test row, the same trials after a stop."""

import json
import os
import sys
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from costscape import Box, CrossFit, Flat, NearestNeighbours, SeparableTask
from costscape.bench import (
    METHODS,
    PROBLEMS,
    Run,
    contest_tables,
    execute,
    method_of,
    prepare,
    tune,
)
from costscape.bench.contest_tables import data_table, settings_table, usual_names
from costscape.bench.search_space import FIXED, fingerprint_of, space_of, with_settings
from costscape.bench.tuning_origins import origins_before_test
from costscape.bench.tuning_rows import best_trial, read_trials, search_for
from costscape.cli import app
from costscape.data import Dataset, Splits
from costscape.problems.files import sources

SHARED = {
    *("training.lr", "training.epochs"),
    *("encoder.hidden", "encoder.layers", "encoder.dropout"),
}


def tiny(seed):
    """Order for a random need."""
    p = PROBLEMS["synthetic-convex"](seed)
    return replace(p, data=Splits(p.data.train[:300], p.data.val[:60], p.data.test[:40]))


@pytest.fixture(autouse=True)
def problems(monkeypatch):
    monkeypatch.setitem(PROBLEMS, "tiny", tiny)
    search_for.cache_clear()
    yield
    search_for.cache_clear()


def search(folder, method="wsaa-knn", trials=12, **rest):
    options = {"origins": 2, "device": "cpu", "quick": True, "shown": False, **rest}
    return tune("tiny", method, folder, trials, **options)


def facts(tuning):
    return [(t["trial"], t["settings"], t["cost"], t["standard_error"]) for t in tuning.trials]


def command(*words):
    return CliRunner().invoke(app, list(words))


# ---- trials


def test_the_first_trial_has_the_default_settings_and_the_best_costs_least(tmp_path):
    found = search(tmp_path)
    first, *others = found.trials
    assert first["settings"] == {}
    assert all(5 <= t["settings"]["k"] <= 200 for t in others)
    assert len({t["settings"]["k"] for t in others}) > 3
    assert found.best["cost"] == min(t["cost"] for t in found.trials)
    assert found.made == 12
    assert first["rows"] == 60
    for trial in (first, others[3]):
        assert trial["cost"] == pytest.approx(by_hand(**trial["settings"]), rel=1e-5)


def by_hand(**settings):
    """The mean cost of the rows after both origins."""
    p, costs = tiny(0), []
    for d in (part.data for part in origins_before_test(p, 2)):
        method = NearestNeighbours(p.task, **settings)
        method.fit(d.train.x, d.train.y, val=(d.val.x, d.val.y))
        costs.append(p.task.cost(d.test.y, method.decide(d.test.x)))
    return float(torch.cat(costs).double().mean())


def test_the_same_seed_has_the_same_trials_and_another_seed_others(tmp_path):
    a, b = search(tmp_path / "a"), search(tmp_path / "b")
    assert facts(a) == facts(b)
    other = search(tmp_path / "c", seed=1)
    assert [t["settings"] for t in other.trials[1:]] != [t["settings"] for t in a.trials[1:]]


def test_a_stopped_search_ends_as_an_unbroken_one(tmp_path, monkeypatch):
    whole = search(tmp_path / "whole")
    search(tmp_path / "parts", trials=3)
    path = tmp_path / "parts" / "tiny.jsonl"
    before = path.read_bytes()
    resumed = search(tmp_path / "parts")
    assert resumed.made == 9
    assert facts(resumed) == facts(whole)
    assert resumed.best["settings"] == whole.best["settings"]
    assert path.read_bytes().startswith(before)  # appended
    assert search(tmp_path / "parts").made == 0
    # a lost trial is made again, the same
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:10] + lines[11:]))
    again = search(tmp_path / "parts")
    assert (again.made, facts(again)) == (1, facts(whole))


def test_a_network_is_searched_and_resumed_to_the_same_bits(tmp_path):
    whole = search(tmp_path / "a", "two-stage-pe", 3)
    search(tmp_path / "b", "two-stage-pe", 2)
    assert facts(search(tmp_path / "b", "two-stage-pe", 3)) == facts(whole)
    assert whole.trials[1]["settings"].keys() == {*SHARED, "draws"}


def test_fits_side_by_side_make_the_same_trials(tmp_path):
    options = {"origins": 2, "device": "cpu", "quick": True, "shown": False}
    one = tune("synthetic-convex", "two-stage-pe", tmp_path / "one", 2, **options)
    two = tune("synthetic-convex", "two-stage-pe", tmp_path / "two", 2, workers=2, **options)
    for here, there in zip(one.trials, two.trials, strict=True):
        assert here["settings"] == there["settings"]
        assert here["cost"] == pytest.approx(there["cost"], rel=1e-3)  # other threads, other sums
        assert here["error"] is there["error"] is None
        assert here["device"] == there["device"]


def test_a_worker_that_dies_ends_the_search_and_leaves_no_trial(tmp_path, monkeypatch):
    here = os.getpid()

    def deadly(y, a):
        if os.getpid() != here:
            os._exit(9)
        return (y - a) ** 2

    def problem(seed):
        return replace(tiny(seed), task=SeparableTask(deadly, Box(0.0, 50.0, dim=1), convex=True))

    monkeypatch.setitem(PROBLEMS, "tiny", problem)
    store = ["--store", str(tmp_path), "--device", "cpu", "--quick", "--origins", "2"]
    done = command("tune", "tiny", "--method", "wsaa-knn", "--workers", "2", *store)
    assert done.exit_code == 1
    assert "Take fewer --workers" in done.output
    assert not list(tmp_path.glob("tuning/*.jsonl"))


def test_no_test_row_is_read(tmp_path, monkeypatch):
    usual = search(tmp_path / "a", trials=4)

    def other(seed):
        p = tiny(seed)
        test = p.data.test
        nothing = Dataset(test.x[:5] * float("nan"), test.y[:5] * float("nan"))
        return replace(p, data=replace(p.data, test=nothing))

    monkeypatch.setitem(PROBLEMS, "tiny", other)
    search_for.cache_clear()
    changed = search(tmp_path / "b", trials=4)
    assert facts(changed) == facts(usual)
    assert changed.trials[0].keys() == usual.trials[0].keys()
    same = [path.read_text().splitlines()[0] for path in tmp_path.glob("*/tiny.jsonl")]
    assert len({json.loads(line)["data"] for line in same}) == 1


def test_training_rows_that_differ_are_another_search(tmp_path, monkeypatch):
    search(tmp_path, trials=2)
    monkeypatch.setitem(PROBLEMS, "tiny", lambda seed: tiny(seed + 7))
    search_for.cache_clear()
    assert search(tmp_path, trials=2).made == 2


@pytest.mark.parametrize("name", ["inventory", "synthetic-convex"])
def test_origins_lie_in_the_validation_part_and_fit_on_earlier_rows(name):
    p = PROBLEMS[name](0)
    parts = origins_before_test(p, 3)
    tested = torch.cat([part.data.test.y for part in parts])
    assert torch.equal(tested, p.data.val.y)
    for part in parts:
        rows = torch.cat([part.data.train.y, part.data.val.y, part.data.test.y])
        known = torch.cat([p.data.train.y, p.data.val.y])
        assert len(rows) <= len(known)
        assert torch.equal(part.data.train.y, known[: len(part.data.train)])
        if p.reach is not None:
            assert part.data.test.dates[0] - part.data.val.dates[-1] >= p.reach


def test_a_trial_that_fails_is_kept_and_never_the_best(tmp_path, monkeypatch):
    usual = NearestNeighbours._fit

    def fails(self, train, val):
        if self.k is not None:
            raise RuntimeError("out of neighbours\nsecond line")
        usual(self, train, val)

    monkeypatch.setattr(NearestNeighbours, "_fit", fails)
    found = search(tmp_path, trials=3)
    assert found.best["trial"] == 0
    assert found.trials[2]["error"] == "RuntimeError: out of neighbours"
    assert found.trials[2]["cost"] is None


# ---- the space


def test_every_network_has_the_same_shared_space():
    p = tiny(0)
    for name in usual_names():
        if name == "proportional":
            continue
        method = method_of(name)(p, 0)
        shared = {key for key in space_of(method) if "." in key}
        if method.trains() is None:
            assert shared == set()
        elif getattr(method, "encoder", None) is Flat or name == "blend":
            assert shared == {"training.lr", "training.epochs"}
        else:
            assert shared == SHARED
            ranges = {key: space_of(method)[key] for key in SHARED}
            assert ranges == {k: space_of(method_of("df2")(p, 0))[k] for k in SHARED}


def test_every_named_method_takes_the_settings_of_its_space():
    p = tiny(0)
    for name in [*usual_names(), "two-stage-gmm3+crossfit"]:
        if name == "proportional":
            continue
        method = method_of(name)(p, 0)
        space = space_of(method)
        settings = {k: v.values[0] if hasattr(v, "values") else v.low for k, v in space.items()}
        changed = with_settings(method, settings, (2,))
        assert with_settings(method, {}, (2,)) is method
        training = changed.trains()
        if training is not None:
            assert (training.lr, training.epochs) == (1e-4, 5)
            assert {key: getattr(training, key) for key in FIXED} == FIXED
        if "encoder.hidden" in space:
            inner = changed.method if isinstance(changed, CrossFit) else changed
            assert inner.encoder().out_features == 32
        assert (changed is method) == (not space)
    assert fingerprint_of(method_of("df2")(p, 0)) != fingerprint_of(method_of("egl")(p, 0))


# ---- +tuned


def test_tuned_methods_have_the_best_settings(tmp_path):
    best = search(tmp_path).best["settings"]["k"]
    run = Run("tiny", "wsaa-knn+tuned", 3, quick=True, tuning=tmp_path)
    made = prepare(run, "cpu")
    assert made.method == NearestNeighbours(made.method.task, k=best, seed=3)
    assert made.recipe != prepare(replace(run, method="wsaa-knn"), "cpu").recipe
    crossed = prepare(replace(run, method="wsaa-knn+tuned+crossfit"), "cpu").method
    assert isinstance(crossed, CrossFit)
    assert crossed.method.k == best
    # the recipe is of the settings, not of the folder or the name alone
    trials = read_trials(tmp_path, search_for("tiny", "wsaa-knn", 0, True))
    lines = [json.dumps({**t, "settings": {"k": 7}, "cost": -1.0}) for t in trials[:1]]
    other = tmp_path / "other"
    other.mkdir()
    (other / "tiny.jsonl").write_text("\n".join(lines) + "\n")
    assert prepare(replace(run, tuning=other), "cpu").method.k == 7
    assert prepare(replace(run, tuning=other), "cpu").recipe != made.recipe
    row = execute(run, "cpu").row
    assert row["error"] is None
    assert row["tuned"]["settings"] == {"k": best}
    assert row["tuned"]["trials"] == 12
    assert "tuned" not in execute(replace(run, method="wsaa-knn"), "cpu").row


def test_a_missing_search_is_one_sentence_with_the_command(tmp_path):
    with pytest.raises(ValueError, match=r"Run `costscape tune tiny --method wsaa-knn --quick`"):
        prepare(Run("tiny", "wsaa-knn+tuned", quick=True, tuning=tmp_path))
    search(tmp_path, trials=1)
    with pytest.raises(ValueError, match="has none"):  # a quick search is not a full one
        prepare(Run("tiny", "wsaa-knn+tuned", tuning=tmp_path))
    search(tmp_path, trials=1, origins=3)
    with pytest.raises(ValueError, match=r"trials with \[2, 3\] origins"):
        best_trial(tmp_path, "tiny", True, "wsaa-knn")
    with pytest.raises(ValueError, match="none is given here"):
        method_of("wsaa-knn+tuned")


def test_origins_take_the_settings_of_the_first_one(tmp_path):
    options = {"origins": 2, "device": "cpu", "quick": True, "shown": False}
    tune("inventory@1of2", "wsaa-knn", tmp_path, 2, **options)
    assert [path.name for path in tmp_path.glob("*.jsonl")] == ["inventory.jsonl"]
    best = best_trial(tmp_path, "inventory@2of2", True, "wsaa-knn")
    assert (best["problem"], best["trials"]) == ("inventory@1of2", 2)
    with pytest.raises(ValueError, match="costscape tune inventory@1of3"):
        best_trial(tmp_path, "inventory@2of3", True, "wsaa-knn")


# ---- the command line


def test_the_commands_search_run_and_print_the_settings(tmp_path):
    common = ["--quick", "--device", "cpu", "--store", str(tmp_path)]
    words = ["tune", "tiny", "--method", "wsaa-knn", "--trials", "3", "--origins", "2", *common]
    done = command(*words)
    assert done.exit_code == 0, done.output
    assert "best of 3 trials" in done.stdout
    assert "3 of 3 trials made" in done.stderr
    assert "0 of 3 trials made" in command(*words).stderr
    folder = ["--tuning", str(tmp_path / "tuning")]
    own = ["run", "tiny", "--method", "wsaa-knn+tuned", "--workers", "1", *common]
    done = command(*own)  # the searches of its store come first
    assert done.exit_code == 0, done.output
    done = command(*own, "--tuning", str(tmp_path / "none"))
    assert "tiny.jsonl has none" in done.output
    names = ["--method", "wsaa-knn+tuned", "--method", "df2"]
    done = command("contest", "settings", "tiny", "--quick", *names, *folder)
    _, _, knn, df2 = done.stdout.splitlines()
    assert knn.endswith("| 1 | best of 3 |")
    assert df2 == "| `df2` | MLP 2 x 128 | 0 | 0.003 | 64 | 100 | 500 | 20 | 1 | 4 | no |"


def test_bad_input_is_refused_in_a_sentence(tmp_path, monkeypatch):
    store = ["--store", str(tmp_path), "--device", "cpu"]
    for words, said in (
        (["tiny", "--method", "constant"], "constant has no setting to search"),
        (["tiny", "--method", "fly"], "no method named 'fly'"),
        (["fly", "--method", "egl"], "no problem named 'fly'"),
        (["tiny", "--method", "wsaa-knn+tuned"], "Name wsaa-knn"),
        (["tiny", "--method", "egl", "--origins", "99"], "Take fewer origins"),
    ):
        done = command("tune", *words, *store)
        assert done.exit_code == 1
        assert said in done.output
    (tmp_path / "tuning").mkdir(exist_ok=True)
    (tmp_path / "tuning" / "tiny.jsonl").write_text("{}\n")
    assert "line 1 is none" in command("tune", "tiny", "--method", "wsaa-knn", *store).output
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = command("tune", "tiny", "--method", "wsaa-knn", *store)
    assert done.exit_code == 1
    assert "pip install 'costscape[tune]'" in done.output
    with pytest.raises(ValueError, match="at least 1 trial"):
        tune("tiny", "wsaa-knn", tmp_path, 0)
    with pytest.raises(ValueError, match="at least 1 worker"):
        tune("tiny", "wsaa-knn", tmp_path, 2, workers=0)


# ---- the tables


def test_the_table_of_settings_is_read_from_the_methods(tmp_path):
    names = ["df2", "two-stage-gmm3", "wsaa-knn+crossfit", "proportional"]
    header, _, df2, mixture, knn = settings_table("tiny", names, tmp_path).splitlines()
    assert header.count("|") == df2.count("|") == knn.count("|")
    cells = [cell.strip() for cell in mixture.split("|")[1:-1]]
    assert cells[3:9] == ["0.003", "64", "100", str(100 * 5), "20", "1"]
    ours = [cell.strip() for cell in df2.split("|")[1:-1]]
    assert ours[1:9] == cells[1:9]
    assert [cell.strip() for cell in knn.split("|")[-3:-1]] == ["4", "no"]


def test_the_table_of_data_hashes_the_files(tmp_path, monkeypatch):
    monkeypatch.setenv(sources.VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "wind").mkdir()
    (tmp_path / "wind" / "TenneTTSO.csv").write_text("something else")
    lines = data_table(check=True).splitlines()
    (wind,) = (line for line in lines if "TenneTTSO" in line)
    assert wind.endswith("| other content |")
    assert command("contest", "data", "--check").exit_code == 1
    assert command("contest", "data").exit_code == 0
    embedded = [line for line in lines if "embedded" in line]
    assert len(embedded) == 4
    assert all(line.endswith("| yes |") for line in embedded)
    for name in ("sid_store1", "bakery_sales", "restaurant_sales"):
        (tmp_path / f"{name}.npz").write_text("something else")
    monkeypatch.setattr(contest_tables, "EMBEDDED", tmp_path)
    (tmp_path / "la_haute_borne_hourly.csv.gz").write_bytes(b"")
    assert sum("other content" in line for line in data_table(check=True).splitlines()) == 5
    (sales,) = (line for line in lines if "store_item_demand" in line)
    assert sales.endswith("| - |")
    assert sources.TENNET.sha256 in data_table()


def test_all_methods_are_in_the_table():
    assert set(METHODS) <= set(usual_names())
