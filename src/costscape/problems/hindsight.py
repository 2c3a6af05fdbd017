"""The best action in hindsight, by an exact solver."""

from torch import Tensor, nn

from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers import Solver
from costscape.task import Task


class Hindsight(nn.Module):
    """y (*batch, d) -> the best action had y been known.

    - ``task``: the cost and the set; another object than the task whose hindsight this is.
    - ``solver``: solves one problem for each y.
    """

    def __init__(self, task: Task, solver: Solver) -> None:
        super().__init__()
        self.task, self.solver = task, solver

    def forward(self, y: Tensor) -> Tensor:
        flat = y.detach().reshape(-1, 1, y.shape[-1])
        g = ExpectedCost(self.task, Scenarios(flat.new_ones(len(flat), 1), flat, own=True))
        best = self.solver.minimise(g, self.task.feasible, len(flat)).action
        return best.to(y.dtype).reshape(*y.shape[:-1], -1)
