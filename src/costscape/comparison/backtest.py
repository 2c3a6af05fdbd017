"""Fit, decide, and only then pay: which method to use on one's own data.

    c_m,i = mean over seeds of f(y_i, a_m(x_i)),   d_i = c_m,i - c_best,i,   i over the test rows

Bad days are bad for all methods, so that differences on the same rows are far surer than the
costs themselves.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costscape.block_bootstrap import difference, standard_error
from costscape.comparison.advice import Standing
from costscape.comparison.candidates import (
    Trial,
    attempt,
    check_methods,
    default_methods,
    seeds_of,
)
from costscape.comparison.result import Comparison
from costscape.comparison.time_split import cut
from costscape.evaluation import hindsight_cost
from costscape.methods import Method
from costscape.task import Refusal, Task
from costscape.training import Training
from costscape.training.progress import Show
from costscape.training.progress import progress as bar


def compare(
    task: Task,
    X: Any,
    Y: Any,
    *,
    methods: Mapping[str, Method] | None = None,
    seeds: int = 3,
    test: float = 0.2,
    gap: int = 0,
    block: int | None = None,
    training: Training | None = None,
    progress: bool = True,
) -> Comparison:
    """Fit methods on the earlier rows, test them in pairs on the last ones, say which to use.

    Rows are taken in order of time. The last ``test`` of them is the test part; of the rest the
    last fifth chooses the epoch, as in ``fit``.

    - ``methods``: names and unfitted methods, which stay unfitted; None is ``default_methods``,
      whose networks ``training`` trains.
    - ``seeds``: how often a method with a network is fitted, from its own seed on; others once.
    - ``gap``: rows in no part before each cut, for windows that overlap: with history + gap +
      horizon - 1 no moment is in two parts.
    - ``block``: rows that are resampled together, None for the cube root of the test rows. Take
      as many as rows share moments or moods.

    ``task`` pays for all decisions, which must lie in its set. A method that refuses it, or
    fails, is named in the result; only if all do is that an error. A checkpoint of the training
    becomes one for each method and seed.
    """
    if seeds < 1:
        raise ValueError(f"compare needs seeds of at least 1, but got {seeds}. Try seeds=3.")
    if methods is not None and training is not None:
        raise ValueError(
            "compare needs either methods or the training of its usual ones, but got both. Give "
            "each of your methods its own training."
        )
    if methods is None:
        methods = default_methods(task, training)
    check_methods(methods)
    parts = cut(X, Y, test, gap, block, task.feasible.bounds[0].dtype)
    trials: dict[str, Trial] = {}
    refused, failed = {}, {}
    total, done = sum(seeds_of(method, seeds) for method in methods.values()), 0
    with bar("compare", total, progress) as show:
        for name, method in methods.items():
            before = partial(_later, show, done)
            try:
                trials[name] = attempt(name, method, parts, task, seeds, before)
            except Refusal as reason:
                refused[name] = str(reason)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
            done += seeds_of(method, seeds)
    # all have decided: only now do outcomes of the test part count
    paid = {name: _pay(task, parts.y, trial) for name, trial in trials.items()}
    for name in [name for name, costs in paid.items() if not np.isfinite(costs).all()]:
        bad = int((~np.isfinite(paid.pop(name))).sum())
        failed[name] = f"{bad} of its costs on the test rows are not finite."
    if not paid:
        why = " ".join(f"{name}: {text}" for name, text in {**refused, **failed}.items())
        raise RuntimeError(
            f"compare needs a method that decides, but none of {len(methods)} did. {why}"
        )
    least = _least(task, parts.y)
    best = min((costs.mean(0) for costs in paid.values()), key=np.mean)
    found = [_standing(n, trials[n], costs, best, least, parts.block) for n, costs in paid.items()]
    found.sort(key=lambda standing: standing.cost)
    return Comparison(tuple(found), refused, failed, *parts.rows, parts.block)


def _later(show: Show, done: int, i: int, note: str) -> None:
    show(done + i, note)


@torch.no_grad()
def _pay(task: Task, y: Tensor, trial: Trial) -> np.ndarray:
    """f(y, a), (seeds, n)."""
    y = y.to(task.feasible.bounds[0])
    costs = torch.stack([task.cost(y, a) for a in trial.decisions])
    return costs.double().cpu().numpy()


@torch.no_grad()
def _least(task: Task, y: Tensor) -> np.ndarray | None:
    least = hindsight_cost(task, y.to(task.feasible.bounds[0]))
    return None if least is None else least.double().cpu().numpy()


def _standing(
    name: str,
    trial: Trial,
    paid: np.ndarray,
    best: np.ndarray,
    least: np.ndarray | None,
    block: int,
) -> Standing:
    costs = paid.mean(0)
    return Standing(
        name=name,
        cost=float(costs.mean()),
        standard_error=standard_error(costs, block),
        regret=None if least is None else float((costs - least).mean()),
        seeds=len(paid),
        sd=float(paid.mean(1).std(ddof=1)) if len(paid) > 1 else None,
        above_best=difference(costs - best, block),
        fit_seconds=trial.fit_seconds,
        decide_seconds=trial.decide_seconds,
        model=trial.fitted,
        costs=costs,
    )
