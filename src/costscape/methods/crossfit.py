"""Cross-fitting: the same method once for each fold of the pairs, and the mean of the fits.

    g(x, a) = mean_k g_k(x, a),    g_k fitted without fold k, and early-stopped on fold k

No fit chooses its epoch or its settings on pairs that it has learned from, and together the fits
learn from all pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from costscape.data import Dataset, check_folds, join, time_folds
from costscape.methods.ensemble import MOST, EnsembleMethod, Job, fit_jobs
from costscape.methods.method import Method
from costscape.methods.surfaces import check_scenarios
from costscape.solvers import Solver
from costscape.task import Task
from costscape.training import Diverged, Training
from costscape.training.settings import AtLeast2, Count


@dataclass
class CrossFit(EnsembleMethod):
    """A method fitted once for each fold, its scenarios averaged.

    Args:
        method: Method. An unfitted method with scenarios.
        folds: int, default 4. How many parts, in time order, are left out one after the other.
        workers: int, default 1. Processes that fit folds side by side. joblib starts them. After
            ``ray.util.joblib.register_ray()``, inside ``joblib.parallel_config("ray")``, they run
            on a Ray cluster. On a GPU DF2's networks are fitted in one batch.
        most_scenarios: int, default 4000. How many scenarios decide at most, by systematic
            resampling.

    Cost: ``folds`` fits to (folds - 1) / folds of the pairs.

    >>> import costscape as cs
    >>> task = cs.problems.inventory()
    >>> cs.CrossFit(cs.NearestNeighbours(task), folds=5).folds
    5
    """

    method: Method
    folds: AtLeast2 = 4
    workers: Count = 1
    most_scenarios: Count = MOST

    def __post_init__(self) -> None:
        check_scenarios("CrossFit", self.method)

    @property
    def task(self) -> Task:  # type: ignore[override]
        """The task of the method inside."""
        return self.method.task

    @property
    def solver(self) -> Solver:  # type: ignore[override]
        """The solver of the method inside."""
        method: Any = self.method
        solver: Solver = method.solver
        return solver

    @property
    def seed(self) -> int:  # type: ignore[override]
        """The seed of the method inside."""
        return self.method.seed

    def changed(self, **settings: Any) -> "CrossFit":
        own = {f.name for f in fields(self)}
        inner = {name: value for name, value in settings.items() if name not in own}
        outer = {name: value for name, value in settings.items() if name in own}
        method = outer.pop("method", self.method)
        return replace(self, method=method.changed(**inner), **outer)

    def setting_names(self) -> set[str]:
        return {f.name for f in fields(self)} | self.method.setting_names()

    def trains(self) -> Training | None:
        return self.method.trains()

    def resolved_defaults(self, train: Dataset) -> dict[str, Any]:
        return self.method.resolved_defaults(train)

    def _fit(self, train: Dataset, val: Dataset) -> None:
        pairs = join(train, val)
        check_folds("CrossFit", self.folds, len(pairs))
        folds = time_folds(len(pairs), self.folds)
        jobs = [Job(0, k) for k in range(self.folds)]
        title = f"{type(self.method).__name__}, {self.folds} folds"
        self.tried_ = self._candidates()
        fits = []
        for fit in fit_jobs(self._bound(self.tried_), jobs, pairs, folds, self.workers, title):
            if isinstance(fit, Diverged):
                raise fit
            fits.append(fit)
        self._adopt(fits, jobs, [1 / len(fits)] * len(fits))

    def chosen(self) -> dict[str, Any]:
        return {"fits": [fit.chosen() for fit in self.fits_]}

    def _candidates(self, forms: Sequence[Any] = ()) -> list[Method]:
        return [self.method]
