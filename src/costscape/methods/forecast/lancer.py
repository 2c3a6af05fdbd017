"""LANCER: learn the landscape of the decision loss, and descend on it.

    f(y, a*(c_theta(x)))  ~  M_w(e, y),   e = c_theta(x) - y, of m numbers

    repeat   w      min  mean over all seen (y, yhat)  ( M_w(e, y) - f(y, a*(yhat)) )^2
             theta  min  mean_(x, y)  M_w(e, y) + regularise |e|^2 / m

with a*(yhat) the best decision had yhat been the outcome. The solver is run, not differentiated.

Zharmagambetov, Amos, Ferber, Huang, Dilkina and Tian, Landscape Surrogate: Learning Decision
Losses for Mathematical Optimization Under Partial Information, NeurIPS 2023.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

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
from costscape.training import History, Training
from costscape.training.settings import Checked, Count, Decay, NotNegative, Positive

ROWS = 4096  # forecast at once


@dataclass(frozen=True)
class Steps(Checked):
    """Gradient steps of Adam in one round of LANCER.

    Args:
        count: int, default 5. Number of steps in a round.
        batch_size: int, default 1024. Number of rows in a step, sampled at random.
        lr: float, default 1e-3. Learning rate.
        weight_decay: float, default 0.01. Weight decay of Adam.

    >>> import costscape as cs
    >>> cs.LANCER(cs.problems.inventory(), landscape=cs.Steps(count=10)).landscape.count
    10
    """

    count: Count = 5
    batch_size: Count = 1024
    lr: Positive = 1e-3
    weight_decay: NotNegative = 0.01


def _descent() -> Steps:
    return Steps(batch_size=128, lr=5e-3)


@dataclass
class LANCER(PointRounds):
    """Fits a point forecast by least squares, then on a learned landscape of the decision cost f.

    Args:
        task: Task. The cost and the feasible set.
        forecast: Forecast, default Point(), the only one that is accepted.
        rounds: int, default 100. Number of rounds; each fits the landscape, then the forecast. The
            round whose decisions cost least on the validation rows is used, with the least-squares
            start as round 0. The authors take 10, after which few costs have changed; the
            validation cost of the synthetic problems still falls after 30.
        signed: bool, default True. True: the landscape is a function of e and y, fitted to f in
            standard deviations. False, as the authors have it: a function of e^2 that is not
            negative, fitted to f itself, which has to be positive. It cannot tell a forecast too
            high from one too low. It starts near 0, and rises with e^2 while it learns the size
            of f, so that the first rounds shrink errors; a signed one begins anywhere.
        regularise: float, default 0.1. Weight of the squared error, in standard deviations, beside
            the landscape, whose unit, if signed, is the standard deviation of f in the first
            round. The authors take 0 or 1.
        width: int, default 100. Units in each of the two hidden layers of the landscape.
        landscape: Steps, default 5 steps of 1,024 rows at 1e-3, as in the authors' code. How w is
            fitted in each round. Adam keeps its moments from round to round, as in the authors'
            code.
        descent: Steps, default 5 steps of 128 rows at 5e-3, as in the authors' code. How theta is
            fitted in each round, by the same kind of Adam.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences.
        level: function from x, shape (B, ...), to one positive number for each row, shape (B,),
            default None. Windows and outcomes are divided by that number, as in WindowLevels.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network in the least-squares start; None uses the weights of the epoch itself.
        solver: Solver, default Auto(), the strongest one that accepts the problem. Minimises the
            expected cost over the feasible set.
        training: Training, default Training(). Epochs, learning rate, device and so on, of the
            least-squares start. Its checkpoint and progress also serve the rounds.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    Cost: one decision for each training row in each round.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.LANCER(cs.problems.inventory(days=2), rounds=1, training=training)
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    task: Task
    forecast: Forecast = field(default_factory=Point)
    rounds: Count = 100
    signed: bool = True
    regularise: NotNegative = 0.1
    width: Count = 100
    landscape: Steps = field(default_factory=Steps)
    descent: Steps = field(default_factory=_descent)
    encoder: Builder | None = None
    level: Level | None = None
    ema: Decay | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        assert isinstance(model, PointForecast)
        start = self._by_likelihood(task, model, train, val)
        z = model.units.standard(train.x, train.y).flatten(1)
        with seeded(self.seed, z.device):
            surface = Landscape(z.shape[1], self.width, self.signed).to(z)
        seen = _Replay(z.device)
        learn_w, learn_theta = (
            _Adam(part, steps)
            for part, steps in ((surface, self.landscape), (model, self.descent))
        )

        def turn(t: int) -> float:
            with torch.no_grad():
                yhat = torch.cat([model.mean(x) for x in train.x.split(ROWS)])
                f = task.cost(train.y, hindsight_actions(task, yhat, self.solver))
                pairs = torch.cat([model.units.standard(train.x, yhat).flatten(1), z], 1)
            if t == 0:
                surface.set_unit(f)
            seen.add(pairs, f)
            rng = Generator(z.device).manual_seed(self.seed + t)
            learn_w(lambda batch: fit_landscape(surface, batch), seen.all(), rng)
            model.train()
            with seeded(self.seed + t, z.device):  # of dropout
                return learn_theta(
                    lambda batch: descend(model, surface, self.regularise, batch), train, rng
                )

        parts = {"surface": surface, "seen": seen, "w": learn_w, "theta": learn_theta}
        return [start, self._take_turns(task, model, parts, turn, train, val)]


class _Adam:
    """Adam on the weights of one part, with moments that last from round to round."""

    def __init__(self, part: nn.Module, steps: Steps) -> None:
        self.steps = steps
        weights = [weight for weight in part.parameters() if weight.requires_grad]
        self.adam = torch.optim.Adam(weights, lr=steps.lr, weight_decay=steps.weight_decay)

    def __call__(self, loss: Callable[[Dataset], Tensor], data: Dataset, rng: Generator) -> float:
        """Take the steps of one round; the mean loss."""
        total = 0.0
        for _ in range(self.steps.count):
            like = {"generator": rng, "device": data.x.device}
            size = min(self.steps.batch_size, len(data))
            rows = torch.randint(len(data), (size,), **like)  # type: ignore[call-overload]
            value = loss(Dataset(data.x[rows], data.y[rows]))
            self.adam.zero_grad()
            value.backward()
            self.adam.step()
            total += float(value.detach())
        return total / self.steps.count

    def state_dict(self) -> dict[str, Any]:
        return self.adam.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.adam.load_state_dict(state)


class Landscape(nn.Module):
    """M_w: (yhat, y), flat and in standard deviations -> f; two tanh layers.

    f is in standard deviations if ``signed``; else it is itself, and a ReLU comes last.
    """

    def __init__(self, size: int, width: int, signed: bool) -> None:
        super().__init__()
        self.signed = signed
        self.net = nn.Sequential(
            nn.Linear(2 * size if signed else size, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
            *([] if signed else [nn.ReLU()]),
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
        if not self.signed:
            return
        self.mean.copy_(f.mean())
        self.scale.copy_(f.std(correction=0).clamp(min=1e-6 * f.abs().max().clamp(min=1e-12)))

    def standard(self, f: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
        return (f - self.mean) / self.scale


def fit_landscape(surface: Landscape, batch: Dataset) -> Tensor:
    """The mean squared error of M_w, in its unit of f."""
    error: Tensor = surface(*batch.x.chunk(2, 1)) - surface.standard(batch.y)
    return error.square().mean()


def descend(model: PointForecast, surface: Landscape, regularise: float, batch: Dataset) -> Tensor:
    """mean M_w(yhat, y) + regularise |yhat - y|^2 / m, outcomes in standard deviations."""
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
