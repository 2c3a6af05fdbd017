"""One row that all coordinates share, such as a budget: exact for convex separable costs.

    minimise  sum_i g_i(a_i)  over  lower <= a <= upper,  k . a <= h   (or k . a = h)

The Lagrangian of the row with multiplier L is a sum over coordinates again,

    sum_i ( g_i(a_i) + L k_i a_i ) - L h.

Between neighbouring points of a grid each g_i is taken as a line. Its cells then are items of a
continuous knapsack: a cell of slope s is worth -s / k_i for each unit of capacity. Convexity
sorts the cells of a coordinate, so taking all cells in order of worth until the capacity is used
up is optimal (Dantzig, Discrete-Variable Extremum Problems, Operations Research 1957). The worth
of the last cell is the multiplier.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets.constraint_set import Polyhedral, couples
from costscape.solvers.window_search import Grid, WindowSearch

TINY = 1e-300  # keeps quotients finite where a cell has no width


@dataclass(frozen=True)
class SharedCapacity(WindowSearch):
    """Exact decisions for a convex SeparableTask on a Budget, a Simplex or a one-row Polytope.

    Args:
        grid: int, default 33. Points in a window, odd.
        halvings: int, default 17. Windows end 2^-halvings of the interval wide.

    The action is within 2^-halvings of each interval of the best one, as far as the precision
    resolves g.

    >>> import costscape as cs
    >>> import torch
    >>> budget = cs.Budget(total=1.0, dim=2)
    >>> task = cs.SeparableTask(lambda y, a: (y - a) ** 2, budget, convex=True)
    >>> outcomes = cs.Scenarios(torch.ones(1, 1), torch.tensor([[[2.0, 1.5]]]))
    >>> g = cs.ExpectedCost(task, outcomes)
    >>> SharedCapacity().minimise(g, task.feasible, 1).action.round(decimals=3)
    tensor([[0.7500, 0.2500]])
    """

    needs_convex: ClassVar[bool] = True

    def _refuses_rows(self, feasible: Polyhedral) -> str | None:
        rows = feasible.rows()
        count = int(couples(rows.A).sum() + couples(rows.G).sum())
        return None if count == 1 else f"needs one row that couples coordinates, not {count}"

    def _first_window(self, feasible: Polyhedral) -> tuple[Tensor, Tensor, int]:
        lower, upper = feasible.bounds
        return (lower + upper) / 2, (upper - lower) / 2, self.grid

    def _best_on_grid(self, feasible: Polyhedral, t: Grid, g: Grid) -> Float[Tensor, "B d"]:
        k, h, equal = shared_row(feasible)
        # coordinates with a negative k are turned round, so that every cell uses capacity
        turned = k < 0
        t = torch.where(turned[:, None], -t.flip(-1), t)
        g = torch.where(turned[:, None], g.flip(-1), g)
        a = fill(t.double(), g.double(), k.abs().double(), h.double(), equal)
        return torch.where(turned, -a, a).to(t)


def shared_row(feasible: Polyhedral) -> tuple[Float[Tensor, "d"], Float[Tensor, ""], bool]:
    """The coupling row k, its right-hand side h, and whether it is an equality."""
    rows = feasible.rows()
    equal = bool(couples(rows.A).any())
    left, right = (rows.A, rows.b) if equal else (rows.G, rows.h)
    where = couples(left)
    return left[where][0], right[where][0], equal


def fill(
    t: Grid, g: Grid, k: Float[Tensor, "d"], h: Float[Tensor, ""], equal: bool
) -> Float[Tensor, "B d"]:
    """Take cells of the grid in order of worth until k . a = h; return a.

    Where ``equal`` is False, cells that are worth nothing are left. k has no negative number.
    """
    width = t.diff(dim=-1)
    slope = g.diff(dim=-1) / width.clamp(min=TINY)
    # cells beyond a bound have no width; rounding of g may break the order of slopes
    slope = torch.where(width > 0, slope, -torch.inf).cummax(-1).values
    free = torch.where(slope < 0, torch.inf, -torch.inf)  # where k is 0 capacity does not matter
    worth = torch.where(k[:, None] > 0, -slope / k[:, None].clamp(min=TINY), free)
    order = worth.flatten(1).sort(descending=True, stable=True)
    size = (k[:, None] * width).flatten(1).gather(1, order.indices)
    before = size.cumsum(1) - size
    room = h - t[..., :1].squeeze(-1) @ k  # (B,)
    share = ((room[:, None] - before) / size.clamp(min=TINY)).clamp(0, 1)
    share = torch.where(size > 0, share, (order.values > 0).to(share))
    if not equal:
        share = torch.where(order.values > 0, share, 0.0)
    taken = torch.zeros_like(share).scatter(1, order.indices, share).unflatten(1, width.shape[1:])
    a: Tensor = t[..., 0] + (taken * width).sum(-1)
    return a
