"""Quantiles and ranks against each other, and recalibrated levels on rows that are off."""

import numpy as np
import pytest
import torch

from costscape.risk.calibration import Levels, learn_levels, quantile, rank


@pytest.mark.parametrize("scenarios", [1, 2, 25])
def test_a_rank_is_the_level_at_which_the_quantile_is_the_value(scenarios):
    rng = np.random.default_rng(0)
    values = torch.tensor(rng.normal(size=(6, scenarios)))
    w = torch.tensor(rng.dirichlet(np.ones(scenarios), 6))
    for level in (-0.4, 0.03, 0.5, 0.9, 1.7):
        q = quantile(values[:, None], w, level, 1.0)[:, 0]
        for last in (False, True):
            found = rank(values, w, q, 1.0, last=last)
            assert torch.allclose(found, torch.full((6,), level).double(), atol=1e-6)


def test_equal_scenarios_have_a_first_and_a_last_rank():
    values, w = torch.tensor([[0.0, 1.0, 1.0, 1.0, 2.0]]), torch.full((1, 5), 0.2)
    one = torch.tensor([1.0])
    assert float(rank(values, w, one, 1.0)) == pytest.approx(0.3)
    assert float(rank(values, w, one, 1.0, last=True)) == pytest.approx(0.7)


def test_quantiles_of_many_equal_weights_are_those_of_numpy():
    values = np.random.default_rng(0).gamma(2.0, size=(1, 2000))
    w = torch.full((1, 2000), 1 / 2000, dtype=torch.float64)
    for level in (0.1, 0.5, 0.95):
        wanted = np.quantile(values[0], level, method="hazen")
        found = quantile(torch.tensor(values)[:, None], w, level, 1.0)
        assert float(found) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
def test_recalibrated_quantiles_cover_as_stated_whatever_the_scenarios(spread):
    """Scenarios too narrow, too wide or without any spread; the truth is a skewed law."""
    rng = np.random.default_rng(3)
    size = rng.uniform(0.5, 2.0, 4000)
    observed = torch.tensor(size * rng.gamma(2.0, size=4000))
    values = torch.tensor(size[:, None] * (1 + spread * rng.normal(size=(4000, 50))))
    w = torch.full((4000, 50), 0.02, dtype=torch.float64)
    levels = learn_levels(values[:2000], w[:2000], observed[:2000])
    for stated in (0.1, 0.5, 0.9, 0.97):
        u = levels.to_scenarios(stated)
        q = quantile(values[2000:, None], w[2000:], u, levels.scale)[:, 0]
        share = float((observed[2000:] <= q).double().mean())
        assert share == pytest.approx(stated, abs=0.02)


def test_levels_there_and_back_are_the_same():
    levels = Levels(tuple(np.sort(np.random.default_rng(0).normal(size=999)).tolist()), 1.0)
    for stated in (0.05, 0.5, 0.95):
        back = levels.to_frequency(torch.tensor([levels.to_scenarios(stated)]).double())
        assert float(back) == pytest.approx(stated, abs=2e-3)
