"""Add your own method: decide for the last outcomes.

python examples/own_method.py

A method that returns Scenarios needs no solver code: the library decides, saves, loads and
evaluates. This method gives the last k outcomes equal weights.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import costscape as cs
from costscape.data import Dataset


class Recent(nn.Module):
    """The same outcomes for every x, each of weight 1 / k. A buffer, so that it is saved."""

    def __init__(self, y: Tensor) -> None:
        super().__init__()
        self.register_buffer("y", y)

    def forward(self, x: Tensor) -> cs.Scenarios:
        k = len(self.y)
        return cs.Scenarios(self.y.new_full((len(x), k), 1 / k), self.y.unsqueeze(0))


@dataclass
class LastOutcomes(cs.ScenarioMethod):
    """g(x, a) = mean of f(y_i, a) over the last ``k`` outcomes, whatever x."""

    task: cs.Task
    k: int = 50
    solver: cs.Solver = field(default_factory=cs.Auto)
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        self._move_task(self.task.feasible.bounds[0].device)
        self.model_ = Recent(torch.cat([train.y, val.y])[-self.k :])

    def _facts(self) -> dict[str, Any]:
        return {"k": len(self.model_.y)}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        return Recent(self._blank(facts["k"])[1])


def drifting(n, seed):
    """Demand that grows by half over the n days, so a constant order is too low."""
    rng = torch.Generator().manual_seed(seed)
    level = torch.linspace(1.0, 1.5, n)[:, None]
    y = level + 0.1 * torch.randn(n, 7, generator=rng)
    return torch.rand(n, 3, generator=rng), y


def main():
    task = cs.problems.inventory()
    x, y = drifting(600, seed=0)
    for method in (cs.Constant(task), LastOutcomes(task)):
        method.fit(x[:-50], y[:-50])
        result = cs.evaluate(method, x[-50:], y[-50:])
        print(f"{type(method).__name__:12}  mean regret {result.regret:.2f}")

    cs.checks.check_method(LastOutcomes(task), x, y)
    print("it keeps the contract of a method")


if __name__ == "__main__":
    main()
