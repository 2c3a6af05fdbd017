"""DF2: fit g(x, a) to sampled costs f(y, a), with no model of p(y | x).

    minimise  mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2               (paper, Eq. 3)

or, by default here, the same of how g and f change from action to action (``targets.Slopes``).

Kong, Mu, Cui, Zhuang, Prakash, Dai and Zhang, DF2: Distribution-Free Decision-Focused Learning,
UAI 2025.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Generator, Tensor, nn

from costscape.data import Dataset, Fold, check_folds, join
from costscape.methods import saving
from costscape.methods.base import Method
from costscape.methods.blended_fit import Candidate, fit_blend
from costscape.methods.df2.targets import Costs, Objective, Slopes, Target, absolute_errors
from costscape.methods.ensemble import Blended, EnsembleMethod, take
from costscape.methods.scoring import validation_cost
from costscape.methods.selection import Greedy, Selection
from costscape.models import (
    Absolute,
    Builder,
    OutcomeNetwork,
    Outcomes,
    Units,
    WindowLevels,
    deep_by_shape,
    encoder_for,
)
from costscape.models.outcome_network import SINGLE, name_of, suitable, usual_points
from costscape.scenarios import ExpectedCost
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Fit, Training, fit_all
from costscape.training.settings import RATE as PAPER_RATE
from costscape.training.settings import check_ema

SHARED_ACTIONS, OWN_ACTIONS = 50, 12  # where all x share their outcomes, and where not
MOST = 4000  # scenarios that decide
RATE = 1e-2  # chosen on the zoo (benchmarks/zoo)


@dataclass
class DF2(EnsembleMethod):
    """Learns weighted outcomes whose expected cost has the slopes of the observed costs.

    By default it fits one network for each form of outcomes that suits the data and each of four
    folds of the rows, early-stops each on the fold it leaves out, and blends the forms by what
    their decisions cost on the held-out rows.

    Arguments:
        task: the cost and the feasible set.
        encoder: a builder of the network from x to its code; by default an MLP for rows and an
            LSTM for sequences (``models.deep_by_shape``).
        points: outcomes of each network; None is 200 where all x share them and 64 elsewhere.
        actions: actions sampled at each step; None is 50 where all x share their outcomes and 12
            elsewhere.
        share_actions: one sample of actions for the whole batch, not one for each pair. The
            objective stays unbiased, and with absolute outcomes a step is one matrix product.
        learn_values: False keeps the outcomes at their start.
        outcomes: one form, LocationScale(), Absolute(), Anchored() or WindowLevels(); None blends
            all that suit, or takes Anchored() with ``folds=1``.
        target: Slopes() of the cost, or Costs() as in the paper.
        outcome_share: weight, beside 1 for the cost, of the same loss of the absolute errors
            |y_i - a|, where y is a vector. It keeps outcomes near the observed ones where the cost
            says little about them: a cost that is no sum over coordinates, or one with jumps.
        ema: decay of the moving average of the weights, or None.
        folds: fits of each form; 1 fits one network, early-stopped on the validation rows.
        selection: how forms are weighted.
        most_scenarios: how many scenarios decide at most.
        standardise: False lets the network see x and y in their own units.
        solver: decides; ``Auto()`` picks the strongest one that serves.
        training: epochs, rate, device and so on.
        choose_epoch: False keeps the last epoch.
        workers: processes that fit folds side by side on a CPU.
        seed: of the first fold's networks.

    After ``fit``, ``weights_`` has the weight of each form by name, and ``held_out_`` its cost on
    held-out rows.

    >>> import costscape as cs
    >>> cs.DF2(cs.problems.inventory()).folds
    4
    """

    task: Task
    encoder: Builder | None = None
    points: int | None = None
    actions: int | None = None
    share_actions: bool = True
    learn_values: bool = True
    outcomes: Outcomes | None = None
    target: Target = field(default_factory=Slopes)
    outcome_share: float = 0.3
    ema: float | None = 0.995
    folds: int = 4
    selection: Selection = field(default_factory=Greedy)
    most_scenarios: int = MOST
    standardise: bool = True
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    choose_epoch: bool = True
    workers: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("points", "actions", "folds", "workers", "most_scenarios"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"DF2 needs {name} of at least 1, but got {value}.")
        if self.actions is not None and self.actions < self.target.least:
            raise ValueError(
                f"{type(self.target).__name__} compare actions with each other and need at least "
                f"{self.target.least}, but got actions={self.actions}. Take more, or "
                f"target=Costs()."
            )
        if not self.outcome_share >= 0:
            raise ValueError(
                f"DF2 needs outcome_share of at least 0, but got {self.outcome_share}."
            )
        check_ema("DF2", self.ema)

    @staticmethod
    def quick(task: Task, *, seed: int = 0, training: Training | None = None) -> "DF2":
        """One form, one network: a first try in seconds."""
        return DF2(task, folds=1, seed=seed, training=training or Training())

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
            target=Costs(weighting=False, by_coordinate=False),
            outcome_share=0.0,
            ema=None,
            folds=1,
            standardise=False,
            choose_epoch=False,
            seed=seed,
            training=replace(given, lr=given.lr or PAPER_RATE, decay=False),
        )

    def candidates(self) -> Sequence[Method]:
        return self.tried_

    def resolved_defaults(self, train: Dataset) -> dict[str, Any]:
        forms = self._forms(train)
        return {
            "forms": [saving.to_json(form) for form in forms],
            "points": [self.points or usual_points(form) for form in forms],
            "encoder": saving.to_json(self.encoder or deep_by_shape(tuple(train.x.shape[1:]))),
            "rate": self.training.lr or RATE,
        }

    def chosen(self) -> dict[str, Any]:
        if self.folds == 1:
            return {"form": name_of(self.outcomes or SINGLE)}
        return {"weights": self.weights_, "held_out": {c.name: c.cost for c in self.held_out_}}

    def _forms(self, train: Dataset) -> list[Outcomes]:
        if self.outcomes is not None:
            return [self.outcomes]
        return [SINGLE] if self.folds == 1 else suitable(train.x, train.y)

    def _fit(self, train: Dataset, val: Dataset) -> None:
        if self.folds == 1:
            self._fit_network(train, val)
            return
        check_folds("DF2", self.folds, len(train) + len(val))
        forms = self._forms(train)
        self.tried_ = [replace(self, outcomes=form, folds=1) for form in forms]
        found = fit_blend(
            self.tried_,
            [name_of(form) for form in forms],
            join(train, val),
            self.folds,
            self.selection,
            self.solver,
            self.workers,
            "DF2",
            self.seed,
        )
        self._adopt(found.fits, found.jobs, found.shares, self.most_scenarios)
        self.history_ = [history for fit in found.fits for history in fit.history_]  # type: ignore[attr-defined]
        self.held_out_ = found.table
        self.weights_ = {line.name: line.weight for line in found.table}

    def _fit_network(self, train: Dataset, val: Dataset) -> None:
        """One network, with its epoch chosen on ``val``."""
        device = self.training.where()
        self._move_task(device)
        train, val = (part.to(device, part.x.dtype) for part in (train, val))
        fit = self._begin(train, val)
        self.history_ = fit_all([fit], train, self._training())
        self.model_ = fit.model.eval()

    @classmethod
    def fit_together(
        cls, methods: Sequence[Method], pairs: Dataset, folds: Sequence[Fold]
    ) -> bool:
        """Fit single networks in one batch on a GPU."""
        ours = [m for m in methods if isinstance(m, DF2)]
        first = ours[0]
        device = first.training.where()
        if device.type != "cuda" or any(m.folds > 1 or not m.training.record for m in ours):
            return False
        if len({replace(m.training, checkpoint=None) for m in ours}) > 1:
            return False  # one batch has one rate and one number of epochs
        pairs = pairs.to(device, pairs.x.dtype)
        fits = []
        for i, (method, fold) in enumerate(zip(ours, folds, strict=True)):
            method.x_shape_ = tuple(pairs.x.shape[1:])
            method.y_shape_ = tuple(pairs.y.shape[1:])
            method._move_task(device)
            fit = method._begin(take(pairs, fold.rows), take(pairs, fold.held))
            fits.append(replace(fit, rows=fold.rows.to(device), name=f"{fit.name}-{i}"))
        histories = fit_all(fits, pairs, first._training())
        for method, fit, history in zip(ours, fits, histories, strict=True):
            method.history_ = [history]
            method.model_ = fit.model.eval()
        return True

    def _training(self) -> Training:
        return replace(self.training, lr=self.training.lr or RATE)

    def _begin(self, train: Dataset, val: Dataset) -> Fit:
        """A fresh network and what it is fitted to."""
        task, form = self.task_, self.outcomes or SINGLE
        assert task is not None
        with torch.random.fork_rng([train.x.device] if train.x.is_cuda else []):
            torch.manual_seed(self.seed)
            model = self._network(train, form)
        model = model.to(train.x.device, train.x.dtype)
        objectives = self._objectives(task, train.y)
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
        encoder = encoder_for(self.encoder or deep_by_shape(shape), shape)
        points = min(self.points or usual_points(form), len(y))
        start = torch.randperm(len(y))[:points].to(y.device)
        plain = form.of if isinstance(form, WindowLevels) else form
        return OutcomeNetwork(plain, encoder, units, x, y, start, self.learn_values)

    def _facts(self) -> dict[str, Any]:
        if self.folds == 1:
            assert isinstance(self.model_, OutcomeNetwork)
            return {"points": self.model_.points}
        return {
            **self._ensemble_facts(),
            "forms": [saving.to_json(m.outcomes) for m in self.tried_ if isinstance(m, DF2)],
            "held_out": [vars(line) for line in self.held_out_],
        }

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        if self.folds == 1:
            with torch.random.fork_rng([]):  # fresh weights are drawn, to be overwritten
                return self._network(
                    Dataset(*self._blank(facts["points"])), self.outcomes or SINGLE
                )
        # functions of a form that the user gave, such as a level, are the caller's
        forms = [saving.from_json(form) for form in facts["forms"]]
        forms = forms if self.outcomes is None else [self.outcomes]
        self.tried_ = [replace(self, outcomes=form, folds=1) for form in forms]
        self.held_out_ = [Candidate(**line) for line in facts["held_out"]]
        self.weights_ = {line.name: line.weight for line in self.held_out_}
        made = self._rebuilt_ensemble(facts)
        assert isinstance(made, Blended)
        return made

    def _objectives(self, task: Task, y: Tensor) -> list[Objective]:
        """The task's cost and, with ``outcome_share``, the absolute errors of the outcomes."""
        tasks = [(1.0, task)]
        if self.outcome_share > 0 and task.y_dims == 1:
            tasks.append((self.outcome_share, absolute_errors(y)))
        rng = Generator(y.device).manual_seed(self.seed)
        objectives = []
        for share, each in tasks:
            a = self.target.actions(each, 1, SHARED_ACTIONS, rng)
            objectives.append(Objective(each, share / self.target.unit(each, y, a)))
        return objectives

    def loss(
        self,
        objectives: Sequence[Objective],
        model: nn.Module,
        batch: Dataset,
        rng: Generator,
    ) -> Tensor:
        """The objective above on one batch, with fresh actions."""
        rows = 1 if self.share_actions else len(batch)
        total = torch.zeros((), device=batch.x.device, dtype=batch.x.dtype)
        scenarios = model(batch.x)
        for objective in objectives:
            g = ExpectedCost(objective.task, scenarios)
            shared = g.shared and self.share_actions
            j = self.actions or (SHARED_ACTIONS if shared else OWN_ACTIONS)
            a = self.target.actions(objective.task, rows, j, rng)
            loss = self.target.loss(g, batch.y, a)
            total = total + objective.weight * loss
        return total
