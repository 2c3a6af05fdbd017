"""The energy stage: its loss against closed forms and quadrature, whole fits, resume, refusals."""

from functools import partial

import pytest
import torch

from costscape import (
    MLP,
    Auto,
    Box,
    Budget,
    Exhaustive,
    Finite,
    Polytope,
    ProjectedAdam,
    SeparableTask,
    Simplex,
    Task,
    Training,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.methods.forecast.decision_samples import hindsight_actions
from costscape.methods.forecast.langevin import Langevin
from costscape.methods.forecast.so_ebm import SOEBM, spread
from costscape.methods.forecast.two_stage import TwoStage
from costscape.models.forecasts import Mixture, Point
from costscape.problems.two_sided import TwoSided

SHORT = Langevin(steps=5)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def told(**settings):
    return Training(**{"epochs": 2, "batch_size": 32, "progress": False, **settings})


def small(task, **settings):
    given = {
        "draws": 20,
        "samples": 20,
        "steps": 2,
        "langevin": SHORT,
        "encoder": partial(MLP, 2, hidden=8),
    }
    return SOEBM(task, **{**given, "training": told(), **settings})


def lopsided(dim=1, short=3.0, spare=1.0, ends=(0.0, 4.0)):
    cost = TwoSided(short=short, spare=spare, short_squared=0.0, spare_squared=0.0, cubic=0.0)
    return SeparableTask(cost, Box(*ends, dim=dim), convex=True, normal=cost.mean)


def squares(feasible):
    return Task(lambda y, a: (y - a).square().sum(-1), feasible, convex=True)


# ---- the loss


def test_on_a_box_the_loss_is_the_quadratures():
    task = lopsided(ends=(0.0, 1.0)).double()
    method = SOEBM(task, samples=200_000, weight=0.5, variances=(0.04, 0.25))
    best = torch.tensor([[0.2]], dtype=torch.float64)

    def energy(a):
        return 5 * (a - 0.7).square().sum(-1)

    def paid(a):
        return 4 * (a - 0.2).abs().sum(-1)

    t = ((torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000)[None, :, None]
    log_z = (-energy(t)).exp().mean().log()
    cross = (paid(t).neg().softmax(1) * energy(t)).sum() + log_z
    exact = 5 * 0.5**2 + log_z + 0.5 * cross
    assert float(method.loss(energy, paid, best, task, generator())) == pytest.approx(
        float(exact), abs=0.01
    )


def test_on_a_list_of_actions_the_loss_is_exact():
    task = squares(Finite([[0.0], [1.0], [2.0]]))
    method = SOEBM(task, weight=0.5)
    e = torch.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 2.0]])
    f = torch.tensor([[0.0, 1.0, 4.0], [4.0, 1.0, 0.0]])
    best = torch.tensor([[0.0], [2.0]])

    def table(costs):
        def of(a):
            k = a[..., 0].long().expand(2, -1)
            return costs.gather(1, k)

        return of

    found = method.loss(table(e), table(f), best, task, generator())
    log_z = (-e).exp().sum(1).log()
    v = (-f).exp() / (-f).exp().sum(1, keepdim=True)
    exact = torch.stack([e[0, 0], e[1, 2]]) + log_z + 0.5 * ((v * e).sum(1) + log_z)
    assert torch.allclose(found, exact)


def test_on_a_simplex_the_loss_sets_the_best_action_against_the_ends_of_chains():
    task = squares(Simplex(dim=3))
    method = SOEBM(task, weight=0.5)
    best = torch.eye(3)[:2]
    theta = torch.tensor([40.0, 40.0, 0.0], requires_grad=True)

    def paid(a):
        return 40 * (a - best.unsqueeze(1)).abs().sum(-1)

    loss = method.loss(lambda a: a @ theta, paid, best, task, generator())

    def both(a):
        return torch.cat([a[:, :1] @ theta.detach(), paid(a[:, 1:])], 1)

    starts = torch.stack([best, best], 1)
    likely, cheap = method.langevin.walk(both, starts, task.feasible, generator()).unbind(1)
    exact = (best - likely + 0.5 * (cheap - likely)) @ theta.detach()
    assert torch.allclose(loss.detach(), exact, atol=1e-4)
    # chains of the forecast's energy went to the third vertex, those of the cost stayed
    assert (likely[:, 2] > 0.8).all()
    assert (cheap[:, 2] < 0.2).all()
    (slope,) = torch.autograd.grad(loss.sum(), theta)
    assert torch.allclose(slope, (best - likely + 0.5 * (cheap - likely)).sum(0), atol=1e-4)


def test_the_likelihood_of_hindsight_is_flat_where_a_draw_falls_below_y_as_often_as_f_says():
    # y ~ N(0, 1), forecast N(m, s^2): P(y_m < y) = 3 / 4 at m = -z sqrt(1 + s^2), where a decision
    # of least cost would have m + z s = z, with z = 0.674 the normal's upper quartile
    task = lopsided(ends=(-8.0, 8.0)).double()
    method = SOEBM(task, samples=1000, weight=0.0, variances=(0.3, 2.0, 10.0))
    z = 0.6744897501960817
    quantiles = (torch.arange(200, dtype=torch.float64) + 0.5) / 200
    y = torch.special.ndtri(quantiles)[:, None]
    s = torch.tensor(0.6, dtype=torch.float64)

    def slope(m):
        m = torch.tensor(m, dtype=torch.float64, requires_grad=True)

        def energy(a):
            return task.normal(m, s, a).sum(-1)

        loss = method.loss(energy, energy, y, task, generator()).mean()
        return float(torch.autograd.grad(loss, m)[0])

    flat = -z * (1 + 0.36) ** 0.5
    assert slope(flat) == pytest.approx(0.0, abs=0.02)
    assert slope(flat - 0.3) < -0.2
    assert slope(flat + 0.3) > 0.2


def test_the_divergence_is_flat_at_the_truth_where_the_temperature_is_high():
    # y ~ N(0, 1) and a forecast N(m, 1), which is the truth at m = 0
    task = lopsided(ends=(-4.0, 4.0)).double()
    y = torch.special.ndtri((torch.arange(200, dtype=torch.float64) + 0.5) / 200)[:, None]
    one = torch.ones((), dtype=torch.float64)

    def slope(m, scale):
        m = torch.tensor(m, dtype=torch.float64, requires_grad=True)
        with_kl, without = (
            SOEBM(task, samples=1000, weight=w, variances=(1.0, 4.0, 16.0)).loss(
                lambda a: task.normal(m, one, a).sum(-1) / scale,
                lambda a: task.cost(y.unsqueeze(1), a) / scale,
                y,
                task,
                generator(),
            )
            for w in (1.0, 0.0)
        )
        return float(torch.autograd.grad((with_kl - without).mean(), m)[0])

    assert abs(slope(0.0, 50.0)) < 0.15 * slope(0.5, 50.0)
    assert slope(0.0, 0.5) > 0.15 * slope(0.5, 0.5) > 0


# ---- the best action in hindsight


def test_the_best_action_is_the_tasks_own_where_it_knows_one():
    task = PROBLEMS["synthetic-nonconvex"](0).task
    y = 2 * torch.randn(50, 2)
    assert torch.equal(hindsight_actions(task, y, Auto()), task.hindsight(y))


def test_the_best_action_is_searched_for_where_the_task_does_not_know_it():
    y = torch.randn(20, 3)
    box, simplex = Box(-0.5, 0.5, dim=3), Simplex(dim=3)
    separable = SeparableTask(lambda y, a: (y - a) ** 2, box)
    assert torch.allclose(hindsight_actions(separable, y, Auto()), y.clamp(-0.5, 0.5), atol=1e-3)
    found = hindsight_actions(squares(simplex), y, Auto())
    assert torch.allclose(found, simplex.project(y), atol=0.02)


def test_the_temperature_is_the_spread_of_the_cost():
    task = SeparableTask(lambda y, a: 7 * a + 0 * y, Box(0.0, 1.0, dim=1))
    y = torch.rand(30, 1)
    assert spread(task, y, 0) == pytest.approx(7 / 12**0.5, rel=0.2)
    assert spread(squares(Finite([[1.0]])), y, 0) == 1.0


# ---- the start


def test_where_hindsight_misleads_the_forecast_stays_that_of_the_two_stage_method():
    # a good start and a lopsided cost: the law of the test above leads away from the best stock
    rng = generator()
    x = torch.rand(250, 2, generator=rng)
    y = 1 + x[:, :1] + 0.3 * torch.randn(250, 1, generator=rng)
    settings = {
        "draws": None,
        "encoder": partial(MLP, 2, hidden=16),
        "training": told(epochs=10, lr=1e-2),
    }
    start = TwoStage(lopsided(short=9.0), **settings).fit(x, y)
    method = SOEBM(lopsided(short=9.0), samples=50, rates=(1.0,), **settings).fit(x, y)
    assert method.history_[1].best_epoch == -1
    assert method.history_[1].scores[-1] > 1.1 * method.history_[0].best
    assert torch.equal(method.decide(x), start.decide(x))


def test_where_the_forecast_has_the_wrong_shape_the_second_stage_helps():
    # skewed labels: a normal forecast has their mean, 2.7, where abs(y - a) wants their median, 1
    def draw(n, seed):
        rng = generator(seed)
        x = torch.rand(n, 2, generator=rng)
        return x, (1.4 * torch.randn(n, 1, generator=rng)).exp()

    task = lopsided(short=1.0, spare=1.0, ends=(0.0, 6.0))
    settings = {
        "draws": None,
        "encoder": partial(MLP, 2, hidden=8),
        "training": told(epochs=6, lr=5e-3),
    }
    x, y = draw(400, 0)
    method = SOEBM(task, samples=50, rates=(1.0,), **settings).fit(x, y, val=draw(400, 1))
    start = TwoStage(task, **settings).fit(x, y, val=draw(400, 1))
    assert method.history_[1].best_epoch >= 0
    off, before = (float((m.decide(x) - 1).abs().mean()) for m in (method, start))
    assert before > 1
    assert off < 0.75 * before


def test_the_second_stage_is_scored_after_every_step_of_all_rows(demand):
    # a gain that lasts for a few steps only is seen, whatever the schedule of the first stage
    x, y = demand(150)
    calls = []

    class Counted(SOEBM):
        def loss(self, energy, paid, best, *others):
            calls.append(len(best))
            return super().loss(energy, paid, best, *others)

    training = told(epochs=4, batch_size=16, smooth=3, score_every=2)
    settings = {"draws": 20, "samples": 20, "steps": 6, "training": training}
    method = Counted(lopsided(), rates=(1.0,), **settings)
    method.fit(x, y, val=(x[:50], y[:50]))
    scored = method.history_[1].scores
    assert set(calls) == {150}
    assert len(calls) == len(scored)
    assert len(set(scored)) == len(scored)
    assert method.chosen()["epoch"] == method.history_[1].best_epoch + 1


def test_the_second_stage_tries_each_rate_from_the_same_start_and_keeps_the_best(demand):
    x, y = demand(150)
    settings = {"draws": 20, "samples": 20, "steps": 4, "training": told(epochs=4, lr=1e-2)}
    fits = {
        rates: SOEBM(lopsided(), rates=rates, **settings).fit(x, y)
        for rates in ((0.3,), (3.0,), (0.3, 3.0))
    }
    start, low, high = fits[0.3, 3.0].history_
    assert fits[0.3,].history_[0].scores == start.scores
    assert fits[0.3,].history_[1].scores == low.scores
    assert fits[3.0,].history_[1].scores == high.scores
    least = min(h.best for rates in ((0.3,), (3.0,)) for h in fits[rates].history_)
    assert min(h.best for h in fits[0.3, 3.0].history_) == least
    assert sum(h.best_epoch >= 0 for h in (low, high)) <= 1


# ---- whole fits


@pytest.mark.parametrize("problem", ["synthetic-convex", "synthetic-nonconvex"])
@pytest.mark.parametrize("draws", [20, None])
def test_the_contract_holds_on_the_synthetic_problems(problem, draws):
    p = PROBLEMS[problem](0)
    data = p.data.train[:120]
    check_method(small(p.task, draws=draws, langevin=SHORT), data.x, data.y)


SETS = {
    "simplex": Simplex(dim=2),
    "budget": Budget(total=1.0, dim=2),
    "polytope": Polytope(G=[[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], h=[1.0, 0.0, 0.0]),
    "finite": Finite([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    "flat box": Box([0.0, 0.5], [1.0, 0.5]),
}


@pytest.mark.parametrize("name", sorted(SETS))
def test_the_contract_holds_on_every_kind_of_set(name, demand):
    x, y = demand(40, dim=2)
    solver = Exhaustive() if name == "finite" else ProjectedAdam(steps=20, starts=1)
    method = small(squares(SETS[name]), draws=5, solver=solver, training=told(batch_size=64))
    check_method(method, x, y - 1)


@pytest.mark.parametrize("k", [3, 11])
def test_a_mixture_learns_through_draws_where_it_has_many_components(k, demand):
    # up to ten components in closed form, beyond by draws
    x, y = demand(60)
    method = small(lopsided(), forecast=Mixture(k), train_draws=None, weight=1.0)
    assert torch.isfinite(method.fit(x, y).decide(x)).all()
    model = method.model_
    g = method._forecast_cost(method.task, model, x, generator())
    assert g.scenarios.values.shape == ((60, 3, 2) if k == 3 else (60, 16, 1))
    g(torch.ones(1, 1, 1)).sum().backward()
    assert model.head.location.weight.grad.abs().sum() > 0


def test_it_fits_in_double_precision(demand):
    x, y = demand(40)
    method = small(lopsided().double()).fit(x.double(), y.double())
    assert method.decide(x.double()).dtype == torch.float64


def test_a_broken_and_resumed_fit_ends_bit_equal_to_an_unbroken_one(tmp_path, demand, monkeypatch):
    x, y = demand(60)
    run = partial(small, lopsided(), weight=0.5, steps=3)
    whole = run(training=told(epochs=3, smooth=1, checkpoint=tmp_path / "whole")).fit(x, y)
    broken = run(training=told(epochs=3, smooth=1, checkpoint=tmp_path / "broken"))
    true, left = SOEBM.loss, [1]  # one batch an epoch: dies in the second

    def dying(self, *args):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return true(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(SOEBM, "loss", dying)
        with pytest.raises(KeyboardInterrupt):
            broken.fit(x, y)
    again = broken.fit(x, y)
    assert again.history_ == whole.history_
    state = whole.model_.state_dict()
    assert all(torch.equal(v, state[k]) for k, v in again.model_.state_dict().items())
    assert torch.equal(again.decide(x), whole.decide(x))


# ---- refusals


def test_a_point_is_refused():
    with pytest.raises(TypeError, match=r"SOEBM needs a forecast with a law .* got Point"):
        SOEBM(lopsided(), forecast=Point())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"samples": 0}, "samples to be a whole number of at least 1"),
        ({"train_draws": 0}, "train_draws to be a whole number of at least 1"),
        ({"draws": 0}, "draws to be a whole number of at least 1"),
        ({"weight": -1.0}, "weight to be a number of at least 0"),
        ({"weight": float("nan")}, "weight to be a number"),
        ({"temperature": 0.0}, "temperature to be a number above 0"),
        ({"variances": ()}, "variances to be a tuple .a number above 0, "),
        ({"variances": (0.1, -1.0)}, "variances to be a tuple .a number above 0, "),
    ],
    ids=lambda value: str(value),
)
def test_bad_settings_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        SOEBM(lopsided(), **wrong)


def test_the_closed_form_is_refused_where_the_task_does_not_know_it():
    with pytest.raises(TypeError, match="without normal="):
        SOEBM(squares(Simplex(dim=2)), draws=None)
