"""What studies on the zoo share: rows in a file, made where they are missing, and a table."""

import argparse
import json
from itertools import product
from pathlib import Path


def read(path):
    """The rows of a file, one JSON object a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


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
