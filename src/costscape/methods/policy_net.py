"""Policy network: x -> a in C at once, fitted on what its actions cost.

    minimise over theta   mean_(x, y)  f(y, a_theta(x)),     a_theta(x) = land( W q(x) + b )

with an encoder q and a layer that lands in C. On a Finite list the policy is p(x) = softmax over
the K actions, fitted on sum_k p_k(x) f(y, a_k), and decides for the most probable one.

Bertsimas and Kallus, From Predictive to Prescriptive Analytics, Management Science 2020, call it
empirical risk minimisation over decision rules; Donti, Amos and Kolter, NeurIPS 2017, compare
with it.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.cost_scale import sampled_costs
from costscape.methods.method import Method, seeded
from costscape.models import Builder, Standardise, encoder_for
from costscape.models.feasible_output import landing
from costscape.sets import ConstraintSet, Finite
from costscape.solvers.solver import check_feasible
from costscape.task import Task
from costscape.training import Fit, Training, fit_all
from costscape.training.settings import Decay

CALL_BACK = 0.1  # price of one squared width beyond C, in units of the spread of f


@dataclass
class PolicyNet(Method):
    """Trains one network from x to the decision.

    The method has no expected cost g(x, a). Where f has no slope in a, as at a jump, the network
    learns nothing from it.

    Args:
        task: Task. The cost and the feasible set.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences.
        standardise: bool, default True. False feeds x to the network in its original units.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network; None uses the weights of the epoch itself.
        training: Training, default Training(). Epochs, learning rate, device and so on.
        seed: int, default 0. Seed of the initial weights and the batches.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.PolicyNet(cs.problems.inventory(days=2), training=training)
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    task: Task
    encoder: Builder | None = None
    standardise: bool = True
    ema: Decay | None = 0.995
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        with seeded(self.seed, train.x.device):
            model = self._network(train.x, self._outputs(train.x)).to(train.x)
        y = task.join(train.x, train.y)
        scale = _spread(sampled_costs(task.cost, task.feasible, y, self.seed))
        sets, held = task.sets(val.x), task.join(val.x, val.y)
        fit = Fit(
            model,
            lambda batch, rng: policy_loss(task, model(batch.x), batch, scale),
            seed=self.seed,
            score=lambda net: float(task.cost(held, _choose(sets, net(val.x))).mean()),
            ema=self.ema,
            title="PolicyNet",
            recipe=self._recipe(model, train, val),
        )
        (self.history_,) = fit_all([fit], train, self.training)
        self.model_ = model

    def _decide(self, x: Tensor) -> Tensor:
        model, task = self._fitted(), self.task_
        assert task is not None
        with torch.no_grad():
            a = _choose(C := task.sets(x), model(x))
        check_feasible(a, C, "PolicyNet")
        return a

    def _facts(self) -> dict[str, Any]:
        head = self._fitted().head
        assert isinstance(head, nn.Linear)
        # sets of x are not known before x, when the network is made again
        return {} if self._task().sets_of is None else {"outputs": head.out_features}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        x, _ = self._blank(2)
        with seeded(self.seed):  # fresh weights are drawn, to be overwritten
            return self._network(x, facts.get("outputs") or self._outputs(x))

    def _outputs(self, x: Tensor) -> int:
        c = self._task().sets(x)
        return len(c.actions) if isinstance(c, Finite) else landing(c).inputs

    def _network(self, x: Tensor, outputs: int) -> nn.Module:
        encoder = encoder_for(self.encoder, tuple(x.shape[1:]))
        scaler = Standardise(x) if self.standardise else nn.Identity()
        return Policy(scaler, encoder, outputs)


class Policy(nn.Module):
    """x -> z, linear in the code; 0 at the start, which lands in the middle of C."""

    def __init__(self, scaler: nn.Module, encoder: nn.Module, outputs: int) -> None:
        super().__init__()
        self.scaler = scaler
        self.encoder = encoder
        self.head = nn.Linear(int(encoder.out_features), outputs)  # type: ignore[arg-type]
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B n"]:
        z: Tensor = self.head(self.encoder(self.scaler(x)))
        return z


def policy_loss(
    task: Task, z: Float[Tensor, "B n"], batch: Dataset, scale: Tensor
) -> Float[Tensor, ""]:
    """The mean cost over ``scale``, and a small price on z beyond C.

    The price keeps the network from going so far that the projection, stuck at a vertex, has no
    slope to bring it back by. It changes no optimum: every a of C has a z within.
    """
    c, y = task.sets(batch.x), task.join(batch.x, batch.y)
    if isinstance(c, Finite):
        costs = task.cost(y.unsqueeze(1), c.actions.unsqueeze(0))  # (B, K)
        return (z.softmax(-1) * costs).sum(-1).mean() / scale
    land = landing(c)
    a = land(z)
    return task.cost(y, a).mean() / scale + CALL_BACK * land.excess(z, a).mean()


def _spread(cost: Tensor) -> Tensor:
    """The mean over actions of the spread over labels; 1 where f never changes with y or a."""
    sd = cost.std(0, correction=0).mean()
    sd = sd.where(sd > 0, cost.std(correction=0))
    return sd.where(sd > 0, 1.0)


def _choose(c: ConstraintSet, z: Tensor) -> Tensor:
    if isinstance(c, Finite):
        return c.actions[z.argmax(-1)]
    return c.project(landing(c)(z))  # the projection takes away the rounding
