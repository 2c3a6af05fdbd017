"""g made some rows at a time is g, and so are its gradients."""

from functools import partial

import pytest
import torch
from torch import nn

import costscape.expectation as weighted
import costscape.methods.df2.row_checkpointing as module
from costscape import DF2, Absolute, Anchored, ExpectedCost, LocationScale
from costscape.data import Dataset
from costscape.methods.df2.row_checkpointing import ByRows, learned
from costscape.methods.df2.targets import Costs, Slopes
from costscape.models import MLP
from costscape.problems import inventory

B = 65  # eight slices of 8 and one row


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 8)
    monkeypatch.setattr(weighted, "GRADIENT", 2**14)
    monkeypatch.setattr(weighted, "PART", 2**13)


def problem(form, encoder=None):
    rng = torch.Generator().manual_seed(0)
    data = Dataset(torch.rand(B, 4, generator=rng), torch.rand(B, 3, generator=rng))
    method = DF2(inventory(3), encoder, points=20, actions=8, outcomes=form)
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        model = method._network(data, form)
    return method.task, model, data


def gradients(g, model, data, a, target):
    model.zero_grad()
    loss = target.loss(g, data.y, a)
    loss.backward()
    return loss.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("form", [Anchored(), LocationScale()], ids=["anchored", "location"])
@pytest.mark.parametrize("rows", [1, B], ids=["shared", "own"])
@pytest.mark.parametrize("target", [Slopes(), Costs(), Costs(False, False)], ids=str)
def test_loss_and_gradients_are_those_of_the_whole_batch(form, rows, target):
    task, model, data = problem(form)
    a = target.actions(task, rows, 8, torch.Generator().manual_seed(1))
    g = learned(task, model, data.x)
    assert isinstance(g, ByRows)
    found = gradients(g, model, data, a, target)
    want = gradients(ExpectedCost(task, model(data.x)), model, data, a, target)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-6)


def test_no_more_than_some_rows_are_made_at_a_time():
    task, model, data = problem(Anchored())
    seen = []
    model.register_forward_hook(lambda _, args, __: seen.append(len(args[0])))
    a = task.feasible.sample(8, torch.Generator().manual_seed(1))[None]
    learned(task, model, data.x).terms(a).sum().backward()
    assert max(seen) == 8
    assert sum(seen) == 2 * B + 1  # there, back, and a look at one


def test_a_batch_that_fits_is_made_at_once(monkeypatch):
    monkeypatch.setattr(weighted, "GRADIENT", 2**27)
    task, model, data = problem(Anchored())
    seen = []
    model.register_forward_hook(lambda _, args, __: seen.append(len(args[0])))
    a = task.feasible.sample(8, torch.Generator().manual_seed(1))[None]
    learned(task, model, data.x).terms(a).sum().backward()
    assert seen == [1, B]


def test_what_is_dropped_out_is_the_same_on_the_way_back():
    task, model, data = problem(Anchored(), partial(MLP, 4, 16, dropout=0.5, noise=0.1))
    a = task.feasible.sample(8, torch.Generator().manual_seed(1))[None]
    g = learned(task, model.train(), data.x)
    before = torch.get_rng_state()
    out = g.terms(a)
    after = torch.get_rng_state()
    found = torch.autograd.grad(out.square().sum(), model.keys)
    assert torch.equal(torch.get_rng_state(), after)
    torch.set_rng_state(before)
    parts = [ExpectedCost(task, model(x)).terms(a) for x in data.x.split(8)]
    want = torch.autograd.grad(torch.cat(parts).square().sum(), model.keys)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_a_gradient_can_be_differentiated_again():
    task, model, data = problem(Anchored())
    a = task.feasible.sample(8, torch.Generator().manual_seed(1))[None]

    def twice(g):
        (first,) = torch.autograd.grad(g.terms(a).square().mean(), model.keys, create_graph=True)
        return torch.autograd.grad(first.square().sum(), model.keys)[0]

    found, want = twice(learned(task, model, data.x)), twice(ExpectedCost(task, model(data.x)))
    torch.testing.assert_close(found, want, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("case", ["shared outcomes", "few rows", "batch norm"])
def test_elsewhere_g_is_made_at_once(case):
    task, model, data = problem(Absolute() if case == "shared outcomes" else Anchored())
    if case == "batch norm":
        model.norm = nn.BatchNorm1d(3)
    x = data.x[:8] if case == "few rows" else data.x
    assert isinstance(learned(task, model, x), ExpectedCost)
