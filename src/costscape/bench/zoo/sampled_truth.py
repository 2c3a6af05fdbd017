"""The truth about a generated problem: E[f(y, a) | x] as a sum over scenarios of a known law."""

from collections.abc import Callable
from copy import deepcopy

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from costscape.bench.zoo.laws import Law
from costscape.scenarios import ExpectedCost
from costscape.task import SeparableTask, Task

# an expected cost of B rows, and actions near the best if they are known -> the best (B, d)
Minimiser = Callable[[ExpectedCost, Tensor | None], Tensor]
BLOCK = 2**21  # numbers of outcomes held at once
SEED = 0  # of the quasi-random draws
COARSE = 8  # times fewer draws give the start of the minimiser


class SampledTruth:
    """Expected costs and gaps under ``law``, in double precision.

    A separable cost needs only the law of each coordinate: ``draws`` midpoint quantiles of the
    noise represent it. Another cost needs the joint law: ``draws`` scrambled Sobol points
    represent it. ``best`` minimises such an expected cost over the feasible set. The least costs
    of the latest x are cached, since all methods are evaluated on the same rows.
    """

    def __init__(self, task: Task, law: Law, best: Minimiser, draws: int) -> None:
        self.task = deepcopy(task).double()
        self.law = law
        self.minimiser = best
        dim, marginal = task.feasible.dim, isinstance(task, SeparableTask)
        self.u = probabilities(draws, dim, marginal)
        self.few = probabilities(draws // COARSE, dim, marginal)
        self._known: tuple[Tensor, Tensor, Tensor] | None = None

    def expected_cost(
        self, x: Float[Tensor, "n ..."], a: Float[Tensor, "n d"]
    ) -> Float64[Tensor, "n"]:
        """E[f(y, a) | x]."""
        a = a.detach().cpu().double()
        with torch.no_grad():
            costs = [self._surface(x[i], self.u)(a[i, None])[:, 0] for i in self._blocks(x)]
        return torch.cat(costs)

    def best(self, x: Float[Tensor, "n ..."]) -> tuple[Tensor, Tensor]:
        """The action of C with the least expected cost for each x, and that cost."""
        if self._known is None or not torch.equal(self._known[0], x):
            a = torch.cat([self._minimum(x[i]) for i in self._blocks(x)])
            self._known = x, a, self.expected_cost(x, a)
        return self._known[1:]

    def gap(self, x: Float[Tensor, "n ..."], a: Float[Tensor, "n d"]) -> Float64[Tensor, "n"]:
        """E[f(y, a) | x] minus its least over C."""
        return self.expected_cost(x, a) - self.best(x)[1]

    def _minimum(self, x: Tensor) -> Tensor:
        start = self.minimiser(self._surface(x, self.few), None)
        return self.minimiser(self._surface(x, self.u), start)

    def _surface(self, x: Tensor, u: Tensor) -> ExpectedCost:
        return ExpectedCost(self.task, self.law.scenarios(x.cpu(), u))

    def _blocks(self, x: Tensor) -> list[slice]:
        rows = max(1, BLOCK // (self.u.numel() * len(self.law.parts)))
        return [slice(i, i + rows) for i in range(0, len(x), rows)]


def probabilities(draws: int, dim: int, separable: bool) -> Float64[Tensor, "S d"]:
    """Equally likely probabilities in (0, 1) for each coordinate."""
    if separable:
        middles = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws
        return middles[:, None].repeat(1, dim)
    engine = torch.quasirandom.SobolEngine(dim, scramble=True, seed=SEED)
    return engine.draw(draws, dtype=torch.float64).clamp(1e-6, 1 - 1e-6)
