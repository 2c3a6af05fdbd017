"""Costs of decisions on held-out rows: they choose epochs, and weight the candidates of a blend.

    g_w(x, a) = sum_c w_c g_c(x, a),    w on the simplex

Each held-out row i has J actions a_ij to choose from. A table holds what each candidate expects
them to cost, g_c(x_i, a_ij), and what they did cost, f(y_i, a_ij). The decision of any blend is
then a look-up, argmin_j sum_c w_c g_c(x_i, a_ij), so that thousands of blends can be judged.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from costscape.block_bootstrap import block_length, standard_error
from costscape.data import Dataset
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import ConstraintSet, Finite, RowSets, Whole
from costscape.solvers import Objective, Solver
from costscape.solvers.auto import resolve
from costscape.task import SeparableTask, Task
from costscape.training.fit_state import Score
from costscape.training.settings import Checked

ROWS, COSTLY_ROWS = 500, 128  # held-out rows of a fold, with an exact solver and with others
NEAR, SPREAD = 25, 17  # actions between the candidates' decisions, and over all of C
MIXES = 24  # actions between the decisions of several candidates, where C is no box


def mean_cost(task: Task, y: Float[Tensor, "n ..."]) -> ExpectedCost:
    """mean_i f(y_i, a) over the labels, whatever x."""
    return ExpectedCost(task, Scenarios(y.new_full((1, len(y)), 1 / len(y)), y.unsqueeze(0)))


def validation_cost(
    task: Task,
    data: Dataset,
    solver: Solver,
    surface: Callable[[nn.Module, Tensor], Objective] | None = None,
) -> Score:
    """score(model): the mean cost on ``data`` of the decisions of a model of scenarios.

    ``surface`` reads a model that answers with something else. Solvers run coarsely. Iterative
    ones start at the best constant action, so that a resumed fit scores as an unbroken one does,
    and see every k-th row only where there are more than 128.
    """
    some = data[:: max(1, len(data) // 256)]
    g = mean_cost(task, task.join(some.x, some.y))
    chosen = resolve(solver, g, task.feasible)
    if not chosen.quick:
        data = data[:: max(1, len(data) // COSTLY_ROWS)]
    start = chosen.minimise(g, task.feasible, 1).action.expand(len(data), -1)
    C, y = task.sets(data.x), task.join(data.x, data.y)
    start = C.project(start) if C.by_row else start

    def score(model: nn.Module) -> float:
        g = surface(model, data.x) if surface else ExpectedCost.at(task, data.x, model(data.x))
        a = solver.coarse().minimise(g, C, len(data), start).action
        return float(task.cost(y, a).mean())

    return score


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Costs of J actions at n held-out rows, expected by K candidates and observed.

    By coordinate, k = d, for a SeparableTask on a Box, also of whole units, with sorted actions;
    k = 1 elsewhere.
    """

    action: Float[Tensor, "n J d"]
    expected: Float[Tensor, "n K J k"]
    observed: Float[Tensor, "n J k"]

    def costs(self, weights: Float[Tensor, "K"]) -> Float[Tensor, "n"]:
        """What the decisions of a blend cost, row by row."""
        g = torch.einsum("c,ncjk->njk", weights.to(self.expected), self.expected)
        return self.observed.gather(1, g.argmin(1, keepdim=True))[:, 0].sum(-1)

    def of(self, candidates: Sequence[int]) -> "HeldOut":
        """The table of some candidates."""
        return replace(self, expected=self.expected[:, list(candidates)])


def costs_of(parts: Sequence[HeldOut], weights: Float[Tensor, "K"]) -> Float[Tensor, "n"]:
    """What the decisions of a blend cost on the rows of all folds."""
    return torch.cat([part.costs(weights) for part in parts]).double()


def costs_of_each(parts: Sequence[HeldOut]) -> Float[Tensor, "K n"]:
    """What the decisions of each candidate cost on the rows of all folds."""
    one = torch.eye(parts[0].expected.shape[1], dtype=torch.float64)
    return torch.stack([costs_of(parts, w) for w in one])


@dataclass(frozen=True)
class Candidate:
    """Cost of decisions on held-out rows, its standard error by blocks, fits and weight."""

    name: str
    cost: float
    standard_error: float
    folds: int
    weight: float


def candidate_line(name: str, costs: Tensor, folds: int, weight: float) -> Candidate:
    paid = costs.cpu().numpy()
    error = standard_error(paid, block_length(len(paid)))
    return Candidate(name, float(paid.mean()), error, folds, weight)


class Selection(Checked, ABC):
    """A frozen dataclass of settings: held-out costs -> weights of the candidates."""

    @abstractmethod
    def weights(self, parts: Sequence[HeldOut]) -> Float[Tensor, "K"]:
        """Weights on the simplex, from the tables of all folds."""


@dataclass(frozen=True)
class Greedy(Selection):
    """Adds the candidate that lowers the held-out cost of decisions most, again and again.

    Candidates may be added several times; the weights are their counts after the best round.

    Args:
        rounds: int, default 20. How many candidates are added.

    Caruana, Niculescu-Mizil, Crew and Ksikes, Ensemble Selection from Libraries of
    Models, ICML 2004.

    >>> Greedy(rounds=10).rounds
    10
    """

    rounds: int = 20

    def weights(self, parts: Sequence[HeldOut]) -> Float[Tensor, "K"]:
        one = torch.eye(parts[0].expected.shape[1], dtype=torch.float64)
        counts, best, least = torch.zeros_like(one[0]), one[0], float("inf")
        for size in range(1, self.rounds + 1):
            costs = [float(costs_of(parts, (counts + pick) / size).mean()) for pick in one]
            i = min(range(len(one)), key=costs.__getitem__)
            counts = counts + one[i]
            if costs[i] < least:
                best, least = counts / size, costs[i]
        return best


def clearly_behind(costs: Float[Tensor, "K n"], errors: float) -> list[int]:
    """The candidates that cost more than the best by over ``errors`` block standard errors."""
    more = (costs - costs[costs.mean(1).argmin()]).double().cpu().numpy()
    block = block_length(more.shape[1])
    return [c for c, d in enumerate(more) if d.mean() > errors * standard_error(d, block)]


def held_out(
    task: Task, models: Sequence[nn.Module], data: Dataset, solver: Solver, seed: int
) -> HeldOut:
    """The table of one fold, of models that did not learn from ``data``."""
    with torch.no_grad():
        surfaces = [ExpectedCost.at(task, data.x, model(data.x)) for model in models]
        decide, C, y = solver.coarse().minimise, task.sets(data.x), task.join(data.x, data.y)
        decided = [decide(g, C, len(data)).action for g in surfaces]
        a = actions_between(task, torch.stack(decided, 1), seed, C)
        if isinstance(task, SeparableTask) and C.by_coordinate:
            expected = torch.stack([g.terms(a) for g in surfaces], 1)
            return HeldOut(a, expected, task.terms(y.unsqueeze(1), a))
        expected = torch.stack([g(a) for g in surfaces], 1)
        observed = task.cost(y.unsqueeze(1), a)
        return HeldOut(a, expected.unsqueeze(-1), observed.unsqueeze(-1))


def some_rows(task: Task, data: Dataset, solver: Solver) -> Dataset:
    """Evenly spread rows, fewer where a decision takes an iterative solver."""
    chosen = resolve(solver, mean_cost(task, task.join(data.x[:1], data.y[:1])), task.feasible)
    most = ROWS if chosen.quick else COSTLY_ROWS
    return data[:: -(-len(data) // most)]


def actions_between(
    task: Task, decided: Float[Tensor, "n K d"], seed: int, sets: ConstraintSet | None = None
) -> Float[Tensor, "n J d"]:
    """Actions among which a blend of the candidates may find its decision.

    ``sets`` is the set of these rows; None for that of the task.
    """
    C, n = task.feasible if sets is None else sets, len(decided)
    like: dict[str, Any] = {"device": decided.device, "dtype": decided.dtype}
    if isinstance(C, Finite):
        return C.actions.to(decided).expand(n, -1, -1)
    if isinstance(task, SeparableTask) and C.by_coordinate:
        lower, upper = C.row_bounds if isinstance(C, RowSets) else C.bounds
        least, most = decided.amin(1, keepdim=True), decided.amax(1, keepdim=True)
        near = least + torch.linspace(0, 1, NEAR, **like)[:, None] * (most - least)
        spread = lower + torch.linspace(0, 1, SPREAD, **like)[:, None] * (upper - lower)
        a = torch.cat([near, spread.expand(n, -1, -1)], 1).sort(1).values
        if isinstance(C, RowSets):
            return C.project(a)  # whole units, where rows have them
        return C.rounded(a) if isinstance(C, Whole) else a
    rng = Generator(decided.device).manual_seed(seed)
    p = -torch.rand(MIXES, decided.shape[1], generator=rng, **like).clamp(min=1e-6).log()
    mixed = torch.einsum("mk,nkd->nmd", p / p.sum(1, keepdim=True), decided)
    return torch.cat([decided, C.project(mixed)], 1)
