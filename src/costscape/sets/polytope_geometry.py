"""The geometry of {a : A a = b, G a <= h} by linear programs, in double precision.

Whether it is empty or unbounded; its least box; the inequalities that hold as equalities all over
it; a centre and a frame in which it is round.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import null_space, qr, solve_triangular
from scipy.optimize import linprog

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Hull:
    """C within its affine hull, of k dimensions.

    centre + frame @ u runs over the hull as u runs over R^k; the unit ball of u lies in C.
    """

    lower: Array  # (d,), the least box
    upper: Array
    equal: Indices  # independent rows of A, which describe the hull together with
    flat: Indices  # rows of G that hold as equalities all over C
    live: Indices  # rows of G that vary over the hull
    centre: Array  # (d,)
    frame: Array  # (d, k)
    free: Indices  # (k,), coordinates that determine the others
    corner: Indices  # (k,), live rows that meet in one point of the hull


def hull(A: Array, b: Array, G: Array, h: Array, tol: float) -> Hull:
    """``tol``: the width, relative to that of the least box, below which C counts as flat."""
    try:
        return _hull(A, b, G, h, tol)
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        raise ValueError(
            f"Polytope needs rows that differ by more than rounding, but its points could not be "
            f"computed ({error}). Drop rows that are nearly parallel to others, write two nearly "
            f"equal bounds as one row of A, or bring the numbers to similar sizes."
        ) from error


def _hull(A: Array, b: Array, G: Array, h: Array, tol: float) -> Hull:
    A, b = _unit(A, b)
    G, h = _unit(G, h)
    # in these units the planes lie within 1 of the origin, which suits the tolerances of HiGHS
    size = float(np.abs(np.concatenate([b, h])).max()) or 1.0
    rows, right = np.concatenate([A, -A, G]), np.concatenate([b, -b, h]) / size
    right = right + _miss(rows, right, len(A), size, tol)
    lower, upper = (size * v for v in _bounds(rows, right))
    flat, live, centre, frame = _inside(A, b, G, h, lower, upper, tol)
    d, k = frame.shape
    rows = _pivots(np.concatenate([A, G[flat]]).T, d - k)
    equal, tight = rows[rows < len(A)], np.flatnonzero(flat)[rows[rows >= len(A)] - len(A)]
    H = (G[live] @ frame) / (h - G @ centre)[live, None]
    free, corner = _pivots(frame.T, k), _pivots(H.T, k)
    return Hull(lower, upper, equal, tight, np.flatnonzero(live), centre, frame, free, corner)


def _unit(rows: Array, right: Array) -> tuple[Array, Array]:
    length = np.linalg.norm(rows, axis=1)
    return rows / length[:, None], right / length


def _miss(rows: Array, right: Array, equal: int, size: float, tol: float) -> Array:
    """By how much each row must give way for the set to have a point; 0 but for rounding.

    The first ``equal`` rows are those of A, the next ``equal`` the same reversed.
    """
    near = _least_miss(rows, right, np.ones(len(rows)))
    if near.fun < 1e-12:
        return np.zeros(len(rows))
    # the numbers of a row at the nearest point are the measure of its rounding
    weight = np.abs(right) + np.abs(rows) @ np.abs(near.x[:-1])
    if (miss := _least_miss(rows, right, weight).fun) <= tol:
        return np.asarray(miss * weight)
    multiplier = -near.ineqlin.marginals
    both = multiplier[:equal] + multiplier[equal : 2 * equal]
    clash = [f"A[{i}]" for i in np.flatnonzero(both > 1e-6)]
    clash += [f"G[{i}]" for i in np.flatnonzero(multiplier[2 * equal :] > 1e-6)]
    raise ValueError(
        f"Polytope has no point that satisfies A a = b and G a <= h together: rows "
        f"{', '.join(clash)} clash, and every point is at least {near.fun * size:.4g} away from "
        f"one of them. Loosen or drop one of these rows."
    )


def _least_miss(rows: Array, right: Array, weight: Array) -> Any:
    """min t >= 0 subject to rows @ a - right <= t weight; the rows that clash have multipliers."""
    d = rows.shape[1]
    return _program(
        np.append(np.zeros(d), 1.0),
        np.column_stack([rows, -weight]),
        right,
        bounds=[(None, None)] * d + [(0, None)],
    )


def _bounds(rows: Array, right: Array) -> tuple[Array, Array]:
    d = rows.shape[1]
    ends, loose = np.zeros((2, d)), []
    for i in range(d):
        for side, sign in enumerate((1.0, -1.0)):
            best = _program(sign * np.eye(d)[i], rows, right)
            if best.status == 3:
                loose.append((i, "fall" if side == 0 else "grow"))
            else:
                ends[side, i] = sign * best.fun
    if loose:
        i, way = loose[0]
        others = sorted({j for j, _ in loose} - {i})
        more = f" (so can coordinates {', '.join(map(str, others))})" if others else ""
        raise ValueError(
            f"Polytope needs a bounded set, but coordinate {i} can {way} without end{more}. Add "
            f"a row to G and h for each such bound, at a number no sensible action passes."
        )
    return ends[0], np.maximum(*ends)


def _inside(
    A: Array, b: Array, G: Array, h: Array, lower: Array, upper: Array, tol: float
) -> tuple[Mask, Mask, Array, Array]:
    """Flat and live rows of G, an inner point of C within its hull, and the round frame there."""
    # each coordinate in units of its width, or of its size where it has no width
    width, size = upper - lower, np.maximum(np.abs(lower), np.abs(upper))
    wide = width > max(1e-10, 0.4 * tol) * size  # 4 units in the last place
    scale = np.where(wide, width, np.where(size > 0, size, 1.0))
    flat = np.zeros(len(G), dtype=bool)
    while True:
        E, e = np.concatenate([A, G[flat]]), np.concatenate([b, h[flat]])
        x = (lower + upper) / 2
        x = x + np.linalg.pinv(E, rcond=tol) @ (e - E @ x) if len(E) else x
        frame = _orthonormal(E * scale, tol)
        H = G * scale @ frame
        length = np.linalg.norm(H, axis=1)
        live = length > tol * np.linalg.norm(G * scale, axis=1)
        if frame.shape[1] == 0:
            return flat, live, x, frame
        H, s = H[live] / length[live, None], (h - G @ x)[live] / length[live]
        # the largest ball: max r, H z + r <= s
        k = H.shape[1]
        best = _program(np.append(np.zeros(k), -1.0), np.column_stack([H, np.ones(len(H))]), s)
        if -best.fun > tol:
            z, round_ = _analytic_centre(H, s, best.x[:k])
            return flat, live, x + scale * (frame @ z), scale[:, None] * (frame @ round_)
        # no ball: the rows with a multiplier hold as equalities at every point of C
        weight = -best.ineqlin.marginals
        flat[np.flatnonzero(live)[weight > 0.5 * weight.max()]] = True


def _analytic_centre(H: Array, s: Array, z: Array) -> tuple[Array, Array]:
    """argmin of -sum log(s - H z) by damped Newton steps, and L with L L' = inverse Hessian.

    {z + L u : |u| <= 1} lies inside {H z <= s} for every inner z (Dikin's ellipsoid), and takes
    on the shape of the set however long and thin that is.
    """
    for _ in range(200):
        row = H / (s - H @ z)[:, None]
        factor = _root(row)
        half = solve_triangular(factor, row.sum(0), lower=True)
        decrement = float(np.linalg.norm(half))
        move = solve_triangular(factor.T, half)
        z = z - move / (1 + decrement)
        if decrement < 1e-6:
            break
    row = H / (s - H @ z)[:, None]
    return z, solve_triangular(_root(row).T, np.eye(len(z)))


def _root(rows: Array) -> Array:
    """Lower triangular L with L L' = rows' rows; of a thin set by QR, which squares no number."""
    try:
        return np.asarray(np.linalg.cholesky(rows.T @ rows))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.qr(rows, mode="r")).T


def _orthonormal(E: Array, tol: float) -> Array:
    """Columns span {v : E v = 0}."""
    if len(E) == 0:
        return np.eye(E.shape[1])
    return np.asarray(null_space(E / np.linalg.norm(E, axis=1)[:, None], rcond=tol))


def _pivots(columns: Array, k: int) -> Indices:
    """k columns as far from dependent as a pivoted QR factorisation finds them."""
    order = qr(columns, mode="r", pivoting=True)[1] if k else np.zeros(0)
    return np.sort(order[:k]).astype(np.intp)


def _program(c: Array, rows: Array, right: Array, bounds: Any = (None, None)) -> Any:
    """min c @ x subject to rows @ x <= right."""
    for options in (_EXACT, {"presolve": False}):
        best = linprog(c, A_ub=rows, b_ub=right, bounds=bounds, method="highs", options=options)
        if best.status != 4:  # else presolve could not tell unbounded from empty, or it is hard
            break
    if best.status not in (0, 3):
        raise RuntimeError(
            f"Polytope could not be analysed: HiGHS ended a linear program with status "
            f"{best.status} ({best.message}). Bring the numbers in A, b, G and h to similar sizes."
        )
    return best


_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
