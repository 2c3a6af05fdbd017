"""The web service: decisions and explanations of some models over HTTP."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import costscape
from costscape.methods.training_range import OutOfRange
from costscape.monitor import open_store
from costscape.serve import openapi
from costscape.serve.batching import Batcher, Job, Work, decide_all, explain_all
from costscape.serve.body_formats import content_type, json_answer
from costscape.serve.decision_log import DecisionLog
from costscape.serve.edge import FACTS, Edge
from costscape.serve.explorer.explorer_paths import ExplorerPaths
from costscape.serve.log_gauges import keep_gauges
from costscape.serve.logs import log
from costscape.serve.metrics import Metrics
from costscape.serve.model_events import count_rows, report_reload
from costscape.serve.model_source import ModelSource
from costscape.serve.outcome_request import read_keys, take_outcomes
from costscape.serve.read_request import LARGE, off_loop, read_request
from costscape.serve.refused import Refused
from costscape.serve.served_model import ServedModel, flags_to_json
from costscape.serve.service_settings import Settings
from costscape.serve.versions import Versions

EXPLAIN = 16  # explanations that wait at most


class Service:
    """The handlers of the paths, and what they share.

    Args:
        sources: sequence of ModelSource. The models.
        settings: Settings.
    """

    def __init__(self, sources: Sequence[ModelSource], settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.versions = Versions(
            sources, ServedModel.checked, partial(report_reload, self.metrics)
        )
        for served in self.versions:
            self.metrics.serve(served)
        one = replace(settings.limits, batch_rows=1, queue_rows=EXPLAIN, wait_ms=0.0)
        work: Work = decide_all
        self._store = self._reading = None
        if settings.log is not None:
            # two connections: gauges and outcomes must not hold up decisions
            self._store, self._reading = (open_store(settings.log) for _ in range(2))
            counted = self.metrics.logged
            work = DecisionLog(
                self._store, settings.strict, lambda name, rows: counted.labels(name).inc(rows)
            )
        self._decisions = Batcher(work, settings.limits, self.metrics.batch.observe)
        self._explanations = Batcher(explain_all, one, lambda rows: None)
        self._ready = False

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Answers between its begin and its end; what is in the queue is finished at the end."""
        warnings.simplefilter("ignore", OutOfRange)  # answers have flags and notes instead
        self._decisions.start()
        self._explanations.start()
        seconds = self.settings.watch_seconds
        tasks = [asyncio.create_task(self.versions.watch(seconds))] if seconds else []
        if self._reading is not None:
            every = self.settings.gauge_seconds
            gauges = keep_gauges(self._reading, self.versions, self.metrics, every)
            tasks.append(asyncio.create_task(gauges))
        self._ready = True
        log("ready", models={served.name: served.version for served in self.versions})
        try:
            yield
        finally:
            self._ready = False
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await self._decisions.close()
            await self._explanations.close()
            for store in filter(None, (self._store, self._reading)):
                store.close()
            log("stopped")

    async def decide(self, request: Request) -> Response:
        """Decide for rows."""
        served = self.versions.get(request.query_params.get("model"))
        facts = _facts(request, served)
        most = self.settings.limits.rows
        rows, question = await read_request(request, served.row_shape, most)
        facts["rows"] = len(rows)
        body = await request.body() if content_type(request) in ("", "application/json") else b""
        keys = await off_loop(len(body) > LARGE, lambda: read_keys(body, len(rows)))
        trial = request.query_params.get("trial", "0") == "1"
        job = Job(served, rows, question, facts["request_id"], keys, trial)
        answer = await self._decisions.ask(job)
        count_rows(self.metrics, served.name, len(rows), answer.flags, facts, self.settings.strict)
        head = {**_head(facts), "names": served.decision_names}
        return await off_loop(rows.size > LARGE, lambda: json_answer({**head, **answer.to_json()}))

    async def outcomes(self, request: Request) -> Response:
        """Attach outcomes to logged decisions."""
        store = self._reading
        if store is None:
            raise Refused(409, "Outcomes need logged decisions. Start the service with --log.")
        served = self.versions.get(request.query_params.get("model"))
        facts = _facts(request, served)
        body, kind = await request.body(), content_type(request)
        most = self.settings.limits.rows
        found = await asyncio.to_thread(take_outcomes, store, served, kind, body, most)
        facts["rows"] = found.rows
        self.metrics.outcomes.labels(served.name).inc(found.decisions)
        return json_answer({**_head(facts), **vars(found)})

    async def explain(self, request: Request) -> Response:
        """Explain the decision for one row."""
        served = self.versions.get(request.query_params.get("model"))
        facts = _facts(request, served)
        rows, question = await read_request(request, served.row_shape, 1)
        facts["rows"] = 1
        try:
            flags = served.flags(rows)
        except ValueError as error:  # numbers that are not finite in the model's precision
            raise Refused(422, str(error)) from error
        count_rows(self.metrics, served.name, 1, flags, facts, self.settings.strict)
        tables = await self._explanations.ask(Job(served, rows, question))
        return json_answer({**_head(facts), **tables, "flags": flags_to_json(flags)})

    async def models(self) -> Response:
        """The models that serve now: version, date, rows, columns, ranges, units."""
        return json_answer({"models": [served.describe() for served in self.versions]})

    async def reload(self, name: str) -> Response:
        """Load the files of a model again."""
        if self.settings.token is None:
            raise Refused(403, "reload needs a service with a token. Start it with --token-file.")
        served = await self.versions.reload(name)
        return json_answer({"model": served.name, "version": served.version})

    async def health(self) -> Response:
        """Whether the process answers."""
        return json_answer({"status": "ok"})

    async def ready(self) -> Response:
        """Whether models are loaded and requests are taken."""
        if not self._ready:
            raise Refused(503, "The service is not ready. Ask again in 1 s.", 1)
        return json_answer({"status": "ready"})

    async def show_metrics(self) -> Response:
        """Metrics in the text format of Prometheus."""
        self.metrics.queue.set(self._decisions.rows)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")


def create_app(sources: Sequence[ModelSource], settings: Settings | None = None) -> FastAPI:
    """The service as an ASGI app; its models are loaded and checked at once.

    Args:
        sources: sequence of ModelSource. Where the models come from.
        settings: Settings, default those of ``Settings()``.
    """
    settings = settings or Settings()
    service = Service(sources, settings)
    app = FastAPI(
        title="costscape",
        version=costscape.__version__,
        lifespan=service.lifespan,
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
    )
    add = app.add_api_route
    add("/decide", service.decide, methods=["POST"], openapi_extra=openapi.asking(True))
    add("/outcomes", service.outcomes, methods=["POST"], openapi_extra=openapi.outcomes())
    add("/explain", service.explain, methods=["POST"], openapi_extra=openapi.asking(False))
    add("/models", service.models, methods=["GET"])
    add("/models/{name}/reload", service.reload, methods=["POST"])
    add("/health", service.health, methods=["GET"])
    add("/ready", service.ready, methods=["GET"])
    add("/metrics", service.show_metrics, methods=["GET"])
    ExplorerPaths(service.versions).add_to(app)
    direct = {"/decide": service.decide}
    app.add_middleware(Edge, settings=settings, metrics=service.metrics, direct=direct)

    @app.exception_handler(HTTPException)
    async def in_words(request: Request, error: HTTPException) -> Response:
        raise Refused(error.status_code, f"{error.detail}. /openapi.json lists the paths.")

    def document() -> dict[str, Any]:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        openapi.complete(found, list(service.versions))
        return found

    app.openapi = document  # type: ignore[method-assign]
    return app


def _facts(request: Request, served: ServedModel) -> dict[str, Any]:
    """What the log says of this request."""
    facts: dict[str, Any] = request.scope[FACTS]
    facts |= {"model": served.name, "version": served.version}
    return facts


def _head(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: facts[key] for key in ("model", "version", "request_id")}
