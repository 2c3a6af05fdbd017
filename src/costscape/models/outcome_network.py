"""The DF2 network: S outcomes that x may move and spread, and their weights.

    v_s(x) = m(x) + r(x) v_s,    m = L z + head(q),    log r = 3 tanh(head(q) / 3)
    w_s(x) = softmax( q . k_s / sqrt(d) )                                      (paper, Eq. 4)

with q = q(x) the code of the encoder, z the standardised x, and d the width of the keys. The
scale r stays between 1/20 and 20, so that no step of the training can make it overflow. A form
has some of these parts: ``Absolute`` has neither m nor r, ``LocationScale`` has L and r and
weights that do not depend on x, ``Anchored`` has them all.
"""

from math import prod

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from costscape.models.outcomes import (
    Absolute,
    Anchored,
    LocationScale,
    Outcomes,
    Plain,
    WindowLevels,
)
from costscape.models.ridge_line import line_from
from costscape.models.scaling import Units, zero_
from costscape.scenarios import Scenarios

RANGE = 3.0  # of the logarithm of the scale
SINGLE = Anchored()  # of one network, where no form is given
SHARED_POINTS, OWN_POINTS = 200, 64  # outcomes that all x share, and those that x moves


class OutcomeNetwork(nn.Module):
    """x in the user's units -> scenarios in the user's units.

    Args:
        form: which of the parts above there are.
        encoder: a module with ``out_features``.
        units: how the network sees x and y.
        x: features of the training rows, (n, ...).
        y: outcomes of the training rows, (n, *y_shape).
        start: rows (S,) whose labels the v_s start from: as they are, or less the ridge regression
            of y on x where the form has a location.
        learn_values: False keeps the v_s at their start.

    L starts at ridge regression (``ridge_line``), both heads at 0, and keys as standard normals.
    """

    def __init__(
        self,
        form: Plain,
        encoder: nn.Module,
        units: Units,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        start: Int64[Tensor, "S"],
        learn_values: bool = True,
    ) -> None:
        super().__init__()
        self.line: nn.Module | None = None
        self.shift: nn.Linear | None = None
        self.log_scale: nn.Linear | None = None
        self.encoder, self.units = encoder, units
        self.y_shape, self.points = y.shape[1:], len(start)
        width, size = int(encoder.out_features), prod(self.y_shape)  # type: ignore[arg-type]
        residual = units.standard(x[start], y[start])
        if not isinstance(form, Absolute):
            self.log_scale = zero_(nn.Linear(width, size))
            z, t = units.inputs(x).flatten(1), units.standard(x, y).flatten(1)
            self.line = line_from(z, t)
            with torch.no_grad():
                residual = residual - self._in_shape(self.line(z[start]))[:, 0]
        if isinstance(form, Anchored):
            self.shift = zero_(nn.Linear(width, size))
        constant = isinstance(form, LocationScale)
        keys = torch.zeros(self.points) if constant else torch.randn(self.points, width)
        self.keys = nn.Parameter(keys)
        self.v: Tensor
        if learn_values:
            self.v = nn.Parameter(residual.clone())
        else:
            self.register_buffer("v", residual.clone())

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        z = self.units.inputs(x)
        q = self.encoder(z)
        v = self.v.unsqueeze(0)
        if self.log_scale is not None:
            v = self._in_shape((RANGE * (self.log_scale(q) / RANGE).tanh()).exp()) * v
            assert self.line is not None
            v = v + self._in_shape(self.line(z.flatten(1)))
            if self.shift is not None:
                v = v + self._in_shape(self.shift(q))
        own = self.log_scale is not None or self.units.own
        return Scenarios(self._weights(q), self.units.undo(x, v), own)

    def _weights(self, q: Float[Tensor, "B out"]) -> Float[Tensor, "B S"]:
        if self.keys.ndim == 1:
            return self.keys.softmax(0).expand(q.shape[0], -1)
        affinity: Tensor = q @ self.keys.T / self.keys.shape[1] ** 0.5
        return affinity.softmax(-1)

    def _in_shape(self, t: Float[Tensor, "B m"]) -> Float[Tensor, "B 1 ..."]:
        shaped: Tensor = t.unflatten(-1, self.y_shape)
        return shaped.unsqueeze(1)


def suitable(x: Float[Tensor, "n ..."], y: Float[Tensor, "n ..."]) -> list[Outcomes]:
    """Return the forms that can be fitted to such x and y."""
    forms: list[Outcomes] = [Absolute(), Anchored(), LocationScale()]
    one_series = x.ndim == 3 and x.shape[2] == 1 and y.ndim == 2
    if one_series and x.min() >= 0 and y.min() >= 0:
        forms.append(WindowLevels())
    return forms


def usual_points(form: Outcomes) -> int:
    """Return how many outcomes a network has where the user gives no number."""
    return SHARED_POINTS if isinstance(form, Absolute) else OWN_POINTS


def name_of(form: Outcomes) -> str:
    """Return the form's name, such as "anchored" or "window-levels of anchored"."""
    if isinstance(form, WindowLevels):
        return f"window-levels of {name_of(form.of)}"
    names = {Absolute: "absolute", Anchored: "anchored", LocationScale: "location-scale"}
    return names[type(form)]
