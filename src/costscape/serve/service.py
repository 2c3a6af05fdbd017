"""The web service: decisions and explanations of some models over HTTP."""

import asyncio
import json
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import costscape
from costscape.methods.training_range import OutOfRange
from costscape.serve import explanation_json, openapi
from costscape.serve.batching import Batcher, Job, decide_all, explain_all
from costscape.serve.edge import FACTS, Edge
from costscape.serve.logs import log
from costscape.serve.metrics import Metrics
from costscape.serve.question import Question
from costscape.serve.read_request import LARGE, off_loop, read_request
from costscape.serve.refused import Refused
from costscape.serve.served_model import ServedModel, flags_to_json
from costscape.serve.service_settings import Settings
from costscape.serve.source import Source
from costscape.serve.versions import Versions

EXPLAIN = 16  # explanations that wait at most


class Service:
    """The handlers of the paths, and what they share.

    Args:
        sources: sequence of Source. The models.
        settings: Settings.
    """

    def __init__(self, sources: Sequence[Source], settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.versions = Versions(sources, ServedModel.checked, self._reloaded)
        for served in self.versions:
            self.metrics.serve(served)
        one = replace(settings.limits, batch_rows=1, queue_rows=EXPLAIN, wait_ms=0.0)
        self._decisions = Batcher(decide_all, settings.limits, self.metrics.batch.observe)
        self._explanations = Batcher(explain_all, one, lambda rows: None)
        self._ready = False

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Answers between its begin and its end; what is in the queue is finished at the end."""
        warnings.simplefilter("ignore", OutOfRange)  # answers have flags and notes instead
        self._decisions.start()
        self._explanations.start()
        seconds = self.settings.watch_seconds
        watcher = asyncio.create_task(self.versions.watch(seconds)) if seconds else None
        self._ready = True
        log("ready", models={served.name: served.version for served in self.versions})
        try:
            yield
        finally:
            self._ready = False
            if watcher is not None:
                watcher.cancel()
                with suppress(asyncio.CancelledError):
                    await watcher
            await self._decisions.close()
            await self._explanations.close()
            log("stopped")

    async def decide(self, request: Request) -> Response:
        """Decide for rows."""
        served = self.versions.get(request.query_params.get("model"))
        facts = _facts(request, served)
        most = self.settings.limits.rows
        rows, question = await read_request(request, served.row_shape, most)
        facts["rows"] = len(rows)
        answer = await self._decisions.ask(Job(served, rows, question))
        self._flag(served, len(rows), answer.flags, facts)
        head = {**_head(facts), "names": served.decision_names}
        return await off_loop(rows.size > LARGE, lambda: _json({**head, **answer.to_json()}))

    async def explain(self, request: Request) -> Response:
        """Explain the decision for one row."""
        served = self.versions.get(request.query_params.get("model"))
        facts = _facts(request, served)
        rows, question = await read_request(request, served.row_shape, 1)
        if question != Question():
            raise Refused(422, "explain takes rows with one row, and neither feasible nor risk.")
        facts["rows"] = 1
        flags = served.flags(rows)
        self._flag(served, 1, flags, facts)
        why = await self._explanations.ask(Job(served, rows, question))
        tables = explanation_json.to_json(why)
        return _json({**_head(facts), **tables, "flags": flags_to_json(flags)})

    async def models(self) -> Response:
        """The models that serve now: version, date, rows, columns, ranges, units."""
        return _json({"models": [served.describe() for served in self.versions]})

    async def reload(self, name: str) -> Response:
        """Load the files of a model again."""
        if self.settings.token is None:
            raise Refused(403, "reload needs a service with a token. Start it with --token-file.")
        served = await self.versions.reload(name)
        return _json({"model": served.name, "version": served.version})

    async def health(self) -> Response:
        """Whether the process answers."""
        return _json({"status": "ok"})

    async def ready(self) -> Response:
        """Whether models are loaded and requests are taken."""
        if not self._ready:
            raise Refused(503, "The service is not ready. Ask again in 1 s.", 1)
        return _json({"status": "ready"})

    async def show_metrics(self) -> Response:
        """Metrics in the text format of Prometheus."""
        self.metrics.queue.set(self._decisions.rows)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    def _flag(
        self, served: ServedModel, rows: int, flags: dict[int, list[str]], facts: dict[str, Any]
    ) -> None:
        facts["flagged"] = len(flags)
        self.metrics.rows.labels(served.name).inc(rows)
        self.metrics.flagged.labels(served.name).inc(len(flags))
        if flags and self.settings.strict:
            row, columns = next(iter(flags.items()))
            raise Refused(
                422,
                f"{len(flags)} of {rows} rows are far outside the range of the training rows, "
                f"first row {row} in {', '.join(columns[:8])}.",
            )

    def _reloaded(self, name: str, served: ServedModel, error: str | None) -> None:
        self.metrics.reloads.labels(name, "refused" if error else "loaded").inc()
        self.metrics.serve(served)
        log("reload", model=name, version=served.version, refused=error)


def create_app(sources: Sequence[Source], settings: Settings | None = None) -> FastAPI:
    """The service as an ASGI app; its models are loaded and checked at once.

    Args:
        sources: sequence of Source. Where the models come from.
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
    add("/explain", service.explain, methods=["POST"], openapi_extra=openapi.asking(False))
    add("/models", service.models, methods=["GET"])
    add("/models/{name}/reload", service.reload, methods=["POST"])
    add("/health", service.health, methods=["GET"])
    add("/ready", service.ready, methods=["GET"])
    add("/metrics", service.show_metrics, methods=["GET"])
    app.add_middleware(Edge, settings=settings, metrics=service.metrics)

    @app.exception_handler(HTTPException)
    async def in_words(request: Request, error: HTTPException) -> Response:
        raise Refused(error.status_code, f"{error.detail}. /openapi.json lists the paths.")

    def document() -> dict[str, Any]:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        found.setdefault("components", {}).setdefault("schemas", {}).update(
            openapi.schemas(list(service.versions))
        )
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


def _json(content: dict[str, Any]) -> Response:
    return Response(json.dumps(content), media_type="application/json")
