"""Decision samples: what decisions cost that were made on perturbed forecasts.

    t_nk = f(y_n, a(F_n + e_nk)) - f(y_n, a(y_n)) >= 0

F_n is the forecast of pair n, one outcome or the draws of a distribution. A move e shifts all of
it by one vector, and may stretch it about its mean. a(F) minimises the mean cost over F, and
a(y_n) is the best decision in hindsight. These n x K decisions are the expensive part of a learned
loss, and can be kept on disk.
"""

import hashlib
import warnings
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.methods import saving
from costscape.methods.cost_fingerprint import cost_fingerprint, probing_actions
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers import Auto, Solver
from costscape.solvers.auto import resolve, without_programs
from costscape.task import Task
from costscape.training.progress import progress

HELD = 2**22  # numbers of the moved forecasts held at once


@dataclass(frozen=True)
class Forecasts:
    """F_n for n pairs, in ``surface``, and what then happened, ``y`` (n, *y_shape).

    ``task`` prices outcomes; the surface may price normal laws, whose values are means beside
    deviations, and then a move shifts the means.
    """

    task: Task
    surface: ExpectedCost
    y: Float[Tensor, "..."]

    @staticmethod
    def of_outcomes(task: Task, y: Float[Tensor, "n ..."]) -> "Forecasts":
        """Perfect point forecasts, F_n = y_n."""
        return Forecasts(task, _one_outcome(task, y), y)


@dataclass(frozen=True)
class Sampler:
    """How the moved forecasts are decided, and the folder in which their losses are kept."""

    solver: Solver = field(default_factory=Auto)
    cache: Path | str | None = None
    title: str = "decision samples"
    shown: bool = False

    def losses(
        self, forecasts: Forecasts, moves: Float[Tensor, "n K ..."]
    ) -> Float[Tensor, "n K"]:
        """t_nk, read from the cache where these very forecasts and moves are in it."""
        if self.cache is None:
            return self._solve(forecasts, moves)
        path = Path(self.cache) / f"{self._mark(forecasts, moves)}.safetensors"
        if path.exists():
            try:
                tensors, _ = saving.read(path)
                return tensors["t"].to(moves)
            except (ValueError, KeyError) as error:
                warnings.warn(
                    f"The decision samples in {path} cannot be read ({type(error).__name__}) and "
                    f"are made again.",
                    stacklevel=2,
                )
        t = self._solve(forecasts, moves)
        saving.write(path, {"t": t}, {"holds": "decision samples"})
        return t

    def hindsight(self, task: Task, y: Float[Tensor, "n ..."]) -> Float[Tensor, "n d"]:
        """a(y_n): the task's own answer where it has one, the solver's otherwise."""
        return self._decide(_one_outcome(task, y))

    def decisions(self, forecasts: Forecasts) -> Float[Tensor, "n d"]:
        """a(F_n)."""
        return self._decide(forecasts.surface)

    def _solve(self, forecasts: Forecasts, moves: Tensor) -> Tensor:
        task, y, n, k = forecasts.task, forecasts.y, len(moves), moves.shape[1]
        with torch.no_grad():
            least = task.cost(y, self.hindsight(task, y))
            values = forecasts.surface.scenarios.values
            rows = max(1, HELD // (k * prod(values.shape[1:])))
            losses = []
            with progress(self.title, n, self.shown) as show:
                for i in range(0, n, rows):
                    part = slice(i, min(i + rows, n))
                    a = self._decide(_moved(forecasts.surface.rows(part), moves[part]))
                    paid = task.cost(y[part].unsqueeze(1), a.unflatten(0, (-1, k)))
                    losses.append((paid - least[part, None]).clamp(min=0))
                    show(part.stop, "")
        return torch.cat(losses)

    def _decide(self, g: ExpectedCost) -> Tensor:
        single = g.scenarios.values.shape[1] == 1
        if single and g.task.hindsight is not None:
            return g.task.hindsight(g.scenarios.values[:, 0])
        return _minimise(g, self.solver)

    def _mark(self, forecasts: Forecasts, moves: Tensor) -> str:
        """A hash of all that the losses depend on; its costs stand for the task."""
        task, s = forecasts.task, forecasts.surface.scenarios
        cost = cost_fingerprint(task, forecasts.y)
        digest = hashlib.sha256(repr((self.solver, task.feasible, moves.dtype, cost)).encode())
        probes = probing_actions(task.feasible)
        for part in (forecasts.y, s.weights, s.values, moves, *task.feasible.bounds, probes):
            digest.update(repr(tuple(part.shape)).encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:32]


def perturbations(n: int, k: int, like: Float[Tensor, "..."], rng: Generator) -> Tensor:
    """Standard normal moves (n, k, *shape of like): of all coordinates, of one, and of two.

    A third of the k each, as in the paper, so that both single effects and couplings are seen.
    """
    d = like.numel()
    e = torch.randn(n, k, d, generator=rng, device=rng.device, dtype=like.dtype)
    rank = torch.rand(n, k, d, generator=rng, device=rng.device).argsort(-1)
    moved = like.new_tensor([d, 1, 2])[torch.arange(k) % 3]
    e = e * (rank < moved[:, None])
    return e.reshape(n, k, *like.shape)


def best_move(t: Float[Tensor, "n K"], moves: Float[Tensor, "n K ..."]) -> Tensor:
    """The first move (n, ...) whose loss is the least, or over it by 1 % of the mean loss."""
    near = t <= t.min(1, keepdim=True).values + 0.01 * t.mean()
    first = near.to(torch.uint8).argmax(1)
    return moves[torch.arange(len(moves), device=moves.device), first]


def _minimise(g: ExpectedCost, solver: Solver) -> Tensor:
    """Decisions on a single outcome, or, coarsely, on a set of them."""
    chosen = resolve(solver, g, g.task.feasible)
    if isinstance(solver, Auto):  # a program for each of thousands of rows takes minutes
        chosen = without_programs(chosen)
    if g.scenarios.values.shape[1] > 1:
        chosen = chosen.coarse()
    return chosen.minimise(g, g.task.feasible, len(g)).action


def _one_outcome(task: Task, y: Tensor) -> ExpectedCost:
    return ExpectedCost(task, Scenarios(y.new_ones(len(y), 1), y.unsqueeze(1), own=True))


def _moved(g: ExpectedCost, moves: Tensor) -> ExpectedCost:
    """The forecasts of n rows, each moved in K ways, as n x K rows.

    Moves (n, K, ...) shift every outcome. Moves (n, K, 2, ...) hold a shift and the logarithm of
    a factor, by which outcomes are stretched about their mean.
    """
    w, values = g.scenarios.weights, g.scenarios.values
    k, d = moves.shape[1], moves.shape[-1]
    y, deviations = values[..., :d].unsqueeze(1), values[..., d:].unsqueeze(1)
    if moves.ndim > values.ndim:
        moves, factor = moves[:, :, :1], moves[:, :, 1:].exp()
        mean = torch.einsum("ns,nks...->nk...", w, y).unsqueeze(2)
        y = mean + factor * (y - mean)
        deviations = factor * deviations if deviations.shape[-1] else deviations
    else:
        moves = moves.unsqueeze(2)
    y = y + moves
    if deviations.shape[-1]:
        y = torch.cat([y, deviations.expand(*y.shape[:3], *deviations.shape[3:])], -1)
    return ExpectedCost(g.task, Scenarios(w.repeat_interleave(k, 0), y.flatten(0, 1)), g.memory)


def hindsight_actions(
    task: Task, y: Float[Tensor, "n ..."], solver: Solver
) -> Float[Tensor, "n d"]:
    """The best action had each y been known: the task's own answer, or the solver's."""
    if task.hindsight is not None:
        return task.feasible.project(task.hindsight(y))
    return _minimise(_one_outcome(task, y), solver)
