"""A small world: one or more products to stock, the demand growing with the first feature."""

from functools import partial

import pytest
import torch

from costscape import DF2, MLP, Box, SeparableTask, Training
from costscape.problems.one_resource.cubic_values import cubic_values
from costscape.problems.one_resource.one_line import OneLine
from costscape.problems.one_resource.top_one import top_one


@pytest.fixture(autouse=True)
def _same_weights_every_run():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def newsvendor():
    """newsvendor(dim): 3 a unit short, 1 a unit spare; the best stock is the 0.75 quantile."""

    def make(dim=1, under=3.0, over=1.0, upper=4.0):
        def terms(y, a):
            return under * (y - a).clamp(min=0) + over * (a - y).clamp(min=0)

        return SeparableTask(terms, Box(0.0, upper, dim=dim), convex=True)

    return make


@pytest.fixture(scope="session")
def demand():
    """demand(n, dim): x uniform on [0, 1]^2, y = 1 + x_0 + u with u uniform on [0, 1]."""

    def make(n=80, dim=1, seed=0):
        rng = torch.Generator().manual_seed(seed)
        x = torch.rand(n, 2, generator=rng)
        return x, 1 + x[:, :1] + torch.rand(n, dim, generator=rng)

    return make


@pytest.fixture(scope="session")
def tiny():
    """tiny(task, ...): a DF2 that fits in the blink of an eye, and badly."""

    def make(task, training=None, **settings):
        training = Training(
            **{"epochs": 2, "batch_size": 32, "progress": False, **(training or {})}
        )
        small = {"encoder": partial(MLP, 2, hidden=8), "points": 16, "folds": 1}
        return DF2(task, **{**small, "training": training, **settings})

    return make


@pytest.fixture(scope="session")
def one_line():
    """One of 20 resources and one line as their forecast: task, encoder, x, y.

    Least squares takes a line that falls and decides for a small x, which gains nothing. A line
    that rises decides for the largest, which costs -1.76 on average.
    """
    data = cubic_values((1500, 1, 1), resources=20).train
    return top_one(20), OneLine, data.x, data.y
