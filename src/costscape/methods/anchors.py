"""The location m(x) of anchored outcomes, fitted before the rest of DF2's network."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from costscape.data import Dataset
from costscape.methods.forms import inner
from costscape.models import Anchored, AnchoredValues, Attention, LocationScaleNetwork, Outcomes
from costscape.train import Fit, History, Training, fit_networks

Network = Attention | LocationScaleNetwork


@dataclass(frozen=True, eq=False)
class Draft:
    """A network to be fitted, and the rows of all pairs whose labels its outcomes start from."""

    model: Network
    start: Tensor
    form: Outcomes
    fit: Fit

    def anchor(self) -> Fit:
        """m(x) by least squares."""
        net = self.model
        assert isinstance(net, Attention)
        return replace(
            self.fit,
            loss=lambda batch, rng: (
                (net.location(batch.x) - net.units.standard(batch.x, batch.y)).square().mean()
            ),
            score=None,
            ema=None,
            title="DF2 anchor",
            name=f"{self.fit.name}.anchor",
        )


def fit_anchors(
    drafts: list[Draft], pairs: Dataset, training: Training, alone: Callable[..., History]
) -> None:
    """Of anchored outcomes: m(x) by least squares; then the outcomes start at its residuals."""
    anchored = [
        (draft, form) for draft in drafts if isinstance(form := inner(draft.form), Anchored)
    ]
    for epochs in dict.fromkeys(form.epochs for _, form in anchored):
        fits = [draft.anchor() for draft, form in anchored if form.epochs == epochs]
        fit_networks(fits, pairs, replace(training, epochs=epochs), alone)
    for draft, _ in anchored:
        model, x, y = draft.model, pairs.x[draft.start], pairs.y[draft.start]
        assert isinstance(model, Attention)
        model.eval()
        with torch.no_grad():
            residuals = model.units.standard(x, y) - model.location(x)
        assert isinstance(model.values, AnchoredValues)
        model.values.start(residuals)
