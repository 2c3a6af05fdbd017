import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from costscape.problems.vaccine_doses import seirv
from costscape.problems.vaccine_doses.seirv import simulate, trip_shares

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
        single, state = simulate(
            start[:, i], 0 * m[:, i, i], 0 * N[i], beta=beta[i], population=N[i], days=30
        )
        assert torch.allclose(single, infected[i])
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
        single, state = simulate(start, each_m[i], each_doses[i], beta=beta, population=N)
        assert torch.allclose(infected[i], single)
        assert torch.allclose(end[i], state)


@pytest.mark.parametrize("much", [0.3, 5.0], ids=["some", "more-than-people"])
def test_slopes_in_doses_and_travel_agree_with_finite_differences(much):
    m, N, start, beta = made_up()

    def f(doses, m):
        return simulate(start, m, doses * N / 7, beta=beta, population=N)[0].sum() / 1e3

    doses = (much * torch.linspace(0.5, 1, K, dtype=D)).requires_grad_()
    assert torch.autograd.gradcheck(f, (doses, m.requires_grad_()), rtol=1e-4, fast_mode=True)


def sample_problem(seed, P, F, regions=6):
    """Travel (P, 1, 7, K, K), doses (P, F, K) and the other arguments, all with gradients."""
    rng = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return torch.rand(*shape, generator=rng, dtype=D)

    start = rand(5, regions) + 0.01
    population = 10 ** (4 + rand(regions))
    m = trip_shares(rand(P, 1, 7, regions, regions) + torch.eye(regions, dtype=D))
    doses = 0.5 * rand(P, F, regions) * population / 7
    rates = {"beta": 0.1 + 0.3 * rand(regions), "population": population}
    leaves = [start / start.sum(0), m, doses, *rates.values()]
    for leaf in leaves:
        leaf.requires_grad_()
    return leaves[:3], dict(zip(rates, leaves[3:], strict=True)), leaves


def infected_and_gradients(arguments, rates, leaves, **settings):
    infected, end = simulate(*arguments, **rates, **settings)
    total = infected.sum() / 1e3 + end.square().sum()
    return infected, end, *torch.autograd.grad(total, leaves)


@pytest.mark.parametrize("group", [1, 3, 10**6])
@pytest.mark.parametrize("days", [7, 16])
def test_values_and_gradients_do_not_depend_on_the_groups(group, days, monkeypatch):
    problem = sample_problem(0, 2, 4)
    expected = infected_and_gradients(*problem, days=days)
    monkeypatch.setitem(seirv.GROUP, "cpu", group)
    for one, other in zip(infected_and_gradients(*problem, days=days), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_gradients_in_all_arguments_agree_with_finite_differences():
    _, _, leaves = sample_problem(0, 1, 2, regions=3)

    def f(start, m, doses, beta, population):
        infected, end = simulate(start, m, doses, beta=beta, population=population, days=9)
        return infected / 1e3, end

    assert torch.autograd.gradcheck(f, leaves, rtol=1e-4, fast_mode=True)


@pytest.mark.parametrize(
    "mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference"]
)
def test_without_gradients_the_values_are_the_same(mode):
    arguments, rates, _ = sample_problem(0, 3, 4)
    expected = simulate(*arguments, **rates)
    with mode():
        values = simulate(*arguments, **rates)
    assert not values[0].requires_grad
    assert all(torch.equal(v, w) for v, w in zip(values, expected, strict=True))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)], ids=str)
def test_no_simulations_give_no_outcomes_and_no_gradients(shape):
    infected, end, *grads = infected_and_gradients(*sample_problem(0, *shape))
    assert infected.shape == (*shape, 6)
    assert end.shape == (*shape, 5, 6)
    assert all(bool((g == 0).all()) for g in grads)


def test_one_state_a_week_is_held_for_the_gradient():
    (start, m, doses), rates, _ = sample_problem(0, 1, 40)
    held = []
    with torch.autograd.graph.saved_tensors_hooks(lambda v: held.append(v.nbytes), id):
        simulate(start, m, doses, **rates, days=28)
    state = 6 * 40 * 6 * 8  # numbers of 8 bytes of 40 simulations of 6 regions
    assert sum(held) < 8 * state
