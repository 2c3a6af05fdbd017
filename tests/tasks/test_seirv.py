import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from costscape.tasks.seirv import simulate, trip_shares

K = 5
D = torch.float64


def made_up(seed=0, stay=5.0):
    """Trips (7, K, K), people (K,), a start (5, K), beta (K,)."""
    rng = torch.Generator().manual_seed(seed)
    od = torch.rand(7, K, K, generator=rng, dtype=D) + stay * torch.eye(K, dtype=D)
    population = 10 ** (4 + 2 * torch.rand(K, generator=rng, dtype=D))
    start = torch.rand(5, K, generator=rng, dtype=D) * torch.tensor(
        [[1], [0.02], [0.03], [0.1], [0]]
    )
    beta = 0.1 + 0.3 * torch.rand(K, generator=rng, dtype=D)
    return trip_shares(od), population, start / start.sum(0), beta


def people(end, population):
    return (end * population).sum((-1, -2))


def exact(m, population, start, beta, doses, days):
    """Day by day, in people, by scipy's adaptive solver."""
    m, N, beta, doses = (v.numpy() for v in (m, population, beta, doses))

    def slope(t, z, day):
        S, E, I, R, V, _ = x = z.reshape(6, K)
        new = beta * S * I / (S + E + I + R + V)
        given = np.minimum(doses if day < 7 else 0 * doses, S + E)
        to_S, to_E = given * S / (S + E), given * E / (S + E)
        local = [-new - to_S, new - E / 5 - to_E, E / 5 - I / 10, I / 10, given, new]
        travel = x @ m[day % 7] - x * m[day % 7].sum(-1)
        travel[5] = 0
        return (np.stack(local) + travel).ravel()

    z = np.concatenate([start.numpy() * N, np.zeros((1, K))]).ravel()
    for day in range(days):
        z = solve_ivp(slope, (0, 1), z, args=(day,), rtol=1e-10, atol=1e-8).y[:, -1]
    return z.reshape(6, K)


@pytest.mark.parametrize("days", [7, 28])
@pytest.mark.parametrize(
    ("share", "steps", "tol"),
    [(0.0, 2, 1e-4), (0.1, 2, 1e-4), (3.0, 2, 5e-3), (3.0, 32, 1e-4)],
    ids=["no-doses", "some", "more-than-people", "more-than-people-finely"],
)
def test_steps_agree_with_an_adaptive_solver(days, share, steps, tol):
    m, N, start, beta = made_up()
    doses = share * N / 7
    infected, end = simulate(start, m, doses, beta=beta, population=N, days=days, steps=steps)
    want = exact(m, N, start, beta, doses, days)
    assert np.allclose(infected, want[5], rtol=tol)
    assert np.allclose(end * N, want[:5], rtol=tol, atol=1e-5 * float(N.min()))


def test_halving_the_step_divides_the_error_by_sixteen():
    m, N, start, beta = made_up()

    def total(steps):
        return simulate(start, m, 0 * N, beta=beta, population=N, steps=steps)[0].sum()

    fine = total(32)
    assert 10 < abs(total(1) - fine) / abs(total(2) - fine) < 24


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    stay=st.sampled_from([0.0, 1.0, 50.0]),
    much=st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    days=st.integers(1, 10),
)
def test_people_are_conserved_and_no_compartment_is_negative(seed, stay, much, days):
    m, N, start, beta = made_up(seed, stay)
    doses = much * N * torch.rand(8, K, generator=torch.Generator().manual_seed(seed), dtype=D)
    infected, end = simulate(start, m, doses, beta=beta, population=N, days=days)
    assert torch.allclose(people(end, N), N.sum().expand(8), rtol=1e-10)
    assert end.min() >= 0
    assert infected.min() >= 0


def test_people_are_conserved_in_single_precision():
    m, N, start, beta = (v.float() for v in made_up())
    _, end = simulate(start, m, N / 14, beta=beta, population=N, days=56)
    assert abs(people(end, N) / N.sum() - 1) < 1e-5
    assert end.dtype == torch.float32


def test_doses_never_exceed_the_people_left():
    m, N, start, beta = made_up(stay=1e9)  # nobody travels
    _, end = simulate(start, m, 100 * N, beta=beta, population=N)
    could = start[0] + start[1]
    assert bool((end[4] < could).all())
    assert bool((end[4] > 0.9 * could).all())
    assert bool((end[0] + end[1] >= 0).all())


def test_all_doses_are_given_where_people_suffice():
    m, N, start, beta = made_up()
    _, end = simulate(start, m, 0.3 * N / 7, beta=beta, population=N)
    assert torch.allclose((end[4] * N).sum(), 0.3 * N.sum(), rtol=1e-10)


def test_without_doses_and_travel_each_region_is_an_epidemic_of_its_own():
    m, N, start, beta = made_up()
    infected, end = simulate(start, 0 * m, 0 * N, beta=beta, population=N, days=30)
    for k in range(K):
        i = slice(k, k + 1)
        alone, state = simulate(
            start[:, i], 0 * m[:, i, i], 0 * N[i], beta=beta[i], population=N[i], days=30
        )
        assert torch.allclose(alone, infected[i])
        assert torch.allclose(state, end[:, i])
    # nobody is vaccinated, and the susceptible lose exactly the infected
    assert bool((end[4] == 0).all())
    assert torch.allclose((start[0] - end[0]) * N, infected)


def test_shares_of_trips_have_no_diagonal_and_count_trips_at_home():
    od = torch.tensor([[6.0, 3.0, 1.0], [0.0, 0.0, 0.0], [-4.0, 2.0, 2.0]])
    want = torch.tensor([[0.0, 0.3, 0.1], [0.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    assert torch.allclose(trip_shares(od), want)


def test_shares_of_trips_have_finite_slopes_where_nobody_travels():
    od = torch.zeros(3, 3, requires_grad=True)
    trip_shares(od).sum().backward()
    assert bool(od.grad.isfinite().all())


@pytest.mark.parametrize(
    ("shape_m", "shape_doses"),
    [((), ()), ((3,), ()), ((), (4,)), ((1, 3), (4, 1)), ((2, 1, 3), (2, 4, 1)), ((3,), (2, 1))],
    ids=str,
)
def test_a_batch_is_each_simulation_on_its_own(shape_m, shape_doses):
    _, N, start, beta = made_up()
    rng = torch.Generator().manual_seed(1)
    m = trip_shares(torch.rand(*shape_m, 7, K, K, generator=rng, dtype=D))
    doses = torch.rand(*shape_doses, K, generator=rng, dtype=D) * N / 7
    infected, end = simulate(start, m, doses, beta=beta, population=N)
    batch = torch.broadcast_shapes(shape_m, shape_doses)
    assert infected.shape == (*batch, K)
    assert end.shape == (*batch, 5, K)
    each_m, each_doses = m.expand(*batch, 7, K, K), doses.expand(*batch, K)
    for i in np.ndindex(*batch):
        alone, state = simulate(start, each_m[i], each_doses[i], beta=beta, population=N)
        assert torch.allclose(infected[i], alone)
        assert torch.allclose(end[i], state)


@pytest.mark.parametrize("much", [0.3, 5.0], ids=["some", "more-than-people"])
def test_slopes_in_doses_and_travel_agree_with_finite_differences(much):
    m, N, start, beta = made_up()

    def f(doses, m):
        return simulate(start, m, doses * N / 7, beta=beta, population=N)[0].sum() / 1e3

    doses = (much * torch.linspace(0.5, 1, K, dtype=D)).requires_grad_()
    assert torch.autograd.gradcheck(f, (doses, m.requires_grad_()), rtol=1e-4, fast_mode=True)


def test_weeks_computed_again_have_the_same_slopes(monkeypatch):
    m, N, start, beta = made_up()
    doses = (N / 14).requires_grad_()

    def slope():
        total = simulate(start, m, doses, beta=beta, population=N, days=24)[0].sum()
        return torch.autograd.grad(total, doses)[0]

    kept = slope()
    monkeypatch.setattr("costscape.tasks.seirv.KEPT", 0)
    assert torch.equal(slope(), kept)


def test_where_compiling_fails_the_plain_step_serves(monkeypatch):
    from torch._dynamo.exc import BackendCompilerFailed

    from costscape.tasks import seirv

    def broken(*args):
        raise BackendCompilerFailed("inductor", RuntimeError("no compiler"), None)

    monkeypatch.setattr(torch, "compile", lambda f, dynamic: broken)
    seirv._fused_step.cache_clear()
    m, N, start, beta = made_up()
    with pytest.warns(UserWarning, match="going on without it"):
        infected, _ = simulate(start, m, N / 14, beta=beta, population=N, fused=True)
    seirv._fused_step.cache_clear()
    assert torch.equal(infected, simulate(start, m, N / 14, beta=beta, population=N)[0])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of itself
def test_the_fused_step_is_the_plain_one():
    m, N, start, beta = made_up()
    doses = (N / 14).requires_grad_()

    def run(fused):
        total = simulate(start, m, doses, beta=beta, population=N, days=9, fused=fused)[0].sum()
        return total, *torch.autograd.grad(total, doses)

    for fast, plain in zip(run(True), run(False), strict=True):
        assert torch.allclose(fast, plain, rtol=1e-9)
