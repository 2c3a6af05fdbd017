"""The contract of a feasible set."""

import copy

import numpy as np
import torch
from torch import Generator, Tensor

from costscape.checks.must import must
from costscape.sets import ConstraintSet


def check_set(c: ConstraintSet, far: float = 10.0) -> None:
    """Check that samples and projections lie in C, and that a projection is the nearest point.

    ``project`` must also have finite slopes at every point checked, the middle of the bounds
    among them, since networks that end in a projection learn through it.

    Arguments:
        c: the set.
        far: points to project lie this many widths of C away, 10 by default.

    Nearest means, where C is convex, (a - p) . (s - p) <= 0 for all known points s of C. A set
    whose ``describe`` raises TypeError is not convex; no known point may be nearer than p. Errors
    up to ``c.tolerance`` count as rounding.
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
    must(bool((worst >= 0).all()), "violation() is negative.")
    must(bool(c.contains(inside).all()), f"sample() left the set by {float(worst.max()):g}.")
    must(
        torch.equal(inside, c.sample(200, _generator(c))),
        "sample() gave other points from a generator with the same seed.",
    )
    must(c.sample(0, _generator(c)).shape == (0, c.dim), "sample(0) is not empty.")
    must(bool((lower <= upper).all()), "bounds has a lower bound above the upper one.")
    slack = c.tolerance
    fits = bool((inside >= lower - slack).all() and (inside <= upper + slack).all())
    must(fits, "bounds does not contain the samples.")
    return inside


def _check_projection(c: ConstraintSet, inside: Tensor, a: Tensor) -> None:
    tol = c.tolerance
    p = c.project(a)
    must(p.shape == a.shape and p.dtype == a.dtype, "project() changed the shape or the dtype.")
    worst = float(c.violation(p).max())
    must(bool(c.contains(p).all()), f"project() left the set by {worst:g}.")
    for name, known in (("a projection", p), ("a sample", inside)):
        moved = float((c.project(known) - known).abs().max())
        must(moved <= tol, f"project() moved {name}, a point of the set, by {moved:g}.")
    for shape in ((2, 100, c.dim), (200, 1, c.dim)):
        same = (c.project(a.reshape(shape)).reshape(a.shape) - p).abs().max() <= tol
        must(bool(same), f"project() depends on the batch shape {shape}.")
    alone = torch.stack([c.project(row) for row in a[:10]])
    must(bool((alone - p[:10]).abs().max() <= tol), "project() of a point alone differs.")
    lower, upper = c.bounds
    fits = bool((p >= lower - tol).all() and (p <= upper + tol).all())
    must(fits, "bounds does not contain the projections.")
    _check_nearest(c, torch.cat([inside, p]).double(), a.double(), p.double())


def _check_slopes(c: ConstraintSet, a: Tensor) -> None:
    """The middle of the bounds is among the points: a division by a distance fails there."""
    a = a.detach().clone().requires_grad_()
    p = c.project(a)
    if not p.requires_grad:
        return  # a list of points has no slopes
    (slope,) = torch.autograd.grad(p.sum(), a)
    bad = (~slope.isfinite()).any(-1)
    at = a[bad][0].tolist() if bad.any() else []
    must(
        not at,
        f"project() has a slope that is not finite at {at}. Guard divisions by a distance, for "
        f"example with torch.where on both sides of the division.",
    )


def _check_nearest(c: ConstraintSet, known: Tensor, a: Tensor, p: Tensor) -> None:
    away, apart = (a - p).norm(dim=-1), _distances(p, known)
    outside = away > 100 * c.tolerance
    must(
        bool((c.violation(a.to(c.bounds[0].dtype))[outside] > 0).all()),
        "violation() is 0 at a point that project() moved.",
    )
    nearer = (away[:, None] - _distances(a, known)).amax()
    must(bool(nearer <= c.tolerance), f"a point of the set is nearer than project() by {nearer}.")
    if _convex(c):
        angle = (a - p) @ known.T - ((a - p) * p).sum(-1, keepdim=True)
        slack = c.tolerance * c.dim**0.5 * (away[:, None] + apart)
        must(
            bool((angle <= slack).all()),
            "project() is not the nearest point: the way from it to a point of the set leads "
            "towards the point projected.",
        )


def _check_copies(c: ConstraintSet) -> None:
    dtype = c.bounds[0].dtype
    twin = copy.deepcopy(c).double()
    must(c.bounds[0].dtype == dtype, "double() of a deep copy changed the set itself.")
    inside = twin.sample(200, _generator(c))
    must(inside.dtype == torch.float64, f"after double() samples are {inside.dtype}.")
    must(bool(twin.contains(inside).all()), "after double() sample() left the set.")
    away = 2 * inside - inside.mean(0)
    must(bool(twin.contains(twin.project(away)).all()), "after double() project() left the set.")
    single = twin.project(away.float())
    must(single.dtype == torch.float32, f"project() made {single.dtype} of torch.float32.")
    for ours, theirs in zip(c.bounds, twin.bounds, strict=True):
        same = (ours.double() - theirs).abs().max() <= c.tolerance
        must(bool(same), "double() changed the bounds.")
    twin.load_state_dict(c.state_dict())


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
