"""The contract of a method."""

import tempfile
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costscape.arrays import read
from costscape.checks.sets import must
from costscape.methods import Method, SurfaceMethod, load


def check_method(method: Method, X: Any, Y: Any, **settings: Any) -> None:
    """Check that decisions are feasible, repeatable, and saved and loaded bit for bit.

    Also: ``fit`` returns the method; numpy in gives numpy out; a row decides by itself as in a
    batch, up to rounding; an unfitted method raises RuntimeError. Fits three times.

    Args:
        method: unfitted.
        X: features (n, ...).
        Y: outcomes (n, *y_shape).
        settings: those that are the user's own code, such as ``encoder``, for ``load``.
    """
    task = method.task
    _check_unfitted(method, X)
    must(method.fit(X, Y) is method, "fit() does not return the method.")
    x = read(X, "X", torch.float64)[0].float()
    first = method.decide(x)
    a = _rows(first, len(x))
    must(a.shape == (len(x), task.feasible.dim), f"decide() gives the shape {tuple(first.shape)}.")
    again = method.fit(X, Y).decide(x)
    must(torch.equal(first, again), "a second fit with the same seed decides otherwise.")
    as_numpy = method.decide(x.numpy())
    must(isinstance(as_numpy, np.ndarray), "numpy in does not give numpy out.")
    must(bool(np.array_equal(as_numpy, first.numpy())), "numpy and torch decide differently.")
    _check_single_rows(method, x, a)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "method.costscape"
        method.save(path)
        loaded = load(path, task, method=type(method), **settings)
        must(torch.equal(loaded.decide(x), first), "loaded from its file it decides otherwise.")
    fresh = copy(method)
    flat = _rows(read(Y, "Y")[0], len(x))
    if task.feasible.dim == 1 and flat.shape[1] == 1 and task.y_dims == 1:
        shape = fresh.fit(X, flat[:, 0]).decide(x).shape
        must(shape == (len(x),), f"with one number a row in Y, decide() gives {tuple(shape)}.")


def _rows(value: Tensor, n: int) -> Tensor:
    return value.reshape(n, -1)


def _check_unfitted(method: Method, X: Any) -> None:
    fresh = copy(method)
    fresh.model_ = None
    try:
        fresh.decide(X)
    except RuntimeError as error:
        must("fit" in str(error), f"an unfitted method says {error}, and nothing of fit().")
    else:
        must(False, "an unfitted method decides.")


def _check_single_rows(method: Method, x: Tensor, a: Tensor) -> None:
    """Equal actions, or, where two are as good, equal expected costs."""
    lower, upper = method.task.feasible.bounds
    for i in range(min(3, len(x))):
        one = _rows(method.decide(x[i : i + 1]), 1)
        near = bool(((one[0] - a[i]).abs() <= 1e-3 * (upper - lower).cpu() + 1e-6).all())
        if not near and isinstance(method, SurfaceMethod):
            both = torch.stack([one[0], a[i]])[None]
            cost = method.surface(x[i : i + 1])(both.to(lower))[0]
            near = bool((cost[0] - cost[1]).abs() <= 1e-4 * cost.abs().max() + 1e-6)
        must(near, f"row {i} decides otherwise by itself than in a batch.")
