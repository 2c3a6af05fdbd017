"""One feasible set for each row of a batch: capacities, budgets and limits that change.

    C_b = { offset_b + scale_b u : u in base }     copies of one set   (ScaledRows)
    C_b = any set                                  a list of sets      (ListedRows)

Scaled copies are solved for all rows at once, in u. Sets of a list are solved in groups of equal
ones.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor

from costscape.sets.box import Box
from costscape.sets.budget import Budget
from costscape.sets.constraint_set import ConstraintSet


class RowSets(ConstraintSet):
    """One set for each of n rows, made by a set with an argument that has a row for each.

    This base class has no constructor arguments. ``Box(0.0, caps)`` with caps (n, d),
    ``Budget(total=totals, dim=d)`` with totals (n,) and their like return one. Actions have the
    rows as their first axis. ``bounds``, ``sample`` and ``describe`` are those of ``hull``, one
    set that holds all.

    >>> import costscape as cs
    >>> caps = cs.Box(0.0, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> len(caps), caps.dim, caps.row(1).upper
    (3, 2, tensor([3., 4.]))
    """

    by_row = True
    hull: ConstraintSet

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def row(self, i: int) -> ConstraintSet:
        """The set of row i."""

    @abstractmethod
    def groups(self) -> Iterator[tuple[Int64[Tensor, "k"], ConstraintSet]]:
        """Each different set, and the rows that have it."""

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        return self.hull.bounds

    @property
    def row_bounds(self) -> tuple[Float[Tensor, "n 1 d"], Float[Tensor, "n 1 d"]]:
        """``ends``, to be compared with J actions of each row."""
        lower, upper = self.ends()
        return lower.unsqueeze(1), upper.unsqueeze(1)

    @abstractmethod
    def ends(self) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]:
        """The least box around each row's set, as (lower, upper)."""

    @property
    def by_coordinate(self) -> bool:
        return self.row(0).by_coordinate

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        return self.hull.sample(n, generator)

    def describe(self, a: Any) -> list[Any]:
        return self.hull.describe(a)


class ScaledRows(RowSets):
    """Row b has the set {offset_b + scale_b u : u in base}.

    Args:
        base: Box from 0 to 1, or Simplex or Budget of total 1 without caps.
        offset: (n, d). 0 but for a Box.
        scale: (n, d). Equal in all coordinates but for a Box.

    >>> import costscape as cs
    >>> budgets = cs.Budget(total=[1.0, 4.0], dim=2)
    >>> budgets.project(torch.ones(2, 2))
    tensor([[0.5000, 0.5000],
            [1.0000, 1.0000]])
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, base: ConstraintSet, offset: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.dim = base.dim
        self.base = base.to(offset)
        self.register_buffer("offset", offset)
        self.register_buffer("scale", scale)
        lower, upper = self.ends()
        if isinstance(base, Box):
            self.hull: ConstraintSet = Box.between(lower.amin(0), upper.amax(0))
        else:  # the totals of simplexes differ, and a budget holds them all
            self.hull = Budget(total=scale.max(), dim=base.dim)

    def __len__(self) -> int:
        return len(self.offset)

    def actions(self, u: Float[Tensor, "n *J d"]) -> Float[Tensor, "n *J d"]:
        """The actions of points u of the base, row by row."""
        offset, scale = self._like(u)
        return offset + scale * u

    def shares(self, a: Float[Tensor, "n *J d"]) -> Float[Tensor, "n *J d"]:
        """The points of the base that ``actions`` makes a."""
        offset, scale = self._like(a)
        return torch.where(scale > 0, (a - offset) / scale.clamp(min=1e-30), 0.0)

    def row(self, i: int) -> ConstraintSet:
        low, scale = self.offset[i], self.scale[i]
        if isinstance(self.base, Box):
            return Box.between(low, low + scale)
        return type(self.base)(total=scale[0], dim=self.dim)

    def groups(self) -> Iterator[tuple[Int64[Tensor, "k"], ConstraintSet]]:
        _, which = torch.cat([self.offset, self.scale], 1).unique(dim=0, return_inverse=True)
        for k in range(int(which.max()) + 1):
            index = (which == k).nonzero()[:, 0]
            yield index, self.row(int(index[0]))

    def ends(self) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]:
        lower, upper = self.base.bounds
        return self.offset + self.scale * lower, self.offset + self.scale * upper

    def project(self, a: Float[Tensor, "n *J d"]) -> Float[Tensor, "n *J d"]:
        if isinstance(self.base, Box):
            offset, scale = self._like(a)
            return a.clamp(offset, offset + scale).to(a.dtype)
        # a factor common to all coordinates changes no angle, so the nearest point stays nearest
        return self.actions(self.base.project(self.shares(a))).to(a.dtype)

    def violation(self, a: Float[Tensor, "n *J d"]) -> Float[Tensor, "n *J"]:
        if isinstance(self.base, Box):
            return (a - self.project(a)).abs().amax(-1)
        _, scale = self._like(a)
        return self.base.violation(self.shares(a)) * scale[..., 0]

    def extra_repr(self) -> str:
        return f"rows={len(self)}"

    def _like(self, a: Tensor) -> tuple[Tensor, Tensor]:
        shape = (len(self), *[1] * (a.ndim - 2), self.dim)
        return self.offset.reshape(shape), self.scale.reshape(shape)


class ListedRows(RowSets):
    """Row b has the set sets[index_b].

    Args:
        sets: the different sets, of one dimension.
        index: (n,). The number of each row's set.
        hull: ConstraintSet. Holds all of them.

    >>> import costscape as cs
    >>> budgets = cs.Budget(total=[1.0, 4.0], dim=2, upper=1.0)
    >>> budgets.project(torch.ones(2, 2))
    tensor([[0.5000, 0.5000],
            [1.0000, 1.0000]])
    """

    index: Tensor

    def __init__(
        self, sets: Sequence[ConstraintSet], index: Int64[Tensor, "n"], hull: ConstraintSet
    ) -> None:
        super().__init__()
        self.dim = hull.dim
        self.sets = torch.nn.ModuleList(sets)
        self.hull = hull
        self.register_buffer("index", index)

    def __len__(self) -> int:
        return len(self.index)

    def row(self, i: int) -> ConstraintSet:
        found = self.sets[int(self.index[i])]
        assert isinstance(found, ConstraintSet)
        return found

    def groups(self) -> Iterator[tuple[Int64[Tensor, "k"], ConstraintSet]]:
        for k in self.index.unique().tolist():
            index = (self.index == k).nonzero()[:, 0]
            yield index, self.row(int(index[0]))

    def ends(self) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]:
        ends = [C.bounds for C in self.sets if isinstance(C, ConstraintSet)]
        lower, upper = (torch.stack(end)[self.index] for end in zip(*ends, strict=True))
        return lower, upper

    def project(self, a: Float[Tensor, "n *J d"]) -> Float[Tensor, "n *J d"]:
        near = a.clone()
        for index, C in self.groups():
            near[index] = C.project(a[index])
        return near

    def violation(self, a: Float[Tensor, "n *J d"]) -> Float[Tensor, "n *J"]:
        worst = torch.empty_like(a[..., 0])
        for index, C in self.groups():
            worst[index] = C.violation(a[index])
        return worst

    def extra_repr(self) -> str:
        return f"rows={len(self)}"
