"""The network of each form of outcomes."""

import torch
from torch import Tensor

from costscape.data import Dataset
from costscape.methods.drafts import Network
from costscape.methods.forms import WIDEST, inner, relative_to
from costscape.models import (
    Absolute,
    Anchored,
    AnchoredValues,
    Attention,
    Builder,
    LocationScale,
    LocationScaleNetwork,
    Outcomes,
    Refined,
    Units,
    Values,
)

SHARED_POINTS = 500  # of outcomes that are the same for all x
FIXED_POINTS = 400  # of location and scale: no x weighs them differently, so more must stand there
OWN_POINTS = 100  # of the other forms whose outcomes x moves


def usual_points(form: Outcomes) -> int:
    """How many outcomes a network has where the user does not say."""
    if isinstance(form, Absolute):
        return SHARED_POINTS
    return FIXED_POINTS if isinstance(inner(form), LocationScale) else OWN_POINTS


def network_of(
    form: Outcomes,
    train: Dataset,
    encoder: Builder,
    points: int | None = None,
    learn_values: bool = True,
    standardise: bool = True,
) -> tuple[Network, Tensor]:
    """A fresh network, and the training rows whose labels its outcomes start from."""
    x, y = train.x, train.y
    units = Units(x, y, relative_to(form), standardise)
    built = encoder()
    points = min(points or usual_points(form), len(y))
    start = torch.randperm(len(y))[:points].to(y.device)
    kind = inner(form)
    if isinstance(kind, LocationScale):
        if x[0].numel() > WIDEST:
            raise ValueError(
                f"LocationScale needs x of at most {WIDEST} numbers for its linear map, but got "
                f"{x[0].numel()}. Take Anchored(), whose location is the encoder's."
            )
        lines = bool(kind.lines)
        return LocationScaleNetwork(built, units, x, y, start, learn_values, lines), start
    labels = units.standard(x[start], y[start])
    values: Values | AnchoredValues
    if isinstance(kind, Anchored | Refined):
        width = int(built.out_features)  # type: ignore[arg-type]
        values = AnchoredValues(labels, width, learn_values)
    else:
        values = Values(labels, learn_values)
    return Attention(built, values, points, units), start
