"""How long does it take to import costscape, beyond torch, and to answer --help?

Each in a fresh process, the least of several; CPU seconds of the process.

python benchmarks/bench_import.py
"""

import subprocess
import sys

from common import at_most, show

PROGRAM = "import time; t = time.process_time(); {}; print(time.process_time() - t)"


def spent(program, repeats=5):
    run = [sys.executable, "-c", PROGRAM.format(program)]
    return min(float(subprocess.check_output(run, text=True).split()[-1]) for _ in range(repeats))


def help_seconds(repeats=5):
    program = (
        "import resource, subprocess, sys;"
        "subprocess.run([sys.executable, '-m', 'costscape', '--help'], capture_output=True);"
        "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime)"
    )
    run = [sys.executable, "-c", program]
    return min(float(subprocess.check_output(run, text=True)) for _ in range(repeats))


def measure():
    torch = spent("import torch")
    used = spent("import costscape; costscape.DF2; costscape.Box; costscape.evaluate")
    return [
        at_most("import costscape and DF2, beyond torch", used - torch, 0.3),
        at_most("costscape --help", help_seconds(), 0.5),
    ]


if __name__ == "__main__":
    print(show(measure()))
