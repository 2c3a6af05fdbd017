import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator

from costscape.methods.forecast.local_losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    LossNetwork,
    Quadratic,
    WeightedMSE,
    fit_losses,
)

FAMILIES = (
    WeightedMSE(),
    DirectedWeightedMSE(),
    Quadratic(2),
    DirectedQuadratic(4),
    LossNetwork(6, 2),
)
every_family = pytest.mark.parametrize("loss", FAMILIES, ids=lambda loss: type(loss).__name__)


def errors(n, k, d, seed=0):
    return torch.randn(n, k, d, generator=Generator().manual_seed(seed))


def miss(loss, parameters, e, t):
    """The share of the variance of t that phi does not explain."""
    return float((loss.value(parameters, e) - t).square().mean() / t.var())


def diagonal(e):
    return e.square() @ torch.tensor([0.2, 1.0, 3.0])


def directed(e):
    up, down = torch.tensor([0.2, 1.0, 0.0]), torch.tensor([1.5, 0.1, 3.0])
    return e.clamp(min=0).square() @ up + (-e).clamp(min=0).square() @ down


def full(e):
    root = torch.tensor([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.5, 0.3, 0.4]])
    return (e @ root).square().sum(-1)


def turning(e):
    """A matrix for each pair of signs: an error hurts more where the others point the same way."""
    return full(e) + full(e.clamp(min=0))


@pytest.mark.parametrize(
    ("loss", "truth"),
    [
        (WeightedMSE(), diagonal),
        (DirectedWeightedMSE(), diagonal),
        (DirectedWeightedMSE(), directed),
        (Quadratic(3), diagonal),
        (Quadratic(3), full),
        (DirectedQuadratic(6), full),
        (DirectedQuadratic(6), directed),
        (DirectedQuadratic(6), turning),
    ],
    ids=lambda part: getattr(part, "__name__", type(part).__name__),
)
def test_a_known_decision_loss_is_recovered_to_a_thousandth_of_its_variance(loss, truth):
    e, new = errors(4, 80, 3), errors(4, 200, 3, seed=1)
    found = fit_losses(loss, e, truth(e) / 3)
    assert miss(loss, found, new, truth(new) / 3) < 1e-3


def test_a_network_recovers_a_quadratic_and_a_kink_to_a_few_percent():
    loss = LossNetwork(16, 2)
    e, new = errors(4, 300, 2), errors(4, 200, 2, seed=1)
    for truth in (
        lambda e: (e @ torch.tensor([[1.0, 0.0], [0.8, 0.6]])).square().sum(-1) / 2,
        lambda e: (e.clamp(min=0) + 0.25 * (-e).clamp(min=0)).sum(-1),
    ):
        found = fit_losses(loss, e, truth(e), steps=600)
        assert miss(loss, found, new, truth(new)) < 0.03


def test_the_plain_forms_cannot_follow_what_the_directed_ones_can():
    e = errors(4, 200, 3)
    t = directed(e) / 3
    for plain, turned in (
        (WeightedMSE(), DirectedWeightedMSE()),
        (Quadratic(), DirectedQuadratic()),
    ):
        assert miss(plain, fit_losses(plain, e, t), e, t) > 0.1
        assert miss(turned, fit_losses(turned, e, t), e, t) < 1e-3


def test_the_weights_themselves_are_found():
    e = errors(1, 80, 3)
    found = fit_losses(WeightedMSE(), e, diagonal(e) / 3)
    assert torch.allclose(found.square(), torch.tensor([[0.2, 1.0, 3.0]]), atol=2e-3)


@every_family
@given(seed=st.integers(0, 10**6), size=st.floats(1e-3, 1e3))
@settings(max_examples=30, deadline=None)
def test_the_least_loss_is_at_the_centre_whatever_the_parameters(loss, seed, size):
    rng = Generator().manual_seed(seed)
    start = loss.start(3, rng)
    parameters = start + size * torch.randn(5, len(start), generator=rng)
    e = torch.cat([torch.zeros(5, 1, 3), size * torch.randn(5, 20, 3, generator=rng)], 1)
    phi = loss.value(parameters, e)
    assert (phi[:, 0] == 0).all()
    assert (phi[:, 1:] > 0).all()


@every_family
def test_a_pair_fitted_alone_ends_at_the_same_parameters(loss):
    e = errors(5, 12, 2)
    t = e.abs().sum(-1) * torch.arange(1.0, 6.0)[:, None] / 3
    together = fit_losses(loss, e, t, steps=40)
    alone = fit_losses(loss, e[3:4], t[3:4], steps=40)
    assert torch.allclose(together[3:4], alone, atol=1e-4)
    assert not torch.allclose(together[3], together[4], atol=1e-2)


@every_family
def test_blocks_of_pairs_change_nothing(loss, monkeypatch):
    e = errors(150, 6, 2)
    t = e.abs().sum(-1)
    whole = fit_losses(loss, e, t, steps=5)
    monkeypatch.setattr("costscape.methods.forecast.local_losses.HELD", 1)
    assert torch.allclose(fit_losses(loss, e, t, steps=5), whole, atol=1e-5)


@every_family
def test_gradients_with_respect_to_the_error_are_finite_at_the_centre_too(loss):
    parameters = loss.start(2, Generator().manual_seed(0))[None]
    e = torch.zeros(1, 3, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(loss.value(parameters, e).sum(), e)
    assert slope.isfinite().all()


@every_family
def test_double_precision_stays_double(loss):
    e = errors(2, 6, 2).double()
    assert fit_losses(loss, e, e.abs().sum(-1), steps=2).dtype == torch.float64


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: Quadratic(0),
            "Quadratic needs rank to be a whole number",
        ),
        (
            lambda: DirectedQuadratic(-1),
            "DirectedQuadratic needs rank to be a whole number",
        ),
        (
            lambda: LossNetwork(hidden=0),
            "LossNetwork needs hidden to be a whole number",
        ),
        (
            lambda: LossNetwork(layers=0),
            "LossNetwork needs layers to be a whole number",
        ),
    ],
    ids=["quadratic", "directed", "hidden", "layers"],
)
def test_sizes_below_one_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
