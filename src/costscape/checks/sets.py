"""The contract of a feasible set."""

import copy

import numpy as np
import torch
from torch import Generator, Tensor

from costscape.sets import ConstraintSet


def must(holds: Tensor | bool, sentence: str) -> None:
    """Raise AssertionError(sentence) unless all of it holds, also under ``python -O``."""
    if not (holds.all() if isinstance(holds, Tensor) else holds):
        raise AssertionError(sentence)


def check_set(c: ConstraintSet, far: float = 10.0) -> None:
    """Check that samples and projections lie in C, and that a projection is the nearest point.

    Args:
        c: the set. Errors up to ``c.tolerance`` count as rounding.
        far: float, default 10. Points to project lie this many widths of C away.

    Nearest means, where C is convex, (a - p) . (s - p) <= 0 for all known points s of C. A set
    whose ``describe`` raises TypeError is not convex; no known point may be nearer than p.
    ``project`` must have finite slopes, since networks that end in a projection learn through it.

    >>> from costscape.sets import Box
    >>> check_set(Box(0.0, 1.0, dim=3))
    """
    inside = _check_samples(c)
    lower, upper = c.bounds
    width = float((upper - lower).max()) or 1.0
    rng = _generator(c, 1)
    move = torch.randn(inside.shape, generator=rng, dtype=inside.dtype, device=inside.device)
    _check_projection(c, inside, inside + far * width * move)
    _check_slopes(c, torch.cat([inside, inside + far * width * move, (lower + upper)[None] / 2]))
    _check_copies(c)


def _check_samples(c: ConstraintSet) -> Tensor:
    inside = c.sample(200, _generator(c))
    lower, upper = c.bounds
    must(inside.shape == (200, c.dim), f"sample(200) has shape {tuple(inside.shape)}.")
    must(inside.dtype == lower.dtype, f"samples are {inside.dtype}, the bounds {lower.dtype}.")
    worst = c.violation(inside)
    must(worst.shape == (200,), f"violation of 200 points has shape {tuple(worst.shape)}.")
    must(worst >= 0, "violation() is negative.")
    must(lower <= upper, "bounds has a lower bound above the upper one.")
    left = (worst > c.tolerance).any()
    must(left or _within_bounds(c, inside), "bounds does not contain the samples.")
    must(c.contains(inside), f"sample() left the set by {float(worst.max()):g}.")
    must(
        torch.equal(inside, c.sample(200, _generator(c))),
        "sample() gave other points from a generator with the same seed.",
    )
    must(c.sample(0, _generator(c)).shape == (0, c.dim), "sample(0) is not empty.")
    return inside


def _check_projection(c: ConstraintSet, inside: Tensor, a: Tensor) -> None:
    tol = c.tolerance
    p = c.project(a)
    must(p.shape == a.shape and p.dtype == a.dtype, "project() changed the shape or the dtype.")
    must(c.contains(p), f"project() left the set by {float(c.violation(p).max()):g}.")
    for name, known in (("a projection", p), ("a sample", inside)):
        moved = float((c.project(known) - known).abs().max())
        must(moved <= tol, f"project() moved {name}, a point of the set, by {moved:g}.")
    for shape in ((2, 100, c.dim), (200, 1, c.dim)):
        same = (c.project(a.reshape(shape)).reshape(a.shape) - p).abs() <= tol
        must(same, f"project() depends on the batch shape {shape}.")
    single = torch.stack([c.project(row) for row in a[:10]])
    must((single - p[:10]).abs() <= tol, "project() of a single point differs.")
    must(_within_bounds(c, p), "bounds does not contain the projections.")
    _check_nearest(c, torch.cat([inside, p]).double(), a.double(), p.double())


def _check_slopes(c: ConstraintSet, a: Tensor) -> None:
    a = a.detach().clone().requires_grad_()
    p = c.project(a)
    if not p.requires_grad:
        return  # a list of points has no slopes
    (slope,) = torch.autograd.grad(p.sum(), a)
    bad = a[(~slope.isfinite()).any(-1)]
    must(
        len(bad) == 0,
        f"project() has a slope that is not finite at {bad[:1].tolist()}. Guard divisions by a "
        f"distance, for example with torch.where on both sides of the division.",
    )


def _check_nearest(c: ConstraintSet, known: Tensor, a: Tensor, p: Tensor) -> None:
    away, apart = (a - p).norm(dim=-1), _distances(p, known)
    outside = away > 100 * c.tolerance
    violation = c.violation(a.to(c.bounds[0].dtype))[outside]
    must(violation > 0, "violation() is 0 at a point that project() moved.")
    nearer = (away[:, None] - _distances(a, known)).amax()
    rounding = 10 * torch.finfo(a.dtype).eps * float(away.max())
    must(
        nearer <= c.tolerance + rounding,
        f"a point of the set is nearer than project() by {nearer}.",
    )
    if _convex(c):
        angle = (a - p) @ known.T - ((a - p) * p).sum(-1, keepdim=True)
        slack = c.tolerance * c.dim**0.5 * (away[:, None] + apart)
        must(
            angle <= slack,
            "project() is not the nearest point: the way from it to a point of the set leads "
            "towards the point projected.",
        )


def _check_copies(c: ConstraintSet) -> None:
    dtype = c.bounds[0].dtype
    twin = copy.deepcopy(c).double()
    must(c.bounds[0].dtype == dtype, "double() of a deep copy changed the set itself.")
    inside = twin.sample(200, _generator(c))
    must(inside.dtype == torch.float64, f"after double() samples are {inside.dtype}.")
    must(twin.contains(inside), "after double() sample() left the set.")
    away = 2 * inside - inside.mean(0)
    must(twin.contains(twin.project(away)), "after double() project() left the set.")
    single = twin.project(away.float())
    must(single.dtype == torch.float32, f"project() made {single.dtype} of torch.float32.")
    for ours, theirs in zip(c.bounds, twin.bounds, strict=True):
        must((ours.double() - theirs).abs() <= c.tolerance, "double() changed the bounds.")
    twin.load_state_dict(c.state_dict())


def _within_bounds(c: ConstraintSet, a: Tensor) -> Tensor:
    lower, upper = c.bounds
    return (a >= lower - c.tolerance) & (a <= upper + c.tolerance)


def _distances(a: Tensor, b: Tensor) -> Tensor:
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def _convex(c: ConstraintSet) -> bool:
    try:
        c.describe(np.zeros(c.dim))
    except TypeError:
        return False
    return True


def _generator(c: ConstraintSet, seed: int = 0) -> Generator:
    return Generator(c.bounds[0].device).manual_seed(seed)
