"""A sweep makes what is missing, and goes on after whatever stopped it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from costscape.bench import METHODS, PROBLEMS, Processes, Rows, Run, Swept, sweep
from costscape.bench.execution import blank
from costscape.bench.row_store import read_store
from costscape.bench.store_files import key_of, merged_paths, read_lines
from costscape.task import Refusal

NOISE = {"fit_seconds", "decide_seconds", "peak_memory", "made", "commit"}
RUNS = [Run("synthetic-convex", m, seed, {}, True) for m in ("constant", "cme") for seed in (0, 1)]


def swept(folder, runs=RUNS, engine=None):
    return sweep(runs, folder, engine, device="cpu", shown=False)


def stamps(folder):
    """When each row was made, by run, merged or pending."""
    return {key_of(row).name: row["made"] for _, row, _ in read_store(folder)}


def facts(folder):
    """The rows by run, without what differs between two runs."""
    return {
        key_of(row).name: {key: value for key, value in row.items() if key not in NOISE}
        for _, row, _ in read_store(folder)
    }


def failures(folder):
    """The merged rows of failures, by run."""
    return {
        key.name: row
        for path in merged_paths(folder)
        for key, row in read_lines(path).items()
        if key.failed
    }


def almost(a, b):
    """Equal to rounding, whatever is nested in what."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(almost(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(almost, a, b))
    return a == (pytest.approx(b, rel=1e-4) if isinstance(b, float) else b)


@pytest.fixture
def method_named_constant(monkeypatch):
    """Replaces the fit of the method named constant; without an argument restores it."""
    kind = type(METHODS["constant"](PROBLEMS["synthetic-convex"](0), 0))
    own = kind.fit

    def patch(what=None):
        monkeypatch.setattr(
            kind, "fit", own if what is None else lambda self, x, y, val=None: what(self)
        )

    return patch


def test_a_sweep_makes_a_row_for_each_run_in_one_file_a_problem(tmp_path):
    assert swept(tmp_path) == Swept(kept=0, made=4)
    assert set(stamps(tmp_path)) == {run.name for run in RUNS}
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {".lock", "synthetic-convex.jsonl", "synthetic-convex.costs.npz"}
    costs = {key_of(row).name: arrays for _, row, arrays in read_store(tmp_path)}
    for run in RUNS:
        row = Rows(tmp_path).read(run)
        assert (row["problem"], row["method"], row["seed"]) == (run.problem, run.method, run.seed)
        assert row["regret"] > 0
        assert costs[run.name]["regrets"].mean() == pytest.approx(row["regret"])


def test_a_finished_row_is_not_made_again(tmp_path, method_named_constant):
    swept(tmp_path)
    before = stamps(tmp_path)

    def fail(method):
        raise AssertionError("made again")

    method_named_constant(fail)
    assert swept(tmp_path) == Swept(kept=4)
    assert stamps(tmp_path) == before


def test_what_is_asked_twice_is_made_once(tmp_path):
    assert swept(tmp_path, [RUNS[0], RUNS[0]]) == Swept(made=1)


@pytest.mark.parametrize(
    "other",
    [
        Run("synthetic-convex", "constant", 0, {}, False),
        Run("synthetic-convex", "constant", 0, {"epochs": 2}, True),
    ],
    ids=["not quick", "epochs"],
)
def test_another_run_has_a_row_of_its_own(tmp_path, other):
    swept(tmp_path, RUNS[:1])
    before = stamps(tmp_path)
    assert swept(tmp_path, [other]) == Swept(made=1)
    row = Rows(tmp_path).read(other)
    assert row["recipe"] != Rows(tmp_path).read(RUNS[0])["recipe"]
    assert (row["quick"], row["changes"]) == (other.quick, other.changes)
    assert before.items() < stamps(tmp_path).items()


def test_other_data_are_made_again(tmp_path, monkeypatch):
    from costscape.bench import runs as rooms

    swept(tmp_path, RUNS[:1])
    make = PROBLEMS["synthetic-convex"]
    monkeypatch.setitem(PROBLEMS, "synthetic-convex", lambda seed: make(seed + 7))
    for cache in (rooms.problem_of, rooms._facts):
        cache.cache_clear()
    try:
        assert swept(tmp_path, RUNS[:1]) == Swept(made=1)
    finally:
        for cache in (rooms.problem_of, rooms._facts):
            cache.cache_clear()


def test_a_failed_run_does_not_stop_the_others_and_is_tried_again(tmp_path, method_named_constant):
    def fail(method):
        if method.seed == 0:
            raise ZeroDivisionError("the roof fell in")
        raise MemoryError

    method_named_constant(fail)
    assert swept(tmp_path) == Swept(made=4, failed=(RUNS[0].name, RUNS[1].name))
    assert "the roof fell in" in Rows(tmp_path).read(RUNS[0])["error"]
    assert "MemoryError" in Rows(tmp_path).read(RUNS[1])["error"]
    assert Rows(tmp_path).read(RUNS[2])["regret"] > 0
    method_named_constant()
    assert swept(tmp_path) == Swept(kept=2, made=2)
    assert Rows(tmp_path).read(RUNS[0])["error"] is None
    assert failures(tmp_path) == {}


def test_a_failure_of_another_recipe_leaves_the_good_row(tmp_path, method_named_constant):
    swept(tmp_path, RUNS[:1])
    store = Rows(tmp_path)
    row = store.read(RUNS[0])
    store.write(RUNS[0], row | {"recipe": "of other code"})

    def fail(method):
        raise ZeroDivisionError("the roof fell in")

    method_named_constant(fail)
    assert swept(tmp_path, RUNS[:1]) == Swept(made=1, failed=(RUNS[0].name,))
    assert store.read(RUNS[0])["regret"] == row["regret"]
    assert "the roof" in failures(tmp_path)[RUNS[0].name]["error"]
    method_named_constant()
    assert swept(tmp_path, RUNS[:1]) == Swept(made=1)
    assert store.read(RUNS[0])["recipe"] == row["recipe"]
    assert failures(tmp_path) == {}


def test_a_device_or_a_store_that_is_not_there_is_refused_before_the_first_run(
    tmp_path, method_named_constant
):
    def fail(method):
        raise AssertionError("begun")

    method_named_constant(fail)
    with pytest.raises(ValueError, match="needs a name that torch knows, but got 'gpu'"):
        sweep(RUNS, tmp_path / "new", device="gpu", shown=False)
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="folder that can be written to"):
        swept(tmp_path / "file")


def test_a_refusal_counts_as_finished(tmp_path, method_named_constant):
    def refuse(method):
        raise Refusal("Constant cannot fly.")

    method_named_constant(refuse)
    assert swept(tmp_path, RUNS[:2]) == Swept(made=2, refused=2)
    assert Rows(tmp_path).read(RUNS[0])["refused"] == "Constant cannot fly."
    assert swept(tmp_path, RUNS[:2]) == Swept(kept=2)


def test_a_method_that_cannot_be_made_for_a_problem_has_a_row_of_refusal(tmp_path):
    run = Run("vaccine", "two-stage-gmm3", 0, {"draws": None}, True)
    assert swept(tmp_path, [run]) == Swept(made=1, refused=1)
    assert "closed form" in Rows(tmp_path).read(run)["refused"]
    assert swept(tmp_path, [run]) == Swept(kept=1)


def test_a_name_that_is_not_there_stops_the_sweep_before_it_begins(tmp_path):
    with pytest.raises(ValueError, match="no method named"):
        swept(tmp_path, [*RUNS, Run("synthetic-convex", "df3")])
    assert stamps(tmp_path) == {}


def test_a_sweep_in_words():
    assert str(Swept(1, 2)) == "2 rows made, 1 were there"
    assert "1 refused" in str(Swept(1, 2, (), 1))
    assert str(Swept(1, 2, ("a",))) == "2 rows made, 1 were there, 1 failed"


def test_a_broken_pending_file_is_made_again(tmp_path):
    path = Rows(tmp_path).write(RUNS[0], blank(RUNS[0]))
    path.write_text(path.read_text()[:100])
    assert swept(tmp_path, RUNS[:1]) == Swept(made=1)
    assert not path.exists()
    assert Rows(tmp_path).read(RUNS[0])["regret"] > 0


# ---- stopped and killed, in processes of their own

LONG = [Run("synthetic-convex", "df2-quick", seed, {"epochs": 20}, True) for seed in range(6)]
WORDS = ["run", "synthetic-convex", "--method", "df2-quick", "--seeds", "6", "--epochs", "20"]


class Command:
    """costscape in a process group of its own."""

    def __init__(self, store, workers=2):
        words = [*WORDS, "--quick", "--device", "cpu", "--workers", str(workers)]
        self.store = store
        self.process = subprocess.Popen(
            [sys.executable, "-m", "costscape", *words, "--store", str(store)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # a suite that runs in the background ignores SIGINT, and what it starts inherits that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def wait_for_rows(self, n):
        end = time.monotonic() + 600
        while len(stamps(self.store)) < n and time.monotonic() < end:
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.02)
        assert n <= len(stamps(self.store)) < len(LONG)

    def ended(self):
        """The exit code and the words on stderr, once nothing of its group is left."""
        words = self.process.communicate(timeout=600)[1]
        end = time.monotonic() + 120
        while self.lives() and time.monotonic() < end:
            time.sleep(0.05)
        assert not self.lives()
        return self.process.returncode, words

    def lives(self):
        """Whether a process of the group runs; one that waits to be buried does not."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(group) == self.process.pid and state != "Z":
                return True
        return False


@pytest.mark.slow
@pytest.mark.long
def test_a_sweep_that_is_stopped_and_killed_ends_with_the_rows_of_an_unbroken_one(tmp_path):
    store, whole = tmp_path / "broken", tmp_path / "whole"
    store.mkdir()

    command = Command(store)
    command.wait_for_rows(1)
    os.killpg(command.process.pid, signal.SIGINT)  # as a terminal sends it
    code, words = command.ended()
    assert code == 130, words
    assert "the same command goes on" in words
    assert "Traceback" not in words
    kept = stamps(store)
    for row in facts(store).values():
        assert row["error"] is None

    command = Command(store)
    command.wait_for_rows(len(kept) + 1)
    os.kill(command.process.pid, signal.SIGKILL)  # its workers end by themselves
    assert command.ended()[0] == -signal.SIGKILL
    assert kept.items() <= stamps(store).items()
    kept = stamps(store)

    command = Command(store)
    code, words = command.ended()
    assert code == 0, words
    assert f"{6 - len(kept)} rows made, {len(kept)} were there" in words
    assert kept.items() <= stamps(store).items()

    sweep(LONG, whole, device="cpu", shown=False)
    assert len(facts(whole)) == 6
    assert almost(facts(store), facts(whole))


@pytest.mark.slow
@pytest.mark.long
def test_a_sweep_that_is_told_alone_to_stop_leaves_no_worker(tmp_path):
    command = Command(tmp_path)
    command.wait_for_rows(1)
    os.kill(command.process.pid, signal.SIGTERM)
    code, words = command.ended()
    assert code == 143, words
    assert "the same command goes on" in words
    assert "Traceback" not in words
    assert not list(tmp_path.rglob("*.part"))
    for row in facts(tmp_path).values():
        assert row["error"] is None


def test_processes_make_the_rows_of_this_process(tmp_path):
    runs = [
        Run("synthetic-convex", m, 0, {}, True) for m in ("df2-quick", "constant", "two-stage-pe")
    ]
    assert swept(tmp_path / "a", runs) == Swept(made=3)
    assert swept(tmp_path / "b", runs, Processes(2)) == Swept(made=3)
    assert almost(facts(tmp_path / "a"), facts(tmp_path / "b"))
