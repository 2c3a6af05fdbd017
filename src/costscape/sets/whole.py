"""The whole multiples of a step in a set: packs, pallets, crews, yes and no."""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor

from costscape.sets.box import Box
from costscape.sets.constraint_set import ConstraintSet, Polyhedral
from costscape.sets.counts import CountRows, Counts, ListedCounts, RowCounts
from costscape.sets.searched_counts import counts_of
from costscape.sets.unit_row import UnitRow
from costscape.sets.validation import Numbers, as_tensors, as_vector, brief, check_finite

ROUNDING = 1e-4  # of a step: a bound this near a multiple holds it


class Whole(ConstraintSet):
    """C = {a in base : a_i = origin_i + k_i step_i with whole k_i}, of a set of linear rows.

    Args:
        base: Box, Budget, Simplex or Polytope.
        step: positive number or vector (d,), default 1. On a Box an entry may be None: that
            coordinate is continuous.
        origin: a number or a vector (d,), default 0. ``Box(lower, upper, step=12)`` has its lower
            bound here: it allows lower, lower + 12, lower + 24 and so on.

    What is exact depends on the rows of the base that couple coordinates:

    - None (Box): samples are uniform, ``project`` rounds each coordinate.
    - One (Budget, Simplex, one row of a Polytope) whose prices, row_i step_i, are multiples of
      one unit: samples are uniform, ``project`` is exact, by dynamic programming.
    - Several, or other prices, and up to 100,000 points: the points are listed; both are exact.
    - All else: ``project`` returns the allowed point of least absolute distance from the
      projection onto the base, by one integer program for each point; samples are ends of random
      walks. ``exact`` is False.

    ``project`` has no gradient.

    >>> import costscape as cs
    >>> packs = cs.Whole(cs.Budget(total=40.0, dim=2), step=12.0)
    >>> packs.project(torch.tensor([20.0, 17.0]))
    tensor([24., 12.])
    >>> cs.Box(0, 1, dim=3, step=1).project(torch.tensor([0.2, 0.9, 5.0]))
    tensor([0., 1., 1.])
    """

    step: Tensor  # 0 where a coordinate is continuous
    origin: Tensor
    first: Tensor
    last: Tensor
    lower: Tensor
    upper: Tensor

    def __init__(self, base: Polyhedral, step: Numbers = 1.0, *, origin: Numbers = 0.0) -> None:
        super().__init__()
        if not isinstance(base, Polyhedral):
            raise TypeError(
                f"Whole needs a Box, a Budget, a Simplex or a Polytope, but got "
                f"{type(base).__name__}. A Finite list holds whole numbers already."
            )
        self.base, self.dim = base, base.dim
        self._listed: dict[int, Tensor | None] = {}
        low, high = base.bounds
        size, start = (v.to(low) for v in as_tensors("Whole", step=step, origin=origin))
        size = as_vector("Whole", "step", size, self.dim)
        start = as_vector("Whole", "origin", start, self.dim)
        check_finite("Whole", "origin", start, "It is one of the allowed values.")
        _check_step(size, isinstance(base, Box))
        size = size.nan_to_num(0.0)
        width = torch.where(size > 0, size, 1.0)
        first = ((low - start) / width - ROUNDING).ceil()
        last = ((high - start) / width + ROUNDING).floor()
        first, last = (torch.where(size > 0, end, 0.0).long() for end in (first, last))
        _check_not_empty(first, last, low, high, size)
        self.register_buffer("step", size)
        self.register_buffer("origin", start)
        self.register_buffer("first", first)
        self.register_buffer("last", last)
        box = isinstance(base, Box)
        self.counts: Counts | None = None if box else counts_of(self._rows()).to(low.device)
        ends = (0 * first, last - first) if self.counts is None else self.counts.bounds()
        lower, upper = (self.actions(end.to(low.device)) for end in ends)
        self.register_buffer("lower", torch.where(size > 0, lower, low))
        self.register_buffer("upper", torch.where(size > 0, upper, high))

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        return self.lower, self.upper

    @property
    def exact(self) -> bool:
        """Whether ``project`` returns the nearest point in Euclidean distance."""
        return self.counts is None or self.counts.exact

    @property
    def by_coordinate(self) -> bool:
        return isinstance(self.base, Box)

    @property
    def row(self) -> UnitRow | None:
        """The one row that couples the counts, in whole units, or None."""
        return self.counts.row if isinstance(self.counts, RowCounts) else None

    @property
    def size(self) -> Int64[Tensor, "d"]:
        """How many multiples each coordinate has between the bounds of the base."""
        return self.last - self.first + 1

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        if self.counts is not None:
            return self.actions(self.counts.sample(n, generator))
        # the midpoint of a step is rounded to its multiple
        half = self.step / 2
        u = self.lower.new_empty(n, self.dim).uniform_(generator=generator)
        return self.project(self.lower - half + u * (self.upper - self.lower + self.step))

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        z = a.detach().double()
        if self.counts is None:
            near = self.rounded(z).clamp(self.lower.double(), self.upper.double())
            return near.to(a.dtype)
        step, origin = self.step.double(), self.origin.double()
        if not self.counts.exact:  # the Euclidean distance is that to the base, up to rounding
            z = torch.where(self.contains(z)[..., None], z, self.base.project(z))
        flat = ((z - origin) / step - self.first).reshape(-1, self.dim)
        return self.actions(self.counts.nearest(flat, step)).to(a.dtype).reshape(a.shape)

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """The larger of the violation of the base and the distance to a multiple."""
        off = (a.double() - self.rounded(a.double())).abs().amax(-1).to(a.dtype)
        return torch.maximum(self.base.violation(a), off)

    def describe(self, a: Any) -> list[Any]:
        raise TypeError(
            "Whole multiples are not convex, so cvxpy cannot take them as constraints on a "
            "continuous variable. Describe base, or leave the choice of the solver to Auto()."
        )

    def points(self, most: int) -> Float[Tensor, "K d"] | None:
        """All points of C, or None where there are more than ``most``."""
        if isinstance(self.counts, ListedCounts):
            listed = self.counts.points
            return self.actions(listed) if len(listed) <= most else None
        if (self.step == 0).any():
            return None
        if most not in self._listed:  # solvers ask at every decision
            self._listed[most] = self._rows().listed(most)
        found = self._listed[most]
        return None if found is None else self.actions(found.to(self.first.device))

    def extra_repr(self) -> str:
        return f"step={brief(self.step)}, origin={brief(self.origin)}"

    def rounded(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The nearest multiple in each coordinate, whether or not the point lies in the base."""
        step, origin = self.step.double(), self.origin.double()
        k = ((a.double() - origin) / torch.where(step > 0, step, 1.0)).round()
        return torch.where(step > 0, origin + step * k, a.double()).to(a.dtype)

    def actions(self, k: Int64[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The actions of counts: those of 0 have the least multiple of the base."""
        a: Tensor = self.origin + self.step * (self.first + k).to(self.step.dtype)
        return a

    def _rows(self) -> CountRows:
        rows = self.base.rows()
        A, b, G, h, step, origin = (
            v.detach().double().cpu()
            for v in (rows.A, rows.b, rows.G, rows.h, self.step, self.origin)
        )
        least = origin + step * self.first.cpu()
        size = tuple(self.size.tolist())
        return CountRows(A * step, b - A @ least, G * step, h - G @ least, size)


def _check_step(step: Tensor, box: bool) -> None:
    if len(bad := (step <= 0).nonzero()):
        i = int(bad[0])
        raise ValueError(
            f"Whole needs a positive step in every coordinate, but step[{i}] is {step[i]:g} "
            f"({len(bad)} such). On a Box, None makes a coordinate continuous."
        )
    if not box and not step.isfinite().all():
        raise ValueError(
            "Whole needs a step in every coordinate of a set that couples its coordinates, but "
            "got None for some. Only a Box may have continuous coordinates beside whole ones."
        )


def _check_not_empty(first: Tensor, last: Tensor, low: Tensor, high: Tensor, step: Tensor) -> None:
    if len(bad := (first > last).nonzero()):
        i = int(bad[0])
        raise ValueError(
            f"Whole needs an allowed value in every coordinate, but no multiple of {step[i]:g} "
            f"(from the origin) lies in coordinate {i}, between {low[i]:g} and {high[i]:g} "
            f"({len(bad)} such). Take a finer step or wider bounds."
        )
