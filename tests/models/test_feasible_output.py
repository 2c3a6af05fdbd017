import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from costscape import Box, Budget, Finite, Polytope, Simplex
from costscape.models.feasible_output import Landing, Projected, landing

SQUARE = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 1, 1]]
SETS = {
    "box": lambda: Box([-1.0, 0.0, 5.0], [1.0, 4.0, 5.5]),
    "simplex": lambda: Simplex(total=2.0, dim=3),
    "budget": lambda: Budget(total=2.0, dim=3),
    "capped": lambda: Budget(total=2.0, dim=3, upper=[0.5, 1.0, 1.5]),
    "polytope": lambda: Polytope(G=SQUARE, h=[1, 1, 2, 0, 0, 0, 2.5]),
    "flat": lambda: Polytope(
        A=[[1.0, 2.0, 1.0]], b=[2.0], G=[[-1, 0, 0], [0, -1, 0], [0, 0, -1]], h=[0, 0, 0]
    ),
}


def numbers(n, size, seed):
    return size * torch.randn(8, n, generator=torch.Generator().manual_seed(seed))


def back(kind, c, a):
    """A z that lands on a."""
    if kind == "box":
        return torch.logit((a - c.lower) / (c.upper - c.lower))
    if kind == "simplex":
        return a.log()
    if kind == "budget":
        return torch.cat([a, c.total - a.sum(-1, keepdim=True)], -1).log()
    layer = landing(c)
    lower, upper = c.bounds
    return (a - layer(torch.zeros(1, layer.inputs, dtype=a.dtype))) / (upper - lower)


@pytest.mark.parametrize("kind", SETS)
@given(size=st.sampled_from([0.0, 0.1, 1.0, 10.0, 1e4]), seed=st.integers(0, 999))
@settings(max_examples=25, deadline=None)
def test_every_z_lands_in_the_set(kind, size, seed):
    for c in (SETS[kind](), SETS[kind]().double()):
        layer = landing(c)
        a = layer(numbers(layer.inputs, size, seed).to(c.bounds[0]))
        assert a.shape == (8, 3)
        assert a.dtype == c.bounds[0].dtype
        assert c.contains(a).all()


@pytest.mark.parametrize("kind", SETS)
@given(seed=st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_every_inner_point_is_reached(kind, seed):
    c = SETS[kind]().double()
    layer = landing(c)
    a = c.sample(20, torch.Generator().manual_seed(seed))
    a = 0.999 * a + 0.001 * layer(torch.zeros(1, layer.inputs, dtype=torch.float64))
    z = back(kind, c, a)
    assert torch.allclose(layer(z), a, atol=1e-9)
    assert layer.excess(z, layer(z)).max() < 1e-12


@pytest.mark.parametrize("kind", SETS)
def test_zero_lands_well_inside(kind):
    c = SETS[kind]().double()
    layer = landing(c)
    a = layer(torch.zeros(1, layer.inputs, dtype=torch.float64))
    # the way from there to any point of the set can be gone a little backwards too
    tried = c.sample(500, torch.Generator().manual_seed(0))
    assert c.contains(a + 0.02 * (a - tried)).all()


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("size", [0.2, 1.0, 4.0])
def test_slopes_are_those_of_finite_differences(kind, size):
    c = SETS[kind]().double()
    layer = landing(c)
    z = numbers(layer.inputs, size, 1).double().requires_grad_()
    assert gradcheck(layer, (z,), eps=1e-7, atol=1e-5)


@pytest.mark.parametrize("kind", ["capped", "polytope", "flat"])
@pytest.mark.parametrize("size", [0.2, 1.0, 4.0])
def test_the_slope_of_the_excess_is_that_of_the_squared_distance(kind, size):
    c = SETS[kind]().double()
    layer = landing(c)
    z = numbers(layer.inputs, size, 2).double().requires_grad_()
    assert gradcheck(lambda z: layer.excess(z, layer(z)), (z,), eps=1e-7, atol=1e-5)


def test_at_a_vertex_the_projection_has_no_slope_and_the_excess_leads_back():
    c = Budget(total=2.0, dim=2, upper=[0.5, 1.0]).double()
    layer = landing(c)
    z = torch.tensor([[3.0, 3.0]], dtype=torch.float64, requires_grad=True)
    a = layer(z)
    assert torch.equal(a.detach(), torch.tensor([[0.5, 1.0]], dtype=torch.float64))
    (slope,) = torch.autograd.grad(a.sum(), z)
    assert torch.equal(slope, torch.zeros(1, 2, dtype=torch.float64))
    (slope,) = torch.autograd.grad(layer.excess(z, a).sum(), z)
    assert (slope > 0).all()


def test_a_budget_may_be_left_unspent():
    c = Budget(total=2.0, dim=3)
    layer = landing(c)
    assert isinstance(layer, Landing)
    assert layer.inputs == 4
    a = layer(torch.tensor([[0.0, 0.0, 0.0, 50.0], [0.0, 0.0, 0.0, -50.0]]))
    assert torch.allclose(a.sum(-1), torch.tensor([0.0, 2.0]), atol=1e-6)


def test_caps_that_never_bind_are_no_caps():
    assert isinstance(landing(Budget(total=2.0, dim=3, upper=2.0)), Landing)
    assert isinstance(landing(Budget(total=2.0, dim=3, upper=[9.0, 9.0, 1.9])), Projected)


@pytest.mark.parametrize(
    "c",
    [
        Box([1.0, 0.0], [1.0, 1.0]),
        Budget(total=1.0, dim=2, upper=[0.0, 0.5]),
        Budget(total=1.0, dim=2, upper=0.0),
        Polytope(A=[[1.0, 0.0], [0.0, 1.0]], b=[1.0, 2.0]),
        Simplex(dim=1),
    ],
    ids=["flat-box", "flat-budget", "nothing", "point", "one"],
)
def test_sets_without_room_are_landed_on_too(c):
    layer = landing(c)
    z = torch.ones(4, layer.inputs, requires_grad=True)
    a = layer(z)
    assert c.contains(a).all()
    (slope,) = torch.autograd.grad(a.sum() + layer.excess(z, a).sum(), z)
    assert slope.isfinite().all()


def test_a_list_is_refused():
    with pytest.raises(TypeError, match="is a Finite list of 2 actions"):
        landing(Finite([[0.0], [1.0]]))
