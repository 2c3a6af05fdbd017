"""One trial of a search: fit at each origin, and cost the decisions on the rows that follow."""

import os
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite

import numpy as np
import torch

from costscape.bench.execution import block_of
from costscape.bench.method_names import method_of
from costscape.bench.provenance import commit, device_of, versions
from costscape.bench.quick import brief
from costscape.bench.runs import placed
from costscape.bench.search_space import Settings, with_settings
from costscape.bench.tuning_rows import Trial
from costscape.block_bootstrap import standard_error
from costscape.data import join
from costscape.methods import Method
from costscape.methods.end_with_parent import ending_with_this_process
from costscape.problems.problem import Problem
from costscape.training import Training


@dataclass(frozen=True)
class Tried:
    """A method of a search, with a seed, on a device.

    Args:
        name: str, of the method.
        seed: int, of every fit.
        device: str such as "cpu"; None takes a GPU where there is one.
        quick: bool, whether the method is cut down.
        workers: int >= 1, how many origins are fitted at a time.
    """

    name: str
    seed: int
    device: str | None
    quick: bool
    workers: int

    def trial(self, parts: Sequence[Problem], settings: Settings) -> Trial:
        """The row of a trial; an error of the default settings is raised, any other is kept.

        A worker that dies is raised, too: that says nothing about the settings.
        """
        begin = time.perf_counter()
        result: Trial = {"cost": None, "standard_error": None, "rows": None, "error": None}
        where = None
        try:
            where = device_of(self._method(parts[0], settings))
            together = np.concatenate(self._at_origins(parts, settings))
            if not isfinite(together.mean()):
                raise _NotFinite(f"The mean cost of the decisions is {together.mean()}.")
            tested = join(*(p.data.test for p in parts))
            block = block_of(replace(parts[0], data=replace(parts[0].data, test=tested)))
            result |= {
                "cost": float(together.mean()),
                "standard_error": standard_error(together, block),
                "rows": len(together),
            }
        except WorkerDied:
            raise
        except Exception as error:
            if not settings and not isinstance(error, _NotFinite):
                raise
            result["error"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return {
            "settings": dict(settings),
            **result,
            "seconds": round(time.perf_counter() - begin, 3),
            "device": where,
            "versions": versions(),
            "commit": commit(),
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def _at_origins(self, parts: Sequence[Problem], settings: Settings) -> list[np.ndarray]:
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        at_a_time = min(self.workers, len(parts))
        if at_a_time == 1:
            return [self.costs(p, settings) for p in parts]
        threads = max(1, (os.cpu_count() or 1) // at_a_time)
        with parallel_config(backend="loky", inner_max_num_threads=threads):
            pool = Parallel(n_jobs=at_a_time, **ending_with_this_process())
            try:
                found: list[np.ndarray] = pool(delayed(self.costs)(p, settings) for p in parts)
            except TerminatedWorkerError as error:
                raise WorkerDied(
                    f"A trial needs its {at_a_time} workers to live, but one died, maybe for want "
                    f"of memory. Take fewer --workers; finished trials are kept."
                ) from error
        return found

    def costs(self, p: Problem, settings: Settings) -> np.ndarray:
        """Fit at one origin; the cost of each decision after it."""
        method, train, val = self._method(p, settings), p.data.train, p.data.val
        method.fit(train.x, train.y, val=(val.x, val.y))
        return _costs(p, method.decide(p.data.test.x), self.device)

    def _method(self, p: Problem, settings: Settings) -> Method:
        shape = tuple(p.data.train.x.shape[1:])
        method = with_settings(method_of(self.name)(p, self.seed), settings, shape)
        if self.quick:
            method = brief(method, p.data.train)
        return placed(method, Training(device=self.device))


class WorkerDied(OSError):
    """A process that fitted at an origin is gone."""


class _NotFinite(ValueError):
    """Settings with which training diverges, which may be the default ones."""


def _costs(p: Problem, a: torch.Tensor, device: str | None) -> np.ndarray:
    """In double precision."""
    task = deepcopy(p.task).double().to(Training(device=device).where())
    home = task.feasible.bounds[0]
    y = p.data.test.y.to(home)
    with torch.no_grad():
        costs: np.ndarray = task.cost(y, a.reshape(len(y), -1).to(home)).cpu().numpy()
    return costs
