import pytest
import torch
from torch import Generator

from costscape import Box, SeparableTask, Simplex, Task
from costscape.methods.forecast.decision_samples import (
    Forecasts,
    Sampler,
    best_move,
    perturbations,
)
from costscape.problems import synthetic_convex, synthetic_nonconvex
from costscape.problems.two_sided import TwoSided
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers import ProjectedAdam, Separable, Solver


def outcomes(n=20, d=2, seed=0):
    return torch.randn(n, d, generator=Generator().manual_seed(seed))


def moves(n=20, k=9, d=2, seed=1):
    return 0.5 * perturbations(n, k, torch.zeros(d), Generator().manual_seed(seed))


def sets(task, n=6, m=15, d=2):
    values = torch.randn(n, m, d, generator=Generator().manual_seed(2))
    g = ExpectedCost(task, Scenarios(torch.full((n, m), 1 / m), values))
    return Forecasts(task, g, outcomes(n, d))


@pytest.fixture
def no_solver(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a solver was called")

    monkeypatch.setattr(Solver, "minimise", refuse)


@pytest.mark.parametrize("task", [synthetic_convex(), synthetic_nonconvex()], ids=["cvx", "non"])
def test_losses_of_points_are_those_of_hindsight_at_the_moved_outcome(task, no_solver):
    y, e = outcomes(), moves()
    t = Sampler().losses(Forecasts.of_outcomes(task, y), e)
    a = task.hindsight(y[:, None] + e)
    paid = task.cost(y[:, None], a) - task.cost(y, task.hindsight(y))[:, None]
    assert torch.allclose(t, paid.clamp(min=0))
    assert t.max() > 1


@pytest.mark.parametrize("task", [synthetic_convex(), synthetic_nonconvex()], ids=["cvx", "non"])
def test_losses_are_never_negative_and_nothing_without_a_move(task):
    y = outcomes()
    assert (Sampler().losses(Forecasts.of_outcomes(task, y), moves()) >= 0).all()
    still = Sampler().losses(Forecasts.of_outcomes(task, y), torch.zeros(20, 3, 2))
    assert (still == 0).all()


def test_without_hindsight_the_solver_decides_and_agrees_with_it():
    known = synthetic_convex()
    task = SeparableTask(known.f_terms, known.feasible, convex=True)
    y, e = outcomes(), moves()
    t = Sampler().losses(Forecasts.of_outcomes(task, y), e)
    assert torch.allclose(t, Sampler().losses(Forecasts.of_outcomes(known, y), e), atol=1e-3)
    assert (Sampler().losses(Forecasts.of_outcomes(task, y), 0 * e) == 0).all()


def test_a_moved_set_is_decided_as_the_solver_decides_it():
    task = synthetic_convex()
    f, e = sets(task), moves(6, 5)
    t = Sampler().losses(f, e)
    least = task.cost(f.y, task.hindsight(f.y))
    for n in range(6):
        for k in range(5):
            moved = f.surface.scenarios.values[n : n + 1] + e[n, k]
            g = ExpectedCost(task, Scenarios(f.surface.scenarios.weights[:1], moved))
            a = Separable().coarse().minimise(g, task.feasible, 1).action
            paid = float(task.cost(f.y[n : n + 1], a) - least[n])
            assert float(t[n, k]) == pytest.approx(max(paid, 0), abs=1e-4)


def test_blocks_of_pairs_change_nothing(monkeypatch):
    f, e = sets(synthetic_convex()), moves(6, 5)
    whole = Sampler().losses(f, e)
    monkeypatch.setattr("costscape.methods.forecast.decision_samples.HELD", 1)
    assert torch.allclose(Sampler().losses(f, e), whole)


def test_normal_laws_are_moved_by_their_means():
    task = synthetic_convex()
    m, s = outcomes(4), torch.full((4, 2), 0.3)
    laws = ExpectedCost(
        task.of_normals(), Scenarios(torch.ones(4, 1), torch.cat([m, s], 1)[:, None])
    )
    e = moves(4, 3)
    t = Sampler().losses(Forecasts(task, laws, outcomes(4, seed=3)), e)
    shifted = torch.cat([m + e[:, 0], s], 1)[:, None]
    g = ExpectedCost(task.of_normals(), Scenarios(torch.ones(4, 1), shifted))
    a = Separable().minimise(g, task.feasible, 4).action
    y = outcomes(4, seed=3)
    paid = task.cost(y, a) - task.cost(y, task.hindsight(y))
    assert torch.allclose(t[:, 0], paid.clamp(min=0), atol=1e-3)


def test_a_convex_task_without_a_fast_solver_is_not_solved_program_by_program():
    import cvxpy as cp

    task = Task(
        lambda y, a: (y - a).square().sum(-1),
        Simplex(dim=2),
        convex=True,
        cvxpy=lambda y, a: cp.sum(cp.square(y - a), axis=1),
    )
    y, e = outcomes(30), moves(30)
    t = Sampler().losses(Forecasts.of_outcomes(task, y), e)
    assert torch.equal(t, Sampler(ProjectedAdam()).losses(Forecasts.of_outcomes(task, y), e))
    exact = task.cost(y[:, None], task.feasible.project(y[:, None] + e))
    exact = exact - task.cost(y, task.feasible.project(y))[:, None]
    assert torch.allclose(t, exact, atol=1e-2)


def test_a_third_of_the_perturbations_move_all_one_and_two_coordinates():
    e = perturbations(50, 30, torch.zeros(5), Generator().manual_seed(0))
    moved = (e != 0).sum(-1)
    assert (moved[:, 0::3] == 5).all()
    assert (moved[:, 1::3] == 1).all()
    assert (moved[:, 2::3] == 2).all()
    share = (e[:, 1::3] != 0).float().mean((0, 1))
    assert torch.allclose(share, torch.full((5,), 0.2), atol=0.07)
    assert abs(float(e[e != 0].std()) - 1) < 0.05


def test_perturbations_have_the_shape_of_one_outcome():
    assert perturbations(4, 6, torch.zeros(3, 2), Generator().manual_seed(0)).shape == (4, 6, 3, 2)
    assert perturbations(4, 6, torch.zeros(1), Generator().manual_seed(0)).ne(0).all()


def test_the_first_of_equally_good_moves_is_the_best():
    t = torch.tensor([[2.0, 0.001, 0.0], [0.0, 0.0, 5.0]])
    e = torch.arange(6.0).reshape(2, 3, 1)
    assert best_move(t, e).flatten().tolist() == [1.0, 3.0]


def test_losses_are_found_again_without_solving(tmp_path, monkeypatch):
    f, e = sets(synthetic_convex()), moves(6, 5)
    first = Sampler(cache=tmp_path).losses(f, e)
    assert len(list(tmp_path.iterdir())) == 1

    def refuse(*_, **__):
        raise AssertionError("a solver was called")

    monkeypatch.setattr(Solver, "minimise", refuse)
    assert torch.equal(Sampler(cache=str(tmp_path)).losses(f, e), first)


def test_other_data_moves_solvers_and_costs_are_not_confused(tmp_path):
    task = synthetic_convex()
    y, e = outcomes(), moves()
    kept = Sampler(cache=tmp_path)
    dearer = SeparableTask(lambda y, a: 2 * task.f_terms(y, a), Box(-1.0, 1.0, dim=2), convex=True)
    wider = SeparableTask(task.f_terms, Box(-1.5, 1.0, dim=2), convex=True)
    asked = [
        (kept, Forecasts.of_outcomes(task, y), e),
        (kept, Forecasts.of_outcomes(task, y + 0.001), e),
        (kept, Forecasts.of_outcomes(task, y), 2 * e),
        (kept, Forecasts.of_outcomes(dearer, y), e),
        (kept, Forecasts.of_outcomes(wider, y), e),
        (Sampler(ProjectedAdam(), tmp_path), Forecasts.of_outcomes(task, y), e),
    ]
    for i, (sampler, forecasts, moved) in enumerate(asked):
        t = sampler.losses(forecasts, moved)
        assert len(list(tmp_path.iterdir())) == i + 1
        assert torch.equal(t, Sampler(sampler.solver).losses(forecasts, moved))


@pytest.mark.parametrize("harm", ["cut", "flipped", "foreign"])
def test_a_broken_cache_is_made_again_and_says_so(tmp_path, harm):
    f, e = Forecasts.of_outcomes(synthetic_convex(), outcomes()), moves()
    right = Sampler(cache=tmp_path).losses(f, e)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    path.write_bytes({"cut": whole[:50], "flipped": flipped, "foreign": b"hello"}[harm])
    with pytest.warns(UserWarning, match="cannot be read .* made again"):
        assert torch.equal(Sampler(cache=tmp_path).losses(f, e), right)
    assert torch.equal(Sampler(cache=tmp_path).losses(f, e), right)


@pytest.mark.parametrize("closed", [False, True], ids=["draws", "normal laws"])
def test_a_move_stretches_a_forecast_about_its_mean(closed):
    cost = TwoSided(short=3.0, spare=1.0, short_squared=0.0, spare_squared=0.0, cubic=0.0)
    task = SeparableTask(cost, Box(-50.0, 50.0, dim=2), convex=True, normal=cost.mean).double()
    rng = torch.Generator().manual_seed(0)
    like = {"generator": rng, "dtype": torch.float64}
    y, means = torch.randn(4, 2, **like), torch.randn(4, 3, 2, **like)
    sd = torch.rand(4, 3, 2, **like)
    weights = torch.rand(4, 3, **like).softmax(1)
    moves = torch.randn(4, 1, 2, 2, **like)

    def sets(means, sd):
        if closed:
            s = Scenarios(weights, torch.cat([means, sd], -1), own=True)
            return Forecasts(task, ExpectedCost(task.of_normals(), s), y)
        return Forecasts(task, ExpectedCost(task, Scenarios(weights, means, own=True)), y)

    middle = (weights[..., None] * means).sum(1, keepdim=True)
    factor = moves[:, :, 1].exp()
    by_hand = sets(middle + moves[:, :, 0] + factor * (means - middle), factor * sd)
    sampler = Sampler()
    expected = sampler.losses(by_hand, torch.zeros(4, 1, 2, dtype=torch.float64))
    assert torch.allclose(sampler.losses(sets(means, sd), moves), expected, atol=1e-6)
    assert not torch.allclose(sampler.losses(sets(means, sd), moves[:, :, 0]), expected, atol=1e-2)
