"""Where runs are executed: here, in processes of this machine, or on a Ray cluster.

An engine takes the work and the runs, and yields the outcome of each run as it ends, in any order.
A run whose worker died has an outcome, too: its row holds the error.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from costscape.bench.execution import Outcome, blank
from costscape.bench.runs import Run
from costscape.methods.end_with_parent import ending_with_this_process

CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # whether nodes of other machines may join
Work = Callable[[Run], Outcome]


class Engine(ABC):
    @abstractmethod
    def map(self, work: Work, runs: Sequence[Run]) -> Iterator[tuple[Run, Outcome]]:
        """Each run with its outcome, in the order in which they end."""


@dataclass(frozen=True)
class Here(Engine):
    """One after the other in this process: for one worker, and for debuggers."""

    def map(self, work: Work, runs: Sequence[Run]) -> Iterator[tuple[Run, Outcome]]:
        for run in runs:
            yield run, work(run)


@dataclass(frozen=True)
class Processes(Engine):
    """joblib's processes on this machine; the cores are shared out between them."""

    workers: int

    def map(self, work: Work, runs: Sequence[Run]) -> Iterator[tuple[Run, Outcome]]:
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = dict(enumerate(runs))
        while left:
            begun: list[int] = []
            try:
                for i, outcome in self._pool(work, left, self.workers, begun):
                    yield left.pop(i), outcome
            except TerminatedWorkerError:
                # one at a time, so that it is known which of those at work killed its worker
                for i in [i for i in begun if i in left] or list(left):
                    run = left.pop(i)
                    try:
                        yield run, next(self._pool(work, {i: run}, 1, []))[1]
                    except TerminatedWorkerError as error:
                        yield run, died(run, str(error))

    def _pool(
        self, work: Work, runs: dict[int, Run], workers: int, begun: list[int]
    ) -> Iterator[tuple[int, Outcome]]:
        from joblib import Parallel, delayed, parallel_config

        threads = max(1, (os.cpu_count() or 1) // self.workers)

        def jobs() -> Iterator[Any]:
            for i, run in list(runs.items()):
                begun.append(i)
                yield delayed(_numbered)(work, i, run)

        # two workers at least: joblib would run a single one in this process
        with parallel_config(backend="loky", inner_max_num_threads=threads):
            pool = Parallel(
                n_jobs=max(2, workers),
                return_as="generator_unordered",
                pre_dispatch=workers,
                **ending_with_this_process(),
            )
            yield from pool(jobs())


@dataclass(frozen=True)
class Ray(Engine):
    """A Ray cluster, whose nodes have costscape and the data; ``address`` None starts one here.

    One that is started here listens on 127.0.0.1 only, unless Ray was imported before.

    A run whose worker or node dies is tried again elsewhere, ``retries`` times. ``gpus`` is the
    part of one that each run gets; None: a whole one, if the cluster has any. ``workers`` None
    leaves it to Ray how many run at once.
    """

    address: str | None = None
    workers: int | None = None
    gpus: float | None = None
    retries: int = 3

    def map(self, work: Work, runs: Sequence[Run]) -> Iterator[tuple[Run, Outcome]]:
        if self.address is None:
            # Ray reads it at import: nodes then have the address 127.0.0.1, and listen on no other
            os.environ.setdefault(CLUSTERS, "0")
        import ray
        from ray.exceptions import RayError

        begun = not ray.is_initialized()
        if begun:
            ray.init(address=self.address, log_to_driver=False, include_dashboard=False)

        def job(run: Run) -> Outcome:  # Ray takes functions only, and work may be a partial
            return work(run)

        gpus = self.gpus
        if gpus is None:
            gpus = min(1.0, ray.cluster_resources().get("GPU", 0.0))
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=self.retries)(job)
        try:
            left = list(reversed(runs))
            waiting: dict[object, Run] = {}
            most = self.workers or len(left)
            while left or waiting:
                while left and len(waiting) < most:
                    run = left.pop()
                    waiting[remote.remote(run)] = run
                (done, *_), _ = ray.wait(list(waiting), num_returns=1)
                run = waiting.pop(done)
                try:
                    yield run, ray.get(done)
                except RayError as error:
                    yield run, died(run, str(error))
        finally:
            for task in waiting:
                ray.cancel(task, force=True)
            if begun:
                ray.shutdown()


def died(run: Run, what: str) -> Outcome:
    """The outcome of a run whose worker died."""
    why = f"The worker died, maybe for want of memory; take fewer workers. {what}"
    return Outcome(blank(run) | {"error": why})


def _numbered(work: Work, i: int, run: Run) -> tuple[int, Outcome]:
    return i, work(run)
