from dataclasses import fields, replace

import pytest
import torch

from costscape import (
    DF2,
    Absolute,
    Blend,
    CrossFit,
    Mixture,
    RandomForest,
    Training,
    TwoStage,
    evaluate,
)
from costscape.bench import FAMILIES, METHODS, PROBLEMS, method_of
from costscape.bench.contest_tables import usual_names
from costscape.bench.network_terms import network_terms
from costscape.bench.problem_names import problem_named
from costscape.checks import check_method, check_set
from costscape.data import Splits
from costscape.models import encoder_for, mean_level
from costscape.problems.files.sources import find
from costscape.task import Refusal

NAMES = [*METHODS, *(f"{family}2" for family in FAMILIES)]
NAMES.remove("proportional")  # for one kind of problem, and tested with it


TENNET = find("wind")
needs_tennet = pytest.mark.skipif(TENNET is None, reason="TenneT's public file is not here")
PJM = find("pjm")
needs_pjm = pytest.mark.skipif(PJM is None, reason="PJM's public files are not here")
NEEDS = {"wind": needs_tennet, "scheduling": needs_pjm, "scheduling-measured": needs_pjm}
WITH_DATA = [pytest.param(n, marks=NEEDS[n]) if n in NEEDS else n for n in PROBLEMS]


@pytest.fixture(scope="module")
def problems():
    """Every problem whose data are here, made once."""
    absent = [
        *([] if TENNET else ["wind"]),
        *([] if PJM else ["scheduling", "scheduling-measured"]),
    ]
    return {name: make(0) for name, make in PROBLEMS.items() if name not in absent}


def cut(problem, rows=60):
    parts = (problem.data.train, problem.data.val, problem.data.test)
    return replace(problem, data=Splits(*(part[:rows] for part in parts)))


@pytest.mark.parametrize("name", WITH_DATA)
def test_a_problem_has_data_in_three_parts_and_says_whose(problems, name):
    p = problems[name]
    for part in vars(p.data).values():
        assert len(part) > 30
        assert part.x.isfinite().all()
        assert part.y.isfinite().all()
        assert part.y.ndim == 1 + p.task.y_dims
        assert part.y.shape[-1] == p.task.feasible.dim
    assert len(p.source) > 5
    assert p.points > 0


@pytest.mark.parametrize("name", WITH_DATA)
def test_the_parts_of_a_problem_share_no_moment(problems, name):
    data = problems[name].data
    if data.train.dates is not None:
        assert data.train.dates[-1] < data.val.dates[0]
        assert data.val.dates[-1] < data.test.dates[0]
    x = torch.cat([part.x.flatten(1) for part in vars(data).values()])
    pairs = torch.cat([x, torch.cat([part.y.flatten(1) for part in vars(data).values()])], 1)
    moved = (pairs - pairs[0]).abs().sum(1) > 0
    assert moved.float().mean() > 0.9


@pytest.mark.parametrize("name", [n for n in WITH_DATA if n not in ("vaccine", "vaccine-wave")])
def test_the_task_of_a_problem_prices_its_data_and_knows_the_best_action(problems, name):
    p = problems[name]
    check_set(p.task.feasible)
    y = p.data.val.y[:100]
    a = p.task.feasible.sample(50, torch.Generator().manual_seed(0))
    paid = p.task.cost(y[:, None], a)
    assert paid.shape == (100, 50)
    assert paid.isfinite().all()
    assert torch.allclose(paid, p.task.terms(y[:, None], a).sum(-1), rtol=1e-5, atol=1e-4)
    best = p.task.hindsight(y)
    assert p.task.feasible.contains(best).all()
    assert (p.task.cost(y, best)[:, None] <= paid + 1e-4).all()


@pytest.mark.parametrize("name", WITH_DATA)
def test_the_encoder_of_a_problem_reads_its_features(problems, name):
    p = problems[name]
    net = encoder_for(p.encoder, tuple(p.data.train.x.shape[1:]))
    assert net(p.data.train.x[:3]).shape == (3, net.out_features)


def test_the_seed_of_a_synthetic_problem_makes_its_data_and_its_truth():
    make = PROBLEMS["synthetic-convex"]
    a, b, c = make(0), make(0), make(1)
    x = a.data.test.x[:5]
    assert torch.equal(a.data.train.y, b.data.train.y)
    assert not torch.equal(a.data.train.y, c.data.train.y)
    assert torch.equal(a.truth.best(x)[1], b.truth.best(x)[1])
    assert not torch.equal(a.truth.best(x)[1], c.truth.best(x)[1])


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("name", WITH_DATA)
def test_every_method_can_be_made_for_every_problem(problems, name, method):
    p = problems[name]
    made = method_of(method)(p, 5)
    assert made.task is p.task
    assert made.seed == 5


def test_every_maker_says_what_it_makes():
    for make in (*METHODS.values(), *FAMILIES.values()):
        assert make.words


def test_doses_in_proportion_are_a_method_of_the_vaccine_problems_alone(problems):
    p = problems["vaccine"]
    made = method_of("proportional")(p, 0)
    train, val, test = p.data.train[:2], p.data.val[:2], p.data.test[:2]
    a = made.fit(train.x, train.y, val=(val.x, val.y)).decide(test.x)
    people = p.task.f.population
    assert torch.allclose(a, (5 * people / people.sum()).expand(2, -1))
    with pytest.raises(Refusal, match="vaccine"):
        method_of("proportional")(problems["wind-farm"], 0)


def quick(method):
    """The same method, fitted in a blink."""
    small = {
        "training": Training(epochs=1, progress=False, device="cpu"),
        "points": 8,
        "actions": 4,
        "folds": min(2, getattr(method, "folds", 1)),
        "draws": 10,
        "samples": 6,
        "rounds": 1,
        "steps": 2,
        "trees": 10,
    }
    known = {f.name for f in fields(method)}
    return replace(method, **{k: v for k, v in small.items() if k in known})


# tests/methods checks the contract of all other classes
OWN_SETTINGS = ["df2", "df2-quick", "df2-paper", "blend", "residual-saa-knn", "dfl-gmm2"]


@pytest.mark.parametrize("method", [*OWN_SETTINGS, "wsaa-knn", "constant"])
def test_named_methods_keep_the_contract(problems, method):
    p = problems["synthetic-nonconvex"]
    train = p.data.train[:70]
    check_method(quick(method_of(method)(p, 0)), train.x, train.y)


@pytest.mark.parametrize("method", ["df2-quick", "two-stage-gmm2", "policy-net", "wsaa-knn"])
def test_methods_are_scored_by_regret_and_gap(problems, method):
    p = cut(problems["synthetic-convex"])
    train, val, test = p.data.train, p.data.val, p.data.test
    made = quick(method_of(method)(p, 0)).fit(train.x, train.y, val=(val.x, val.y))
    result = evaluate(made, test.x, test.y, p.truth)
    assert result.cost > result.regret > 0
    assert result.gap > 0


@pytest.mark.parametrize("k", [1, 12, 1000])
def test_a_family_has_a_method_for_every_whole_number(problems, k):
    p = problems["synthetic-convex"]
    for family in FAMILIES:
        assert method_of(f"{family}{k}")(p, 0).forecast == Mixture(k)


@pytest.mark.parametrize(
    "name", ["two-stage-gmm", "two-stage-gmm0", "df3", "dfl-gmm1.5", "df2-gmm3"]
)
def test_an_unknown_method_is_told_what_there_is(name):
    with pytest.raises(ValueError, match=r"There are df2, .* two-stage-gmmK, .* two-stage-gmm10"):
        method_of(name)


def test_the_papers_method_gets_the_papers_sizes(problems):
    p = problems["wind-farm"]
    made = method_of("df2-paper")(p, 0)
    assert isinstance(made, DF2)
    assert (made.points, made.actions, made.folds) == (500, 100, 1)
    assert made.outcomes == Absolute()
    assert made.encoder is p.encoder
    assert made.training == replace(p.training, lr=1e-3, decay=False)
    assert made.choose_epoch  # as for all others


def test_the_named_df2s_are_cross_fitted_quick_and_blended(problems):
    p = problems["vaccine"]
    whole, one = method_of("df2")(p, 3), method_of("df2-quick")(p, 3)
    assert (whole.folds, one.folds) == (4, 1)
    assert whole.encoder is one.encoder is p.network
    assert replace(whole, folds=1) == one
    made = method_of("blend")(p, 3)
    assert isinstance(made, Blend)
    assert made.methods is None
    assert whole.solver is one.solver is made.solver is p.solver


def test_any_method_with_scenarios_can_be_cross_fitted(problems):
    p = problems["inventory"]
    forest = method_of("wsaa-forest+crossfit")(p, 5)
    assert isinstance(forest, CrossFit)
    assert isinstance(forest.method, RandomForest)
    assert (forest.folds, forest.method.seed) == (4, 5)
    mixture = method_of("two-stage-gmm3+levels+crossfit")(p, 5)
    assert mixture.method == method_of("two-stage-gmm3+levels")(p, 5)
    assert isinstance(mixture.method, TwoStage)
    with pytest.raises(TypeError, match="CrossFit mixes scenarios, and PolicyNet gives none"):
        method_of("policy-net+crossfit")(p, 5)
    with pytest.raises(ValueError, match="There is no method named 'df3'"):
        method_of("df3+crossfit")


def test_methods_with_levels_see_outcomes_relative_to_what_the_problem_says(problems):
    item, wave = problems["inventory"], problems["vaccine-wave"]
    assert method_of("two-stage-gmm1+levels")(item, 0).level is mean_level
    assert method_of("dfl-pe+levels")(wave, 0).level is wave.level
    assert method_of("dfl-pe")(wave, 0).level is None
    with pytest.raises(
        ValueError, match=r"named 'constant\+levels': Constant has no setting level"
    ):
        method_of("constant+levels")(item, 0)


def test_a_problem_may_say_how_often_the_validation_rows_are_scored(problems):
    made = method_of("two-stage-pe")(problems["vaccine"], 0)
    assert made.training.score_every == problems["vaccine"].score_every == 5
    crossfit = method_of("two-stage-pe+crossfit")(problems["vaccine"], 0)
    assert crossfit.method.training.score_every == 5


@pytest.mark.parametrize(
    "problem",
    ["synthetic-convex", "wind-farm", "shortest-path-deg4", "cubic-top1-linear", "zoo-series"],
)
def test_all_networks_of_a_problem_have_one_encoder_and_one_training(problem):
    p = problem_named(problem)(0)
    names = [name for name in usual_names() if name not in ("blend", "proportional", "df2-paper")]
    terms = {name: network_terms(method_of(name)(p, 0), p.data.train) for name in names}
    networks = {name: found for name, found in terms.items() if found is not None}
    assert len(networks) > 15
    linear = networks.pop("two-stage-linear-gmm3")  # has no encoder, which is its point
    assert linear["rate"] == 0.01
    ours = networks["df2"]
    assert ours["rate"] == (0.01 if problem == "cubic-top1-linear" else 0.003)
    assert all(found == ours for found in networks.values())
    assert all(linear[key] == ours[key] for key in ours.keys() - {"encoder", "dropout", "rate"})


def test_all_networks_of_the_vaccine_problems_have_one_rate():
    if find("mobility") is None:
        pytest.skip("the public files of trips in Japan are not here")
    p = problem_named("vaccine-wave")(0)
    names = [name for name in usual_names() if name not in ("two-stage-linear-gmm3", "df2-paper")]
    found = [network_terms(method_of(name)(p, 0), p.data.train) for name in names]
    assert {terms["rate"] for terms in found if terms is not None} == {0.001}
