"""Decisions are kept in a store before they are answered: one commit for each call."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np

from costscape.monitor import DecisionStore, Record, StoreError, utc_now
from costscape.serve.batching import Job, decide_all
from costscape.serve.logs import log
from costscape.serve.question import Question
from costscape.serve.refused import Refused
from costscape.serve.served_model import Answer

LATER = 5  # seconds after which a client may ask again


class DecisionLog:
    """Decides jobs as ``decide_all`` does, keeps the answers, and gives each row an id.

    Args:
        store: DecisionStore. Where the records go.
        strict: bool. Flagged rows will be refused, so they are not kept.
        on_logged: called with the name of a model and the number of its rows after each commit.
    """

    def __init__(
        self, store: DecisionStore, strict: bool, on_logged: Callable[[str, int], None]
    ) -> None:
        self._store, self._strict, self._on_logged = store, strict, on_logged

    def __call__(self, jobs: Sequence[Job]) -> list[Answer | Exception]:
        """A logged answer or an exception for each job; Refused where the store fails."""
        results, records = list(decide_all(jobs)), list[Record]()
        counts: dict[str, int] = {}
        for i, (job, answer) in enumerate(zip(jobs, results, strict=True)):
            if isinstance(answer, Exception) or job.trial or (self._strict and answer.flags):
                continue
            made = _records(job, answer)
            results[i] = replace(answer, ids=[record.id for record in made])
            records += made
            counts[job.served.name] = counts.get(job.served.name, 0) + len(made)
        if not records:
            return results
        try:
            self._store.append(records)
        except StoreError as error:
            log("store", logging.ERROR, error=str(error))
            refused = Refused(
                503,
                f"The decisions could not be logged, so they are not given. Ask again in {LATER} "
                f"s; the log of the service has the reason.",
                LATER,
            )
            return [r if isinstance(r, Exception) or r.ids is None else refused for r in results]
        for name, rows in counts.items():
            self._on_logged(name, rows)
        return results


def _records(job: Job, answer: Answer) -> list[Record]:
    """One record for each row of a request."""
    served, now, start = job.served, utc_now(), uuid4().hex
    names, columns = served.decision_names, served.row_shape.columns
    actions = np.reshape(answer.decisions, (len(job.rows), -1)).tolist()
    expected = answer.expected_cost
    asked = job.question.to_json()
    made = []
    for i, row in enumerate(job.rows.tolist()):
        levels: dict[str, float] = {}
        if answer.quantiles is not None:
            levels = _by_level(job.question, answer.quantiles[i])
        made.append(
            Record(
                f"{start}-{i}",
                now,
                served.name,
                served.version,
                job.request_id,
                dict(zip(columns, row, strict=True)) if columns else row,
                dict(zip(names, actions[i], strict=True)),
                None if expected is None else float(expected[i]),
                tuple(answer.flags.get(i, ())),
                job.keys[i] if job.keys else {},
                asked or None,
                levels,
            )
        )
    return made


def _by_level(question: Question, costs: Any) -> dict[str, float]:
    names = map(str, question.quantiles)
    return {name: float(cost) for name, cost in zip(names, costs, strict=True)}
