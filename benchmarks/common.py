"""What all speed questions share: a result with its goal, how to time, how to show and keep."""

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from costscape.report import text_table

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Result:
    """``result`` against ``goal``, both in words for the reader; ``value`` is the bare number."""

    name: str
    goal: str
    result: str
    met: bool
    value: float
    machine: str


def at_least(name, value, goal, unit="times", note=""):
    words = f"{value:,.3g} {unit}{note}"
    return Result(name, f">= {goal:,g} {unit}", words, value >= goal, value, machine())


def at_most(name, value, goal, unit="s", note=""):
    words = f"{value:,.3g} {unit}{note}"
    return Result(name, f"<= {goal:,g} {unit}", words, value <= goal, value, machine())


def machine():
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{platform.machine()}, {os.cpu_count()} cores"


def least(work, repeats=3):
    """The least wall-clock seconds of some repeats: what else the machine does only adds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def show(results):
    rows = [
        {
            "what": r.name,
            "goal": r.goal,
            "result": r.result,
            "": "met" if r.met else "missed",
        }
        for r in results
    ]
    return text_table(rows)


def keep(results, path):
    part = path.with_suffix(".part")
    part.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")
    part.rename(path)


def kept(path):
    return [Result(**row) for row in json.loads(path.read_text())]
