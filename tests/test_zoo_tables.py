"""The tables of the page on defaults are those that the scripts print from their kept rows."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks" / "zoo"))
import defaults  # noqa: E402
import selection  # noqa: E402
import single_networks  # noqa: E402

RATIO = re.compile(r"^(.*?) +(\d+\.\d{3}) (\d+\.\d{3}) n=(\d+)")
FORMS = ("absolute", "anchored", "location-scale")
CHANGES = {
    "rate 1e-3": "rate=0.001",
    "rate 1e-2": "rate=0.01",
    "two hidden layers": "layers=2",
    "32 points and 8 actions": "actions=8, points=32",
    "128 points and 32 actions": "actions=32, points=128",
    "2,000 steps": "steps=2000",
    "batches of 32, 2,000 steps": "batch=32, steps=2000",
    "rate 1e-2 and two hidden layers (7 to 9 problems)": "layers=2, rate=0.01",
}
VARIANTS = {
    "rate 3e-3, the present one": "df2/rate=0.003",
    "128 points, 6 actions": "df2/points=128/actions=6",
    "300 steps, no early stopping": "df2/steps=300/patience_part=1",
    "500 steps": "df2/steps=500",
    "500 steps, no early stopping": "df2/steps=500/patience_part=1",
    "2,000 steps": "df2/steps=2000",
    "outcome share 1": "df2/outcome_share=1",
    "outcome share 3": "df2/outcome_share=3",
}
SETS = {
    "box": "Box",
    "budget": "Budget",
    "simplex": "Simplex",
    "polytope": "Polytope",
    "list of actions": "Finite",
}


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "decision-quality.md").read_text()


def printed(lines):
    """Of lines of a table: the mean and the worst ratio and the number of problems, by label."""
    found = (match for line in lines if (match := RATIO.match(line)))
    return {" ".join(m[1].split()): (f"{m[2]} ({m[3]})", m[4]) for m in found}


def shown(page, label):
    """The cells of the row of the page with that first cell, each row with as many columns."""
    lines = [line for line in page.splitlines() if line.startswith(f"| {label} |")]
    return [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines]


def test_single_networks(page):
    found = printed(single_networks.table(single_networks.read(single_networks.KEPT)))
    for label, change in CHANGES.items():
        cells = [found[f"{change} {form}"][0] for form in FORMS]
        if "points" in change:
            cells[0] = "-"  # absolute outcomes had 200 points throughout
        assert cells in shown(page, label)


def test_selection_and_cross_fitting(page):
    found = printed(selection.table(selection.read()))
    ways = ("greedy", "slopes", "equal")
    assert [found[f"forms {way}"][0] for way in ways] in shown(page, "DF2's forms")
    assert [found[f"all {way}"][0] for way in ways] in shown(page, "all candidates of `cs.Blend`")
    methods = {  # printed last, so that forests and neighbours are those of this comparison
        "DF2, anchored": "df2 anchored",
        "two-stage mixture of 3": "gmm3",
        "nearest neighbours": "knn",
        "random forest": "forest",
    }
    for label, method in methods.items():
        assert [found[method][0]] in shown(page, label)


def test_the_whole_default(page):
    rows = defaults.read(defaults.KEPT)
    lines = defaults.table(rows)
    split = next(i for i, line in enumerate(lines) if "without a change" in line)
    found = printed(lines[split:])
    for label, change in VARIANTS.items():
        ratio, number = found[change]
        (cells,) = (c for c in shown(page, label) if len(c) == 2)
        assert (cells[0], cells[1].split()[0]) == (ratio, number)
    total, sets = printed(lines[:split]), printed(defaults.by_set(rows))
    for label, kind in SETS.items():
        both = [*sets[f"{kind} df2"], *sets[f"{kind} blend"]]
        assert both in shown(page, label)
    assert [*total["df2"], *total["blend"]] in shown(page, "all")
