"""SO-EBM: the best action in hindsight is to be likely where the forecast makes it cheap.

    E(a; x) = mean_m f(y_m, a) / T,   y_m ~ p(. | x),        p(a | x) = exp(-E(a; x)) / Z(x)  on C

    minimise  mean_(x, y)  E(a*; x) + log Z(x)  +  weight KL( exp(-f(y, .) / T) / Z_f || p(. | x) )

with a* the best action had y been known, starting from the forecast of maximum likelihood.

The likelihood of a* is not the cost of a decision: where f is lopsided the second stage leads away
from good decisions, at any T, and the start is kept. The KL term leads to least expected cost as T
grows, since exp(-f / T) averages over y as -f does.

Kong, Cui, Zhuang, Feng, Prakash and Zhang, End-to-end Stochastic Optimization with Energy-based
Model, NeurIPS 2022.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.methods.cost_scale import sampled_costs
from costscape.methods.forecast.decision_samples import hindsight_actions
from costscape.methods.forecast.forecast_method import ForecastMethod, Network
from costscape.methods.forecast.langevin import Langevin, Weighted, around
from costscape.models import Builder
from costscape.models.forecasts import Forecast, Mixture, MixtureForecast
from costscape.models.relative_outcomes import Level
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, Finite, Whole
from costscape.solvers import Auto, Solver
from costscape.task import Refusal, Task
from costscape.training import History, Training
from costscape.training.settings import RATE, Count, Decay, NotNegative, Positive

BATCH = 1024  # rows in a step at most, so that the samples of 6,000 rows fit into memory
VARIANCES = (0.0025, 0.005, 0.0125)  # in squared widths of C; the paper's .01, .02, .05 on [-1, 1]
FEW = 10  # components whose closed form costs a training step less than draws do
DRAWS = 16  # of a training step, elsewhere


@dataclass
class SOEBM(ForecastMethod):
    """Fits a mixture by likelihood, then by the likelihood of the best actions in hindsight.

    The second stage is used only if it decides better on the validation rows than its start: else
    ``history_[1].best_epoch`` is -1 and the forecast is that of TwoStage.

    Args:
        task: Task. The cost and the feasible set.
        forecast: Mixture, default Mixture(), one Gaussian. A point is refused, since no outcomes
            can be sampled from it.
        draws: int, default 100. Number of outcomes sampled from the forecast to decide; None uses
            the expected cost in closed form, for a mixture and a task that has one.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences.
        level: function from x, shape (B, ...), to one positive number for each row, shape (B,),
            default None. Windows and outcomes are divided by that number, as in WindowLevels.
        variances: tuple of float, default None: 0.0025, 0.005 and 0.0125 squared widths of the
            box. Variances of the Gaussians at a*, in squared units of a. The paper has
            (.01, .02, .05) for its synthetic problems, which is the default on [-1, 1], (.02, .05,
            .1) for wind and (.05, .1, .2) for inventory.
        samples: int, default 512. Number N of actions from which log Z of a pair is estimated on a
            Box. They are sampled from an equal mixture of Gaussians at a*, truncated to the box.
        weight: float, default 0.01, the paper's. Weight of the KL term.
        temperature: float, default 1, the paper's. The number T, in the units of f. None takes the
            spread of f(y, .) over C; 1 makes p sharp where costs are in the tens.
        steps: int, default 50. Epochs of the second stage, each of one step for every 1,024 rows,
            at a constant rate. The validation rows are scored after each, and a fifth of the
            epochs without a better one ends it: in the authors' code, which takes one step of all
            rows an epoch, the best one is among the first ten.
        rates: tuple of float, default (0.3, 0.03), as for DFL. Learning rates of the second stage,
            as multiples of the first stage's. Each is tried from the same start.
        train_draws: int, default None. Number of outcomes sampled from the forecast in each
            training step. None uses the closed form where the task has one and the mixture has up
            to 10 components, else 16 samples.
        langevin: Langevin, default Langevin(). Chains that sample from p(a | x) where C is neither
            a Box nor a Finite set: one from a* to a~ ~ p(. | x), another to a_f ~
            exp(-f(y, .) / T). The loss is then contrastive, E(a*) - E(a~) + weight (E(a_f) -
            E(a~)), with the same gradient.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network; None uses the weights of the epoch itself.
        solver: Solver, default Auto(), the strongest one that accepts the problem. Minimises the
            expected cost over the feasible set, also for the best actions in hindsight.
        training: Training, default Training(). Epochs, learning rate, device and so on, of the
            first stage.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.SOEBM(cs.problems.inventory(days=2), samples=16, training=training)
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    takes_context: ClassVar[bool] = False
    takes_row_sets: ClassVar[bool] = False

    task: Task
    forecast: Forecast = field(default_factory=Mixture)
    draws: Count | None = 100
    encoder: Builder | None = None
    level: Level | None = None
    variances: tuple[Positive, ...] | None = None
    samples: Count = 512
    weight: NotNegative = 0.01
    temperature: Positive | None = 1.0
    steps: Count = 50
    rates: tuple[Positive, ...] = (0.3, 0.03)
    train_draws: Count | None = None
    langevin: Langevin = field(default_factory=Langevin)
    ema: Decay | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.forecast, Mixture):
            raise Refusal(
                f"SOEBM needs a forecast with a law to draw from, Mixture(k), but got "
                f"{self.forecast!r}. TwoStage and DFL take every forecast."
            )

    def loss(
        self,
        energy: Callable[[Tensor], Tensor],
        paid: Callable[[Tensor], Tensor],
        best: Float[Tensor, "B d"],
        task: Task,
        rng: Generator,
    ) -> Float[Tensor, "B"]:
        """The objective of each pair, up to a constant, with freshly drawn actions.

        ``energy`` and ``paid`` are E(.; x) and f(y, .) / T, from actions (B or 1, N, d) to (B, N).
        """
        at_best = energy(best.unsqueeze(1))[:, 0]
        if isinstance(task.feasible, Box | Finite | Whole):
            found = self._weighted(task.feasible, best, rng)
            e = energy(found.actions)
            with torch.no_grad():
                v = found.weights(paid(found.actions))
            log_z = found.log_normaliser(e)
            return at_best + log_z + self.weight * ((v * e).sum(1) + log_z)

        def both(a: Tensor) -> Tensor:
            return torch.cat([energy(a[:, :1]), paid(a[:, 1:])], 1)

        # one walk of both chains: a step projects once, and on a GPU that takes as long as one
        starts = best.unsqueeze(1).expand(-1, 2, -1)
        e = energy(self.langevin.walk(both, starts, task.feasible, rng))  # of a~ and of a_f
        return at_best - e[:, 0] + self.weight * (e[:, 1] - e[:, 0])

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        assert isinstance(model, MixtureForecast)
        first = self._by_likelihood(task, model, train, val)
        best = hindsight_actions(task, train.y, self.solver)
        scale = self.temperature or spread(task, train.y, self.seed)
        size, shape = train.y[0].numel(), train.y.shape[1:]

        def loss(batch: Dataset, rng: Generator) -> Tensor:
            y, a = batch.y[:, :size].unflatten(1, shape).unsqueeze(1), batch.y[:, size:]
            g = self._forecast_cost(task, model, batch.x, rng)
            each = self.loss(
                lambda a: g(a) / scale, lambda a: task.cost(y, a) / scale, a, task, rng
            )
            return each.mean()

        common = replace(
            self.training,
            epochs=self.steps,
            batch_size=min(len(train), BATCH),
            decay=False,
            patience=None,
            smooth=1,
            score_every=1,
        )
        lr = self.training.lr or RATE
        ways = [replace(common, lr=lr * rate) for rate in self.rates]
        beside = Dataset(train.x, torch.cat([train.y.flatten(1), best], 1))  # a* beside its y
        return [first, *self._refine(task, model, loss, train, val, ways, beside)]

    def _forecast_cost(
        self, task: Task, model: MixtureForecast, x: Tensor, rng: Generator
    ) -> ExpectedCost:
        """g under the forecast, with slopes to the network."""
        assert isinstance(self.forecast, Mixture)
        known = task.normal is not None and task.y_dims == 1
        if self.train_draws is None and known and self.forecast.components <= FEW:
            return ExpectedCost(task.of_normals(), model.laws(x))
        y = model.samples(x, self.train_draws or DRAWS, rng)
        return ExpectedCost(task, Scenarios(y.new_full(y.shape[:2], 1 / y.shape[1]), y))

    def _weighted(self, feasible: Box | Finite | Whole, best: Tensor, rng: Generator) -> Weighted:
        if isinstance(feasible, Finite):
            k = len(feasible.actions)
            return Weighted(feasible.actions[None], best.new_full((1, k), -log(k)))
        if isinstance(feasible, Whole):  # up to a constant, the log of the number of points
            a = feasible.sample(self.samples, rng)[None]
            return Weighted(a, torch.zeros_like(a[..., 0]))
        lower, upper = feasible.bounds
        unit = upper - lower if self.variances is None else torch.ones_like(lower)
        v = best.new_tensor(self.variances or VARIANCES)
        return around(best, feasible, v.sqrt()[:, None] * unit, self.samples, rng)


def spread(task: Task, y: Float[Tensor, "n ..."], seed: int) -> float:
    """The deviation of f(y, .) over C, the mean of up to 256 labels; 1 where f is flat in a."""
    cost = sampled_costs(task.cost, task.feasible, y, seed)
    return float(cost.std(1, correction=0).mean()) or 1.0
