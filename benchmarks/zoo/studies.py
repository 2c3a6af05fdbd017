"""What studies on the zoo share: rows in a file, made where they are missing, and a table."""

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean


def read(path):
    """The rows of a file, one JSON object a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def fit(problem, name, change, device="cpu"):
    """One single fit: the fitted method, and the facts of its row.

    - problem: such as "zoo-linear" or "synthetic-convex seed 100".
    - name: of a method.
    - change: method and number of training rows -> method.
    """
    import torch

    import costscape as cs
    from costscape.bench.method_names import method_of
    from costscape.bench.problem_names import problem_named
    from costscape.bench.provenance import commit

    torch.set_num_threads(1)
    made, _, seed = problem.partition(" seed ")
    p = problem_named(made)(int(seed or 0))
    method, data = method_of(name)(p, 0), p.data
    training = replace(method.trains(), device=device, progress=False)
    method = change(method.changed(training=training), len(data.train))
    method.fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))
    found = cs.evaluate(method, data.test.x, data.test.y, truth=p.truth)
    facts = {
        "problem": problem,
        "method": name,
        "regret": found.regret,
        "gap": found.gap,
        "seconds": round(found.fit_seconds, 2),
        "code": commit(),
    }
    return method, facts


class Choices:
    """The rows of fits that differ in one setting, and what a choice among its values gains.

    Of several values the fit with the lowest ``val``, its cost on validation rows, is taken.
    Problems that lack a value are left out.

    - setting: name of the setting in the rows.
    - values: those that were run.
    - base: the value to whose regret others are compared.
    - choices: tuples of values.
    """

    def __init__(self, setting, values, base, choices):
        self.setting, self.values, self.base, self.choices = setting, values, base, choices

    def fits(self, rows):
        """By method and problem: the rows, by value."""
        found = defaultdict(dict)
        for row in rows:
            found[row["method"], row["problem"]][row[self.setting]] = row
        return {key: of for key, of in sorted(found.items()) if set(of) >= set(self.values)}

    def ratios(self, rows):
        """By method and choice: regret over that with the base, one for each problem."""
        found = defaultdict(list)
        for (method, _), of in self.fits(rows).items():
            for choice in self.choices:
                chosen = min((of[value] for value in choice), key=lambda row: row["val"])
                ratio = chosen["regret"] / of[self.base]["regret"]
                for name in (method, "all"):
                    found[name, choice].append(ratio)
        return found

    def table(self, rows):
        """Lines of text: method, values, mean, least and worst ratio, starts kept, problems."""
        kept = defaultdict(int)
        for (method, _), of in self.fits(rows).items():
            for value in self.values:
                for name in (method, "all"):
                    kept[name, (value,)] += of[value]["epoch"] < 0
        return [
            f"{name:14} {', '.join(f'{value:g}' for value in choice):18} {mean(of):.3f} "
            f"{min(of):.2f} {max(of):.2f} start kept {kept.get((name, choice), '-')} n={len(of)}"
            for (name, choice), of in sorted(
                self.ratios(rows).items(), key=lambda pair: pair[0][0]
            )
        ]


def study(words, kept, cases, case_of, run, table):
    """Print the table of the kept rows, or of those that --run makes.

    - words: the description of the script.
    - kept: file of the kept rows; their problems are those of the study.
    - cases: what is run on each problem, tuples.
    - case_of: row -> its case.
    - run: problem and case -> list of rows.
    - table: rows -> lines of text.
    """
    asked = argparse.ArgumentParser(description=words)
    asked.add_argument("--run", action="store_true", help="make the rows that --out lacks")
    asked.add_argument("--out", type=Path, default=kept, help="file of the rows")
    asked.add_argument(
        "--problem", nargs="*", help="such as zoo-linear; those of the kept rows by default"
    )
    given = asked.parse_args()
    if given.run:
        there = read(given.out) if given.out.exists() else []
        done = {(row["problem"], case_of(row)) for row in there}
        problems = given.problem or sorted({row["problem"] for row in read(kept)})
        for problem, case in product(problems, cases):
            if (problem, case) not in done:
                rows = run(problem, *case)
                with given.out.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
    print("\n".join(table(read(given.out))))
