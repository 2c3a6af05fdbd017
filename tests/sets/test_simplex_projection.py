import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from costscape.sets.simplex import onto_total


@given(st.integers(0, 2**31), st.integers(1, 9), st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=60)
def test_the_shift_is_the_root_of_the_clipped_sum(seed, d, share):
    rng = torch.Generator().manual_seed(seed)
    a = 3 * torch.randn(4, d, generator=rng, dtype=torch.float64)
    upper = torch.rand(d, generator=rng, dtype=torch.float64)
    total = share * upper.sum()

    def exact(row):
        def excess(tau):
            return float((row - tau).clamp(torch.zeros_like(upper), upper).sum() - total)

        tau = brentq(excess, float((row - upper).min()) - 1, float(row.max()), xtol=1e-15)
        return (row - tau).clamp(torch.zeros_like(upper), upper)

    found = onto_total(a, upper, total)
    assert torch.allclose(found, torch.stack([exact(row) for row in a]), atol=1e-12)
    assert torch.allclose(found.sum(-1), total, atol=1e-14)


def test_equal_numbers_share_the_total_equally():
    a = torch.full((2, 5), 7.0, dtype=torch.float64)
    upper = torch.ones(5, dtype=torch.float64)
    found = onto_total(a, upper, torch.tensor(2.0, dtype=torch.float64))
    assert torch.allclose(found, torch.full_like(a, 0.4))
