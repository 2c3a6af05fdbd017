"""costscape zoo: rows and a table of ratios."""

import json

from typer.testing import CliRunner

from costscape.cli import app


def zoo(*words):
    return CliRunner().invoke(app, ["zoo", *words])


def test_quick_rows_are_made_once_and_the_table_is_printed(tmp_path):
    words = ["--problem", "zoo-diabetes", "--method", "wsaa-knn+crossfit", "--method", "df2-quick"]
    words += ["--store", str(tmp_path), "--workers", "1", "--quick"]
    first = zoo(*words)
    assert first.exit_code == 0, first.output
    assert "2 rows made" in first.output
    lines = (tmp_path / "zoo-diabetes.jsonl").read_text().splitlines()
    assert [json.loads(line)["method"] for line in lines] == ["df2-quick", "wsaa-knn+crossfit"]
    again = zoo(*words)
    assert "0 rows made, 2 were there" in again.output


def test_table_runs_nothing(tmp_path):
    words = ["--problem", "zoo-diabetes", "--method", "wsaa-knn+crossfit", "--workers", "1"]
    zoo(*words, "--store", str(tmp_path))
    found = zoo("--table", "--store", str(tmp_path))
    assert found.exit_code == 0
    assert found.output.splitlines()[1].split()[:2] == ["zoo-diabetes", "wsaa-knn+crossfit"]
    assert "rows made" not in found.output


def test_an_unknown_problem_is_named_with_those_there_are():
    found = zoo("--problem", "zoo-unicorn")
    assert found.exit_code == 1
    assert "no problem named zoo-unicorn. It has zoo-linear," in found.output
