"""From arguments with a row for each x to ``RowSets``."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from costscape.sets.box import Box
from costscape.sets.budget import Budget
from costscape.sets.constraint_set import ConstraintSet
from costscape.sets.polytope import Polytope
from costscape.sets.row_sets import ListedRows, RowSets, ScaledRows
from costscape.sets.simplex import Simplex
from costscape.sets.validation import Numbers, as_tensors, check_dim, check_finite


def boxes(lower: Numbers, upper: Numbers, dim: int | None, step: Numbers | None) -> RowSets:
    """A Box for each row, of whole units where there is a step."""
    low, high = as_tensors("Box", lower=lower, upper=upper)
    wide = {v.shape[-1] for v in (low, high) if v.ndim} | ({dim} if dim else set())
    if max(low.ndim, high.ndim) > 2 or len(wide) != 1:
        raise ValueError(
            f"Box needs bounds of one width, numbers, (d,) or (n, d), but got lower of shape "
            f"{tuple(low.shape)} and upper of shape {tuple(high.shape)}."
        )
    (d,) = wide
    n = _rows("Box", lower=low if low.ndim == 2 else None, upper=high if high.ndim == 2 else None)
    low, high = (v.expand(n, d).contiguous() for v in (low, high))
    check_finite("Box", "lower", low, "Bound every coordinate.")
    check_finite("Box", "upper", high, "Bound every coordinate.")
    if len(bad := (low > high).nonzero()):
        i, j = bad[0].tolist()
        raise ValueError(
            f"Box needs lower <= upper in every row, but row {i} has lower {low[i, j]:g} > upper "
            f"{high[i, j]:g} in coordinate {j} ({len(bad)} such)."
        )
    if step is None:
        return ScaledRows(Box(0.0, 1.0, dim=d), low, high - low)
    make = lambda low, high: Box(low, high, step=step)  # noqa: E731
    return _listed("Box", make, (low, high), Box(low.amin(0), high.amax(0), step=step))


def simplexes(total: Numbers, dim: int) -> RowSets:
    """A Simplex for each total."""
    totals = _totals("Simplex", total, dim)
    return ScaledRows(Simplex(dim=dim), *_scales(totals, dim))


def budgets(total: Numbers, dim: int, upper: Numbers | None) -> RowSets:
    """A Budget for each row, where the total, the caps or both have rows."""
    if upper is None:
        totals = _totals("Budget", total, dim)
        return ScaledRows(Budget(total=1.0, dim=dim), *_scales(totals, dim))
    check_dim("Budget", dim)
    totals, caps = as_tensors("Budget", total=total, upper=upper)
    if totals.ndim > 1 or caps.ndim > 2 or (caps.ndim and caps.shape[-1] != dim):
        raise ValueError(
            f"Budget needs a total for each row, (n,), and caps (n, {dim}), ({dim},) or a number, "
            f"but got total of shape {tuple(totals.shape)} and upper of shape "
            f"{tuple(caps.shape)}."
        )
    by_row = {"total": totals if totals.ndim else None, "upper": caps if caps.ndim == 2 else None}
    n = _rows("Budget", **by_row)
    totals, caps = totals.expand(n).contiguous(), caps.expand(n, dim).contiguous()
    hull = Budget(total=totals.max(), dim=dim, upper=caps.amax(0))
    make = lambda total, upper: Budget(total=total, dim=dim, upper=upper)  # noqa: E731
    return _listed("Budget", make, (totals, caps), hull)


def polytopes(h: Numbers, **others: Any) -> RowSets:
    """A Polytope for each row of right-hand sides h (n, m)."""
    (sides,) = as_tensors("Polytope", h=h)
    if sides.ndim != 2 or len(sides) == 0:
        raise ValueError(
            f"Polytope needs h to be (m,), or (n, m) with a row for each x, but got shape "
            f"{tuple(sides.shape)}."
        )
    hull = Polytope(h=sides.amax(0), **others)
    return _listed("Polytope", lambda h: Polytope(h=h, **others), (sides,), hull)


def _listed(
    owner: str,
    make: Callable[..., ConstraintSet],
    arguments: tuple[Tensor, ...],
    hull: ConstraintSet,
) -> ListedRows:
    """The different sets among those of n rows of arguments."""
    table = torch.cat([v.reshape(len(v), -1) for v in arguments], 1)
    _, which = table.unique(dim=0, return_inverse=True)
    sets = []
    for k in range(int(which.max()) + 1):
        first = int((which == k).nonzero()[0, 0])
        try:
            sets.append(make(*(v[first] for v in arguments)))
        except ValueError as error:
            raise ValueError(f"The {owner} of row {first} cannot be made. {error}") from error
    return ListedRows(sets, which, hull)


def _totals(owner: str, total: Numbers, dim: int) -> Tensor:
    check_dim(owner, dim)
    (totals,) = as_tensors(owner, total=total)
    if totals.ndim != 1 or len(totals) == 0:
        raise ValueError(
            f"{owner} needs one positive total, or a vector with a total for each row, but got "
            f"shape {tuple(totals.shape)}."
        )
    if len(bad := (~(totals.isfinite() & (totals > 0))).nonzero()):
        i = int(bad[0])
        raise ValueError(
            f"{owner} needs positive totals, but that of row {i} is {totals[i]:g} "
            f"({len(bad)} such)."
        )
    return totals


def _scales(totals: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    scale = totals[:, None].expand(-1, dim).contiguous()
    return torch.zeros_like(scale), scale


def _rows(owner: str, **values: Tensor | None) -> int:
    sizes = {name: len(v) for name, v in values.items() if v is not None}
    if len(set(sizes.values())) != 1 or 0 in sizes.values():
        came = " and ".join(f"{size} in {name}" for name, size in sizes.items())
        raise ValueError(f"{owner} needs the same number of rows in all, but got {came}.")
    return next(iter(sizes.values()))
