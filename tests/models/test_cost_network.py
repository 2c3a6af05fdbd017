import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from costscape import MLP, Box, Finite
from costscape.models.cost_network import Free, InputConvex, Surface


def surface(kind, groups=1, dim=3, hidden=8, seed=0, wild=0.0, c=None):
    """A network with fresh weights, disturbed by ``wild``."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        head = kind(6, groups, dim // groups, hidden)
        encoder = MLP(2, hidden=6)
        c = c or Box(-1.0, [1.0, 4.0, 100.0][:dim])
        one = torch.ones(groups)
        model = Surface(nn.Identity(), encoder, head, c, 5 * one, 2 * one).double()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(wild * torch.randn_like(p))
    return model, c.double()


@pytest.mark.parametrize("groups", [1, 3])
@given(seed=st.integers(0, 9999), wild=st.sampled_from([0.0, 1.0, 10.0]))
@settings(max_examples=40, deadline=None)
def test_an_input_convex_surface_is_below_its_chords(groups, seed, wild):
    model, c = surface(InputConvex, groups, seed=seed, wild=wild)
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(5, 2, generator=rng, dtype=torch.float64)
    a, b = c.sample(40, rng).view(2, 1, 20, 3)
    share = torch.rand(1, 20, 1, generator=rng, dtype=torch.float64)
    with torch.no_grad():
        g = model(x)
        chord = share[..., 0] * g(a) + (1 - share[..., 0]) * g(b)
        assert (g(share * a + (1 - share) * b) <= chord + 1e-9 * (1 + chord.abs())).all()


def test_a_free_surface_may_lie_above_its_chords():
    above = 0
    for seed in range(5):
        model, c = surface(Free, seed=seed, wild=1.0)
        a, b = c.sample(40, torch.Generator().manual_seed(seed)).view(2, 1, 20, 3)
        with torch.no_grad():
            g = model(torch.zeros(1, 2, dtype=torch.float64))
            above += int((g((a + b) / 2) > (g(a) + g(b)) / 2 + 1e-6).sum())
    assert above > 0


@pytest.mark.parametrize("kind", [Free, InputConvex])
def test_summand_i_sees_coordinate_i_alone(kind):
    model, c = surface(kind, groups=3, wild=1.0)
    x = torch.randn(4, 2, dtype=torch.float64)
    a = c.sample(1)[None].requires_grad_()
    terms = model(x).terms(a)
    assert terms.shape == (4, 1, 3)
    for i in range(3):
        (slope,) = torch.autograd.grad(terms[..., i].sum(), a, retain_graph=True)
        assert slope[0, 0, i] != 0
        assert (slope[0, 0, [j for j in range(3) if j != i]] == 0).all()
    assert torch.allclose(model(x)(a), terms.sum(-1))


@pytest.mark.parametrize("kind", [Free, InputConvex])
@pytest.mark.parametrize("groups", [1, 3])
def test_shared_actions_cost_as_own_ones_do(kind, groups):
    model, c = surface(kind, groups, wild=1.0)
    x = torch.randn(4, 2, dtype=torch.float64)
    a = c.sample(5)[None]
    g = model(x)
    assert len(g) == 4
    assert torch.allclose(g(a), g(a.expand(4, -1, -1)))
    assert torch.allclose(g(a)[2:3], model(x[2:3])(a))


@pytest.mark.parametrize("kind", [Free, InputConvex])
def test_the_level_and_the_scale_are_those_given(kind):
    model, c = surface(kind, groups=3)
    x, a = torch.randn(4, 2, dtype=torch.float64), c.sample(5)[None]
    before = model(x).terms(a)
    model.level += torch.tensor([1.0, 2.0, 3.0])
    model.scale *= 10
    after = model(x).terms(a)
    assert torch.allclose(after - model.level, 10 * (before - 5))


def test_a_coordinate_without_room_gives_finite_costs():
    for c in (Box([0.0, 1.0], [0.0, 2.0]), Finite([[3.0, 1.0], [3.0, 2.0]])):
        model, c = surface(Free, dim=2, c=c)
        assert model(torch.zeros(1, 2, dtype=torch.float64))(c.sample(3)[None]).isfinite().all()


def fitted(kind, f, steps=250, dim=2):
    """The error of a surface fitted to f on [-1, 1]^d, as a share of f's spread."""
    model, c = surface(kind, dim=dim, hidden=32, c=Box(-1.0, 1.0, dim=dim))
    rng = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        x = torch.rand(16, 2, generator=rng, dtype=torch.float64)
        a = c.sample(8, rng)[None]
        loss = (model(x)(a) - f(x[:, None], a)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        x = torch.rand(100, 2, generator=rng, dtype=torch.float64)
        a = c.sample(100, rng)[None]
        truth = f(x[:, None], a)
        return float((model(x)(a) - truth).square().mean().sqrt() / truth.std())


def bowl(x, a):
    return 3 * (a[..., 0] - x[..., 0]).square() + (a[..., 0] + a[..., 1] - x[..., 1]).square()


def saddle(x, a):
    return 3 * a[..., 0] * a[..., 1] + x[..., 0] * (2 * a[..., 0]).cos()


def test_both_follow_a_bowl_and_only_the_free_one_a_saddle():
    assert fitted(InputConvex, bowl) < 0.2
    assert fitted(Free, bowl) < 0.2
    assert fitted(Free, saddle) < 0.25
    assert fitted(InputConvex, saddle) > 0.5
