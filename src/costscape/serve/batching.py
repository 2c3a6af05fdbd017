"""Requests that arrive together share one call of the model.

A request waits at most ``wait_ms`` for others, or while the call before it runs. One thread calls
the model; the event loop keeps receiving.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from costscape.serve.refused import Refused
from costscape.serve.service_settings import Limits


@dataclass(frozen=True, eq=False)
class Job:
    """The rows and the question of one request, and the version that answers it.

    Args:
        served: ServedModel or RuntimeModel. The version that was current when the request came.
        rows: numpy array (n, ...).
        question: Question, default None for a model of the runtime.
        request_id: str, default "". Names the request in the log of decisions.
        keys: list of dict, default empty. What the client calls each row.
        trial: bool, default False. Nobody will carry the decisions out: they are not logged.
    """

    served: Any  # a type of ours would import torch, which the runtime is without
    rows: np.ndarray
    question: Any = None
    request_id: str = ""
    keys: Sequence[dict[str, Any]] = field(default_factory=list)
    trial: bool = False


Work = Callable[[Sequence[Job]], Sequence[Any]]  # a result or an exception for each job


class Batcher:
    """A queue of jobs, and one thread that does them, several in one call.

    Args:
        work: does some jobs, and returns a result or an exception for each.
        limits: Limits. The size of the queue and of a call, and the times.
        on_batch: called with the rows of each call.
    """

    def __init__(self, work: Work, limits: Limits, on_batch: Callable[[int], None]) -> None:
        self._work, self._limits, self._on_batch = work, limits, on_batch
        self._waiting: deque[tuple[Job, asyncio.Future[Any], float]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="costscape-serve")
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._closing = False
        self.rows = 0  # that wait or are being done

    def start(self) -> None:
        """Begin to take jobs; needs a running event loop."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Finish all jobs in the queue, then end."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def ask(self, job: Job) -> Any:
        """The result of a job; Refused where the queue is full or time is up."""
        limits, rows = self._limits, len(job.rows)
        if self._closing:
            raise Refused(503, "The service is shutting down. Ask again in 5 s.", 5)
        if self.rows + rows > limits.queue_rows:
            raise Refused(429, f"The queue is full, with {self.rows:,} rows. Ask again in 1 s.", 1)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self.rows += rows
        self._waiting.append((job, future, loop.time()))
        self._wake.set()
        try:
            return await asyncio.wait_for(future, limits.seconds)
        except TimeoutError:
            later = max(1, ceil(limits.seconds / 2))
            raise Refused(
                503,
                f"There was no answer within {limits.seconds:g} s. Send fewer rows, or ask again "
                f"in {later} s.",
                later,
            ) from None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting or not self._closing:
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
                continue
            left = self._waiting[0][2] + self._limits.wait_ms / 1e3 - loop.time()
            if left > 0 and self.rows < self._limits.batch_rows and not self._closing:
                await asyncio.sleep(left)
            batch = self._take()
            jobs = [job for job, future in batch if not future.done()]
            results: Sequence[Any] = []
            if jobs:
                self._on_batch(sum(len(job.rows) for job in jobs))
                results = await loop.run_in_executor(self._thread, _safely, self._work, jobs)
            done = dict(zip(map(id, jobs), results, strict=True))
            for job, future in batch:
                self.rows -= len(job.rows)
                if future.done():  # the client left, or time was up
                    continue
                result = done[id(job)]
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _take(self) -> list[tuple[Job, asyncio.Future[Any]]]:
        """The first job, and those behind it that fit into one call."""
        batch: list[tuple[Job, asyncio.Future[Any]]] = []
        rows = 0
        while self._waiting:
            job, future, _ = self._waiting[0]
            if batch and rows + len(job.rows) > self._limits.batch_rows:
                break
            self._waiting.popleft()
            batch.append((job, future))
            rows += len(job.rows)
        return batch


def decide_all(jobs: Sequence[Job]) -> list[Any]:
    """One call for each version and question; a job that fails leaves the others unharmed."""
    groups: dict[tuple[int, Any], list[int]] = {}
    for i, job in enumerate(jobs):
        groups.setdefault((id(job.served), job.question), []).append(i)
    results: list[Any] = [RuntimeError()] * len(jobs)
    for members in groups.values():
        first = jobs[members[0]]
        try:
            rows = np.concatenate([jobs[i].rows for i in members])
            whole = first.served.answer(rows, first.question)
        except Exception as error:
            if len(members) == 1:
                results[members[0]] = _in_words(error)
                continue
            for i in members:
                (results[i],) = decide_all([jobs[i]])
            continue
        begin = 0
        for i in members:
            end = begin + len(jobs[i].rows)
            results[i] = whole.part(begin, end)
            begin = end
    return results


def explain_all(jobs: Sequence[Job]) -> list[Any]:
    """The explanation of each job of one row."""
    found: list[Any] = []
    for job in jobs:
        try:
            found.append(job.served.explain(job.rows, job.question))
        except Refused as error:
            found.append(error)
        except Exception as error:
            found.append(_in_words(error, TypeError, RuntimeError))
    return found


def _in_words(error: Exception, *more: type[Exception]) -> Exception:
    """An error with a sentence for the user as Refused; others as they are."""
    # by its name: importing Refusal would import torch
    known = isinstance(error, (ValueError, *more)) or type(error).__name__ == "Refusal"
    return Refused(422, str(error)) if known else error


def _safely(work: Work, jobs: Sequence[Job]) -> Sequence[Any]:
    try:
        return work(jobs)
    except Exception as error:  # the queue must go on
        return [error] * len(jobs)
