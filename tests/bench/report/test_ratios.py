"""Ratios of the zoo are those of regrets to the best cross-fitted opponent."""

import pytest

from costscape.bench.report import ratios


def row(problem, method, regret, quick=False):
    return {"problem": problem, "method": method, "regret": regret, "quick": quick}


ROWS = [
    row("zoo-a", "df2", 1.0),
    row("zoo-a", "two-stage-gmm3+crossfit", 2.0),
    row("zoo-a", "wsaa-knn+crossfit", 4.0),
    row("zoo-a", "wsaa-knn", 0.1),  # a single fit is no cross-fitted opponent
    row("zoo-b", "df2", 3.0),
    row("zoo-b", "blend", 1.5),
    row("zoo-b", "wsaa-knn+crossfit", 2.0),
    row("zoo-b", "wsaa-forest+crossfit", 0.001, quick=True),
    row("zoo-c", "df2", 3.0),
]


def lines():
    return {
        line.split()[0]: line.split()[1:] for line in ratios(ROWS, ("df2", "blend")).splitlines()
    }


def test_a_ratio_is_the_regret_over_that_of_the_best_opponent():
    found = lines()
    assert found["problem"] == ["best", "opponent", "regret", "blend", "df2"]
    assert found["zoo-a"] == ["two-stage-gmm3+crossfit", "2.000", "-", "0.500"]
    assert found["zoo-b"] == ["wsaa-knn+crossfit", "2.000", "0.750", "1.500"]


def test_a_problem_without_an_opponent_has_no_ratio():
    assert lines()["zoo-c"] == ["-", "-", "-", "-"]


@pytest.mark.parametrize(("name", "values"), [("mean", [0.75, 1.0]), ("worst", [0.75, 1.5])])
def test_the_last_lines_are_the_mean_and_the_worst_ratio(name, values):
    assert [float(cell) for cell in lines()[name]] == values
