"""Around every request: its id, the token, the size of its body, its line in the log."""

import asyncio
import hmac
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from costscape.serve.explorer.static_files import FOLDER
from costscape.serve.logs import log, place
from costscape.serve.metrics import Metrics
from costscape.serve.refused import Refused
from costscape.serve.service_settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
Handler = Callable[[Request], Awaitable[Response]]
OPEN = ("/", "/health", "/ready")  # paths that need no token; the page has no data
PATHS = (
    "/decide",
    "/outcomes",
    "/explain",
    "/models",
    "/past",
    "/backtest",
    "/metrics",
    "/openapi.json",
    *OPEN,
)
SAFE_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)  # ids of clients that are taken over
FACTS = "costscape"  # where a handler puts what the log says: model, version, rows, flagged
GONE = 499  # the client left before the answer
HELD = 8  # the largest bodies that are held at once


class Edge:
    """Wraps an ASGI app.

    Args:
        app: the app.
        settings: Settings. The token and the limits.
        metrics: Metrics. Where requests are counted.
        direct: mapping, default empty. Handlers of POST by path that are called in place of the
            app: its routing would take a third of the time of a small request.
    """

    def __init__(
        self,
        app: App,
        settings: Settings,
        metrics: Metrics,
        direct: Mapping[str, Handler] | None = None,
    ) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._direct = direct or {}
        self._held = 0  # bytes of the bodies of all requests

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        headers = dict(scope["headers"])
        asked = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = asked if SAFE_ID.fullmatch(asked) else uuid4().hex
        facts = scope[FACTS] = {"request_id": request_id}
        status = size = 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        async def received() -> Message:
            nonlocal size
            message = await receive()
            size += (length := len(message.get("body", b"")))
            self._held += length
            self._check_size(size)
            return message

        try:
            self._check_token(scope["path"], headers.get(b"authorization", b""))
            length = headers.get(b"content-length", b"0")
            self._check_size(int(length) if length.isdigit() else 0)
            body = await self._body(received)
            if body is not None:
                await self._answer(scope, _replay(body, receive), sent)
        except Refused as error:
            await _refuse(error, request_id, sent)
        except Exception as error:
            log(
                "error",
                logging.ERROR,
                request_id=request_id,
                error=type(error).__name__,
                at=place(error),
            )
            if not status:
                words = "The service failed to answer. Its log has the request id."
                await _refuse(Refused(500, words), request_id, sent)
        finally:
            self._held -= size
            self._count(scope, status or GONE, time.perf_counter() - begin, facts)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        handler = self._direct.get(scope["path"]) if scope["method"] == "POST" else None
        if handler is None:
            await self._app(scope, receive, send)
            return
        response = await handler(Request(scope, receive))
        await response(scope, receive, send)

    def _check_token(self, path: str, given: bytes) -> None:
        if self._settings.token is None or path in OPEN or path.startswith(FOLDER):
            return
        wanted = f"Bearer {self._settings.token}".encode()
        if not hmac.compare_digest(given, wanted):
            raise Refused(401, "This needs the header Authorization: Bearer TOKEN.")

    def _check_size(self, size: int) -> None:
        most = self._settings.limits.body_bytes
        if size > most:
            raise Refused(413, f"A body may have {most:,} bytes. Send fewer rows at once.")
        if self._held > HELD * most:
            raise Refused(503, "The service holds too many large requests. Ask again in 1 s.", 1)

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None where the client left before its end."""
        parts = []
        try:
            async with asyncio.timeout(self._settings.limits.seconds):
                while (message := await receive())["type"] != "http.disconnect":
                    parts.append(message.get("body", b""))
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Refused(408, "The body did not arrive in time. Send it again.") from None
        return None

    def _count(self, scope: Message, status: int, seconds: float, facts: dict[str, Any]) -> None:
        path = scope["path"] if scope["path"] in PATHS else "other"
        if scope["path"].startswith("/models/"):
            path = "/models/NAME/reload"
        if scope["path"].startswith(FOLDER):
            path = f"{FOLDER}FILE"
        self._metrics.request(path, status, seconds)
        log(
            "request",
            method=scope["method"],
            path=path,
            status=status,
            seconds=round(seconds, 6),
            **facts,
        )


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then what the server says, such as that the client left."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(error: Refused, request_id: str, send: Send) -> None:
    body = json.dumps({"error": error.sentence, "request_id": request_id}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
