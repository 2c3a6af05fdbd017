"""The README's numbers are those of the kept rows."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gaps_in_the_readme_are_made_from_the_kept_rows():
    gap = script("synthetic_gap")
    rows = gap.kept()
    assert len(rows) == len(gap.PROBLEMS) * len(gap.METHODS) * len(gap.SEEDS)
    assert gap.table(rows) in (ROOT / "README.md").read_text()


def test_the_default_gap_is_at_most_0_020_on_both_problems():
    rows = script("synthetic_gap").kept()
    for problem in ("synthetic-convex", "synthetic-nonconvex"):
        gaps = [r["gap"] for r in rows if (r["problem"], r["method"]) == (problem, "df2")]
        assert sum(gaps) / len(gaps) <= 0.020


def test_the_seconds_in_the_documents_are_made_from_the_kept_rows():
    epoch = script("bench_epoch")
    rows = epoch.kept()
    assert [row["method"] for row in rows] == list(epoch.NAMES)
    assert epoch.table(rows) in (ROOT / "docs" / "methods.md").read_text()
