"""Gauges of the logged decisions, computed in a thread now and then, never in a request."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from costscape.monitor import DecisionStore, Thresholds, watch
from costscape.serve.logs import log, place
from costscape.serve.metrics import Metrics
from costscape.serve.served_model import ServedModel

ROWS = 2000  # latest records that are looked at


async def keep_gauges(
    store: DecisionStore, models: Iterable[ServedModel], metrics: Metrics, seconds: float
) -> None:
    """Set the gauges of all models, again and again until cancelled.

    Args:
        store: a connection of its own, so that requests do not wait for it.
        models: the versions that serve at each moment.
        metrics: has the gauges.
        seconds: between two looks.
    """
    while True:
        for served in models:
            await asyncio.to_thread(set_gauges, store, served, metrics)
        await asyncio.sleep(seconds)


def set_gauges(store: DecisionStore, served: ServedModel, metrics: Metrics) -> None:
    """Set the gauges of one model from its latest records; an error is logged only.

    Args:
        store: has the records.
        served: the model.
        metrics: has the gauges.
    """
    try:
        records = store.read(served.name, ROWS)
        real = [r for r in records if r.is_plain or r.outcome is not None]
        if not real:
            return
        at = replace(Thresholds(), rows=ROWS)
        found = watch(served.name, records, served.model, at, thorough=False)
    except Exception as error:  # also what the user's cost raises; the next look may work
        log(
            "monitor",
            logging.ERROR,
            model=served.name,
            error=type(error).__name__,
            at=place(error),
        )
        return
    metrics.drift.labels(served.name).set(found.drifted)
    metrics.alerts.labels(served.name).set(len(found.alerts))
    metrics.flagged_share.labels(served.name).set(found.flagged)
    if found.levels is not None:
        metrics.cost_ratio.labels(served.name).set(found.levels.ratio)
