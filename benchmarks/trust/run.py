"""The whole campaign: run every script, print its line, write the table of docs/reliability.md.

    python benchmarks/trust/run.py                      # the long form, tens of minutes
    python benchmarks/trust/run.py --short              # a minute
    python benchmarks/trust/run.py --only decisions --n 100000

Each script runs in a process of its own. A row of the table stays until its script runs again.
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- trust: begin -->\n", "<!-- trust: end -->\n"
HEAD = "| script | goal | cases | failures | date | command |\n|---|---|---|---|---|---|\n"

LONG = {
    "inputs": [],
    "decisions": ["--n", "1000000", "--rows", "2000"],
    "optimality": ["--n", "20000"],
    "scale": [],
    "costs": [],
    "data": [],
    "threads": [],
    "kills": ["--fits", "20", "--sweeps", "20"],
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
}


def answer(name, arguments):
    """The line of one script; a script that ends without one is a failure."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        words = done.stderr.strip().splitlines()[-1:] or ["no line"]
        return {"script": name, "goal": "ends", "count": 1, "failures": 1, "examples": words}


def row(line, arguments, day):
    command = " ".join([f"benchmarks/trust/{line['script']}.py", *arguments])
    cells = [line["script"], line["goal"], f"{line['count']:,}", f"{line['failures']:,}", day]
    return "| " + " | ".join([*cells, f"`{command}`"]) + " |"


def page(text, rows):
    """The page with new rows in place of those of the same script."""
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    known = {cells.split(" | ")[0].strip("| "): cells for cells in table.splitlines()[3:] if cells}
    known |= rows
    body = "\n".join(known[name] for name in LONG if name in known)
    return f"{before}{BEGIN}\n{HEAD}{body}\n\n{END}{after}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a minute; writes no table")
    parser.add_argument("--only", help="one script")
    args, own = parser.parse_known_args(arguments)
    sizes = SHORT if args.short else LONG
    names = [args.only] if args.only else [n for n in sizes if (HERE / f"{n}.py").exists()]
    failures = 0
    for name in names:
        given = own or sizes[name]
        line = answer(name, given)
        print(json.dumps(line), flush=True)
        failures += line["failures"]
        if not args.short:
            day = datetime.now(UTC).date().isoformat()
            PAGE.write_text(page(PAGE.read_text(), {name: row(line, given, day)}))
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
