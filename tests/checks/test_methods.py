"""check_method passes every named method, and names what a careless one does."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from costscape import (
    DF2,
    Absolute,
    Anchored,
    Box,
    Constant,
    LocationScale,
    SeparableTask,
    Training,
    WindowLevels,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.methods import Method

QUICK = Training(epochs=2, progress=False)


def few(name):
    p = PROBLEMS[name](0)
    return p, p.data.train.x[:80], p.data.train.y[:80]


@pytest.mark.parametrize(
    "form",
    [Absolute(), Anchored(), LocationScale(), WindowLevels()],
    ids=lambda f: type(f).__name__,
)
def test_df2_keeps_the_contract_with_one_decision_and_sequences(form):
    rng = torch.Generator().manual_seed(0)
    x = 1 + torch.rand(60, 6, 1, generator=rng)
    task = SeparableTask(lambda y, a: 3 * (y - a).relu() + (a - y).relu(), Box(0.0, 4.0, dim=1))
    check_method(DF2(task, outcomes=form, folds=2, points=9, training=QUICK), x, x[:, 0])


class Point(nn.Module):
    def forward(self, x):
        return x.new_zeros(len(x), 2)


@dataclass
class Careless(Method):
    """Decides 0, and something else where it should not."""

    task: SeparableTask
    fault: str = ""
    seed: int = 0
    fits = 0

    def _fit(self, train, val):
        Careless.fits += 1
        self.model_ = Point()
        self.task_ = self.task

    def _decide(self, x):
        a = self._fitted()(x)
        if self.fault == "leaves":
            a = a + 9
        if self.fault == "forgets":
            a = a + 0.01 * Careless.fits
        if self.fault == "mates":
            a = a + 0.5 * (len(x) > 1)
        return a

    def _facts(self):
        return {}

    def _rebuild(self, facts):
        model = Point()
        model.register_buffer("moved", torch.ones(1))
        return model


FAULTS = {
    "a decision outside the feasible set": "leaves",
    "second fit with the same seed decides otherwise": "forgets",
    "row 0 decides otherwise by itself": "mates",
}


@pytest.mark.parametrize("sentence", FAULTS)
def test_a_careless_method_is_found_out(sentence):
    p, x, y = few("synthetic-convex")
    # decide itself checks that its decisions are in C
    with pytest.raises((AssertionError, RuntimeError), match=sentence):
        check_method(Careless(p.task, fault=FAULTS[sentence]), x, y)


def test_a_method_that_decides_unfitted_is_found_out():
    p, x, y = few("synthetic-convex")
    method = Constant(p.task)
    method.decide = lambda X: X
    with pytest.raises(AssertionError, match="an unfitted method decides"):
        check_method(method, x, y)
