"""A request that brings outcomes: rows as JSON or CSV, with ids or key columns."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any

from costscape.monitor import Attached, DecisionStore, StoreError, attach_outcomes, outcome_names
from costscape.serve.body_formats import parse_csv, parse_json
from costscape.serve.refused import Refused
from costscape.serve.request_rows import too_many
from costscape.serve.served_model import ServedModel

KEYS, TEXT = 16, 200  # keys of a row, and letters of one, at most


def take_outcomes(
    store: DecisionStore, served: ServedModel, kind: str, body: bytes, most: int
) -> Attached:
    """Attach the outcomes of a body to the decisions of a model; Refused where that fails.

    Args:
        store: has the decisions.
        served: the model whose outcomes they are.
        kind: the content type.
        body: JSON {"rows": [{...}]}, or CSV with a header.
        most: how many rows at most.
    """
    rows = _read(kind, body)
    if len(rows) > most:
        raise too_many(len(rows), most)
    try:
        return attach_outcomes(store, served.name, outcome_names(served.model), rows)
    except StoreError:
        raise Refused(
            503, "The outcomes could not be stored. Send them again in 5 s.", 5
        ) from None
    except ValueError as error:
        raise Refused(422, str(error)) from error


def read_keys(body: bytes, rows: int) -> list[dict[str, Any]]:
    """What the client calls its rows: ``keys`` of a JSON body; empty where there are none.

    Args:
        body: of a request for decisions.
        rows: how many rows it has.
    """
    if b'"keys"' not in body:
        return []
    try:
        found = json.loads(body).get("keys")
    except (ValueError, RecursionError, AttributeError):
        return []  # no JSON: a column of a file may have this name
    if found is None:
        return []
    if not isinstance(found, list) or len(found) != rows or not all(map(_is_key, found)):
        raise Refused(
            422,
            f"keys needs a list of {rows} objects, one for each row, with up to {KEYS} texts of "
            f"up to {TEXT} letters or finite numbers.",
        )
    return found


def _is_key(entry: Any) -> bool:
    if not isinstance(entry, dict) or len(entry) > KEYS:
        return False
    return all(
        len(name) <= TEXT
        and (
            (isinstance(value, str) and len(value) <= TEXT)
            or (type(value) in (int, float) and isfinite(value))
        )
        for name, value in entry.items()
    )


def _read(kind: str, body: bytes) -> Sequence[dict[str, Any]]:
    if kind == "text/csv":
        return rows_of_csv(body)
    if kind not in ("", "application/json"):
        raise Refused(415, "The body needs the content type application/json or text/csv.")
    found = parse_json(body)
    rows = found.get("rows") if isinstance(found, dict) and set(found) == {"rows"} else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Refused(422, 'The body needs an object {"rows": [...]} with objects by column name.')
    return rows


def rows_of_csv(content: bytes) -> list[dict[str, Any]]:
    """Rows by column name of a CSV file in UTF-8; Refused where it is none."""
    header, lines = parse_csv(content)
    if len(set(header)) < len(header):
        raise Refused(422, "The CSV file needs columns with different names, but has one twice.")
    return [dict(zip(header, line, strict=True)) for line in lines]
