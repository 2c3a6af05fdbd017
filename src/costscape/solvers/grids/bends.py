"""g between the points of a grid, from a table of f.

Within two cells of a grid point k most f_i(y_s, .) are parabolas, as far as the numbers can tell;
a few bend there, at a kink or a jump. With R_i the outcomes that bend in coordinate i,

    g_i(x, a) = sum_(s in R_i) w_s f_i(y_s, a) + q_i(a),

q_i the parabola through the other outcomes' mean at k - 2, k and k + 2. A step of the search
evaluates f at R_i alone, a few outcomes in a hundred. R_i depends on the task, the outcomes and k,
and not on x: it is found once for each table.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.task import SeparableTask

ROUNDINGS = 8  # by which f may miss its parabola and still count as one
SHARE = 4  # outcomes that bend for one that does not, at most 1 in SHARE: beyond, nothing is won
NUMBERS = 2**17  # of the table, looked at at once
AT_ONCE = 2**16  # numbers of f that are computed at once, so that they stay in the cache


def parts(ratio: float) -> int:
    """Into how many a cell ``ratio`` times too wide is cut at once where f is asked little.

    Powers of 2, so that the same points are tried as by halving: 2^10 is 8 x 8 x 16.
    """
    return 16 if ratio <= 16 else 8


@dataclass(frozen=True)
class Bends:
    """R_i around each grid point k, one after the other."""

    outcomes: Int64[Tensor, "n"]
    start: Int64[Tensor, "d J"]
    count: Int64[Tensor, "d J"]
    fine: Bool[Tensor, "d J"]  # whether R_i is short enough to be of use


def find_bends(costs: Float[Tensor, "d J S"], size: Float[Tensor, "d"]) -> Bends:
    """R_i around each grid point of a table. Points beside an end have their neighbour's."""
    d, J, S = costs.shape
    rows = max(1, NUMBERS // S)
    outcomes, counts, fine = [], [], []
    for f, least in zip(costs, size, strict=True):
        for k in range(0, J - 4, rows):
            bend = _bend(f[k : k + rows + 4], least)  # (rows, S)
            count = bend.sum(1)
            few = count * SHARE <= S
            bend &= few[:, None]
            outcomes.append(bend.nonzero()[:, 1])
            counts.append(count.where(few, 0))
            fine.append(few)
    count = torch.cat(counts)
    start = count.cumsum(0) - count
    inner = torch.arange(J).clamp(2, J - 3) - 2
    each = [v.unflatten(0, (d, J - 4))[:, inner] for v in (start, count, torch.cat(fine))]
    return Bends(torch.cat(outcomes), *each)


def _bend(f: Float[Tensor, "K S"], size: Tensor) -> Bool[Tensor, "k S"]:
    """Whether f at k - 1 or k + 1 misses the parabola through k - 2, k and k + 2."""
    far, near, mid, nigh, away = (f[i : len(f) - 4 + i] for i in range(5))
    middle = 6 * mid
    missed = torch.maximum(
        (8 * near - middle - 3 * far + away).abs_(), (8 * nigh - middle - 3 * away + far).abs_()
    )
    return missed > 8 * ROUNDINGS * torch.finfo(f.dtype).eps * (mid.abs() + size)


@dataclass(frozen=True)
class NearGrid:
    """g_i(x, .) around one grid point of each x and coordinate; call it with shares t."""

    task: SeparableTask
    bent: Tensor  # outcomes (B, M, *y_shape)
    weights: Float[Tensor, "B M d"]
    q: Float[Tensor, "B 3 d"]  # the others' parabola: its value at k, slope and bend
    centre: Float[Tensor, "B d"]
    step: float
    lower: Float[Tensor, "d"]
    width: Float[Tensor, "d"]

    def __call__(self, t: Float[Tensor, "B J d"]) -> Float[Tensor, "B J d"]:
        u = (t - self.centre[:, None]) / (2 * self.step)
        middle, rise, bend = self.q[:, None].unbind(2)
        g = middle + u * (rise + u * bend)
        if self.bent.shape[1] == 0:
            return g
        a = self.lower + t * self.width
        rows = max(1, AT_ONCE // (a.shape[1] * self.weights[0].numel()))
        parts = zip(*(v.split(rows) for v in (self.bent, a, self.weights)), strict=True)
        return g + torch.cat([self._mean(*part) for part in parts])

    def _mean(self, y: Tensor, a: Tensor, weights: Tensor) -> Tensor:
        f = self.task.terms(y[:, None], a[:, :, None])  # (B, J, M, d)
        return (f * weights[:, None]).sum(2)


def near_grid(
    task: SeparableTask,
    costs: Float[Tensor, "d J S"],
    values: Tensor,
    bends: Bends,
    alone: bool,
    first: Float[Tensor, "B d J"],
    w: Float[Tensor, "B S"] | Float[Tensor, "B d S"],
    k: Int64[Tensor, "B d"],
) -> tuple[NearGrid, Bool[Tensor, "B"]]:
    """g around grid points k, ``first`` being g on the grid; for which x it is to be trusted.

    An outcome may have a weight of its own in each coordinate.
    ``alone``: summand i looks at y_i alone. Outcomes that bend in different coordinates are then
    put together to whole ones.
    """
    d, J, _ = costs.shape
    lower, upper = task.feasible.bounds
    i = torch.arange(d)
    count, start = bends.count[i, k], bends.start[i, k]  # (B, d)
    slot = torch.arange(int(count.max()) if len(k) else 0)
    there = slot < count[..., None]
    s = bends.outcomes[(start[..., None] + slot).where(there, 0)]  # (B, d, m)
    own = w if w.ndim == 3 else w[:, None].expand(-1, d, -1)
    weights = own.gather(2, s).where(there, 0.0)
    centre = k.clamp(2, J - 3)
    nodes = centre[..., None] + torch.tensor([-2, 0, 2])  # (B, d, 3)
    f = costs[i[:, None, None], nodes[..., None], s[:, :, None]]  # (B, d, 3, m)
    left, middle, right = (first.gather(2, nodes) - (f @ weights[..., None])[..., 0]).unbind(2)
    q = torch.stack([middle, (right - left) / 2, (right + left) / 2 - middle], 1)
    if alone:
        bent, weights = values[0][s, i[:, None]].mT, weights.mT
    else:
        bent = values[0][s.flatten(1)]
        # (B, m, d, d) -> (B, d m, d): an outcome counts in the coordinate where it bends
        weights = torch.diag_embed(weights.mT).transpose(1, 2).flatten(1, 2)
    step = 1 / (J - 1)
    near = NearGrid(task, bent, weights, q, centre.to(w) * step, step, lower, upper - lower)
    return near, bends.fine[i, k].all(1)
