"""Fit and decide on the earlier rows, then compute the costs on the last rows.

    c_m,i = mean over seeds of f(y_i, a_m(x_i)),   d_i = c_m,i - c_best,i,   i over the test rows

A bad day is bad for all methods, so differences on the same rows are far more certain than the
costs themselves.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costscape.arrays import names_of
from costscape.block_bootstrap import difference, standard_error
from costscape.comparison.advice import SIMPLE, Standing
from costscape.comparison.candidates import (
    Trial,
    check_methods,
    default_methods,
    feasible,
    fits_of,
    try_out,
    usual_time,
)
from costscape.comparison.present_rules import LAST, TODAY, actions_of, last_values, rule_of
from costscape.comparison.result import Comparison
from costscape.comparison.time_budget import OutOfTime, TimeBudget
from costscape.comparison.time_split import Part, cut_in_time, labels
from costscape.data.dataset import check_count
from costscape.evaluation import hindsight_cost
from costscape.methods import Method
from costscape.task import Refusal, Task
from costscape.training import Training
from costscape.training.progress import one_bar


def compare(
    task: Task,
    X: Any,
    Y: Any,
    *,
    methods: Mapping[str, Method] | None = None,
    today: Any = None,
    budget: int | float | str | None = None,
    prefer: str | None = None,
    seeds: int = 3,
    test: float = 0.2,
    origins: int = 1,
    gap: int = 0,
    block: int | None = None,
    training: Training | None = None,
    progress: bool = True,
) -> Comparison:
    """Fit methods on the earlier rows, test them in pairs on the last rows, recommend one.

    Args:
        task: computes the cost of all decisions, which must lie in its set.
        X: features (n, ...) in order of time: an array, a tensor, a frame or lists.
        Y: outcomes (n, *y_shape).
        methods: names and unfitted methods, which stay unfitted; None for ``default_methods`` and,
            if X has windows (n, T, 1) of one series, their last values as decisions.
        today: what is decided now, compared as "today's decisions": an array of the decisions
            taken for all n rows, a function from rows of X to actions, or names of columns of X.
        budget: seconds, or a text such as "2 min". Methods are fitted from cheap to dear, first
            all with one seed, then with the others. The result names those that did not end in
            time. Fits are not shortened; a forest, which reports no progress, is not stopped.
        prefer: None recommends the lowest mean cost, "simple" the simplest of the methods that
            are not clearly worse.
        seeds: int, default 3. How often a method with a network is fitted, from its own seed on;
            methods without a network are fitted once.
        test: float, default 0.2. The last share of the rows, to test on. Of the rows before, the
            last fifth chooses the epoch, as in ``fit``.
        origins: int, default 1. Parts of equal length into which the test rows are cut. Every
            method is fitted once more before each part, on all rows before it.
        gap: int, default 0. Rows dropped before each cut. If rows are windows that overlap,
            history + gap + horizon - 1 keeps every moment in one part.
        block: int. Rows that are resampled together; None for the cube root of the test rows.
            Take as many as rows share an outcome.
        training: of the networks of the default methods. A checkpoint becomes one file for each
            method and seed.
        progress: bool, default True. Show a progress bar with the time left on stderr.

    Returns a Comparison. It names each method that refuses the task or fails; if all do, compare
    raises RuntimeError.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=1))
    >>> x = torch.linspace(0, 1, 50)[:, None]
    >>> methods = {"constant": cs.Constant(task), "neighbours": cs.NearestNeighbours(task, k=3)}
    >>> cs.compare(task, x, x, methods=methods, progress=False).best
    'neighbours'
    """
    _check(methods, training, seeds, prefer)
    limit = TimeBudget(budget)
    home = task.feasible.bounds[0]
    parts = cut_in_time(X, Y, test, origins, gap, block, home.dtype)
    usual = default_methods(task, training) if methods is None else methods
    check_methods(usual)
    made: dict[str, Method] = {}  # what takes no time comes first
    if methods is None and (rule := last_values(task, parts[0].x, parts[0].y)) is not None:
        made[LAST] = rule
    trials: dict[str, list[Trial]] = {}
    refused, failed, left_out = {}, {}, {}
    if today is not None and (rule := rule_of(today, task, names_of(X))) is not None:
        made[TODAY] = rule
    elif today is not None:
        try:
            trials[TODAY] = [_given(today, parts, task, X)]
        except RuntimeError as error:  # not in the set
            failed[TODAY] = str(error)
    made |= usual
    order = sorted(made, key=lambda name: usual_time(made[name]))
    jobs = [(i, name) for i in range(seeds) for name in order if i < fits_of(made[name], seeds)]
    steps = {name: usual_time(made[name]) for name in made}
    done = 0
    with one_bar("compare", origins * sum(steps[name] for _, name in jobs), progress) as job:
        for i, name in jobs:
            span = steps[name]
            bars = [job(done + k * span, span) for k in range(origins)]
            done += origins * span
            if i and not trials.get(name):
                continue
            try:
                trial = try_out(name, made[name], parts, task, i, bars, limit)
                trials.setdefault(name, []).append(trial)
            except OutOfTime as reason:
                left_out[name] = f"{reason} (seed {i + 1} of {seeds})" if i else str(reason)
            except Refusal as reason:
                refused[name] = str(reason)
            except Exception as error:
                trials.pop(name, None)
                failed[name] = f"{type(error).__name__}: {error}"
    if not trials:
        why = " ".join(f"{name}: {s}" for name, s in {**refused, **failed, **left_out}.items())
        raise RuntimeError(
            f"compare needs a method that decides, but none of {len(made)} did. {why}"
        )
    # all methods have decided: only now are outcomes of the test part used
    costs, least = _costs(task, parts, trials, failed, names_of(X))
    best = min((by_seed.mean(0) for by_seed in costs.values()), key=np.mean)
    ends = np.cumsum([len(part.x) for part in parts])
    last = parts[-1]
    standings = [
        _standing(name, trials[name], costs[name], best, least, last.block, ends) for name in costs
    ]
    standings.sort(key=lambda standing: standing.cost)
    return Comparison(
        standings=tuple(standings),
        refused=refused,
        failed=failed,
        train_rows=last.rows[0],
        val_rows=last.rows[1],
        test_rows=int(ends[-1]),
        block=last.block,
        left_out=left_out,
        prefer=prefer,
        rows=labels(X, Y, slice(parts[0].at.start, last.at.stop)),
        pairs=(X, Y),
    )


def _check(methods: Any, training: Training | None, seeds: int, prefer: str | None) -> None:
    check_count("compare", "seeds", seeds)
    if prefer not in (None, SIMPLE):
        raise ValueError(
            f"compare needs prefer to be None, for the lowest mean cost, or {SIMPLE!r}, but got "
            f"{prefer!r}."
        )
    if methods is not None and training is not None:
        raise ValueError(
            "compare needs either methods or the training of its default methods, but got both. "
            "Give each of your methods its own training."
        )


def _given(today: Any, parts: list[Part], task: Task, X: Any) -> Trial:
    """Decisions that were taken, of the test rows."""
    first = task.bound(parts[0].x, names_of(X))
    a = actions_of(today, len(X), first.feasible.dim)
    taken = [feasible(TODAY, a[part.at], part.x, task, names_of(X)) for part in parts]
    return Trial(torch.cat(taken), None, 0.0, 0.0)


def _costs(
    task: Task,
    parts: list[Part],
    trials: Mapping[str, list[Trial]],
    failed: dict[str, str],
    names: tuple[str, ...] | None,
) -> tuple[dict[str, np.ndarray], Tensor | None]:
    """Costs (seeds, n) of each method, and the least of each row in hindsight, where known."""
    x, y = torch.cat([part.x for part in parts]), torch.cat([part.y for part in parts])
    x = x.unsqueeze(-1) if x.ndim == 1 else x
    home = task.feasible.bounds[0]
    paid = task.bound(x, names)
    y = paid.join(x, y).to(home)
    costs = {}
    with torch.no_grad():
        for name, by_seed in trials.items():
            found = _numpy(torch.stack([paid.cost(y, trial.decisions) for trial in by_seed]))
            if bad := int((~np.isfinite(found)).sum()):
                failed[name] = f"{bad} of its costs on the test rows are not finite."
            else:
                costs[name] = found
        if not costs:
            why = " ".join(f"{name}: {text}" for name, text in failed.items())
            raise RuntimeError(
                f"compare needs a method with finite costs, but none of {len(trials)} has. {why}"
            )
        return costs, hindsight_cost(paid, y, paid.sets(x.to(home)))


def _numpy(costs: Tensor) -> np.ndarray:
    array: np.ndarray = costs.double().cpu().numpy()
    return array


def _standing(
    name: str,
    trials: list[Trial],
    by_seed: np.ndarray,
    best: np.ndarray,
    least: Tensor | None,
    block: int,
    ends: np.ndarray,
) -> Standing:
    costs = by_seed.mean(0)
    return Standing(
        name=name,
        cost=float(costs.mean()),
        standard_error=standard_error(costs, block),
        regret=None if least is None else float((costs - _numpy(least)).mean()),
        seeds=len(by_seed),
        sd=float(by_seed.mean(1).std(ddof=1)) if len(by_seed) > 1 else None,
        above_best=difference(costs - best, block),
        fit_seconds=float(np.mean([trial.fit_seconds for trial in trials])),
        decide_seconds=float(np.mean([trial.decide_seconds for trial in trials])),
        model=trials[0].fitted,
        costs=costs,
        by_origin=tuple(float(part.mean()) for part in np.split(costs, ends[:-1])),
    )
