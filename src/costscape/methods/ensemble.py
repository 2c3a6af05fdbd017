"""Several fitted methods that decide as one, by the mixture of their scenarios.

    g(x, a) = sum_m share_m g_m(x, a)

A fit is a candidate, an unfitted method, fitted without one fold of the pairs.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from torch import Tensor, nn

from costscape.data import Dataset, Fold
from costscape.methods.base import Method
from costscape.methods.surfaces import ScenarioMethod
from costscape.scenarios import Scenarios, union
from costscape.training.progress import one_bar

APART = 1000  # between the seeds of two folds of a candidate


@dataclass(frozen=True, eq=False)
class Job:
    """A candidate, by its number, to be fitted without a fold."""

    candidate: int
    fold: int


class Blended(nn.Module):
    """x -> the scenarios of all members, weighted by their shares.

    Arguments:
        members: models from x to Scenarios.
        shares: one for each member, positive, with sum 1; None for equal shares.
        most: how many scenarios remain at most for each x (``Scenarios.thinned``).
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        shares: Sequence[float] | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        # plain numbers, which keep all digits when the members change their precision
        self.shares = [1 / len(members)] * len(members) if shares is None else list(shares)
        self.most = most

    def forward(self, x: Tensor) -> Scenarios:
        s = union([member(x) for member in self.members], self.shares)
        return s if self.most is None else s.thinned(self.most)


class EnsembleMethod(ScenarioMethod):
    """A method that fits other methods and mixes their scenarios.

    ``fits_`` are the fitted methods, ``shares_`` their weights in the mixture, and ``jobs_`` says
    which candidate each fit is of.
    """

    fits_: list[Method]
    jobs_: list[Job]
    shares_: list[float]
    tried_: list[Method]  # the candidates
    held_out_: list[Any]  # a line for each candidate (``blended_fit.Candidate``)
    weights_: dict[str, float]

    @abstractmethod
    def candidates(self) -> Sequence[Method]:
        """The unfitted methods that were cross-fitted."""

    def _adopt(
        self, fits: Sequence[Method], jobs: Sequence[Job], shares: Sequence[float], most: int
    ) -> None:
        """Become the mixture of these fits."""
        self.fits_, self.jobs_, self.shares_ = list(fits), list(jobs), list(shares)
        self.task_ = self.fits_[0].task_
        self.model_ = Blended([_model(fit) for fit in fits], shares, most).eval()

    def _ensemble_facts(self) -> dict[str, Any]:
        assert isinstance(self.model_, Blended)
        return {
            "candidates": [job.candidate for job in self.jobs_],
            "folds": [job.fold for job in self.jobs_],
            "shares": self.shares_,
            "most": self.model_.most,
            "fits": [fit._facts() for fit in self.fits_],
        }

    def _rebuilt_ensemble(self, facts: dict[str, Any]) -> nn.Module:
        known = self.candidates()
        self.jobs_ = [Job(*pair) for pair in zip(facts["candidates"], facts["folds"], strict=True)]
        self.shares_ = list(facts["shares"])
        self.fits_ = []
        for job, inner in zip(self.jobs_, facts["fits"], strict=True):
            fit = prepared(known[job.candidate], job)
            fit.x_shape_, fit.y_shape_, fit.task_ = self.x_shape_, self.y_shape_, self.task_
            fit.model_ = fit._rebuild(inner)
            self.fits_.append(fit)
        return Blended([_model(fit) for fit in self.fits_], self.shares_, facts["most"])


def check_scenarios(owner: str, method: Method) -> None:
    """One sentence for something that is no method of scenarios."""
    if not isinstance(method, Method) or not is_dataclass(method):
        raise TypeError(
            f"{owner} needs unfitted methods such as cs.TwoStage(task), but got "
            f"{type(method).__name__}. Pass the method itself."
        )
    if not isinstance(method, ScenarioMethod):
        raise TypeError(
            f"{owner} mixes scenarios, and {type(method).__name__} gives none. Take a method with "
            f"scenarios, such as cs.TwoStage, or fit {type(method).__name__} by itself."
        )


def fit_jobs(
    candidates: Mapping[int, Method],
    jobs: Sequence[Job],
    pairs: Dataset,
    folds: Sequence[Fold],
    workers: int,
    title: str,
) -> list[Method]:
    """Fit each job, of a candidate by its number.

    Together on a GPU where the method can, in processes, or one by one.
    """
    methods = [prepared(candidates[job.candidate], job) for job in jobs]
    parts = [_parts(pairs, folds, job) for job in jobs]
    shown = any_progress(methods)
    if workers > 1 and len(jobs) > 1:
        return _in_processes(methods, parts, workers, title, shown)
    left = _together(methods, jobs, pairs, folds)
    with one_bar(title, len(methods), shown) as job_bar:
        for i, (method, (train, held)) in enumerate(zip(methods, parts, strict=True)):
            with job_bar(i):
                if left[i]:
                    _fit(method, train, held)
    return methods


def any_progress(methods: Sequence[Method]) -> bool:
    """Whether one of the methods shows its progress."""
    return any(t.progress for m in methods if (t := m.trains()) is not None)


def prepared(candidate: Method, job: Job) -> Method:
    """The candidate with the seed and the checkpoint of the job."""
    changes: dict[str, Any] = {"seed": candidate.seed + APART * job.fold}
    training = candidate.trains()
    if training is not None and training.checkpoint is not None:
        name = f"{training.checkpoint}.{job.candidate}-{job.fold}"
        changes["training"] = replace(training, checkpoint=name)
    return candidate.changed(**changes)


def _together(
    methods: Sequence[Method], jobs: Sequence[Job], pairs: Dataset, folds: Sequence[Fold]
) -> list[bool]:
    """Fit what can be fitted in one batch; which of the methods are left."""
    left = [True] * len(methods)
    for cls in dict.fromkeys(type(m) for m in methods):
        mine = [i for i, m in enumerate(methods) if type(m) is cls]
        numbers = [jobs[i].fold for i in mine]
        if len(mine) > 1 and cls.fit_together(
            [methods[i] for i in mine], pairs, [folds[k] for k in numbers]
        ):
            for i in mine:
                left[i] = False
    return left


def _in_processes(
    methods: Sequence[Method],
    parts: Sequence[tuple[Dataset, Dataset]],
    workers: int,
    title: str,
    shown: bool,
) -> list[Method]:
    """By joblib, in processes of this machine, or where ``joblib.parallel_config`` says."""
    from joblib import Parallel, delayed

    quiet = [_quiet(method) for method in methods]
    work = [delayed(_fitted)(i, m, *p) for i, (m, p) in enumerate(zip(quiet, parts, strict=True))]
    fits: dict[int, Method] = {}
    with one_bar(title, len(work), shown) as job_bar:
        try:
            pool = Parallel(n_jobs=workers, return_as="generator_unordered")
        except ValueError:  # Ray's backend returns all fits at the end
            pool = Parallel(n_jobs=workers)
        for done, (i, fit) in enumerate(pool(work)):
            with job_bar(done):
                fits[i] = fit
    return [fits[i] for i in range(len(methods))]


def _quiet(method: Method) -> Method:
    training = method.trains()
    if training is None:
        return method
    return method.changed(training=replace(training, progress=False))


def _fitted(i: int, method: Method, train: Dataset, held: Dataset) -> tuple[int, Method]:
    _fit(method, train, held)
    return i, method


def _fit(method: Method, train: Dataset, held: Dataset) -> None:
    method.fit(train.x, train.y, val=(held.x, held.y))


def _parts(pairs: Dataset, folds: Sequence[Fold], job: Job) -> tuple[Dataset, Dataset]:
    fold = folds[job.fold]
    return take(pairs, fold.rows), take(pairs, fold.held)


def take(pairs: Dataset, rows: Any) -> Dataset:
    rows = rows.to(pairs.x.device)
    return Dataset(pairs.x[rows], pairs.y[rows])


def _model(fit: Method) -> nn.Module:
    assert fit.model_ is not None
    return fit.model_
