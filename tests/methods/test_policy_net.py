from dataclasses import replace
from functools import partial

import jaxtyping
import pytest
import torch

from costscape import (
    LSTM,
    MLP,
    Box,
    Budget,
    Finite,
    Polytope,
    SeparableTask,
    Simplex,
    Task,
    Training,
    load,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.policy_net import PolicyNet, policy_loss

TWO = Training(epochs=2, batch_size=32, progress=False)
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
    """Not a sum over coordinates: the total is priced too."""
    return (y - a).square().sum(-1) + 0.5 * (a.sum(-1) - 1).square()


def small(task, training=TWO, **settings):
    return PolicyNet(
        task, **{"encoder": partial(MLP, 2, hidden=8), "training": training, **settings}
    )


# ---- what is learned


@pytest.mark.parametrize(("under", "over", "rank"), [(3.0, 1.0, 0.75), (1.0, 4.0, 0.2)])
def test_the_policy_is_the_quantile(newsvendor, demand, under, over, rank):
    # y = 1 + x_0 + u: the best stock is 1 + rank + x_0, whatever x_1; the mean would be 1.5 + x_0
    x, y = demand(800)
    told = Training(epochs=25, progress=False)
    model = PolicyNet(newsvendor(under=under, over=over), training=told, ema=0.98).fit(x, y)
    new, _ = demand(300, seed=1)
    assert float((model.decide(new) - 1 - rank - new[:, :1]).abs().mean()) < 0.1


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_the_cost_do_not_matter(demand, unit):
    x, y = demand(60)
    box = Box(0.0, 4.0, dim=1)
    one = small(SeparableTask(lambda y, a: (y - a) ** 2, box)).fit(x, y).decide(x)
    other = small(SeparableTask(lambda y, a: unit * (y - a) ** 2, box)).fit(x, y).decide(x)
    assert torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("kind", ["simplex", "budget", "capped", "polytope"])
def test_on_a_set_with_a_sum_the_policy_is_the_projection_of_the_mean(demand, kind):
    # the cheapest a for squares is the point of C nearest to E[y | x]
    c = SETS[kind]()
    task = SeparableTask(lambda y, a: (y - a) ** 2, c, convex=True)
    x, _ = demand(500)
    mean = torch.cat([x, 1 - x[:, :1]], 1)
    y = mean + 0.1 * torch.randn(500, 3)
    told = Training(epochs=30, progress=False)
    model = PolicyNet(task, training=told, ema=0.98).fit(x, y)
    assert float((model.decide(x) - c.project(mean)).abs().mean()) < 0.06


def test_a_policy_that_starts_stuck_at_a_vertex_comes_back():
    c = Budget(total=2.0, dim=2, upper=0.9)
    task = Task(lambda y, a: (y - a).square().sum(-1), c)
    z = torch.full((1, 2), 5.0, requires_grad=True)
    y, scale = torch.full((1, 2), 0.3), torch.tensor(1.0)
    optimiser = torch.optim.Adam([z], lr=0.05)
    for _ in range(400):
        optimiser.zero_grad()
        policy_loss(task, z, Dataset(y, y), scale).backward()
        optimiser.step()
    assert float(policy_loss(task, z.detach(), Dataset(y, y), scale)) < 1e-3


def test_of_a_list_the_action_that_costs_least_on_average_is_taken(demand):
    task = Task(lambda y, a: (y - a).square().sum(-1), Finite([[1.2], [1.7], [2.2], [9.0]]))
    x, y = demand(600)
    training = Training(epochs=25, lr=1e-2, progress=False)
    model = PolicyNet(task, training=training, ema=0.98).fit(x, y)
    new, _ = demand(300, seed=1)
    a = model.decide(new)
    best = task.feasible.project(1.5 + new[:, :1])
    assert float((a == best).float().mean()) > 0.9
    assert {round(v, 1) for v in a[:, 0].tolist()} == {1.7, 2.2}


def test_the_loss_on_a_list_is_the_mean_cost_of_a_random_action():
    task = Task(lambda y, a: (y - a).square().sum(-1), Finite([[0.0], [3.0]]))
    z = torch.tensor([[0.0, 0.0], [torch.tensor(3.0).log(), 0.0]])
    y = torch.tensor([[1.0], [2.0]])
    loss = policy_loss(task, z, Dataset(y, y), torch.tensor(2.0))
    assert float(loss) == pytest.approx(((0.5 * 1 + 0.5 * 4) + (0.75 * 4 + 0.25 * 1)) / 2 / 2)


# ---- the contract


@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_keeps_the_contract_on_the_synthetic_problems(name):
    p = PROBLEMS[name](0)
    check_method(PolicyNet(p.task, training=TWO), p.data.train.x[:150], p.data.train.y[:150])


@pytest.mark.parametrize("kind", SETS)
def test_keeps_the_contract_on_every_set(demand, kind):
    check_method(small(Task(joint, SETS[kind]())), *demand(60, dim=3))


def test_decides_on_sequences_of_windows():
    x, y = torch.rand(40, 5, 2), torch.rand(40, 1)
    task = SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, 1.0, dim=1))
    model = PolicyNet(task, encoder=partial(LSTM, 2, hidden=4), training=TWO).fit(x, y)
    assert model.decide(x).shape == (40, 1)


@pytest.mark.parametrize("kind", SETS)
def test_a_double_task_is_fitted_in_double_precision(demand, tmp_path, kind):
    task = Task(joint, SETS[kind]()).double()
    x, y = demand(50, dim=3)
    model = small(task).fit(x.double(), y.double())
    assert {v.dtype for v in model.model_.state_dict().values()} == {torch.float64}
    a = model.decide(x.double())
    assert a.dtype == torch.float64
    assert task.feasible.contains(a).all()
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", task, method=PolicyNet)
    assert torch.equal(again.decide(x.double()), a)


def test_a_broken_fit_goes_on_to_the_same_bits(newsvendor, demand, tmp_path):
    x, y = demand(80)
    told = replace(TWO, epochs=4, decay=False)
    whole = small(newsvendor(), told).fit(x, y)
    path = tmp_path / "c"
    small(newsvendor(), replace(told, epochs=2, checkpoint=path)).fit(x, y)
    resumed = small(newsvendor(), replace(told, checkpoint=path)).fit(x, y)
    assert torch.equal(resumed.decide(x), whole.decide(x))
    assert resumed.history_ == whole.history_


def test_a_checkpoint_of_another_cost_is_refused(newsvendor, demand, tmp_path):
    x, y = demand(80)
    told = replace(TWO, checkpoint=tmp_path / "c")
    small(newsvendor(), told).fit(x, y)
    with pytest.raises(ValueError, match="another"):
        small(newsvendor(under=9.0), told).fit(x, y)


def test_the_network_may_see_x_in_its_own_units(newsvendor, demand):
    x, y = demand(60)
    model = small(newsvendor(), standardise=False).fit(x, y)
    assert "scaler.mean" not in model.model_.state_dict()
    check_method(model, x, y)


# ---- what is wrong is said


@pytest.mark.parametrize("ema", [0.0, 1.0, -1.0])
def test_an_ema_out_of_range_is_refused(newsvendor, ema):
    with pytest.raises(ValueError, match=f"PolicyNet needs ema to be .* and below 1 .* got {ema}"):
        PolicyNet(newsvendor(), ema=ema)


def test_costs_that_are_not_finite_are_refused_before_the_fit(demand):
    x, y = demand(60)
    task = Task(
        lambda y, a: (y - a).square().sum(-1).log() / (a[..., 0] > 1), Box(0.0, 4.0, dim=1)
    )
    with pytest.raises(ValueError, match="must be finite on the data and the feasible set"):
        small(task).fit(x, y)


def test_costs_that_are_not_finite_somewhere_else_stop_the_fit(demand):
    x, y = demand(60)
    middle = Box(0.0, 4.0, dim=1)

    def cost(y, a):  # NaN only at the middle of C, where the policy starts
        return (y - a).square().sum(-1) + torch.where(a[..., 0] == 2.0, torch.nan, 0.0)

    with pytest.raises(RuntimeError, match="training loss became nan in epoch 0"):
        small(Task(cost, middle)).fit(x, y)


def test_a_decision_that_is_not_a_number_is_refused(newsvendor, demand, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x, y = demand(60)
    model = small(newsvendor()).fit(x, y)
    with torch.no_grad():
        model.model_.head.bias.fill_(torch.nan)
    with pytest.raises(RuntimeError, match=r"outside the feasible set: row 0 .* \(60 such rows\)"):
        model.decide(x)
