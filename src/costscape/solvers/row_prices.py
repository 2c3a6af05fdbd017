"""Several rows between coordinates with known slopes: their prices, by an interior-point method.

    minimise  sum_i g_i(t_i)  over windows of t, with  use t <= room

For slopes that are broken lines, each g_i is a sum over pieces j of widths w, with an amount
0 <= u_j <= w_j of each: slope_j u_j + rise_j u_j^2 / (2 w_j). That is a quadratic program with a
diagonal matrix. Each step of Mehrotra's predictor-corrector method (1992) solves a system as large
as the number of rows, for all x at once.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from costscape.solvers.share_rows import MET, Array, ShareRows
from costscape.solvers.slope_windows import Lines, Prices, cell_slopes, largest_slope, nodes

EVEN = 1e-6  # of the largest slope, added along each interval, as in ``row_level``
BEYOND = 8.0  # pieces of this many half windows beyond both ends, so that rows can be met
STEEP = 2.0  # slope of these pieces, in largest slopes: they are used where rows need them only
NARROW = 1e-9  # width of a piece, in windows, that counts as none
STEPS = 30  # at most
DONE = 1e-9  # mean product of slacks and multipliers, in units of a window and its largest slope
REGULAR = 1e-13  # added to the matrix, for rows that depend on each other
NEARLY = 0.995  # share of the way to the nearest bound


Bools = npt.NDArray[np.bool_]


def fill_rows(t: Array, g: Array, rows: ShareRows, lines: Lines = nodes) -> Prices:
    """The best shares near a window, for broken lines as slopes, and the prices of the rows.

    Args:
        t: (B, d, J), points of the window of each coordinate, which do not decrease along J.
        g: (B, d, J), costs there.
        rows: the rows.
        lines: ``nodes`` or ``kinked_nodes``, the slopes between the cells.
    """
    slope = cell_slopes(t, g)
    unit = largest_slope(slope)
    x, at = lines(t, slope / unit[:, None, None])
    size = (t[..., -1] - t[..., 0]).max(1).clip(1e-300)  # of the largest window of each x
    far = BEYOND * size[:, None, None]
    x = np.concatenate([np.maximum(x[..., :1] - far, 0), x, np.minimum(x[..., -1:] + far, 1)], -1)
    at = np.concatenate([at[..., :1], at, at[..., -1:]], -1) + EVEN * x
    low, high = at[..., 0].copy(), at[..., -1].copy()
    width = (x[..., 1:] - x[..., :-1]) / size[:, None, None]
    rise, first = np.maximum(at[..., 1:] - at[..., :-1], 0.0), at[..., :-1].copy()
    first[..., 0] -= STEEP
    first[..., -1] += STEEP
    some = width > NARROW
    order = (~some).argsort(-1, kind="stable")[..., : some.sum(-1).max()]
    width, rise, first, some = (
        np.take_along_axis(v, order, -1) for v in (width, rise, first, some)
    )
    # a piece without width, such as one between both nodes of a cell, is never worth filling
    width = np.where(some, width, 1.0)
    first = np.where(some, first, 4 * STEEP + np.abs(first).max())
    bend = np.where(some, rise / width, 1.0)
    start, room = x[..., 0], (rows.room - x[..., 0] @ rows.use.T) / size[:, None]
    amount, price = _interior(first, bend, width, rows, room)
    found = start + size[:, None] * np.where(some, amount, 0.0).sum(-1)
    own = -price @ rows.use
    pull = np.maximum(low - own, own - high)
    return Prices(found.clip(0, 1), price * unit[:, None], pull)


def _interior(s: Array, c: Array, w: Array, rows: ShareRows, room: Array) -> tuple[Array, Array]:
    """Amounts u (B, d, P) and prices (B, m) of min s u + c u^2 / 2 with use sum(u) <= room."""
    program = _Program(s, c, rows.use, ~rows.equal, room)
    now = program.start(w)
    for _ in range(STEPS):
        system = program.system(now)
        mean = program.mean(now)
        going = (mean > DONE) | (np.abs(system.short).max(1) > MET)
        if not going.any():
            break
        aim = program.step(now, system, [-p for p in now.products()])
        after = program.mean(now.moved(aim, now.longest(aim, program.free)))
        target = (after / mean) ** 3 * mean
        change = program.step(now, system, now.corrected(aim, target))
        now = now.moved(change, NEARLY * now.longest(change, program.free) * going)
    return now.u, now.price


@dataclass(frozen=True)
class _Point:
    """Amounts and their room v, with multipliers, (B, d, P); prices and slacks of rows, (B, m).

    A change of a point is one, too.
    """

    low: Array
    high: Array
    price: Array
    u: Array
    v: Array
    slack: Array

    def products(self) -> list[Array]:
        """Of each value with its multiplier; 0 at the answer."""
        return [self.low * self.u, self.high * self.v, self.price * self.slack]

    def corrected(self, aim: "_Point", target: Array) -> list[Array]:
        """What products lack of their target, less the second order of the step ``aim``."""
        level = target[:, None, None]
        levels = (level, level, level[..., 0])
        each = zip(levels, self.products(), aim.products(), strict=True)
        return [goal - now - more for goal, now, more in each]

    def moved(self, change: "_Point", share: Array) -> "_Point":
        a, r = share[:, None, None], share[:, None]
        return _Point(
            self.low + a * change.low,
            self.high + a * change.high,
            self.price + r * change.price,
            self.u + a * change.u,
            self.v + a * change.v,
            self.slack + r * change.slack,
        )

    def longest(self, change: "_Point", free: Bools) -> Array:
        """The share of the change, at most 1, up to which all stay positive, for each x."""
        most = np.ones(len(self.price))
        for name in ("u", "v", "low", "high"):
            most = np.maximum(most, (-getattr(change, name) / getattr(self, name)).max((1, 2)))
        for name in ("price", "slack") if free.any() else ():
            value, move = getattr(self, name)[:, free], getattr(change, name)[:, free]
            most = np.maximum(most, (-move / value).max(1))
        return 1 / most


@dataclass(frozen=True)
class _System:
    """Newton's equations at a point: residuals, the diagonal, and the matrix of the prices."""

    dual: Array
    short: Array
    diagonal: Array
    matrix: Array
    divisor: Array


@dataclass(frozen=True)
class _Program:
    """min s u + c u^2 / 2 over 0 <= u <= w, with use sum(u) <= room, equal where not free."""

    s: Array
    c: Array
    use: Array
    free: Bools
    room: Array

    def start(self, w: Array) -> _Point:
        u, one = w / 2, np.ones_like(w)
        slack = np.maximum(self.room - u.sum(-1) @ self.use.T, 0.5) * self.free
        return _Point(one, one, np.ones_like(slack) * self.free, u, u, slack)

    def mean(self, now: _Point) -> Array:
        """The mean product of values and multipliers, for each x."""
        low, high, price = now.products()
        count = 2 * now.u[0].size + self.free.sum()
        mean: Array = (low.sum((1, 2)) + high.sum((1, 2)) + price.sum(1)) / count
        return mean

    def system(self, now: _Point) -> _System:
        dual = self.s + self.c * now.u + (now.price @ self.use)[..., None] - now.low + now.high
        short = now.u.sum(-1) @ self.use.T + now.slack - self.room
        diagonal = self.c + now.low / now.u + now.high / now.v
        flow = (1 / diagonal).sum(-1)
        matrix = (self.use * flow[:, None]) @ self.use.T
        divisor = np.where(self.free, now.price, 1.0)
        m = np.arange(len(self.use))
        matrix[:, m, m] += now.slack / divisor + REGULAR
        return _System(dual, short, diagonal, matrix, divisor)

    def step(self, now: _Point, at: _System, lack: list[Array]) -> _Point:
        """Newton's step that changes the products by what they lack."""
        of_low, of_high, of_price = lack
        q = -at.dual + of_low / now.u - of_high / now.v
        of_rows = of_price * self.free / at.divisor
        right = (q / at.diagonal).sum(-1) @ self.use.T + of_rows + at.short
        price = np.linalg.solve(at.matrix, right[..., None])[..., 0]
        u = (q - (price @ self.use)[..., None]) / at.diagonal
        low, high = (of_low - now.low * u) / now.u, (of_high + now.high * u) / now.v
        slack = of_rows - now.slack * price / at.divisor
        return _Point(low, high, price, u, -u, slack * self.free)
