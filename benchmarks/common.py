"""What all speed questions share: a result with its goal, how to time, how to show and keep."""

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from costscape.bench.report import text_table

RESULTS = Path(__file__).parent / "results"
REPORTED = "reported"  # stands for a goal where none was set


@dataclass(frozen=True)
class Result:
    """``result`` against ``goal``, both in words for the reader; ``value`` is the bare number.

    Where no goal was set, ``goal`` is "reported" and ``met`` says only that it ran. ``value`` is
    None where it did not.
    """

    name: str
    goal: str
    result: str
    met: bool
    value: float | None
    machine: str


def at_least(name, value, goal, unit="times", note=""):
    return Result(name, f">= {goal:,g} {unit}", *_words(value, unit, note, value >= goal))


def at_most(name, value, goal, unit="s", note=""):
    return Result(name, f"<= {goal:,g} {unit}", *_words(value, unit, note, value <= goal))


def reported(name, value, unit="times", note=""):
    """No goal was set for it."""
    return Result(name, REPORTED, *_words(value, unit, note, True))


def failed(name, words):
    return Result(name, "runs", words, False, None, machine())


def _words(value, unit, note, met):
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{text} {unit}" + (f" ({note})" if note else ""), bool(met), float(value), machine()


def machine():
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{_processor()}, {os.cpu_count()} cores"


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def times(work, repeats, clock=time.process_time):
    """Seconds of each of some calls after a first one, of this process's own work.

    What else the machine does hardly counts in it. With one thread it is what an idle machine's
    clock would show.
    """
    work()
    taken = []
    for _ in range(repeats):
        start = clock()
        work()
        taken.append(clock() - start)
    return taken


def least(work, repeats=3, clock=time.process_time):
    return min(times(work, repeats, clock))


def middle(work, repeats=3, clock=time.process_time):
    return median(times(work, repeats, clock))


def once(work, clock=time.process_time):
    """Seconds of a call too long to be done twice, and what it answers."""
    start = clock()
    answer = work()
    return clock() - start, answer


def show(results):
    return text_table([_row(r) for r in results])


def markdown(results):
    rows = [_row(r) for r in results]
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    machines = "; ".join(sorted({r.machine for r in results}))
    return f"Measured on: {machines}.\n\n{table}\n"


def _row(r):
    return {"what": r.name, "goal": r.goal, "": _verdict(r), "result": r.result}


def _verdict(r):
    if r.value is None:
        return "failed"
    return "" if r.goal == REPORTED else "met" if r.met else "missed"


def keep(results, path):
    part = path.with_suffix(".part")
    part.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")
    part.replace(path)


def kept(path):
    return [Result(**row) for row in json.loads(path.read_text())]
