"""Two equal runs stand for every seed, in differences and among the opponents."""

import numpy as np
import pytest

from costscape.bench.report.seedless import for_every_seed
from costscape.bench.report.summary import summarise

SAME = np.array([1.0, 2.0, 3.0, 2.0], dtype=np.float32)


@pytest.fixture
def kept_run(run):
    """A run with the regret of each test row."""

    def make(method, seed, regrets, test_rows="t"):
        arrays = {"regrets": regrets, "costs": regrets + 1}
        return run(
            "wind", method, seed, float(np.mean(regrets)), test_rows=test_rows, by_test_row=arrays
        )

    return make


def seeds_of(runs, digests):
    found = for_every_seed({row["seed"]: row for row in runs}, "regret", digests)
    return sorted(found)


def test_equal_runs_stand_for_all_seeds_with_the_same_test_rows(kept_run):
    digests = {0: "t", 1: "t", 2: "t", 3: "other", 4: None}
    equal = [kept_run("wsaa-knn", seed, SAME) for seed in (0, 1)]
    assert seeds_of(equal, digests) == [0, 1, 2]


@pytest.mark.parametrize("case", ["one run", "other regrets", "other rows", "no regrets by row"])
def test_other_runs_stand_for_themselves(kept_run, run, case):
    runs = {
        "one run": [kept_run("wsaa-knn", 0, SAME)],
        "other regrets": [kept_run("wsaa-knn", 0, SAME), kept_run("wsaa-knn", 1, SAME[::-1])],
        "other rows": [kept_run("wsaa-knn", 0, SAME), kept_run("wsaa-knn", 1, SAME, "u")],
        "no regrets by row": [run("wind", "wsaa-knn", seed, test_rows="t") for seed in (0, 1)],
    }[case]
    assert seeds_of(runs, {0: "t", 1: "t", 2: "t"}) == [row["seed"] for row in runs]


def test_the_difference_is_over_the_seeds_of_the_method_with_chance(kept_run):
    """As if the opponent had been run with each of them."""
    rng = np.random.default_rng(0)
    ours = [kept_run("df2", seed, SAME + rng.random(4)) for seed in range(4)]
    few, all_ = ([kept_run("wsaa-knn", seed, SAME) for seed in range(n)] for n in (2, 4))

    def found(theirs):
        cells = summarise(ours + theirs, ("df2",))
        return next(cell.difference for cell in cells if cell.label == "df2")

    assert found(few) == found(all_)
    assert found(few).n == 4


def test_such_an_opponent_can_be_the_best_beside_those_with_more_seeds(kept_run):
    rows = [kept_run("two-stage-gmm3", seed, SAME + 1 + seed) for seed in range(3)]
    rows += [kept_run("df2", seed, SAME + 2) for seed in range(3)]
    rows += [kept_run("wsaa-knn", seed, SAME + 1.5) for seed in (0, 1)]
    best = [cell.label for cell in summarise(rows, ("df2",)) if cell.is_best_opponent]
    assert best == ["wsaa-knn"]  # 1.5 above; over seeds 0 and 1 alone the mixture is as low


def test_a_row_that_does_not_say_its_test_rows_leaves_those_of_others_known(kept_run, run):
    rows = [kept_run("two-stage-gmm3", seed, SAME + 1 + seed) for seed in range(3)]
    rows += [kept_run("wsaa-knn", seed, SAME + 1.5) for seed in (0, 1)]
    rows += [run("wind", "constant", seed, 9.0) for seed in range(3)]
    assert {row.get("test_rows") for row in rows} == {"t", None}
    best = [cell.label for cell in summarise(rows) if cell.is_best_opponent]
    assert best == ["wsaa-knn"]


def test_seeds_of_other_kinds_do_not_count_against_an_opponent_with_fewer(kept_run):
    """The neighbours stand for all seeds, but the flow has half of those of its own kind."""
    rows = [kept_run("df2-paper", seed, SAME + 2) for seed in range(10)]
    rows += [kept_run("two-stage-gmm3+crossfit", seed, SAME + 2 + seed) for seed in range(4)]
    rows += [kept_run("wsaa-knn+crossfit", seed, SAME + 1) for seed in (0, 1)]
    rows += [kept_run("two-stage-flow+crossfit", seed, SAME + seed / 9) for seed in (0, 1)]
    best = [cell.label for cell in summarise(rows, ("df2",)) if cell.is_best_opponent]
    assert best == ["two-stage-flow+crossfit"]
