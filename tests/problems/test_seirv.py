from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from torch.utils.checkpoint import checkpoint

from costscape.problems.vaccine_doses.seirv import new_infections, simulate, trip_shares

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


def plain(start, m, doses, *, beta, population, days=7, dose_days=7, steps=2):
    """The same steps by torch's own gradients: m (P, T, K, K), doses (P, F, K)."""
    N = population
    flow = m * N.unsqueeze(-1) / N - torch.diag_embed(m.sum(-1))
    given = doses / N
    x = start.expand(*given.shape[:2], 5, -1)
    infected = torch.zeros_like(given)

    def slope(x, day):
        S, E, I = x.unbind(2)[:3]
        new = beta * S * I / x.sum(2)
        d = given if day < dose_days else 0 * given
        u = (d / (S + E).clamp(min=1e-6)).clamp(max=1)
        to_S, to_E = u * S, u * E
        local = [-new - to_S, new - E / 5 - to_E, E / 5 - I / 10, I / 10, to_S + to_E]
        travel = torch.einsum("pfck,pkl->pfcl", x, flow[:, day % m.shape[1]])
        return travel + torch.stack(local, 2), new

    h = 1 / steps
    for day in range(days):
        for _ in range(steps):
            k1, new1 = slope(x, day)
            k2, new2 = slope(x + h / 2 * k1, day)
            k3, new3 = slope(x + h / 2 * k2, day)
            k4, new4 = slope(x + h * k3, day)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            infected = infected + h / 6 * (new1 + 2 * new2 + 2 * new3 + new4)
    return infected * N, x


def problem(seed, P, F, T, regions, much, dtype=D):
    """Leaves that all want slopes, and weights for the outcomes."""
    rng = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return torch.rand(*shape, generator=rng, dtype=dtype)

    start = rand(5, regions) + 0.01
    population = 10 ** (4 + rand(regions))
    leaves = [
        start / start.sum(0),
        trip_shares(rand(P, T, regions, regions) + torch.eye(regions)).to(dtype),
        much * rand(P, F, regions) * population / 7,
        0.1 + 0.3 * rand(regions),
        population,
    ]
    weights = rand(P, F, regions) / 1e3, rand(P, F, 5, regions) - 0.5
    return [v.requires_grad_() for v in leaves], weights


def slopes(f, leaves, weights, **settings):
    start, m, doses, beta, population = leaves
    if f is simulate or f is new_infections:
        m = m.unsqueeze(1)
    out = f(start, m, doses, beta=beta, population=population, **settings)
    out = out if isinstance(out, tuple) else (out,)
    total = sum((v * w).sum() for v, w in zip(out, weights, strict=False))
    return *out, *torch.autograd.grad(total, leaves)


def assert_same(some, others, tol):
    for one, other in zip(some, others, strict=True):
        assert (one - other).abs().max() <= tol * other.abs().max() + 5e-14


SHAPES = st.tuples(*[st.integers(1, 4)] * 3, st.integers(1, 6))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shape=SHAPES,
    much=st.sampled_from([0.0, 0.3, 3.0, 30.0]),
    days=st.integers(1, 9),
    dose_days=st.integers(0, 9),
    steps=st.integers(1, 3),
    cached=st.sampled_from([1, 12, 10**6]),
    kept=st.sampled_from([1, 10**9]),
    threads=st.sampled_from([1, 2, 3]),
)
def test_values_and_all_slopes_are_those_of_torch(
    seed, shape, much, days, dose_days, steps, cached, kept, threads
):
    leaves, weights = problem(seed, *shape, much)
    course = {"days": days, "dose_days": dose_days, "steps": steps}
    want = slopes(plain, leaves, weights, **course)
    alone = slopes(lambda *args, **more: plain(*args, **more)[0], leaves, weights, **course)
    with pytest.MonkeyPatch.context() as patch, torch_threads(threads):
        patch.setattr("costscape.problems.vaccine_doses.seirv_run.CACHED", cached)
        patch.setattr("costscape.problems.vaccine_doses.seirv.KEPT", kept)
        assert_same(slopes(simulate, leaves, weights, **course), want, 1e-12)
        assert_same(slopes(new_infections, leaves, weights, **course), alone, 1e-12)


@contextmanager
def torch_threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
        assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)


def test_slopes_in_single_precision_are_those_of_torch():
    leaves, weights = problem(0, 3, 4, 7, 6, 0.5, torch.float32)
    some = slopes(simulate, leaves, weights, days=9)
    assert_same(some, slopes(plain, leaves, weights, days=9), 1e-5)
    assert all(v.dtype == torch.float32 for v in some)


@pytest.mark.parametrize("wanted", [1, 2], ids=["m", "doses"])
def test_one_slope_alone_is_the_same_as_among_all(wanted):
    leaves, weights = problem(0, 3, 4, 7, 6, 0.5)
    every = slopes(simulate, leaves, weights)[2 + wanted]
    start, m, doses, beta, population = (v.detach() for v in leaves)
    if wanted == 1:
        m.requires_grad_()
    else:
        doses.requires_grad_()
    out = simulate(start, m.unsqueeze(1), doses, beta=beta, population=population)
    total = sum((v * w).sum() for v, w in zip(out, weights, strict=True))
    assert torch.equal(torch.autograd.grad(total, (m, doses)[wanted - 1])[0], every)


@pytest.mark.parametrize(
    "mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference"]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_without_slopes_the_values_are_the_same(mode, threads, monkeypatch):
    monkeypatch.setattr("costscape.problems.vaccine_doses.seirv_run.CACHED", 12)
    (start, m, doses, beta, population), _ = problem(0, 3, 4, 7, 6, 0.5)
    with torch_threads(threads):
        kept = simulate(start, m[:, None], doses, beta=beta, population=population)
        with mode():
            values = simulate(start, m[:, None], doses, beta=beta, population=population)
    assert not values[0].requires_grad
    assert all(torch.equal(v, w) for v, w in zip(values, kept, strict=True))


def test_the_same_bits_come_again_from_several_threads(monkeypatch):
    monkeypatch.setattr("costscape.problems.vaccine_doses.seirv_run.CACHED", 12)
    leaves, weights = problem(0, 3, 7, 7, 6, 0.5)
    with torch_threads(3):
        first = slopes(simulate, leaves, weights)
        for _ in range(5):
            again = slopes(simulate, leaves, weights)
            assert all(torch.equal(v, w) for v, w in zip(first, again, strict=True))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)], ids=str)
def test_no_simulations_give_no_outcomes_and_no_slopes(shape):
    leaves, weights = problem(0, *shape, 7, 4, 0.5)
    infected, end, *grads = slopes(simulate, leaves, weights)
    assert infected.shape == (*shape, 4)
    assert end.shape == (*shape, 5, 4)
    assert all(bool((g == 0).all()) for g in grads)


def test_an_error_in_a_thread_is_raised_and_the_threads_of_torch_stay(monkeypatch):
    def broken(*_):
        raise MemoryError("no buffers")

    monkeypatch.setattr("costscape.problems.vaccine_doses.seirv_run.CACHED", 12)
    monkeypatch.setattr("costscape.problems.vaccine_doses.seirv_steps.Space.step", broken)
    leaves, weights = problem(0, 3, 7, 7, 6, 0.5)
    with torch_threads(2), pytest.raises(MemoryError):
        slopes(simulate, leaves, weights)


def test_slopes_of_slopes_are_refused():
    leaves, (weight, _) = problem(0, 1, 1, 7, 3, 0.5)
    start, m, doses, beta, population = leaves
    infected, _ = simulate(start, m[:, None], doses, beta=beta, population=population)
    (slope,) = torch.autograd.grad((infected * weight).sum(), beta, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_checkpointing_around_a_simulation_gives_the_same_slopes():
    leaves, (weight, _) = problem(0, 3, 4, 7, 6, 0.5)
    start, m, doses, beta, population = leaves

    def f(m, doses):
        return (new_infections(start, m, doses, beta=beta, population=population) * weight).sum()

    want = torch.autograd.grad(f(m[:, None], doses), leaves)
    got = torch.autograd.grad(checkpoint(f, m[:, None], doses, use_reentrant=False), leaves)
    assert all(torch.equal(v, w) for v, w in zip(got, want, strict=True))


def test_few_states_are_kept_where_all_would_be_too_many(monkeypatch):
    (start, m, doses, beta, population), _ = problem(0, 1, 40, 7, 6, 0.5)

    def kept():
        held = []
        pack = torch.autograd.graph.saved_tensors_hooks(lambda v: held.append(v.nbytes), id)
        with pack:
            new_infections(start, m, doses, beta=beta, population=population, days=28)
        return sum(held)

    one = (3 * 40 + 1) * 6 * 8
    monkeypatch.setattr("costscape.problems.vaccine_doses.seirv_run.CACHED", 12)
    monkeypatch.setattr("costscape.problems.vaccine_doses.seirv.KEPT", 10**9)
    every = kept()
    monkeypatch.setattr("costscape.problems.vaccine_doses.seirv.KEPT", 1)
    assert every > 56 * one
    assert every - kept() > 54 * one
