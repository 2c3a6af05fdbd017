"""Take the cheapest path through a grid before the costs of its edges are known.

    f(y, a) = sum_e y_e a_e,    a_e = 1 on the edges of a path and 0 elsewhere

A path goes from the north-west corner to the south-east corner by steps to the east and to the
south (Elmachtoub and Grigas, Smart "Predict, then Optimize", Management Science 2022, section 6).
"""

from itertools import combinations
from math import comb
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.sets import Finite
from costscape.task import SeparableTask

MOST = 100_000  # paths that are listed; a grid of 10 x 10 nodes has 48,620


def shortest_path(rows: int = 5, columns: int = 5) -> SeparableTask:
    """Minimise the cost of a path over all paths of a grid; ``Exhaustive`` decides, exactly.

    Args:
        rows: int >= 2, default 5. Nodes from north to south.
        columns: int >= 2, default 5. Nodes from west to east.

    Returns:
        A SeparableTask on a Finite set: 70 paths of 40 edges for the default grid. The edges of
        y and a are in the order of ``grid_edges``.

    >>> shortest_path(2, 2).feasible.actions
    tensor([[1., 0., 1., 0.],
            [0., 1., 0., 1.]])
    """
    feasible = Finite(grid_paths(rows, columns))
    return SeparableTask(
        _edge_costs,
        feasible,
        convex=True,
        hindsight=CheapestPath(feasible),
        cvxpy=_path_costs,
        normal=_mean_edge_costs,
    )


def grid_edges(rows: int, columns: int) -> list[tuple[int, int]]:
    """Return the edges (from, to); node r * columns + c is in row r and column c.

    >>> grid_edges(2, 2)
    [(0, 1), (0, 2), (1, 3), (2, 3)]
    """
    nodes = [(r, c) for r in range(rows) for c in range(columns)]
    east = [(r * columns + c, r * columns + c + 1) for r, c in nodes if c + 1 < columns]
    south = [(r * columns + c, (r + 1) * columns + c) for r, c in nodes if r + 1 < rows]
    return sorted(east + south)


def grid_paths(rows: int, columns: int) -> Float[Tensor, "paths edges"]:
    """Return all paths, one a row, with 1 at their edges."""
    if rows < 2 or columns < 2:
        raise ValueError(
            f"A grid needs at least 2 rows and 2 columns, but got {rows} and {columns}."
        )
    steps, paths = rows + columns - 2, comb(rows + columns - 2, rows - 1)
    if paths > MOST:
        raise ValueError(
            f"A grid of {rows} x {columns} nodes has {paths:,} paths, and at most {MOST:,} are "
            f"listed. Take a smaller grid, or a Polytope of flows."
        )
    place = {edge: e for e, edge in enumerate(grid_edges(rows, columns))}
    table = torch.zeros(paths, len(place))
    for path, to_east in enumerate(combinations(range(steps), columns - 1)):
        node = 0
        for step in range(steps):
            after = node + (1 if step in to_east else columns)
            table[path, place[node, after]] = 1
            node = after
    return table


class CheapestPath(nn.Module):
    """y (*batch, edges) -> the cheapest path.

    Args:
        feasible: Finite. The paths.
    """

    def __init__(self, feasible: Finite) -> None:
        super().__init__()
        self.feasible = feasible

    def forward(self, y: Float[Tensor, "*batch e"]) -> Float[Tensor, "*batch e"]:
        paths = self.feasible.actions.to(y)
        return paths[(y @ paths.T).argmin(-1)]


def _edge_costs(y: Tensor, a: Tensor) -> Tensor:
    return y * a


def _mean_edge_costs(m: Tensor, s: Tensor, a: Tensor) -> Tensor:
    return m * a  # a linear cost depends on the mean only


def _path_costs(y: Any, a: Any) -> Any:
    return y @ a[0]
