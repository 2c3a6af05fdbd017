"""How long does it take to import costscape, beyond torch, and to answer --help?

Each in a fresh process, the least of several after a first; processor seconds. Much is loaded only
when it is first named, so what a fit and its evaluation need is measured too.

python benchmarks/bench_import.py
"""

import subprocess
import sys

from common import at_most, show

IMPORT = """
import time, torch
start = time.process_time()
import costscape{}
print(time.process_time() - start)
"""
HELP = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "costscape", "--help"], capture_output=True, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


def spent(program, repeats=3):
    run = [sys.executable, "-c", program]
    said = [subprocess.check_output(run, text=True) for _ in range(1 + repeats)]
    return min(float(words) for words in said[1:])


def results():
    used = "; costscape.DF2; costscape.Box; costscape.evaluate"
    return [
        at_most("import costscape, beyond torch", spent(IMPORT.format("")), 0.3),
        at_most("import DF2, Box and evaluate, beyond torch", spent(IMPORT.format(used)), 0.3),
        at_most("costscape --help", spent(HELP), 0.5),
    ]


if __name__ == "__main__":
    print(show(results()))
