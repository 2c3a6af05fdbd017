"""All speed questions, each in a process of its own, and one table of goals and results.

The table is kept in benchmarks/results/cpu.json or gpu.json. A question that fails is a row of it,
with the last line of what it said, and the exit code is 1; a goal that is missed changes no exit
code. --write puts both kept tables into docs/performance.md, between their marks.

python benchmarks/run.py --cpu | --gpu | --write
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import RESULTS, failed, keep, kept, markdown, show

HERE = Path(__file__).parent
CPU = (
    *("step", "wind", "decide", "vaccine", "scaling", "import"),
    *(
        "linear",
        "forest",
        "epoch",
        "floor",
        "first_try",
        "whole",
        "coupled",
        "update",
        "table",
        "serve",
        "latency",
        "runtime",
    ),
)
GPU = ("gpu", "roofline")
LIMIT = 600  # seconds for one question
PAGE = HERE.parent / "docs" / "performance.md"
FRONT = PAGE.parents[1] / "README.md"
HEADLINES = (
    "training step, against own actions for each pair in eager torch",
    "wind epoch, against DFL with 100 draws through cvxpylayers",
    "import DF2, Box and evaluate, beyond torch",
)
NOT_YET = "Not measured yet: `python benchmarks/run.py --{}` on such a machine, then `--write`.\n"


def paths(names):
    return [HERE / f"bench_{name}.py" for name in names]


def run(files, limit=LIMIT):
    """The results of all, failures among them, and what each took on the clock to stderr."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            begin = time.perf_counter()
            found += _asked(file, Path(folder) / f"{file.stem}.json", limit)
            print(f"{file.stem:16}{time.perf_counter() - begin:6.1f} s", file=sys.stderr)
    return found


def _asked(file, into, limit):
    command = [sys.executable, __file__, "--one", str(file), "--into", str(into)]
    # a rival whose threads wait for each other would count their waiting as work
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env)
    except subprocess.TimeoutExpired:
        return [failed(file.stem, f"took more than {limit:g} s")]
    if done.returncode == 0 and into.exists():
        return kept(into)
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return [failed(file.stem, said[-1].strip() if said else f"exit code {done.returncode}")]


def _answer(file, into):
    sys.path.insert(0, str(file.parent))
    keep(importlib.import_module(file.stem).results(), into)


def page(text):
    """The page with the kept tables between their marks."""
    for name in ("cpu", "gpu"):
        begin, end = (f"<!-- {name}: {edge} -->\n" for edge in ("begin", "end"))
        path = RESULTS / f"{name}.json"
        table = markdown(kept(path)) if path.exists() else NOT_YET.format(name)
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"
    return text


def front(text):
    """The README with a few of the kept results between their marks."""
    begin, end = "<!-- speed: begin -->\n", "<!-- speed: end -->\n"
    known = {r.name: r for name in ("cpu", "gpu") for r in kept(RESULTS / f"{name}.json")}
    wide = max(map(len, HEADLINES))
    lines = "\n".join(f"{name:<{wide}}  {known[name].result}" for name in HEADLINES)
    before, rest = text.split(begin)
    return f"{before}{begin}\n```text\n{lines}\n```\n\n{end}{rest.split(end)[1]}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--cpu", action="store_true")
    which.add_argument("--gpu", action="store_true")
    which.add_argument("--write", action="store_true", help="the kept tables into the page")
    which.add_argument("--one", type=Path, metavar="FILE", help="this file alone, here")
    parser.add_argument("--into", type=Path, metavar="FILE", help="where --one keeps its results")
    args = parser.parse_args(arguments)
    if args.one:
        _answer(args.one, args.into)
        return 0
    if args.write:
        PAGE.write_text(page(PAGE.read_text()))
        FRONT.write_text(front(FRONT.read_text()))
        return 0
    results = run(paths(GPU if args.gpu else CPU))
    print(show(results))
    RESULTS.mkdir(exist_ok=True)
    keep(results, RESULTS / ("gpu.json" if args.gpu else "cpu.json"))
    return int(any(r.value is None for r in results))


if __name__ == "__main__":
    sys.exit(main())
