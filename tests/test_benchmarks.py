"""The speed questions: what is kept has one form, and nothing that fails is lost."""

import importlib
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import costscape as cs
from costscape.serve import read_request
from costscape.serve.refused import Refused
from costscape.serve.request_rows import RowShape

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
FIELDS = {"name": str, "goal": str, "result": str, "met": bool, "machine": str}

# what must be measured: words of the goals that were set, on a CPU
GOALS = {
    "training step, against own actions": ">= 150 times",
    "wind epoch, against DFL": ">= 1,000 times",
    "against 500 steps of projected Adam": ">= 100 times",
    "instances decided worse than by Adam": "<= 0 of 1,000",
    "against a cvxpy loop": ">= 1,000 times",
    "decide one, wind, 1 network: solver over encoder": "<= 1 times",
    "decide one, wind, 1 network: 99th of 100": "<= 3 times",
    "decide 1 with S = 100,000 over S = 1,000": "<= 10 times",
    "its answer": "<= the stated bound",
    "vaccine training step, one week": "<= 2 s",
    "vaccine training step, one week: memory": "<= 4 GiB",
    "vaccine training step, wave of eight weeks": "<= 10 s",
    "fit time over rows": "<= 1.1 in log-log",
    "fit time over points": "<= 1.1 in log-log",
    "fit time over actions": "<= 1.1 in log-log",
    "fit time over dimensions": "<= 1.1 in log-log",
    "peak memory of a step": "<= 1.25 times",
    "import costscape, beyond torch": "<= 0.3 s",
    "costscape --help": "<= 0.5 s",
}
RIVALS = ("own actions", "cvxpylayers", "cvxpy loop", "scipy", "scikit-learn", "SPO+")


@pytest.fixture
def script(monkeypatch):
    """Loads a file of benchmarks/ by name, its neighbours at hand, and forgets them after."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for path in BENCHMARKS.glob("*.py"):
        sys.modules.pop(path.stem, None)


def check_form(rows):
    assert rows
    for row in rows:
        assert set(row) == {*FIELDS, "value"}
        for name, kind in FIELDS.items():
            assert isinstance(row[name], kind), row
        assert row["value"] is None or isinstance(row["value"], float)
        assert row["name"]
        assert row["result"]
        assert row["machine"]


def write(folder, name, text):
    (folder / f"{name}.py").write_text(text)
    return folder / f"{name}.py"


GOOD = """
from common import at_least, at_most, reported

def results():
    return [at_least("fast", 200.0, 150), at_most("slow", 3.0, 2), reported("rival", 0.5)]
"""
BROKEN = """
def results():
    print("so far")
    raise ValueError("no such solver")
"""


def test_results_come_in_one_form_and_failures_among_them(script, tmp_path, capsys):
    run, common = script("run"), script("common")
    files = [write(tmp_path, "bench_broken", BROKEN), write(tmp_path, "bench_good", GOOD)]
    found = run.run(files)
    common.keep(found, tmp_path / "kept.json")
    rows = json.loads((tmp_path / "kept.json").read_text())
    check_form(rows)
    assert [(row["name"], row["met"]) for row in rows] == [
        ("bench_broken", False),
        ("fast", True),
        ("slow", False),
        ("rival", True),
    ]
    assert rows[0]["result"] == "ValueError: no such solver"
    assert rows[0]["value"] is None
    assert rows[1]["goal"] == ">= 150 times"
    assert rows[3]["goal"] == "reported"
    assert common.kept(tmp_path / "kept.json") == found
    assert not list(tmp_path.glob("*.part"))
    assert "bench_good" in capsys.readouterr().err


def test_a_question_that_hangs_or_dies_is_a_row(script, tmp_path):
    run = script("run")
    hangs = write(tmp_path, "bench_hangs", "import time\ntime.sleep(60)\n")
    (row,) = run.run([hangs], limit=0.5)
    assert not row.met
    assert "more than 0.5 s" in row.result
    dies = write(tmp_path, "bench_dies", "import os\nos._exit(3)\n")
    (row,) = run.run([dies])
    assert not row.met
    assert row.result == "exit code 3"


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BROKEN, 1)], ids=["good", "broken"])
def test_only_failures_change_the_exit_code(script, tmp_path, monkeypatch, capsys, text, code):
    run = script("run")
    file = write(tmp_path, "bench_some", text)
    monkeypatch.setattr(run, "paths", lambda names: [file])
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results")
    assert run.main(["--cpu"]) == code
    check_form(json.loads((tmp_path / "results" / "cpu.json").read_text()))
    shown = capsys.readouterr().out
    assert ("missed" in shown) if code == 0 else ("failed" in shown)


def test_a_file_kept_before_stays_whole_when_writing_fails(script, tmp_path):
    common = script("common")
    path = tmp_path / "cpu.json"
    common.keep([common.reported("rival", 1.0)], path)
    before = path.read_text()
    with pytest.raises(TypeError):
        common.keep([common.Result("bad", "", "", True, object(), "")], path)
    assert path.read_text() == before


def test_every_question_has_a_file_and_every_file_is_asked(script):
    run = script("run")
    asked = run.paths([*run.CPU, *run.GPU])
    assert sorted(asked) == sorted(BENCHMARKS.glob("bench_*.py"))
    for path in asked:
        assert "def results(" in path.read_text(), path.name


def test_a_goal_is_met_at_the_goal_itself(script):
    common = script("common")
    assert common.at_least("", 150.0, 150).met
    assert not common.at_least("", 149.9, 150).met
    assert common.at_most("", 2.0, 2).met
    assert not common.at_most("", 2.01, 2).met
    assert common.reported("", 22943.2, "s", "scaled").result == "22,943 s (scaled)"


@pytest.mark.long
def test_the_questions_for_a_gpu_run_small_on_a_cpu(script):
    gpu, roofline = script("bench_gpu"), script("bench_roofline")
    size = gpu.Size(8, 16, 4, batch=32, windows=70, epochs=1, folds=2, simulated=2)
    found = [*gpu.results(size), *roofline.results(size, matrix=32, copied=256)]
    assert [r.goal for r in found if r.goal != "reported"] == ["<= 0.1 s"]
    assert len(found) == 14


@pytest.mark.long
def test_a_first_try_is_timed_on_the_two_problems_as_written(script):
    import torch

    first = script("bench_first_try")
    task, x, y = first.week()
    assert (x.shape, y.shape) == ((500, 5), (500, 7))
    assert 0 < y.min() < y.max() < 3  # the best orders are inside the box
    days = torch.ones(7)
    assert float(task.cost(2 * days, days)) == 7 * (20 + 1)
    assert float(task.cost(days, 2 * days)) == 7 * (5 + 1)
    task, x, y = first.budget()
    assert (x.shape, y.shape) == ((2000, 3), (2000, 4))
    assert 0 < y.min() < y.sum(1).median() < 10
    products = torch.ones(4)
    assert float(task.cost(2 * products, products)) == 4 * 8 + 0.5 * 16
    assert float(task.cost(products, 2 * products)) == 4 * 2 + 0.5 * 16
    apart = torch.tensor([1.0, -1.0, 0.0, 0.0])  # the sums agree
    assert float(task.cost(products, products + apart)) == 8 + 2
    found = first.results({"week": lambda: first.week(rows=40)}, epochs=1)
    assert [r.goal for r in found] == ["<= 10 s", "<= 90 s"]
    assert [r.name for r in found] == [f"first try, week: {m}.fit" for m in ("DF2.quick", "DF2")]
    assert 0 < found[0].value < found[1].value < 60


def test_the_operations_of_a_step_are_those_of_its_parts(script):
    gpu, roofline = script("bench_gpu"), script("bench_roofline")
    size = gpu.Size()
    count = roofline.counted(size)
    # by hand: 64 rows of 24 hours; layers of (1 + 256) and (256 + 256) inputs to 1,024 gates
    assert count.lstm == 3 * 2 * 64 * 24 * 1024 * (257 + 512)
    method = gpu.method_of(size, "cpu")
    model = method._network(gpu.windows_of(gpu.Size(windows=600))[0], method.outcomes)
    held = 4 * 9 * sum(p.numel() for p in model.parameters())
    assert count.bytes == held + 4 * (24 * 64 * 24 * 256 + 4 * (100 * 500 + 64 * 500))


def test_the_plain_step_of_the_paper_is_the_library_s_with_own_actions(script):
    from costscape.bench import PROBLEMS
    from costscape.data import Dataset

    step = script("bench_step")
    problem = PROBLEMS["synthetic-convex"](0)
    train = problem.data.train
    batch = Dataset(train.x[:4], train.y[:4])
    plain = step.step_of(problem, batch, loss=step.eager_loss)
    own = step.step_of(problem, batch, shared=False)
    assert [plain(), plain()] == pytest.approx([own(), own()], rel=1e-5)


def test_growth_is_drawn_with_its_slopes(script):
    scaling = script("bench_scaling")
    sizes = [2**i for i in range(scaling.DOUBLINGS)]
    curves = {"rows": [(s, 0.1 * s) for s in sizes], "points": [(s, 0.1 * s**0.5) for s in sizes]}
    assert scaling.slope(curves["points"]) == pytest.approx(0.5)
    root = ElementTree.fromstring(scaling.drawn(curves))
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "rows, from 1: slope 1.00" in words
    assert "points, from 1: slope 0.50" in words


# ---- what is kept


def kept(name):
    path = BENCHMARKS / "results" / name
    if not path.exists():
        pytest.skip(f"{name} has not been made: make bench, make bench-gpu")
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", ["cpu.json", "gpu.json"])
def test_kept_results_have_the_form_and_nothing_failed(name):
    rows = kept(name)
    check_form(rows)
    assert not [row["name"] for row in rows if row["value"] is None]
    assert len({row["name"] for row in rows}) == len(rows)


def test_every_goal_and_every_rival_is_among_the_kept_results():
    rows = kept("cpu.json")
    for words, goal in GOALS.items():
        assert [row for row in rows if words in row["name"] and row["goal"] == goal], words
    for rival in RIVALS:
        assert [row for row in rows if rival in row["name"]], rival


def test_the_kept_picture_is_an_svg():
    kept("cpu.json")
    root = ElementTree.parse(BENCHMARKS / "results" / "scaling.svg").getroot()
    assert root.tag.endswith("svg")


def test_the_tables_in_the_document_are_the_kept_ones(script):
    run = script("run")
    text = run.PAGE.read_text()
    assert run.page(text) == text, "run python benchmarks/run.py --write"
    text = run.FRONT.read_text()
    assert run.front(text) == text, "run python benchmarks/run.py --write"


def test_cases_of_latency_are_solved_by_the_solvers_that_the_docs_name(script):
    latency = script("bench_latency")
    page = (ROOT / "docs" / "how-to" / "production.md").read_text()
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(60, 3, generator=generator)
    y = 1 + x.mean(1, keepdim=True) + torch.rand(60, latency.D, generator=generator)
    for about, make in latency.CASES.values():
        model = cs.NearestNeighbours(make(), k=5).fit(x, y)
        objective = cs.ExpectedCost(model.task_, model.scenarios(x[:1]))
        solver = type(cs.Auto().pick(objective, model.task_.feasible)).__name__
        kind = about.split(",")[0].split()[0]
        assert any(f"`{kind}`" in line and f"`{solver}`" in line for line in page.splitlines())


def test_malformed_requests_of_the_service_are_one_in_20(script):
    serve = script("bench_serve")
    assert 100 / serve.BAD == 5
    for body in serve.MALFORMED:
        with pytest.raises(Refused):
            read_request._read("", body, RowShape((24,), tuple(map(str, range(24)))), 10)
