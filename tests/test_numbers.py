"""The numbers in README and docs are those of the kept rows."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from costscape.report import read_rows
from costscape.report.differences import by_test_row

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))  # scripts import each other


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_in_the_documents_are_made_from_the_kept_rows():
    numbers = script("write_tables")
    for path, text in numbers.texts().items():
        assert numbers.between(path) == text, f"{path.name}: run python benchmarks/write_tables.py"


def test_rows_are_small_and_whole():
    for path in (ROOT / "results").glob("*.json"):
        assert path.stat().st_size < 8192
    rows = read_rows(ROOT / "results")
    assert not [row for row in rows if row["error"] or row["quick"]]
    assert not list((ROOT / "results").rglob("*.failed.json"))


def test_costs_of_each_test_row_belong_to_their_row():
    for row in read_rows(ROOT / "results"):
        if row["costs_file"] is not None:
            costs = by_test_row(row, "cost")
            assert costs is not None, row["costs_file"]
            assert len(costs) == row["rows"]
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
