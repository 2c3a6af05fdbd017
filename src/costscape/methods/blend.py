"""Blend: several methods cross-fitted, and mixed by what their decisions cost on held-out rows.

    g(x, a) = sum_c w_c mean_k g_ck(x, a),    w on the simplex, from rows no g_ck learned from

Wolpert, Stacked Generalization, Neural Networks 1992, with decision costs in place of losses.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from costscape.data import Dataset, join
from costscape.methods.df2.df2 import DF2
from costscape.methods.ensemble import MOST, EnsembleMethod
from costscape.methods.forecast.two_stage import TwoStage
from costscape.methods.method import Method
from costscape.methods.selection import Greedy, Selection
from costscape.methods.surfaces import check_scenarios
from costscape.methods.weighted.nearest_neighbours import NearestNeighbours
from costscape.methods.weighted.random_forest import RandomForest
from costscape.models import Mixture, Outcomes
from costscape.models.outcome_network import name_of, suitable
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Training
from costscape.training.settings import AtLeast2, Count

DRAWS = 400  # of a mixture in a blend: its folds add up


@dataclass
class Blend(EnsembleMethod):
    """Candidates of several families, cross-fitted and mixed.

    Args:
        task: Task. The cost and the feasible set, the same for all candidates.
        methods: list of unfitted methods with scenarios, default None: DF2 with each form of
            outcomes that suits the data, a two-stage mixture of three Gaussians, a random forest
            and nearest neighbours.
        folds: int, default 4. How many parts of the rows, in time order, are left out one after
            the other.
        selection: Selection, default Greedy() by decision cost; SlopeWeights() by the slopes loss.
        most_scenarios: int, default 4000. How many scenarios decide at most, by systematic
            resampling.
        solver: Solver, default Auto(), the strongest one that serves.
        workers: int, default 1. Processes that fit side by side.
        training: Training, default Training(). Of the networks of the default candidates.
        seed: int, default 0. Of the default candidates.

    After ``fit``, ``weights_`` has the weight of each candidate by name, and ``held_out_`` a line
    for each: cost of its decisions on held-out rows, standard error, folds fitted, weight. A
    candidate that is clearly behind after the first fold is not fitted again.

    Cost: ``folds`` fits of each candidate that stays. Methods that give actions and no scenarios,
    such as PolicyNet, are refused: judged by g, no action is better than the minimiser of g.

    >>> import costscape as cs
    >>> task = cs.problems.inventory()
    >>> cs.Blend(task, [cs.NearestNeighbours(task), cs.RandomForest(task)], folds=5).folds
    5
    """

    task: Task
    methods: Sequence[Method] | None = None
    folds: AtLeast2 = 4
    selection: Selection = field(default_factory=Greedy)
    most_scenarios: Count = MOST
    solver: Solver = field(default_factory=Auto)
    workers: Count = 1
    training: Training = field(default_factory=Training)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.methods is None:
            return
        if not self.methods:
            raise ValueError(
                "Blend needs a list of at least one method, but got none. Leave methods out for "
                "the usual candidates."
            )
        for method in self.methods:
            check_scenarios("Blend", method)
            if method.task is not self.task:
                raise ValueError(
                    f"Blend needs candidates for one task, but its {type(method).__name__} was "
                    f"made for another one than Blend's. Pass the same task to all."
                )

    def changed(self, **settings: Any) -> "Blend":
        """A copy; the task, the seed and the training reach the candidates, too."""
        if self.methods is not None and "methods" not in settings:
            methods = self.methods
            for name in ("task", "seed"):
                if name in settings:
                    methods = [m.changed(**{name: settings[name]}) for m in methods]
            if "training" in settings:
                new = settings["training"]
                methods = [m.changed(training=new) if m.trains() else m for m in methods]
            settings["methods"] = methods
        return replace(self, **settings)

    def _fit(self, train: Dataset, val: Dataset) -> None:
        pairs = join(train, val)
        self.tried_ = self._on_one_device(self._candidates(suitable(pairs.x, pairs.y)))
        self._fit_blend(names_of(self.tried_), pairs)

    def _candidates(self, forms: Sequence[Outcomes]) -> list[Method]:
        pairs = Dataset(*self._blank(2))
        return list(self.methods or ()) or default_candidates(
            self.task, pairs, self.training, self.solver, self.seed, forms
        )

    def _on_one_device(self, candidates: Sequence[Method]) -> list[Method]:
        """Candidates without a training work where the networks of the others are."""
        here = self.task.feasible.bounds[0].device
        places = [training.where() for m in candidates if (training := m.trains()) is not None]
        task = self._move_task(places[0] if places else here)
        return [m if task is self.task else m.changed(task=task) for m in candidates]


def default_candidates(
    task: Task,
    pairs: Dataset,
    training: Training,
    solver: Solver,
    seed: int,
    forms: Sequence[Outcomes] | None = None,
) -> list[Method]:
    """DF2 with each form that suits the pairs or is given, a mixture, a forest, neighbours."""
    common: dict[str, Any] = {"solver": solver, "seed": seed}
    forms = suitable(pairs.x, pairs.y) if forms is None else forms
    return [
        *(DF2(task, outcomes=f, folds=1, training=training, **common) for f in forms),
        TwoStage(task, Mixture(3), draws=DRAWS, training=training, **common),
        RandomForest(task, **common),
        NearestNeighbours(task, **common),
    ]


def names_of(methods: Sequence[Method]) -> list[str]:
    """A name for each, such as "DF2 anchored" or "TwoStage"; equal ones are numbered.

    >>> from costscape.problems import inventory
    >>> task = inventory()
    >>> names_of([NearestNeighbours(task, k=5), NearestNeighbours(task, k=50)])
    ['NearestNeighbours 1', 'NearestNeighbours 2']
    """
    plain = [
        f"DF2 {name_of(m.outcomes)}" if isinstance(m, DF2) and m.outcomes else type(m).__name__
        for m in methods
    ]
    often, seen = Counter(plain), Counter[str]()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(f"{name} {seen[name]}" if often[name] > 1 else name)
    return names
