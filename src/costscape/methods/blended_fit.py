"""Cross-fit several candidates and blend them by what their decisions cost on held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from costscape.block_bootstrap import block_length, standard_error
from costscape.data import Dataset, Fold, check_folds, time_folds
from costscape.methods.base import Method
from costscape.methods.ensemble import Job, any_progress, fit_jobs, take
from costscape.methods.selection import (
    HeldOut,
    Selection,
    clearly_behind,
    costs_of,
    held_out,
    some_rows,
)
from costscape.solvers import Solver
from costscape.training.progress import one_bar

BEHIND = 3.0  # block standard errors above the best after which a candidate is left out


@dataclass(frozen=True)
class Candidate:
    """A line of the table of held-out costs.

    ``cost`` is the mean cost of its decisions on held-out rows, ``standard_error`` that of the
    mean, by blocks; ``folds`` how often it was fitted; ``weight`` its part of the blend.
    """

    name: str
    cost: float
    standard_error: float
    folds: int
    weight: float


@dataclass(frozen=True, eq=False)
class BlendedFit:
    """Fits with their shares, and the table of candidates. ``cost`` is the blend's own."""

    fits: list[Method]
    jobs: list[Job]
    shares: list[float]
    table: list[Candidate]
    cost: float


def fit_blend(
    candidates: Sequence[Method],
    names: Sequence[str],
    pairs: Dataset,
    folds: int,
    selection: Selection,
    solver: Solver,
    workers: int,
    owner: str,
    seed: int,
) -> BlendedFit:
    """Fit candidates fold by fold; those clearly behind after the first are not fitted again."""
    check_folds(owner, folds, len(pairs))
    cut = time_folds(len(pairs), folds)
    everyone = list(range(len(candidates)))

    def fit(who: Sequence[int], which: Sequence[int]) -> dict[tuple[int, int], Method]:
        jobs = [Job(c, k) for c in who for k in which]
        done = fit_jobs(dict(enumerate(candidates)), jobs, pairs, cut, workers, "")
        return {(job.candidate, job.fold): m for job, m in zip(jobs, done, strict=True)}

    several, shown = len(candidates), any_progress(candidates)
    with one_bar(owner, several * folds, shown) as bar:
        with bar(0, several):
            fits = fit(everyone, [0])
        first = _table(fits, everyone, 0, pairs, cut, solver, seed)
        one = torch.eye(several, dtype=torch.float64)
        costs = torch.stack([first.costs(w.to(first.observed)) for w in one])
        left = [c for c in everyone if c not in clearly_behind(costs, BEHIND)]
        with bar(several, several * (folds - 1)):
            fits |= fit(left, range(1, folds))
    parts = [first.of(left)]
    parts += [_table(fits, left, k, pairs, cut, solver, seed) for k in range(1, folds)]
    w = selection.weights(parts) if len(left) > 1 else one[0, :1]
    shares = {c: float(w[i]) for i, c in enumerate(left) if float(w[i]) > 0}
    table = []
    for c, name in enumerate(names):
        seen, i = (parts, left.index(c)) if c in left else ([first], c)
        table.append(_line(name, seen, i, shares.get(c, 0.0)))
    cost = float(costs_of(parts, w).mean())
    jobs = [Job(c, k) for c in shares for k in range(folds)]
    return BlendedFit(
        [fits[job.candidate, job.fold] for job in jobs],
        jobs,
        [shares[job.candidate] / folds for job in jobs],
        table,
        cost,
    )


def _table(
    fits: dict[tuple[int, int], Method],
    who: Sequence[int],
    k: int,
    pairs: Dataset,
    cut: Sequence[Fold],
    solver: Solver,
    seed: int,
) -> HeldOut:
    task = fits[who[0], k].task_
    assert task is not None
    data = take(pairs, cut[k].held)
    data = some_rows(task, data.to(task.feasible.bounds[0].device, data.x.dtype), solver)
    models = [fits[c, k].model_ for c in who]
    return held_out(task, [m for m in models if m is not None], data, solver, seed)


def _line(name: str, parts: Sequence[HeldOut], i: int, weight: float) -> Candidate:
    one = torch.zeros(parts[0].expected.shape[1], dtype=torch.float64)
    one[i] = 1
    costs = costs_of(parts, one).cpu().numpy()
    error = standard_error(costs, block_length(len(costs)))
    return Candidate(name, float(costs.mean()), error, len(parts), weight)
