"""The point of {z : H z <= s} nearest to a given one, for many points at once, exactly.

The dual active-set method of Goldfarb and Idnani (1983) for min |z - q|^2. Start at z = q with no
active row. Take the most violated row and move along the active rows until it holds, dropping any
row whose multiplier falls to zero. The distance |z - q| grows with every row gained, so no set of
rows occurs twice, and finitely many moves reach the optimality conditions.

The state of a point is its active rows W (k slots, not all in use), their multipliers, and

    P     (k, k), the projection onto the directions along all rows of W
    inv   (slots, k), the inverse of the rows of W:  H_W inv' = 1,  inv P = 0

which a row gained or lost changes by a matrix of rank one.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

BLOCK = {"cpu": 2**20, "cuda": 2**25}  # numbers in one batch's matrices: fits a cache, fills a GPU
PARALLEL = 1e-14  # squared sine below which a row counts as a combination of those held
AFAR = 100.0  # distance from which a point is solved for twice
OUTSIDE = 1e-11


def nearest(
    q: Float[Tensor, "n k"], H: Float[Tensor, "m k"], s: Float[Tensor, "m"]
) -> tuple[Float[Tensor, "n k"], Bool[Tensor, "n m"]]:
    """(z, W): the nearest points, and the rows that hold each.

    Rows of H have length 1, s > 0 (so that 0 is an inner point), and the set is about as large
    as the unit ball: tolerances are absolute. Errors are about 1e-14 of the distance |z - q|.
    Cost: a little more than one move for each row of W, each of O(k (m + k)).
    """
    if len(q) == 0:
        return q, q.new_zeros(0, len(H), dtype=torch.bool)
    most = BLOCK.get(q.device.type, BLOCK["cpu"])
    rows = max(1, most // (H.shape[1] * (2 * H.shape[1] + 1)))
    parts = [_near(part, H, s) for part in torch.split(q, rows)]
    z, W = (torch.cat(v) for v in zip(*parts, strict=True))
    # a point that rounding leaves outside moves towards 0
    outside = (z @ H.T - s).amax(-1, keepdim=True) > OUTSIDE
    return torch.where(outside, z / (z @ (H / s[:, None]).T).amax(-1, keepdim=True), z), W


def _near(q: Tensor, H: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Solve for distant points twice, the second time from nearby, where rounding is smaller.

    All points between z and q have the projection z.
    """
    z, W = _dual(q * (1e12 / q.norm(dim=-1, keepdim=True)).clamp(max=1), H, s)
    away = (q - z).norm(dim=-1, keepdim=True)
    if (far := away[:, 0] > AFAR).any():
        z[far], W[far] = _dual((z + (q - z) / away)[far], H, s)
    return z, W


def _dual(q: Tensor, H: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    (n, k), m = q.shape, len(H)
    found, W = q.clone(), torch.zeros(n, m, dtype=torch.bool, device=q.device)
    tol = 1e-14 * (1 + q.norm(dim=-1))
    at = torch.arange(n, device=q.device)  # the rows of q these points are
    z, u, who = q.clone(), q.new_zeros(n, k), at.new_full((n, k), -1)
    T = torch.cat([torch.eye(k).to(q), q.new_zeros(k, k)]).repeat(n, 1, 1)  # P above inv
    held, going = W.clone(), torch.ones_like(at, dtype=torch.bool)
    # the row to be gained, its multiplier so far, and whether the next one is to be chosen
    p, gain, choose = torch.zeros_like(at), q.new_zeros(n), going.clone()
    for _ in range(50 + 20 * (m + k)):
        broken = z @ H.T - s
        p = broken.masked_fill(held, -torch.inf).argmax(-1).where(choose, p)
        over = broken.gather(1, p[:, None])[:, 0]
        if (done := going & choose & ~(over > tol)).any():
            found[at[done]], W[at[done]], going = z[done], held[done], going & ~done
            if not going.any():
                return found, W
            if going.sum() < 0.9 * len(at):
                state = (at, tol, z, u, who, T, held, p, gain, choose, over, going)
                at, tol, z, u, who, T, held, p, gain, choose, over, going = (
                    v[going] for v in state
                )
        i = torch.arange(len(at), device=q.device)
        along, rate = torch.bmm(T, H[p, :, None])[..., 0].tensor_split(2, -1)
        along = torch.bmm(T[:, :k], along[..., None])[..., 0]  # twice is enough
        square = along.square().sum(-1)
        full = (over.clamp(min=0) / square).where(square > PARALLEL, torch.inf)
        until = (u.clamp(min=0) / rate).where((who >= 0) & (rate > 1e-12), torch.inf)
        loss, slot = until.min(-1)
        choose = full <= loss
        step = full.minimum(loss)
        if (stuck := going & step.isinf()).any():  # by rounding alone: the set is not empty
            found[at[stuck]], W[at[stuck]], going = z[stuck], held[stuck], going & ~stuck
        z = z - step[:, None] * along
        u = u - step[:, None] * rate
        gain = gain + step
        # gain row p or lose the one in ``slot``: T changes by rank one, along v
        held[i, p.where(choose, who[i, slot])] = choose
        slot = (who < 0).int().argmax(-1).where(choose, slot)
        v = along.where(choose[:, None], T[i, k + slot])
        v_ = v / v.square().sum(-1, keepdim=True)
        gained = torch.cat([along, rate], -1)
        lost = torch.cat([-v, torch.bmm(T[:, k:], v[..., None])[..., 0]], -1)
        T.baddbmm_(gained.where(choose[:, None], lost)[..., None], v_[:, None], alpha=-1)
        T[i, k + slot] = v_ * choose[:, None]
        u[i, slot] = gain.where(choose, 0.0)
        who[i, slot] = p.where(choose, -1)
        gain = gain.where(~choose, 0.0)
    found[at[going]], W[at[going]] = z[going], held[going]
    return found, W
