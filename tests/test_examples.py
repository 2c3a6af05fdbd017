"""Every example runs as its docstring says, and finds what it says it finds."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """run(name): what the example prints, its files going to tmp_path."""
    monkeypatch.chdir(tmp_path)

    def run(name):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def numbers(line):
    return [float(n) for n in re.findall(r"-?\d+\.\d+", line)]


def test_own_task_orders_nearly_the_known_quantile(run):
    _, *orders, money = run("own_task").splitlines()
    for line in orders:
        _, order, best = numbers(line)
        assert abs(order - best) < 0.5
    earned, best = numbers(money)
    assert 0.985 * best < earned < 1.005 * best


def test_budget_holds_the_iterative_solvers_against_the_exact_one(run):
    rows = {line.split()[0]: numbers(line) for line in run("budget").splitlines()[1:]}
    assert rows["Convex"][1] == 0
    assert abs(rows["MirrorDescent"][1]) < 1e-3 * rows["Convex"][0]
    # nobody is better than exact
    assert all(over > -1e-4 for _, over, _, _ in rows.values())


def test_own_method_follows_the_drift_and_keeps_the_contract(run):
    constant, last, contract = run("own_method").splitlines()
    assert numbers(last)[0] < 0.5 * numbers(constant)[0]
    assert contract == "it keeps the contract of a method"


def test_cost_curve_draws_a_landscape_near_the_true_one(run, tmp_path):
    error, gaps, _ = run("cost_curve").splitlines()
    assert numbers(error)[0] < 5
    gap, constant = numbers(gaps)
    assert 0 <= gap < 0.1 * constant
    picture = (tmp_path / "out" / "landscape.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_every_example_is_tested_and_names_its_command():
    tested = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f'run("{path.stem}")' in tested
        assert f"\npython examples/{path.name}\n" in path.read_text().split('"""')[1]


def test_trades_draws_three_pictures_and_says_what_they_show(run, tmp_path):
    bids, orders, doses = run("trades").splitlines()
    bid, came = numbers(bids)
    assert 0 < bid < 4
    assert came > 0
    served = numbers(orders)
    assert all(0.5 < share <= 1 for share in served)
    assert doses.startswith("5.0 million doses avert ")
    assert float(doses.split()[4].replace(",", "")) > 1000
    for name in ("bids", "orders", "doses"):
        assert (tmp_path / "out" / f"{name}.png").stat().st_size > 10_000


def test_which_method_advises_one_that_beats_the_constant(run):
    printed = run("which_method")
    _, _, _, *table, _, advice, orders = printed.splitlines()
    costs = {re.split(r"  +", line)[0]: numbers(line)[0] for line in table}
    assert len(costs) == 7
    advised = advice.removeprefix("Use ").split(": ")[0]
    assert costs[advised] < 0.9 * costs["point forecast"] < 0.9 * costs["constant"]
    assert list(costs.values()) == sorted(costs.values())
    readme = (EXAMPLES.parent / "README.md").read_text()
    for name, cost in costs.items():
        (line,) = re.findall(rf"^{re.escape(name)}  +\d.*$", readme, re.M)
        assert numbers(line)[0] == pytest.approx(cost, rel=0.03), "the README shows this output"
    *pieces, total = numbers(orders)
    assert sum(pieces) == pytest.approx(total, abs=0.4)
    assert total <= 255.0
