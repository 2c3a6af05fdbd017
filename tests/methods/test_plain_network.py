from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from costscape import (
    MLP,
    Auto,
    Box,
    Budget,
    Finite,
    MirrorDescent,
    Polytope,
    ProjectedAdam,
    SeparableTask,
    Simplex,
    Task,
    Training,
    load,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.methods.plain_network import PlainNetwork
from costscape.models.cost_network import Free, InputConvex

TWO = Training(epochs=2, batch_size=32, progress=False)
FAST = ProjectedAdam(steps=20, starts=1)
SETS = {
    "box": lambda: Box(0.0, 2.0, dim=3),
    "simplex": lambda: Simplex(dim=3),
    "budget": lambda: Budget(total=2.0, dim=3),
    "capped": lambda: Budget(total=2.0, dim=3, upper=[0.5, 1.0, 1.5]),
    "polytope": lambda: Polytope(
        A=[[1.0, 1.0, 1.0]], b=[1.5], G=[[-1, 0, 0], [0, -1, 0], [0, 0, -1]], h=[0, 0, 0]
    ),
    "finite": lambda: Finite([[0.0, 0.0, 0.0], [1.0, 0.5, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]),
}


def joint(y, a):
    """Not a sum over coordinates: the total is priced too. Convex in a."""
    return (y - a).square().sum(-1) + 0.5 * (a.sum(-1) - 1).square()


def small(task, training=TWO, **settings):
    plain = {"encoder": partial(MLP, 2, hidden=8), "hidden": 8, "actions": 4, "solver": FAST}
    return PlainNetwork(task, **{**plain, "training": training, **settings})


# ---- what is learned


@pytest.mark.parametrize("weighting", [True, False], ids=["weighted", "plain"])
@pytest.mark.long
def test_a_quadratic_surface_is_recovered(demand, weighting):
    # y = 1 + x_0 + u: E (y - a)^2 = (1.5 + x_0 - a)^2 + 1 / 12, whatever x_1
    task = SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, 4.0, dim=1), convex=True)
    x, y = demand(600)
    told = Training(epochs=25, batch_size=16, lr=1e-2, patience=25, smooth=5, progress=False)
    model = PlainNetwork(
        task, hidden=32, actions=16, weighting=weighting, ema=0.98, training=told
    ).fit(x, y)
    new, _ = demand(100, seed=1)
    a = torch.linspace(0.5, 3.5, 13)[None, :, None]
    truth = (1.5 + new[:, :1] - a[..., 0]).square() + 1 / 12
    error = (model.expected_cost(new, a) - truth).square().mean().sqrt()
    assert float(error) < 0.25 * float(truth.std())
    assert float((model.decide(new) - 1.5 - new[:, :1]).abs().mean()) < 0.17  # a constant: 0.25


def test_two_valleys_are_learned_where_the_cost_has_two(demand):
    # the cost falls towards both ends of C, further on the right
    def cost(y, a):
        return -(a[..., 0].square()) - 0.2 * a[..., 0] * y[..., 0]

    task = Task(cost, Box(-1.0, 1.0, dim=1))
    x, y = demand(300)
    told = Training(epochs=20, batch_size=16, patience=20, smooth=5, progress=False)
    model = PlainNetwork(task, hidden=32, ema=0.98, weighting=False, training=told).fit(x, y)
    ends = torch.tensor([[-1.0], [0.0], [1.0]])[None]
    left, middle, right = model.expected_cost(x[:50], ends).unbind(1)
    assert (left < middle - 0.2).all()
    assert (right < left - 0.2).all()
    assert float((model.decide(x[:50]) - 1).abs().max()) < 0.05


# ---- the form of the network


@pytest.mark.parametrize(
    ("promised", "asked", "kind"),
    [
        (True, None, InputConvex),
        (True, True, InputConvex),
        (True, False, Free),
        (False, None, Free),
    ],
)
def test_the_network_is_convex_where_the_task_is_unless_told(demand, promised, asked, kind):
    task = Task(joint, SETS["box"](), convex=promised)
    model = small(task, convex=asked).fit(*demand(40, dim=3))
    assert isinstance(model.model_.head, kind)


def test_convexity_that_the_task_does_not_promise_is_refused():
    with pytest.raises(ValueError, match="convex=True needs a cost that is convex in a, but this"):
        PlainNetwork(Task(joint, SETS["box"]()), convex=True)


def test_a_sum_over_coordinates_is_learned_as_one_unless_told(newsvendor, demand):
    x, y = demand(40, dim=3)
    assert small(newsvendor(3)).fit(x, y).model_.head.groups == 3
    assert small(newsvendor(3), by_coordinate=False).fit(x, y).model_.head.groups == 1


# ---- the contract


@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_keeps_the_contract_on_the_synthetic_problems(name):
    p = PROBLEMS[name](0)
    model = PlainNetwork(p.task, hidden=16, training=TWO, solver=FAST)
    check_method(model, p.data.train.x[:150], p.data.train.y[:150])


@pytest.mark.parametrize("kind", SETS)
def test_keeps_the_contract_on_every_set(demand, kind):
    solver = Auto() if kind == "finite" else FAST
    check_method(small(Task(joint, SETS[kind](), convex=True), solver=solver), *demand(60, dim=3))


@pytest.mark.parametrize("kind", SETS)
def test_no_sampled_action_is_cheaper_than_the_decision(demand, kind):
    task = Task(joint, SETS[kind](), convex=True)
    x, y = demand(40, dim=3)
    solvers = {"finite": Auto(), "simplex": MirrorDescent(steps=300)}
    model = small(task, solver=solvers.get(kind, ProjectedAdam(steps=100))).fit(x, y)
    tried = task.feasible.sample(300, torch.Generator().manual_seed(0))
    g = model.expected_cost(x[:5], tried[None])
    slack = 1e-3 * (g.max(1).values - g.min(1).values)
    chosen = model.expected_cost(x[:5], model.decide(x[:5]))
    assert (chosen <= g.min(1).values + slack).all()


def test_expected_costs_come_in_the_form_of_x(newsvendor, demand):
    x, y = demand(40)
    model = small(newsvendor()).fit(x, y)
    a = torch.rand(40, 7, 1)
    several = model.expected_cost(x, a)
    assert several.shape == (40, 7)
    assert torch.allclose(model.expected_cost(x, a[:, 3]), several[:, 3], atol=1e-5)
    assert torch.allclose(model.surface(x)(a).detach(), several)
    assert isinstance(model.expected_cost(x.numpy(), a.numpy()), np.ndarray)
    with pytest.raises(ValueError, match=r"a needs shape \(40, 1\), one action for each x"):
        model.expected_cost(x, a[:3])


def test_a_double_task_is_fitted_in_double_precision(newsvendor, demand, tmp_path):
    task = newsvendor(2).double()
    x, y = (v.double() for v in demand(50, dim=2))
    model = small(task).fit(x, y)
    assert {v.dtype for v in model.model_.state_dict().values()} == {torch.float64}
    a = model.decide(x)
    assert a.dtype == torch.float64
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", task, method=PlainNetwork)
    assert torch.equal(again.decide(x), a)


def test_a_broken_fit_goes_on_to_the_same_bits(newsvendor, demand, tmp_path):
    x, y = demand(80)
    told = replace(TWO, epochs=4, decay=False)
    whole = small(newsvendor(), told).fit(x, y)
    path = tmp_path / "c"
    small(newsvendor(), replace(told, epochs=2, checkpoint=path)).fit(x, y)
    resumed = small(newsvendor(), replace(told, checkpoint=path)).fit(x, y)
    assert torch.equal(resumed.decide(x), whole.decide(x))
    assert resumed.history_ == whole.history_


def test_equal_labels_and_costs_without_spread_can_be_fitted(demand):
    x, y = demand(40)
    task = Task(lambda y, a: 0 * (y + a).sum(-1), Box(0.0, 1.0, dim=1))
    assert small(task).fit(x, torch.ones_like(y)).decide(x).isfinite().all()


# ---- what is wrong is said


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden": 0}, "hidden to be a whole number of at least 1, but got 0"),
        ({"actions": 0}, "actions to be a whole number of at least 1 or None, but got 0"),
        ({"ema": 1.0}, r"ema .* above 0 and below 1 .* got 1\.0"),
    ],
    ids=["hidden", "actions", "ema"],
)
def test_settings_out_of_range_are_refused(newsvendor, settings, said):
    with pytest.raises(ValueError, match=f"PlainNetwork needs {said}"):
        PlainNetwork(newsvendor(), **settings)


def test_costs_that_are_not_finite_are_refused_before_the_fit(demand):
    task = Task(lambda y, a: (a[..., 0] - 3).log() + 0 * y[..., 0], Box(0.0, 4.0, dim=1))
    with pytest.raises(ValueError, match="must be finite on the data and the feasible set"):
        small(task).fit(*demand(60))


def test_a_solver_that_does_not_serve_says_why(newsvendor, demand):
    with pytest.raises(TypeError, match="MirrorDescent needs a Simplex or a Budget"):
        small(newsvendor(), solver=MirrorDescent()).fit(*demand(40))
