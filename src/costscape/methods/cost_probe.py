"""The cost tried on some rows and actions before a fit, and its values there, to know it again.

Asked of f(y, a): the right shape, finite, not NaN at the corners of C, the same on a second call
and for one y and one a alone, y and a left as they were; with ``convex=True`` f at the middle of
two actions at most the mean of both; of a ``SeparableTask`` that summand i does not change with
other coordinates than a_i. What is sampled can be refuted, not proved. The actions are of a
separate random generator.
"""

from itertools import combinations
from typing import Any
from warnings import warn

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.methods.saving import Mismatch
from costscape.sets import Finite, Whole
from costscape.task import SeparableTask, Task

ROWS = 64  # outcomes, evenly spread, on which the cost is tried
FEW = 16  # of these, for the promises of the task
ACTIONS = 8  # for the promises of the task
ROUNDING = 1e-4  # of the largest cost: differences that a promise may be missed by
SPREAD = 32  # actions over which a cost differs
RESOLVED = 1e-3  # of the differences of a cost that rounding may be
FAR = 0.5  # of the width of C: outcomes beyond are far outside
POINTS = 6  # actions, and outcomes, of a sample of costs
GOLDEN = 0.6180339887  # multiples of it, less their whole parts, are spread over (0, 1)
SAME = 1e-4  # of the largest cost: differences between machines and precisions


def check_axes(task: Task, y: Float[Tensor, "n ..."]) -> None:
    """Raise ValueError where outcomes have other axes than the task says."""
    if y.ndim != 1 + task.y_dims:
        raise ValueError(
            f"Y needs {1 + task.y_dims} axes, rows and the {task.y_dims} of one outcome, but has "
            f"shape {tuple(y.shape)}. Reshape it, or make the task with y_dims={y.ndim - 1}."
        )


def probe_cost(task: Task, pairs: Dataset, seed: int) -> None:
    """Raise ValueError where f or a promise of the task fails on these outcomes.

    Warns where C leaves out most outcomes, and the outcome itself would be the best action; where
    a constant in f hides its differences from the precision; and where f jumps or is flat in
    parts, and a solver has to follow its slopes.
    """
    lower = task.feasible.bounds[0]
    a = task.feasible.sample(4, Generator(lower.device).manual_seed(seed))
    pairs = pairs[:: max(1, len(pairs) // ROWS)]
    some = task.join(pairs.x, pairs.y).to(lower)
    with torch.no_grad():
        cost = _first_costs(task, some, a)
        size = ROUNDING * float(cost.abs().max())
        again = task.cost(some.unsqueeze(1), a)
        if not bool(((again - cost).abs() <= size).all()):
            raise ValueError(
                f"cost(y, a) must return the same for the same y and a, but two calls differ by "
                f"{float((again - cost).abs().max()):g}. Take random numbers and what is counted "
                f"out of the cost."
            )
        _check_alone(task, some, a, cost, size)
        few = some[:: max(1, len(some) // FEW)]
        _check_corners(task, few)
        _check_precision(task, few)
        actions = task.feasible.sample(ACTIONS, Generator(lower.device).manual_seed(seed))
        if task.convex and not isinstance(task.feasible, Finite):
            _check_convex(task, few, actions)
        if isinstance(task, SeparableTask):
            _check_separable(task, few, actions)
            if not task.joins:
                _check_range_of_set(task, some)
    if follows_slopes(task):
        from costscape.methods.slope_probe import probe_slopes  # few tasks need it

        probe_slopes(task, few, seed)


def follows_slopes(task: Task) -> bool:
    """Whether only solvers that follow slopes serve the task: not convex, not a sum, no list."""
    return not (task.convex or task.separable or isinstance(task.feasible, Finite | Whole))


def _first_costs(task: Task, y: Tensor, a: Tensor) -> Tensor:
    own_y, own_a = y.clone(), a.clone()  # a cost that writes into its arguments spoils these
    try:
        cost = task.cost(own_y.unsqueeze(1), own_a)
    except (RuntimeError, IndexError) as error:
        raise ValueError(
            f"cost(y, a) must take y {(len(y), 1, *y.shape[1:])} and a {tuple(a.shape)}, "
            f"whose leading axes broadcast, but failed: {error}. An outcome of Y has shape "
            f"{tuple(y.shape[1:])}, an action {task.feasible.dim} numbers; they need not be "
            f"alike, but the cost must be written for both."
        ) from error
    except Exception as error:
        error.add_note(
            f"Raised by the cost of the task, which fit calls with y {(len(y), 1, *y.shape[1:])} "
            f"and a {tuple(a.shape)}."
        )
        raise
    if not cost.isfinite().all():
        i, j = (int(k) for k in (~cost.isfinite()).nonzero()[0])
        raise ValueError(
            f"cost(y, a) must be finite on the data and the feasible set, but is "
            f"{float(cost[i, j])} at y = {y[i].flatten()[:8].tolist()} and a = "
            f"{a[j][:8].tolist()}. Guard divisions, logarithms and roots in the cost."
        )
    for name, before, after in (("y", y, own_y), ("a", a, own_a)):
        if not torch.equal(before, after):
            raise ValueError(
                f"cost(y, a) must leave y and a as they are, but it changed {name}. Write "
                f"{name} = {name} + 1 for {name} += 1, and mul for mul_."
            )
    return cost


def _check_alone(task: Task, y: Tensor, a: Tensor, cost: Tensor, size: float) -> None:
    """The cost of one y and one a does not depend on the other pairs of the batch."""
    for i, j in ((0, 0), (len(y) - 1, len(a) - 1)):
        alone = task.cost(y[i, None, None], a[j, None, None])[0, 0]
        if not bool((alone - cost[i, j]).abs() <= size):
            raise ValueError(
                f"cost(y, a) must not depend on other rows of the batch, but one pair costs "
                f"{float(cost[i, j]):g} in a batch and {float(alone):g} alone. Sum over the last "
                f"axis only, with .sum(-1), and take means over the batch out of the cost."
            )


def _check_precision(task: Task, y: Tensor) -> None:
    """Warn where differences of the cost over C are lost beside its size."""
    a = task.feasible.sample(SPREAD, Generator(y.device).manual_seed(0))
    cost = task.cost(y.unsqueeze(1), a).double()
    spread, size = cost.amax(1) - cost.amin(1), cost.abs().amax(1)
    step = torch.finfo(y.dtype).eps * size
    if not bool((spread < step / RESOLVED).all()):
        return
    if not bool(spread.any()) and not _differs_in_double(task, y, a):
        return  # all actions cost the same
    warn(
        f"The cost is about {float(size.median()):g} and differs over the feasible set by about "
        f"{float(spread.median()):g}, which {str(y.dtype).removeprefix('torch.')} resolves to "
        f"{float(step.median()):.1g} only: decisions are rough. Take the constant out of the "
        f"cost, or fit with task.double().",
        stacklevel=4,
    )


def _differs_in_double(task: Task, y: Tensor, a: Tensor) -> bool:
    """Whether costs that are all equal differ in double precision, as far as f computes in it."""
    try:
        cost = task.f(y.double().unsqueeze(1), a.double())
    except RuntimeError:  # f multiplies by a matrix of its own, in single precision
        return False
    return bool((cost.amax(1) > cost.amin(1)).any())


def _check_corners(task: Task, y: Tensor) -> None:
    """Costs at corners of the bounds of C may be infinite, but not undefined."""
    corners = task.feasible.project(torch.stack(task.feasible.bounds))
    cost = task.cost(y.unsqueeze(1), corners)
    if len(bad := cost.isnan().nonzero()):
        i, j = (int(k) for k in bad[0])
        raise ValueError(
            f"cost(y, a) must be a number on the whole feasible set, but is nan at y = "
            f"{y[i].flatten()[:8].tolist()} and a = {corners[j][:8].tolist()}. Guard divisions, "
            f"logarithms and roots in the cost, or bound the set."
        )


def _check_convex(task: Task, y: Tensor, a: Tensor) -> None:
    i, j = torch.tensor(list(combinations(range(len(a)), 2)), device=a.device).T
    cost, middle = task.cost(y.unsqueeze(1), a), task.cost(y.unsqueeze(1), (a[i] + a[j]) / 2)
    above = middle - (cost[:, i] + cost[:, j]) / 2
    if not bool((above <= ROUNDING * float(cost.abs().max())).all()):
        raise ValueError(
            f"The task has convex=True, but its cost is not convex: half way between two actions "
            f"it is {float(above.max()):g} above the mean of both. Leave convex out."
        )


def _check_separable(task: SeparableTask, y: Tensor, a: Tensor) -> None:
    """Change every other coordinate, then the rest: the terms of those left must stay."""
    terms, other = task.terms(y.unsqueeze(1), a), a.roll(1, 0)
    for first in (0, 1):
        mixed = a.clone()
        mixed[:, first::2] = other[:, first::2]
        moved = (task.terms(y.unsqueeze(1), mixed) - terms).abs()[..., 1 - first :: 2]
        if not bool((moved <= ROUNDING * float(terms.abs().max())).all()):
            i = int(moved.flatten(0, -2).amax(0).argmax()) * 2 + 1 - first
            raise ValueError(
                f"Term i of a SeparableTask may depend on a_i only, but term {i} changes by "
                f"{float(moved.max()):g} with other coordinates of a. Use Task, with a cost that "
                f"returns the sum."
            )


def _check_range_of_set(task: SeparableTask, y: Tensor) -> None:
    """Warn where most outcomes of a coordinate are far outside C and would be the best actions.

    Far is half of the width of C. The best action is the outcome itself where f_i rises on both
    sides of it, by a width of C.
    """
    lower, upper = task.feasible.bounds
    if y.shape[1:] != lower.shape:
        return
    width = (upper - lower).clamp(min=1e-6)
    below, at, above = (task.terms(y, y + side * width) for side in (-1, 0, 1))
    far = torch.maximum(lower - y, y - upper) > FAR * width
    share = (far & (at < below) & (at < above)).double().mean(0)
    if share.max() > 0.5:
        i = int(share.argmax())
        warn(
            f"The set allows {float(lower[i]):g} to {float(upper[i]):g} for a_{i}, but "
            f"{float(share[i]):.0%} of the outcomes y_{i} are far outside, and there y_{i} is the "
            f"best action. Check the bounds of the set and the units of Y.",
            stacklevel=4,
        )


def cost_sample(
    task: Task, y_low: Float[Tensor, "..."], y_high: Float[Tensor, "..."]
) -> dict[str, Any]:
    """f at a few outcomes between two bounds and a few actions of C, as JSON."""
    lower, upper = task.feasible.bounds
    a = task.feasible.project(lower + spread(lower) * (upper - lower))
    sample = {"y_low": y_low.tolist(), "y_high": y_high.tolist(), "actions": a.tolist()}
    return {**sample, "costs": _sampled_costs(task, sample).tolist()}


def check_same_cost(task: Task, sample: dict[str, Any]) -> None:
    """Raise ValueError where f is not the cost of which ``cost_sample`` was taken."""
    then, now = torch.tensor(sample["costs"], dtype=torch.float64), _sampled_costs(task, sample)
    size = SAME * float(then.nan_to_num(0, 0, 0).abs().max())
    differs = ~torch.isclose(now, then, rtol=0, atol=size, equal_nan=True)
    if differs.any():
        i, j = (int(k) for k in differs.nonzero()[0])
        raise Mismatch(
            f"The model was fitted for another cost: at one outcome and action the cost of this "
            f"task is {float(now[i, j]):g}, and in the fit it was {float(then[i, j]):g}. Pass the "
            f"task of the fit, or fit again for the new cost."
        )


def _sampled_costs(task: Task, sample: dict[str, Any]) -> Tensor:
    like = task.feasible.bounds[0]
    low, high, a = (like.new_tensor(sample[key]) for key in ("y_low", "y_high", "actions"))
    y = low + spread(low) * (high - low)
    with torch.no_grad():
        return task.cost(y.unsqueeze(1), a).double().cpu()


def spread(like: Tensor) -> Tensor:
    """Shares (POINTS, ...) of an interval: all 0, all 1, then others for each coordinate."""
    i = torch.arange(like.numel(), dtype=torch.float64)
    k = torch.arange(1, POINTS - 1, dtype=torch.float64)[:, None]
    shares = ((i + 1) * k * GOLDEN).frac()
    shares = torch.cat([torch.zeros(1, len(i)), torch.ones(1, len(i)), shares])
    return shares.to(like).reshape(POINTS, *like.shape)
