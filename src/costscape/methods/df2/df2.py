"""DF2: fit g(x, a) to sampled costs f(y, a), with no model of p(y | x).

    minimise  mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2               (paper, Eq. 3)

or, by default here, the same of how g and f change from action to action (``slopes.Slopes``).

Kong, Mu, Cui, Zhuang, Prakash, Dai and Zhang, DF2: Distribution-Free Decision-Focused Learning,
UAI 2025.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn

from costscape.data import Dataset, join
from costscape.methods import saving
from costscape.methods.df2.presets import Presets
from costscape.methods.df2.slopes import Objective, Slopes, Target, objectives_of, weighted_loss
from costscape.methods.df2.stacked_fit import fit_stacked
from costscape.methods.ensemble import MOST, EnsembleMethod
from costscape.methods.method import Method, seeded
from costscape.methods.selection import Greedy, Selection, validation_cost
from costscape.methods.update_result import NewRows
from costscape.models import (
    Builder,
    OutcomeNetwork,
    Outcomes,
    Units,
    WindowLevels,
    by_shape,
    encoder_for,
)
from costscape.models.outcome_network import SINGLE, name_of, suitable, usual_points
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Fit, Training, fit_all
from costscape.training.fit_state import twin
from costscape.training.settings import RATE, Count, Decay, NotNegative


@dataclass
class DF2(Presets, EnsembleMethod):
    """Learns weighted outcomes whose expected cost has the slopes of the observed costs.

    By default it fits one network for each form of outcomes that suits the data and each of four
    folds of the rows, early-stops each on the fold it leaves out, and blends the forms by what
    their decisions cost on the held-out rows.

    Args:
        task: Task. The cost and the feasible set.
        encoder: a function that builds the network from x to its code, default None: an MLP for
            rows and an LSTM for sequences (``models.by_shape``).
        points: int, outcomes of each network, default None: 200 where all x share them, else 64.
        actions: int, sampled at each step, default None: 50 where all x share their outcomes,
            else 12.
        share_actions: bool, default True: one sample of actions for the whole batch, not one for
            each pair. With absolute outcomes a step is then one matrix product.
        learn_values: bool, default True. False keeps the outcomes at their start.
        outcomes: LocationScale(), Absolute(), Anchored() or WindowLevels(), default None: a blend
            of all that suit, or Anchored() with ``folds=1``.
        target: Target, default Slopes() of the cost; Costs() as in the paper.
        outcome_share: float, default 0.3: weight, beside 1 for the cost, of the same loss of the
            absolute errors |y_i - a|, where y is a vector. It keeps outcomes near the observed
            ones where the cost says little about them: a cost that is no sum over coordinates, or
            one with jumps.
        ema: float, default 0.995: decay of the moving average of the weights, or None.
        folds: int, default 4: fits of each form; 1 fits one network, early-stopped on the
            validation rows.
        selection: Selection, default Greedy(): how forms are weighted.
        most_scenarios: int, default 4000: how many scenarios decide at most.
        standardise: bool, default True. False lets the network see x and y in their own units.
        solver: Solver, default Auto(), the strongest one that serves.
        training: Training, default Training(): epochs, rate, device and so on.
        choose_epoch: bool, default True. False keeps the last epoch.
        workers: int, default 1: processes that fit folds side by side on a CPU.
        seed: int, default 0: of the first fold's networks.

    After ``fit``, ``weights_`` has the weight of each form by name, and ``held_out_`` its cost on
    held-out rows.

    >>> import costscape as cs
    >>> cs.DF2(cs.problems.inventory()).folds
    4
    """

    task: Task
    encoder: Builder | None = None
    points: Count | None = None
    actions: Count | None = None
    share_actions: bool = True
    learn_values: bool = True
    outcomes: Outcomes | None = None
    target: Target = field(default_factory=Slopes)
    outcome_share: NotNegative = 0.3
    ema: Decay | None = 0.995
    folds: Count = 4
    selection: Selection = field(default_factory=Greedy)
    most_scenarios: Count = MOST
    standardise: bool = True
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    choose_epoch: bool = True
    workers: Count = 1
    seed: int = 0

    fit_together = staticmethod(fit_stacked)

    def __post_init__(self) -> None:
        self.target.check(self.actions)

    def resolved_defaults(self, train: Dataset) -> dict[str, Any]:
        forms = self._forms(train)
        return {
            "forms": [saving.to_json(form) for form in forms],
            "points": [self.points or usual_points(form) for form in forms],
            "encoder": saving.to_json(self.encoder or by_shape(tuple(train.x.shape[1:]))),
            "rate": self.training.lr or RATE,
        }

    def chosen(self) -> dict[str, Any]:
        return super().chosen() if self.folds > 1 else {"form": name_of(self.outcomes or SINGLE)}

    def _forms(self, train: Dataset) -> list[Outcomes]:
        if self.outcomes is not None:
            return [self.outcomes]
        return [SINGLE] if self.folds == 1 else suitable(train.x, train.y)

    def _candidates(self, forms: Sequence[Outcomes]) -> list[Method]:
        # functions of a form that the user gave, such as a level, are not in a model file
        forms = forms if self.outcomes is None else [self.outcomes]
        return [replace(self, outcomes=form, folds=1) for form in forms]

    def _fit(self, train: Dataset, val: Dataset) -> None:
        if self.folds > 1:
            forms = self._forms(train)
            self.tried_ = self._candidates(forms)
            self._fit_blend([name_of(form) for form in forms], join(train, val))
            self.history_ = [h for fit in self.fits_ if isinstance(fit, DF2) for h in fit.history_]
            return
        device = self.training.where()
        train, val = (part.to(device, part.x.dtype) for part in (train, val))
        fit = self.begin(train, val)
        self.history_ = fit_all([fit], train, self.training)
        self.model_ = fit.model.eval()

    def _updated(self, batch: NewRows) -> nn.Module | None:
        if self.folds > 1:
            return None  # its single networks are updated, each without its fold
        task, model = self.task_, twin(self._fitted())
        assert task is not None
        pairs = join(batch.old, batch.new)
        objectives = objectives_of(self.target, task, pairs, self.outcome_share, self.seed)
        fit = Fit(model, partial(self.loss, objectives, model), self.seed, ema=self.ema)
        fit_all([fit], batch.pool, batch.training(self.training))
        return model.eval()

    def begin(self, train: Dataset, val: Dataset) -> Fit:
        """A fresh network and what it is fitted to, on the device of the pairs."""
        task, form = self._move_task(train.x.device), self.outcomes or SINGLE
        with seeded(self.seed, train.x.device):
            model = self._network(train, form)
        model = model.to(train.x.device, train.x.dtype)
        objectives = objectives_of(self.target, task, train, self.outcome_share, self.seed)
        score = validation_cost(task, val, self.solver) if self.choose_epoch else None
        return Fit(
            model,
            lambda batch, rng: self.loss(objectives, model, batch, rng),
            self.seed,
            score,
            self.ema,
            title=f"DF2 {name_of(form)}",
            recipe=self._recipe(model, train, val, "workers", "selection", "most_scenarios"),
            name=name_of(form).replace(" ", "-"),
        )

    def _network(self, train: Dataset, form: Outcomes) -> OutcomeNetwork:
        x, y = train.x, train.y
        level = form.level if isinstance(form, WindowLevels) else None
        units = Units(x, y, level, self.standardise)
        shape = tuple(x.shape[1:])
        encoder = encoder_for(self.encoder or by_shape(shape), shape)
        points = min(self.points or usual_points(form), len(y))
        start = torch.randperm(len(y))[:points].to(y.device)
        plain = form.of if isinstance(form, WindowLevels) else form
        return OutcomeNetwork(plain, encoder, units, x, y, start, self.learn_values)

    def _facts(self) -> dict[str, Any]:
        if self.folds > 1:
            return super()._facts()
        assert isinstance(self.model_, OutcomeNetwork)
        return {"points": self.model_.points}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        if self.folds > 1:
            return super()._rebuild(facts)
        with seeded(self.seed):  # fresh weights are drawn, to be overwritten
            return self._network(Dataset(*self._blank(facts["points"])), self.outcomes or SINGLE)

    def loss(
        self, objectives: Sequence[Objective], model: nn.Module, batch: Dataset, rng: Generator
    ) -> Tensor:
        """The objective above on one batch, with fresh actions."""
        scenarios, rows = model(batch.x), None if self.share_actions else len(batch)
        return weighted_loss(self.target, objectives, scenarios, batch, self.actions, rows, rng)
