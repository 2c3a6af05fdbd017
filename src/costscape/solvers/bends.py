"""g between the points of a grid, from a table of f.

Within two cells of a grid point k most f(y_s, .) are parabolas, as far as the numbers can tell;
a few bend there, at a kink or a jump. With R the outcomes that bend in some coordinate,

    g_i(x, a) = sum_(s in R) w_s f_i(y_s, a) + q_i(a),

q_i the parabola through the other outcomes' mean at k - 2, k and k + 2. A step of the search
evaluates f at R alone, a few outcomes in a hundred.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers.table import Table

ROUNDINGS = 8  # by which f may miss its parabola and still count as one
SHARE = 4  # outcomes that bend for one that does not, at most 1 in SHARE: beyond, nothing is won
NUMBERS = 2**20  # of the table, looked at at once


@dataclass(frozen=True)
class NearGrid:
    """g_i(x, .) around one grid point of each x and coordinate; call it with shares t."""

    bent: ExpectedCost
    q: Float[Tensor, "B 3 d"]  # of the others, at k - 2, k and k + 2
    centre: Float[Tensor, "B d"]
    step: float
    lower: Float[Tensor, "d"]
    width: Float[Tensor, "d"]

    def __call__(self, t: Float[Tensor, "B J d"]) -> Float[Tensor, "B J d"]:
        u = (t - self.centre[:, None]) / (2 * self.step)
        left, middle, right = self.q[:, None].unbind(2)
        rise, bend = (right - left) / 2, (right + left) / 2 - middle
        return middle + u * (rise + u * bend) + self.bent.terms(self.lower + t * self.width)


def near_grid(
    g: ExpectedCost,
    table: Table,
    k: Int64[Tensor, "B d"],
    lower: Float[Tensor, "d"],
    width: Float[Tensor, "d"],
) -> tuple[NearGrid, Bool[Tensor, "B"]]:
    """g around grid points k, and for which x it is to be trusted."""
    costs, w = table.costs, g.scenarios.weights
    d, J, S = costs.shape
    centre = k.clamp(2, J - 3)
    nodes = torch.arange(-2, 3, device=k.device)
    index = (centre + J * torch.arange(d, device=k.device))[..., None] + nodes  # (B, d, 5)
    bends, q = [], []
    rows = max(1, NUMBERS // (5 * S * d))
    for part, weights in zip(index.split(rows), w.split(rows), strict=True):
        f = costs.flatten(0, 1)[part]  # (B, d, 5, S)
        far, near, mid, nigh, away = f.unbind(2)
        missed = torch.maximum(
            (near - (3 * far + 6 * mid - away) / 8).abs(),
            (nigh - (3 * away + 6 * mid - far) / 8).abs(),
        )
        most = ROUNDINGS * torch.finfo(f.dtype).eps * (table.size[:, None] + mid.abs())
        bend = (missed > most).any(1)  # (B, S)
        others = weights.masked_fill(bend, 0.0)
        q.append((f[:, :, ::2] @ others[:, None, :, None])[..., 0].mT)
        bends.append(bend)
    bend = torch.cat(bends)
    count = bend.sum(1)
    fine = count * SHARE <= S
    m = max(1, int(count.where(fine, 0).max())) if len(k) else 1
    s = bend.byte().topk(m, 1).indices
    some = Scenarios(w.masked_fill(~bend, 0.0).gather(1, s), g.scenarios.values[0][s])
    step = 1 / (J - 1)
    bent = g.on(some.by_coordinate())
    return NearGrid(bent, torch.cat(q), centre.to(w) * step, step, lower, width), fine
