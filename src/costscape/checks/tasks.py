"""The contract of a task."""

from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.checks.sets import must
from costscape.sets import Finite
from costscape.task import SeparableTask, Task

TRIED = 32


def check_task(task: Task, y: Float[Tensor, "n ..."]) -> None:
    """Check that f broadcasts, is finite with finite slopes, and has the facts of the task.

    Args:
        task: its facts are convex (checked at midpoints of sampled actions), separable (mixed
            differences of two coordinates vanish), hindsight (no sampled action is cheaper) and
            cvxpy (the expression's value is f).
        y: outcomes (n, *y_shape) such as the data has.
    """
    lower = task.feasible.bounds[0]
    y = y.to(lower)
    a = task.feasible.sample(TRIED, Generator(lower.device).manual_seed(0))
    with torch.enable_grad():
        free = a.clone().requires_grad_()
        costs = task.cost(y.unsqueeze(1), free)
        (slope,) = torch.autograd.grad(costs.sum(), free)
    costs = costs.detach()
    must(costs.isfinite(), "cost() is not finite on the feasible set.")
    must(slope.isfinite(), "cost() has a slope that is not finite.")
    single = torch.stack([task.cost(y[i], a[j]) for i in range(len(y)) for j in range(TRIED)])
    size = 1e-4 * costs.abs().mean() + 1e-30
    apart = (costs.flatten() - single).abs().max()
    must(apart <= size, f"cost() of a batch and of each pair differ by {float(apart):g}.")
    if task.convex and not isinstance(task.feasible, Finite):
        _check_convex(task, y, a, costs, size)
    if isinstance(task, SeparableTask):
        _check_separable(task, y, a, costs, size)
    if task.hindsight is not None:
        _check_hindsight(task, y, costs, size)
    if task.cvxpy is not None and find_spec("cvxpy") is not None:
        _check_cvxpy(task, y, a, costs, size)


def _check_convex(task: Task, y: Tensor, a: Tensor, costs: Tensor, size: Tensor) -> None:
    middle = task.cost(y.unsqueeze(1), (a[1:] + a[:-1]) / 2)
    above = (middle - (costs[:, 1:] + costs[:, :-1]) / 2).max()
    must(
        above <= size,
        f"the task says convex=True, but cost() at a midpoint is {float(above):g} above the mean "
        f"of the ends.",
    )


def _check_separable(
    task: SeparableTask, y: Tensor, a: Tensor, costs: Tensor, size: Tensor
) -> None:
    """Putting coordinate i of one action into another changes summand i only."""
    other = a.roll(1, 0)
    base = task.terms(y.unsqueeze(1), a)
    must((base.sum(-1) - costs).abs() <= size, "the terms do not add up to the cost.")
    for i in range(a.shape[1]):
        mixed = a.clone()
        mixed[:, i] = other[:, i]
        moved = (task.terms(y.unsqueeze(1), mixed) - base).abs().amax((0, 1))
        moved[i] = 0
        must(
            moved <= size,
            f"the task is a SeparableTask, but changing a_{i} changes another summand by "
            f"{float(moved.max()):g}.",
        )


def _check_hindsight(task: Task, y: Tensor, costs: Tensor, size: Tensor) -> None:
    assert task.hindsight is not None
    best = task.hindsight(y)
    must(task.feasible.contains(best), "hindsight() gives actions outside the set.")
    over = (task.cost(y, best) - costs.amin(1)).max()
    must(over <= size, f"a sampled action is {float(over):g} cheaper than hindsight()'s.")


def _check_cvxpy(task: Task, y: Tensor, a: Tensor, costs: Tensor, size: Tensor) -> None:
    import cvxpy as cp

    assert task.cvxpy is not None
    variable = cp.Variable((1, a.shape[1]))
    written = task.cvxpy(y.double().cpu().numpy(), variable)
    for j in range(4):
        variable.value = a[j : j + 1].double().cpu().numpy()
        apart = np.abs(np.ravel(written.value) - costs[:, j].cpu().numpy()).max()
        must(
            bool(apart <= float(size) + 1e-6),
            f"the cost written for cvxpy differs from cost() by {apart:g}.",
        )
