"""A task and its rows in a few numbers, by which a stored fit knows them again.

The cost is code. Its values stand for it: f at every row and at actions that include corners of C,
for each action the mean, the deviation, the least and the largest, to four digits, on which all
machines agree. A fine at one corner of C for one row is among them. The rows count byte by byte.
"""

import hashlib

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.data import Dataset
from costscape.methods.cost_probe import spread
from costscape.sets import ConstraintSet
from costscape.task import Task

DIGITS = ".4g"
HELD = 2**20  # numbers of y and a in one call of f, about


def cost_fingerprint(task: Task, y: Float[Tensor, "n ..."]) -> str:
    """f at all rows of y, context joined, and at some actions, as text."""
    a = probing_actions(task.feasible)
    rows = max(1, HELD // (len(a) * max(y[0].numel(), a.shape[-1])))
    with torch.no_grad():
        parts = [task.cost(part.unsqueeze(1).to(a), a).double() for part in y.split(rows)]
    cost = torch.cat(parts).cpu()
    known = cost.nan_to_num(0.0, 0.0, 0.0)  # an infinite cost is counted, not added
    facts = [known.mean(0), known.std(0, correction=0), cost.amin(0), cost.amax(0)]
    facts.append((~cost.isfinite()).double().sum(0))
    return " ".join(format(value, DIGITS) for value in torch.stack(facts).flatten().tolist())


def probing_actions(feasible: ConstraintSet) -> Float[Tensor, "k d"]:
    """Both ends of the bounds, ends by turns, and actions between, all projected to C."""
    lower, upper = feasible.bounds
    turns = (torch.arange(len(lower), device=lower.device) % 2).to(lower)
    shares = torch.cat([spread(lower), turns[None], 1 - turns[None]])
    return feasible.project(lower + shares * (upper - lower))


def rows_digest(*parts: Dataset) -> str:
    """A hash of all numbers of these rows, x beside y."""
    digest = hashlib.sha256()
    for part in parts:
        for values in (part.x, part.y):
            digest.update(repr((tuple(values.shape), str(values.dtype))).encode())
            digest.update(values.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
