"""Decisions on convex costs cost at most 1e-3 more than the best, or than their stated bound.

The best action of each row is that of another program, in unit size: closed forms and bisection in
numpy, linear programs by HiGHS, quadratic ones by SLSQP. A miss is a share of the larger of the
best cost and the spread of the cost over C.
"""

import sys
import warnings

import numpy as np
import torch
from campaign import Campaign, main
from random_problems import SETS, random_set
from scipy.optimize import LinearConstraint, linprog, minimize
from scipy.sparse import csr_matrix, hstack, identity, vstack

import costscape as cs

MISS = 1e-3
ROWS = 20  # problems of one batch
OUTCOMES = 6


def expected(cost, w, y, a):
    """sum_s w_s f(y_s, a) of actions (..., d), in double precision."""
    away = y - a[..., None, :]
    square = cost == "square"
    terms = away**2 if square else 3 * np.maximum(away, 0) + np.maximum(-away, 0)
    return (w * terms.sum(-1)).sum(-1)


def best_square(w, y, c):
    """min |a - mean|^2 over C: the projection of the mean, by bisection or SLSQP."""
    mean = w @ y
    if c.points is not None:
        return c.points[((c.points - mean) ** 2).sum(1).argmin()]
    if c.step:
        return _best_of_all(c, lambda a: ((a - mean) ** 2).sum(-1))
    if len(c.G) + len(c.A) == 0:
        return mean.clip(c.lower, c.upper)
    rows = np.concatenate([c.G, c.A])
    if len(rows) == 1 and (rows == 1).all():  # one sum: bisect its multiplier
        at = lambda t: (mean - t).clip(c.lower, c.upper)  # noqa: E731
        total = np.concatenate([c.h, c.b])[0]
        if len(c.G) and at(0.0).sum() <= total:
            return at(0.0)
        low, high = -10.0, 10.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if at(middle).sum() > total else (low, middle)
        return at(high)
    found = minimize(
        lambda a: ((a - mean) ** 2).sum(),
        (c.lower + c.upper) / 4,
        jac=lambda a: 2 * (a - mean),
        bounds=list(zip(c.lower, c.upper, strict=True)),
        constraints=[LinearConstraint(c.G, -np.inf, c.h)],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return found.x


def best_kinks(w, y, c):
    """A linear program: t_si >= 3 (y_si - a_i) and t_si >= a_i - y_si."""
    if c.points is not None:
        return c.points[expected("kinks", w, y, c.points).argmin()]
    if c.step:
        return _best_of_all(c, lambda a: expected("kinks", w, y, a))
    S, d = y.shape
    each, every = csr_matrix(np.tile(np.eye(d), (S, 1))), identity(S * d)
    G = vstack([hstack([-3 * each, -every]), hstack([each, -every])])
    h = np.concatenate([-3 * y.ravel(), y.ravel()])
    wide = lambda M: hstack([csr_matrix(M), csr_matrix((len(M), S * d))])  # noqa: E731
    if len(c.G):
        G, h = vstack([G, wide(c.G)]), np.concatenate([h, c.h])
    found = linprog(
        np.concatenate([np.zeros(d), np.repeat(w, d)]),
        A_ub=G,
        b_ub=h,
        A_eq=wide(c.A) if len(c.A) else None,
        b_eq=c.b if len(c.A) else None,
        bounds=[*zip(c.lower, c.upper, strict=True), *[(0, None)] * (S * d)],
        method="highs",
    )
    return found.x[:d]


def _best_of_all(c, cost):
    """The best multiple, of all that the set has."""
    ends = [np.arange(0, round(top / c.step) + 1) * c.step for top in c.upper]
    a = np.stack(np.meshgrid(*ends, indexing="ij"), -1).reshape(-1, len(ends))
    a = a[(a @ c.G.T <= c.h + 1e-9).all(1)] if len(c.G) else a
    return a[cost(a).argmin()]


def task_of(kind, cost, C):
    """A sum over coordinates, the same without saying so, or written for cvxpy."""

    def terms(y, a):
        return (y - a) ** 2 if cost == "square" else 3 * (y - a).relu() + (a - y).relu()

    def written(y, a):
        import cvxpy as cp

        away = y - np.ones((len(y), 1)) @ a
        apart = cp.square(away) if cost == "square" else 3 * cp.pos(away) + cp.pos(-away)
        return cp.sum(apart, axis=1)

    if kind == "sum":
        return cs.SeparableTask(terms, C, convex=True)
    program = written if kind == "program" else None
    return cs.Task(lambda y, a: terms(y, a).sum(-1), C, convex=True, cvxpy=program)


def run(n=200, seed=0, minutes=0.0):
    goal = f"cost within {MISS:g} of the best, or within the stated bound"
    found = Campaign(__file__, goal, minutes)
    rng = np.random.default_rng(seed)
    misses, bounds, rest = {}, [], 0
    k = 0
    while found.count < n and not found.late:
        name = list(SETS)[k % len(SETS)]
        cost = ("square", "kinks")[k // len(SETS) % 2]
        kind = ("sum", "task", "sum", "program")[k // (2 * len(SETS)) % 4]
        k += 1
        dtype = (torch.float32, torch.float64)[int(rng.integers(2))]
        C, c = random_set(name, rng, 1.0, dtype)
        rows = min(ROWS, n - found.count)
        y = rng.uniform(-1, 2, (rows, OUTCOMES, C.dim))
        w = rng.dirichlet(np.ones(OUTCOMES), rows)
        task = task_of(kind, cost, C)
        given = cs.Scenarios(*(torch.tensor(v, dtype=dtype) for v in (w, y)), own=True)
        g = cs.ExpectedCost(task, given)
        solver = type(cs.Auto().pick(g, C)).__name__
        words = f"{name}, {cost}, {kind}, {solver}, {dtype}, batch {k}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                solution = cs.Auto().minimise(g, C, rows)
        except Exception as error:
            found.case(False, f"{words}: {type(error).__name__}: {error}", rows, rows)
            continue
        a = solution.action.double().numpy()
        some = C.sample(200, torch.Generator().manual_seed(0)).double().numpy()
        spread = np.ptp(expected(cost, w[:, None], y[:, None], some[None]), axis=1)
        best = np.stack(
            [(best_square if cost == "square" else best_kinks)(w[i], y[i], c) for i in range(rows)]
        )
        least, paid = expected(cost, w, y, best), expected(cost, w, y, a)
        size = np.maximum(np.abs(least), spread).clip(1e-12)
        miss = (paid - least) / size
        bound = np.zeros(rows) if solution.gap is None else solution.gap.double().numpy()
        rounding = 8 * torch.finfo(dtype).eps * np.abs(paid)
        bad = (miss > MISS) & (paid - least > bound + rounding)
        rest += int((miss > MISS).sum() - bad.sum())
        if solution.gap is not None:
            bounds.append(bound / size)
        key = f"{solver} on {name}, {cost}"
        misses[key] = max(misses.get(key, -1.0), float(miss.max()))
        found.case(not bad.any(), f"{words}: {miss.max():.3g}", rows, int(bad.sum()))
    worst = sorted(misses.items(), key=lambda item: -item[1])[:6]
    shares = np.quantile(np.concatenate(bounds or [np.zeros(1)]), [0.5, 0.99, 1.0])
    found.notes = {
        "worst": {key: float(f"{value:.2g}") for key, value in worst},
        "farther, within the bound": rest,
        "bounds: half, 99 %, all below": [float(f"{share:.2g}") for share in shares],
    }
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(run, __doc__, n=200, seed=0, minutes=0.0))
