"""Methods are estimators of scikit-learn: its own checks, its tools, and settings by name."""

import re
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import costscape as cs

BRIEF = cs.Training(epochs=1, device="cpu", progress=False)
EXPECTED = {
    "check_estimators_overwrite_params": "A copy of a tensor in the task has another joblib hash.",
    "check_do_not_raise_errors_in_init_or_set_params": "Settings are checked when they are set.",
    "check_parameters_default_constructible": "Parts such as training have a default factory.",
    "check_fit1d": "One column may be passed as a vector.",
    "check_dtype_object": "An array of objects is refused, even if all of them are numbers.",
    # refused as well, in other words or with another built-in error
    "check_complex_data": "Complex numbers are a TypeError with a sentence of ours.",
    "check_estimators_empty_data_messages": "X without columns is refused in a sentence of ours.",
    "check_fit2d_1sample": "A single row is refused in a sentence of ours.",
    "check_n_features_in_after_fitting": "Other columns are refused in ours; score has Y, not y.",
    "check_requires_y_none": "Y=None is a TypeError with a sentence of ours.",
}

# of PlainNetwork, whose solver searches a surface that one epoch leaves flat
# what a network predicts in single precision differs in the seventh digit
FLAT = {
    "check_methods_subset_invariance": "A batch is rounded otherwise than a single row.",
    "check_methods_sample_order_invariance": "A row is rounded by its place in the batch.",
}


def newsvendor(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


TASK = cs.SeparableTask(newsvendor, cs.Box(-200.0, 200.0, dim=1), convex=True)
NEIGHBOURS = cs.NearestNeighbours(TASK, k=3)
FULLY = {
    "NearestNeighbours": NEIGHBOURS,
    "DF2.quick": cs.DF2.quick(TASK, training=BRIEF),
    "TwoStage": cs.TwoStage(TASK, training=BRIEF),
    "CrossFit": cs.CrossFit(NEIGHBOURS, folds=2),
    "PlainNetwork": cs.PlainNetwork(TASK, training=BRIEF),
    "PolicyNet": cs.PolicyNet(TASK, training=BRIEF),
}
SHORTLY = {
    "DF2": cs.DF2(TASK, folds=2, training=BRIEF),
    "Blend": cs.Blend(TASK, [NEIGHBOURS, cs.NearestNeighbours(TASK, k=4)], folds=2),
    "CME": cs.CME(TASK),
    "Constant": cs.Constant(TASK),
    "DecisionForest": cs.DecisionForest(TASK, trees=2),
    "DFL": cs.DFL(TASK, training=BRIEF),
    "EGL": cs.EGL(TASK, training=BRIEF),
    "KernelSmoother": cs.KernelSmoother(TASK),
    "SafetyStock": cs.SafetyStock(TASK, training=BRIEF),
    "LANCER": cs.LANCER(TASK, rounds=1, training=BRIEF),
    "LODL": cs.LODL(TASK, loss=cs.WeightedMSE(), samples=4, training=BRIEF),
    "RandomForest": cs.RandomForest(TASK, trees=2),
    "ResidualSAA": cs.ResidualSAA(TASK),
    "SOEBM": cs.SOEBM(TASK, steps=1, training=BRIEF),
    "TaskMet": cs.TaskMet(TASK, rounds=1, steps=1, training=BRIEF),
}
EVERY = {**FULLY, **SHORTLY}


def passes(method, expected, legacy=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it inherits no class of scikit-learn, few rows, ...
        results = check_estimator(
            method, legacy=legacy, expected_failed_checks=expected, on_skip=None
        )
    return {result["check_name"] for result in results if result["status"] == "xfail"}


# ---- scikit-learn's checks


@pytest.mark.parametrize("name", FULLY)
def test_all_checks_of_scikit_learn_pass_but_those_named(name):
    failed = passes(
        FULLY[name], EXPECTED | (FLAT if name in ("PlainNetwork", "PolicyNet") else {})
    )
    may_pass = {"check_do_not_raise_errors_in_init_or_set_params"}  # few settings, none checked
    may_pass |= {"check_parameters_default_constructible"}  # no part with a default factory
    assert failed >= set(EXPECTED) - may_pass, "an exception is no longer needed"


@pytest.mark.parametrize("name", SHORTLY)
def test_the_checks_of_the_interface_pass(name):
    passes(SHORTLY[name], EXPECTED, legacy=False)


def test_no_public_method_is_left_out():
    methods = {name for name in cs.__all__ if isinstance(getattr(cs, name), type)}
    methods = {name for name in methods if issubclass(getattr(cs, name), cs.Method)}
    methods -= {"Method", "ScenarioMethod", "SurfaceMethod"}
    assert {type(method).__name__ for method in EVERY.values()} == methods


def test_scikit_learn_is_imported_only_when_it_is_needed():
    source = Path(cs.__file__).parent
    line = re.compile(r"^(?:from|import) (?:sklearn|costscape\.methods\.not_fitted)", re.M)
    found = [path for path in source.rglob("*.py") if line.search(path.read_text())]
    names = {str(path.relative_to(source)) for path in found}
    assert names == {"methods/not_fitted.py"}


# ---- settings by name


@pytest.mark.parametrize("name", EVERY)
def test_a_clone_is_an_equal_copy_and_so_is_one_of_all_settings(name):
    method = EVERY[name]
    made = clone(method)
    assert made is not method
    assert made == method
    assert type(method)(**method.get_params(deep=False)) == method
    before = {f.name: getattr(method, f.name) for f in fields(method)}
    assert made.set_params(**method.get_params()) is made
    assert made == method
    assert before == {f.name: getattr(method, f.name) for f in fields(method)}


def test_a_clone_is_unfitted_and_shares_the_task_but_no_method_inside():
    x, y = pairs(20)
    inner = cs.NearestNeighbours(TASK, k=2).fit(x, y)
    cross, blend = cs.CrossFit(inner, folds=2).fit(x, y), cs.Blend(TASK, [inner], folds=2)
    made, mixed = clone(cross), clone(blend)
    assert vars(made).keys() == {f.name for f in fields(made)}
    assert made.task is cross.task is mixed.task
    for copy in (made.method, mixed.methods[0]):
        assert copy is not inner
        assert copy.model_ is None
    made.method.set_params(k=1)
    assert cross.method.k == 2


def test_settings_of_parts_have_names_with_two_underscores():
    method = cs.CrossFit(cs.DF2.quick(TASK, training=BRIEF))
    params = method.get_params()
    assert params["method__training__epochs"] == 1
    assert params["method__target"] is method.method.target
    assert method.get_params(deep=False).keys() == {f.name for f in fields(method)}
    df2 = method.method
    method.set_params(folds=3, method__seed=5, method__training__lr=0.1)
    assert (method.folds, method.seed, method.method.training.lr) == (3, 5, 0.1)
    assert (df2.seed, df2.training) == (0, BRIEF)  # parts may be shared, so they are copied
    assert BRIEF.lr is None
    other = cs.Training(epochs=7)
    method.set_params(method__training__lr=0.2, method__training=other)
    assert method.method.training == cs.Training(epochs=7, lr=0.2)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"neighbours": 3}, r"needs settings among task, k, solver, seed, but got 'neighbours'"),
        ({"solver__speed": 3}, r"NearestNeighbours\.solver "),
        ({"k__low": 3}, r"NearestNeighbours\.k has no settings of its own, but got 'low'"),
    ],
)
def test_an_unknown_setting_is_refused(params, words):
    with pytest.raises(ValueError, match=words):
        clone(NEIGHBOURS).set_params(**params)


def test_a_refused_value_changes_nothing():
    method = cs.DF2.quick(TASK, training=BRIEF)
    with pytest.raises(ValueError, match="Training needs lr to be a number above 0"):
        method.set_params(seed=9, training__lr=-1.0)
    with pytest.raises(TypeError, match="target"):
        method.set_params(seed=9, target=3)
    assert method == FULLY["DF2.quick"]


# ---- fit, predict, score


def pairs(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 3))
    return x, 4 * x[:, 0] + rng.exponential(size=n)


def test_an_unfitted_method_raises_the_error_of_both_libraries():
    for kind in (NotFittedError, RuntimeError):
        with pytest.raises(kind, match=r"This NearestNeighbours has not been fitted"):
            NEIGHBOURS.predict(pairs()[0])
    with pytest.raises(NotFittedError):
        check_is_fitted(NEIGHBOURS)
    with pytest.raises(NotFittedError):
        NEIGHBOURS.score(*pairs())
    assert not hasattr(NEIGHBOURS, "n_features_in_")
    assert not hasattr(NEIGHBOURS, "feature_names_in_")


def test_predict_decides_and_score_is_minus_the_mean_cost():
    x, y = pairs()
    model = cs.NearestNeighbours(TASK, k=3).fit(x, y)
    check_is_fitted(model)
    a = model.predict(x)
    assert np.array_equal(a, model.decide(x))
    assert model.score(x, y) == -cs.evaluate(model, x, y).cost
    by_hand = 3 * np.maximum(y - a, 0) + np.maximum(a - y, 0)
    assert model.score(x, y) == pytest.approx(-by_hand.mean(), rel=1e-6)


def test_the_score_of_a_cost_with_context_is_that_of_its_rows():
    x, y = pairs()
    task = cs.SeparableTask(
        lambda y, a, p: (1 + p.abs()) * (y - a).relu() + (a - y).relu(),
        cs.Box(-9.0, 9.0, dim=1),
        context=[1],
    )
    model = cs.NearestNeighbours(task, k=3).fit(x, y)
    a = model.predict(x)
    by_hand = (1 + np.abs(x[:, 1])) * np.maximum(y - a, 0) + np.maximum(a - y, 0)
    assert model.score(x, y) == pytest.approx(-by_hand.mean(), rel=1e-5)


def test_a_score_of_other_outcomes_or_columns_is_refused():
    x, y = pairs()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = cs.NearestNeighbours(TASK, k=3).fit(frame, y)
    with pytest.raises(ValueError, match=r"Y needs rows of shape \(1,\), as in fit"):
        model.score(x, np.stack([y, y], 1))
    with pytest.raises(ValueError, match="order of fit"):
        model.score(frame[["b", "a", "c"]], y)


def test_columns_are_counted_and_named_where_x_is_flat():
    x, y = pairs()
    model = cs.NearestNeighbours(TASK, k=3).fit(pd.DataFrame(x, columns=["a", "b", "c"]), y)
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.fit(x, y).n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    model.fit(x[:, :2, None] + np.zeros(4), y)  # rows of 2 steps with 4 numbers each
    assert not hasattr(model, "n_features_in_")


# ---- scikit-learn's tools


def by_hand(method, x, y, splits):
    """The scores of a loop without scikit-learn's search."""
    fits = [(clone(method).fit(x[train], y[train]), test) for train, test in splits.split(x)]
    return [-cs.evaluate(model, x[test], y[test]).cost for model, test in fits]


def test_a_pipeline_is_its_steps():
    x, y = pairs()
    pipe = make_pipeline(StandardScaler(), cs.KernelSmoother(TASK, width=1.0)).fit(x, y)
    z = StandardScaler().fit(x).transform(x)
    alone = cs.KernelSmoother(TASK, width=1.0).fit(z, y)
    assert np.array_equal(pipe.predict(x), alone.decide(z))
    assert pipe.score(x, y) == alone.score(z, y)
    pipe.set_params(kernelsmoother__width=2.0)
    assert pipe[-1].width == 2.0
    assert "KernelSmoother" in pipe._repr_html_()


def test_cross_validation_is_a_loop_over_the_splits():
    x, y = pairs()
    splits = TimeSeriesSplit(3)
    scores = cross_val_score(NEIGHBOURS, x, y, cv=splits)
    assert scores.tolist() == by_hand(NEIGHBOURS, x, y, splits)
    assert NEIGHBOURS.model_ is None


def test_a_search_finds_the_setting_with_the_least_decision_cost():
    x, y = pairs(120)
    splits, sizes = TimeSeriesSplit(3), [1, 4, 24]
    search = GridSearchCV(NEIGHBOURS, {"k": sizes}, cv=splits).fit(x, y)
    scores = [np.mean(by_hand(cs.NearestNeighbours(TASK, k=k), x, y, splits)) for k in sizes]
    assert search.cv_results_["mean_test_score"] == pytest.approx(scores, rel=1e-12)
    assert len(set(scores)) == 3
    assert search.best_params_ == {"k": sizes[int(np.argmax(scores))]}
    best = cs.NearestNeighbours(TASK, **search.best_params_).fit(x, y)
    assert np.array_equal(search.predict(x), best.decide(x))


def test_a_search_reaches_settings_of_parts_within_a_pipeline():
    x, y = pairs(120)
    pipe = make_pipeline(StandardScaler(), cs.CrossFit(NEIGHBOURS, folds=2))
    search = GridSearchCV(pipe, {"crossfit__method__k": [1, 8]}, cv=TimeSeriesSplit(2)).fit(x, y)
    assert search.best_estimator_[-1].method.k == search.best_params_["crossfit__method__k"] == 8
    assert NEIGHBOURS.k == 3
