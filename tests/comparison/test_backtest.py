"""cs.compare as a backtest: what is done now, a limit on the time, frames, pictures and pages."""

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import costscape as cs
from costscape.comparison import backtest, time_budget
from costscape.comparison.picture import savings
from costscape.comparison.present_rules import Rule
from costscape.data import Dataset
from costscape.training.progress import progress

quiet = partial(cs.compare, progress=False)
TODAY = "today's decisions"
ROWS = 120


def terms(y, a):
    return 3 * (y - a).clamp(min=0) + (a - y).clamp(min=0)


TASK = cs.SeparableTask(terms, cs.Box(-9.0, 9.0, dim=1), convex=True)


def known():
    """y = x + 1 and x - 1 by turns: a = x costs 2 on average, a = x + 1, the best, costs 1."""
    x = np.linspace(0, 2, ROWS)[:, None]
    return x, x + np.where(np.arange(ROWS) % 2, -1.0, 1.0)[:, None]


def best_rule():
    return {"best": Rule(TASK, lambda x: x + 1), "double": Rule(TASK, lambda x: x + 2)}


# ---- what is done now


@pytest.mark.parametrize("today", ["function", "array", "column"])
def test_the_saving_against_todays_decisions_is_the_known_one(today):
    x, y = known()
    X: Any = pd.DataFrame(x, columns=["last week"]) if today == "column" else x
    given = {"function": lambda X: X, "array": x, "column": "last week"}[today]
    found = quiet(TASK, X, y, methods=best_rule(), today=given, block=2)
    assert found[TODAY].cost == pytest.approx(2.0, abs=1e-5)
    assert found["best"].cost == pytest.approx(1.0, abs=1e-5)
    assert (found.reference, found.recommended) == (TODAY, "best")
    saved = found.pair(TODAY, "best")
    assert (saved.mean, saved.low, saved.high) == pytest.approx((1.0, 1.0, 1.0), abs=1e-4)
    assert found.advice.endswith(
        "Against today's decisions, best saves 50.0 % [50.0 %, 50.0 %], that is 1.000 [1.000, "
        "1.000] a row."
    )


def test_a_function_of_a_frame_sees_its_columns():
    x, y = known()
    X = pd.DataFrame({"level": x[:, 0], "other": 0.0})
    found = quiet(TASK, X, y, methods=best_rule_of("level"), today=lambda X: X["level"], block=2)
    assert found[TODAY].cost == pytest.approx(2.0, abs=1e-5)
    assert found["best"].cost == pytest.approx(1.0, abs=1e-5)


def best_rule_of(column):
    return {"best": Rule(TASK, lambda X: X[[column]] + 1)}


def test_decisions_of_today_that_the_set_forbids_are_a_failure_of_theirs():
    x, y = known()
    found = quiet(TASK, x, y, methods=best_rule(), today=x + 20)
    assert "outside the feasible set" in found.failed[TODAY]
    assert found.best == "best"


def test_windows_of_one_series_have_their_last_values_as_a_rule(monkeypatch):
    series = torch.arange(60.0) % 5
    x = series.unfold(0, 10, 1)[:40].unsqueeze(-1)
    y = series.unfold(0, 5, 1)[10:50]  # the next five values are the last five
    task = cs.SeparableTask(terms, cs.Box(0.0, 3.0, dim=5), convex=True)
    few = lambda task, training: {"constant": cs.Constant(task)}  # noqa: E731
    monkeypatch.setattr(backtest, "default_methods", few)
    found = quiet(task, x, y)
    assert found.reference == "last values"
    # the value 4 is cut to 3 by the set: one unit short, at 3
    assert found["last values"].cost == pytest.approx(3.0)


# ---- the time


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(time_budget, "monotonic", made)
    return made


@dataclass
class Takes(cs.Method):
    """A fit of so many seconds of the clock, in 20 steps."""

    task: cs.Task
    seconds: float
    clock: Clock
    training: cs.Training | None = None
    seed: int = 0
    fits: list[Any] = field(default_factory=list)

    def _fit(self, train: Dataset, val: Dataset) -> None:
        self.fits.append(self.seed)
        with progress("takes", 20, False) as show:
            for step in range(20):
                self.clock.now += self.seconds / 20
                show(step + 1, "")
        self.task_, self.model_ = self.task, nn.Identity()

    def _decide(self, x: Tensor) -> Tensor:
        return x[:, :1]

    def _facts(self):
        return {}

    def _rebuild(self, facts):
        return nn.Identity()


def test_a_fit_that_is_foreseen_not_to_end_in_time_is_given_up_and_named(clock):
    x, y = known()
    methods = {name: Takes(TASK, s, clock) for name, s in (("a", 400), ("b", 50), ("c", 2))}
    found = quiet(TASK, x, y, methods=methods, budget=100)
    assert found.left_out == {
        "a": "given up after 40 s: a fit takes about 6.7 min, and 60 s were left"
    }
    assert {s.name for s in found.standings} == {"b", "c"}
    assert clock.now == pytest.approx(1092.0)
    assert "a left out: given up after 40 s: a fit takes about 6.7 min" in str(found)


def test_the_budget_is_not_exceeded_by_more_than_a_step(clock):
    x, y = known()
    methods = {name: Takes(TASK, s, clock) for name, s in (("a", 80), ("b", 240), ("c", 1))}
    found = quiet(TASK, x, y, methods=methods, budget="1.5 min")
    assert [s.name for s in found.standings] == ["a"]
    assert found.left_out == {
        "b": "given up after 12 s, when the budget was spent",
        "c": "not started, since the budget was spent",
    }
    assert clock.now - 1000 - 90 <= 3


def test_all_methods_have_one_seed_before_one_has_two(clock):
    x, y = known()
    methods = {n: Takes(TASK, s, clock, cs.Training()) for n, s in (("a", 30), ("b", 30))}
    found = quiet(TASK, x, y, methods=methods, budget=100, seeds=2)
    assert (found["a"].seeds, found["b"].seeds) == (2, 1)
    assert list(found.left_out) == ["b"]
    assert found.left_out["b"].endswith("(seed 2 of 2)")


def test_origins_share_the_budget(clock):
    x, y = known()
    methods = {n: Takes(TASK, 30, clock) for n in ("a", "b")}
    found = quiet(TASK, x, y, methods=methods, budget=100, origins=2)
    assert ([s.name for s in found.standings], list(found.left_out)) == (["a"], ["b"])
    with pytest.raises(RuntimeError, match=r"none of 2 did\. a: given up .* b: given up"):
        quiet(TASK, x, y, methods=methods, budget=29, origins=2)


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [
        *((90, 90.0), ("90 s", 90.0), ("2min", 120.0), ("1.5 Hours", 5400.0)),
        *(("3 seconds", 3.0), ("2 minutes", 120.0)),
        *((bad, None) for bad in ("90", 0, -1, "soon", "2 days", True, float("nan"))),
    ],
)
def test_a_budget_is_seconds_or_has_a_unit(monkeypatch, budget, seconds):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # it would speak first
    if seconds is not None:
        assert time_budget.TimeBudget(budget).seconds == seconds
    else:
        with pytest.raises(ValueError, match=r"such as 90, '2 min' or '1 h', but got .*\. Leave"):
            time_budget.TimeBudget(budget)


# ---- the result


def dated():
    x, y = known()
    days = pd.date_range("2026-01-01", periods=ROWS)
    return pd.DataFrame(x, days, ["level"]), pd.DataFrame(y, days, ["demand"])


def test_costs_and_frames_have_the_dates_of_the_rows():
    X, Y = dated()
    found = quiet(TASK, X, Y, methods=best_rule(), today="level")
    assert (found.rows == X.index[96:]).all()
    costs = found.costs_frame()
    assert costs.index.equals(X.index[96:])
    assert list(costs) == [s.name for s in found.standings]
    assert costs["best"].to_numpy() == pytest.approx(np.tile([0.0, 2.0], 12), abs=1e-5)
    table = found.to_frame()
    assert table.index.tolist() == list(costs)
    assert table.loc[TODAY, "cost"] == pytest.approx(costs[TODAY].mean())
    assert table.loc[TODAY, "above_best"] == pytest.approx(1.0, abs=1e-5)
    numbers = quiet(TASK, X.to_numpy(), Y.to_numpy(), methods=best_rule())
    assert (numbers.rows == np.arange(96, 120)).all()
    from_y = quiet(TASK, X.to_numpy(), Y, methods=best_rule())
    assert (from_y.rows == X.index[96:]).all()


def test_the_model_is_the_recommended_method_fitted_on_all_rows():
    x, y = known()
    methods = {"constant": cs.Constant(TASK), "neighbours": cs.NearestNeighbours(TASK, k=2)}
    found = quiet(TASK, x, y, methods=methods)
    name = found.recommended
    by_hand = methods[name].changed().fit(x, y)
    assert np.array_equal(found.model.decide(x), by_hand.decide(x))
    assert found.model is found.model
    assert found.model is not found.fitted[name]
    assert found.model.record_.rows == ROWS
    assert found.fitted[name].record_.rows == 96


def test_an_array_of_decisions_that_is_best_gives_no_model():
    x, y = known()
    found = quiet(TASK, x, y, methods={"double": Rule(TASK, lambda x: x + 2)}, today=x + 1)
    assert found.recommended == TODAY
    with pytest.raises(ValueError, match=r"does not decide for new rows.*fitted\['double'\]"):
        _ = found.model


def test_the_picture_sums_up_what_is_saved(tmp_path):
    X, Y = dated()
    found = quiet(TASK, X, Y, methods=best_rule(), today="level")
    lines = savings(found)
    assert lines["best"][-1] == pytest.approx(-24.0, abs=1e-3)  # 1 for each of 24 rows
    assert (lines[TODAY] == 0).all()
    path = found.plot(tmp_path / "new" / "saving.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_page_holds_everything_and_escapes_names(tmp_path):
    X, Y = dated()
    methods = {"<b>best</b>": Rule(TASK, lambda X: X + 1), "constant": cs.Constant(TASK)}
    found = quiet(TASK, X, Y, methods=methods, today="level")
    page = found.report(tmp_path / "new" / "page.html").read_text()
    assert "<h1>Use &lt;b&gt;best&lt;/b&gt;</h1>" in page
    assert "<b>best" not in page
    assert "<svg" in page
    for name in ("constant", "today&#x27;s decisions"):
        assert f'<th scope="row">{name}</th>' in page
    assert not re.search(r"https?://(?!www\.w3\.org)|<script|<img|url\((?!#)", page)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prefer": "fast"}, "prefer to be None, .* or 'simple', but got 'fast'"),
        ({"today": "level"}, "today to name columns of X, but 'level' is none of them"),
        ({"today": np.ones((3, 1))}, r"one action of 1 numbers for each of 120 rows.*\(3, 1\)"),
        ({"today": np.ones((120, 2))}, r"one action of 1 numbers .*shape \(120, 2\)"),
        ({"today": ["level", 3]}, "today"),
        ({"budget": "now"}, "budget in seconds or with a unit"),
    ],
    ids=range(6),
)
def test_bad_settings_have_one_sentence(monkeypatch, settings, words):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises((ValueError, TypeError), match=words):
        quiet(TASK, *known(), methods=best_rule(), **settings)
