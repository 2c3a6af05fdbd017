"""The command line, and the demo behind it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import costscape
from costscape import Constant, evaluate
from costscape.bench import METHODS, PROBLEM_FAMILIES, PROBLEMS, demo
from costscape.cli import app
from costscape.data import Splits
from costscape.problems import inventory, sales
from costscape.training import Training


def costscape_(*words):
    return CliRunner().invoke(app, [*words])


def test_help_names_the_commands():
    done = costscape_("--help")
    assert done.exit_code == 0
    for word in ("demo", "list", "--version"):
        assert word in done.stdout


def test_without_a_command_the_help_is_shown():
    assert "Usage" in costscape_().output


def test_version():
    done = costscape_("--version")
    assert (done.exit_code, done.stdout) == (0, f"{costscape.__version__}\n")


def test_list_names_every_problem_and_method_with_a_line_about_it():
    done = costscape_("list")
    assert done.exit_code == 0
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0] == "problems"
    assert "methods" in lines
    makers = {**PROBLEMS, **{f"{name}N": make for name, make in PROBLEM_FAMILIES.items()}}
    words = {name: make.__doc__.splitlines()[0] for name, make in makers.items()}
    for name, about in {**words, **{name: m.words for name, m in METHODS.items()}}.items():
        (line,) = [line for line in lines if line.split()[0] == name]
        assert line.removeprefix(name).strip() == about


def test_an_unknown_command_is_refused():
    done = costscape_("fly")
    assert done.exit_code == 2
    assert "No such command 'fly'" in done.output


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "costscape", "--version"], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (f"{costscape.__version__}\n", "")


def test_help_answers_without_torch():
    code = (
        "import sys; from typer.testing import CliRunner; from costscape.cli import app; "
        "CliRunner().invoke(app, ['demo', '--help']); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_demo_prints_what_run_returns_and_hands_it_its_options(monkeypatch):
    asked = []
    monkeypatch.setattr(demo, "run", lambda out, seed: asked.append((out, seed)) or "a table")
    done = costscape_("demo", "--out", "here", "--seed", "3")
    assert (done.exit_code, done.stdout) == (0, "a table\n")
    assert costscape_("demo").exit_code == 0
    assert asked == [(Path("here"), 3), (Path("out"), 0)]


# ---- the demo


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The demo on a few windows and few epochs: its folder, its data, its text."""
    whole = sales()
    splits = Splits(whole.splits.train[:300], whole.splits.val[:100], whole.splits.test[:150])
    out = tmp_path_factory.mktemp("demo") / "new"
    brief = Training(epochs=2, progress=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "sales", lambda: replace(whole, splits=splits))
        quick = demo.DF2.quick
        made = lambda task, seed: replace(quick(task, seed=seed), training=brief)  # noqa: E731
        patch.setattr(demo.DF2, "quick", staticmethod(made))
        text = demo.run(out, seed=1)
    return out, splits, text


def test_the_demo_writes_its_picture(shown):
    out, _, text = shown
    picture = out / "cost_curve.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000
    assert str(picture) in text


def test_the_demo_names_its_data(shown):
    _, data, text = shown
    learned, chosen = (str(part.dates[-1])[:10] for part in (data.train, data.val))
    assert f"Learned from 300 windows up to {learned}, epoch chosen on 100 up to {chosen}" in text
    assert f"tested on 150 windows from {str(data.test.dates[0])[:10]} on" in text


def test_the_table_of_the_demo_has_the_regret_of_each_method(shown):
    _, data, text = shown
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("method"))
    rows = {line[:21].strip(): line[21:].split() for line in lines[first + 1 : first + 4]}
    assert list(rows) == ["best constant order", "nearest neighbours", "DF2, one network"]
    model = Constant(inventory()).fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))
    regret = evaluate(model, data.test.x, data.test.y).regret
    assert float(rows["best constant order"][0]) == pytest.approx(regret, abs=0.006)


def test_fetch_says_what_to_do_by_hand_where_a_login_is_needed(tmp_path):
    done = costscape_("fetch", "sales", "--folder", str(tmp_path))
    assert done.exit_code == 1
    assert "Log in and download" in done.output
    assert str(tmp_path / "sales" / "store_item_demand.csv") in done.output


def test_fetch_of_an_unknown_set_names_those_there_are():
    done = costscape_("fetch", "moon")
    assert done.exit_code == 1
    assert "['mobility', 'pjm', 'sales', 'wind'], but got 'moon'" in done.output
