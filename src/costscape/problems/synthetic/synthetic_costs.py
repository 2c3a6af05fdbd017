"""Two toy costs on the mixture of three Gaussians, and the truth about them in closed form."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from costscape.problems.synthetic.three_gaussians import MIXTURE, VARIANCE
from costscape.problems.two_sided import TwoSided
from costscape.sets.box import Box
from costscape.task import SeparableTask

CELLS = 256  # of each coordinate's interval
BISECTIONS = 46  # of a cell, which end at the last bit
ROWS = 1024  # intervals at once: a table of slopes takes 6 MB


def synthetic_convex(dim: int = 2) -> SeparableTask:
    """f = sum_i 5 (y-a)+ + 20 (a-y)+ + 0.5 (y-a)+^2 + 0.2 (a-y)+^2 on [-1, 1]^dim."""
    cost = TwoSided(short=5.0, spare=20.0, short_squared=0.5, spare_squared=0.2, cubic=0.0)
    return SeparableTask(
        cost,
        Box(-1.0, 1.0, dim=dim),
        convex=True,
        hindsight=partial(torch.clip, min=-1.0, max=1.0),
        cvxpy=cost.cvxpy,
        normal=cost.mean,
    )


def synthetic_nonconvex(dim: int = 2) -> SeparableTask:
    """f = sum_i 10 (y-a)+^2 + 2 (a-y)+^2 + 4 a^3 on [-2, 2]^dim."""
    cost = TwoSided(short=0.0, spare=0.0, short_squared=10.0, spare_squared=2.0, cubic=4.0)
    return SeparableTask(
        cost,
        Box(-2.0, 2.0, dim=dim),
        hindsight=partial(_cheapest, cost, 2.0),
        normal=cost.mean,
    )


def _cheapest(
    cost: TwoSided, limit: float, y: Float[Tensor, "*batch d"]
) -> Float[Tensor, "*batch d"]:
    """argmin over |a| <= limit of k (y - a)^2 + cubic a^3, k being one price below y, one above.

    The valley of each branch solves 3 cubic a^2 + 2 k a - 2 k y = 0 with the larger root; the
    cheapest of both valleys and both ends is then the best, whichever branch they fall in.
    """
    ends = torch.full_like(y, -limit), torch.full_like(y, limit)
    valleys = [
        2 * k * y / (k + (k**2 + 6 * cost.cubic * k * y).clamp(min=0).sqrt())
        for k in (cost.short_squared, cost.spare_squared)
    ]
    a = torch.stack([*ends, *valleys]).clamp(-limit, limit)
    return a.gather(0, cost(y, a).argmin(0, keepdim=True)).squeeze(0)


class MixtureTruth(nn.Module):
    """What no method is told: E[f(y, a) | x] and its minimum, for pairs of ``three_gaussians``.

    ``task`` is ``synthetic_convex()`` or ``synthetic_nonconvex()``, ``maps`` the A_c of the data.
    All in double precision whatever the precision of x and a.
    """

    def __init__(self, task: SeparableTask, maps: Float[Tensor, "3 d p"]) -> None:
        super().__init__()
        if not isinstance(task.f_terms, TwoSided):
            raise TypeError(
                f"MixtureTruth needs synthetic_convex() or synthetic_nonconvex(), whose means are "
                f"known in closed form, but got a task with terms {task.f_terms!r}."
            )
        if maps.shape[1] != task.feasible.dim:
            raise ValueError(
                f"MixtureTruth needs maps to outcomes of the task's dimension "
                f"{task.feasible.dim}, but got maps of shape {tuple(maps.shape)}. Make data and "
                f"task with the same dim."
            )
        self.cost = task.f_terms
        # the set itself would be moved, under the task's feet, when the truth changes device
        lower, upper = task.feasible.bounds
        self.ends: Tensor
        self.register_buffer("ends", torch.stack([lower, upper], -1))
        self.maps: Tensor
        self.register_buffer("maps", maps)

    def expected_cost(
        self, x: Float[Tensor, "*#batch p"], a: Float[Tensor, "*#batch d"]
    ) -> Float64[Tensor, "*batch"]:
        """E[f(y, a) | x]; x (B, 1, p) and a (B, J, d) give (B, J)."""
        return _mixed(self.cost.mean, self._means(x), a.double()).sum(-1)

    def best(self, x: Float[Tensor, "B p"]) -> tuple[Float64[Tensor, "B d"], Float64[Tensor, "B"]]:
        """The a in C that minimises E[f(y, a) | x], to the last bit, and that minimum."""
        m = self._means(x)  # (B, d, 3)
        ends = self.ends.double().expand(len(m), -1, -1)
        parts = [torch.split(each.flatten(0, 1), ROWS) for each in (m, ends)]
        a = torch.cat([_minimise(self.cost, *part) for part in zip(*parts, strict=True)])
        a = a.view(m.shape[:-1])
        return a, self.expected_cost(x, a)

    def gap(self, x: Float[Tensor, "B p"], a: Float[Tensor, "B d"]) -> Float64[Tensor, "B"]:
        """E[f(y, a) | x] - min over C of the same; at least 0, to rounding, for a in C."""
        return self.expected_cost(x, a) - self.best(x)[1]

    def _means(self, x: Tensor) -> Tensor:
        return torch.einsum("cij,...j->...ic", self.maps.double(), x.double())


def _mixed(moment: Callable[[Tensor, float, Tensor], Tensor], m: Tensor, a: Tensor) -> Tensor:
    """A moment of each component, m (..., 3) and a (...), averaged over the components."""
    return moment(m, VARIANCE**0.5, a.unsqueeze(-1)) @ m.new_tensor(MIXTURE)


def _minimise(
    cost: TwoSided, m: Float64[Tensor, "n 3"], ends: Float64[Tensor, "n 2"]
) -> Float64[Tensor, "n"]:
    """The global minimum on each row's interval, among its ends and its valleys.

    A valley is a cell of a grid in which the slope turns from falling to rising, and is bisected.
    No cell hides the minimum: the convex cost has one valley, and so has the other, whose third
    derivative 24 - 16 sum_c w_c phi((a - m_c) / s) / s is at least 24 - 16 / sqrt(2 pi s^2) > 3.
    """
    grid = torch.lerp(ends[:, :1], ends[:, 1:], torch.linspace(0, 1, CELLS + 1).to(ends))
    slope = _mixed(cost.slope, m.unsqueeze(1), grid)
    row, cell = torch.nonzero((slope[:, :-1] < 0) & (slope[:, 1:] >= 0), as_tuple=True)
    low, high = grid[row, cell], grid[row, cell + 1]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rising = _mixed(cost.slope, m[row], middle) >= 0
        low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)

    where = torch.cat([ends, torch.zeros_like(grid[:, 1:])], 1)
    paid = torch.full_like(where, torch.inf)
    where[row, cell + 2] = high
    paid[:, :2] = _mixed(cost.mean, m.unsqueeze(1), ends)
    paid[row, cell + 2] = _mixed(cost.mean, m[row], high)
    return where.gather(1, paid.argmin(1, keepdim=True)).squeeze(1)
