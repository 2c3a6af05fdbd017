"""How many decisions does a service answer, beside one call for all of them?

Bids of a wind farm for 12 hours from 24 hours of its power, by `DF2.quick` and by `DF2`. The
command `costscape serve` runs in a process of its own. 50 clients ask for one row, then for 100
rows at a time, each as soon as it has its answer. The processor time of the service for a row is
compared with that of one call of `decide`, `expected_cost` and `check` for the rows of 50
requests. Requests share calls, so what the service adds is HTTP and JSON. Latency is that of the
clients by the clock; they share the machine with the service. Memory is the peak of the service's
process. `DF2` has the second part only, since 5,000 rows take minutes.

Then the clients ask for one row each, one request in 20 is malformed, and after half of the time
the model file is replaced by another version. Rows a second are compared with those of one call
for 50 rows, the 99th of 100 latencies with one call for one row. No good request may be refused,
and no bad one may be answered. Memory growth is that of this part, after its first second.

50 clients that ask again at once wait 50 rows each, so their mean latency over one decision is
(time of one call for 50 rows / time of one for 1 row) / (share of the throughput). The first
factor is printed as well: it is the least that the latency can be.

python benchmarks/bench_serve.py
python benchmarks/bench_serve.py --seconds 2                      # a short form
python benchmarks/bench_serve.py --seconds 2 --model DF2.quick    # of one model
"""

import argparse
import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import torch
from common import at_least, at_most, middle, reported, show

import costscape as cs

CLIENTS, SECONDS, BAD = 50, 5.0, 20  # one request in BAD is malformed
MALFORMED = (b"{", b'{"rows": [[1.0]]}', b'{"rows": [{"0": "text"}]}', b'{"rows": [], "x": 1}')
ROWS = 2_000  # of the fit; the time of a decision does not depend on them
TASK = "import costscape as cs\n\ntask = cs.problems.wind_bidding()\n"
METHODS = {  # the method, and rows of a request
    "DF2.quick": (cs.DF2.quick, (1, 100)),
    "DF2": (cs.DF2, ()),
}


def results(seconds=SECONDS, models=tuple(METHODS)):
    torch.set_num_threads(1)
    data, task = cs.problems.wind_farm().train, cs.problems.wind_bidding()
    x, y = data.x[-ROWS:].flatten(1).numpy(), data.y[-ROWS:].numpy()
    found = []
    for name in models:
        make, sizes = METHODS[name]
        # two epochs: the time of a decision does not depend on how good it is
        model = make(task, training=cs.Training(epochs=2, progress=False)).fit(x, y)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.costscape")
            (Path(folder) / "task.py").write_text(TASK)
            found += serve(name, model, Path(folder), x, sizes, seconds)
    return found


def serve(name, model, folder, x, sizes, seconds):
    port = free_port()
    words = [sys.executable, "-m", "costscape", "serve", str(folder), "--port", str(port)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=env)
    try:
        wait_for(f"http://127.0.0.1:{port}/ready")
        found = [
            r for size in sizes for r in load(name, model, port, process.pid, x, size, seconds)
        ]
        found += mixed(name, model, port, process.pid, folder, x, seconds)
        return [
            *found,
            reported(f"serve, {name}: peak memory", memory(process.pid, "VmHWM:"), "MiB"),
        ]
    finally:
        process.terminate()
        process.wait(60)


def mixed(name, model, port, pid, folder, x, seconds):
    """Good and malformed requests while the model is replaced."""
    # another version, as large as the first: the file keeps the labels of its rows or not
    model.save(folder / "new", rows=False)
    batch = np.resize(x, (CLIENTS, x.shape[1]))
    whole = middle(lambda: call(model, batch), 3, time.perf_counter)
    # the service looks at its files every 2 s, and some calls come before the swap and after it
    seconds = max(seconds, 4.0, 6 * whole)
    asked = asyncio.run(mixed_clients(port, pid, folder, x, seconds))
    good = [one for one in asked["answers"] if not one["bad"]]
    bad = [one for one in asked["answers"] if one["bad"]]
    taken = [one["seconds"] for one in good]
    rate = len(good) / asked["seconds"]
    single = middle(lambda: call(model, x[:1]), 9, time.perf_counter)
    what = f"serve, {name}, mixed"
    p99 = float(np.quantile(taken, 0.99))
    versions = {one["version"] for one in good}
    return [
        at_least(
            f"{what}: rows a second over those of one call",
            rate * whole / CLIENTS,
            0.5,
            note=f"{rate:,.0f} and {CLIENTS / whole:,.0f} a second",
        ),
        at_most(
            f"{what}: 99th of 100 latencies over one decision",
            p99 / single,
            10,
            "times",
            f"{1e3 * p99:.0f} and {1e3 * single:.1f} ms",
        ),
        reported(f"{what}: one call for {CLIENTS} rows over one decision", whole / single),
        at_most(
            f"{what}: good requests answered with 5xx",
            sum(one["status"] >= 500 for one in good),
            0,
            f"of {len(good):,}",
        ),
        at_most(
            f"{what}: good requests refused",
            sum(one["status"] != 200 for one in good),
            0,
            f"of {len(good):,}",
        ),
        at_most(
            f"{what}: malformed requests not refused with 4xx",
            sum(not 400 <= one["status"] < 500 for one in bad),
            0,
            f"of {len(bad):,}",
        ),
        at_least(f"{what}: versions that answered", len(versions), 2, "versions"),
        reported(f"{what}: memory growth", asked["growth"], "MiB"),
    ]


async def mixed_clients(port, pid, folder, x, seconds):
    begin = time.perf_counter()
    until = begin + seconds
    first = []

    async def swap():
        await asyncio.sleep(1.0)
        first.append(memory(pid, "VmRSS:"))
        await asyncio.sleep((until - begin) / 2 - 1.0)
        os.replace(folder / "new", folder / "model.costscape")

    clients = (asker(port, i, x, until) for i in range(CLIENTS))
    found, _ = await asyncio.gather(asyncio.gather(*clients), swap())
    return {
        "answers": [one for some in found for one in some],
        "seconds": time.perf_counter() - begin,
        "growth": memory(pid, "VmRSS:") - first[0],
    }


async def asker(port, number, x, until):
    """One client, whose requests are malformed now and then."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    found = []
    for i in itertools.count():
        if time.perf_counter() >= until:
            break
        bad = (i + number) % BAD == 0
        row = x[(number * 97 + i) % len(x)]
        body = (
            MALFORMED[i % len(MALFORMED)] if bad else json.dumps({"rows": [row.tolist()]}).encode()
        )
        begin = time.perf_counter()
        status, text = await post(reader, writer, body)
        version = json.loads(text).get("version")
        found.append(
            {
                "bad": bad,
                "status": status,
                "version": version,
                "seconds": time.perf_counter() - begin,
            }
        )
    writer.close()
    await writer.wait_closed()
    return found


async def post(reader, writer, body):
    """Status and body of the answer; a plain socket costs the clients least."""
    head = f"POST /decide HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    lines = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(lines.split(b"content-length: ")[1].split()[0])
    return int(lines.split()[1]), await reader.readexactly(length)


def load(name, model, port, pid, x, size, seconds):
    """What CLIENTS clients with ``size`` rows in each request see."""
    before = processor_seconds(pid)
    taken, seconds = asyncio.run(all_clients(port, x, size, seconds))
    each = (processor_seconds(pid) - before) / len(taken) / size
    batch = np.resize(x, (CLIENTS * size, x.shape[1]))
    alone = middle(lambda: call(model, batch), 3) / len(batch)
    p50, p99 = (1e3 * np.quantile(taken, q) for q in (0.5, 0.99))
    what = f"serve, {name}, {CLIENTS} clients with {size} row{'s' if size > 1 else ''} each"
    note = f"{1e3 * each:.2f} and {1e3 * alone:.2f} ms of the processor a row"
    rate = (
        f"{len(taken) / seconds:,.0f} requests, {len(taken) * size / seconds:,.0f} rows a second"
    )
    return [
        reported(f"{what}, over one call", each / alone, note=note),
        reported(f"{what}: median latency", p50, "ms", rate),
        reported(f"{what}: 99th of 100", p99, "ms"),
    ]


def processor_seconds(pid):
    """User and system time of a process, all its threads."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def call(model, x):
    a = model.decide(x)
    return a, model.expected_cost(x, a), model.check(x)


async def all_clients(port, x, size, seconds):
    begin = time.perf_counter()
    runs = (client(port, np.roll(x, i, 0)[:size], begin + seconds) for i in range(CLIENTS))
    taken = await asyncio.gather(*runs)
    return np.concatenate(taken), time.perf_counter() - begin


async def client(port, rows, until):
    """The seconds of each request on one connection."""
    body = json.dumps({"rows": rows.tolist()}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    taken = []
    while time.perf_counter() < until:
        begin = time.perf_counter()
        status, text = await post(reader, writer, body)
        assert status == 200, text
        taken.append(time.perf_counter() - begin)
    writer.close()
    await writer.wait_closed()
    return taken


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(address, seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            return urllib.request.urlopen(address).read()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"There was no answer from {address} within {seconds} s.")


def memory(pid, what):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each part")
    parser.add_argument("--model", choices=METHODS, action="append", help="all by default")
    given = parser.parse_args()
    print(show(results(given.seconds, given.model or tuple(METHODS))))
