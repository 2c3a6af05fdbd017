"""A row of x far outside the training rows: every method sees it at three standard deviations."""

from functools import partial

import pytest
import torch

from costscape import MLP, Training
from costscape.bench.catalog import method_of
from costscape.bench.quick import brief
from costscape.data import Dataset, Splits
from costscape.problems.problem import Problem

NAMES = ("df2-quick", "policy-net", "two-stage-gmm1", "no-attention", "wsaa-knn", "wsaa-kernel")


@pytest.mark.parametrize("name", [*NAMES, "cme", "residual-saa"])
def test_a_row_out_of_range_is_decided_as_one_at_three_standard_deviations(
    name, demand, newsvendor
):
    x, y = demand(60)
    pairs, training = Dataset(x, y), Training(epochs=2, device="cpu", progress=False)
    p = Problem(
        data=Splits(pairs, pairs, pairs),
        task=newsvendor(),
        encoder=partial(MLP, 2, hidden=4),
        training=training,
        schedule=training,
        points=5,
        variances=(0.1,),
        source="made up",
    )
    method = brief(method_of(name)(p, 0), pairs).fit(x, y, val=(x, y))
    edge = x.mean(0) + 3 * x.std(0, correction=0)
    a = method.decide(torch.stack([edge, 100 * edge]))
    assert torch.allclose(a[0], a[1], atol=1e-2)
