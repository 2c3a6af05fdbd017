"""DF2: fit g(x, a) to sampled costs f(y, a), with no model of p(y | x).

    minimise  mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2 / s(a)^2      (paper, Eq. 3)

with s(a) = 1 in the paper and, by default here, the spread of f(., a) over the batch.

Kong, Mu, Cui, Zhuang, Prakash, Dai and Zhang, DF2: Distribution-Free Decision-Focused Learning,
UAI 2025.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn

from costscape.data import Dataset
from costscape.distributed import gather_rows, own_rows, whole
from costscape.methods import store
from costscape.methods.scoring import decision_costs, spread_of, spread_over, validation_cost
from costscape.methods.surfaces import ScenarioMethod
from costscape.models import (
    Absolute,
    Anchored,
    AnchoredValues,
    Attention,
    Builder,
    Outcomes,
    Units,
    Values,
    WindowLevels,
    by_shape,
)
from costscape.scenarios import ExpectedCost, Scenarios, union
from costscape.solvers import Solver
from costscape.tasks import SeparableTask, Task
from costscape.tasks.base import Cost
from costscape.train import RATE as PAPER_RATE
from costscape.train import History, Training, check_ema, fit_network

RATE = 5e-4  # half the paper's: of rates tried, the best on validation with averaged weights


class Members(nn.Module):
    """Several fitted networks; their scenarios together, in equal parts."""

    def __init__(self, members: list[Attention]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Scenarios:
        return union([member(x) for member in self.members])


@dataclass
class DF2(ScenarioMethod):
    """Attention over ``points`` outcomes; ``actions`` sampled at each step.

    - ``points`` and ``actions`` None are 500 and 100 where all x share their outcomes, 200 and 8
      where each has its own and a step costs batch x actions x points evaluations of f.
    - ``encoder``: a builder; by default an MLP for rows and an LSTM for sequences.
    - ``share_actions``: one draw of actions for the whole batch, not one for each pair. The
      objective stays unbiased, and with absolute outcomes a step is one matrix product.
    - ``learn_values``: False keeps the outcomes at their start.
    - ``outcomes``: Absolute(), Anchored() or WindowLevels(); None fits Anchored and
      Absolute and takes the second if its decisions cost less on the validation part by a
      standard error or more.
    - ``weighting``: divide each residual by the spread of f(., a), so that the large costs of
      absurd actions do not drown the ones that matter.
    - ``by_coordinate``: fit each summand of a SeparableTask's cost on its own, which leaves the
      noise of the other coordinates out of it.
    - ``ema``: decay of the moving average of the weights, or None.
    - ``members``: how many fits, from different seeds, are averaged.
    - ``standardise``: False lets the network see x and y in their own units.
    - ``choose_epoch``: False keeps the last epoch.
    """

    task: Task
    encoder: Builder | None = None
    points: int | None = None
    actions: int | None = None
    share_actions: bool = True
    learn_values: bool = True
    outcomes: Outcomes | None = None
    weighting: bool = True
    by_coordinate: bool = True
    ema: float | None = 0.995
    members: int = 3
    standardise: bool = True
    solver: Solver | Literal["auto"] = "auto"
    training: Training = field(default_factory=Training)
    choose_epoch: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("points", "actions", "members"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"DF2 needs {name} of at least 1, but got {value}.")
        check_ema("DF2", self.ema)

    @staticmethod
    def as_in_paper(
        task: Task,
        *,
        points: int = 1000,
        actions: int = 100,
        encoder: Builder | None = None,
        share_actions: bool = True,
        seed: int = 0,
        training: Training | None = None,
    ) -> "DF2":
        """The paper's recipe: absolute outcomes, plain squares, no averaging, a constant rate,
        the last epoch.

        The letter of the paper has ``share_actions=False``, which is unbiased too and takes about
        a hundred times as long.
        """
        given = training or Training(epochs=50)
        return DF2(
            task,
            encoder=encoder,
            points=points,
            actions=actions,
            share_actions=share_actions,
            outcomes=Absolute(),
            weighting=False,
            by_coordinate=False,
            ema=None,
            members=1,
            standardise=False,
            choose_epoch=False,
            seed=seed,
            training=replace(given, lr=given.lr or PAPER_RATE, decay=False),
        )

    def _fit(self, train: Dataset, val: Dataset) -> None:
        device = self.training.where()
        task = self._move_task(device)
        train, val = (part.to(device, part.x.dtype) for part in (train, val))
        forms: list[Outcomes] = [Anchored(), Absolute()]
        if self.outcomes is not None:
            forms = [self.outcomes]
        first = [self._fit_one(task, train, val, form, 0) for form in forms]
        chosen = 0
        if len(forms) > 1:
            chosen = _clearly_best([decision_costs(task, m, val, self.solver) for m, _ in first])
        self.outcomes_ = forms[chosen]
        rest = [self._fit_one(task, train, val, self.outcomes_, i) for i in range(1, self.members)]
        fits = [first[chosen], *rest]
        self.model_ = Members([model for model, _ in fits]).eval()
        self.history_ = [history for _, history in fits]

    def _fit_one(
        self, task: Task, train: Dataset, val: Dataset, form: Outcomes, member: int
    ) -> tuple[Attention, History]:
        seed = self.seed + 1000 * member
        with torch.random.fork_rng([train.x.device] if train.x.is_cuda else []):
            torch.manual_seed(seed)
            model, start = self._network(train, form)
        model = model.to(train.x.device, train.x.dtype)
        name = f"{type(form).__name__.lower()}-{member}"
        training = self._named(name)
        form_json = json.dumps(store.to_json(form))
        recipe = form_json + self._recipe(model, train, val, "outcomes", "members")
        if isinstance(anchored := _of(form), Anchored):
            _fit_anchor(model, train, start, anchored, training, seed, recipe)
        score = validation_cost(task, val, self.solver) if self.choose_epoch else None
        history = fit_network(
            model,
            lambda batch, rng: self.loss(task, model, batch, rng),
            train,
            training,
            seed=seed,
            score=score,
            ema=self.ema,
            title=f"DF2 {name}",
            recipe=recipe,
        )
        return model, history

    def _network(self, train: Dataset, form: Outcomes) -> tuple[Attention, Tensor]:
        """A fresh network, and the training rows whose labels its outcomes start from."""
        level = form.level if isinstance(form, WindowLevels) else None
        x, y = train.x, train.y
        units = Units(x, y, level, self.standardise)
        encoder = (self.encoder or by_shape(tuple(x.shape[1:])))()
        shared = isinstance(form, Absolute)
        points = min(self.points or (500 if shared else 200), len(y))
        start = torch.randperm(len(y))[:points].to(y.device)
        labels = units.standard(x[start], y[start])
        values: Values | AnchoredValues
        if isinstance(_of(form), Anchored):
            width = int(encoder.out_features)  # type: ignore[arg-type]
            values = AnchoredValues(labels, width, self.learn_values)
        else:
            values = Values(labels, self.learn_values)
        return Attention(encoder, values, points, units), start

    def _facts(self) -> dict[str, Any]:
        assert isinstance(self.model_, Members)
        return {
            "outcomes": store.to_json(self.outcomes_),
            "points": [len(m.keys) for m in self.model_.members],  # type: ignore[arg-type]
        }

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        form = self.outcomes
        if form is None:
            form = store.from_json(facts["outcomes"])
        self.outcomes_ = form
        blank = [Dataset(*self._blank(points)) for points in facts["points"]]
        with torch.random.fork_rng([]):  # fresh weights are drawn, to be overwritten
            return Members([self._network(data, form)[0] for data in blank])

    def loss(self, task: Task, model: nn.Module, batch: Dataset, rng: Generator) -> Tensor:
        """The objective above on one batch, with freshly drawn actions."""
        rows = 1 if self.share_actions else whole(len(batch))
        g = ExpectedCost(task, model(batch.x))
        j = self.actions or (100 if g.scenarios.shared and self.share_actions else 8)
        a = task.feasible.sample(rows * j, rng).unflatten(0, (rows, j))
        shared = rows == 1
        if not shared:
            a = own_rows(a)
        f: Cost = task.cost
        learned: Callable[[Tensor], Tensor] = g
        if self.by_coordinate and isinstance(task, SeparableTask):
            f, learned = task.terms, g.terms
        paid = f(batch.y.unsqueeze(1), a)  # (B, J), or (B, J, d) by coordinate
        residual = learned(a) - paid
        if self.weighting:
            residual = residual / _spread(f, batch.y, a, paid, shared)
        return residual.square().mean()

    def _named(self, name: str) -> Training:
        """One checkpoint file for each network of the fit; DF2's own rate unless one is given."""
        path = self.training.checkpoint
        return replace(
            self.training,
            lr=self.training.lr or RATE,
            checkpoint=None if path is None else f"{path}.{name}",
        )


def _of(form: Outcomes) -> Absolute | Anchored:
    return form.of if isinstance(form, WindowLevels) else form


def _clearly_best(costs: list[Tensor]) -> int:
    """The first, unless a later one is cheaper by more than a standard error of the difference."""
    best = 0
    for i in range(1, len(costs)):
        less = costs[best] - costs[i]
        if len(less) > 1 and less.mean() > less.std() / len(less) ** 0.5:
            best = i
    return best


def _spread(f: Cost, y: Tensor, a: Tensor, paid: Tensor, shared: bool) -> Tensor:
    """The spread of f(., a) over the batch.

    Actions of their own for each pair are priced at 16 outcomes of the batch, not at all of them.
    """
    with torch.no_grad():
        if shared:
            return spread_of(paid)
        costs = f(gather_rows(y)[:16, None, None], a)  # (16, B, J), or (16, B, J, d)
        return own_rows(spread_over(gather_rows(costs, 1)))


def _fit_anchor(
    model: Attention,
    train: Dataset,
    start: Tensor,
    form: Anchored,
    training: Training,
    seed: int,
    recipe: str,
) -> None:
    """m(x) by least squares; then the outcomes start at its residuals."""
    path = training.checkpoint
    fit_network(
        model,
        lambda batch, rng: (
            (model.location(batch.x) - model.units.standard(batch.x, batch.y)).square().mean()
        ),
        train,
        replace(training, epochs=form.epochs, checkpoint=path and f"{path}.anchor"),
        seed=seed,
        title="DF2 anchor",
        recipe=recipe,
    )
    model.eval()
    with torch.no_grad():
        x, y = train.x[start], train.y[start]
        residuals = model.units.standard(x, y) - model.location(x)
    assert isinstance(model.values, AnchoredValues)
    model.values.start(residuals)
