"""Figure 1: each panel against what is known in closed form."""

import pytest
import torch
from torch import Generator
from typer.testing import CliRunner

from costscape import (
    DFL,
    Box,
    Flat,
    Mixture,
    SeparableTask,
    Training,
    TwoStage,
)
from costscape.bench.figure1 import model_mismatch, read_bottlenecks
from costscape.bench.figure1.gradient_variance import gradients
from costscape.bench.figure1.local_quadratic import LocalModel
from costscape.bench.figure1.model_mismatch import nearest_laws
from costscape.bench.figure1.true_law import known_parts
from costscape.bench.problem_names import problem_named
from costscape.cli import app
from costscape.data import Dataset


def test_decisions_for_the_wrong_law_have_the_slope_of_that_law_at_zero():
    p = problem_named("synthetic-convex")(0)
    task, truth = known_parts(p)
    x = p.data.test.x[:50]
    found = nearest_laws(task, truth, x)
    # moments of y given x, from many draws
    rng = Generator().manual_seed(0)
    which = torch.multinomial(torch.tensor([0.3, 0.3, 0.4]), 200_000, True, generator=rng)
    y = (truth.maps.double() @ x.double().T).permute(2, 0, 1)[:, which]  # (50, n, 2)
    y = y + 0.1**0.5 * torch.randn(y.shape[1:], generator=rng, dtype=torch.float64)
    mean, deviation = y.mean(1), y.std(1)
    assert torch.allclose(found["point"], mean.clip(-1, 1), atol=0.01)
    a = found["one Gaussian"]
    inside = a.abs() < 0.99
    assert inside.any()
    z = (a - mean) / deviation
    normal = torch.distributions.Normal(0.0, 1.0)
    below, density = normal.cdf(z), normal.log_prob(z).exp()
    spare = deviation * (density + z * below)
    short = deviation * (density - z * (1 - below))
    slope = 20 * below - 5 * (1 - below) + 2 * (0.2 * spare - 0.5 * short)
    assert slope[inside].abs().max() < 0.3  # of slopes between -5 and 20, with rounding of draws
    assert truth.gap(x, found["three Gaussians"]).max() < 1e-9
    assert truth.gap(x, a).mean() < truth.gap(x, found["point"]).mean()


@pytest.mark.parametrize("draws", [10, 160])
def test_the_variance_of_a_gradient_is_that_of_the_mean_of_the_draws(draws):
    # f = (y - a)^2, so a is the mean of the draws, m + s n, and n ~ N(0, 1 / M)
    task = SeparableTask(lambda y, a: (y - a) ** 2, Box(-5.0, 5.0, dim=1), convex=True)
    rng = Generator().manual_seed(0)
    x = torch.randn(60, 2, generator=rng)
    y = x[:, :1] + torch.randn(60, 1, generator=rng)
    once = Training(epochs=1, progress=False)
    model = TwoStage(task, Mixture(1), encoder=Flat, training=once).fit(x, y).model_
    batch = Dataset(x[:1], y[:1])
    g = gradients(DFL(task, draws=draws), task, model, batch, repeats=90)
    law = model.laws(batch.x)
    m, s = law.values[0, 0].unbind()
    parameters = list(model.parameters())

    def slope(value):
        parts = torch.autograd.grad(
            value, parameters, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return torch.cat([part.flatten() for part in parts])

    to_m, to_s = slope(m), slope(s)
    error = m - batch.y[0, 0]
    linear, square = s * to_m + error * to_s, s * to_s
    exact = 4 * (linear.square().sum() / draws + 2 * square.square().sum() / draws**2)
    assert float(g.var(0).sum()) == pytest.approx(float(exact.detach()), rel=0.4)


@pytest.fixture(scope="module")
def model():
    p = problem_named("synthetic-nonconvex")(0)
    task, truth = known_parts(p)
    return LocalModel.at(task, truth, p.data.test.x[1:2]), truth, p.data.test.x[1]


def test_the_local_quadratic_has_value_slope_and_curvature_of_g_at_its_point(model):
    local, truth, x = model
    h = 1e-3
    a = local.point + torch.tensor([-h, 0.0, h], dtype=torch.float64)
    g, q = local.g(a), local.quadratic(a)
    assert float(q[1]) == pytest.approx(float(g[1]), abs=1e-12)
    assert local.slope == pytest.approx(0, abs=1e-6)  # a minimum inside C
    assert float(q[2] - q[0]) == pytest.approx(float(g[2] - g[0]), abs=1e-6)
    assert float(q.diff().diff()) == pytest.approx(float(g.diff().diff()), rel=1e-3)
    # and g is the truth, up to the part of the second action
    both = torch.tensor([[0.3, 0.1], [1.2, 0.1]], dtype=torch.float64)
    true = truth.expected_cost(x.double(), both)
    assert float(local.g(both[:, 0]).diff()) == pytest.approx(float(true.diff()))


def test_the_rate_is_that_of_the_optimality_condition_and_the_minimum_jumps(model):
    local, _, _ = model
    h = 1e-3
    near = local.argmin(torch.tensor([-h, h], dtype=torch.float64))
    assert local.rate == pytest.approx(float(near.diff()) / (2 * h), rel=0.02)
    # E[f(y + t, a)]: all but 4 a^3 depends on a - t, so the rate is 1 - 24 a / g''
    assert local.rate == pytest.approx(1 - 24 * local.point / local.curvature, rel=0.01)
    far = local.argmin(torch.tensor([-1.5], dtype=torch.float64))
    assert float(far) == pytest.approx(-2)
    assert local.point - 1.5 * local.rate > -1


def test_the_command_writes_rows_and_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(model_mismatch, "FORECASTS", ("two-stage-gmm1",))
    words = ["paper", "figure1", "--quick", "--store", str(tmp_path)]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    rows = read_bottlenecks(tmp_path)
    assert {row["panel"] for row in rows} == {"mismatch", "sampling", "local"}
    assert "one Gaussian, infinite data" in done.stdout
    assert (tmp_path / "figure1.png").read_bytes().startswith(b"\x89PNG")
