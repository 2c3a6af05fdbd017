"""Allocate a budget when shortages add up: three solvers on one learned expected cost.

python examples/budget.py

Four districts ask for help. The cost is the square of the whole shortage, so it is no sum over
districts, and each unit sent costs a little: f(y, a) = (sum_i (y_i - a_i)+)^2 + 0.2 sum_i a_i.
It is convex, and written once more for cvxpy, so an exact solver can check the iterative ones.
"""

import time

import cvxpy as cp
import torch

import costscape as cs


def cost(y, a):
    short = (y - a).clamp(min=0).sum(-1)
    return short**2 + 0.2 * a.sum(-1)


def cost_for_cvxpy(y, a):
    """y (S, 4) as numpy, a a variable (1, 4): the S costs."""
    short = cp.sum(cp.pos(y - a), axis=1)
    return cp.square(short) + 0.2 * cp.sum(a)


def weeks(n, seed):
    """Need follows last week's, with a fair chance of twice as much."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 4, generator=rng)
    surge = 1 + (torch.rand(n, 4, generator=rng) < 0.3).float()
    return x, x * surge + 0.1 * torch.rand(n, 4, generator=rng)


def main():
    feasible = cs.Budget(total=3.0, dim=4, upper=1.5)
    task = cs.Task(cost, feasible, convex=True, cvxpy=cost_for_cvxpy)
    model = cs.DF2(
        task,
        points=100,
        outcomes=cs.Absolute(),
        folds=1,
        solver=cs.MirrorDescent(),
        training=cs.Training(epochs=8, progress=False, device="cpu"),
    )
    model.fit(*weeks(640, seed=0))

    x, y = weeks(50, seed=1)
    g = model.surface(x)
    answers = []
    for solver in (cs.Convex(), cs.MirrorDescent(), cs.ProjectedAdam()):
        begin = time.perf_counter()
        found = solver.minimise(g, feasible, len(x))
        answers.append((type(solver).__name__, found, time.perf_counter() - begin))
    exact = answers[0][1].cost

    print(f"{'solver':14}  {'g(x, a)':>8}  {'over exact':>10}  {'seconds':>7}  {'mean cost':>9}")
    for name, found, seconds in answers:
        over, paid = float((found.cost - exact).mean()), float(cost(y, found.action).mean())
        print(f"{name:14}  {found.cost.mean():8.4f}  {over:10.5f}  {seconds:7.2f}  {paid:9.4f}")


if __name__ == "__main__":
    main()
