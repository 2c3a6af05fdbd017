"""The whole campaign: run every script, print its line, write the table of docs/reliability.md.

    python benchmarks/trust/run.py                      # the long form, tens of minutes
    python benchmarks/trust/run.py --short              # a minute
    python benchmarks/trust/run.py decisions --n 1000000   # one script, its own options

Each script runs in a process of its own. A row of the table stays until its script runs again.
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from page import write_rows

HERE = Path(__file__).parent
HEAD = "| script | goal | cases | failures | date | command |\n|---|---|---|---|---|---|\n"

LONG = {
    "inputs": [],
    "decisions": ["--n", "1000000", "--rows", "2000"],
    "optimality": ["--n", "20000"],
    "scale": [],
    "costs": [],
    "data": [],
    "threads": [],
    "kills": ["--fits", "100", "--sweeps", "100"],
    "soak": ["--minutes", "10"],
}
SHORT = {
    "inputs": [],
    "decisions": ["--n", "4000", "--rows", "200"],
    "optimality": ["--n", "320"],
    "scale": ["--few", "3"],
    "costs": [],
    "data": ["--few", "1"],
    "threads": ["--few", "1"],
    "kills": ["--fits", "1", "--sweeps", "1"],
    "soak": ["--minutes", "0.2"],
}


def answer(name, arguments):
    """The line of one script; a script that ends without one is a failure."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        words = done.stderr.strip().splitlines()[-8:] or ["no line"]  # warnings may follow
        return {"script": name, "goal": "ends", "count": 1, "failures": 1, "examples": words}


def row(line, arguments, day):
    command = " ".join([f"benchmarks/trust/{line['script']}.py", *arguments])
    cells = [line["script"], line["goal"], f"{line['count']:,}", f"{line['failures']:,}", day]
    return "| " + " | ".join([*cells, f"`{command}`"]) + " |"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a minute; writes no table")
    parser.add_argument("script", nargs="?", choices=LONG, help="one script; all if left out")
    parser.add_argument("own", nargs=argparse.REMAINDER, help="options of that script")
    args = parser.parse_args(arguments)
    sizes = SHORT if args.short else LONG
    failures = 0
    for name in [args.script] if args.script else sizes:
        given = args.own or sizes[name]
        line = answer(name, given)
        print(json.dumps(line), flush=True)
        failures += line["failures"]
        if not args.short:
            day = datetime.now(UTC).date().isoformat()
            write_rows("trust", HEAD, {name: row(line, given, day)}, LONG)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
