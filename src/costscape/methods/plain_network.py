"""Plain network: DF2 without attention, g(x, a) an ordinary network on x and a.

    minimise  mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2 / s(a)^2

as DF2 does (paper, Eq. 3), but g is no longer an average of f over outcomes, so it knows f only
from its samples (paper, Ablation Study). Where f is convex in a the network is kept convex in a
too, by the input-convex form of Amos, Xu and Kolter, ICML 2017.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from costscape.data import Dataset
from costscape.methods.cost_scale import sampled_costs, spread_of
from costscape.methods.method import seeded
from costscape.methods.selection import validation_cost
from costscape.methods.surfaces import SurfaceMethod
from costscape.models import Builder, Standardise, encoder_for
from costscape.models.cost_network import Free, InputConvex, Surface, SurfaceAt
from costscape.solvers import Auto, Solver
from costscape.task import SeparableTask, Task
from costscape.task_arguments import Cost
from costscape.training import Fit, Training, fit_all
from costscape.training.settings import Count, Decay

ACTIONS = 32  # a step, shared among the coordinates where each has its own network


@dataclass
class PlainNetwork(SurfaceMethod):
    """Learns g(x, a) as a network with two hidden layers on the code q(x) and a.

    Args:
        task: Task. The cost and the feasible set.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences.
        convex: bool, default None: True where the task is convex. Whether g(x, .) is convex by
            construction.
        hidden: int, default 64. Units in each hidden layer.
        actions: int, default None: 32 divided among the networks, at least 4. Number of actions
            sampled at each step.
        weighting: bool, default True. Divide each residual by the spread of f(., a) over the
            batch.
        by_coordinate: bool, default True. For a SeparableTask, learn one network for each summand
            of the cost, with one coordinate of a as its input.
        standardise: bool, default True. False feeds x to the network in its original units.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network; None uses the weights of the epoch itself.
        solver: Solver, default Auto(), the strongest one that accepts the problem. Minimises the
            expected cost over the feasible set.
        training: Training, default Training(). Epochs, learning rate, device and so on.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.PlainNetwork(cs.problems.inventory(days=2), hidden=8, training=training)
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    takes_row_sets: ClassVar[bool] = False

    task: Task
    encoder: Builder | None = None
    convex: bool | None = None
    hidden: Count = 64
    actions: Count | None = None
    weighting: bool = True
    by_coordinate: bool = True
    standardise: bool = True
    ema: Decay | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.convex and not self.task.convex:
            raise ValueError(
                "PlainNetwork with convex=True needs a cost that is convex in a, but this task "
                "does not promise it, and a convex g cannot follow a cost that is not. Make the "
                "task with convex=True if it is, or leave convex out."
            )

    def loss(self, task: Task, model: Surface, batch: Dataset, rng: Generator) -> Tensor:
        """The objective above on one batch, with actions drawn afresh and shared by its pairs."""
        groups = model.head.groups
        count = self.actions or max(4, ACTIONS // groups)
        a = task.feasible.sample(count, rng).unsqueeze(0)
        f = _cost(task, groups)
        paid = f(task.join(batch.x, batch.y).unsqueeze(1), a)  # (B, J, G)
        residual = model(batch.x).terms(a) - paid
        unit = spread_of(paid) if self.weighting else model.scale
        loss: Tensor = (residual / unit).square().mean()
        return loss

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        y = task.join(train.x, train.y)
        cost = sampled_costs(_cost(task, self._groups()), task.feasible, y, self.seed)
        level, scale = cost.mean((0, 1)), cost.std((0, 1), correction=0)
        scale = scale.where(scale > 1e-6 * cost.abs().amax((0, 1)), 1.0)
        with seeded(self.seed, train.x.device):
            model = self._network(train.x, level, scale).to(train.x)
        fit = Fit(
            model,
            lambda batch, rng: self.loss(task, model, batch, rng),
            seed=self.seed,
            score=validation_cost(task, val, self.solver, lambda net, x: net(x)),
            ema=self.ema,
            title="PlainNetwork",
            recipe=self._recipe(model, train, val),
        )
        (self.history_,) = fit_all([fit], train, self.training)
        self.model_ = model

    def _surface(self, x: Tensor) -> SurfaceAt:
        model = self._fitted()
        assert isinstance(model, Surface)
        with torch.no_grad():
            g: SurfaceAt = model(x)
        return g

    def _facts(self) -> dict[str, Any]:
        return {"convex": isinstance(self._fitted().head, InputConvex)}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        x, _ = self._blank(2)
        with seeded(self.seed):  # fresh weights are drawn, to be overwritten
            return self._network(x, x.new_zeros(self._groups()), x.new_ones(self._groups()))

    def _network(self, x: Tensor, level: Tensor, scale: Tensor) -> Surface:
        c = self._task().feasible
        encoder = encoder_for(self.encoder, tuple(x.shape[1:]))
        convex = self.task.convex if self.convex is None else self.convex
        kind, groups = InputConvex if convex else Free, self._groups()
        head = kind(int(encoder.out_features), groups, c.dim // groups, self.hidden)  # type: ignore[arg-type]
        scaler = Standardise(x) if self.standardise else nn.Identity()
        return Surface(scaler, encoder, head, c, level, scale)

    def _groups(self) -> int:
        apart = self.by_coordinate and isinstance(self.task, SeparableTask)
        return self._task().feasible.dim if apart else 1


def _cost(task: Task, groups: int) -> Cost:
    """f as G summands, (..., G)."""
    if groups > 1:
        assert isinstance(task, SeparableTask)
        return task.terms
    return lambda y, a: task.cost(y, a).unsqueeze(-1)
