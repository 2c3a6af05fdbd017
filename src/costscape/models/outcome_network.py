"""The DF2 network: S outcomes that x may move and spread, and their weights.

    v_s(x) = m(x) + r(x) v_s,    m = L z + head(q),    log r = 3 tanh(head(q) / 3)
    w_s(x) = softmax( q . k_s / sqrt(d) )                                      (paper, Eq. 4)

with q = q(x) the code of the encoder, z the standardised x, and d the width of the keys. The
scale r stays between 1/20 and 20, so that no step of the training can make it overflow. A form
has some of these parts: ``Absolute`` has neither m nor r, ``LocationScale`` has L and r and
weights that do not depend on x, ``Anchored`` has them all.
"""

from math import prod
from typing import NamedTuple

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
from costscape.models.scaling import Units, zero_
from costscape.scenarios import Scenarios

RANGE = 3.0  # of the logarithm of the scale
SINGLE = Anchored()  # of one network, where no form is given
SHARED_POINTS, OWN_POINTS = 200, 64  # outcomes that all x share, and those that x moves
WIDEST = 1000  # numbers of x for a linear map that is learned whole
LARGEST = 20_000  # numbers of such a map
RANK = 64  # of a larger one
MOST_ROWS = 2000  # where x is wider: beyond, the decomposition would take minutes
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of ridge regression, for each row
ROUNDING = 1e-12  # of the largest eigenvalue: what counts as none


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

    L starts at ridge regression (``line_from``), both heads at 0, and keys as standard normals.
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


class Ridge(NamedTuple):
    """A regression in the r directions of z that vary: with z - mean = U diag(sizes) V^T.

    Its slopes are V diag(1 / sizes) fitted, and its fitted values U fitted.
    """

    mean_z: Float[Tensor, "k"]
    mean_t: Float[Tensor, "m"]
    directions: Float[Tensor, "k r"]  # V
    sizes: Float[Tensor, "r"]
    fitted: Float[Tensor, "r m"]


def line_from(z: Float[Tensor, "n k"], t: Float[Tensor, "n m"]) -> nn.Module:
    """The map z -> t of ridge regression: a linear layer, or a fixed and a learned one.

    A map of many numbers is L = M P with P (64, k) and M (m, 64): the fitted values keep the 64
    directions in which they vary most (reduced-rank regression, Izenman, 1975). P is not learned
    further, since a step of Adam moves all its numbers alike, and together they move y far.
    Where x has more than 1,000 numbers, at most 2,000 rows are used, evenly spread.

    Args:
        z: standardised features of the training rows, (n, k).
        t: standardised outcomes, (n, m).

    Cost: an eigendecomposition of size k, or of 2,000 for a wider x, and n k (k + m).
    """
    k, m = z.shape[1], t.shape[1]
    if k > WIDEST and len(z) > MOST_ROWS:
        some = torch.linspace(0, len(z) - 1, MOST_ROWS, dtype=torch.float64).round().long()
        z, t = z[some.to(z.device)], t[some.to(z.device)]
    n = len(z)
    fit = ridge(z.double(), t.double())
    if k <= WIDEST and k * m <= LARGEST:
        slopes = fit.directions @ (fit.fitted / fit.sizes[:, None])
        return _layer(slopes, fit.mean_t - fit.mean_z @ slopes, z)
    values, vectors = torch.linalg.eigh(fit.fitted @ fit.fitted.T)
    most = vectors[:, values.argsort(descending=True)[:RANK]]  # (r, at most 64)
    into = n**0.5 * fit.directions @ (most / fit.sizes[:, None])  # numbers of deviation 1
    out = most.T @ fit.fitted / n**0.5
    into, out = (
        nn.functional.pad(into, (0, RANK - into.shape[1])),
        nn.functional.pad(out, (0, 0, 0, RANK - len(out))),
    )
    fixed = _layer(into, -fit.mean_z @ into, z).requires_grad_(False)
    return nn.Sequential(fixed, _layer(out, fit.mean_t, z))


def ridge(z: Float[Tensor, "n k"], t: Float[Tensor, "n m"]) -> Ridge:
    """L = argmin_L  sum_i |t_i - c - L z_i|^2 + n penalty |L|^2,  c not penalised.

    The penalty is that of least generalised cross-validation, n RSS / (n - 1 - degrees of
    freedom)^2 (Golub, Heath and Wahba, 1979), among six from 1e-4 to 10 for each row.
    """
    n, k = z.shape
    mean_z, mean_t = z.mean(0), t.mean(0)
    z, t = z - mean_z, t - mean_t
    values, vectors = torch.linalg.eigh(z.T @ z if k <= n else z @ z.T)
    there = values > ROUNDING * values.max()
    values, vectors = values[there], vectors[:, there]
    sizes = values.sqrt()
    directions = vectors if k <= n else z.T @ (vectors / sizes)
    along = (z @ directions).T @ t / sizes[:, None]  # U^T t, (r, m)
    total = t.square().sum()
    best, shrink = float("inf"), torch.zeros_like(values)
    for penalty in PENALTIES:
        kept = values / (values + penalty * n)
        rss = total - (along.square() * (kept * (2 - kept))[:, None]).sum()
        score = float(rss / (n - 1 - kept.sum()).clamp(min=1e-9) ** 2)
        if score < best:
            best, shrink = score, kept
    return Ridge(mean_z, mean_t, directions, sizes, shrink[:, None] * along)


def _layer(slopes: Float[Tensor, "k m"], bias: Float[Tensor, "m"], like: Tensor) -> nn.Linear:
    k, m = slopes.shape
    layer = nn.Linear(k, m, device=like.device, dtype=like.dtype)
    with torch.no_grad():
        layer.weight.copy_(slopes.T)
        layer.bias.copy_(bias)
    return layer
