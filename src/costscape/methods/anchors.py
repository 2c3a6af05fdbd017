"""The location m(x) of anchored outcomes, fitted before the rest of DF2's network."""

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
    sure: Score | None  # of m(x) as if it were certain

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
            title="DF2 anchor",
            name=f"{self.fit.name}.anchor",
        )


def as_if_certain(task: Task, model: nn.Module, x: Tensor) -> ExpectedCost:
    """The cost if y were m(x)."""
    assert isinstance(model, Attention)
    y = model.units.undo(x, model.location(x)).unsqueeze(1)
    return ExpectedCost(task, Scenarios(torch.ones_like(y.flatten(2)[..., 0]), y, own=True))


def fit_anchors(
    drafts: list[Draft], pairs: Dataset, training: Training, alone: Callable[..., History]
) -> None:
    """Of anchored outcomes: m(x) by least squares; then the outcomes start at its residuals."""
    anchored = [
        (draft, form)
        for draft in drafts
        if isinstance(form := inner(draft.form), Anchored | Refined)
    ]
    for kind in dict.fromkeys(form for _, form in anchored):
        fits = [draft.anchor() for draft, form in anchored if form == kind]
        fit_networks(fits, pairs, replace(training, epochs=kind.epochs), alone)
    for draft, _ in anchored:
        model, x, y = draft.model, pairs.x[draft.start], pairs.y[draft.start]
        assert isinstance(model, Attention)
        model.eval()
        with torch.no_grad():
            residuals = model.units.standard(x, y) - model.location(x)
        assert isinstance(model.values, AnchoredValues)
        model.values.start(residuals)
