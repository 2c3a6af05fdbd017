"""cs.compare: known truths, fair tests, plain words."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import costscape as cs
from costscape.block_bootstrap import block_length, difference, resampled, standard_error
from costscape.comparison import Difference, Standing
from costscape.comparison.advice import advise, recommend
from costscape.comparison.candidates import usual_time
from costscape.data import Dataset
from costscape.task import Refusal

SMALL = partial(cs.MLP, 2, hidden=16)
BRIEF = cs.Training(epochs=12, lr=0.01, progress=False)
quiet = partial(cs.compare, progress=False)


def terms(y, a):
    """3 a unit short, 1 a unit spare: the best action is the 3/4 quantile."""
    return 3 * (y - a).clamp(min=0) + (a - y).clamp(min=0)


def newsvendor(dim=1):
    return cs.SeparableTask(terms, cs.Box(-4.0, 8.0, dim=dim), convex=True)


def pairs(n, seed=0, effect=1.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 2))
    return x, 1 + effect * x[:, :1] + 0.2 * rng.normal(size=(n, 1))


def gaussian(task, k=1):
    return cs.TwoStage(task, cs.Mixture(k), draws=200, encoder=SMALL, training=BRIEF)


def df2(task, training=BRIEF):
    form = cs.Anchored()
    return cs.DF2(task, points=40, folds=1, outcomes=form, encoder=SMALL, training=training)


def cheap(task):
    return {"constant": cs.Constant(task), "neighbours": cs.NearestNeighbours(task, k=10)}


@dataclass
class Told(cs.Method):
    """Decides ``tell(x)``; what it fits on and decides for is kept in ``seen``."""

    task: cs.Task
    tell: Callable[[Tensor], Tensor] = lambda x: x[:, :1]
    seed: int = 0
    seen: list[Any] = field(default_factory=list)

    def _fit(self, train: Dataset, val: Dataset) -> None:
        self.seen.append((train, val))
        self.task_, self.model_ = self.task, nn.Identity()

    def _decide(self, x: Tensor) -> Tensor:
        self.seen.append("decides")
        return self.tell(x)

    def _facts(self):
        return {}

    def _rebuild(self, facts):
        return nn.Identity()


@dataclass
class Refuses(Told):
    def _fit(self, train: Dataset, val: Dataset) -> None:
        raise Refusal("Refuses needs a linear cost.")


@dataclass
class Fails(Told):
    def _fit(self, train: Dataset, val: Dataset) -> None:
        raise RuntimeError("the loss became nan")


# ---- known truths


def test_where_a_gaussian_is_the_truth_it_is_enough():
    task = newsvendor()
    x, y = pairs(1200, seed=3)
    longer = cs.Training(epochs=25, lr=0.005, progress=False)
    made = {"DF2": df2(task, longer), "Gaussian": gaussian(task), "constant": cs.Constant(task)}
    found = quiet(task, x, y, methods=made, seeds=1, prefer="simple")
    assert found.recommended == "Gaussian"
    assert found.advice.startswith("Use Gaussian, the simplest method that is not clearly worse")
    assert found["constant"].above_best.clear
    # the 3/4 quantile of a normal of deviation 0.2 costs 4 x 0.2 x phi(0.674)
    assert found["Gaussian"].cost == pytest.approx(0.8 * 0.3178, rel=0.1)
    assert replace(found, prefer=None).recommended == found.best == "DF2"
    assert "With Gaussian, the simplest that is not clearly" in replace(found, prefer=None).advice


def test_where_x_is_noise_the_constant_is_advised():
    task = newsvendor()
    x, y = pairs(1000, effect=0.0)
    methods = {"Gaussian": gaussian(task), "neighbours": cs.NearestNeighbours(task)}
    methods["constant"] = cs.Constant(task)
    found = quiet(task, x, y, methods=methods, seeds=1, prefer="simple")
    assert len(found.standings) == 3
    assert found.recommended == "constant"
    assert found.advice.startswith("Use constant")
    assert "x carries little usable information for this decision at this sample" in found.advice


def test_where_y_has_two_peaks_a_point_forecast_is_clearly_worse():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(1200, 2))
    y = (1 + x[:, :1]) * rng.choice([-1.0, 1.0], p=[0.4, 0.6], size=(1200, 1))
    y += 0.05 * rng.normal(size=y.shape)
    task = newsvendor()
    point = cs.TwoStage(task, cs.Point(), encoder=SMALL, training=BRIEF)
    found = quiet(task, x, y, methods={"point": point, "neighbours": cs.NearestNeighbours(task)})
    assert found.best == found.recommended == "neighbours"
    assert found["point"].above_best.low > 0.3
    assert re.match("Use neighbours: the mean cost of .* is clearly the lowest. ", found.advice)
    assert "With point, the next, it is higher by " in found.advice


# ---- the intervals


@pytest.mark.parametrize("block", [1, 5])
def test_the_interval_of_independent_rows_is_that_of_the_normal_law(block):
    d = np.random.default_rng(1).normal(0.3, 2.0, size=3000)
    found, se = difference(d, block), d.std() / 3000**0.5
    assert found.mean == pytest.approx(d.mean())
    assert found.low == pytest.approx(d.mean() - 1.96 * se, abs=0.25 * se)
    assert found.high == pytest.approx(d.mean() + 1.96 * se, abs=0.25 * se)
    assert standard_error(d, block) == pytest.approx(se, rel=0.08)


def autoregressive(n, phi, rng):
    e = rng.normal(size=n)
    e[0] /= (1 - phi**2) ** 0.5
    for t in range(1, n):
        e[t] += phi * e[t - 1]
    return e


@pytest.mark.parametrize("phi", [0.3, 0.6])
def test_rows_that_follow_their_neighbours_widen_it_by_the_known_factor(phi):
    d = autoregressive(20_000, phi, np.random.default_rng(0))
    factor = ((1 + phi) / (1 - phi)) ** 0.5
    assert block_length(20_000) == 28
    blocks = standard_error(d, 28)
    assert blocks / (d.std() / 20_000**0.5) == pytest.approx(factor, rel=0.1)


def test_intervals_of_dependent_rows_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    series = [autoregressive(500, 0.5, rng) for _ in range(150)]
    by_block, alone = ([not difference(d, block).clear for d in series] for block in (8, 1))
    assert 0.87 <= np.mean(by_block) <= 0.98
    assert np.mean(alone) < 0.8


def test_resampled_means_are_those_of_blocks_by_hand():
    d = np.arange(7.0) ** 2  # blocks of 3: two whole ones and one row of a third
    rng = np.random.default_rng(0)
    starts = rng.integers(5, size=(2000, 3))
    means = np.array([np.concatenate([d[i : i + 3] for i in s])[:7].mean() for s in starts])
    moved = np.array([[d[i : i + 3].sum() for i in range(5)], [d[i] for i in range(5)]]).mean(1)
    centre = (2 * moved[0] + moved[1]) / 7
    assert np.allclose(resampled(d, 3), means - centre + d.mean())


@pytest.mark.parametrize(("rows", "length"), [(1, 1), (8, 2), (9, 3), (27, 3), (1000, 10)])
def test_a_block_is_the_cube_root_of_the_rows_rounded_up(rows, length):
    assert block_length(rows) == length


# ---- the test part is fair


def test_parts_are_cut_in_order_of_time_as_fit_cuts_them():
    task, x, y = newsvendor(), *pairs(100)
    method = gaussian(task)
    found = quiet(task, x, y, methods={"g": method}, seeds=1)
    assert (found.train_rows, found.val_rows, found.test_rows) == (64, 16, 20)
    by_fit = cs.TwoStage(**vars(method)).fit(x[:80], y[:80])
    assert np.array_equal(found.fitted["g"].decide(x), by_fit.decide(x))
    result = cs.evaluate(by_fit, x[80:], y[80:])
    assert found["g"].cost == pytest.approx(result.cost, rel=1e-6)
    assert found["g"].regret == pytest.approx(result.regret, rel=1e-6)
    assert np.array_equal(found["g"].costs, result.costs)


def test_rows_of_the_gap_are_in_no_part():
    task, told = newsvendor(), Told(newsvendor())
    x = np.arange(100.0)[:, None] / 50
    found = quiet(task, x, x, methods={"told": told}, gap=5)
    train, val = told.seen[0]
    assert torch.allclose(train.x[[0, -1], 0] * 50, torch.tensor([0.0, 54.0]))
    assert torch.allclose(val.x[[0, -1], 0] * 50, torch.tensor([60.0, 74.0]))
    assert (found.train_rows, found.val_rows, found.test_rows) == (55, 15, 20)


def test_outcomes_of_the_test_part_change_the_scores_and_nothing_else():
    x, y = pairs(150)
    other, mixed = y.copy(), y.copy()
    other[120:] = 5 + np.random.default_rng(3).random((30, 1))
    mixed[120:] = np.random.default_rng(4).permutation(y[120:])
    paid, decided = [], []
    for outcomes in (y, other, mixed):
        task = newsvendor()
        made = {**cheap(task), "g": gaussian(task), "DF2": df2(task)}
        found = quiet(task, x, outcomes, methods=made, seeds=1)
        decided.append({name: found.fitted[name].decide(x) for name in made})
        paid.append({name: tuple(found[name].costs) for name in made})
    for name in decided[0]:
        assert all(np.array_equal(decided[0][name], again[name]) for again in decided[1:])
        assert len({costs[name] for costs in paid}) == 3


def test_all_decide_before_an_outcome_of_the_test_part_is_paid():
    log = []

    def watched(y, a):
        if (y > 50).any():
            log.append("pays")
        return terms(y.clamp(max=3), a).sum(-1)

    task = cs.Task(watched, cs.Box(-4.0, 8.0, dim=1))
    x, y = pairs(60)
    y[48:] = 100.0  # only the test part
    methods = {name: Told(task, seen=log) for name in "abc"}
    quiet(task, x, y, methods=methods)
    events = [event for event in log if isinstance(event, str)]
    assert events[:3] == ["decides"] * 3
    assert set(events[3:]) == {"pays"}


# ---- seeds


def test_networks_are_fitted_for_every_seed_and_others_once():
    task, x, y = newsvendor(), *pairs(100)
    method = cs.TwoStage(task, draws=20, encoder=SMALL, training=BRIEF, seed=7)
    found = quiet(task, x, y, methods={"g": method, **cheap(task)}, seeds=3)
    each = [cs.TwoStage(**{**vars(method), "seed": 7 + i}).fit(x[:80], y[:80]) for i in range(3)]
    costs = np.stack([cs.evaluate(model, x[80:], y[80:]).costs for model in each])
    assert np.allclose(found["g"].costs, costs.mean(0), rtol=1e-6)
    assert found["g"].sd == pytest.approx(costs.mean(1).std(ddof=1), rel=1e-5)
    assert (found["g"].seeds, found["constant"].seeds, found["constant"].sd) == (3, 1, None)
    assert found.fitted["g"].seed == 7
    assert found.fitted["g"].training is method.training
    assert method.model_ is None


def test_the_same_seeds_give_the_same_bits():
    task, x, y = newsvendor(), *pairs(100)
    one, two = (
        quiet(task, x, y, methods={"DF2": df2(task), **cheap(task)}, seeds=2) for _ in range(2)
    )
    assert not one.failed
    assert one.advice == two.advice
    for a, b in zip(one.standings, two.standings, strict=True):
        assert (a.name, a.cost, a.sd, a.above_best) == (b.name, b.cost, b.sd, b.above_best)
        assert np.array_equal(a.costs, b.costs)


def test_each_method_and_seed_has_its_own_checkpoint(tmp_path):
    task, x, y = newsvendor(), *pairs(60)
    training = cs.Training(epochs=2, progress=False, checkpoint=tmp_path / "kept")
    made = {
        f"mixture / {k}": cs.TwoStage(task, cs.Mixture(k), encoder=SMALL, training=training)
        for k in (1, 2)
    }
    one = quiet(task, x, y, methods=made, seeds=2)
    assert len(list(tmp_path.iterdir())) == 4
    again = quiet(task, x, y, methods=made, seeds=2)
    assert [s.cost for s in one.standings] == [s.cost for s in again.standings]


# ---- forms


def test_frames_arrays_and_tensors_give_the_same_result():
    task, (x, y) = newsvendor(), pairs(100)
    frame = pd.DataFrame(x, columns=["a", "b"]), pd.DataFrame(y, columns=["demand"])
    forms = [(x, y), frame, (torch.tensor(x), torch.tensor(y)), (x.tolist(), y[:, 0].tolist())]
    found = [quiet(task, *form, methods=cheap(task)) for form in forms]
    for again in found[1:]:
        assert np.array_equal(again["neighbours"].costs, found[0]["neighbours"].costs)
    assert list(found[1].fitted["constant"].decide(frame[0]).columns) == ["demand"]


def test_double_precision_and_one_feature():
    task, (x, y) = newsvendor().double(), pairs(100)
    found = quiet(task, x[:, 0], y[:, 0], methods=cheap(task))
    assert found.fitted["neighbours"].decide(x[:, 0]).dtype == np.float64
    assert found.best == "neighbours"


# ---- what does not work is kept


def test_a_refusal_and_a_failure_are_told_and_do_not_lose_the_others():
    task, (x, y) = newsvendor(), pairs(100)
    made = {"no": Refuses(task), "broken": Fails(task), **cheap(task)}
    found = quiet(task, x, y, methods=made)
    assert found.refused == {"no": "Refuses needs a linear cost."}
    assert found.failed == {"broken": "RuntimeError: the loss became nan"}
    assert sorted(found.fitted) == ["constant", "neighbours"]
    assert "no refused: Refuses needs a linear cost." in str(found)
    assert "broken failed: RuntimeError: the loss became nan" in str(found)
    with pytest.raises(KeyError, match="'no' did not decide: Refuses needs a linear cost"):
        found["no"]
    with pytest.raises(KeyError, match="'DF2' is none of 'neighbours', 'constant'"):
        found.pair("constant", "DF2")


def test_decisions_that_the_task_does_not_allow_or_price_are_failures():
    task, (x, y) = newsvendor(), pairs(100)
    made = {
        "far": Told(task, lambda x: x[:, :1] + 99),
        "two": Told(newsvendor(2), lambda x: x),
        "constant": cs.Constant(task),
    }
    found = quiet(task, x, y, methods=made)
    assert "returned a decision outside the feasible set" in found.failed["far"]
    assert "'two' decides 2 numbers, but the task that pays takes 1" in found.failed["two"]

    root = cs.Task(lambda y, a: (4 - y - a).sqrt().sum(-1), cs.Box(0.0, 2.0, dim=1))
    y = y.clip(max=1.5)
    y[90] = 3.5  # one test row, which an action above 0.5 cannot be priced at
    made = {"low": Told(root, lambda x: 0 * x[:, :1]), "high": Told(root, lambda x: 1 + x[:, :1])}
    found = quiet(root, x, y, methods=made)
    assert found.failed == {"high": "1 of its costs on the test rows are not finite."}
    assert found.best == "low"


def test_if_all_fail_the_error_says_why():
    task, (x, y) = newsvendor(), pairs(100)
    with pytest.raises(RuntimeError, match=r"none of 2 did\. a: Refuses needs .* b: RuntimeError"):
        quiet(task, x, y, methods={"a": Refuses(task), "b": Fails(task)})


# ---- bad input


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"test": 0.0}, ValueError, "between 0 and 1, but got 0.0"),
        ({"test": 1.5}, ValueError, "between 0 and 1, but got 1.5"),
        ({"seeds": 0}, ValueError, "seeds of at least 1, but got 0"),
        ({"gap": -1}, ValueError, "gap of at least 0, but got -1"),
        ({"block": 0}, ValueError, "block of at least 1, but got 0"),
        ({"block": 15}, ValueError, "two blocks of 15 rows .* 64, 16 and 20"),
        ({"gap": 70}, ValueError, "gap=70 make 0, 2 and 20. Bring more rows"),
        ({"test": 0.99}, ValueError, "test=0.99, origins=1 and gap=0 make 1, 0 and 99"),
        ({"methods": {}}, TypeError, "methods by name, .* but got {} of type dict"),
        ({"methods": [1]}, TypeError, r"but got \[1\] of type list. Leave methods out"),
        ({"methods": {"a": cs.Constant}}, TypeError, "'a' is <class .* of type ABCMeta"),
        (
            {"methods": {"a": cs.Constant(newsvendor())}, "training": BRIEF},
            ValueError,
            "either methods or the training",
        ),
    ],
    ids=range(12),
)
def test_bad_settings_are_answered_in_words(monkeypatch, settings, error, words):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # it would speak first
    with pytest.raises(error, match=words):
        quiet(newsvendor(), *pairs(100), **settings)


def test_bad_rows_are_answered_in_words():
    task, (x, y) = newsvendor(), pairs(100)
    with pytest.raises(ValueError, match="same number of rows, but have 100 and 99"):
        quiet(task, x, y[1:], methods=cheap(task))
    with pytest.raises(
        ValueError, match=r"8 rows with test=0.2, origins=1 and gap=0 make 5, 1 and 2"
    ):
        quiet(task, x[:8], y[:8], methods=cheap(task))
    y[95] = np.nan
    with pytest.raises(ValueError, match=r"Y needs numbers that are finite .* row 95"):
        quiet(task, x, y, methods=cheap(task))


# ---- words


def standing(name, costs, above, model, sd=None, seconds=1.0):
    costs = np.asarray(costs, dtype=float)
    return Standing(
        name, float(costs.mean()), 0.1, None, 3, sd, Difference(*above), seconds, 0.1, model, costs
    )


def row_of(*found, rows=100):
    """Standings with known differences to the first."""
    return [
        standing(name, np.full(rows, 10 + above[0]), above, model, **more)
        for name, above, model, more in found
    ]


TASK = newsvendor()
NOTHING = (0.0, 0.0, 0.0)


def test_a_tie_goes_to_the_simpler_with_the_numbers():
    found = row_of(
        ("DF2", NOTHING, cs.DF2(TASK), {}),
        ("Gaussian", (0.03, -0.01, 0.08), cs.TwoStage(TASK), {}),
        ("constant", (3.0, 2.0, 4.0), cs.Constant(TASK), {}),
    )
    assert recommend(found, "simple").name == "Gaussian"
    assert advise(found, "simple") == (
        "Use Gaussian, the simplest method that is not clearly worse than DF2, whose mean cost of "
        "10.00 is the lowest. With Gaussian it is higher by 0.30 % [-0.10 %, 0.80 %], that is "
        "0.030 [-0.010, 0.080]. So Gaussian may cost up to 0.80 % more, and may save up to 0.10 %."
    )


def test_a_tie_goes_to_the_lowest_mean_and_the_price_of_the_other_choice_is_named():
    for high, words in ((1.3, "13 %"), (0.21, "2.1 %")):
        found = row_of(
            ("DF2", NOTHING, cs.DF2(TASK), {}),
            ("neighbours", (0.1, -0.1, high), cs.NearestNeighbours(TASK), {}),
        )
        assert recommend(found).name == "DF2"
        assert advise(found).startswith(
            "Use DF2: the mean cost of 10.00 is the lowest. With neighbours, the simplest that is "
            "not clearly worse, it is higher by 1"
        )
        assert advise(found).endswith(
            f"So neighbours instead may cost up to {words} more, and may save up to 1.0 %."
        )


def test_the_cheapest_is_advised_where_it_is_the_simpler_of_a_tie():
    found = row_of(
        ("Gaussian", NOTHING, cs.TwoStage(TASK), {}),
        ("DF2", (0.03, -0.01, 0.08), cs.DF2(TASK), {}),
        ("mixture", (0.04, -0.02, 0.1), cs.TwoStage(TASK, cs.Mixture(3)), {}),
    )
    words = (
        "Use Gaussian: the mean cost of 10.00 is the lowest. With DF2, not clearly worse, it is "
        "higher by 0.30 % [-0.10 %, 0.80 %], that is 0.030 [-0.010, 0.080]. So DF2 instead may "
        "cost up to 0.80 % more, and may save up to 0.10 %. Not clearly worse either: mixture."
    )
    assert advise(found) == advise(found, "simple") == words


def test_a_clear_advantage_is_worth_the_less_simple_method():
    found = row_of(
        ("DF2", NOTHING, cs.DF2(TASK), {"sd": 0.01}),
        ("Gaussian", (0.5, 0.3, 0.7), cs.TwoStage(TASK), {"sd": 0.01}),
    )
    assert advise(found) == (
        "Use DF2: the mean cost of 10.00 is clearly the lowest. With Gaussian, the next, it is "
        "higher by 5.0 % [3.0 %, 7.0 %], that is 0.50 [0.30, 0.70]."
    )
    unsure = row_of(
        ("DF2", NOTHING, cs.DF2(TASK), {"sd": 0.6}),
        ("Gaussian", (0.5, 0.3, 0.7), cs.TwoStage(TASK), {"sd": 0.01}),
    )
    assert advise(unsure).endswith(
        "But the mean over seeds is itself unsure by about 0.35, which is not small beside that: "
        "run more seeds."
    )


def test_few_rows_one_method_equals_and_costs_near_zero_have_their_words():
    few = row_of(("DF2", NOTHING, cs.DF2(TASK), {}), rows=12)
    assert advise(few) == (
        "Use DF2: no other method decided. The mean cost is 10.00. There are only 12 test "
        "rows: more data is needed for certainty."
    )
    zero = [standing("a", np.zeros(50), NOTHING, cs.DF2(TASK)),
            standing("b", np.ones(50), (1.0, 0.5, 1.5), cs.DF2(TASK))]  # fmt: skip
    assert advise(zero).endswith("With b, the next, it is higher by 1.0 [0.5, 1.5].")


def test_methods_are_ranked_from_constant_to_df2_and_then_by_time():
    order = [
        cs.Constant(TASK),
        cs.NearestNeighbours(TASK),
        cs.TwoStage(TASK, cs.Point()),
        cs.SafetyStock(TASK),
        cs.RandomForest(TASK),
        cs.TwoStage(TASK, cs.Mixture(1)),
        cs.TwoStage(TASK, cs.Mixture(3)),
        cs.DF2.quick(TASK),
        cs.DF2(TASK),
    ]
    found = row_of(*((str(i), (0.0, -1.0, 1.0), m, {"seconds": 9.0}) for i, m in enumerate(order)))
    found += row_of(
        ("fast", (0.0, -1.0, 1.0), Told(TASK), {"seconds": 0.1}),
        ("slow", (0.0, -1.0, 1.0), cs.PolicyNet(TASK), {"seconds": 5.0}),
    )
    left = found[::-1]
    told = []
    while left:
        told.append(recommend(left, "simple").name)
        left = [s for s in left if s.name != told[-1]]
    assert told == ["0", "1", "2", "3", "4", "5", "6", "7", "8", "fast", "slow"]


def test_the_table_has_a_line_for_each_method_and_ends_with_the_advice():
    task, (x, y) = newsvendor(), pairs(200)
    found = quiet(task, x, y, methods={**cheap(task), "g": gaussian(task)}, seeds=2)
    lines = str(found).splitlines()
    assert lines[0].startswith("128 rows to learn from, 32 to choose the epoch on, the last 40 to")
    assert [line.split()[0] for line in lines[3:6]] == [s.name for s in found.standings]
    assert lines[2].split() == ["method", "cost", "error", "regret", "sd", "of", "seeds", "above",
                                "the", "best", "fit", "decide"]  # fmt: skip
    assert lines[-1] == found.advice
    assert found.standings[0].above_best == Difference(0.0, 0.0, 0.0)
    costs = [s.cost for s in found.standings]
    assert costs == sorted(costs)
    pair = found.pair("constant", "neighbours")
    assert pair.mean == pytest.approx(found["constant"].cost - found["neighbours"].cost)
    back = found.pair("neighbours", "constant")
    assert (back.low, back.high) == pytest.approx((-pair.high, -pair.low), rel=1e-6)


def test_the_usual_methods_are_these():
    made = cs.default_methods(TASK, BRIEF)
    assert list(made) == ["constant", "nearest neighbours", "residual SAA", "point forecast",
                          "safety stock", "random forest", "policy network", "Gaussian forecast",
                          "mixture forecast", "DF2 (one network)", "DF2", "blend"]  # fmt: skip
    assert [made[n].draws for n in list(made)[7:9]] == [1000, 1000]
    assert sorted(made, key=lambda name: usual_time(made[name])) == list(made)
    assert all(m.training is BRIEF for m in made.values() if hasattr(m, "training"))


@pytest.mark.long
def test_the_usual_methods_are_compared_and_one_is_advised():
    x, y = pairs(80)
    found = quiet(newsvendor(), x, y, seeds=1, training=cs.Training(epochs=1))
    assert len(found.standings) == 12
    assert not found.failed
    assert found.recommended in found.fitted
    assert "more data is needed for certainty" in found.advice


def test_origins_fit_again_before_each_part_of_the_test_rows():
    x = torch.arange(100.0)[:, None]
    task = cs.SeparableTask(lambda y, a: (y - a) ** 2, cs.Box(0.0, 100.0, dim=1))
    constant = cs.Constant(task)
    result = cs.compare(
        task, x, x, methods={"constant": constant}, test=0.4, origins=2, block=5, progress=False
    )
    # by hand: 60 rows before the first part, of which 48 are learned from, then 80 and 64
    expected = [((x[60:80] - x[:48].mean()) ** 2).mean(), ((x[80:] - x[:64].mean()) ** 2).mean()]
    standing = result["constant"]
    assert standing.by_origin == pytest.approx([float(cost) for cost in expected], rel=1e-4)
    assert standing.cost == pytest.approx(sum(standing.by_origin) / 2)
    assert len(standing.costs) == result.test_rows == 40
    assert (result.train_rows, result.val_rows) == (64, 16)
    assert "origin 2" in str(result)
    assert float(result.fitted["constant"].decide(x[:1])) == pytest.approx(31.5, abs=0.01)
    once = cs.compare(task, x, x, methods={"constant": constant}, test=0.3, progress=False)
    assert "origin" not in str(once)
    with pytest.raises(ValueError, match="origins of at least 1"):
        cs.compare(task, x, x, methods={"constant": constant}, origins=0, progress=False)
