"""Kept rows are those of the present code: some are computed again, on the CPU.

A row whose recipe is another one was made by other settings or data. Make it again with
`costscape run PROBLEM --method METHOD --seed SEED --store results`.
"""

from pathlib import Path

import pytest

from costscape.bench import Rows, Run, execute, prepare

RESULTS = Path(__file__).parents[2] / "results"
WITHOUT_NETWORKS = [
    ("synthetic-convex", "constant", 0),
    ("synthetic-convex", "wsaa-knn", 0),
    pytest.param("synthetic-convex", "wsaa-kernel", 0, marks=pytest.mark.long),
    pytest.param("synthetic-convex", "wsaa-forest", 0, marks=pytest.mark.long),
    ("synthetic-nonconvex", "constant", 0),
    pytest.param("synthetic-nonconvex", "wsaa-knn", 1, marks=pytest.mark.long),
    ("inventory", "constant", 0),
    ("inventory", "wsaa-knn", 1),
    pytest.param("inventory", "cme", 0, marks=pytest.mark.long),
    ("wind-farm", "constant", 0),
]
NETWORKS = [  # that end alike on all machines
    ("synthetic-convex", "two-stage-linear-gmm3", 0),
    pytest.param("synthetic-nonconvex", "two-stage-linear-gmm3", 1, marks=pytest.mark.long),
    ("synthetic-convex", "policy-net", 0),
]


@pytest.mark.parametrize(("problem", "method", "seed"), WITHOUT_NETWORKS + NETWORKS)
def test_a_kept_row_is_made_again(problem, method, seed):
    run = Run(problem, method, seed)
    kept = Rows(RESULTS).read(run)
    source = prepare(run).problem.source
    if source != kept["source"]:
        pytest.skip(f"The row was made with {kept['source']}, but here is {source}.")
    row = execute(run, "cpu").row
    assert row["error"] is None, row["error"]
    assert row["recipe"] == kept["recipe"], "The row was made by other settings or data."
    for name in ("regret", "gap"):
        if kept[name] is None:
            assert row[name] is None
        else:
            assert row[name] == pytest.approx(kept[name], rel=1e-3), name
