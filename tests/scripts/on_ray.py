"""Runs on a Ray cluster of two nodes: python on_ray.py FOLDER writes found.json there."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import joblib
import ray
import torch
from ray.cluster_utils import Cluster
from ray.util.joblib import register_ray
from typer.testing import CliRunner

import costscape as cs
from costscape.bench import Ray, Run
from costscape.bench.execution import Outcome, blank
from costscape.cli import app

FOLDER = Path(sys.argv[1])
SIZES = {"num_cpus": 1, "object_store_memory": 100_000_000}


def home():
    return ray.get_runtime_context().get_node_id()


def dies(run, folder=FOLDER):
    """The run of seed 1 kills its worker the first time, that of seed 2 always.

    That of seed 0 holds its node until one that will live has begun on another, however slow that
    is to start.
    """
    if run.seed == 2 or (run.seed == 1 and not (folder / "died").exists()):
        if run.seed == 1:
            (folder / "died").touch()
        os._exit(1)
    (folder / f"at-{home()}").touch()
    end = time.monotonic() + 90
    while run.seed == 0 and len(list(folder.glob("at-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    return Outcome(blank(run) | {"device": home()})


def waits(run, head, folder=FOLDER):
    """On the head it waits for the other node to begin, there for ever."""
    (folder / f"begun-{run.seed}-{home()}").touch()
    while home() != head or len(list(folder.glob("begun-*"))) < 2:
        time.sleep(0.1)
    return Outcome(blank(run) | {"device": home()})


def on_ray(work, n, **settings):
    runs = [Run("synthetic-convex", "constant", seed) for seed in range(n)]
    return {str(run.seed): found.row for run, found in Ray(**settings).map(work, runs)}


def by_command(address):
    names = ["df2-quick", "constant", "two-stage-gmm3"]
    words = ["run", "synthetic-convex", *(w for name in names for w in ("--method", name))]
    words += ["--seeds", "2", "--quick", "--device", "cpu", "--store", str(FOLDER / "store")]
    done = CliRunner().invoke(app, [*words, "--engine", "ray", "--address", address])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert not ray.is_initialized()  # what a sweep began it ends
    return done.exit_code


def batch(address):
    """Decisions for files of a project with Ray Data: exit status and bytes, there and here."""
    found = []
    for out, more in (("ray", ["--engine", "ray", "--address", address]), ("here", [])):
        words = ["decide", str(FOLDER / "shop"), "--data", str(FOLDER / "shop" / "new")]
        done = CliRunner().invoke(app, [*words, "-o", str(FOLDER / out), *more])
        made = {path.name: path.read_bytes().hex() for path in (FOLDER / out).iterdir()}
        found.append([done.exit_code, done.stderr.splitlines()[1:], made])
    return found


def terms(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


def folds_agree():
    """Whether folds fitted on the cluster decide with the bits of folds fitted here."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(80, 2, generator=rng)
    y = 1 + x[:, :1] + torch.rand(80, 1, generator=rng)
    task = cs.SeparableTask(terms, cs.Box(0.0, 4.0, dim=1), convex=True)
    method = cs.TwoStage(task, training=cs.Training(epochs=2, progress=False))
    here = cs.CrossFit(method, folds=2).fit(x, y).decide(x)
    register_ray()
    with joblib.parallel_config("ray", n_jobs=2):
        there = cs.CrossFit(method, folds=2, workers=2).fit(x, y).decide(x)
    return torch.equal(here, there)


def main():
    cluster = Cluster(initialize_head=True, head_node_args={**SIZES, "include_dashboard": False})
    second = cluster.add_node(**SIZES)
    cluster.wait_for_nodes()
    nodes = [cluster.head_node.node_id, second.node_id]
    found = {"nodes": nodes, "exit": by_command(cluster.address)}
    found["batch"] = batch(cluster.address)

    ray.init(address=cluster.address, log_to_driver=False)
    rows = on_ray(dies, 6, retries=1)
    found["homes"] = {seed: row["device"] for seed, row in rows.items()}
    found["errors"] = {seed: row["error"] for seed, row in rows.items()}
    found["folds"] = folds_agree()

    def kill():
        while not list(FOLDER.glob(f"begun-*-{second.node_id}")):
            time.sleep(0.1)
        cluster.remove_node(second, allow_graceful=False)

    threading.Thread(target=kill, daemon=True).start()
    rows = on_ray(lambda run: waits(run, nodes[0]), 2)
    found["after"] = {seed: row["device"] for seed, row in rows.items()}
    assert ray.is_initialized()  # and leaves open what it found open
    (FOLDER / "found.json").write_text(json.dumps(found))
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
