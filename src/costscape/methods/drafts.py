"""Networks of DF2 to be fitted: the location m(x) of anchored outcomes first, then the rest."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.forms import inner
from costscape.models import (
    Anchored,
    AnchoredValues,
    Attention,
    LocationScaleNetwork,
    Outcomes,
    Refined,
)
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.tasks import Task
from costscape.train import Fit, History, Score, Training, fit_networks

Network = Attention | LocationScaleNetwork


@dataclass(frozen=True, eq=False)
class Draft:
    """A network to be fitted, and the rows of all pairs whose labels its outcomes start from."""

    model: Network
    start: Tensor
    form: Outcomes
    fit: Fit
    sure: Score | None = None  # of m(x) as if it were certain
    anchor_until: int | None = None  # the epochs of m(x), where they have been chosen before

    def anchor(self) -> Fit:
        """m(x) by least squares."""
        net = self.model
        assert isinstance(net, Attention)
        chosen = isinstance(inner(self.form), Refined)
        return replace(
            self.fit,
            loss=lambda batch, rng: (
                (net.location(batch.x) - net.units.standard(batch.x, batch.y)).square().mean()
            ),
            score=self.sure if chosen else None,
            ema=self.fit.ema if chosen else None,
            start=False,
            until=self.anchor_until,
            title="DF2 anchor",
            name=f"{self.fit.name}.anchor",
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """A network as it was left, and how it came there; ``anchor`` where m(x) was fitted first."""

    model: Network
    history: History
    anchor: History | None

    @property
    def epochs(self) -> int:
        """How many were best; 0 where it stayed as it was when m(x) had been fitted."""
        return self.history.best_epoch + 1

    @property
    def anchor_epochs(self) -> int | None:
        """The same of m(x); None for all, and where there is none."""
        return self.anchor.best_epoch + 1 if self.anchor and self.anchor.scores else None


def carry_out(
    drafts: list[Draft], pairs: Dataset, training: Training, alone: Callable[..., History]
) -> list[Fitted]:
    """Together where their steps are recorded, else one after the other by ``alone``."""
    anchors = fit_anchors(drafts, pairs, training, alone)
    found = fit_networks([draft.fit for draft in drafts], pairs, training, alone)
    return [
        Fitted(draft.model, history, anchor)
        for draft, history, anchor in zip(drafts, found, anchors, strict=True)
    ]


def as_if_certain(task: Task, model: nn.Module, x: Tensor) -> ExpectedCost:
    """The cost if y were m(x)."""
    assert isinstance(model, Attention)
    y = model.units.undo(x, model.location(x)).unsqueeze(1)
    return ExpectedCost(task, Scenarios(torch.ones_like(y.flatten(2)[..., 0]), y, own=True))


def fit_anchors(
    drafts: list[Draft], pairs: Dataset, training: Training, alone: Callable[..., History]
) -> list[History | None]:
    """Of anchored outcomes: m(x) by least squares; then the outcomes start at its residuals."""
    anchored = [
        (i, form)
        for i, draft in enumerate(drafts)
        if isinstance(form := inner(draft.form), Anchored | Refined)
    ]
    found: list[History | None] = [None] * len(drafts)
    for kind in dict.fromkeys(form for _, form in anchored):
        same = [i for i, form in anchored if form == kind]
        fits = [drafts[i].anchor() for i in same]
        told = fit_networks(fits, pairs, replace(training, epochs=kind.epochs), alone)
        for i, history in zip(same, told, strict=True):
            found[i] = history
    for i, _ in anchored:
        _start_at_residuals(drafts[i], pairs)
    return found


def _start_at_residuals(draft: Draft, pairs: Dataset) -> None:
    model, x, y = draft.model, pairs.x[draft.start], pairs.y[draft.start]
    assert isinstance(model, Attention)
    model.eval()
    with torch.no_grad():
        residuals = model.units.standard(x, y) - model.location(x)
    assert isinstance(model.values, AnchoredValues)
    model.values.start(residuals)
