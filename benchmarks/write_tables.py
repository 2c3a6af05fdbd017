"""Write the tables of the stored rows into the README and the docs, between their marks.

    README.md                  at most 12 methods, a column for each problem
    docs/results.md            every method on every problem, and what was not run
    docs/decision-quality.md   DF2 beside the best opponent (quality.py)

Single fits, tuned ones and cross-fitted ones are in separate parts everywhere. Pages also have
parts whose marks name a command, such as ``costscape contest space``; they hold what it prints.
Parts named in PARTS hold the numbers of rows that a command has stored.

python benchmarks/write_tables.py
"""

import re
from collections import defaultdict
from pathlib import Path

import bias_variance
import cubic_top1
import quality
from quality import CROSSFITTED, MANY, NUMBERED, OTHERS, OURS, PROBLEMS, SHELF, SINGLE, TITLES
from typer.testing import CliRunner

from costscape.bench import figure1, paper_runs
from costscape.bench.catalog import FAMILIES, METHODS
from costscape.bench.report import figure1_text, markdown, read_rows, summarise
from costscape.bench.report.number_format import number
from costscape.bench.report.read_rows import label
from costscape.cli import app

ROOT = Path(__file__).parents[1]
DRAWS = 100  # of a forecast, where a run does not change them
SHORTER = {"epochs", "rounds"}
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"
COMMAND = re.compile(r"<!-- (costscape [^:]+): begin -->.*?<!-- \1: end -->", re.S)
PARTS = {
    "figure1": lambda: figure1_text(figure1.read_bottlenecks(ROOT / "results")),
    "bias_variance": lambda: bias_variance.table(bias_variance.kept()),
    "cubic_top1": lambda: cubic_top1.table(read_rows(cubic_top1.KEPT)),
}
PART = re.compile(rf"<!-- ({'|'.join(PARTS)}): begin -->.*?<!-- \1: end -->", re.S)
BEST = "best opponent"
FRONT = {  # the methods of the README's table, by label
    SINGLE: (
        *("df2-quick", "df2-paper", BEST, "two-stage-gmm3 draws=1000", "two-stage-pe"),
        *("wsaa-forest", "wsaa-knn", "constant"),
    ),
    CROSSFITTED: ("df2", "blend", BEST, "two-stage-gmm3+crossfit draws=1000"),
}
MARKS = {"better": "**{}**", "worse": "*{}*"}
NOT_RUN = "-"
CAPTION = (
    "Gap on the synthetic problems, regret elsewhere: means over seeds, n= where a method has "
    "fewer seeds than others. **Bold**: the 95 % interval of the difference to the best opponent "
    "of the same part is below 0; *italic*: above 0. -: not run. For items 1-10 of a store, the "
    "means of items over their seeds take the place of seeds."
)


def texts():
    """The text between the marks of each file that has them."""
    rows = quality.read()
    made = {"README.md": front, "docs/results.md": full, "docs/decision-quality.md": short}
    return {ROOT / name: make(rows) for name, make in made.items() if BEGIN in _read(ROOT / name)}


def front(rows):
    """The README's table: part, method, and a column for each problem."""
    problems = [problem for problem in PROBLEMS if problem not in (*SHELF, *OTHERS)]
    lines = [["fit", "method", *problems], ["---", "---", *["---:"] * len(problems)]]
    most = defaultdict(int)  # seeds, or items, over both parts of the table
    for cell in [cell for ours in FRONT for cell in _cells(rows, ours)]:
        most[cell.problem] = max(most[cell.problem], cell.most)
    for ours, names in FRONT.items():
        cells = {(cell.problem, cell.label): cell for cell in _cells(rows, ours)}
        best = {cell.problem: cell for cell in cells.values() if cell.is_best_opponent}
        for name in names:
            found = [best.get(p) if name == BEST else cells.get((p, name)) for p in problems]
            shown = [_cell(cell, name == BEST, most) for cell in found]
            lines.append([TITLES[ours].removesuffix(" fits").lower(), name, *shown])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"\n{table}\n\n{CAPTION}\n\n"


def _cells(rows, ours):
    return summarise(quality.of_table(rows, ours), OURS)


def _cell(cell, named, most):
    if cell is None or cell.score is None:
        return NOT_RUN if cell is None else "refused" if cell.refused else "failed"
    mean = number(cell.score.mean, 3)
    if cell.is_ours and cell.difference is not None:
        mean = MARKS.get(cell.difference.verdict, "{}").format(mean)
    fewer = f" n={cell.score.n}" if cell.score.n < most[cell.problem] else ""
    return f"{mean}{fewer}{f' {cell.label}' if named else ''}"


def full(rows):
    """All methods on all problems; items, stores 2 to 10 and bakeries as one problem each."""
    *first, last = MANY.values()
    many = f"{', '.join(first)} and {last}"
    parts = [
        f"In the tables of {many}, the means of these over their seeds take the place of seeds."
    ]
    for ours, title in TITLES.items():
        found = quality.of_table(rows, ours)
        kept = [row for row in found if not NUMBERED.fullmatch(row["problem"])]
        tables = (
            re.sub(r"^##", "###", markdown(kept, OURS), flags=re.MULTILINE) if kept else "Not run."
        )
        parts += [f"## {title}", tables.rstrip()]
    return "\n" + "\n\n".join([*parts, gaps(rows)]) + "\n"


def short(rows):
    """The tables of quality.py."""
    parts = [(title, quality.table(rows, ours)) for ours, title in TITLES.items()]
    return (
        "\n" + "\n".join(f"### {title}\n\n```text\n{text}\n```\n" for title, text in parts) + "\n"
    )


def absent(rows):
    """By problem: the named methods that have no row, a family if none of its sizes has one.

    A method with the level or the paper's encoder counts; a cross-fitted or tuned one does not.
    """
    have = defaultdict(set)
    for row in rows:
        have[row["problem"]].add(re.sub(r"\+(levels|encoder)$", "", row["method"]))
    names = [name for name in METHODS if name != "proportional"]  # for the vaccine problems
    found = {}
    for problem in PROBLEMS:
        families = {re.sub(r"(-gmm)\d+$", r"\1", name) for name in have[problem]}
        lacking = [name for name in names if name not in have[problem]]
        lacking += [f"{family}K" for family in FAMILIES if family not in families]
        if lacking:
            found[problem] = lacking
    return found


def gaps(rows):
    """What has no row, a shorter one only, or fewer seeds than the paper's tables ask for."""
    there = {(row["problem"], label(row["method"], row["changes"]), row["seed"]) for row in rows}
    asked = defaultdict(set)
    for run in [*paper_runs.synthetic(), *paper_runs.table(), *paper_runs.ablations()]:
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
    lines = ["## What was not run", "", "Methods of `costscape list` without a row:", ""]
    lines += [f"- {problem}: {', '.join(names)}." for problem, names in absent(rows).items()]
    lines += [""]
    titles = (
        "Runs of the paper's tables without a row",
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
    """The changes of the runs that a shorter one stands in for."""
    kept = {name: value for name, value in changes.items() if name not in SHORTER}
    yield kept
    if kept.get("draws", DRAWS) < DRAWS:
        yield {name: value for name, value in kept.items() if name != "draws"}


def printed(text):
    """The text of a page with each part of a command replaced by what the command prints."""

    def part(match):
        done = CliRunner().invoke(app, match[1].split()[1:], catch_exceptions=False)
        return f"<!-- {match[1]}: begin -->\n\n{done.stdout}\n<!-- {match[1]}: end -->"

    return COMMAND.sub(part, text)


def filled(text):
    """The text of a page with each of PARTS replaced by the numbers of its stored rows."""
    return PART.sub(
        lambda m: (
            f"<!-- {m[1]}: begin -->\n\n```text\n{PARTS[m[1]]()}\n```\n\n<!-- {m[1]}: end -->"
        ),
        text,
    )


def _read(path):
    return path.read_text() if path.exists() else ""


def between(path):
    return path.read_text().split(BEGIN)[1].split(END)[0]


def main():
    for path, text in texts().items():
        before, rest = path.read_text().split(BEGIN)
        path.write_text(before + BEGIN + text + END + rest.split(END)[1])
        print(path.relative_to(ROOT))
    for path in (ROOT / "docs").glob("*.md"):
        if COMMAND.search(path.read_text()):
            path.write_text(printed(path.read_text()))
            print(path.relative_to(ROOT))
    for path in (ROOT / "docs").rglob("*.md"):
        if PART.search(path.read_text()):
            path.write_text(filled(path.read_text()))
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
