"""cs.compare with methods that fit other methods: CrossFit and Blend."""

from functools import partial

import numpy as np
import pytest

import costscape as cs
from costscape.comparison import Difference, Standing
from costscape.comparison.advice import recommend, simplicity

SMALL = partial(cs.MLP, 2, hidden=8)
quiet = partial(cs.compare, progress=False)


def terms(y, a):
    return 3 * (y - a).clamp(min=0) + (a - y).clamp(min=0)


@pytest.fixture(scope="module")
def task():
    return cs.SeparableTask(terms, cs.Box(-4.0, 8.0, dim=1), convex=True)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(100, 2))
    return x, 1 + x[:, :1] + 0.2 * rng.normal(size=(100, 1))


def gaussian(task, seed=0, **training):
    settings = cs.Training(**{"epochs": 2, **training})
    return cs.TwoStage(task, draws=20, encoder=SMALL, training=settings, seed=seed)


def test_a_cross_fitted_network_is_fitted_for_every_seed(task, pairs):
    x, y = pairs
    method = cs.CrossFit(gaussian(task, seed=7), folds=2)
    found = quiet(task, x, y, methods={"network": method}, seeds=2)
    by_hand = [
        cs.CrossFit(gaussian(task, seed=7 + i), folds=2).fit(x[:80], y[:80]) for i in (0, 1)
    ]
    costs = np.stack([cs.evaluate(model, x[80:], y[80:]).costs for model in by_hand])
    assert np.allclose(found["network"].costs, costs.mean(0), rtol=1e-6)
    assert found["network"].sd == pytest.approx(costs.mean(1).std(ddof=1), rel=1e-5)
    assert found["network"].sd > 0
    assert found.fitted["network"].method.training.progress  # as the user wrote it
    assert method.model_ is None


def test_a_cross_fitted_method_without_networks_is_fitted_once(task, pairs):
    method = cs.CrossFit(cs.NearestNeighbours(task, k=5), folds=2)
    found = quiet(task, *pairs, methods={"neighbours": method}, seeds=3)
    assert (found["neighbours"].seeds, found["neighbours"].sd) == (1, None)


def test_a_blend_keeps_the_training_and_the_first_seeds_of_its_candidates(task, pairs):
    x, y = pairs
    made = [gaussian(task, seed=1, lr=0.01), gaussian(task, seed=2, epochs=3)]
    method = cs.Blend(task, made, folds=2)
    found = quiet(task, x, y, methods={"blend": method}, seeds=1)
    by_hand = cs.Blend(task, made, folds=2).fit(x[:80], y[:80])
    assert np.array_equal(found.fitted["blend"].decide(x), by_hand.decide(x))
    again = quiet(task, x, y, methods={"blend": method}, seeds=2)
    assert (again["blend"].seeds, again["blend"].cost != found["blend"].cost) == (2, True)
    assert [m.training for m in again.fitted["blend"].methods] == [m.training for m in made]


def test_fits_inside_a_method_are_silent_and_have_separate_checkpoints(task, pairs, tmp_path):
    training = {"checkpoint": tmp_path / "kept"}
    methods = {
        "crossfit": cs.CrossFit(gaussian(task, **training), folds=2),
        "blend": cs.Blend(task, [gaussian(task, **training)], folds=2),
    }
    found = quiet(task, *pairs, methods=methods, seeds=2)
    assert len(list(tmp_path.iterdir())) == 8  # 2 methods x 2 seeds x 2 folds
    for name in methods:
        assert not any(fit.training.progress for fit in found.fitted[name].fits_)


def test_a_cross_fitted_method_is_as_simple_as_the_method_inside_it(task):
    def standing(name, model, seconds=1.0):
        costs, tie = np.full(100, 10.0), Difference(0.1, -0.1, 0.2)
        return Standing(name, 10.0, 0.1, None, 1, None, tie, seconds, 0.1, model, costs)

    neighbours = cs.NearestNeighbours(task)
    inside, outside = standing("one", neighbours), standing("four", cs.CrossFit(neighbours))
    assert simplicity(inside) == simplicity(outside)
    found = [
        standing("blend", cs.Blend(task)),
        standing("DF2", cs.DF2(task)),
        standing("Gaussian", cs.CrossFit(gaussian(task))),
        outside,
    ]
    order = []
    while found:
        order.append(recommend(found, "simple").name)
        found = [s for s in found if s.name != order[-1]]
    assert order == ["four", "Gaussian", "DF2", "blend"]
