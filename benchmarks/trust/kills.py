"""Fits and sweeps killed (SIGKILL) at random moments, and resumed: do they end the same?

    python benchmarks/trust/kills.py --fits 100 --sweeps 100

A fit with a checkpoint has to end with the bits of one that was never killed, a sweep with the
same rows, and no temporary file and no worker is left. Work is done in forked copies of this
process, so that a kill costs no import; every fourth sweep has two workers of its own. Fits and
sweeps take turns, until ``--minutes`` have passed.
"""

import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import torch
from campaign import Campaign, main

import costscape as cs
from costscape.bench import Processes, Run, sweep
from costscape.bench.row_store import read_store

KILLS = 3  # of one fit or sweep, at most
ORPHAN = 120  # seconds that a worker may take to see that its parent is gone
NOISE = {"fit_seconds", "decide_seconds", "peak_memory", "made"}
RUNS = [
    Run("synthetic-convex", method, seed, {}, True)
    for method in ("constant", "two-stage-pe", "wsaa-knn")
    for seed in (0, 1)
]


def terms(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


def task():
    return cs.SeparableTask(terms, cs.Box(0.0, 4.0, dim=2), convex=True)


def methods(folder, seed):
    """Methods with a checkpoint, small ones."""
    t = task()
    s = {"seed": seed}
    s["training"] = cs.Training(epochs=6, checkpoint=folder / "c", device="cpu", progress=False)
    return [
        lambda: cs.DF2(t, outcomes=cs.Absolute(), points=20, folds=2, **s),
        lambda: cs.TwoStage(t, cs.Mixture(2), **s),
        lambda: cs.DFL(t, cs.Mixture(2), **s),
        lambda: cs.LODL(t, samples=4, cache=folder / "cache", **s),
        lambda: cs.LANCER(t, rounds=2, **s),
        lambda: cs.TaskMet(t, rounds=2, **s),
        lambda: cs.PolicyNet(t, **s),
        lambda: cs.PlainNetwork(t, **s),
        lambda: cs.CrossFit(cs.TwoStage(t, cs.Point(), **s), folds=2),
    ]


def fit(folder, number):
    """Fit method ``number``; the hash of its decisions is written to a file."""
    rng = torch.Generator().manual_seed(number)
    x = torch.rand(120, 3, generator=rng)
    y = 1 + x[:, :2] + torch.rand(120, 2, generator=rng)
    every = methods(folder, seed=number)
    model = every[number % len(every)]().fit(x, y)
    digest = hashlib.sha256(model.decide(x).contiguous().numpy().tobytes()).hexdigest()
    (folder / "result").write_text(digest)


def sweeps_of_runs(folder, number):
    """Sweep; the rows without their timings are written to a file."""
    engine = None if number % 4 else Processes(2)
    sweep(RUNS, folder / "store", engine, device="cpu", shown=False)
    rows = [
        {key: value for key, value in row.items() if key not in NOISE}
        for _, row, _ in read_store(folder / "store")
    ]
    rows.sort(key=lambda row: (row["method"], row["seed"]))
    (folder / "result").write_text(json.dumps(rows))


def forked(work, folder, number, limit=None):
    """Do the work in a child, killed after ``limit`` seconds; seconds it took, None if killed."""
    begin = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)  # its workers are known by the group
            warnings.simplefilter("ignore")
            work(folder, number)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        took = time.perf_counter() - begin
        if done:
            if status:
                raise SystemExit(f"{work.__name__} {number} failed; see the error above.")
            return took
        if limit is not None and took > limit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            wait_for_workers(child)
            return None
        time.sleep(0.002)


def workers(group):
    """The processes of a group that run; one that waits to be buried does not."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_for_workers(group):
    end = time.monotonic() + ORPHAN
    while workers(group):
        if time.monotonic() > end:
            raise SystemExit(f"Workers {workers(group)} live on after their parent was killed.")
        time.sleep(0.02)


def case(work, number, chance):
    """(whether one that is killed and resumed ends as a whole one, its kills), in new folders."""
    with tempfile.TemporaryDirectory() as place:
        whole, broken = Path(place, "whole"), Path(place, "broken")
        whole.mkdir()
        broken.mkdir()
        seconds = forked(work, whole, number)
        kills = 0
        for _ in range(chance.randint(1, KILLS)):
            if forked(work, broken, number, chance.uniform(0, seconds)) is not None:
                break
            kills += 1
        forked(work, broken, number)
        same = Path(whole, "result").read_text() == Path(broken, "result").read_text()
        return same and not list(broken.rglob("*.part")), kills


def warm_up(works):
    """Do each work once, without workers, so that forks import nothing and find no threads."""
    for work in works:
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work(Path(place), 1)


def run(fits=10, sweeps=10, seed=0, minutes=0.0):
    torch.set_num_threads(1)
    counts = {fit: fits, sweeps_of_runs: sweeps}
    warm_up(work for work, count in counts.items() if count)
    found = Campaign(
        __file__, "killed and resumed, it ends as if never killed, and leaves no worker", minutes
    )
    chance = random.Random(seed)
    done = {work: {"made": 0, "kills": 0} for work in counts}
    for number in range(max(counts.values())):
        for work, count in counts.items():
            if number < count and not found.late:
                same, kills = case(work, number, chance)
                done[work]["made"] += 1
                done[work]["kills"] += kills
                found.case(same, f"{work.__name__} {number} ends otherwise, or leaves a file")
    found.notes = {"fits": done[fit], "sweeps": done[sweeps_of_runs]}
    return found


if __name__ == "__main__":
    sys.exit(main(run, __doc__, fits=10, sweeps=10, seed=0, minutes=0.0))
