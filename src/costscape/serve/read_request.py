"""A request for decisions, from its body: JSON, CSV, Parquet, or a form with a file."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from costscape.serve.body_formats import content_type, parse_json
from costscape.serve.question import Question
from costscape.serve.refused import Refused
from costscape.serve.request_rows import RowShape, too_many

T = TypeVar("T")
LARGE = 2**16  # bytes of a body, or numbers, that are read in a thread
PARQUET = ("application/vnd.apache.parquet", "application/x-parquet")
ASKED = ("feasible", "risk", "quantiles", "service_level")  # besides the rows
KEYS = ("rows", *ASKED, "keys")


async def read_request(
    request: Request, shape: RowShape, most: int
) -> tuple[np.ndarray, Question]:
    """The rows, ``most`` at most, and the question; Refused where they are not as needed."""
    kind = content_type(request)
    if kind == "multipart/form-data":
        return await _form(request, shape, most)
    body = await request.body()
    return await off_loop(len(body) > LARGE, lambda: _read(kind, body, shape, most))


async def off_loop(large: bool, work: Callable[[], T]) -> T:
    """Do large work in a thread, since others wait for the event loop."""
    return await asyncio.to_thread(work) if large else work()


def _read(kind: str, body: bytes, shape: RowShape, most: int) -> tuple[np.ndarray, Question]:
    if kind in ("", "application/json"):
        found = parse_json(body)
        if not isinstance(found, dict) or not set(found) <= set(KEYS) or "rows" not in found:
            raise Refused(
                422, f'The body needs an object {{"rows": [...]}} with keys of {", ".join(KEYS)}.'
            )
        if isinstance(found["rows"], list) and len(found["rows"]) > most:
            raise too_many(len(found["rows"]), most)
        question = Question.from_json(*(found.get(key) for key in ASKED))
        return shape.from_json(found["rows"]), question
    if kind == "text/csv":
        return shape.from_csv(body, most), Question()
    if kind in PARQUET:
        return shape.from_parquet(body, most), Question()
    raise Refused(
        415,
        "The body needs the content type application/json, text/csv, "
        "application/vnd.apache.parquet or multipart/form-data.",
    )


async def _form(request: Request, shape: RowShape, most: int) -> tuple[np.ndarray, Question]:
    try:
        async with request.form(max_files=1, max_fields=len(ASKED)) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile) or not set(form) <= {"file", *ASKED}:
                raise Refused(
                    422,
                    f"The form needs a file named file, and may have {', '.join(ASKED)} as JSON.",
                )
            content, name = await file.read(), (file.filename or "").lower()
            given = {key: form.get(key) for key in ASKED}
    except HTTPException as error:  # Starlette's words, such as a missing boundary
        raise Refused(422, f"The form cannot be read: {error.detail}") from None
    question = Question.from_json(
        *(None if v is None else parse_json(str(v), key) for key, v in given.items())
    )
    kinds = {".parquet": PARQUET[0], ".csv": "text/csv"}
    kind = next((kind for end, kind in kinds.items() if name.endswith(end)), None)
    if kind is None:
        raise Refused(422, "The file needs a name that ends in .csv or .parquet.")
    rows, _ = await off_loop(len(content) > LARGE, lambda: _read(kind, content, shape, most))
    return rows, question
