"""Weights of candidates, from pairs that none of them learned from.

    g_w(x, a) = sum_c w_c g_c(x, a),    w on the simplex

Each held-out row i has J actions a_ij to choose from. A table holds what each candidate expects
them to cost, g_c(x_i, a_ij), and what they did cost, f(y_i, a_ij). The decision of any blend is
then a look-up, argmin_j sum_c w_c g_c(x_i, a_ij), so that thousands of blends can be judged.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.block_bootstrap import block_length, standard_error
from costscape.data import Dataset
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, Finite, Simplex
from costscape.solvers import Exhaustive, Separable, Solver
from costscape.solvers.auto import resolve
from costscape.task import SeparableTask, Task

ROWS, COSTLY_ROWS = 500, 128  # held-out rows of a fold, with an exact solver and with others
NEAR, SPREAD = 25, 17  # actions between the candidates' decisions, and over all of C
MIXES = 24  # actions between the decisions of several candidates, where C is no box


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Costs of J actions at n held-out rows, expected by K candidates and observed.

    By coordinate, k = d, for a SeparableTask on a Box, and as a whole, k = 1, elsewhere. Actions
    are sorted along J by coordinate.
    """

    action: Float[Tensor, "n J d"]
    expected: Float[Tensor, "n K J k"]
    observed: Float[Tensor, "n J k"]

    def costs(self, weights: Float[Tensor, "K"]) -> Float[Tensor, "n"]:
        """What the decisions of a blend cost, row by row."""
        g = torch.einsum("c,ncjk->njk", weights.to(self.expected), self.expected)
        return self.observed.gather(1, g.argmin(1, keepdim=True))[:, 0].sum(-1)

    def of(self, candidates: Sequence[int]) -> "HeldOut":
        """The same table of some of the candidates."""
        return replace(self, expected=self.expected[:, list(candidates)])


def costs_of(parts: Sequence[HeldOut], weights: Float[Tensor, "K"]) -> Float[Tensor, "n"]:
    """What the decisions of a blend cost on the rows of all folds."""
    return torch.cat([part.costs(weights) for part in parts]).double()


class Selection(ABC):
    """A frozen dataclass of settings: held-out costs -> weights of the candidates."""

    @abstractmethod
    def weights(self, parts: Sequence[HeldOut]) -> Float[Tensor, "K"]:
        """Weights on the simplex, from the tables of all folds."""


@dataclass(frozen=True)
class Greedy(Selection):
    """Adds the candidate that lowers the held-out cost of decisions most, ``rounds`` times.

    Candidates may be added again; the weights are their counts after the best round. Caruana,
    Niculescu-Mizil, Crew and Ksikes, Ensemble Selection from Libraries of Models, ICML 2004.
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


@dataclass(frozen=True)
class SlopeWeights(Selection):
    """Minimises the held-out slopes loss, a quadratic in the weights.

        min_w  mean_i int ( sum_c w_c dg_c/da (x_i, a) - df/da (y_i, a) )^2 da

    Better than ``Greedy`` where f is convex and rows are few; misled by jumps of f.
    """

    steps: int = 2000

    def weights(self, parts: Sequence[HeldOut]) -> Float[Tensor, "K"]:
        size = parts[0].expected.shape[1]
        A, b = torch.zeros(size, size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
        for part in parts:
            g, f = _slopes(part)
            A, b = A + (g @ g.T).cpu(), b + (g @ f).cpu()
        return on_simplex(A, b, self.steps)


def _slopes(part: HeldOut) -> tuple[Float[Tensor, "K m"], Float[Tensor, "m"]]:
    """Root-weighted slopes of each candidate and of the observed costs, in one row each."""
    a, g, f = part.action, part.expected, part.observed
    if g.shape[-1] == a.shape[-1]:
        apart = a.diff(dim=1).clamp(min=1e-9).sqrt()
        g, f = g.diff(dim=2) / apart.unsqueeze(1), f.diff(dim=1) / apart
    else:
        g, f = g - g.mean(2, keepdim=True), f - f.mean(1, keepdim=True)
    return g.transpose(0, 1).flatten(1).double(), f.flatten().double()


def on_simplex(A: Float[Tensor, "K K"], b: Float[Tensor, "K"], steps: int) -> Float[Tensor, "K"]:
    """argmin over the simplex of w' A w - 2 b' w, by accelerated projected gradients.

    It stops after ``steps``, or once Frank and Wolfe's gap, a bound on what is left to gain, is
    1e-12 of the largest eigenvalue of A.
    """
    C = Simplex(dim=len(b)).to(A)
    largest = torch.linalg.eigvalsh(A)[-1].clamp(min=1e-30)
    w = torch.full_like(b, 1 / len(b))
    ahead = w
    for k in range(steps):
        slope = 2 * (A @ w - b)
        if slope @ w - slope.min() <= 1e-12 * largest:
            break
        new = C.project(ahead - 0.5 / largest * 2 * (A @ ahead - b))
        ahead = new + k / (k + 3) * (new - w)
        w = new
    return w


def held_out(
    task: Task,
    models: Sequence[torch.nn.Module],
    data: Dataset,
    solver: Solver,
    seed: int,
) -> HeldOut:
    """The table of one fold, of models that did not learn from ``data``."""
    with torch.no_grad():
        surfaces = [ExpectedCost(task, model(data.x)) for model in models]
        decided = torch.stack([_decide(task, g, len(data), solver) for g in surfaces], 1)
        a = actions_between(task, decided, seed)
        if isinstance(task, SeparableTask) and isinstance(task.feasible, Box):
            expected = torch.stack([g.terms(a) for g in surfaces], 1)
            return HeldOut(a, expected, task.terms(data.y.unsqueeze(1), a))
        expected = torch.stack([g(a) for g in surfaces], 1)
        observed = task.cost(data.y.unsqueeze(1), a)
        return HeldOut(a, expected.unsqueeze(-1), observed.unsqueeze(-1))


def some_rows(task: Task, data: Dataset, solver: Solver) -> Dataset:
    """Evenly spread rows, fewer where a decision takes an iterative solver."""
    some = Scenarios(data.y.new_ones(1, 1), data.y[:1].unsqueeze(0))
    chosen = resolve(solver, ExpectedCost(task, some), task.feasible)
    most = ROWS if isinstance(chosen, Separable | Exhaustive) else COSTLY_ROWS
    return data[:: -(-len(data) // most)]


def actions_between(
    task: Task, decided: Float[Tensor, "n K d"], seed: int
) -> Float[Tensor, "n J d"]:
    """Actions among which a blend of the candidates may find its decision."""
    C = task.feasible
    n = len(decided)
    if isinstance(C, Finite):
        return C.actions.to(decided).expand(n, -1, -1)
    if isinstance(task, SeparableTask) and isinstance(C, Box):
        lower, upper = C.bounds
        t = torch.linspace(0, 1, NEAR, device=decided.device, dtype=decided.dtype)[:, None]
        least, most = decided.amin(1, keepdim=True), decided.amax(1, keepdim=True)
        near = least + t * (most - least)
        t = torch.linspace(0, 1, SPREAD, device=decided.device, dtype=decided.dtype)[:, None]
        spread = (lower + t * (upper - lower)).expand(n, -1, -1)
        return torch.cat([near, spread], 1).sort(1).values
    rng = Generator(decided.device).manual_seed(seed)
    drawn = torch.rand(
        MIXES, decided.shape[1], generator=rng, device=decided.device, dtype=decided.dtype
    )
    p = -drawn.clamp(min=1e-6).log()
    mixed = torch.einsum("mk,nkd->nmd", p / p.sum(1, keepdim=True), decided)
    return torch.cat([decided, C.project(mixed)], 1)


def clearly_behind(costs: Float[Tensor, "K n"], errors: float) -> list[int]:
    """The candidates that cost more than the best by over ``errors`` block standard errors."""
    best = int(costs.mean(1).argmin())
    behind = []
    for c in range(len(costs)):
        more = (costs[c] - costs[best]).double().cpu().numpy()
        if more.mean() > errors * standard_error(more, block_length(len(more))):
            behind.append(c)
    return behind


def _decide(task: Task, g: ExpectedCost, rows: int, solver: Solver) -> Tensor:
    return solver.coarse().minimise(g, task.feasible, rows).action
