"""Put the tables of the kept rows into the README and the docs, between their marks.

python benchmarks/write_tables.py
"""

from collections import defaultdict
from pathlib import Path

import quality
import tune

from costscape.experiments import paper
from costscape.report import markdown, overview, read_rows
from costscape.report.rows import label

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
DRAWS = 100  # of a forecast, unless said otherwise
SHORTER = {"epochs", "rounds"}
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"


def texts():
    """What stands between the marks of each file."""
    rows = read_rows(RESULTS)
    return {
        ROOT / "README.md": f"\n```text\n{overview(rows)}\n```\n\n",
        ROOT / "docs" / "results.md": f"\n{markdown(rows)}\n{gaps(rows)}\n",
        ROOT / "docs" / "decision-quality.md": "\n".join(
            [
                *("", "## Goals", "", *_block(quality.table())),
                *("## Opponents averaged likewise", "", *_block(quality.averaged())),
                *("## What was tried", "", *_block(tune.table())),
            ]
        ),
    }


def gaps(rows):
    """What the paper's tables ask for and has no row, or a shorter one only, or fewer seeds."""
    there = {(row["problem"], label(row["method"], row["changes"]), row["seed"]) for row in rows}
    asked = defaultdict(set)
    for run in [*paper.synthetic(), *paper.table(), *paper.ablations()]:
        asked[run.problem, label(run.method, run.changes)].add(run.seed)
    shorter = defaultdict(set)
    for row in rows:
        if SHORTER & row["changes"].keys():
            said = label(row["method"], row["changes"])
            for whole in _wholes(row["changes"]):
                shorter[row["problem"], label(row["method"], whole)].add(said)
    missing, short, few = defaultdict(list), defaultdict(list), defaultdict(list)
    for (problem, name), seeds in asked.items():
        have = sum((problem, name, seed) in there for seed in seeds)
        brief = shorter[problem, name]
        if not have and brief:
            short[problem] += sorted(brief)
        elif not have:
            missing[problem].append(name)
        elif have < len(seeds):
            few[problem].append(f"{name} {have} of {len(seeds)}")
    lines = ["## What is not there", ""]
    titles = (
        "Not run",
        "Run for fewer epochs or rounds, or with fewer draws too, one seed",
        "Fewer seeds than asked for",
    )
    for title, found in zip(titles, (missing, short, few), strict=True):
        if not found:
            continue
        lines += [f"{title}:", ""]
        lines += [f"- {problem}: {', '.join(names)}." for problem, names in found.items()]
        lines += [""]
    return "\n".join(lines)


def _wholes(changes):
    """Those of the runs that a shorter one stands for."""
    kept = {name: value for name, value in changes.items() if name not in SHORTER}
    yield kept
    if kept.get("draws", DRAWS) < DRAWS:
        yield {name: value for name, value in kept.items() if name != "draws"}


def _block(text):
    return ["```text", *(line.rstrip() for line in text.splitlines()), "```", ""]


def between(path):
    return path.read_text().split(BEGIN)[1].split(END)[0]


def main():
    for path, text in texts().items():
        before, rest = path.read_text().split(BEGIN)
        path.write_text(before + BEGIN + text + END + rest.split(END)[1])
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
