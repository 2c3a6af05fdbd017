"""Carry out one run; the answer is a row, whatever happens."""

import os
import platform
import subprocess
import traceback
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import costscape
from costscape import distributed
from costscape.evaluation import evaluate
from costscape.experiments.memory import peak, watch
from costscape.experiments.runs import Run, prepare, problem_of, recipe_of
from costscape.methods import Method
from costscape.refusal import Refusal
from costscape.tasks import Task
from costscape.train import History, Training

Row = dict[str, Any]
POINTS = 20  # of a training curve, at most
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


def execute(run: Run, device: str | None = None) -> Row:
    """Fit, decide for the test part, pay; a refusal or an error stands in the row, too.

    Costs are paid in double precision. ``device`` None takes a GPU where there is one.
    """
    row = blank(run)
    watch()
    try:
        made = prepare(run, device)
        p, method = made.problem, made.method
        train, val, test = p.data.train, p.data.val, p.data.test
        row |= {"recipe": made.recipe, "source": p.source, "device": _place(method)}
        method.fit(train.x, train.y, val=(val.x, val.y))
        payer = _payer(run.problem, run.seed, run.quick, device)
        result = evaluate(method, test.x, test.y, truth=p.truth, task=payer)
        for name in ("cost", "regret", "gap"):
            if not isfinite(getattr(result, name) or 0.0):
                raise ValueError(f"The {name} of the decisions is {getattr(result, name)}.")
    except Refusal as reason:
        return row | {"recipe": row["recipe"] or recipe_of(run), "refused": str(reason)}
    except Exception:
        if distributed.size() > 1:
            raise  # the other processes would wait for this one
        return row | {"error": traceback.format_exc()}
    history = _history(method)
    return row | {
        "regret": result.regret,
        "cost": result.cost,
        "gap": result.gap,
        "standard_error": result.standard_error,
        "rows": result.rows,
        "fit_seconds": result.fit_seconds,
        "decide_seconds": result.decide_seconds,
        "epochs": history and len(history.losses),
        "chosen_epoch": history and history.best_epoch + 1,
        "curve": curve(history) if history else [],
        "peak_memory": peak(_on_gpu(method)),
    }


def blank(run: Run) -> Row:
    """The row of a run that has not been carried out."""
    nothing = (
        *("regret", "cost", "gap", "standard_error", "rows", "refused", "error"),
        *("fit_seconds", "decide_seconds", "epochs", "chosen_epoch", "peak_memory"),
    )
    return {
        "problem": run.problem,
        "method": run.method,
        "seed": run.seed,
        "changes": dict(run.changes),
        "quick": run.quick,
        **dict.fromkeys(nothing),
        "curve": [],
        "source": None,
        "recipe": None,
        "device": None,
        "versions": _versions(),
        "commit": _commit(),
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
    kept = getattr(method, "history_", None)
    if isinstance(kept, Sequence):
        kept = kept[-1] if kept else None
    return kept if isinstance(kept, History) and kept.losses else None


@lru_cache(maxsize=16)
def _payer(problem: str, seed: int, quick: bool, device: str | None) -> Task:
    """The task in double precision; it remembers the best actions of the test part."""
    p = problem_of(problem, seed, quick)
    task = deepcopy(p.task).double().to(Training(device=device).where())
    if task.hindsight is not None:
        y = p.data.test.y.to(task.feasible.bounds[0])
        task.hindsight = _Known(y, task.hindsight(y), task.hindsight)
    return task


class _Known:
    """y -> the best action, computed once for the outcomes that every method is paid at."""

    def __init__(self, y: Tensor, best: Tensor, find: Callable[[Tensor], Tensor]) -> None:
        self.y, self.best, self.find = y, best, find

    def __call__(self, y: Tensor) -> Tensor:
        return self.best if torch.equal(y, self.y) else self.find(y)


def _on_gpu(method: Method) -> bool:
    training = getattr(method, "training", None)
    if isinstance(training, Training):
        return training.where().type == "cuda"
    return method.task.feasible.bounds[0].is_cuda


def _place(method: Method) -> str:
    if _on_gpu(method):
        return torch.cuda.get_device_name()
    return f"cpu: {platform.machine()}, {os.cpu_count()} cores"


@cache
def _versions() -> dict[str, str]:
    known = {"costscape": costscape.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:  # installed in another way
            known[package] = {"numpy": np, "torch": torch}[package].__version__
    return known


@cache
def _commit() -> str | None:
    """Of the source tree this runs from, if it is one; COSTSCAPE_COMMIT says it elsewhere."""
    if told := os.environ.get("COSTSCAPE_COMMIT"):
        return told
    try:
        # a package installed below someone else's tree is no file of that tree
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        return _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*") or None
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*words: str) -> str:
    ask = ["git", "-C", str(Path(__file__).parent), *words]
    answer = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=True)
    return answer.stdout.strip()
