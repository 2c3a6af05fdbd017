"""Execute one run: fit, decide for the test rows, compute costs."""

import json
import traceback
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from costscape.bench.fingerprint import digest_of_test_rows
from costscape.bench.memory import peak, watch
from costscape.bench.method_names import TUNED
from costscape.bench.network_terms import network_terms
from costscape.bench.provenance import commit, device_of, on_gpu, versions
from costscape.bench.runs import Run, prepare, problem_of, recipe_of
from costscape.bench.tuning_rows import best_trial
from costscape.block_bootstrap import at_least_two, block_length
from costscape.evaluation import evaluate
from costscape.methods import Method
from costscape.problems.problem import Problem
from costscape.task import Refusal, Task
from costscape.training import History, Training

Row = dict[str, Any]
POINTS = 20  # of a training curve, at most


@dataclass(frozen=True)
class Outcome:
    """The result of a run: a small ``row``, and ``arrays`` with one number for each test row."""

    row: Row
    arrays: dict[str, np.ndarray] = field(default_factory=dict, repr=False)


def execute(run: Run, device: str | None = None) -> Outcome:
    """Fit, decide for the test rows, compute costs; the row holds a refusal or an error, too.

    Costs are computed in double precision. ``device`` None takes a GPU where there is one.
    """
    row = blank(run)
    watch()
    try:
        made = prepare(run, device)
        p, method = made.problem, made.method
        train, val, test = p.data.train, p.data.val, p.data.test
        row |= {"recipe": made.recipe, "source": p.source, "device": device_of(method)}
        row["network"] = network_terms(method, train)
        if TUNED in run.method:
            row["tuned"] = _tuned(run)
        method.fit(train.x, train.y, val=(val.x, val.y))
        payer, block = _payer(run.problem, run.seed, run.quick, device), block_of(p)
        result = evaluate(method, test.x, test.y, truth=p.truth, task=payer, block=block)
        for name in ("cost", "regret", "gap"):
            if not isfinite(getattr(result, name) or 0.0):
                raise ValueError(f"The {name} of the decisions is {getattr(result, name)}.")
        chosen = method.chosen()
        json.dumps(chosen, allow_nan=False)  # an error here is one of this run
    except Refusal as reason:
        recipe = row["recipe"] or recipe_of(run)
        return Outcome(row | {"recipe": recipe, "refused": str(reason)})
    except Exception:
        return Outcome(row | {"error": traceback.format_exc()})
    history = _history(method)
    facts = {
        "regret": result.regret,
        "cost": result.cost,
        "gap": result.gap,
        "standard_error": result.standard_error,
        "rows": result.rows,
        "block": block,
        "test_rows": digest_of_test_rows(p),
        "fit_seconds": result.fit_seconds,
        "decide_seconds": result.decide_seconds,
        "epochs": history and len(history.losses),
        "chosen_epoch": history and history.best_epoch + 1,
        "chosen": chosen,
        "curve": curve(history) if history else [],
        "peak_memory": peak(on_gpu(method)),
    }
    arrays = {"costs": result.costs, "regrets": result.regrets, "gaps": result.gaps}
    return Outcome(row | facts, {k: v for k, v in arrays.items() if v is not None})


def _tuned(run: Run) -> dict[str, Any]:
    """The search that chose the settings, as JSON."""
    trial = best_trial(run.tuning, run.problem, run.quick, run.method.partition(TUNED)[0])
    return {name: trial[name] for name in ("problem", "trial", "trials", "settings", "space")}


def block_of(problem: Problem) -> int:
    """How many neighbouring test rows are resampled together.

    The cube root of the number of dates, at least the horizon, since outcomes of windows overlap,
    times the rows of one date.
    """
    test = problem.data.test
    block = block_length(len(test))
    if test.dates is not None:
        dates = len(np.unique(test.dates))
        block = max(block_length(dates), test.y.shape[1]) * round(len(test) / dates)
    return at_least_two(block, len(test))


def blank(run: Run) -> Row:
    """The row of a run that has not been executed."""
    nothing = (
        *("regret", "cost", "gap", "standard_error", "rows", "refused", "error", "block"),
        *("test_rows", "fit_seconds", "decide_seconds", "epochs", "chosen_epoch", "peak_memory"),
    )
    return {
        "problem": run.problem,
        "method": run.method,
        "seed": run.seed,
        "changes": dict(run.changes),
        "quick": run.quick,
        **dict.fromkeys(nothing),
        "chosen": {},
        "curve": [],
        "source": None,
        "network": None,
        "recipe": None,
        "device": None,
        "versions": versions(),
        "commit": commit(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def curve(history: History) -> list[list[int | float | None]]:
    """[epoch, loss, score] of some epochs, the first and the last among them."""
    last = len(history.losses) - 1
    some = sorted({round(i * last / max(POINTS - 1, 1)) for i in range(POINTS)})

    def digits(values: list[float], i: int) -> float | None:
        known = i < len(values) and isfinite(values[i])
        return float(f"{values[i]:.5g}") if known else None

    return [[i + 1, digits(history.losses, i), digits(history.scores, i)] for i in some]


def _history(method: Method) -> History | None:
    """Of the network that was fitted last."""
    history = getattr(method, "history_", None)
    if isinstance(history, Sequence):
        history = history[-1] if history else None
    return history if isinstance(history, History) and history.losses else None


@lru_cache(maxsize=16)
def _payer(problem: str, seed: int, quick: bool, device: str | None) -> Task:
    """The task in double precision; it remembers the best actions of the test part."""
    p = problem_of(problem, seed, quick)
    task = deepcopy(p.task).double().to(Training(device=device).where())
    if task.hindsight is not None:
        y = p.data.test.y.to(task.feasible.bounds[0])
        task.hindsight = _Known(y, task.hindsight(y), task.hindsight)
    return task


class _Known(nn.Module):
    """y -> the best action, computed once for the outcomes at which every method is evaluated."""

    def __init__(self, y: Tensor, best: Tensor, find: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.y, self.best, self.find = y, best, find

    def forward(self, y: Tensor) -> Tensor:
        return self.best if torch.equal(y, self.y) else self.find(y)
