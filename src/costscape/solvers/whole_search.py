"""Whole units of any cost on any set: a relaxed answer, rounded, then moved step by step.

1. Relax. A solver for continuous actions minimises g over the base, and the answer is projected
   onto the whole points. The best of some sampled points is a second start.
2. Search. From each start, take the best of all moves that change one coordinate by a step or
   to a bound, or one coordinate up and another down, until no move lowers g.

For convex f the least g over the base is a lower bound, which gives ``Solution.gap``.
"""

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import ConstraintSet, Whole
from costscape.solvers.box_relaxation import BoxRelaxation
from costscape.solvers.box_search import Separable
from costscape.solvers.convex import Convex
from costscape.solvers.coupled_rows import CoupledRows
from costscape.solvers.projected_adam import ProjectedAdam
from costscape.solvers.ramp_limits import RampLimits
from costscape.solvers.shared_capacity import SharedCapacity
from costscape.solvers.solver import Objective, Solution, Solver

CONTINUOUS: tuple[Solver, ...] = (
    Separable(),
    SharedCapacity(),
    RampLimits(),
    CoupledRows(),
    BoxRelaxation(),
    Convex(),
    ProjectedAdam(),
)
SAMPLES = 64  # points among which the second start is chosen
PAIRS = 16  # coordinates, those of the best single moves, that are moved in pairs
FIRST, LAST = 3, 16  # moves of a continuous coordinate are 2^-FIRST to 2^-LAST of its width


@dataclass(frozen=True)
class WholeSearch(Solver):
    """Local search for any cost on a Whole set, with a bound where f is convex.

    Args:
        rounds: int, default 100. Moves from each start, at most.
        rough: bool, default False. True relaxes coarsely, and starts from that answer only.
        seed: int, default 0. Seed of the sampled points.

    No change of one coordinate by a step, and no exchange of a step between two of up to 16
    coordinates, improves the answer, unless ``rounds`` ended the search. ``gap`` of the solution
    bounds what a better one could save; it is None unless f is convex and the base has an exact
    solver.

    >>> import costscape as cs
    >>> import torch
    >>> target = torch.tensor([2.2, 3.4])
    >>> packs = cs.Box(0, 1000, dim=2, step=2)
    >>> cs.WholeSearch().minimise(lambda a: ((a - target) ** 2).sum(-1), packs, 1).action
    tensor([[2., 4.]])
    """

    rounds: int = 100
    rough: bool = False
    seed: int = 0

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Whole):
            return f"needs a Whole set, and this feasible set is a {type(feasible).__name__}"
        return None

    def coarse(self) -> "WholeSearch":
        return WholeSearch(min(self.rounds, 10), True, self.seed)

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        c = cast(Whole, feasible)
        solver = next(s for s in CONTINUOUS if s.refuses(objective, c.base) is None)
        relaxed = (solver.coarse() if self.rough else solver).minimise(
            objective, c.base, batch, start
        )
        with torch.no_grad():
            starts = [c.project(relaxed.action)]
            if not self.rough:
                tried = c.sample(SAMPLES, Generator(c.step.device).manual_seed(self.seed))
                best = objective(tried[None]).expand(batch, -1).argmin(1)
                starts.append(tried[best])
            ends = [self._descend(objective, c, a) for a in starts]
            cost, which = torch.stack([end.cost for end in ends]).min(0)
            action = torch.stack([end.action for end in ends])[which, torch.arange(batch)]
        exact = not self.rough and _bounds(solver, objective, c)
        return Solution(action, cost, (cost - relaxed.cost).clamp(min=0) if exact else None)

    def _descend(self, g: Objective, c: Whole, a: Float[Tensor, "B d"]) -> Solution:
        cost = g(a[:, None])[:, 0]
        halvings = torch.full_like(cost, FIRST)[:, None]
        free = bool((c.step == 0).any())
        for _ in range(self.rounds):
            width = (c.upper - c.lower) * 2.0**-halvings
            moved, now = _best_move(g, c, a, torch.where(c.step > 0, c.step, width))
            better = (now < cost)[:, None]
            if not better.any() and not (free and (halvings < LAST).any()):
                break
            a, cost = torch.where(better, moved, a), torch.minimum(now, cost)
            halvings = torch.where(better, halvings, halvings + 1)
        return Solution(a, cost)


def _best_move(
    g: Objective, c: Whole, a: Float[Tensor, "B d"], length: Float[Tensor, "B d"]
) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
    """The best neighbour of each action, and its cost."""
    up, eye = torch.diag_embed(length), torch.eye(c.dim, device=a.device).bool()
    # a single move may leave C and still belong to a pair that does not
    single = torch.cat([a[:, None] + up, a[:, None] - up], 1)
    ends = [torch.where(eye, end, a[:, None]) for end in c.bounds]  # across a jump, such as at 0
    free = g(torch.cat([single, *ends], 1)).nan_to_num(torch.inf)
    rows = torch.arange(len(a), device=a.device)[:, None]
    ups, downs = (
        side.topk(min(PAIRS, c.dim), largest=False).indices
        for side in free[:, : 2 * c.dim].chunk(2, 1)
    )
    pairs = up[rows, ups][:, :, None] - up[rows, downs][:, None]  # (B, pairs, pairs, d)
    both = a[:, None] + pairs.flatten(1, 2)
    cost = torch.cat([free, g(both).nan_to_num(torch.inf)], 1)
    near = torch.cat([single, *ends, both], 1)
    cost = cost.masked_fill(~c.contains(near), torch.inf)
    least, at = cost.min(1)
    return near[rows[:, 0], at], least


def _bounds(solver: Solver, g: Objective, c: Whole) -> bool:
    """Whether the solver's cost over the base is the least one there, up to its accuracy."""
    if not isinstance(g, ExpectedCost | Surface) or not g.convex:
        return False
    if isinstance(solver, BoxRelaxation):
        return Convex().refuses(g, c.base) is None
    return not isinstance(solver, ProjectedAdam)
