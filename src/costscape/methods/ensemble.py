"""Several fitted methods that decide as one, by the mixture of their scenarios.

    g(x, a) = sum_m share_m g_m(x, a)

A fit is a candidate, an unfitted method, fitted without one fold of the pairs.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple
from warnings import warn

import torch
from torch import Tensor, nn

from costscape.data import Dataset, Fold, check_folds, time_folds
from costscape.methods import saving
from costscape.methods.method import Method
from costscape.methods.parallel_fits import fit_in_processes, fit_on_gpu
from costscape.methods.selection import (
    Candidate,
    HeldOut,
    Selection,
    candidate_line,
    clearly_behind,
    costs_of_each,
    held_out,
    some_rows,
)
from costscape.methods.surfaces import ScenarioMethod
from costscape.scenarios import Scenarios, union
from costscape.training import Diverged, History
from costscape.training.progress import one_bar

BEHIND = 3.0  # block standard errors above the best after which a candidate is left out
MOST = 4000  # scenarios that decide


class Job(NamedTuple):
    """A candidate, by its number, to be fitted without a fold."""

    candidate: int
    fold: int


class Blended(nn.Module):
    """x -> the scenarios of all members, weighted by their shares.

    Args:
        members: models from x to Scenarios.
        shares: one for each member, positive, with sum 1; None for equal shares.
        most: how many scenarios remain at most for each x (``Scenarios.thinned``).
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        shares: Sequence[float] | None = None,
        most: int = MOST,
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.shares = None if shares is None else list(shares)  # not rounded to the models' dtype
        self.most = most

    def forward(self, x: Tensor) -> Scenarios:
        return union([member(x) for member in self.members], self.shares).thinned(self.most)


class EnsembleMethod(ScenarioMethod):
    """A method that cross-fits candidates, ``tried_``, and mixes their scenarios.

    ``fits_`` are the fitted methods, ``shares_`` their weights in the mixture, and ``jobs_`` their
    candidates and folds. ``held_out_`` has a line for each candidate, ``weights_`` its weight.
    """

    folds: int
    workers: int
    most_scenarios: int
    selection: Selection

    tried_: list[Method]
    fits_: list[Method]
    jobs_: list[Job]
    shares_: list[float]
    held_out_: list[Candidate]
    weights_: dict[str, float]
    history_: list[History]

    @abstractmethod
    def _candidates(self, forms: Sequence[Any]) -> list[Method]:
        """The unfitted methods; ``forms`` are the forms of outcomes of DF2 among them."""

    def chosen(self) -> dict[str, Any]:
        return {"weights": self.weights_, "held_out": {c.name: c.cost for c in self.held_out_}}

    def _fit_blend(self, names: Sequence[str], pairs: Dataset) -> None:
        """Fit ``tried_`` fold by fold, and weight them by what their decisions cost.

        Candidates clearly behind after the first fold are not fitted again. Those that diverge
        are left out, with a warning.
        """
        several = len(self.tried_)
        check_folds(type(self).__name__, self.folds, len(pairs))
        folds = time_folds(len(pairs), self.folds)
        fits: dict[Job, Method] = {}

        def fit(candidates: Sequence[int], numbers: Sequence[int]) -> list[int]:
            """The candidates that are left."""
            jobs = [Job(c, k) for c in candidates for k in numbers]
            new = fit_jobs(self._bound(self.tried_), jobs, pairs, folds, self.workers, "")
            found = dict(zip(jobs, new, strict=True))
            fits.update({job: fit for job, fit in found.items() if isinstance(fit, Method)})
            diverged = {j.candidate: e for j, e in found.items() if isinstance(e, Diverged)}
            for c, error in diverged.items():
                if len(diverged) == len(candidates):
                    raise error
                warn(f"{names[c]} is left out of the blend. {error}", stacklevel=2)
            return [c for c in candidates if c not in diverged]

        def tables(candidates: Sequence[int], numbers: Sequence[int]) -> list[HeldOut]:
            groups = {k: [fits[Job(c, k)] for c in candidates] for k in numbers}
            return [self._table(group, take(pairs, folds[k].held)) for k, group in groups.items()]

        with one_bar(type(self).__name__, several * self.folds, any_progress(self.tried_)) as bar:
            with bar(0, several):
                tried = fit(range(several), [0])
            (first,) = tables(tried, [0])
            costs = dict(zip(tried, first_costs := costs_of_each([first]), strict=True))
            behind = clearly_behind(first_costs, BEHIND)
            left = [c for i, c in enumerate(tried) if i not in behind]
            with bar(several, several * (self.folds - 1)):
                left = fit(left, range(1, self.folds))
        parts = [first.of([tried.index(c) for c in left]), *tables(left, range(1, self.folds))]
        costs |= dict(zip(left, costs_of_each(parts), strict=True))
        w = self.selection.weights(parts) if len(left) > 1 else torch.ones(1)
        weights = {c: float(w[i]) for i, c in enumerate(left)}
        self.held_out_ = [
            candidate_line(name, costs[c], self.folds if c in left else 1, weights.get(c, 0.0))
            for c, name in enumerate(names)
            if c in costs
        ]
        self.weights_ = {line.name: line.weight for line in self.held_out_}
        jobs = [Job(c, k) for c in left if weights[c] > 0 for k in range(self.folds)]
        shares = [weights[job.candidate] / self.folds for job in jobs]
        self._adopt([fits[job] for job in jobs], jobs, shares)

    def _bound(self, candidates: Sequence[Method]) -> Sequence[Method]:
        """The candidates with the bound task: inner fits see no names of columns."""
        bound = self.bound_
        if bound is None or bound is self.task:
            return candidates
        return [m.changed(task=bound) if m.task is self.task else m for m in candidates]

    def _table(self, fits: Sequence[Method], data: Dataset) -> HeldOut:
        task = fits[0].task_
        assert task is not None
        data = some_rows(task, data.to(fits[0].device(), data.x.dtype), self.solver)
        return held_out(task, [f.model_ for f in fits if f.model_], data, self.solver, self.seed)

    def _adopt(self, fits: Sequence[Method], jobs: Sequence[Job], shares: Sequence[float]) -> None:
        """Become the mixture of these fits."""
        self.fits_, self.jobs_, self.shares_ = list(fits), list(jobs), list(shares)
        self.task_ = self.fits_[0].task_
        models = [fit.model_ for fit in fits if fit.model_]
        self.model_ = Blended(models, shares, self.most_scenarios).eval()

    def _facts(self) -> dict[str, Any]:
        candidates, folds = zip(*self.jobs_, strict=True)
        forms = [saving.to_json(m.outcomes) for m in self.tried_ if hasattr(m, "outcomes")]
        return {
            "candidates": candidates,
            "folds": folds,
            "shares": self.shares_,
            "fits": [fit._facts() for fit in self.fits_],
            "forms": [form for form in forms if not saving.needs_caller(form)],
            "held_out": [vars(line) for line in getattr(self, "held_out_", [])],
        }

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        self.held_out_ = [Candidate(**line) for line in facts.get("held_out", [])]
        self.weights_ = {line.name: line.weight for line in self.held_out_}
        self.tried_ = self._candidates([saving.from_json(f) for f in facts.get("forms", [])])
        jobs = [Job(*pair) for pair in zip(facts["candidates"], facts["folds"], strict=True)]
        fits = [self.tried_[job.candidate].for_fold(*job) for job in jobs]
        for fit, inner in zip(fits, facts["fits"], strict=True):
            fit.x_shape_, fit.y_shape_, fit.task_ = self.x_shape_, self.y_shape_, self.task_
            fit.bound_ = self.bound_
            fit.model_ = fit._rebuild(inner)
        self._adopt(fits, jobs, facts["shares"])
        return self._fitted()


def fit_jobs(
    candidates: Sequence[Method],
    jobs: Sequence[Job],
    pairs: Dataset,
    folds: Sequence[Fold],
    workers: int,
    title: str,
) -> list[Method | Diverged]:
    """Fit each job: together on a GPU where the method can, in processes, or one by one."""
    methods = [candidates[job.candidate].for_fold(*job) for job in jobs]
    parts = [(take(pairs, folds[k].rows), take(pairs, folds[k].held)) for _, k in jobs]
    shown = any_progress(methods)
    if workers > 1 and len(jobs) > 1:
        return fit_in_processes(methods, parts, workers, title, shown)
    on_gpu = any(m.device().type == "cuda" for m in methods)
    done = fit_on_gpu(methods, [folds[k] for _, k in jobs], pairs) if on_gpu else set()
    fits: list[Method | Diverged] = []
    with one_bar(title, len(methods), shown) as job_bar:
        for i, (method, part) in enumerate(zip(methods, parts, strict=True)):
            with job_bar(i):
                fits.append(method if i in done else method.fit_or_diverge(*part))
    return fits


def any_progress(methods: Sequence[Method]) -> bool:
    return any(t.progress for m in methods if (t := m.trains()) is not None)


def take(pairs: Dataset, rows: Tensor) -> Dataset:
    rows = rows.to(pairs.x.device)
    return Dataset(pairs.x[rows], pairs.y[rows])
