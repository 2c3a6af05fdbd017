"""Which training rows carry the weight of the scenarios at x.

Neighbours, forests and kernels weigh training rows: their weights are the answer. The residuals of
ResidualSAA belong to rows, too. DF2 learns its scenarios s from all rows, as a mixture does. The
weight of s is shared out in proportion to how well s explains row i,

    p_i(s) ~ w_s(x_i) exp(-|y_i - v_s(x_i)|^2 / (2 h^2)),    sum_s p_i(s) = 1
    weight of i = sum_s w_s(x) p_i(s) / sum_j p_j(s)

with |.| in standard deviations of the scenarios at x_i, so that location and scale of x_i are
removed. h^2 is the mean squared distance of a row to its nearest scenario. Scenarios of a forecast
have no counterpart at x_i: they are compared by standardised residuals, (y - mean) / deviation.
"""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from costscape.methods.ensemble import Blended, EnsembleMethod
from costscape.methods.kept_rows import KeptRows
from costscape.methods.surfaces import ScenarioMethod
from costscape.models import OutcomeNetwork
from costscape.scenarios import Scenarios

BLOCK = 2**22  # numbers of scenarios in memory at a time
TINY = 1e-12

LEARNED = "the scenarios are learned; rows share their weight by how well they are explained"
NEAREST = "the scenarios are sampled; rows share their weight by how near their residuals are"
POINT = "the forecast is one point, on which all rows have influence"


@runtime_checkable
class WeighsRows(Protocol):
    """A model each of whose scenarios is the outcome or the residual of one training row."""

    scenarios_are: str  # "outcomes" or "residuals"

    def row_weights(self, x: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Which of so many training rows, and their weights at a single x."""


def past_weights(
    method: ScenarioMethod, x: Tensor, kept: KeptRows
) -> tuple[Tensor, dict[str, None]]:
    """The weight of each training row (n,) at one x, with sum 1 or 0, and the rules applied."""
    model = method._fitted()
    if isinstance(method, EnsembleMethod) and isinstance(model, Blended):
        pairs = zip(method.fits_, method.jobs_, strict=True)
        parts = [(fit._fitted(), job.fold) for fit, job in pairs]
        shares = method.shares_
    else:
        parts, shares = [(model, 0)], [1.0]
    total = torch.zeros(len(kept.fold), dtype=torch.float64)
    rules: dict[str, None] = {}
    with torch.no_grad():
        for (part, fold), share in zip(parts, shares, strict=True):
            rows, weights, rule = _of_model(part, x, kept, fold)
            total.index_add_(0, rows.cpu(), share * weights.double().cpu())
            rules[rule] = None
    whole = float(total.sum())
    return (total / whole if whole > 0 else total), rules


def _of_model(
    model: nn.Module, x: Tensor, kept: KeptRows, fold: int
) -> tuple[Tensor, Tensor, str]:
    """Positions of rows, their weights, and the rule."""
    learned = kept.learned(fold)
    if isinstance(model, WeighsRows):
        used, weights = model.row_weights(x, len(learned))
        return learned[used.cpu()], weights, f"their {model.scenarios_are} are the scenarios"
    here = kept.fold[kept.positions] != fold
    rows, x_rows, y_rows = kept.positions[here], kept.x[here].to(x), kept.y[here].to(x)
    if isinstance(model, OutcomeNetwork):
        return rows, _shared_out(model, x, x_rows, y_rows), LEARNED
    s: Scenarios = model(x)
    if s.weights.shape[1] == 1:
        return rows[:0], s.weights.new_zeros(0), POINT
    return rows, _by_residual(model, s, x_rows, y_rows), NEAREST


def _shared_out(model: nn.Module, x: Tensor, x_rows: Tensor, y_rows: Tensor) -> Tensor:
    w = model(x).weights[0].double()
    logs, distances = [], []
    for x_part, y_part in _blocks(model, x_rows, y_rows):
        s: Scenarios = model(x_part)
        _, deviation = _moments(s)
        off = (y_part.flatten(1).unsqueeze(1) - s.values.flatten(2)) / deviation.unsqueeze(1)
        distances.append(off.square().sum(-1).double())
        logs.append(s.weights.double().clamp(min=TINY).log())
    distance = torch.cat(distances)
    p = (torch.cat(logs) - distance / (2 * _width(distance, y_rows))).softmax(1)
    shared: Tensor = (p / p.sum(0).clamp(min=TINY)) @ w
    return shared / shared.sum()


def _by_residual(model: nn.Module, s: Scenarios, x_rows: Tensor, y_rows: Tensor) -> Tensor:
    residuals = []
    for x_part, y_part in _blocks(model, x_rows, y_rows):
        mean, deviation = _moments(model(x_part))
        residuals.append((y_part.flatten(1) - mean) / deviation)
    mean, deviation = _moments(s)
    u = (s.values[0].flatten(1) - mean) / deviation
    distance = torch.cdist(u.double(), torch.cat(residuals).double()).square()  # (S, rows)
    p = (-distance / (2 * _width(distance, y_rows))).softmax(1)
    return s.weights[0].double() @ p


def _width(distance: Tensor, y: Tensor) -> float:
    """h^2 for each number of y."""
    return max(float(distance.amin(1).mean()) / y[0].numel(), TINY)


def _moments(s: Scenarios) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (B, q) of the outcomes at each x."""
    v, w = s.values.flatten(2), s.weights.unsqueeze(-1)
    mean = (w * v).sum(1)
    deviation = (w * (v - mean.unsqueeze(1)).square()).sum(1).sqrt()
    return mean, deviation.clamp(min=TINY**0.5)


def _blocks(model: nn.Module, x: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
    each = model(x[:1]).values[0].numel()
    rows = max(1, BLOCK // each)
    return list(zip(x.split(rows), y.split(rows), strict=True))
