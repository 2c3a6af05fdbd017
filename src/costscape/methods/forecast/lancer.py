"""LANCER: learn the landscape of the decision loss, and descend on it.

    f(y, a*(c_theta(x)))  ~  M_w(e, y),   e = c_theta(x) - y, of m numbers

    repeat   w      min  mean over all seen (y, yhat)  ( M_w(e, y) - f(y, a*(yhat)) )^2
             theta  min  mean_(x, y)  M_w(e, y) + regularise |e|^2 / m

with a*(yhat) the best decision had yhat been the outcome. The solver is run, not differentiated.

Zharmagambetov, Amos, Ferber, Huang, Dilkina and Tian, Landscape Surrogate: Learning Decision
Losses for Mathematical Optimization Under Partial Information, NeurIPS 2023.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.forecast.alternating import PointRounds
from costscape.methods.forecast.decision_samples import hindsight_actions
from costscape.methods.forecast.forecast_method import Network
from costscape.methods.method import seeded
from costscape.models import Builder
from costscape.models.forecasts import Forecast, Point, PointForecast
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Fit, History, Training, fit_all

ROWS = 4096  # forecast at once


def _landscape() -> Training:
    return Training(epochs=20, batch_size=1024, lr=1e-3, decay=False, patience=20, smooth=5)


def _descent() -> Training:
    return Training(epochs=5, batch_size=128, lr=1e-3, decay=False, patience=20, smooth=5)


@dataclass
class LANCER(PointRounds):
    """A point forecast, first by least squares, then on a learned landscape of f.

    - ``rounds``: how often landscape and forecast take turns; the round of the cheapest decisions
      on validation is kept, the least-squares start among them.
    - ``signed``: the landscape sees e and y. False is the paper's, which sees e^2 alone: it
      cannot tell a forecast too high from one too low, and so cannot learn to shift one.
    - ``regularise``: weight of the squared error, in standard deviations, beside the landscape,
      whose unit is the standard deviation of f in the first round.
    - ``width``: units in each of the landscape's two hidden layers.
    - ``landscape``, ``descent``: how w and theta are fitted in each round. Checkpoint, device
      and progress are those of ``training``, which is the start's.
    - ``encoder``, ``level``, ``ema``: as of TwoStage.

    The paper's are signed=False, regularise 0 or 1, landscape 5 epochs with weight decay 0.01,
    descent at rate 0.005. The first rounds may overshoot, where the landscape has seen no forecast
    yet; the next ones have.
    """

    task: Task
    forecast: Forecast = field(default_factory=Point)
    rounds: int = 10
    signed: bool = True
    regularise: float = 0.1
    width: int = 100
    landscape: Training = field(default_factory=_landscape)
    descent: Training = field(default_factory=_descent)
    encoder: Builder | None = None
    level: Level | None = None
    ema: float | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < 1:
            raise ValueError(f"LANCER needs width of at least 1, but got {self.width}.")
        if not self.regularise >= 0:
            raise ValueError(f"LANCER needs regularise of at least 0, but got {self.regularise}.")

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        assert isinstance(model, PointForecast)
        start = self._by_likelihood(task, model, train, val)
        z = model.units.standard(train.x, train.y).flatten(1)
        with seeded(self.seed, z.device):
            surface = Landscape(z.shape[1], self.width, self.signed).to(z)
        seen = _Replay(z.device)

        def turn(t: int) -> float:
            with torch.no_grad():
                yhat = torch.cat([model.mean(x) for x in train.x.split(ROWS)])
                f = task.cost(train.y, hindsight_actions(task, yhat, self.solver))
                pairs = torch.cat([model.units.standard(train.x, yhat).flatten(1), z], 1)
            if t == 0:
                surface.set_unit(f)
            seen.add(pairs, f)
            surface.requires_grad_(True)
            fit = Fit(
                surface,
                lambda batch, rng: (
                    (surface(*batch.x.chunk(2, 1)) - surface.standard(batch.y)).square().mean()
                ),
                seed=self.seed + t,
            )
            fit_all([fit], seen.all(), self._within(self.landscape))
            surface.requires_grad_(False)
            fit = Fit(
                model,
                lambda batch, rng: descend(model, surface, self.regularise, batch),
                seed=self.seed + t,
                ema=self.ema,
            )
            return fit_all([fit], train, self._within(self.descent))[0].losses[-1]

        parts = {"surface": surface, "seen": seen}
        return [start, self._take_turns(task, model, parts, turn, train, val)]


class Landscape(nn.Module):
    """M_w: (yhat, y), flat and in standard deviations -> f, in its own; two tanh layers."""

    def __init__(self, size: int, width: int, signed: bool) -> None:
        super().__init__()
        self.signed = signed
        self.net = nn.Sequential(
            nn.Linear(2 * size if signed else size, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, yhat: Float[Tensor, "B m"], y: Float[Tensor, "B m"]) -> Float[Tensor, "B"]:
        e = yhat - y
        cost: Tensor = self.net(torch.cat([e, y], 1) if self.signed else e.square())
        return cost[:, 0]

    def set_unit(self, f: Float[Tensor, "n"]) -> None:
        self.mean.copy_(f.mean())
        self.scale.copy_(f.std(correction=0).clamp(min=1e-6 * f.abs().max().clamp(min=1e-12)))

    def standard(self, f: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
        return (f - self.mean) / self.scale


def descend(model: PointForecast, surface: Landscape, regularise: float, batch: Dataset) -> Tensor:
    """mean M_w(yhat, y) + regularise |yhat - y|^2 / m, all in standard deviations."""
    yhat, y = (
        model.units.standard(batch.x, each).flatten(1) for each in (model.mean(batch.x), batch.y)
    )
    cost: Tensor = surface(yhat, y).mean()
    return cost + regularise * (yhat - y).square().mean()


class _Replay:
    """All (yhat, y) so far beside what their decisions cost, one tensor for each round."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.rounds: list[Tensor] = []

    def add(self, pairs: Tensor, costs: Tensor) -> None:
        self.rounds.append(torch.cat([pairs, costs[:, None]], 1))

    def all(self) -> Dataset:
        rows = torch.cat(self.rounds)
        return Dataset(rows[:, :-1], rows[:, -1])

    def state_dict(self) -> dict[str, list[Tensor]]:
        return {"rounds": self.rounds}

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        self.rounds = [rows.to(self.device) for rows in state["rounds"]]
