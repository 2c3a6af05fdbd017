"""Costs that misbehave are named, told of in a warning, or decided as they should be."""

import sys
import warnings

import numpy as np
import torch
from campaign import Campaign, main

import costscape as cs

RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 3)), 3 * RNG.random((60, 2))
BOX, BUDGET = (0.0, 4.0), 3.0
calls = [0]


def away(y, a):
    return (y - a).abs().sum(-1)


def counted(y, a):
    calls[0] += 1
    return away(y, a) + 0.1 * calls[0]


def writes_a(y, a):
    a.mul_(1.5)
    return away(y, a)


def writes_y(y, a):
    y += 0.5
    return away(y, a)


def raises(y, a):
    raise KeyError("price")


MATRIX = torch.ones(2, 2).double()
# the cost, whether it is given as terms of a SeparableTask, what must come, words of the message
COSTS = {
    "writes into a": (writes_a, ValueError, "changed a"),
    "writes into y": (writes_y, ValueError, "changed y"),
    "random": (lambda y, a: away(y, a) * torch.rand(()), ValueError, "two calls differ"),
    "counts its calls": (counted, ValueError, "two calls differ"),
    "raises": (raises, KeyError, "price"),
    "no torch": (lambda y, a: 3.0, TypeError, "torch tensor"),
    "None": (lambda y, a: None, TypeError, "torch tensor"),
    "numpy": (lambda y, a: away(y, a).numpy(), TypeError, "torch tensor"),
    "one number": (lambda y, a: away(y, a).sum(), ValueError, "must return shape"),
    "terms": (lambda y, a: (y - a).abs(), ValueError, "must return shape"),
    "keeps the axis": (lambda y, a: away(y, a)[..., None], ValueError, "must return shape"),
    "no broadcast": (lambda y, a: away(y[0], a[0]), ValueError, "cost"),
    "wrong coordinate": (lambda y, a: (y[..., 5] - a[..., 0]).abs(), ValueError, "broadcast"),
    "whole numbers": (lambda y, a: (y > a).sum(-1), TypeError, "must return torch.float32"),
    "booleans": (lambda y, a: (y > a).any(-1), TypeError, "must return torch.float32"),
    "complex": (lambda y, a: away(y, a) * 1j, TypeError, "must return torch.float32"),
    "NaN": (lambda y, a: away(y, a) * torch.nan, ValueError, "must be finite"),
    "infinite": (lambda y, a: away(y, a) / 0, ValueError, "must be finite"),
    "root of a negative number": (
        lambda y, a: (a.sum(-1) - 4).sqrt() + away(y, a),
        ValueError,
        "must be finite|nan",
    ),
    "NaN at the edge": (lambda y, a: away(y, a) + 0 * (0 / a).sum(-1), ValueError, "nan"),
    "mean over the batch": (
        lambda y, a: away(y, a) - away(y, a).mean(),
        ValueError,
        "other rows of the batch",
    ),
    "rank in the batch": (
        lambda y, a: away(y, a) / away(y, a).max(),
        ValueError,
        "other rows of the batch",
    ),
    "no slope": (lambda y, a: away(y, a.detach()), TypeError, "slope"),
    "item": (lambda y, a: away(y, a) * float(a.sum()), ValueError, "other rows of the batch"),
    "matrix of doubles": (lambda y, a: away(y @ MATRIX, a), ValueError, "failed"),
    "jumps": (lambda y, a: away(y, a) + (a > 1).to(a.dtype).sum(-1), UserWarning, "jumps"),
    "floor": (lambda y, a: (y - a.floor()).abs().sum(-1), UserWarning, "jumps"),
    "sign": (lambda y, a: away(y, a) + torch.sign(a - 1).sum(-1), UserWarning, "jumps"),
    "round": (lambda y, a: (y - a.round()).abs().sum(-1), UserWarning, "jumps"),
    "flat": (lambda y, a: away(y, a.clamp(0.9, 1)), UserWarning, "no slope"),
    "constant 1e6": (lambda y, a: away(y, a) + 1e6, UserWarning, "constant"),
    "constant 1e8": (lambda y, a: away(y, a) + 1e8, UserWarning, "constant"),
    "no torch in the gradient": (
        lambda y, a: torch.tensor(np.abs(y.numpy() - a.detach().numpy()).sum(-1)),
        TypeError,
        "slope",
    ),
}
# facts of a task that its cost does not keep
FACTS = {
    "not convex": (
        lambda C: cs.Task(lambda y, a: -((y - a) ** 2).sum(-1), C, convex=True),
        ValueError,
        "not convex",
    ),
    "not a sum": (
        lambda C: cs.SeparableTask(lambda y, a: (y - a).abs() * a.sum(-1, keepdim=True), C),
        ValueError,
        "depend on a_i only",
    ),
    "a sum for terms": (
        lambda C: cs.SeparableTask(lambda y, a: (y - a).abs().sum(-1), C),
        ValueError,
        "must return shape",
    ),
    "hindsight of another shape": (
        lambda C: cs.Task(away, C, hindsight=lambda y: y[:, :1]),
        ValueError,
        "hindsight",
    ),
    "hindsight outside": (
        lambda C: cs.Task(away, C, hindsight=lambda y: y + 9),
        ValueError,
        "hindsight",
    ),
}


def outcome(task):
    """The error, the first warning, or None: fit, decide, evaluate."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = cs.NearestNeighbours(task, k=9).fit(X, Y)
            model.decide(X[:3])
            cs.evaluate(model, X[:20], Y[:20])
        except Exception as error:
            return error
    mine = [w.message for w in told if issubclass(w.category, UserWarning)]
    return mine[0] if mine else None


def run():
    import re

    found = Campaign(__file__, "a cost that misbehaves is named or told of")
    sets = (lambda: cs.Budget(total=BUDGET, dim=2), lambda: cs.Box(*BOX, dim=2))
    for make in sets:
        for name, (cost, kind, words) in COSTS.items():
            got = outcome(cs.Task(cost, make()))
            right = isinstance(got, kind) and re.search(words, str(got))
            found.case(right, f"{name}: {type(got).__name__}: {got}")
        for name, (task, kind, words) in FACTS.items():
            got = outcome(task(make()))
            right = isinstance(got, kind) and re.search(words, str(got))
            found.case(right, f"{name}: {type(got).__name__}: {got}")
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(run, __doc__))
