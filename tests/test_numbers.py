"""The numbers in README and docs are those of the kept rows."""

import importlib.util
import itertools
import json
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

from costscape.bench.execution import blank
from costscape.bench.report import read_landscapes, read_rows
from costscape.bench.report.differences import by_test_row
from costscape.bench.runs import Run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
sys.path.insert(0, str(ROOT / "benchmarks"))  # scripts import each other


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_in_the_documents_are_made_from_the_kept_rows():
    numbers = script("write_tables")
    texts = numbers.texts()
    assert {ROOT / "README.md", ROOT / "docs" / "results.md"} <= texts.keys()
    marked = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert texts.keys() == {path for path in marked if numbers.BEGIN in path.read_text()}
    for path, text in texts.items():
        assert numbers.between(path) == text, f"{path.name}: run python benchmarks/write_tables.py"


def test_tables_that_a_command_prints_are_what_it_prints():
    numbers = script("write_tables")
    pages = [p for p in (ROOT / "docs").glob("*.md") if numbers.COMMAND.search(p.read_text())]
    assert {page.name for page in pages} == {"contest.md", "methods.md"}
    for page in pages:
        text = page.read_text()
        assert numbers.printed(text) == text, f"{page.name}: run benchmarks/write_tables.py"


def test_parts_of_stored_rows_are_the_numbers_of_these_rows():
    numbers = script("write_tables")
    pages = [p for p in (ROOT / "docs").rglob("*.md") if numbers.PART.search(p.read_text())]
    found = [name for page in pages for name in numbers.PART.findall(page.read_text())]
    assert sorted(found) == sorted(numbers.PARTS)
    for page in pages:
        text = page.read_text()
        assert numbers.filled(text) == text, f"{page.name}: run benchmarks/write_tables.py"


def made(problem, method, seed, regret, **changes):
    """A row as read from a store."""
    run = Run(problem, method, seed, changes)
    means = {"regret": regret, "cost": regret, "fit_seconds": 1.0, "decide_seconds": 1.0}
    other = {"by_test_row": {}, "quick": False, "network": {"rate": 0.003}}
    return {**blank(run), **means, **other}


def test_the_table_of_the_readme_is_short_and_marks_clear_differences():
    numbers = script("write_tables")
    rows = []
    for seed in (0, 1, 2):
        wobble = 0.01 * seed
        rows += [
            made("wind", "df2-quick", seed, 60.0 + wobble),
            made("wind", "df2-paper", seed, 65.0 + wobble),
            made("wind", "egl", seed, 64.0),
            made("wind", "df2", seed, 58.0 + 9 * wobble),
            made("wind", "two-stage-gmm3+crossfit", seed, 58.1, draws=1000),
        ]
    rows += [made("wind", "wsaa-knn", 0, 70.0), made("vaccine", "constant", 0, 1234.5)]
    header, rule, *lines = numbers.front(rows).strip().split("\n\n")[0].splitlines()
    assert len(lines) <= 12
    assert set(rule) <= set("|-: ")
    columns = [text.strip() for text in header.split("|")[1:-1]]
    left_out = (*numbers.SHELF, *numbers.OTHERS)
    shown = [name for name in numbers.PROBLEMS if name not in left_out]
    assert columns == ["fit", "method", *shown]
    cells = {}
    for line in lines:
        fit, method, *texts = (text.strip() for text in line.split("|")[1:-1])
        cells[fit, method] = dict(zip(columns[2:], texts, strict=True))
    wind = {key: found["wind"] for key, found in cells.items()}
    assert wind["single", "df2-quick"] == "**60.0**"
    assert wind["single", "df2-paper"] == "*65.0*"
    assert wind["single", "best opponent"] == "64.0 egl"
    assert wind["single", "wsaa-knn"] == "70.0 n=1"
    assert wind["cross-fitted", "df2"] == "58.1"  # a tie
    assert wind["cross-fitted", "best opponent"] == "58.1 two-stage-gmm3+crossfit draws=1000"
    assert wind["cross-fitted", "blend"] == "-"
    assert cells["single", "constant"]["vaccine"] == "1,234"  # to the even digit
    assert cells["single", "constant"]["wind"] == "-"


def test_the_page_of_results_has_both_parts_and_says_what_was_not_run():
    numbers = script("write_tables")
    rows = [made("wind", "egl", 0, 64.0), made("wind", "df2", 0, 58.0)]
    rows.append(made("wind", "two-stage-gmm1", 0, 70.0, draws=1000, epochs=10))
    single, rest = numbers.full(rows).split("## Cross-fitted")
    crossfitted, missing = rest.split("## What was not run")
    assert "| egl | 64.00 |" in single
    assert "df2" not in [line.split(" | ")[0].strip("| ") for line in single.splitlines()]
    assert "| df2 | 58.00 |" in crossfitted
    assert "egl" not in crossfitted
    absent, asked, shorter, fewer = missing.split(":\n\n")[1:]
    names = next(line for line in absent.splitlines() if line.startswith("- wind: "))
    names = names.removeprefix("- wind: ").removesuffix(".").split(", ")
    assert {"lancer", "df2-quick", "lodl-gmmK"} < set(names)
    assert not {"egl", "df2", "two-stage-gmmK", "proportional"} & set(names)
    assert "lancer" in next(line for line in asked.splitlines() if line.startswith("- wind: "))
    assert "- wind: two-stage-gmm1 draws=1000 epochs=10." in shorter
    assert "df2 1 of 10" in fewer
    assert "egl 1 of 10" in fewer


@cache
def kept_rows():
    return read_rows(RESULTS)


def test_rows_are_small_and_whole():
    for path in RESULTS.glob("*.jsonl"):
        lines = path.read_text().splitlines()
        assert path.name == "landscapes.jsonl" or max(map(len, lines)) < 8192
    assert not [row for row in kept_rows() if row["error"] or row["quick"]]
    assert not (RESULTS / "pending").exists()
    assert read_landscapes(RESULTS)


def test_costs_of_each_test_row_belong_to_their_row():
    rows = kept_rows()
    assert sum(bool(row["by_test_row"]) for row in rows) >= 352
    for row in rows:
        if row["by_test_row"]:
            costs = by_test_row(row, "cost")
            # a row of several origins has the costs of them all
            assert len(costs) == sum(row.get("origin_rows", [row["rows"]]))
            assert costs.mean() == pytest.approx(row["cost"], rel=1e-4)


def test_the_seconds_in_the_documents_are_made_from_the_kept_rows():
    epoch = script("bench_epoch")
    rows = epoch.kept()
    assert [row["method"] for row in rows] == list(epoch.NAMES)
    assert epoch.table(rows) in (ROOT / "docs" / "methods.md").read_text()


def test_the_value_of_information_in_the_documents_is_that_of_the_kept_rows(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    folder = ROOT / "benchmarks" / "results" / "value_of_information"
    value = script("value_of_information")
    names = [f"{name}--{span}.json" for name in value.PROBLEMS for span in value.SPANS]
    value.show([json.loads((folder / name).read_text()) for name in names])
    assert capsys.readouterr().out in (ROOT / "docs" / "problems.md").read_text()


def test_what_knowing_travel_is_worth_is_near_the_known_figures():
    folder = ROOT / "benchmarks" / "results" / "value_of_information"
    rows = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    wave, week = rows["vaccine-wave--all"]["regret"], rows["vaccine--all"]["regret"]
    assert wave["average week"] == pytest.approx(8_900, rel=0.1)
    assert wave["another week"] == pytest.approx(16_600, rel=0.05)
    assert wave["proportional"] == pytest.approx(890_000, rel=0.05)
    assert week["average week"] <= 0.1
    assert 50 <= week["proportional"] <= 3_300


def test_squared_bias_and_variance_add_up_and_have_no_bias_of_their_own():
    parts = script("bias_variance").split
    rng = torch.Generator().manual_seed(0)
    true = torch.rand(50, generator=rng, dtype=torch.double)
    noise = torch.randn(4000, 3, 50, generator=rng, dtype=torch.double)
    found = [parts(true + 0.3 + 0.5 * some, true) for some in noise]
    for one in found[:5]:
        assert one["squared_bias"] + one["variance"] == pytest.approx(one["error"])
    mean = {name: sum(one[name] for one in found) / len(found) for name in found[0]}
    assert mean["squared_bias"] == pytest.approx(0.3**2, abs=0.005)
    assert mean["variance"] == pytest.approx(0.5**2, abs=0.005)


def test_the_variance_of_g_falls_with_the_rows_and_exceeds_the_bias():
    numbers = script("bias_variance")
    rows = numbers.kept()
    assert [row["n"] for row in rows] == list(numbers.ROWS)
    for row, more in itertools.pairwise(rows):
        assert more["variance"] * more["n"] == pytest.approx(row["variance"] * row["n"], rel=0.25)
    for row in rows:
        assert row["squared_bias"] < row["variance"]
        assert row["squared_bias"] + row["variance"] == pytest.approx(row["error"])


def test_bias_and_variance_are_computed_small():
    row = script("bias_variance").execute(60, networks=2, epochs=1)
    assert row["squared_bias"] + row["variance"] == pytest.approx(row["error"])
    assert row["gap"] > 0


def test_a_linear_forecast_fails_where_values_are_a_cubic_and_df2_does_not():
    numbers = script("cubic_top1")
    regret = {row["method"]: row["regret"] for row in read_rows(numbers.KEPT)}
    assert regret.keys() == set(numbers.METHODS)
    assert regret["two-stage-linear-gmm1"] > regret["constant"] > 100 * regret["df2-quick"]
