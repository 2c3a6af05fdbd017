"""A service at saturation: bad requests, a new model, and a kill of its process.

    python benchmarks/trust/soak.py --minutes 10

50 clients ask `costscape serve --log` on loopback, each as soon as it has its answer; one request
in 20 is malformed. The queue has room for half of the clients, so that some are told to ask again
(429). After a third of the time the model file is replaced, after two thirds the service is killed
(SIGKILL) and started again. A case is a request. A good one has the decision of one of the two
models, or 429 or 503; a malformed one has another 4xx. No connection may be lost but by the kill.
Then three more cases: both models have answered, no acknowledged decision is missing in the log,
and memory has not grown by a fifth.
"""

import asyncio
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import torch
from campaign import Campaign, main

sys.path.append(str(Path(__file__).parents[1]))
from bench_serve import BAD, CLIENTS, MALFORMED, TASK, free_port, memory, post, wait_for

import costscape as cs

ROWS = 400  # of the fit; the clients ask for them in turn
MISS = 1e-3  # of the expected cost, between batches
GROWTH = 0.2  # of the memory that the service has after the first minute, or first tenth
BUSY = (429, 503)


def models():
    """Two versions of a model that differ, the rows, and the decisions of both."""
    data, task = cs.problems.wind_farm().train, cs.problems.wind_bidding()
    x, y = data.x[-ROWS:].flatten(1).numpy(), data.y[-ROWS:].numpy()
    training = cs.Training(epochs=2, progress=False)
    made = [cs.DF2.quick(task, training=training, seed=seed).fit(x, y) for seed in (0, 1)]
    return made, x, [np.asarray(model.decide(x)) for model in made]


class Service:
    """The command in a process of its own; ``start`` again after ``kill``."""

    def __init__(self, folder):
        self.folder, self.port, self.down = folder, free_port(), True

    def start(self):
        words = ["serve", str(self.folder), "--port", str(self.port)]
        words += ["--queue-rows", str(CLIENTS // 2), "--log", str(self.folder / "log.sqlite")]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        with (self.folder / "events").open("a") as events:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "costscape", *words], stderr=events, env=env
            )
        wait_for(f"http://127.0.0.1:{self.port}/ready")
        self.down = False

    def kill(self):
        self.down = True
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def memory(self):
        return memory(self.process.pid, "VmRSS:")


async def close(line):
    """Close a connection, if there is one; the other end may be gone."""
    if line is not None:
        line[1].close()
        with suppress(OSError):
            await line[1].wait_closed()


class Clients:
    """Requests on 50 connections until a moment; a lost connection is opened again."""

    def __init__(self, found, service, x, decisions):
        self.found, self.service, self.x, self.decisions = found, service, x, decisions
        self.ids, self.statuses, self.versions, self.lost = [], {}, set(), 0
        self.other = []  # rows and actions that differ from both models': compared by their cost

    async def ask(self, number, until):
        line = None
        for i in itertools.count():
            if time.monotonic() >= until:
                await close(line)
                return
            bad, row = (i + number) % BAD == 0, (number * 97 + i) % len(self.x)
            good = json.dumps({"rows": [self.x[row].tolist()]}).encode()
            try:
                if line is None:
                    line = await asyncio.open_connection(
                        "127.0.0.1", self.service.port, limit=2**22
                    )
                answer = await post(*line, MALFORMED[i % len(MALFORMED)] if bad else good)
            except (OSError, asyncio.IncompleteReadError) as error:
                if not self.service.down:
                    self.found.case(False, f"a connection was lost while it served: {error!r}")
                await close(line)
                line, self.lost = None, self.lost + 1
                await asyncio.sleep(0.05)
                continue
            self.check(bad, row, *answer)
            if answer[0] in BUSY:
                await asyncio.sleep(0.05)

    def check(self, bad, row, status, text):
        kind = f"{'malformed' if bad else 'good'} {status}"
        self.statuses[kind] = self.statuses.get(kind, 0) + 1
        if bad:
            self.found.case(400 <= status < 500 and status != 429, f"{kind}: {text[:100]}")
        elif status == 200:
            answer = json.loads(text)
            given = answer["decisions"]
            self.ids += answer["ids"]
            self.versions.add(answer["version"])
            if any(np.allclose(given, known[row], atol=1e-4) for known in self.decisions):
                self.found.case(True)
            else:
                self.other.append((row, given[0]))
        else:
            self.found.case(status in BUSY, f"{kind}: {text[:100]}")


def compare_costs(found, clients, made):
    """Where the cost is flat, rounding of another batch moves the action; the cost is the same."""
    for row, given in clients.other:
        x, a = clients.x[[row]], np.asarray([given])
        misses = []
        for model, known in zip(made, clients.decisions, strict=True):
            best = float(model.expected_cost(x, known[[row]])[0])
            misses.append(float(model.expected_cost(x, a)[0]) / best - 1)
        found.case(min(misses, key=abs) <= MISS, f"row {row}, {given}: {misses}")


async def soak(clients, seconds):
    """Run clients, the swap and the kill; memory at the begin and the end of both processes."""
    service, begin = clients.service, time.monotonic()
    until, sizes = begin + seconds, []

    async def disturb():
        for share, act in (
            (min(0.1, 60 / seconds), lambda: sizes.append(service.memory)),
            (
                1 / 3,
                lambda: os.replace(service.folder / "new", service.folder / "model.costscape"),
            ),
            (2 / 3, lambda: sizes.append(service.memory)),
            (2 / 3, service.kill),
            (2 / 3, service.start),
            (0.98, lambda: sizes.append(service.memory)),
        ):
            await asyncio.sleep(max(0.0, begin + share * seconds - time.monotonic()))
            await asyncio.to_thread(act)

    await asyncio.gather(disturb(), *(clients.ask(i, until) for i in range(CLIENTS)))
    return sizes


def run(minutes=10.0):
    torch.set_num_threads(1)
    goal = "good requests are answered, bad ones refused, nothing is lost"
    (old, new), x, decisions = models()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "task.py").write_text(TASK)
        old.save(folder / "model.costscape")
        new.save(folder / "new")
        service = Service(folder)
        service.start()
        found = Campaign(__file__, goal)
        clients = Clients(found, service, x, decisions)
        try:
            sizes = asyncio.run(soak(clients, 60 * minutes))
        finally:
            service.process.terminate()
            service.process.wait()
        with closing(sqlite3.connect(folder / "log.sqlite")) as log:
            kept = {row[0] for row in log.execute("SELECT id FROM costscape_decisions")}
    compare_costs(found, clients, (old, new))
    missing = set(clients.ids) - kept
    found.case(len(clients.versions) == 2, f"versions that answered: {clients.versions}")
    found.case(not missing, f"{len(missing)} acknowledged decisions are not in the log")
    most = (1 + GROWTH) * sizes[0]
    found.case(max(sizes) <= most, f"memory in MiB: {sizes}")
    found.notes = {
        "answers": dict(sorted(clients.statuses.items())),
        "actions that batches round otherwise": len(clients.other),
        "connections refused while it starts again": clients.lost,
        "decisions in the log": len(kept),
        "memory, MiB": [round(size) for size in sizes],
    }
    return found


if __name__ == "__main__":
    sys.exit(main(run, __doc__, minutes=10.0))
