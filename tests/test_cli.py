"""The command line, and the demo behind it."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import costscape
from costscape.bench import METHODS, PROBLEM_FAMILIES, PROBLEMS, demo
from costscape.bench.demo_store import TRUCK, cut_to_truck, store, store_orders
from costscape.cli import app
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


def test_a_missing_typer_is_named_in_one_sentence():
    code = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['costscape', 'list']; "
        "from costscape.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    sentence = "costscape needs typer here. Install it: pip install 'costscape[cli]'.\n"
    assert (done.returncode, done.stderr) == (1, sentence)


def test_the_folder_of_the_demo_is_looked_at_before_the_first_fit(monkeypatch, tmp_path):
    def run(out, seed):
        raise AssertionError("begun")

    monkeypatch.setattr(demo, "run", run)
    (tmp_path / "file").write_text("")
    done = costscape_("demo", "--out", str(tmp_path / "file"))
    assert done.exit_code == 1
    assert "needs a folder that can be written to" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_demo_prints_what_run_returns_and_hands_it_its_options(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(demo, "run", lambda out, seed: asked.append((out, seed)) or "a table")
    done = costscape_("demo", "--out", "here", "--seed", "3")
    assert (done.exit_code, done.stdout) == (0, "a table\n")
    assert costscape_("demo").exit_code == 0
    assert asked == [(Path("here"), 3), (Path("out"), 0)]


# ---- the demo


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The demo on every 6th day with few epochs: its folder and its text."""
    out = tmp_path_factory.mktemp("demo") / "new"
    brief = Training(epochs=2, progress=False)
    return out, demo.run(out, seed=1, training=brief, every=6, progress=False)


def test_the_demo_writes_pictures_and_a_page(shown):
    out, text = shown
    for name in ("orders.png", "wind.png"):
        picture = out / name
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size > 10_000
        assert str(picture) in text
    assert "<svg" in (out / "orders.html").read_text()


@pytest.mark.long
def test_the_readme_says_what_the_whole_demo_prints(tmp_path):
    printed = demo.run(tmp_path, progress=False)
    readme = " ".join((Path(__file__).parents[1] / "README.md").read_text().split())
    saved = re.search(
        r"DF2 saves ([\d,]+) euros a year, ([\d,]+) \[([\d,]+), ([\d,]+)\] more than a point "
        r"forecast and (\d+) \[(-\d+), ([\d,]+)\]",
        readme,
    )
    names = ("today's decisions", "point forecast", "safety stock")
    rows = [re.search(rf"against {name} +(.*)", printed)[1] for name in names]
    euros = [float(n.replace(",", "")) for row in rows for n in re.findall(r"-?\d[\d,]*", row)]
    told = [float(n.replace(",", "")) for n in saved.groups()]
    assert told == pytest.approx([euros[0], *euros[3:]], abs=0.02 * euros[0])


def test_the_demo_measures_what_people_do_by_hand(shown):
    _, text = shown
    data, task = store(every=6), store_orders()
    rows = len(data.y) - round(0.8 * len(data.y))
    cost = task.cost(torch.tensor(data.y[-rows:]), torch.tensor(data.last_week[-rows:])).mean()
    (line,) = [line for line in text.splitlines() if line.startswith("today's decisions  ")]
    assert float(line.split()[2]) == pytest.approx(float(cost), rel=1e-3)
    assert (data.last_week.sum(1) <= TRUCK).all()
    assert (data.last_week[1:] <= data.y[:-1].max() + 1).all()


def test_the_demo_says_what_is_saved_and_where_nothing_is(shown):
    _, text = shown
    for name in ("today's decisions", "point forecast", "safety stock", "nearest neighbours"):
        assert re.search(rf"^  against {name} +-?[\d,]+ \[", text, re.M)
    assert "Without a limit on the truck, DF2 (one network) is" in text
    assert "WIND BIDS" in text


def test_the_features_of_the_store_are_of_the_days_before():
    data = store()
    assert data.x.shape == (len(data.y), 6 * 14 + 7)
    assert np.array_equal(data.x[1:, 13 * 6 : 14 * 6], data.y[:-1])  # yesterday
    assert np.array_equal(data.x[7:, 7 * 6 : 8 * 6], data.y[:-7])  # the same weekday


def test_fetch_says_what_to_do_by_hand_where_a_login_is_needed(tmp_path):
    done = costscape_("fetch", "sales", "--folder", str(tmp_path))
    assert done.exit_code == 1
    assert "Log in and download" in done.output
    assert str(tmp_path / "sales" / "store_item_demand.csv") in done.output


def test_fetch_of_an_unknown_set_names_those_there_are():
    done = costscape_("fetch", "moon")
    assert done.exit_code == 1
    assert "['mobility', 'pjm', 'sales', 'wind'], but got 'moon'" in done.output


def test_orders_beyond_the_truck_are_cut_in_proportion():
    a = torch.tensor([[100.0, 300.0], [10.0, 20.0]])
    cut = cut_to_truck(a)
    assert cut[0].sum() == pytest.approx(TRUCK, rel=2e-3)
    assert cut[0, 1] == pytest.approx(3 * cut[0, 0])
    assert torch.equal(cut[1], a[1])
