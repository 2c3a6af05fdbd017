"""The command line, and the demo behind it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import costscape
from costscape import Constant
from costscape.bench import METHODS, PROBLEMS, demo
from costscape.cli import app
from costscape.data import Splits
from costscape.problems import profit, wind_bidding, wind_farm
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
    for name, make in {**PROBLEMS, **METHODS}.items():
        (line,) = [line for line in lines if line.split()[0] == name]
        assert line.removeprefix(name).strip() == make.__doc__.splitlines()[0]


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
def told(tmp_path_factory):
    """The demo on a few windows and one epoch: its folder, its data, its text."""
    whole = wind_farm()
    data = Splits(whole.train[:900], whole.val[:150], whole.test[:400])
    out = tmp_path_factory.mktemp("demo") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "wind_farm", lambda: data)
        patch.setattr(demo, "Training", lambda **told: Training(epochs=1, progress=False))
        text = demo.run(out, seed=1)
    return out, data, text


def table(text):
    """The rows of the table, by method."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("method"))
    names = lines[first].split()
    rows = {}
    for line in lines[first + 1 : lines.index("", first)]:
        name, rest = line[:26].strip(), line[26:].split()
        rows[name] = dict(zip(names[1:], rest, strict=False))
    return rows


def test_the_demo_writes_its_picture(told):
    out, _, text = told
    picture = out / "cost_curve.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000
    assert str(picture) in text


def test_the_demo_says_what_data_it_used(told):
    _, data, text = told
    assert "La Haute Borne" in text
    learned, chosen = (str(part.dates[-1])[:10] for part in (data.train, data.val))
    assert f"Learned from 300 windows up to {learned}, epoch chosen on 50 up to {chosen}" in text
    first = str(data.test.dates[0])[:10]
    assert f"tested on {len(data.test[:: demo.STRIDE])} windows from {first} on" in text


def test_the_table_of_the_demo_is_right(told):
    _, data, text = told
    rows = table(text)
    assert list(rows) == [
        "best constant bid",
        "nearest neighbours",
        "DF2",
        "had the wind been known",
    ]
    task = wind_bidding()
    train, val, test = (part[:: demo.STRIDE] for part in (data.train, data.val, data.test))
    y = test.y
    best = float(profit(task, y, y.clamp(0, 4)).mean())
    assert float(rows["had the wind been known"]["profit"]) == pytest.approx(best, abs=0.06)
    # what a rule earns less than had the wind been known is its regret
    for row in rows.values():
        assert best - float(row["profit"]) == pytest.approx(float(row["regret"]), abs=0.16)
        assert float(row["regret"]) >= 0
    constant = Constant(task).fit(train.x, train.y, val=(val.x, val.y)).decide(test.x)
    money = float(profit(task, y, constant).mean())
    assert float(rows["best constant bid"]["profit"]) == pytest.approx(money, abs=0.06)


def test_the_day_drawn_is_the_median_of_those_that_blow(told):
    _, data, _ = told
    day = demo._typical_day(data.test)
    energy = data.test.y[:, demo.HOUR]
    blows = energy[energy > 0.2]
    assert float(energy[day]) == pytest.approx(float(torch.sort(blows).values[len(blows) // 2]))


def test_fetch_says_what_to_do_by_hand_where_a_login_is_needed(tmp_path):
    done = costscape_("fetch", "sales", "--folder", str(tmp_path))
    assert done.exit_code == 1
    assert "Log in and download" in done.output
    assert str(tmp_path / "sales" / "store_item_demand.csv") in done.output


def test_fetch_of_an_unknown_set_names_those_there_are():
    done = costscape_("fetch", "moon")
    assert done.exit_code == 1
    assert "['mobility', 'sales', 'wind'], but got 'moon'" in done.output
