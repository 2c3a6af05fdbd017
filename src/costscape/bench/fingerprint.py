"""A problem in a few numbers, to tell whether two runs have the same data and the same cost."""

import hashlib
import json
from copy import deepcopy
from typing import Any

import torch
from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.problems.problem import Problem

DIGITS = ".6g"  # on which all machines agree
COST_DIGITS = ".4g"  # a cost may hold a number that was fitted


def facts_of(problem: Problem) -> list[Any]:
    """The source, the sizes and sums of the three parts, and the cost of four actions, as JSON."""
    task = deepcopy(problem.task).double()
    lower = task.feasible.bounds[0]
    a = task.feasible.sample(4, Generator(lower.device).manual_seed(0))
    with torch.no_grad():
        costs = task.cost(problem.data.train.y[:4, None].to(lower), a).mean(0)
    parts = (problem.data.train, problem.data.val, problem.data.test)
    return [
        problem.source,
        [len(part) for part in parts],
        [text for part in parts for text in _sums(part)],
        [format(cost, COST_DIGITS) for cost in costs.tolist()],
    ]


def digest_of_test_rows(problem: Problem) -> str:
    """A hash that is equal for runs with the same test rows."""
    test = problem.data.test
    return hashlib.sha256(json.dumps([len(test), _sums(test)]).encode()).hexdigest()[:8]


def digest_of_rows(*parts: Dataset) -> str:
    """A hash that is equal for the same rows in the same parts."""
    text = json.dumps([[len(part), _sums(part)] for part in parts])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _sums(part: Dataset) -> list[str]:
    return [format(s, DIGITS) for values in (part.x, part.y) for s in _weighted_sums(values)]


def _weighted_sums(values: Tensor) -> list[float]:
    """The sums of positive and of negative numbers, weighted by place, so that none cancel."""
    flat = values.detach().double().cpu().flatten()
    places = torch.linspace(1, 2, len(flat), dtype=torch.float64)
    return [float(places @ part) for part in (flat.clamp(min=0), flat.clamp(max=0))]
