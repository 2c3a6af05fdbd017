"""The paper's lists of runs."""

from collections import Counter

import pytest

from costscape.bench import FAMILIES, METHODS, Run, paper_runs, prepare
from costscape.problems.files.sources import find

LISTS = {
    "table": paper_runs.table,
    "synthetic": paper_runs.synthetic,
    "ablations": paper_runs.ablations,
}


@pytest.mark.skipif(find("wind") is None, reason="TenneT's public file is not here")
@pytest.mark.parametrize("quick", [False, True], ids=["whole", "quick"])
@pytest.mark.parametrize("name", LISTS)
def test_every_run_of_a_list_can_be_made_and_has_a_row_of_its_own(name, quick):
    runs = LISTS[name](quick)
    assert all(run.quick is quick for run in runs)
    assert max(Counter(run.name for run in runs).values()) == 1
    recipes = [prepare(run).recipe for run in runs if run.seed == 0]
    assert len(set(recipes)) == len(recipes)


@pytest.mark.parametrize("quick", [False, True], ids=["whole", "quick"])
def test_the_table_has_every_method_on_every_real_problem(quick):
    runs = paper_runs.table(quick)
    kinds = {*METHODS, *(f"{family}3" for family in FAMILIES)} - {*paper_runs.UNLISTED}
    for problem in ("wind", "inventory", "vaccine", "vaccine-wave"):
        here = kinds if problem.startswith("vaccine") else kinds - {"proportional"}
        assert here <= {run.method for run in runs if run.problem == problem}
    seeds = Counter(run.seed for run in runs if run.problem == "wind" and run.method == "df2")
    assert seeds == Counter(range(2 if quick else 10))


def test_the_ablations_change_one_setting_at_a_time():
    for run in paper_runs.ablations():
        assert run.problem == "wind"
        assert len(run.changes) <= 1
    swept = {key for run in paper_runs.ablations() for key in run.changes}
    assert swept == {"learn_values", "points", "share", "actions", "draws"}


def test_methods_that_are_cross_fitted_have_opponents_that_are():
    runs = [*paper_runs.table(), *paper_runs.synthetic()]
    for problem in ("wind", "inventory", "synthetic-convex", "synthetic-nonconvex"):
        for name in ("df2", "blend"):
            assert Run(problem, name, 9) in runs
        assert Run(problem, "two-stage-gmm3+crossfit", 9, {"draws": 1000}) in runs


def test_a_list_holds_no_draws_for_quick():
    assert Run("wind", "two-stage-gmm3", 0, {"draws": 1000}) in paper_runs.table()
    assert all(not run.changes for run in paper_runs.table(quick=True))
