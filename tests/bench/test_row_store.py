"""The store: whole files, merged and pending rows read alike, and no row lost."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from costscape.bench import Rows, Run, row_store
from costscape.bench.execution import blank
from costscape.bench.row_store import read_store
from costscape.bench.store_files import Key, key_of, locked, pending_path, read_lines

RUN = Run("wind", "df2", 3, {"draws": 5})
NAME = "wind--df2-draws5--3"
COSTS = {"costs": np.arange(4.0), "regrets": np.arange(4.0) - 1}


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path / "new" / "store")


@pytest.fixture(params=[False, True], ids=["pending", "merged"])
def settle(request):
    """Merges a store, or leaves its rows pending: both are read alike."""
    return lambda rows: rows.merge() if request.param else None


def good(run=RUN, **facts):
    return blank(run) | {"regret": 1.25, "recipe": "ab"} | facts


def failed(**facts):
    return blank(RUN) | {"error": "Traceback", "recipe": "cd"} | facts


def names(rows):
    return sorted(
        str(path.relative_to(rows.folder))
        for path in rows.folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    )


def test_a_written_row_is_read_again(rows, settle):
    row = good()
    path = rows.write(RUN, row)
    assert path.relative_to(rows.folder).as_posix() == f"pending/{NAME}.json"
    assert json.loads(path.read_text()) == row
    settle(rows)
    assert rows.read(RUN) == row


def test_merged_rows_are_one_line_each_in_the_file_of_their_problem(rows):
    runs = [
        Run("wind", method, seed, changes)
        for seed in (1, 0)
        for method, changes in (("df2", {}), ("cme", {}), ("df2", {"draws": 5}))
    ]
    runs.append(Run("inventory", "cme"))
    for run in runs:
        rows.write(run, good(run), COSTS)
    assert rows.merge() == len(runs)
    assert names(rows) == [
        *("inventory.costs.npz", "inventory.jsonl", "wind.costs.npz", "wind.jsonl")
    ]
    lines = [json.loads(line) for line in (rows.folder / "wind.jsonl").read_text().splitlines()]
    assert [(row["method"], row["changes"], row["seed"]) for row in lines] == [
        (method, changes, seed)
        for method, changes in (("cme", {}), ("df2", {"draws": 5}), ("df2", {}))
        for seed in (0, 1)
    ]
    assert all(rows.read(run) == good(run) | {"made": rows.read(run)["made"]} for run in runs)
    assert rows.merge() == 0


def test_what_is_missing_or_broken_is_no_row(rows):
    assert rows.read(RUN) is None
    path = pending_path(rows.folder, Key(NAME, False))
    path.parent.mkdir(parents=True)
    for text in ("", '{"problem": "wi', "[1, 2]", "\x00"):
        path.write_text(text)
        assert rows.read(RUN) is None
        assert not rows.finished(RUN, "ab")
        assert rows.merge() == 0
        assert path.read_text() == text
        with pytest.raises(ValueError, match=f"{NAME}.json should hold the row"):
            list(read_store(rows.folder))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"problem": "wi', "line 2 is none"),
        ("[1, 2]", "line 2 is none"),
        ('{"problem": "wind"}', "line 2 is none"),
        (None, f"line 2 is of {NAME} again"),
    ],
    ids=["corrupt", "list", "keys", "twice"],
)
def test_a_bad_line_is_an_error_and_no_merge_drops_it(rows, text, words):
    rows.write(RUN, good())
    rows.merge()
    path = rows.folder / "wind.jsonl"
    before = path.read_text() + f"{text or json.dumps(good())}\n"
    path.write_text(before)
    rows.write(Run("wind", "cme"), good(Run("wind", "cme")))
    for act in (rows.merge, lambda: rows.read(RUN), lambda: list(read_store(rows.folder))):
        with pytest.raises(ValueError, match=f"wind.jsonl needs .*{words}"):
            act()
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("row", "finished"),
    [
        ({"recipe": "ab"}, True),
        ({"recipe": "cd"}, False),
        ({"recipe": None}, False),
        ({"recipe": "ab", "refused": "It cannot."}, True),
        ({"recipe": "ab", "error": "Traceback"}, False),
    ],
    ids=["same", "other", "none", "refused", "failed"],
)
def test_a_row_is_finished_if_it_is_of_the_recipe_and_did_not_fail(rows, settle, row, finished):
    rows.write(RUN, blank(RUN) | row)
    settle(rows)
    assert rows.finished(RUN, "ab") is finished


# ---- no row is lost


def test_a_quick_run_stands_beside_a_full_one(rows, settle):
    quick = Run("wind", "df2", 3, {"draws": 5}, quick=True)
    rows.write(RUN, good(), COSTS)
    settle(rows)
    rows.write(quick, blank(quick) | {"regret": 9.0, "recipe": "cd"}, COSTS)
    settle(rows)
    assert (rows.read(RUN)["regret"], rows.read(quick)["regret"]) == (1.25, 9.0)
    assert costs(rows, RUN).keys() == costs(rows, quick).keys() == COSTS.keys()


@pytest.mark.parametrize("recipe", ["ab", "cd", None])
def test_a_failure_is_kept_beside_a_good_row_whatever_its_recipe(rows, settle, recipe):
    rows.write(RUN, good(), COSTS)
    settle(rows)
    rows.write(RUN, failed(recipe=recipe))
    settle(rows)
    assert rows.finished(RUN, "ab")
    assert rows.read(RUN)["regret"] == 1.25
    assert np.array_equal(costs(rows, RUN)["costs"], COSTS["costs"])
    rows.merge()
    kept = read_lines(rows.folder / "wind.jsonl")
    assert kept[Key(NAME, True)]["error"] == "Traceback"
    ((_, row, arrays),) = read_store(rows.folder)
    assert (row["regret"], arrays.keys()) == (1.25, COSTS.keys())


def test_a_failure_is_read_where_there_is_no_good_row(rows, settle):
    assert rows.write(RUN, failed()).name == f"{NAME}.failed.json"
    settle(rows)
    assert rows.read(RUN)["error"] == "Traceback"
    assert [row["error"] for _, row, _ in read_store(rows.folder)] == ["Traceback"]


def test_a_success_removes_the_failure_and_replaces_the_row(rows, settle):
    rows.write(RUN, good(recipe="old", regret=3.0), COSTS)
    settle(rows)
    rows.write(RUN, failed())
    settle(rows)
    rows.write(RUN, good(), COSTS)
    settle(rows)
    assert rows.finished(RUN, "ab")
    rows.merge()
    assert read_lines(rows.folder / "wind.jsonl").keys() == {Key(NAME, False)}


# ---- costs of each test row


def test_costs_are_read_again_in_single_precision(rows, settle):
    rows.write(RUN, good(), COSTS)
    settle(rows)
    found = costs(rows, RUN)
    assert set(found) == {"costs", "regrets"}
    for name, values in COSTS.items():
        assert found[name].dtype == np.float32
        assert np.array_equal(found[name], values)
    ((_, _, read),) = read_store(rows.folder)
    assert all(np.array_equal(read[name], found[name]) for name in COSTS)


def test_the_same_costs_are_the_same_bytes(rows):
    before = []
    for _ in range(2):
        rows.write(RUN, good(), COSTS)
        rows.merge()
        before.append((rows.folder / "wind.costs.npz").read_bytes())
    assert before[0] == before[1]


def test_equal_arrays_are_stored_once_and_read_by_every_run(rows):
    rng = np.random.default_rng(0)
    costs_of = {seed: rng.random(1000).astype(np.float32) for seed in range(3)}
    costs_of[1] = costs_of[0].copy()
    runs = [Run("wind", "df2", seed) for seed in costs_of]
    for run in runs:
        own = costs_of[run.seed]
        rows.write(run, good(run), {"costs": own, "regrets": own.copy(), "gaps": own - 1})
        rows.merge()
    size = (rows.folder / "wind.costs.npz").stat().st_size
    assert 4 * 4000 * 0.8 < size < 5 * 4000, "costs and gaps of two seeds are four arrays"
    rows.write(runs[0], good(runs[0]), {"costs": costs_of[2]})  # another array has its place
    rows.merge()
    assert set(costs(rows, runs[0])) == {"costs"}
    assert np.array_equal(costs(rows, runs[0])["costs"], costs_of[2])
    for run in runs[1:]:
        found, own = costs(rows, run), costs_of[run.seed]
        assert np.array_equal(found["costs"], own)
        assert np.array_equal(found["regrets"], own)
        assert np.array_equal(found["gaps"], own - 1)


def test_a_file_that_lacks_an_array_it_names_is_an_error_in_words(rows):
    rows.write(RUN, good(), COSTS)
    rows.merge()
    path = rows.folder / "wind.costs.npz"
    entries = {f"{NAME}/recipe": np.array("ab"), f"{NAME}/costs": np.array("wind--df2--9/costs")}
    np.savez_compressed(path, **entries)
    with pytest.raises(ValueError, match=r"cannot be read \('wind--df2--9/costs'\)"):
        list(read_store(rows.folder))


def test_a_row_without_costs_leaves_none_of_an_earlier_row(rows, settle):
    assert costs(rows, RUN) == {}
    rows.write(RUN, good(), COSTS)
    settle(rows)
    rows.write(RUN, good(recipe="cd", refused="It cannot."))
    settle(rows)
    assert costs(rows, RUN) == {}
    assert [arrays for *_, arrays in read_store(rows.folder)] == [{}]
    rows.merge()
    assert names(rows) == ["wind.jsonl"]


# ---- whole files, and a kill at any moment


def test_a_row_that_cannot_be_written_leaves_the_old_one(rows):
    rows.write(RUN, good(regret=1.0), COSTS)
    with pytest.raises(ValueError, match="JSON"):
        rows.write(RUN, good(regret=float("nan")), {"costs": np.ones(2)})
    assert rows.read(RUN)["regret"] == 1.0
    assert len(costs(rows, RUN)["costs"]) == 4


def costs(rows, run):
    """The arrays of a run's row."""
    found = {key_of(row).name: arrays for _, row, arrays in read_store(rows.folder)}
    return found.get(run.name, {})


def everything(folder):
    """The rows and arrays of a store, by run."""
    return {
        (row["method"], row["seed"]): (row, {k: v.tolist() for k, v in arrays.items()})
        for _, row, arrays in read_store(folder)
    }


@pytest.mark.parametrize("step", range(1, 12))
def test_a_merge_that_is_killed_at_any_step_loses_nothing(rows, monkeypatch, step):
    """Steps are the renames and removals of files, nine of them."""
    runs = [Run("wind", "df2", seed) for seed in range(3)]
    for run in runs[:2]:
        rows.write(run, good(run, recipe=f"old {run.seed}", regret=9.0), COSTS)
    rows.merge()
    for run in runs:
        arrays = {"costs": np.full(4, run.seed + 7.0)}
        rows.write(run, good(run, recipe=f"new {run.seed}"), arrays)
    before = everything(rows.folder)
    steps = iter(range(1, 100))

    def until(own):
        def act(*words, **options):
            if next(steps) == step:
                raise KeyboardInterrupt
            return own(*words, **options)

        return act

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", until(os.replace))
        patch.setattr(row_store.Path, "unlink", until(row_store.Path.unlink))
        patch.setattr(row_store.Path, "rmdir", until(row_store.Path.rmdir))
        if step < 10:
            with pytest.raises(KeyboardInterrupt):
                rows.merge()
        else:
            rows.merge()
    assert everything(rows.folder) == before
    rows.merge()
    rows.sweep_up()
    assert everything(rows.folder) == before
    assert [name for name in names(rows) if "part" not in name] == ["wind.costs.npz", "wind.jsonl"]


def test_writers_and_mergers_at_once_lose_no_row(rows):
    runs = [Run("wind", "df2", seed) for seed in range(24)]

    def work(run):
        rows.write(run, good(run), COSTS)
        if run.seed % 3 == 0:
            rows.merge()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, runs))
    rows.merge()
    assert len(read_lines(rows.folder / "wind.jsonl")) == len(runs)
    assert all(costs(rows, run) for run in runs)


def test_a_lock_is_free_once_its_holder_is_killed(rows):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from costscape.bench.store_files import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(rows.folder)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with locked(rows.folder):
        pass


def test_a_folder_that_cannot_be_written_to_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"folder that can be written to, but .*file.* cannot"):
            Rows(folder).check_writable()
    Rows(tmp_path / "new" / "store").check_writable()
    assert list((tmp_path / "new" / "store").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"cannot \(Permission denied\)"):
        Rows(tmp_path).check_writable()


def test_parts_of_killed_writers_are_removed_whatever_their_date(rows):
    rows.sweep_up()  # of no folder
    path = rows.write(RUN, blank(RUN))
    dead, own = path.with_name("a.json.1.part"), rows.folder / "b.npz.2.part"
    for part in (dead, own):
        part.write_text("{")
        os.utime(part, (time.time() + 86_400,) * 2)  # the clock of another machine
    with open(own) as written:
        fcntl.flock(written, fcntl.LOCK_EX)  # as its writer does
        rows.sweep_up()
    assert names(rows) == ["b.npz.2.part", f"pending/{NAME}.json"]
    rows.sweep_up()
    assert names(rows) == [f"pending/{NAME}.json"]


def test_a_full_disk_is_found_before_the_first_run(tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot \(No space left on device\)\. Free some space, or"):
        Rows(tmp_path / "store").check_writable()
    assert not list((tmp_path / "store").iterdir())
