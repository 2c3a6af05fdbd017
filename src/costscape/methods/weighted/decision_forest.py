"""Decision forest: a forest whose splits minimise the cost of decisions, not the error of y.

    g(x, a) = sum_i w_i(x) f(y_i, a),
    w_i(x) = mean over trees t of 1[leaf_t(x_i) = leaf_t(x)] / (rows in leaf_t(x))

A split of a node into rows L and R costs

    min_a sum_{i in L} f(y_i, a)  +  min_a sum_{i in R} f(y_i, a).

Kallus and Mao, Stochastic Optimization Forests, Management Science 2023. They approximate these
minima to second order around the optimum of the node. That takes a Hessian, and costs with kinks
and jumps have none. Here each minimum is exact, but over a list of candidate actions.
"""

from dataclasses import dataclass, field
from functools import cache
from math import ceil

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.methods.weighted.decision_tree import grow_tree
from costscape.methods.weighted.forest_weights import (
    Forest,
    ForestMethod,
    Grower,
    Nodes,
    forest_of,
)
from costscape.models import Standardise
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Finite, Whole
from costscape.solvers import Auto, Solver
from costscape.solvers.auto import resolve, without_programs
from costscape.task import SeparableTask, Task
from costscape.training.settings import Count, Share

VALUES, ACTIONS = 32, 128  # candidates: values of each coordinate, or actions
GROUPS = 128  # of neighbouring rows, whose optima bound the values of each coordinate
SIZES = (5, 10, 20, 40, 80)  # rows of a group, as of leaves
MOST = 1000  # rows that give the optimum of all
BLOCK = 2**22  # numbers of one evaluation of f
APART = 10**6  # between the random numbers of two seeds


@dataclass
class DecisionForest(ForestMethod):
    """Weights on the outcomes of rows that share leaves, in trees grown on the cost of decisions.

    Args:
        task: Task.
        trees: int, default 100.
        min_leaf: int or None, the default. The fewest rows of a tree's sample in a leaf. None
            takes the one of 5, 10, 20, 40, 80 whose forest of 20 trees costs least on validation.
        features: float in (0, 1], default 1/3. The share of the features, drawn at random, that
            each split looks at; two at least.
        sample: float in (0, 1], default 0.8. The share of the rows, drawn without replacement,
            that chooses the splits of a tree. Weights count all training rows.
        candidates: int or None, the default. How many actions score a split. For a SeparableTask
            on a Box: values of each coordinate, on an even grid between the least and the largest
            optimum of 128 groups of 5 to 80 neighbouring rows; None takes 32. Otherwise: the
            optimum of all rows and of groups, or all actions of a small Finite; None takes 128.
        solver: Solver, default Auto(). Also finds the candidates.
        seed: int, default 0.

    Each node tries up to 32 cuts of each feature. A node is a leaf where no split lowers the cost.

    Cost: evaluates f at n x candidates pairs. A tree takes, at each of its levels, additions of
    rows x features tried x candidates numbers (x d for a SeparableTask on a Box).

    >>> import torch, costscape as cs
    >>> x = torch.arange(40.0)[:, None]
    >>> y = (x >= 20) + 0.1 * (x % 2)
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 2.0, dim=1), convex=True)
    >>> forest = cs.DecisionForest(task, trees=5, min_leaf=4).fit(x, y)
    >>> [bool(a > 0.5) for a in forest.decide(torch.tensor([[3.0], [29.0]]))]
    [False, True]
    """

    trial = 20  # with fewer, trials favour large leaves, which average more

    task: Task
    trees: Count = 100
    min_leaf: int | None = None
    features: Share = 1 / 3
    sample: Share = 0.8
    candidates: Count | None = None
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def _grower(self, train: Dataset) -> Grower:
        assert self.task_ is not None
        a = candidate_actions(self.task_, train, self.candidates, self.solver, self.seed)
        T = candidate_costs(self.task_, self.task_.join(train.x, train.y), a).cpu()
        x = train.x.flatten(1).float().cpu()
        tried = min(x.shape[1], max(2, ceil(self.features * x.shape[1])))

        @cache  # the trees of the chosen trial are trees of the forest
        def tree(min_leaf: int, t: int) -> tuple[Nodes, Tensor, int]:
            rng = Generator().manual_seed(APART * self.seed + t)
            size = max(min_leaf, round(self.sample * len(x)))
            rows = torch.randperm(len(x), generator=rng)[:size]
            return grow_tree(x, T, rows, min_leaf, tried, rng)

        def grow(min_leaf: int, trees: int) -> Forest:
            grown = [tree(min_leaf, t) for t in range(trees)]
            nodes, leaf, depth = zip(*grown, strict=True)
            return forest_of(train.y, list(nodes), torch.stack(leaf, 1), max(depth), min_leaf)

        return grow


def candidate_costs(
    task: Task, y: Float[Tensor, "n ..."], a: Float[Tensor, "J d"]
) -> Float[Tensor, "n c J"]:
    """f(y_i, a_j), with c = d summands where coordinates are decided alone, else c = 1.

    The mean over j is subtracted, which changes no comparison and keeps digits.
    """
    numbers = task.width or 4 * max(task.feasible.dim, y[0].numel())
    costs = []
    with torch.no_grad():
        for part in y.split(max(1, BLOCK // (numbers * len(a)))):
            if _by_coordinate(task):
                assert isinstance(task, SeparableTask)
                costs.append(task.terms(part.unsqueeze(1), a))
            else:
                costs.append(task.cost(part.unsqueeze(1), a).unsqueeze(-1))
    T = torch.cat(costs).mT.contiguous()
    return T - T.mean(2, keepdim=True)


def candidate_actions(
    task: Task, train: Dataset, candidates: int | None, solver: Solver, seed: int
) -> Float[Tensor, "J d"]:
    """The actions that score a split; where coordinates are decided alone, a grid of values."""
    C, alone = task.feasible, _by_coordinate(task)
    J = candidates or (VALUES if alone else ACTIONS)
    if isinstance(C, Finite) and len(C.actions) <= J:
        return C.actions
    best = _optima(task, train, GROUPS if alone else J - 1, solver, seed)
    if not alone:
        return best
    low, high = best.amin(0), best.amax(0)
    a = low + torch.linspace(0, 1, J).to(low)[:, None] * (high - low)
    return C.rounded(a) if isinstance(C, Whole) else a


def _by_coordinate(task: Task) -> bool:
    return isinstance(task, SeparableTask) and task.feasible.by_coordinate


def _optima(
    task: Task, train: Dataset, groups: int, solver: Solver, seed: int
) -> Float[Tensor, "G d"]:
    """The best action for all rows, and for each of some groups of neighbouring rows."""
    outcomes = task.join(train.x, train.y)
    y = outcomes[:: -(-len(train) // MOST)].unsqueeze(0)
    g = ExpectedCost(task, Scenarios(y.new_full(y.shape[:2], 1 / y.shape[1]), y))
    chosen = resolve(solver, g, task.feasible)
    if isinstance(solver, Auto):  # a program for each group takes too long
        chosen = without_programs(chosen)
    best = chosen.minimise(g, task.feasible, 1).action
    x = Standardise(train.x)(train.x).flatten(1).double()
    order = torch.randperm(len(x), generator=Generator().manual_seed(seed))
    centres = order[:groups].to(x.device)
    if len(centres) == 0:
        return best
    most = min(max(SIZES), len(x))
    near = torch.cdist(x[centres], x).topk(most, largest=False).indices
    size = torch.tensor(SIZES).repeat(len(centres))[: len(centres), None].clamp(max=most)
    w = (torch.arange(most) < size) / size
    g = ExpectedCost(task, Scenarios(w.to(train.y), outcomes[near], own=True))
    start = best.expand(len(centres), -1)
    found = chosen.coarse().minimise(g, task.feasible, len(centres), start)
    return torch.cat([best, found.action])
