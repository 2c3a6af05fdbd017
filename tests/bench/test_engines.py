"""Engines: an outcome for every run, also where its worker dies."""

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from costscape.bench import Here, Processes, Ray, Rows, Run, sweep
from costscape.bench.engines import CLUSTERS
from costscape.bench.execution import Outcome, blank
from costscape.bench.provenance import commit
from costscape.bench.row_store import read_store
from costscape.cli import app

SCRIPT = Path(__file__).parents[1] / "scripts" / "on_ray.py"
RUNS = [Run("synthetic-convex", "constant", seed) for seed in range(6)]
NOISE = {"fit_seconds", "decide_seconds", "peak_memory", "made"}


def count(run, more):
    """A row that tells the process; the run of seed 2 takes its worker with it."""
    if run.seed == 2:
        os._exit(3)
    time.sleep(0.2)
    row = blank(run) | {"regret": float(run.seed), "device": str(os.getpid())}
    return Outcome(row, {"costs": np.full(3, run.seed)})


def raising(run):
    raise RuntimeError("no row")


def test_here_is_one_after_the_other_in_this_process():
    made = list(Here().map(partial(count, more=None), [run for run in RUNS if run.seed != 2]))
    assert [run.seed for run, _ in made] == [0, 1, 3, 4, 5]
    assert {found.row["device"] for _, found in made} == {str(os.getpid())}


def test_rows_come_one_by_one():
    seen = []

    def work(run):
        seen.append(run.seed)
        return Outcome(blank(run))

    rows = Here().map(work, RUNS)
    next(rows)
    assert seen == [0]


@pytest.mark.slow
@pytest.mark.long
def test_a_worker_that_dies_leaves_an_error_and_the_others_go_on():
    found = {r.seed: found for r, found in Processes(2).map(partial(count, more=None), RUNS)}
    assert sorted(found) == [0, 1, 2, 3, 4, 5]
    assert found[2].arrays == {}
    assert found[3].arrays["costs"].tolist() == [3, 3, 3]
    made = {seed: one.row for seed, one in found.items()}
    assert "The worker died" in made[2]["error"]
    assert made[2]["regret"] is made[2]["recipe"] is None
    for seed in (0, 1, 3, 4, 5):
        assert made[seed]["error"] is None
        assert made[seed]["regret"] == seed
    assert str(os.getpid()) not in {row["device"] for row in made.values()}


def test_processes_without_runs_make_no_rows():
    assert list(Processes(2).map(raising, [])) == []


# ---- Ray


@pytest.mark.parametrize(("address", "word"), [(None, "0"), ("10.0.0.1:6379", None)])
def test_a_cluster_that_is_started_here_listens_on_loopback(monkeypatch, address, word):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    environment = {key: value for key, value in os.environ.items() if key != CLUSTERS}
    monkeypatch.setattr(os, "environ", environment)

    def init(**settings):
        raise ConnectionError

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ConnectionError):
        next(Ray(address).map(raising, RUNS[:1]))
    assert environment.get(CLUSTERS) == word
    # the meaning of the variable, which is Ray's own and could change
    source = Path(ray.__file__).parent / "_private" / "ray_constants.py"
    assert f'"{CLUSTERS}"' in source.read_text()


def write_batch(folder):
    """A fitted project, three files to decide for, and one that cannot be read."""
    assert CliRunner().invoke(app, ["init", str(folder)]).exit_code == 0
    sales = pd.read_csv(folder / "sales.csv")
    days = sorted(sales["date"].unique())
    sales[sales["date"] < days[40]].to_csv(folder / "sales.csv", index=False)
    (folder / "new").mkdir()
    for k in range(3):
        some = sales[sales["date"].isin(days[40 : 41 + k])]
        some.to_parquet(folder / "new" / f"part{k}.parquet")
    (folder / "new" / "bad.parquet").write_bytes(b"no Parquet")
    toml = folder / "costscape.toml"
    toml.write_text(toml.read_text().replace('name = "DF2.quick"', 'name = "NearestNeighbours"'))
    assert CliRunner().invoke(app, ["fit", str(folder)]).exit_code == 0


@pytest.fixture(scope="module")
def on_ray(tmp_path_factory):
    """What a cluster of two nodes made of the same runs, and of work that dies."""
    pytest.importorskip("ray", reason="ray is not installed")
    folder = tmp_path_factory.mktemp("ray")
    write_batch(folder / "shop")
    quiet = {
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # on a busy machine nice workers would hardly begin
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)],
        env={**os.environ, **quiet, "COSTSCAPE_COMMIT": commit() or ""},  # also if it moves on
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads((folder / "found.json").read_text())


@pytest.mark.long
def test_ray_makes_the_same_rows_as_this_process(on_ray, tmp_path):
    folder, found = on_ray
    runs = [
        Run("synthetic-convex", method, seed, {}, True)
        for method in ("df2-quick", "constant", "two-stage-gmm3")
        for seed in (0, 1)
    ]
    assert found["exit"] == 0
    sweep(runs, tmp_path, device="cpu", shown=False)
    assert len(list(read_store(folder / "store"))) == len(runs)
    for run in runs:
        there, here = Rows(folder / "store").read(run), Rows(tmp_path).read(run)
        assert there["error"] is None
        assert there.keys() == here.keys()
        for key in here.keys() - NOISE:
            same = (
                pytest.approx(here[key], rel=1e-5) if isinstance(here[key], float) else here[key]
            )
            assert key == "curve" or there[key] == same, key


@pytest.mark.long
def test_runs_are_spread_over_the_nodes_of_a_cluster(on_ray):
    _, found = on_ray
    assert {home for home in found["homes"].values() if home} == set(found["nodes"])


@pytest.mark.long
def test_a_run_whose_worker_dies_is_tried_again_by_ray(on_ray):
    folder, found = on_ray
    assert (folder / "died").exists()
    assert found["errors"]["1"] is None


@pytest.mark.long
def test_a_run_that_always_kills_its_worker_is_an_error_of_its_own(on_ray):
    _, found = on_ray
    assert sorted(found["errors"]) == ["0", "1", "2", "3", "4", "5"]
    assert [seed for seed, error in found["errors"].items() if error] == ["2"]
    assert found["errors"]["2"].startswith("The worker died")


@pytest.mark.long
def test_the_runs_of_a_node_that_dies_are_made_elsewhere(on_ray):
    folder, found = on_ray
    head, second = found["nodes"]
    assert list(folder.glob(f"begun-*-{second}"))
    assert found["after"] == {"0": head, "1": head}


@pytest.mark.long
def test_folds_on_a_cluster_decide_with_the_same_bits(on_ray):
    _, found = on_ray
    assert found["folds"] is True


@pytest.mark.long
def test_files_decided_for_with_ray_data_are_those_of_one_process(on_ray):
    (there, bad, made), (here, wanted_bad, wanted) = on_ray[1]["batch"]
    assert there == here == 1
    assert bad == wanted_bad
    assert "bad.parquet: " in bad[0]
    assert set(made) == {"manifest.jsonl", "part0.parquet", "part1.parquet", "part2.parquet"}
    assert made == wanted


def test_a_worker_whose_parent_is_gone_ends_before_its_first_job():
    code = (
        "import time; from costscape.methods.end_with_parent import watch_parent\n"
        "watch_parent(0); time.sleep(600)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 1
