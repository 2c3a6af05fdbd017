"""costscape run | table | report | paper, from the outside."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from costscape.bench import METHODS, PROBLEMS, Here, Processes, Ray, Rows, Run, Swept, paper_runs
from costscape.bench.execution import blank
from costscape.bench.row_store import read_store
from costscape.bench.store_files import key_of
from costscape.cli import app, run_commands, run_options
from costscape.problems.files.sources import find

ROOT = Path(__file__).parents[2]
COLUMNS = [
    *("problem", "method", "seeds", "regret_mean", "regret_sd", "gap_mean", "cost_mean"),
    *("fit_seconds", "decide_seconds", "refused"),
]


def costscape_(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def rows(folder):
    return {key_of(row).name: row for _, row, _ in read_store(folder)}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two methods and a refusal, two seeds."""
    folder = tmp_path_factory.mktemp("cli") / "store"
    words = ["run", "synthetic-convex", "--seeds", 2, "--quick", "--workers", 1, "--device", "cpu"]
    done = costscape_(*words, "--method", "df2", "--method", "constant", "--store", folder)
    assert done.exit_code == 0, done.output
    assert "4 rows made, 0 were there" in done.stderr
    assert done.stdout == ""
    words = ["run", "vaccine", "--quick", "--workers", 1, "--device", "cpu", "--store", folder]
    done = costscape_(*words, "--method", "two-stage-gmm3", "--set", "draws=null")
    assert done.exit_code == 0, done.output
    assert "1 refused" in done.stderr
    return folder


def test_run_makes_a_row_for_every_problem_method_and_seed(store):
    assert set(rows(store)) == {
        "synthetic-convex--df2--0.quick",
        "synthetic-convex--df2--1.quick",
        "synthetic-convex--constant--0.quick",
        "synthetic-convex--constant--1.quick",
        "vaccine--two-stage-gmm3-drawsNone--0.quick",
    }
    for row in rows(store).values():
        assert row["quick"] is True
        assert row["error"] is None


def test_run_again_makes_nothing(store):
    before = {path: path.stat().st_mtime_ns for path in store.iterdir()}
    words = ["run", "synthetic-convex", "--seeds", 2, "--quick", "--workers", 1, "--store", store]
    done = costscape_(*words, "--method", "df2", "--method", "constant")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "0 rows made, 4 were there" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in store.iterdir()} == before


def test_merge_moves_pending_rows_into_the_file_of_their_problem(tmp_path):
    run = Run("wind", "df2")
    Rows(tmp_path).write(run, blank(run) | {"regret": 2.5, "recipe": "ab"})
    done = costscape_("merge", tmp_path)
    assert (done.exit_code, done.stdout) == (0, "1 rows merged\n")
    assert json.loads((tmp_path / "wind.jsonl").read_text())["regret"] == 2.5
    assert costscape_("merge", tmp_path).stdout == "0 rows merged\n"


def test_options_reach_the_runs_and_the_engine(monkeypatch):
    asked = []
    monkeypatch.setattr(run_options, "sweep_into", lambda *told: asked.append(told) or Swept())
    words = ["run", "wind-farm", "synthetic-convex", "--method", "df2", "--method", "cme"]
    words += ["--seeds", 2, "--epochs", 3, "--set", "points=7", "--set", "name=text"]
    done = costscape_(*words)
    assert done.exit_code == 0, done.output
    ((folder, runs, _, device),) = asked
    changes = {"points": 7, "name": "text"}
    assert runs == [
        Run(problem, method, seed, changes | more, False)
        for problem in ("wind-farm", "synthetic-convex")
        for method, more in (("df2", {"epochs": 3}), ("cme", {}))  # cme trains nothing
        for seed in (0, 1)
    ]
    assert (str(folder), device) == ("out/runs", None)


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        (["--workers", "1"], Here()),
        (["--workers", "3"], Processes(3)),
        ([], Processes(5)),
        (["--engine", "ray"], Ray()),
        (["--engine", "ray", "--workers", "2", "--device", "cuda"], Ray(None, 2, 1.0)),
        (
            ["--engine", "ray", "--address", "host:6379", "--device", "cpu"],
            Ray("host:6379", None, 0.0),
        ),
    ],
    ids=["one", "three", "cores", "ray", "ray with GPUs", "ray elsewhere"],
)
@pytest.mark.parametrize("command", ["run", "paper"])
def test_the_engine_is_chosen_by_name(monkeypatch, command, words, engine):
    asked = []
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(run_options, "sweep_into", lambda *told: asked.append(told[2]) or Swept())
    monkeypatch.setattr("costscape.bench.report.read_rows", lambda folder: [])
    monkeypatch.setattr("costscape.bench.report.markdown", lambda rows, ours: "")
    monkeypatch.setattr("costscape.bench.report.write_page", lambda *told: "page")
    monkeypatch.setattr("costscape.bench.runs._trains", lambda *told: True)
    first = ["run", "wind", "--method", "df2"] if command == "run" else ["paper", "table"]
    assert costscape_(*first, *words).exit_code == 0
    assert asked == [engine]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("draws=1000", ("draws", 1000)),
        ("lr=1e-3", ("lr", 1e-3)),
        ("draws=null", ("draws", None)),
        ("learn_values=false", ("learn_values", False)),
        ("name=a=b", ("name", "a=b")),
        ("lr=NaN", ("lr", "NaN")),
    ],
)
def test_a_setting_is_json_where_it_can_be(text, value):
    assert run_commands._setting(text) == value


RUN = ["run", "synthetic-convex", "--method", "df2", "--quick", "--workers", "1"]
WRONG = {
    "problem": (["run", "moon", "--method", "df2"], "There is no problem named 'moon'"),
    "method": (["run", "wind-farm", "--method", "df3"], "There is no method named 'df3'"),
    "setting": ([*RUN, "--set", "wings=2"], "df2 has no setting named wings"),
    "no value": ([*RUN, "--set", "wings"], "--set needs key=value"),
    "value": ([*RUN, "--set", "epochs=many"], "df2 cannot take {'epochs': 'many'}"),
    "small value": ([*RUN, "--set", "points=0"], "points to be a whole number of at least 1"),
    "share": ([*RUN, "--set", "share=2"], "share is a part of the training rows"),
    "device": ([*RUN, "--device", "gpu"], "name that torch knows, but got 'gpu'"),
    "no GPU": ([*RUN, "--device", "cuda:99"], "cuda:99 needs a GPU that this machine"),
    "landscape": (["paper", "landscape", "--device", "gpu"], "name that torch knows"),
    "address": ([*RUN, "--address", "here"], "it needs --engine ray"),
    "no store": (["table", "nowhere"], "nowhere is no folder"),
    "no store for a page": (["report", "nowhere"], "nowhere is no folder"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_a_sentence(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, sentence = WRONG[what]
    done = costscape_(*words)
    assert (done.exit_code, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.rglob("*.json*")) == []


@pytest.mark.parametrize(
    "words",
    [
        ["run", "wind"],
        ["run", "--method", "df2"],
        [*RUN, "--engine", "spark"],
        [*RUN, "--seeds", "0"],
        [*RUN, "--workers", "0"],
        [*RUN, "--epochs", "0"],
        ["table", ".", "--format", "xls"],
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_be_read_is_an_error_of_usage(words):
    assert costscape_(*words).exit_code == 2


def test_a_missing_package_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    done = costscape_(*RUN, "--engine", "ray", "--store", tmp_path)
    assert done.exit_code == 1
    assert "pip install 'costscape[" in done.stderr
    assert "ray" in done.stderr


def test_ctrl_c_is_told_in_a_sentence(monkeypatch, tmp_path):
    def stop(*told):
        raise KeyboardInterrupt

    monkeypatch.setattr("costscape.bench.sweep", stop)
    done = costscape_(*RUN, "--store", tmp_path)
    assert done.exit_code == 130
    assert f"are in {tmp_path}; the same command goes on." in done.stderr


# ---- failures


@pytest.fixture
def constant_fails(monkeypatch):
    """The method named constant raises; call it with False to restore."""
    kind = type(METHODS["constant"](PROBLEMS["synthetic-convex"](0), 0))
    own = kind.fit

    def fail(self, x, y, val=None):
        raise ZeroDivisionError("the roof fell in")

    def patch(failing=True):
        monkeypatch.setattr(kind, "fit", fail if failing else own)

    patch()
    return patch


FAIL = ["run", "synthetic-convex", "--method", "constant", "--quick", "--workers", 1]


def test_failed_runs_are_named_and_the_exit_status_is_1(constant_fails, tmp_path):
    done = costscape_(*FAIL, "--method", "cme", "--seeds", 2, "--store", tmp_path)
    assert (done.exit_code, done.stdout) == (1, "")
    *_, sentence = done.stderr.splitlines()
    assert sentence == (
        f"2 of 4 runs failed: synthetic-convex--constant--0.quick, "
        f"synthetic-convex--constant--1.quick; `costscape report {tmp_path}` shows the errors, "
        f"and the same command tries these runs again."
    )
    assert "failed (2 of 2)" in costscape_("table", tmp_path).stdout
    constant_fails(False)
    again = costscape_(*FAIL, "--method", "cme", "--seeds", 2, "--store", tmp_path)
    assert again.exit_code == 0
    assert "failed" not in costscape_("table", tmp_path).stdout


def test_many_failed_runs_are_counted(constant_fails, tmp_path):
    done = costscape_(*FAIL, "--seeds", 7, "--store", tmp_path)
    assert "7 of 7 runs failed: " in done.stderr
    assert "--4.quick and 2 more; `costscape report" in done.stderr


def test_a_recipe_with_failed_runs_writes_its_page_and_exits_with_1(
    constant_fails, monkeypatch, tmp_path
):
    runs = [Run("synthetic-convex", m, 0, {}, True) for m in ("constant", "cme")]
    monkeypatch.setattr(paper_runs, "synthetic", lambda quick: runs)
    done = costscape_("paper", "synthetic", "--quick", "--workers", 1, "--store", tmp_path)
    assert done.exit_code == 1
    assert "1 of 2 runs failed: synthetic-convex--constant--0.quick;" in done.stderr
    assert "ZeroDivisionError: the roof fell in" in (tmp_path / "page.html").read_text()


def test_a_store_that_cannot_be_written_to_is_refused_in_a_sentence(constant_fails, tmp_path):
    (tmp_path / "file").write_text("")
    done = costscape_(*FAIL, "--store", tmp_path / "file")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "needs a folder that can be written to" in done.stderr
    assert "failed" not in done.stderr


# ---- tables and pages


def test_a_table_as_csv_is_the_means_of_the_rows(store):
    done = costscape_("table", store, "--format", "csv")
    assert done.exit_code == 0
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(lines[0])[: len(COLUMNS)] == COLUMNS
    by = {(line["problem"], line["method"]): line for line in lines}
    assert len(by) == 3
    for name in ("df2", "constant"):
        line = by["synthetic-convex", name]
        one, two = (rows(store)[f"synthetic-convex--{name}--{seed}.quick"] for seed in (0, 1))
        assert line["seeds"] == "2"
        for key in ("regret", "gap", "cost"):
            assert float(line[f"{key}_mean"]) == pytest.approx((one[key] + two[key]) / 2)
        spread = abs(one["regret"] - two["regret"]) / 2**0.5
        assert float(line["regret_sd"]) == pytest.approx(spread)
    (refused,) = [line for line in lines if line["refused"]]
    assert refused["problem"] == "vaccine"
    assert "closed form" in refused["refused"]
    assert refused["regret_mean"] == ""


@pytest.mark.parametrize(
    ("format", "mark"), [("md", "## synthetic-convex"), ("latex", r"\begin{tabular}")]
)
def test_a_table_for_papers(store, format, mark):
    done = costscape_("table", store, "--format", format)
    assert done.exit_code == 0
    assert mark in done.stdout
    assert "constant" in done.stdout


def test_a_report_is_one_page(store, tmp_path):
    page = tmp_path / "new" / "page.html"
    done = costscape_("report", store, "-o", page)
    assert (done.exit_code, done.stdout) == (0, f"{page}\n")
    text = page.read_text()
    assert text.lstrip().lower().startswith("<!doctype html>")
    for word in ("synthetic-convex", "df2", "constant", "closed form"):
        assert word in text


# ---- the paper


def test_a_recipe_of_the_paper_runs_from_end_to_end(monkeypatch, tmp_path):
    whole = paper_runs.table(quick=True)
    some = [
        run
        for run in whole
        if run.problem == "inventory" and run.method in ("two-stage-pe", "wsaa-knn", "constant")
    ]
    monkeypatch.setattr(paper_runs, "table", lambda quick: some if quick else 1 / 0)
    done = costscape_("paper", "table", "--quick", "--workers", 1, "--store", tmp_path)
    assert done.exit_code == 0, done.output
    assert "6 rows made" in done.stderr
    assert all(row["error"] is row["refused"] is None for row in rows(tmp_path).values())
    assert "## inventory" in done.stdout
    assert str(tmp_path / "page.html") in done.stdout
    assert (
        f"costscape paper table --quick --store {tmp_path}" in (tmp_path / "page.html").read_text()
    )
    again = costscape_("paper", "table", "--quick", "--workers", 1, "--store", tmp_path)
    assert "0 rows made, 6 were there" in again.stderr


def test_kept_rows_of_the_paper_are_printed_without_a_run_or_data(monkeypatch, tmp_path):
    """The table of all kept rows, and which runs of the list have none."""
    monkeypatch.setenv("COSTSCAPE_DATA", str(tmp_path))  # no data sets
    monkeypatch.setattr(run_options, "sweep_into", lambda *_: 1 / 0)
    whole = paper_runs.table()
    made = {("wind", "df2", 0), ("wind", "df2", 1), ("wind", "constant", 0)}
    plan = [run for run in whole if (run.problem, run.method) in {("wind", "df2")}]
    plan += [run for run in whole if (run.problem, run.method, run.changes) == ("wind", "cme", {})]
    monkeypatch.setattr(paper_runs, "table", lambda quick: plan)
    store = Rows(tmp_path / "kept")
    kept = rows(ROOT / "results")
    for run in whole:
        if (run.problem, run.method, run.seed) in made:
            store.write(run, {**kept[run.name], "error": None})
    store.merge()
    done = costscape_("paper", "table", "--kept", "--store", tmp_path / "kept")
    assert done.exit_code == 0, done.output
    assert "## wind" in done.stdout
    assert "| constant |" in done.stdout  # is in the store, though not in this list
    _, _, missing = done.stdout.partition("## Not run")
    assert missing.split("\n- ")[1:] == [
        "wind, seeds 2 to 9: df2",
        "wind, seeds 0 to 9: cme\n",
    ]
    for words, error in (
        (("figure1", "--kept"), "--kept prints table, synthetic or ablations, but got figure1"),
        (("synthetic", "--kept", "--store", tmp_path / "kept"), "holds none. Run `costscape"),
    ):
        refused = costscape_("paper", *words)
        assert refused.exit_code == 1
        assert error in " ".join(refused.output.split())


needs_wind = pytest.mark.skipif(find("wind") is None, reason="TenneT's public file is not here")


@pytest.mark.parametrize("name", ["synthetic", pytest.param("ablations", marks=needs_wind)])
def test_the_other_recipes_run_their_lists(monkeypatch, tmp_path, name):
    own = getattr(paper_runs, name)(quick=True)
    cheap = [run for run in own if run.method in ("constant", "no-attention")][:1]
    monkeypatch.setattr(paper_runs, name, lambda quick: cheap if quick else 1 / 0)
    done = costscape_("paper", name, "--quick", "--workers", 1, "--store", tmp_path)
    assert done.exit_code == 0, done.output
    assert set(rows(tmp_path)) == {run.name for run in cheap}
    assert (tmp_path / "page.html").exists()


def test_landscapes_of_both_synthetic_problems_are_drawn_on_the_page(store, tmp_path):
    done = costscape_("paper", "landscape", "--quick", "--device", "cpu", "--store", store)
    assert done.exit_code == 0, done.output
    path = store / "landscapes.jsonl"
    assert set(done.stdout.split()) == {str(path)}
    assert [json.loads(line)["problem"] for line in path.read_text().splitlines()] == [
        "synthetic-convex",
        "synthetic-nonconvex",
    ]
    page = tmp_path / "page.html"
    costscape_("report", store, "-o", page)
    drawn = page.read_text().count("<svg")
    path.unlink()
    costscape_("report", store, "-o", page)
    assert page.read_text().count("<svg") < drawn


# ---- processes of their own


def test_the_commands_are_read_without_torch():
    code = (
        "import sys; from typer.testing import CliRunner; from costscape.cli import app\n"
        "for words in ([], ['run'], ['paper'], ['paper', 'table'], ['table'], ['report']):\n"
        "    assert CliRunner().invoke(app, [*words, '--help']).exit_code == 0\n"
        "print(sorted({'torch', 'sklearn', 'ray', 'pandas', 'joblib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_an_error_of_the_program_itself_has_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "costscape", "run", "moon", "--method", "df2"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("There is no problem named 'moon'.")
    assert done.stderr.count("\n") == 1
