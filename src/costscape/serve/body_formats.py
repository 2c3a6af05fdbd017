"""JSON and CSV in the bodies of requests and answers."""

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from costscape.serve.refused import Refused

if TYPE_CHECKING:  # the command line reads CSV without starlette
    from starlette.requests import Request
    from starlette.responses import Response


def content_type(request: "Request") -> str:
    """The content type of a request in small letters, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_json(text: bytes | str, what: str = "The body") -> Any:
    """The value; Refused, in words about ``what``, where the text is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(422, f"{what} needs JSON, but cannot be read as such.") from None


def parse_csv(content: bytes) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of a CSV file in UTF-8; Refused where it is none.

    Empty lines are left out, and all others have as many values as the header.

    >>> parse_csv(b"sold,price\\n3,2.5\\n\\n")
    (['sold', 'price'], [['3', '2.5']])
    """
    try:
        header, *lines = csv.reader(io.StringIO(content.decode("utf-8-sig")), strict=True)
    except (UnicodeDecodeError, ValueError, csv.Error):
        raise Refused(
            422, "The file is no CSV in UTF-8 with a header, commas and decimal points."
        ) from None
    lines = [line for line in lines if line]
    for i, line in enumerate(lines):
        if len(line) != len(header):
            raise Refused(
                422, f"Row {i} needs {len(header)} values, as the header, but has {len(line)}."
            )
    return header, lines


def json_answer(content: dict[str, Any]) -> "Response":
    """The content as JSON; Refused where it has numbers that are not finite."""
    from starlette.responses import Response

    try:
        text = json.dumps(content, allow_nan=False)  # JSON has neither NaN nor infinity
    except ValueError:
        raise Refused(
            422,
            "The model has no finite answer for these rows. Check their values and the set.",
        ) from None
    return Response(text, media_type="application/json")
