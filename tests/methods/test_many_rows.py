"""Decisions for many rows: in parts of bounded memory, and the same as row by row."""

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.methods import surfaces
from costscape.problems import inventory

ROWS = 30


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X, Y = rng.random((60, 3)), 3 * rng.random((60, 2))
    return cs.NearestNeighbours(inventory(days=2), k=10).fit(X, Y), rng.random((ROWS, 3))


@pytest.mark.parametrize("other", [None, cs.Box(0.0, 1.0, dim=2), cs.Budget(total=1.0, dim=2)])
def test_rows_in_parts_are_decided_as_together(fitted, other, monkeypatch):
    model, X = fitted
    whole, parts = model.decide(X, feasible=other), []
    monkeypatch.setattr(surfaces, "SOME_ROWS", 4)
    monkeypatch.setattr(surfaces, "NUMBERS", 7 * 10 * 3)  # weights and two outcomes each: 7 rows
    found = type(model)._surface

    def watched(self, x):
        parts.append(len(x))
        return found(self, x)

    monkeypatch.setattr(type(model), "_surface", watched)
    np.testing.assert_allclose(model.decide(X, feasible=other), whole, atol=1e-4)
    assert parts == [1, 7, 7, 7, 7, 2]  # the first to learn how many numbers a row has


def test_each_row_keeps_its_own_set(fitted, monkeypatch):
    model, X = fitted
    caps = torch.linspace(0.1, 1.0, ROWS)[:, None].expand(ROWS, 2)
    monkeypatch.setattr(surfaces, "SOME_ROWS", 4)
    monkeypatch.setattr(surfaces, "NUMBERS", 1)
    a = torch.as_tensor(model.decide(X, feasible=cs.Box(0.0, caps)))
    assert (a <= caps + 1e-6).all()
    assert (a[-1] > caps[0]).any()
