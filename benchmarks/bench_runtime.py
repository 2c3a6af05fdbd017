"""What does an exported model save, beside a service with torch?

Stock orders of seven days from 14 days of sales, the default blend of DF2 after a few epochs.
`costscape serve` runs in a process of its own, once with the model file and torch, once with the
ONNX file. The start is the time until /ready answers, and its processor time. Memory is the peak
of the process after the first decisions. Latency is the processor time of a call of `decide` in
this process.

python benchmarks/bench_runtime.py
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import torch
from bench_serve import TASK, free_port, peak, processor_seconds, wait_for
from common import at_most, middle, reported, show

import costscape as cs
from costscape import runtime


def results():
    torch.set_num_threads(1)
    data, task = cs.problems.sales().splits, cs.problems.inventory()
    x, y = data.train.x.flatten(1).numpy(), data.train.y.numpy()
    model = cs.DF2(task, training=cs.Training(epochs=3, progress=False)).fit(x, y)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model.save(folder / "model.costscape")
        (folder / "task.py").write_text(TASK)
        begin = time.process_time()
        made = model.export(folder / "model.onnx")
        taken = time.process_time() - begin
        small = runtime.load(made.path)
        with_torch, with_onnx = start(folder, x), start(made.path, x)
    found = [
        reported("runtime, export", taken, "s", str(made).partition(": ")[2]),
        at_most(
            "runtime, start by the clock", with_onnx[0], 1, "s", f"torch {with_torch[0]:.2f} s"
        ),
        at_most("runtime, start, processor", with_onnx[1], 1, "s", f"torch {with_torch[1]:.2f} s"),
        at_most("runtime, memory", with_onnx[2], 200, "MiB", f"torch {with_torch[2]:.0f} MiB"),
    ]
    for rows in (1, 100):
        one, other = (1e3 * middle(lambda m=m, n=rows: m.decide(x[:n]), 5) for m in (model, small))
        note = f"{one:.2f} and {other:.2f} ms of the processor"
        found.append(reported(f"runtime, decide {rows}, torch over onnx", one / other, note=note))
    return found


def start(path, x):
    """Seconds until ready, by the clock and of the processor, and MiB after some decisions."""
    port = free_port()
    words = [sys.executable, "-m", "costscape", "serve", str(path), "--port", str(port)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    begin = time.perf_counter()
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=env)
    try:
        wait_for(f"http://127.0.0.1:{port}/ready")
        seconds, used = time.perf_counter() - begin, processor_seconds(process.pid)
        for rows in (1, 100):
            ask(port, json.dumps({"rows": x[:rows].tolist()}).encode())
        return seconds, used, peak(process.pid)
    finally:
        process.terminate()
        process.wait(60)


def ask(port, body):
    head = {"content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/decide", body, head)
    return urllib.request.urlopen(request).read()


if __name__ == "__main__":
    print(show(results()))
