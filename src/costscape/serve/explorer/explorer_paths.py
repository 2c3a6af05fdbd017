"""The paths of the explorer: the page, its files, past days, and the last comparison."""

import asyncio
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from costscape.serve.body_formats import json_answer
from costscape.serve.explorer import static_files
from costscape.serve.explorer.past_days import past_day, past_labels
from costscape.serve.openapi import MODEL
from costscape.serve.refused import Refused
from costscape.serve.versions import Versions

DAY = {
    "name": "day",
    "in": "query",
    "required": False,
    "schema": {"type": "integer", "minimum": 0},
    "description": "The position of one day; without it, the labels of all days are listed.",
}


class ExplorerPaths:
    """Handlers of the paths.

    Args:
        versions: Versions. The models that serve.
    """

    def __init__(self, versions: Versions) -> None:
        self._versions = versions

    def add_to(self, app: FastAPI) -> None:
        """Add the paths to an app."""
        hidden: dict[str, Any] = {"methods": ["GET"], "include_in_schema": False}
        app.add_api_route("/", self.page, **hidden)
        app.add_api_route(f"{static_files.FOLDER}{{stamp}}/{{name}}", self.file, **hidden)
        models = {"parameters": [MODEL]}
        app.add_api_route("/backtest", self.backtest, methods=["GET"], openapi_extra=models)
        past = {"parameters": [MODEL, DAY]}
        app.add_api_route("/past", self.past, methods=["GET"], openapi_extra=past)

    async def page(self) -> Response:
        """The explorer."""
        headers = {**static_files.HEADERS, "Cache-Control": "no-cache"}
        return Response(static_files.page(), media_type="text/html", headers=headers)

    async def file(self, stamp: str, name: str) -> Response:
        """A file of the explorer."""
        found = await asyncio.to_thread(static_files.static_file, stamp, name)
        headers = {
            **static_files.HEADERS,
            "Cache-Control": static_files.FOREVER,
            "Content-Encoding": "gzip",
        }
        return Response(found.content, media_type=found.kind, headers=headers)

    async def past(self, request: Request) -> Response:
        """The labels of past days, or one of them: its row and its outcome."""
        served = self._versions.get(request.query_params.get("model"))
        day = request.query_params.get("day")
        if day is None:
            labels = await asyncio.to_thread(past_labels, served)
            return json_answer({"model": served.name, "version": served.version, "labels": labels})
        found = await asyncio.to_thread(past_day, served, day)
        return json_answer({"model": served.name, "version": served.version, **found})

    async def backtest(self, request: Request) -> Response:
        """The costs of the last comparison, row by row."""
        served = self._versions.get(request.query_params.get("model"))
        path = self._versions.source(served).comparison
        if not path.is_file():
            raise Refused(
                404,
                f"There is no comparison of {served.name}. Write one: costscape compare, or "
                f"CostHistory.of(result).write({path.name!r}) in the folder of the model.",
            )
        from costscape.comparison.cost_history import read_history  # few ask for it

        try:
            found = await asyncio.to_thread(read_history, path)
        except ValueError as error:
            raise Refused(409, str(error)) from error
        return json_answer({"model": served.name, **asdict(found)})
