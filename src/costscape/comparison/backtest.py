"""Fit and decide on the earlier rows, then compute the costs on the last rows.

    c_m,i = mean over seeds of f(y_i, a_m(x_i)),   d_i = c_m,i - c_best,i,   i over the test rows

A bad day is bad for all methods, so differences on the same rows are far more certain than the
costs themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costscape.arrays import check_time_order, names_of, read_pairs
from costscape.block_bootstrap import block_length, difference, standard_error
from costscape.comparison.advice import Standing
from costscape.comparison.candidates import (
    Trial,
    check_methods,
    default_methods,
    fits_of,
    joined,
    try_out,
)
from costscape.comparison.result import Comparison
from costscape.evaluation import hindsight_cost
from costscape.methods import Method
from costscape.methods.method import HELD_OUT
from costscape.task import Refusal, Task
from costscape.training import Training
from costscape.training.progress import one_bar


def compare(
    task: Task,
    X: Any,
    Y: Any,
    *,
    methods: Mapping[str, Method] | None = None,
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
        methods: names and unfitted methods, which stay unfitted; None for ``default_methods``.
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
        progress: bool, default True. Show a progress bar on stderr.

    Returns a Comparison. It names each method that refuses the task or fails; if all do, compare
    raises RuntimeError.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=1))
    >>> x = torch.linspace(0, 1, 50)[:, None]
    >>> methods = {"constant": cs.Constant(task), "neighbours": cs.NearestNeighbours(task, k=3)}
    >>> cs.compare(task, x, x, methods=methods, progress=False).best
    'neighbours'
    """
    if seeds < 1:
        raise ValueError(f"compare needs seeds of at least 1, but got {seeds}. Try seeds=3.")
    if methods is not None and training is not None:
        raise ValueError(
            "compare needs either methods or the training of its default methods, but got both. "
            "Give each of your methods its own training."
        )
    methods = default_methods(task, training) if methods is None else methods
    check_methods(methods)
    home = task.feasible.bounds[0]
    parts = _cut(X, Y, test, origins, gap, block, home.dtype)
    trials: dict[str, Trial] = {}
    refused, failed, done = {}, {}, 0
    fits = origins * sum(fits_of(m, seeds) for m in methods.values())
    with one_bar("compare", fits, progress) as job:
        for name, method in methods.items():
            count = fits_of(method, seeds)
            bars = [[job(done + k * count + i) for i in range(count)] for k in range(origins)]
            done += origins * count
            try:
                trials[name] = joined(
                    [
                        try_out(name, method, part.train, part.val, part.x, task, bar, k)
                        for k, (part, bar) in enumerate(zip(parts, bars, strict=True))
                    ]
                )
            except Refusal as reason:
                refused[name] = str(reason)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
    # all methods have decided: only now are outcomes of the test part used
    x, y, costs = torch.cat([part.x for part in parts]), torch.cat([p.y for p in parts]), {}
    x = x.unsqueeze(-1) if x.ndim == 1 else x
    paid = task.bound(x, names_of(X))
    y = paid.join(x, y).to(home)
    with torch.no_grad():
        for name, trial in trials.items():
            by_seed = _numpy(torch.stack([paid.cost(y, a) for a in trial.decisions]))
            if bad := int((~np.isfinite(by_seed)).sum()):
                failed[name] = f"{bad} of its costs on the test rows are not finite."
            else:
                costs[name] = by_seed
        if not costs:
            why = " ".join(f"{name}: {text}" for name, text in {**refused, **failed}.items())
            raise RuntimeError(
                f"compare needs a method that decides, but none of {len(methods)} did. {why}"
            )
        least = hindsight_cost(paid, y, paid.sets(x.to(home)))
    best = min((by_seed.mean(0) for by_seed in costs.values()), key=np.mean)
    ends = np.cumsum([len(part.x) for part in parts])
    last = parts[-1]
    standings = [
        _standing(name, trials[name], costs[name], best, least, last.block, ends) for name in costs
    ]
    standings.sort(key=lambda standing: standing.cost)
    rows = (last.rows[0], last.rows[1], len(y))
    return Comparison(tuple(standings), refused, failed, *rows, last.block)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Rows to learn from and rows to choose the epoch on, as the user gave them; test rows."""

    train: tuple[Any, Any]
    val: tuple[Any, Any]
    x: Tensor
    y: Tensor
    rows: tuple[int, int, int]
    block: int


def _cut(
    X: Any,
    Y: Any,
    test: float,
    origins: int,
    gap: int,
    block: int | None,
    dtype: torch.dtype,
) -> list[_Parts]:
    """The last ``test`` of the rows in parts; of those before a part, the last fifth validates."""
    if not 0 < test < 1:
        raise ValueError(
            f"compare needs test, the share of the rows to test on, between 0 and 1, but got "
            f"{test}. Try test=0.2."
        )
    if origins < 1 or gap < 0 or (block is not None and block < 1):
        raise ValueError(
            f"compare needs at least 1 origin, a gap of at least 0 rows and a block of at least 1 "
            f"row, but got origins={origins}, gap={gap} and block={block}."
        )
    x, y = read_pairs(X, Y, dtype)
    y = y.unsqueeze(-1) if y.ndim == 1 else y
    check_time_order(X, "X")
    check_time_order(Y, "Y")
    first_test = round(len(x) * (1 - test))
    tested = len(x) - first_test
    length = block_length(tested) if block is None else block
    starts = [first_test + k * tested // origins for k in range(origins)]
    parts = []
    for start, stop in zip(starts, [*starts[1:], len(x)], strict=True):
        end = max(start - gap, 0)
        first_val = round(end * (1 - HELD_OUT))
        train, val = max(first_val - gap, 0), end - first_val
        if train < 1 or val < 1 or stop == start or tested < 2 * length:
            raise ValueError(
                f"compare needs rows to learn from, rows to choose the epoch on and at least two "
                f"blocks of {length} rows to test on, but {len(x)} rows with test={test:g}, "
                f"origins={origins} and gap={gap} make {train}, {val} and {tested}. Bring more "
                f"rows, or change test, origins, gap or block."
            )
        parts.append(
            _Parts(
                (_rows(X, 0, train), _rows(Y, 0, train)),
                (_rows(X, first_val, end), _rows(Y, first_val, end)),
                x[start:stop],
                y[start:stop],
                (train, val, stop - start),
                length,
            )
        )
    return parts


def _rows(value: Any, first: int, end: int) -> Any:
    return value.iloc[first:end] if hasattr(value, "iloc") else value[first:end]


def _numpy(costs: Tensor) -> np.ndarray:
    array: np.ndarray = costs.double().cpu().numpy()
    return array


def _standing(
    name: str,
    trial: Trial,
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
        fit_seconds=trial.fit_seconds,
        decide_seconds=trial.decide_seconds,
        model=trial.fitted,
        costs=costs,
        by_origin=tuple(float(part.mean()) for part in np.split(costs, ends[:-1])),
    )
