"""Runs at several origins: names, data, rows in one file, and their mean in the tables."""

import numpy as np
import pytest
from typer.testing import CliRunner

from costscape.bench import Rows, Run, execute, origins_of, prepare
from costscape.bench.origin_names import Origin, file_stem, origin_of
from costscape.bench.problem_names import problem_named
from costscape.bench.report import markdown, read_rows, summarise
from costscape.bench.report.number_format import number
from costscape.bench.report.pooled_origins import pool_origins
from costscape.bench.report.problem_tables import problem_tables
from costscape.cli import app


def test_a_name_says_which_origin_it_is():
    assert origins_of("inventory-item8", 3)[1] == "inventory-item8@2of3"
    assert origin_of("inventory-item8@2of3") == Origin("inventory-item8", 2, 3)
    assert file_stem("inventory-item8@2of3") == file_stem("inventory-item8") == "inventory-item8"
    for no in ("wind", "wind@", "wind@0of5", "wind@6of5", "wind@1", "@1of5"):
        assert origin_of(no) is None


@pytest.mark.parametrize("name", ["wind-farm", "inventory-item8", "inventory-store"])
def test_origins_test_every_later_row_once_and_fit_on_earlier_ones(name):
    whole = problem_named(name)(0)
    parts = [problem_named(one)(0) for one in origins_of(name, 3)]
    later = np.concatenate([whole.data.val.dates, whole.data.test.dates])
    assert np.array_equal(np.concatenate([p.data.test.dates for p in parts]), later)
    for p in parts:
        gap = p.data.test.dates[0] - p.data.val.dates[-1]
        assert gap >= whole.reach
        assert p.data.val.dates[0] - p.data.train.dates[-1] >= whole.reach
    assert "origin 3 of 3" in parts[2].source


def test_a_problem_without_time_has_no_origins():
    with pytest.raises(ValueError, match="synthetic-convex has rows without an order in time"):
        problem_named("synthetic-convex@1of2")(0)


def test_recipes_of_origins_differ():
    recipes = {prepare(Run(name, "constant")).recipe for name in origins_of("inventory", 3)}
    assert len({prepare(Run("inventory", "constant")).recipe, *recipes}) == 4


def test_a_run_at_origins_is_one_line_with_its_mean_and_each_origin(tmp_path):
    words = ["run", "inventory", "--method", "constant", "--method", "wsaa-knn", "--quick"]
    words += ["--origins", "2", "--workers", "1", "--device", "cpu", "--store", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.glob("*.jsonl")] == ["inventory.jsonl"]
    rows = read_rows(tmp_path)
    assert {row["problem"] for row in rows} == {"inventory, 2 origins"}
    single = [execute(Run(n, "constant", quick=True), "cpu") for n in origins_of("inventory", 2)]
    (pooled,) = (row for row in rows if row["method"] == "constant")
    regrets = np.concatenate([one.arrays["regrets"] for one in single])
    assert pooled["regret"] == pytest.approx(regrets.mean(), rel=1e-5)
    (cell,) = (cell for cell in summarise(rows) if cell.method == "constant")
    assert cell.by_origin == pytest.approx([one.row["regret"] for one in single])
    assert "| origin 1 | origin 2 |" in markdown(rows)
    again = CliRunner().invoke(app, words)
    assert "0 rows made, 4 were there" in again.stderr
    assert "one split" not in markdown(rows).split("Mean (standard")[0]
    whole = Run("inventory", "constant", quick=True)
    outcome = execute(whole, "cpu")
    Rows(tmp_path).write(whole, outcome.row, outcome.arrays)
    (table,) = (t for t in problem_tables(read_rows(tmp_path)) if "origins" in t.title)
    column = table.header.index("one split")
    shown = {line.texts[0]: line.texts[column] for line in table.lines}
    assert shown == {"constant": number(outcome.row["regret"]), "wsaa-knn": ""}


def test_a_run_that_lacks_an_origin_has_no_mean(tmp_path):
    for name in origins_of("inventory", 3)[:2]:
        outcome = execute(Run(name, "constant", quick=True), "cpu")
        Rows(tmp_path).write(Run(name, "constant", quick=True), outcome.row, outcome.arrays)
    with pytest.raises(ValueError, match="at least one run"):
        read_rows(tmp_path)
    assert pool_origins([]) == []
