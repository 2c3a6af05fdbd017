"""Decisions for many files: as for each by itself, once for each file, also after a kill."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from costscape.cli import app
from costscape.project.batch_files import MANIFEST, Manifest

FILES = 5
KILLED = """
import os, signal, sys
from costscape.project import batch_scoring
real, calls = batch_scoring.decision_table, []
def table(*words):
    calls.append(words)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*words)
batch_scoring.decision_table = table
from costscape.cli import app
app(sys.argv[1:])
"""


def decide(*words):
    return CliRunner().invoke(app, ["decide", *map(str, words)])


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A fitted project, and five files with the next days of both items."""
    folder = tmp_path_factory.mktemp("batch") / "shop"
    CliRunner().invoke(app, ["init", str(folder)])
    sales = pd.read_csv(folder / "sales.csv")
    sales = sales[sales["item"] <= 2]
    days = sorted(sales["date"].unique())
    sales[sales["date"] < days[150]].to_csv(folder / "sales.csv", index=False)
    (folder / "new").mkdir()
    for k in range(FILES):
        some = sales[sales["date"].isin(days[150 : 151 + k])]
        some.to_parquet(folder / "new" / f"part{k}.parquet")
    toml = folder / "costscape.toml"
    toml.write_text(toml.read_text().replace('name = "DF2.quick"', 'name = "NearestNeighbours"'))
    assert CliRunner().invoke(app, ["fit", str(folder)]).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def unbroken(shop):
    """The bytes of all outputs of a run that nobody stopped."""
    done = decide(shop, "--data", shop / "new" / "*.parquet", "-o", shop / "whole")
    assert done.exit_code == 0, done.output
    assert "5 files with 10 decisions written" in done.stdout
    return contents(shop / "whole")


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_each_output_is_what_one_file_by_itself_gives(shop, unbroken, tmp_path):
    assert set(unbroken) == {MANIFEST, *(f"part{k}.parquet" for k in range(FILES))}
    for k in range(FILES):
        file = f"part{k}.parquet"
        assert decide(shop, "--data", shop / "new" / file, "-o", tmp_path / file).exit_code == 0
        wanted = pd.read_csv(tmp_path / file, dtype={"item": str}, parse_dates=["date"])
        found = pd.read_parquet(shop / "whole" / file)
        wanted["date"] = wanted["date"].astype(found["date"].dtype)
        wanted["out_of_range"] = found["out_of_range"]
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-5, check_dtype=False)
    # a folder means its Parquet files
    assert decide(shop, "--data", shop / "new", "-o", tmp_path / "out").exit_code == 0
    assert contents(tmp_path / "out") == unbroken


@pytest.mark.slow
@pytest.mark.long
def test_a_killed_batch_continues_to_the_same_bytes(shop, unbroken, tmp_path):
    words = [shop, "--data", shop / "new" / "*.parquet", "-o", tmp_path]
    script = [sys.executable, "-c", KILLED, "decide", *map(str, words)]
    assert subprocess.run(script, env=os.environ).returncode == -signal.SIGKILL
    assert set(contents(tmp_path)) == {MANIFEST, "part0.parquet", "part1.parquet"}
    kept = (tmp_path / "part0.parquet").stat()
    done = decide(*words)
    assert done.exit_code == 0, done.output
    assert "3 files with 6 decisions written" in done.stdout
    assert "2 were done before" in done.stdout
    assert contents(tmp_path) == unbroken
    assert (tmp_path / "part0.parquet").stat().st_mtime_ns == kept.st_mtime_ns


def test_an_output_without_its_whole_row_is_made_again(shop, unbroken, tmp_path, monkeypatch):
    words = [shop, "--data", shop / "new" / "*.parquet", "-o", tmp_path]
    real = Manifest.add

    def add(manifest, row):
        if row.input == "part2.parquet":
            with manifest.path.open("a") as file:
                file.write(row.to_json()[:50])
            raise KeyboardInterrupt
        real(manifest, row)

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "add", add)
        assert decide(*words).exit_code == 130
    assert (tmp_path / "part2.parquet").exists()
    (tmp_path / "part3.parquet.1.part").write_bytes(b"half")
    assert "2 were done before" in decide(*words).stdout
    assert contents(tmp_path) == unbroken


def test_changed_inputs_outputs_and_models_are_redone_and_others_are_not(shop, tmp_path):
    own = shutil.copytree(shop, tmp_path / "own", ignore=shutil.ignore_patterns("whole"))
    words = [own, "--data", own / "new" / "*.parquet", "-o", tmp_path / "out"]

    def made():
        done = decide(*words)
        assert done.exit_code == 0, done.output
        return int(done.stdout.split()[0])

    assert made() == FILES
    assert made() == 0
    shutil.copy(own / "new" / "part1.parquet", own / "new" / "part4.parquet")
    assert made() == 1
    (tmp_path / "out" / "part0.parquet").write_bytes(b"changed")
    (tmp_path / "out" / "part2.parquet").unlink()
    assert made() == 2
    toml = own / "costscape.toml"
    toml.write_text(toml.read_text().replace("upper = 200.0}", "upper = 20.0}"))
    assert made() == FILES  # another set decides otherwise, with the same model
    assert pd.read_parquet(tmp_path / "out" / "part3.parquet")["decision_sold"].max() <= 20
    update = ["update", str(own), "--data", str(own / "new" / "part0.parquet")]
    assert CliRunner().invoke(app, update).exit_code == 0
    (own / "new" / "part0.parquet").unlink()
    (own / "new" / "part1.parquet").unlink()
    assert made() == FILES - 2


def test_a_bad_file_is_named_at_the_end_and_the_others_are_done(shop, unbroken, tmp_path):
    new, out = shutil.copytree(shop / "new", tmp_path / "new"), tmp_path / "out"
    words = [shop, "--data", new / "*.parquet", "-o", out]
    assert decide(*words).exit_code == 0
    (new / "part1.parquet").write_bytes(b"no Parquet")
    pd.read_parquet(new / "part2.parquet").drop(columns="item").to_parquet(new / "part2.parquet")
    done = decide(*words)
    assert done.exit_code == 1
    first, *bad = done.stderr.splitlines()
    assert "0 files with 0 decisions" in first
    assert "3 were done before, 2 failed" in first
    assert [line.split(": ")[0] for line in bad] == [
        str(new / "part1.parquet"), str(new / "part2.parquet"),
    ]  # fmt: skip
    assert "needs the column 'item'" in bad[1]
    # no output is left of what an input was before
    assert set(contents(out)) == {
        MANIFEST, "part0.parquet", "part3.parquet", "part4.parquet",
    }  # fmt: skip
    rows = [json.loads(line) for line in (out / MANIFEST).read_text().splitlines()]
    assert [row["input"] for row in rows] == ["part0.parquet", "part3.parquet", "part4.parquet"]
    shutil.copy(shop / "new" / "part1.parquet", new)
    shutil.copy(shop / "new" / "part2.parquet", new)
    assert decide(*words).exit_code == 0
    assert contents(out) == unbroken


def test_what_cannot_begin_is_refused_in_a_sentence(shop, tmp_path):
    files = ["--data", shop / "new" / "*.parquet"]
    (tmp_path / "other.txt").write_text("mine")
    twice = tmp_path / "twice" / "new"
    twice.mkdir(parents=True)
    for name in ("part0.csv", "part0.parquet"):
        (twice / name).write_text("")
    for words, sentence in (
        ([shop, *files], "need a folder for their decisions"),
        ([shop, *files, "-o", shop / "new"], "needs another folder than that of the inputs"),
        ([shop, *files, "-o", tmp_path], "has files, but no manifest.jsonl"),
        ([shop, *files, "-o", tmp_path / "other.txt"], "is a file"),
        ([shop, *files, "-o", tmp_path / "x", "--address", "auto"], "needs --engine ray"),
        ([shop, "--engine", "ray"], "need many files"),
        ([shop, "--data", tmp_path / "*.nix", "-o", tmp_path / "x"], "but none is like"),
        ([shop, "--data", twice / "*", "-o", tmp_path / "x"], "names differ"),
    ):
        done = decide(*words)
        assert done.exit_code == 1
        assert sentence in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
