"""How long does a million rows of CSV take to become X and Y, and how much memory?

A million rows of 20 columns: 500 groups (50 items in 10 stores) of 2,000 days; 2 outcomes, 4
columns known in advance, of which one is text, 10 more columns of numbers, and lags of 12 columns.
Reading, checking, sorting, lags, calendar and categories, in a process of its own.

python benchmarks/bench_table.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from common import at_most

ROWS, STORES, ITEMS = 1_000_000, 10, 50
NOTE = "X ({}, {}); the file has {:.0f} MB"
CODE = """
import sys, time
from pathlib import Path
import costscape as cs
start = time.process_time()
others = [f"other{i}" for i in range(10)]
table = cs.Table(
    sys.argv[1],
    date="date",
    group=["store", "item"],
    outcome=["sold", "returned"],
    known=["promo", "price", "shelf", "kind"],
    lags={"sold": [1, 2, 7, 14], "returned": [1, 7], **{name: [1] for name in others}},
    encode=cs.OneHot(most=20),
)
taken = time.process_time() - start
# ru_maxrss would count the process that wrote the file, too
status = Path("/proc/self/status").read_text().split()
peak = int(status[status.index("VmHWM:") + 1]) / 2**20
print(taken, peak, *table.X.shape)
"""


def write(path, rows=ROWS):
    """The rows as a CSV file, in random order."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    groups = STORES * ITEMS
    days = rows // groups
    n = groups * days
    frame = pd.DataFrame(
        {
            "date": np.tile(pd.date_range("2018-01-01", periods=days).astype(str), groups),
            "store": np.repeat(np.arange(groups) // ITEMS, days),
            "item": np.repeat(np.arange(groups) % ITEMS, days),
            "sold": rng.poisson(20, n),
            "returned": rng.poisson(1, n),
            "promo": rng.integers(0, 2, n),
            "price": rng.uniform(1, 3, n).round(2),
            "shelf": rng.integers(1, 9, n),
            "kind": rng.choice(["fresh", "frozen", "dry"], n),
            **{f"other{i}": rng.normal(size=n).round(3) for i in range(10)},
            "unused": rng.normal(size=n).round(3),
        }
    )
    frame.iloc[rng.permutation(n)].to_csv(path, index=False)


def results(rows=ROWS):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sales.csv"
        write(path, rows)
        command = [sys.executable, "-c", CODE, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        size = path.stat().st_size / 1e6
    taken, peak, n, width = map(float, done.stdout.split())
    name = f"table, {rows:,} rows of 20 columns to X and Y"
    note = NOTE.format(f"{n:,.0f}", f"{width:.0f}", size)
    return [
        at_most(name, taken, 30, "s", f"processor time; {note}"),
        at_most(f"{name}: memory", peak, 4, "GiB", "of the whole process"),
    ]


if __name__ == "__main__":
    from common import show

    print(show(results()))
