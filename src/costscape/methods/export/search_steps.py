"""The steps of a search in one variable, for all rows and coordinates, as operators of ONNX.

They are those of ``solvers.grid_search``; positions t are shares of an interval, 0 to 1. Tensors
are (B, J, d) where costs are computed and (B, d, J) where one looks along the grid.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from costscape.methods.export.traced import Graph, Traced

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Minima:
    """Names of the costs and the positions or indices of some minima, the lowest first."""

    cost: str
    index: str


class SearchSteps:
    """Adds steps to a graph.

    Args:
        graph: Graph. Where the nodes go.
        terms: Traced. The module w, y, a -> summands of g (B, J, d).
        scenarios: list of two names. w and y.
        lower: numpy array (d,). Lower bounds.
        upper: numpy array (d,). Upper bounds.
    """

    def __init__(
        self, graph: Graph, terms: Traced, scenarios: list[str], lower: Numbers, upper: Numbers
    ) -> None:
        self.graph, self.terms, self.scenarios = graph, terms, scenarios
        self.lower, self.upper, self.dim = lower, upper, len(lower)
        self._ends = [graph.constant(v) for v in (lower, upper, upper - lower)]
        rows = graph.op("Shape", scenarios[0], start=0, end=1)
        self._one = graph.index(1)
        self._rows = rows

    def actions_of(self, positions: Numbers) -> Numbers:
        """The actions (J, d) at shares (J,) of the box."""
        actions: Numbers = self.lower + positions[:, None] * (self.upper - self.lower)
        return actions

    def on_grid(self, positions: Numbers) -> str:
        """The costs (B, d, J) at positions that all rows share."""
        actions = self.graph.constant(self.actions_of(positions)[None])
        return self._turned(self._costs(self._for_all_rows(actions, len(positions))))

    def on_table(self, table: Numbers) -> str:
        """The same from a table (d, J, S) of f at outcomes that all rows share."""
        d, J, S = table.shape
        g = self.graph
        flat = g.op("MatMul", self.scenarios[0], g.constant(table.reshape(d * J, S).T))
        return str(g.op("Reshape", flat, g.index(-1, d, J)))

    def costs_at(self, t: str) -> str:
        """The costs (B, d, J) at positions (B, d, J)."""
        return self._turned(self._costs(self._actions(self._turned(t))))

    def best_of(self, values: Numbers) -> tuple[str, str]:
        """The best of some actions (K, d), coordinate by coordinate, and its cost."""
        g = self.graph
        costs = self._costs(self._for_all_rows(g.constant(values[None]), len(values)))
        at = g.op("ArgMin", costs, axis=1, keepdims=0)
        least = g.op("ReduceMin", costs, self._one, keepdims=0)
        action = g.op("GatherElements", g.constant(values), at, axis=0)
        return action, self._summed(least)

    def local_minima(self, costs: str, n: int) -> Minima:
        """Costs and indices (B, d, n) of the n lowest local minima; a plateau counts as one."""
        g = self.graph
        if n == 1:
            last = {"axis": -1, "keepdims": 1}
            least = g.op("ReduceMin", costs, g.index(-1), keepdims=1)
            return Minima(least, g.op("ArgMin", costs, **last))
        before, after = self._cut_off(costs, 0, -1), self._cut_off(costs, 1, None)
        first = self._cut_off(costs, 0, 1)
        true = g.op("Equal", first, first)
        falls = g.op("Concat", true, g.op("Less", after, before), axis=-1)
        rises = g.op("Concat", g.op("LessOrEqual", before, after), true, axis=-1)
        is_minimum = g.op("And", falls, rises)
        open_ = g.op("Where", is_minimum, costs, g.constant(np.inf))
        best, index = g.op("TopK", open_, g.index(n), outputs=2, axis=-1, largest=0)
        exists = g.op("Less", best, g.constant(np.inf))
        return Minima(
            g.op("Where", exists, best, self._cut_off(best, 0, 1)),
            g.op("Where", exists, index, self._cut_off(index, 0, 1)),
        )

    def cut(self, costs: str, minima: Minima, positions: Numbers, n: int, inner: Numbers) -> str:
        """Positions (B, d, n x len(inner)) in the n most promising cells of the grid.

        Those beside minima come first, then those with low ends.
        """
        g, cells = self.graph, len(positions) - 1
        low = g.op("Min", self._cut_off(costs, 0, -1), self._cut_off(costs, 1, None))
        left = g.op("Sub", minima.index, self._one)
        beside = g.op("Concat", left, minima.index, axis=-1)
        ends = (g.constant(end, np.int64) for end in (0, cells - 1))
        beside = g.op("Clip", beside, *ends)
        chosen = g.op("Expand", g.constant(-np.inf), g.op("Shape", beside))
        low = g.op("ScatterElements", low, beside, chosen, axis=-1)
        n = min(n, cells)
        _, index = g.op("TopK", low, g.index(n), outputs=2, axis=-1, largest=0)
        index, _ = g.op("TopK", index, g.index(n), outputs=2, axis=-1, largest=0)
        left = g.op("Unsqueeze", self.look_up(positions, index), g.index(-1))
        fine = g.op("Add", left, g.constant(inner))
        fine = g.op("Reshape", fine, g.index(0, 0, n * len(inner)))
        return str(g.op("Min", fine, g.constant(1.0)))

    def look_up(self, positions: Numbers, index: str) -> str:
        """The positions at some indices."""
        return str(self.graph.op("Gather", self.graph.constant(positions), index))

    def gather(self, t: str, index: str) -> str:
        """The entries of t at some indices along the last axis."""
        return str(self.graph.op("GatherElements", t, index, axis=-1))

    def halve(
        self, found: Minima, n: int, step: float, least: float, parts: int
    ) -> tuple[Minima, float]:
        """Move each point to the best of those that cut the cells beside it into ``parts``.

        Repeated until cells are at most ``least`` wide; also returns their width.
        """
        g, d = self.graph, self.dim
        moves = np.array([k for k in range(1 - parts, parts) if k], dtype=float)
        m = len(moves)
        zero, one = g.constant(0.0), g.constant(1.0)
        axis, flat, shape = g.index(-1), g.index(0, d, n * m), g.index(0, d, n, m)
        cost, t = (g.op("Unsqueeze", name, axis) for name in (found.cost, found.index))
        while step > least:
            step /= parts
            tried = g.op("Clip", g.op("Add", t, g.constant(step * moves)), zero, one)
            costs = self.costs_at(g.op("Reshape", tried, flat))
            costs = g.op("Concat", cost, g.op("Reshape", costs, shape), axis=-1)
            at = g.op("ArgMin", costs, axis=-1, keepdims=1)
            cost = g.op("ReduceMin", costs, axis, keepdims=1)
            t = g.op("GatherElements", g.op("Concat", t, tried, axis=-1), at, axis=-1)
        cost, t = (g.op("Squeeze", name, axis) for name in (cost, t))
        return Minima(cost, t), step

    def lowest(self, found: Minima) -> Minima:
        """The best of several minima (B, d, n)."""
        g = self.graph
        at = g.op("ArgMin", found.cost, axis=-1, keepdims=1)
        least = g.op("ReduceMin", found.cost, g.index(-1), keepdims=1)
        return Minima(least, self.gather(found.index, at))

    def answer(self, found: Minima) -> tuple[str, str]:
        """The action (B, d) and its cost (B,) of positions (B, d, 1)."""
        g = self.graph
        cost, t = (g.op("Squeeze", v, g.index(-1)) for v in (found.cost, found.index))
        action = g.op("Max", g.op("Min", self._actions(t), self._ends[1]), self._ends[0])
        return action, self._summed(cost)

    def _actions(self, t: str) -> str:
        lower, _, width = self._ends
        return str(self.graph.op("Add", lower, self.graph.op("Mul", t, width)))

    def _costs(self, actions: str) -> str:
        """The summands of g (B, J, d) at actions (B, J, d)."""
        (costs,) = self.graph.call(self.terms, *self.scenarios, actions)
        return costs

    def _for_all_rows(self, actions: str, count: int) -> str:
        g = self.graph
        shape = g.op("Concat", self._rows, g.index(count, self.dim), axis=0)
        return str(g.op("Expand", actions, shape))

    def _turned(self, name: str) -> str:
        return str(self.graph.op("Transpose", name, perm=[0, 2, 1]))

    def _summed(self, costs: str) -> str:
        return str(self.graph.op("ReduceSum", costs, self._one, keepdims=0))

    def _cut_off(self, name: str, begin: int, end: int | None) -> str:
        """Entries ``begin`` to ``end`` of the last axis."""
        last = np.iinfo(np.int64).max if end is None else end
        return str(self.graph.op("Slice", name, *map(self.graph.index, (begin, last, -1))))
