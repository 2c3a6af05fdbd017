"""The web service of exported models: decisions over HTTP, without torch.

It has the limits, the log, the metrics and the refusals of the other service. What needs a fitted
model, /explain, other sets and risks, is answered with 501 and a sentence.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from costscape.serve.batching import Batcher, Job, decide_all
from costscape.serve.body_formats import content_type, json_answer, parse_json
from costscape.serve.edge import FACTS, Edge
from costscape.serve.listen import listen
from costscape.serve.logs import log
from costscape.serve.metrics import Metrics
from costscape.serve.model_events import count_rows, report_reload
from costscape.serve.model_names import check_distinct
from costscape.serve.refused import Refused
from costscape.serve.request_rows import too_many
from costscape.serve.runtime_model import RuntimeModel, RuntimeSource
from costscape.serve.service_settings import Settings
from costscape.serve.versions import Versions

ABSENT = {
    "feasible": "Another set needs the fitted model",
    "risk": "A risk needs the scenarios of the fitted model",
}


class RuntimeService:
    """The handlers of the paths, and what they share.

    Args:
        sources: sequence of RuntimeSource. The models.
        settings: Settings.
    """

    def __init__(self, sources: Sequence[RuntimeSource], settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.versions = Versions(
            sources, RuntimeModel.checked, partial(report_reload, self.metrics)
        )
        for served in self.versions:
            self.metrics.serve(served)
        self._decisions = Batcher(decide_all, settings.limits, self.metrics.batch.observe)
        self._ready = False

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Answers between its begin and its end; what is in the queue is finished at the end."""
        self._decisions.start()
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
            log("stopped")

    async def decide(self, request: Request) -> Response:
        """Decide for rows."""
        served = self.versions.get(request.query_params.get("model"))
        facts: dict[str, Any] = request.scope[FACTS]
        facts |= {"model": served.name, "version": served.version}
        rows = await self._rows(request, served)
        facts["rows"] = len(rows)
        answer = await self._decisions.ask(Job(served, rows))
        count_rows(self.metrics, served.name, len(rows), answer.flags, facts, self.settings.strict)
        head = {key: facts[key] for key in ("model", "version", "request_id")}
        names = served.model.facts.decision_names
        return json_answer({**head, "names": names, **answer.to_json()})

    async def explain(self, request: Request) -> Response:
        """Refuse: explanations need the training rows and the networks."""
        raise Refused(
            501, "An exported model explains nothing. Ask a service of the model file itself."
        )

    async def models(self, request: Request) -> Response:
        """The models that serve now: version, date, rows, columns, ranges, units."""
        return json_answer({"models": [served.describe() for served in self.versions]})

    async def reload(self, request: Request) -> Response:
        """Load the file of a model again."""
        if self.settings.token is None:
            raise Refused(403, "reload needs a service with a token. Start it with --token-file.")
        served = await self.versions.reload(request.path_params["name"])
        return json_answer({"model": served.name, "version": served.version})

    async def health(self, request: Request) -> Response:
        """Whether the process answers."""
        return json_answer({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether models are loaded and requests are taken."""
        if not self._ready:
            raise Refused(503, "The service is not ready. Ask again in 1 s.", 1)
        return json_answer({"status": "ready"})

    async def show_metrics(self, request: Request) -> Response:
        """Metrics in the text format of Prometheus."""
        self.metrics.queue.set(self._decisions.rows)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def _rows(self, request: Request, served: RuntimeModel) -> Any:
        kind = content_type(request)
        body, most = await request.body(), self.settings.limits.rows
        if kind == "text/csv":
            return served.row_shape.from_csv(body, most)
        if kind not in ("", "application/json"):
            raise Refused(415, "The body needs the content type application/json or text/csv.")
        found = parse_json(body)
        if not isinstance(found, dict) or "rows" not in found:
            raise Refused(422, 'The body needs an object {"rows": [...]}.')
        for key, words in ABSENT.items():
            if found.get(key) is not None:
                raise Refused(501, f"{words}, and this is an exported one. Leave {key} out.")
        if not set(found) <= {"rows", *ABSENT}:
            raise Refused(422, 'The body needs an object {"rows": [...]} without other keys.')
        if isinstance(found["rows"], list) and len(found["rows"]) > most:
            raise too_many(len(found["rows"]), most)
        return served.row_shape.from_json(found["rows"])


def create_runtime_app(
    sources: Sequence[RuntimeSource], settings: Settings | None = None
) -> Starlette:
    """The service of exported models as an ASGI app; its models are loaded and checked at once.

    Args:
        sources: sequence of RuntimeSource. Where the models come from.
        settings: Settings, default those of ``Settings()``.
    """
    settings = settings or Settings()
    service = RuntimeService(sources, settings)
    post = {
        "/decide": service.decide,
        "/explain": service.explain,
        "/models/{name}/reload": service.reload,
    }
    get = {
        "/models": service.models,
        "/health": service.health,
        "/ready": service.ready,
        "/metrics": service.show_metrics,
    }
    routes = [Route(path, handler, methods=["POST"]) for path, handler in post.items()]
    routes += [Route(path, handler, methods=["GET"]) for path, handler in get.items()]

    async def in_words(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        raise Refused(error.status_code, f"{error.detail}. The paths are {', '.join(post | get)}.")

    return Starlette(
        routes=routes,
        lifespan=service.lifespan,
        middleware=[Middleware(Edge, settings=settings, metrics=service.metrics)],
        exception_handlers={HTTPException: in_words},
    )


def run_runtime(models: Sequence[str], settings: Settings) -> None:
    """Serve exported models, [NAME=]PATH each, until SIGTERM or SIGINT."""
    sources = [RuntimeSource.parse(text) for text in models]
    check_distinct([source.name for source in sources])
    listen(create_runtime_app(sources, settings), settings)
