"""How many decisions does a service answer, beside one call for all of them?

Stock orders of seven days from 14 days of sales. `costscape serve` runs in a process of its own.
50 clients ask for one row, then for 100 rows at a time, each as soon as it has its answer. The
processor time of the service for a row is compared with that of one call of `decide`,
`expected_cost` and `check` for the rows of 50 requests. Requests share calls, so what the service
adds is HTTP and JSON. Latency is that of the clients by the clock; they share the machine with the
service. Memory is the peak of the service's process.

python benchmarks/bench_serve.py
"""

import asyncio
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
from common import middle, reported, show

import costscape as cs

CLIENTS, SECONDS = 50, 5.0
TASK = "import costscape as cs\n\ntask = cs.problems.inventory()\n"
METHODS = {
    "neighbours": lambda task: cs.NearestNeighbours(task),
    "DF2.quick": lambda task: cs.DF2.quick(task, training=cs.Training(epochs=5, progress=False)),
}


def results():
    torch.set_num_threads(1)
    data, task = cs.problems.sales().splits, cs.problems.inventory()
    x, y = data.train.x.flatten(1).numpy(), data.train.y.numpy()
    found = []
    for name, make in METHODS.items():
        model = make(task).fit(x, y)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.costscape")
            (Path(folder) / "task.py").write_text(TASK)
            found += serve(name, model, Path(folder), x)
    return found


def serve(name, model, folder, x):
    port = free_port()
    words = [sys.executable, "-m", "costscape", "serve", str(folder), "--port", str(port)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=env)
    try:
        wait_for(f"http://127.0.0.1:{port}/ready")
        found = [r for size in (1, 100) for r in load(name, model, port, process.pid, x, size)]
        return [*found, reported(f"serve, {name}: peak memory", peak(process.pid), "MiB")]
    finally:
        process.terminate()
        process.wait(60)


def load(name, model, port, pid, x, size):
    """What CLIENTS clients with ``size`` rows in each request see."""
    before = processor_seconds(pid)
    taken, seconds = asyncio.run(all_clients(port, x, size))
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


async def all_clients(port, x, size):
    begin = time.perf_counter()
    runs = (client(port, np.roll(x, i, 0)[:size], begin + SECONDS) for i in range(CLIENTS))
    taken = await asyncio.gather(*runs)
    return np.concatenate(taken), time.perf_counter() - begin


async def client(port, rows, until):
    """The seconds of each request on one connection; a plain socket costs the clients least."""
    body = json.dumps({"rows": rows.tolist()}).encode()
    head = f"POST /decide HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    taken = []
    while time.perf_counter() < until:
        begin = time.perf_counter()
        writer.write(head + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert lines.startswith(b"http/1.1 200"), lines
        await reader.readexactly(int(lines.split(b"content-length: ")[1].split()[0]))
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


def peak(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


if __name__ == "__main__":
    print(show(results()))
