"""DF2: fit g(x, a) to sampled costs f(y, a), with no model of p(y | x).

    minimise  mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2               (paper, Eq. 3)

or, by default here, the same of how g and f change from action to action.

Kong, Mu, Cui, Zhuang, Prakash, Dai and Zhang, DF2: Distribution-Free Decision-Focused Learning,
UAI 2025.
"""

import json
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn

from costscape.data import Dataset
from costscape.distributed import own_rows, whole
from costscape.methods import store
from costscape.methods.by_rows import learned
from costscape.methods.drafts import Draft, Fitted, Network, as_if_certain, carry_out
from costscape.methods.folds import Fold, fold, together
from costscape.methods.forms import (
    clearly_best,
    in_turn,
    inner,
    of_member,
    suitable,
)
from costscape.methods.networks import network_of, usual_points
from costscape.methods.scoring import decision_costs, validation_cost
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.targets import Costs, Slopes, Target
from costscape.models import (
    Absolute,
    Builder,
    Members,
    Outcomes,
    Refined,
    wide_by_shape,
)
from costscape.solvers import Solver
from costscape.tasks import Task
from costscape.train import RATE as PAPER_RATE
from costscape.train import (
    Fit,
    Score,
    Training,
    check_ema,
    fit_network,
)

SHARED_ACTIONS, OWN_ACTIONS = 100, 32  # where all x share their outcomes, and where not


@dataclass
class DF2(ScenarioMethod):
    """Attention over ``points`` outcomes; ``actions`` sampled at each step.

    - ``points`` and ``actions`` None are 500 and 100 where all x share their outcomes; where each
      has its own, a step costs batch x actions x points evaluations of f, and they are 400 and 32
      of LocationScale(), 100 and 32 of the rest.
    - ``encoder``: a builder; by default an MLP for rows and an LSTM of 2 x 256 for sequences.
    - ``share_actions``: one draw of actions for the whole batch, not one for each pair. The
      objective stays unbiased, and with absolute outcomes a step is one matrix product.
    - ``learn_values``: False keeps the outcomes at their start.
    - ``outcomes``: LocationScale(), Absolute(), Anchored() or WindowLevels(); None fits all that
      suit x and y, in this order, and takes a later one where its decisions cost less on the
      validation part by two standard errors or more. Members may then be of two forms in turn
      (``forms.in_turn``). Refined() and Changes(base) are never tried unasked.
    - ``target``: Slopes() of the cost, or Costs() themselves as in the paper.
    - ``ema``: decay of the moving average of the weights, or None.
    - ``members``: how many fits, from different seeds, are averaged. Where epochs are chosen,
      those after the first hold out other stretches than the validation part, of its length, and
      learn from it (``folds``).
    - ``refit``: fit once more to all pairs, validation part included, for as many epochs as were
      best. None does so for a single fit where epochs are chosen: it would know nothing of the
      latest pairs, which the members of several learn from in turn.
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
    target: Target = field(default_factory=Slopes)
    ema: float | None = 0.995
    members: int = 5
    standardise: bool = True
    solver: Solver | Literal["auto"] = "auto"
    training: Training = field(default_factory=Training)
    choose_epoch: bool = True
    refit: bool | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("points", "actions", "members"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"DF2 needs {name} of at least 1, but got {value}.")
        if self.actions is not None and self.actions < self.target.least:
            raise ValueError(
                f"{type(self.target).__name__} compare actions with each other and need at least "
                f"{self.target.least}, but got actions={self.actions}. Take more, or "
                f"target=Costs()."
            )
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
            target=Costs(weighting=False, by_coordinate=False),
            ema=None,
            members=1,
            standardise=False,
            choose_epoch=False,
            seed=seed,
            training=replace(given, lr=given.lr or PAPER_RATE, decay=False),
        )

    def unsaid(self, train: Dataset) -> dict[str, Any]:
        found: dict[str, Any] = {}
        forms = suitable(train) if self.outcomes is None else [self.outcomes]
        if self.points is None:
            found["points"] = [usual_points(form) for form in forms]
        if self.outcomes is None:
            found["forms"] = [store.to_json(form) for form in forms]
            if self.members > 1:
                found["in turn"] = [
                    [store.to_json(form) for form in in_turn(forms, chosen, 2)]
                    for chosen in range(len(forms))
                ]
        if self.encoder is None:
            found["encoder"] = store.to_json(wide_by_shape(tuple(train.x.shape[1:])))
        if self.members > 1 and self.choose_epoch:
            found["folds"] = "rotated"
        if self.refit is None and self._refits():
            found["refit"] = True
        return found

    def _refits(self) -> bool:
        return self.members == 1 and self.choose_epoch if self.refit is None else self.refit

    def _fit(self, train: Dataset, val: Dataset) -> None:
        device = self.training.where()
        task = self._move_task(device)
        train, val = (part.to(device, part.x.dtype) for part in (train, val))
        forms = suitable(train) if self.outcomes is None else [self.outcomes]
        fits: list[Fitted] = []
        chosen = 0
        firsts = [of_member(form, 0) for form in forms]
        if len(forms) > 1:
            fits = self._fit_all(task, train, val, [(form, 0) for form in firsts])
            chosen = clearly_best([decision_costs(task, f.model, val, self.solver) for f in fits])
        self.outcomes_ = forms[chosen]
        self.forms_ = in_turn(forms, chosen, self.members)
        if fits:
            fits = [fits[firsts.index(self.forms_[0])]]
        plan = list(zip(self.forms_, range(self.members), strict=True))
        fits += self._fit_all(task, train, val, plan[len(fits) :])
        self.history_ = [fit.history for fit in fits]
        if self._refits():
            fits = self._fit_again(task, train, val, plan, fits)
        self.model_ = Members([fit.model for fit in fits]).eval()

    def _fit_all(
        self, task: Task, train: Dataset, val: Dataset, plan: list[tuple[Outcomes, int]]
    ) -> list[Fitted]:
        """A network for each form and member of the plan, fitted together."""
        pairs = together(train, val)
        parts = {i: fold(train, val, i if self.choose_epoch else 0) for i in {i for _, i in plan}}
        scores: dict[int, Score | None] = {
            i: validation_cost(task, part.held, self.solver) if self.choose_epoch else None
            for i, part in parts.items()
        }
        sure = {
            i: validation_cost(task, part.held, self.solver, partial(as_if_certain, task))
            for i, part in parts.items()
            if self.choose_epoch and any(isinstance(inner(form), Refined) for form, _ in plan)
        }
        drafts = [
            replace(self._draft(task, pairs, parts[i], form, i, scores[i]), sure=sure.get(i))
            for form, i in plan
        ]
        return carry_out(drafts, pairs, self.training, fit_network)

    def _fit_again(
        self,
        task: Task,
        train: Dataset,
        val: Dataset,
        plan: list[tuple[Outcomes, int]],
        fits: list[Fitted],
    ) -> list[Fitted]:
        """The same networks from their start, fitted to all pairs for as long as was best."""
        pairs = together(train, val)
        everything = Fold(torch.arange(len(pairs), device=pairs.x.device), val)
        drafts = [
            replace(
                self._draft(task, pairs, everything, form, i, until=fit.epochs),
                anchor_until=fit.anchor_epochs,
            )
            for (form, i), fit in zip(plan, fits, strict=True)
        ]
        return carry_out(drafts, pairs, self.training, fit_network)

    def _draft(
        self,
        task: Task,
        pairs: Dataset,
        part: Fold,
        form: Outcomes,
        member: int,
        score: Score | None = None,
        until: int | None = None,
    ) -> Draft:
        seed = self.seed + 1000 * member
        train = Dataset(pairs.x[part.rows], pairs.y[part.rows])
        with torch.random.fork_rng([train.x.device] if train.x.is_cuda else []):
            torch.manual_seed(seed)
            model, start = self._network(train, form)
        model = model.to(train.x.device, train.x.dtype)
        name = f"{type(form).__name__.lower()}-{member}" + "-again" * (until is not None)
        form_json = json.dumps(store.to_json(form))
        recipe = form_json + self._recipe(model, train, part.held, "outcomes", "members", "refit")
        fit = Fit(
            model,
            lambda batch, rng: self.loss(task, model, batch, rng),
            seed,
            score,
            self.ema,
            title=f"DF2 {name}",
            recipe=recipe + f" for {until} epochs" * (until is not None),
            name=name,
            rows=part.rows,
            start=isinstance(inner(form), Refined),
            until=until,
        )
        return Draft(model, part.rows[start], form, fit)

    def _network(self, train: Dataset, form: Outcomes) -> tuple[Network, Tensor]:
        encoder = self.encoder or wide_by_shape(tuple(train.x.shape[1:]))
        return network_of(form, train, encoder, self.points, self.learn_values, self.standardise)

    def _facts(self) -> dict[str, Any]:
        assert isinstance(self.model_, Members)
        return {
            "outcomes": store.to_json(self.outcomes_),
            "forms": [store.to_json(form) for form in self.forms_],
            "points": [m.points for m in self.model_.members],
        }

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        form = self.outcomes
        if form is None:
            self.outcomes_ = store.from_json(facts["outcomes"])
            self.forms_ = [store.from_json(told) for told in facts["forms"]]
        else:  # its functions, such as a level, are the caller's
            self.outcomes_, self.forms_ = form, in_turn([form], 0, self.members)
        blank = [Dataset(*self._blank(points)) for points in facts["points"]]
        with torch.random.fork_rng([]):  # fresh weights are drawn, to be overwritten
            return Members(
                [self._network(d, f)[0] for d, f in zip(blank, self.forms_, strict=True)]
            )

    def loss(self, task: Task, model: nn.Module, batch: Dataset, rng: Generator) -> Tensor:
        """The objective above on one batch, with freshly drawn actions."""
        rows = 1 if self.share_actions else whole(len(batch))
        g = learned(task, model, batch.x)
        j = self.actions or (SHARED_ACTIONS if g.shared and self.share_actions else OWN_ACTIONS)
        a = task.feasible.sample(rows * j, rng).unflatten(0, (rows, j))
        return self.target.loss(g, batch.y, a if rows == 1 else own_rows(a))
