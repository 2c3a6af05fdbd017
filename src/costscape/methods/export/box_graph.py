"""The exact search on a box in operators of ONNX: x -> the decision and its expected cost.

    x -> scenarios (w, y) -> grid -> promising cells -> lowest minima -> halving -> a, g(x, a)

The steps and the grids are those of ``solvers.Separable``; their number is fixed, so the graph
has no loops. A box of whole units is searched value by value. The network computes in the
precision of the model, the search in double precision: in single precision g is flat to rounding
over up to a hundredth of the interval, and two machines would decide differently.
"""

from copy import deepcopy

import numpy as np
import torch
from jaxtyping import Float
from onnx import helper
from torch import Tensor, nn

from costscape.methods.ensemble import Blended
from costscape.methods.export.scenario_graph import TRACED, ScenarioParts, rows_like
from costscape.methods.export.search_steps import Minima, SearchSteps
from costscape.methods.export.traced import Graph, Part, traced
from costscape.methods.surfaces import ScenarioMethod
from costscape.scenarios import ExpectedCost
from costscape.sets import Box, Whole
from costscape.solvers import Auto, Separable, WholeSeparable
from costscape.solvers.box_search import ALL_MINIMA, CONVEX_GRID, SHARED_PARTS
from costscape.task import SeparableTask

MOST_NUMBERS = 2**24  # costs of one row in memory at once: 128 MiB
TABLE = 2**22  # numbers of a table of f that a file may have: 32 MiB
MOST_VALUES = 4096  # of a coordinate in whole units

KIND = {torch.float64: 11, torch.float32: 1}  # the numbers of these types in ONNX
OUTPUTS = ("decision", "expected_cost")


class TermsGraph(nn.Module):
    """w, y, a -> the d summands of g at actions (B, J, d)."""

    def __init__(self, task: SeparableTask) -> None:
        super().__init__()
        self.task = task

    def forward(self, w: Tensor, y: Tensor, a: Tensor) -> Tensor:
        cost = self.task.terms(y.unsqueeze(1), a.unsqueeze(2))
        return torch.matmul(cost.mT, w[:, None, :, None]).squeeze(-1)


def box_graph(method: ScenarioMethod, dtype: torch.dtype = torch.float64) -> Graph:
    """The graph, with the input x and the outputs decision and expected_cost.

    Args:
        method: ScenarioMethod. Fitted; ``refusal`` is None.
        dtype: precision of the search.
    """
    g = surface(method)
    task, y = deepcopy(g.task).to(dtype), g.scenarios.values.to(dtype)
    assert isinstance(task, SeparableTask)
    S, d = g.scenarios.weights.shape[1], task.feasible.dim
    w = torch.full((TRACED, S), 1 / S, dtype=dtype)
    outcomes = y if g.shared else y.expand(TRACED, *y.shape[1:]).contiguous()
    lower, upper = (end.to(dtype) for end in task.feasible.bounds)
    a = ((lower + upper) / 2).expand(TRACED, 5, d)
    rows = {0: "rows"}
    axes = [rows, {} if g.shared else rows, {**rows, 1: "actions"}]
    scenarios = ScenarioParts(method)
    *found, terms = traced([*scenarios.parts, Part(TermsGraph(task), [w, outcomes, a], axes)])
    graph = Graph(str(dtype).removeprefix("torch."))
    names = [graph.op("Cast", name, to=KIND[dtype]) for name in scenarios.add(graph, found)]
    if g.shared:  # constants, and no function of x
        names[1] = graph.constant(y.numpy())
    C = task.feasible
    box = C.base if isinstance(C, Whole) else C
    assert isinstance(box, Box)
    steps = SearchSteps(graph, terms, names, box.lower.numpy(), box.upper.numpy())
    values = values_of(C) if isinstance(C, Whole) else None
    a_name, cost = (
        _box_search(steps, method, g, y) if values is None else steps.best_of(values.numpy())
    )
    own = KIND[g.task.feasible.bounds[0].dtype]
    for name, output in zip((a_name, cost), OUTPUTS, strict=True):
        graph.nodes.append(helper.make_node("Cast", [name], [output], to=own))
    return graph


def _box_search(
    steps: SearchSteps, method: ScenarioMethod, g: ExpectedCost, y: Tensor
) -> tuple[str, str]:
    s, task = settings(method), g.task
    points = s.grid if _has_table(method, g) else CONVEX_GRID if task.convex else s.own_grid
    basins = 1 if task.convex else min(s.basins, points)
    positions, step = np.linspace(0, 1, points), 1 / (points - 1)
    if _has_table(method, g):
        double = deepcopy(task).to(y.dtype)
        assert isinstance(double, SeparableTask)
        at = torch.from_numpy(steps.actions_of(positions)).to(y.dtype)
        grid = steps.on_table(double.terms(y, at.unsqueeze(1)).permute(2, 0, 1).numpy())
    else:
        grid = steps.on_grid(positions)
    minima = steps.local_minima(grid, basins)
    t = steps.look_up(positions, minima.index)
    finer = (s.grid - 1) // (points - 1)
    if not task.convex and s.cells > 0 and finer > 1:
        step /= finer
        fine = steps.cut(grid, minima, positions, s.cells, step * np.arange(finer + 1.0))
        minima = steps.local_minima(steps.costs_at(fine), basins)
        t = steps.gather(fine, minima.index)
    parts = SHARED_PARTS if g.shared and not task.convex else 2
    least = 2.0**-s.halvings
    found = Minima(minima.cost, t)
    if basins > 1:
        found, step = steps.halve(found, basins, step, max(least, ALL_MINIMA), parts)
        found = steps.lowest(found)
    found, _ = steps.halve(found, 1, step, least, parts)
    return steps.answer(found)


def refusal(method: object) -> str | None:
    """Why the search of a method does not fit into a graph, as a clause; None where it does."""
    if not isinstance(method, ScenarioMethod):
        return f"{type(method).__name__} has no scenarios to search over"
    task, C = method.task, method._task().feasible
    if not isinstance(task, SeparableTask):
        return "the cost is no sum over coordinates (a Task and no SeparableTask)"
    if task.chance is not None:
        return "the task keeps a service level"
    if not isinstance(C, Box | Whole) or not C.by_coordinate:
        return f"the set is a {type(C).__name__} and no Box"
    if isinstance(C, Whole) and (C.step == 0).any():
        return "the set has whole and continuous coordinates"
    if isinstance(C, Whole) and int(C.size.max()) > MOST_VALUES:
        return f"a coordinate has {int(C.size.max()):,} values, more than {MOST_VALUES:,}"
    if not isinstance(method.solver, Auto | Separable | WholeSeparable):
        return f"the solver is {type(method.solver).__name__}, whose steps are not in a graph"
    model = method._fitted()
    if isinstance(model, Blended):
        total = sum(m(rows_like(method, 1)).weights.shape[1] for m in model.members)
        if total > model.most:
            return f"the blend thins {total:,} scenarios to {model.most:,}"
    if (count := numbers(method)) > MOST_NUMBERS:
        return f"the search holds {count:,} costs of a row at once"
    return None


def numbers(method: ScenarioMethod) -> int:
    """Costs that the search holds at once for one row."""
    g, s = surface(method), settings(method)
    C = g.task.feasible
    actions = s.own_grid
    if isinstance(C, Whole):
        actions = int(C.size.max())
    elif g.convex:
        actions = CONVEX_GRID
    elif not _has_table(method, g):
        actions = max(actions, s.cells * ((s.grid - 1) // (s.own_grid - 1) + 1))
    return int(actions * g.scenarios.weights.shape[1] * C.dim)


def settings(method: ScenarioMethod) -> Separable:
    """The settings of the search."""
    return method.solver if isinstance(method.solver, Separable) else Separable()


def surface(method: ScenarioMethod) -> ExpectedCost:
    """g at a row of zeros, for the shapes and the shared outcomes."""
    with torch.no_grad():
        g = method._surface(rows_like(method, 1))
    assert isinstance(g, ExpectedCost)
    return g


def values_of(C: Whole) -> Float[Tensor, "K d"]:
    """The values of each coordinate; shorter ones repeat their last value."""
    k = torch.arange(int(C.size.max()))[:, None]
    return C.actions(k.minimum(C.size - 1))


def _has_table(method: ScenarioMethod, g: ExpectedCost) -> bool:
    """Whether the file has f on the fine grid: where outcomes are shared and f is not convex."""
    size = settings(method).grid * g.scenarios.values.shape[1] * g.task.feasible.dim
    return g.shared and not g.convex and size <= TABLE
