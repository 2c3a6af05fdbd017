"""The normaliser and its slope against quadrature, the proposal's density, Langevin chains."""

import pytest
import torch

from costscape.methods.forecast.langevin import Langevin, Weighted, around
from costscape.sets import Box, Budget, Simplex

DOUBLE = torch.float64


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def vector(*numbers):
    return torch.tensor(numbers, dtype=DOUBLE)


def grid_on(box, points):
    """Midpoints of cells and the cells' volume."""
    axes = [
        low + (high - low) * (torch.arange(points, dtype=DOUBLE) + 0.5) / points
        for low, high in zip(*box.bounds, strict=True)
    ]
    volume = float(((box.upper - box.lower) / points).prod())
    return torch.cartesian_prod(*axes).reshape(-1, box.dim), volume


def steep(theta):
    """An energy without symmetry, with a kink, whose slope in theta is known to autograd."""

    def energy(a):
        return theta[0] * (a - theta[1]).abs().sum(-1) + (a[..., 0] + theta[2]) ** 2

    return energy


BOXES = {
    1: (Box(vector(-0.3), vector(2.0)), vector(-0.2)),
    2: (Box(vector(-0.3, 0.0), vector(2.0, 1.0)), vector(0.1, 1.0)),  # a side, almost a corner
}


@pytest.mark.parametrize("dim", [1, 2])
def test_the_normaliser_and_its_slope_are_those_of_quadrature_on_a_box_that_cuts_the_proposal(dim):
    box, centre = BOXES[dim]
    sd = vector(0.15, 0.4, 1.0)[:, None].expand(3, dim)
    theta = vector(3.0, 0.4, 0.2).requires_grad_()
    energy = steep(theta)
    points, volume = grid_on(box, 4000 if dim == 1 else 500)
    exact = (-energy(points)).logsumexp(0) + torch.tensor(volume).log()
    (slope,) = torch.autograd.grad(exact, theta)
    found = around(centre.expand(40, dim), box, sd, 4000, generator())

    def estimate(theta):
        return found.log_normaliser(steep(theta)(found.actions))

    slopes = torch.autograd.functional.jacobian(estimate, theta.detach())  # (40, 3)
    for each, true in [(estimate(theta.detach())[:, None], exact.detach()), (slopes, slope)]:
        error = each.std(0) / 40**0.5
        assert (error < 0.02).all()
        assert ((each.mean(0) - true).abs() < 4 * error + 1e-3).all()


def test_the_divergence_of_two_energies_is_that_of_quadrature():
    box, centre = BOXES[2]
    sd = vector(0.15, 0.4, 1.0)[:, None].expand(3, 2)
    energy, other = steep(vector(3.0, 0.4, 0.2)), steep(vector(5.0, 0.8, -0.3))
    points, _ = grid_on(box, 500)
    p, r = (-energy(points)).log_softmax(0), (-other(points)).log_softmax(0)
    exact = (r.exp() * (r - p)).sum()
    found = around(centre.expand(1, 2), box, sd, 200_000, generator())
    e, f = energy(found.actions), other(found.actions)
    cross = (found.weights(f) * e).sum() + found.log_normaliser(e)
    entropy = (found.weights(f) * f).sum() + found.log_normaliser(f)
    assert float(cross - entropy) == pytest.approx(float(exact), abs=0.01)


def test_the_weights_are_exp_minus_energy_over_density_normed():
    found = Weighted(torch.zeros(1, 2, 1), torch.tensor([[0.5, 0.25]]).log())
    energy = -torch.tensor([[3.0, 1.0]]).log()  # exp(-E) = 3, 1; over q: 6, 4
    assert torch.allclose(found.weights(energy), torch.tensor([[0.6, 0.4]]))
    assert torch.allclose(found.log_normaliser(energy).exp(), torch.tensor([5.0]))


def test_the_weights_of_huge_energies_are_finite():
    found = Weighted(torch.zeros(1, 2, 1), torch.zeros(1, 2))
    energy = torch.tensor([[1e6, 1e6 + 1]])
    assert found.log_normaliser(energy).isfinite().all()
    assert torch.allclose(found.weights(energy), (-torch.tensor([[0.0, 1.0]])).softmax(1))


@pytest.mark.parametrize("n", [2, 500])
def test_the_density_of_the_proposal_integrates_to_one_whatever_the_turns(n):
    # E[1 / q] over draws from q is the length of the box
    box = Box(vector(0.0), vector(1.0))
    found = around(
        vector(0.1).expand(200_000 // n, 1), box, vector(0.3, 0.7)[:, None], n, generator()
    )
    assert float((-found.log_q).exp().mean()) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_in_a_corner_of_many_dimensions_all_draws_are_inside_with_finite_density(dtype):
    box = Box(torch.zeros(12, dtype=dtype), torch.ones(12, dtype=dtype))
    sd = torch.full((3, 12), 0.001, dtype=dtype)
    found = around(torch.zeros(4, 12, dtype=dtype), box, sd, 2000, generator())
    assert found.actions.dtype == dtype
    assert box.contains(found.actions, tol=0.0).all()
    assert found.log_q.isfinite().all()
    assert float(found.actions.mean()) == pytest.approx(0.001 * (2 / torch.pi) ** 0.5, rel=0.02)


def test_a_coordinate_without_width_is_left_where_it_is():
    box = Box(vector(0.0, 0.5), vector(1.0, 0.5))
    only = Box(vector(0.0), vector(1.0))
    sd = vector(0.2, 0.4)[:, None]
    both = around(vector(0.3, 0.5).expand(1, 2), box, sd * vector(1.0, 0.0), 1000, generator())
    assert (both.actions[..., 1] == 0.5).all()
    one = around(vector(0.3).expand(1, 1), only, sd, 100_000, generator(1))
    flat = [w.log_normaliser(torch.zeros_like(w.log_q)) for w in (both, one)]
    assert torch.allclose(flat[0], flat[1], atol=0.05)


# ---- Langevin


def test_a_flat_energy_leads_all_over_the_simplex():
    simplex = Simplex(dim=3).double()
    start = vector(1.0, 0.0, 0.0).expand(1, 800, 3)
    flat = Langevin(steps=300, step=0.05)
    a = flat.walk(lambda a: 0 * a.sum(-1), start, simplex, generator())
    assert simplex.contains(a).all()
    assert torch.allclose(a.mean((0, 1)), vector(1.0, 1.0, 1.0) / 3, atol=0.03)
    # 1 / 18 for a flat Dirichlet; projecting, not reflecting, leaves a little more at the edges
    assert torch.allclose(a.var((0, 1)), vector(1.0, 1.0, 1.0) / 18, rtol=0.2)


def test_a_strong_linear_energy_leads_to_the_cheapest_vertex():
    simplex = Simplex(total=2.0, dim=3).double()
    start = vector(2.0, 0.0, 0.0).expand(1, 200, 3)
    slope = 60 * vector(1.0, 1.0, 0.0)
    a = Langevin().walk(lambda a: a @ slope, start, simplex, generator())
    assert simplex.contains(a).all()
    assert float(a[..., 2].mean()) > 1.8


def test_chains_have_the_law_of_the_energy():
    # exp(-8 a_1) on {a >= 0, a_1 + a_2 <= 1} has the density (1 - a) exp(-8 a) of a_1
    budget = Budget(total=1.0, dim=2).double()
    start = torch.full((1, 600, 2), 0.3, dtype=DOUBLE)
    a = Langevin(steps=250, step=0.03).walk(lambda a: 8 * a[..., 0], start, budget, generator())
    t = (torch.arange(2000, dtype=DOUBLE) + 0.5) / 2000
    density = (1 - t) * (-8 * t).exp()
    exact = float((t * density).sum() / density.sum())
    assert budget.contains(a).all()
    assert float(a[..., 0].mean()) == pytest.approx(exact, abs=0.02)


def test_steps_are_shares_of_the_width():
    small, large = Simplex(dim=3).double(), Simplex(total=10.0, dim=3).double()
    start = torch.full((1, 5, 3), 1 / 3, dtype=DOUBLE)
    walk = Langevin(steps=20).walk
    a = walk(lambda a: (3 * a[..., 0]) ** 2, start, small, generator())
    b = walk(lambda a: (0.3 * a[..., 0]) ** 2, 10 * start, large, generator())
    assert torch.allclose(10 * a, b, atol=1e-9)


def test_no_gradient_flows_through_a_chain():
    theta = torch.ones(2, requires_grad=True)
    walk = Langevin(steps=2).walk
    a = walk(lambda a: a @ theta, torch.full((1, 1, 2), 0.5), Simplex(dim=2), generator())
    assert not a.requires_grad
    assert theta.grad is None


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"step": 0.0}, {"step": float("nan")}], ids=str)
def test_langevin_refuses_to_stand_still(wrong):
    with pytest.raises(ValueError, match=r"Langevin needs steps? to be a (whole )?number"):
        Langevin(**wrong)
